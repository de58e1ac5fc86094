//! What watches and waits have to tell.

use std::ops::ControlFlow;
use std::time::Duration;

use cloudcoil_core::{DecodeError, Error, Object, Resource};

/// What happens to the objects of a type.
///
/// First `Restarted`, any number of `Listed` and one `Synced`; then changes, until a `Restarted` begins anew. What was known
/// before `Restarted` and is not reported until `Synced` exists no more.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "whoever keeps objects must know all of them")]
pub enum WatchEvent<K> {
    /// A list begins.
    Restarted,
    /// An object exists; of several reports of one object the last counts.
    Listed(K),
    /// The list is complete.
    Synced,
    /// An object is new or has changed.
    Applied(K),
    /// An object is gone, or has ceased to match; this is its last state.
    Deleted(K),
}

/// What a wait has come to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Awaited<K> {
    /// The name of what holds: the one it was given, or as `kubectl wait --for` takes it.
    pub predicate: String,
    /// The object for which it holds. Of one that is gone its last state, if any was seen.
    pub object: Option<K>,
}

impl<K: Resource> TryFrom<cloudcoil_core::Awaited> for Awaited<K> {
    type Error = DecodeError;

    fn try_from(awaited: cloudcoil_core::Awaited) -> Result<Self, DecodeError> {
        let object = awaited.object.map(|object| object.decode()).transpose()?;
        Ok(Self { predicate: awaited.predicate, object })
    }
}

/// What an event of the machine is to the reader of a watch: an item or none, or the end.
pub(crate) fn item<K: Resource>(
    event: cloudcoil_core::WatchEvent,
) -> ControlFlow<Error, Option<Result<WatchEvent<K>, Error>>> {
    use cloudcoil_core::WatchEvent as Event;
    let typed = |object: &Object, event: fn(K) -> WatchEvent<K>| match object.decode() {
        Ok(object) => Ok(event(object)),
        Err(error) => Err(error.into()),
    };
    ControlFlow::Continue(match event {
        Event::Restarted => Some(Ok(WatchEvent::Restarted)),
        Event::Listed(object) => Some(typed(&object, WatchEvent::Listed)),
        Event::Synced { .. } => Some(Ok(WatchEvent::Synced)),
        Event::Applied(object) => Some(typed(&object, WatchEvent::Applied)),
        Event::Deleted(object) => Some(typed(&object, WatchEvent::Deleted)),
        Event::Faulty(faulty) => Some(Err(faulty.error.into())),
        Event::Failed { error, retry_in } => {
            tracing::warn!(%error, ?retry_in, "a watch failed");
            if retry_in == Duration::MAX {
                return ControlFlow::Break(error);
            }
            error.is_permanent().then_some(Err(error))
        }
        Event::Warned(warning) => {
            tracing::warn!("{warning}");
            None
        }
    })
}
