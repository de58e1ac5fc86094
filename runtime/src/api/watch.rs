//! Watches as streams.

use std::fmt::Display;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use cloudcoil_core::{Error, ListVersion, ListWatch, Object, Resource, WatchConfig};
use futures_util::stream::Stream;

use crate::Api;
use crate::driver::Driver;

/// A watch to be started with [`stream`](Watch::stream).
#[derive(Debug)]
#[must_use = "call `stream`"]
pub struct Watch<K> {
    api: Api<K>,
    config: WatchConfig,
}

impl<K: Resource> Watch<K> {
    pub(super) fn new(api: Api<K>) -> Self {
        Self { config: WatchConfig::new(api.requests.clone()), api }
    }

    /// Only objects in this namespace.
    pub fn namespace(self, namespace: &str) -> Self {
        self.within(|api| api.namespace(namespace))
    }

    /// Objects in all namespaces.
    pub fn all_namespaces(self) -> Self {
        self.within(Api::all_namespaces)
    }

    fn within(self, scope: impl FnOnce(Api<K>) -> Api<K>) -> Self {
        let api = scope(self.api);
        let config = WatchConfig { requests: api.requests.clone(), ..self.config };
        Self { api, config }
    }

    /// Only objects whose labels match; one that ceases to match is reported as deleted.
    pub fn labels(mut self, selector: impl Display) -> Self {
        self.config.label_selector = Some(selector.to_string());
        self
    }

    /// Only objects whose fields match; one that ceases to match is reported as deleted.
    pub fn fields(mut self, selector: impl Display) -> Self {
        self.config.field_selector = Some(selector.to_string());
        self
    }

    /// How new the first list must be; as new as can be, unless told otherwise.
    pub fn version(mut self, version: ListVersion) -> Self {
        self.config.version = version;
        self
    }

    /// Changes any of the finer settings.
    pub fn configure(mut self, change: impl FnOnce(&mut WatchConfig)) -> Self {
        change(&mut self.config);
        self
    }

    /// What exists, and then every change, without end: a watch that ends or breaks goes on where it was, and if the server
    /// has forgotten that place, with a new list.
    ///
    /// Nothing runs in the background: the connection is read as the stream is polled, and closed when it is dropped.
    /// Failures that pass are logged and retried. An error of the stream is an object that does not fit its type, or a
    /// refusal that will hardly change (as 403); the stream goes on after both.
    pub fn stream(self) -> WatchStream<K> {
        let client = self.api.client;
        let machine = ListWatch::new(self.config, 0, client.seed::<ListWatch>());
        WatchStream { driver: Driver::new(machine, client.port()), kind: std::marker::PhantomData, ended: false }
    }
}

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

/// The events of a watch; see [`Watch::stream`].
#[must_use = "streams do nothing unless polled"]
pub struct WatchStream<K> {
    driver: Driver<ListWatch>,
    kind: std::marker::PhantomData<fn() -> K>,
    ended: bool,
}

/// What an event of the machine is to the reader of a watch: an item or none, or the end.
pub fn item<K: Resource>(
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

impl<K: Resource> Stream for WatchStream<K> {
    type Item = Result<WatchEvent<K>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        while !self.ended {
            match item(ready!(self.driver.poll_event(context))) {
                ControlFlow::Continue(None) => {}
                ControlFlow::Continue(item) => return Poll::Ready(item),
                ControlFlow::Break(error) => {
                    self.ended = true;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
        Poll::Ready(None)
    }
}

impl<K> std::fmt::Debug for WatchStream<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WatchStream")
    }
}
