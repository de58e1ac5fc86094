//! From changes of objects to keys of the reconciled type.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cloudcoil_core::error::chain;
use cloudcoil_core::{Error, Object, ObjectVersion, ReconcilerInput, Resource, ResourceKey, ResourceType, owner_key};

use super::{Change, Reader, panics};

/// What a mapper may return: the keys of the objects to look at, or why they cannot be told.
pub trait IntoKeys {
    /// The keys, or what is wrong.
    ///
    /// # Errors
    /// A text that says why the keys cannot be told; it stops the controller.
    fn into_keys(self) -> Result<Vec<ResourceKey>, String>;
}

impl IntoKeys for ResourceKey {
    fn into_keys(self) -> Result<Vec<ResourceKey>, String> {
        Ok(vec![self])
    }
}

impl IntoKeys for Vec<ResourceKey> {
    fn into_keys(self) -> Result<Vec<ResourceKey>, String> {
        Ok(self)
    }
}

impl IntoKeys for Option<ResourceKey> {
    fn into_keys(self) -> Result<Vec<ResourceKey>, String> {
        Ok(self.into_iter().collect())
    }
}

impl<T: IntoKeys, E: std::error::Error> IntoKeys for Result<T, E> {
    fn into_keys(self) -> Result<Vec<ResourceKey>, String> {
        self.map_err(|error| chain(&error))?.into_keys()
    }
}

/// How changes of a type lead to keys.
pub(crate) enum Mapping<C> {
    /// The object that controls the changed one.
    Owner,
    /// What a function says.
    Mapper(Mapper<C>),
}

/// Says which keys an object is about, or why it cannot tell.
pub(crate) type Mapper<C> = Box<dyn Fn(&C) -> Result<Vec<ResourceKey>, String> + Send>;

/// Which keys of the reconciled type a change of another type is about.
pub(crate) struct ChangedKeys<K, C> {
    primary: Reader<K>,
    resource_type: Arc<ResourceType>,
    mappings: Vec<Mapping<C>>,
}

impl<K: Resource, C: Resource> ChangedKeys<K, C> {
    /// Keys of `resource_type`, whose objects `primary` holds.
    pub(crate) const fn new(primary: Reader<K>, resource_type: Arc<ResourceType>, mappings: Vec<Mapping<C>>) -> Self {
        Self { primary, resource_type, mappings }
    }

    /// The keys that a change is about, each once. Of an update both states are mapped.
    ///
    /// # Errors
    /// [`Error::Stopped`] if a mapper fails or panics: the controller cannot know then what it has missed.
    pub(crate) fn of(&self, change: &Change, reader: &Reader<C>) -> Result<Vec<ResourceKey>, Error> {
        let (one, other) = match change {
            Change::Added(object) | Change::Deleted(object) => (object, None),
            Change::Updated { old, new } => (old, Some(new)),
        };
        let mut keys = Vec::new();
        for object in std::iter::once(one).chain(other) {
            for mapping in &self.mappings {
                keys.extend(self.map(mapping, object, reader).map_err(|error| {
                    let text = format!("the mapper of {} failed at {}: {error}", reader.resource_type(), object.key());
                    Error::Stopped(text.into())
                })?);
            }
        }
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    }

    fn map(&self, mapping: &Mapping<C>, object: &Arc<Object>, reader: &Reader<C>) -> Result<Vec<ResourceKey>, String> {
        match mapping {
            Mapping::Owner => Ok(self.owner(object).into_iter().collect()),
            Mapping::Mapper(mapper) => match reader.decode(object) {
                Ok(object) => catch_unwind(AssertUnwindSafe(|| mapper(&object)))
                    .unwrap_or_else(|panic| Err(format!("it panicked: {}", panics::message(&*panic)))),
                // An object that does not fit its type disturbs no other; it comes again when it is mended.
                Err(error) => {
                    tracing::warn!(%error, "an object cannot be mapped");
                    Ok(Vec::new())
                }
            },
        }
    }

    /// The object that controls a child, if it is held, and is the very one that the child names.
    fn owner(&self, child: &Object) -> Option<ResourceKey> {
        let owners = child.owner_references();
        let (key, uid) = owner_key(owners.iter(), child.namespace(), &self.resource_type)?;
        let owner = self.primary.object(&key)?;
        (owner.uid() == Some(uid)).then_some(key)
    }
}

/// What a reconciler is to hear of a change of its own type.
pub(crate) fn primary_inputs(change: &Change, ignores_status: bool) -> impl Iterator<Item = ReconcilerInput> + use<> {
    let (object, version) = match change {
        Change::Added(object) | Change::Updated { new: object, .. } => (object, version(object)),
        Change::Deleted(object) => (object, None),
    };
    let key = object.key();
    let is_ignored = matches!(change, Change::Updated { old, new } if ignores_status && is_status_only(old, new));
    // What is enqueued first is one pass with what waits for the cache to show this version.
    let enqueued = (!is_ignored).then(|| ReconcilerInput::Enqueued(key.clone()));
    enqueued.into_iter().chain([ReconcilerInput::Observed { key, version }])
}

fn version(object: &Object) -> Option<ObjectVersion> {
    Some(ObjectVersion { uid: object.uid()?.into(), resource_version: object.resource_version()?.into() })
}

/// Whether a change touched the status alone: the generation counts changes of the desired state only, and metadata that
/// does not count is compared.
fn is_status_only(old: &Object, new: &Object) -> bool {
    old.generation().is_some()
        && old.generation() == new.generation()
        && old.uid() == new.uid()
        && old.is_deleting() == new.is_deleting()
        && old.labels().eq(new.labels())
        && old.annotations() == new.annotations()
        && old.finalizers() == new.finalizers()
        && old.owner_references() == new.owner_references()
}
