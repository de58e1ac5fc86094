//! What a handler has at hand.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use cloudcoil_core::k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use cloudcoil_core::{
    DesiredChild, EnsureError, EnsureStep, Error, KnownResource, Patch, Resource, ResourceKey, ResourceType,
    Unstructured, controller_reference, request, response,
};

use super::world::dual;
use super::{Api, Client};
use crate::plain::{Reader, Stop, Wait};

/// The readers of a controller's caches, by the type of their objects.
pub(super) type Readers = BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>;

/// What a handler has at hand in one pass. Cheap to clone.
pub struct Context<K>(Arc<Pass<K>>);

/// One pass.
pub(super) struct Pass<K> {
    pub(super) client: Client,
    pub(super) resource_type: Arc<ResourceType>,
    pub(super) key: ResourceKey,
    pub(super) object: Arc<K>,
    pub(super) readers: Arc<Readers>,
}

impl<K> Clone for Context<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K> fmt::Debug for Context<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Context").field(&self.0.key).finish()
    }
}

#[dual]
impl<K: Resource> Context<K> {
    pub(super) fn new(pass: Pass<K>) -> Self {
        Self(Arc::new(pass))
    }

    /// The object that the pass is about, as the handler was given it.
    pub fn object(&self) -> &Arc<K> {
        &self.0.object
    }

    /// The object's key.
    pub fn key(&self) -> &ResourceKey {
        &self.0.key
    }

    /// The object's name.
    pub fn name(&self) -> &str {
        self.0.key.name()
    }

    /// The object's namespace; `None` if it is cluster-scoped.
    pub fn namespace(&self) -> Option<&str> {
        self.0.key.namespace()
    }

    /// The controller's client, for this pass.
    pub fn client(&self) -> &Client {
        &self.0.client
    }

    /// Objects of a type in the object's namespace; if the object is cluster-scoped, in the client's default namespace.
    pub fn api<C: KnownResource>(&self) -> Api<C> {
        let api = self.0.client.api();
        match self.namespace() {
            Some(namespace) => api.namespace(namespace),
            None => api,
        }
    }

    /// The cache of a type that the controller reconciles, owns or watches.
    ///
    /// # Errors
    /// [`Error::Misuse`] if it does none of that.
    pub fn cached<C: Resource>(&self) -> Result<Reader<C>, Error> {
        let reader = self.0.readers.get(&TypeId::of::<C>()).and_then(|reader| reader.downcast_ref::<Reader<C>>());
        reader.cloned().ok_or_else(|| {
            let name = std::any::type_name::<C>();
            Error::Misuse(format!("the controller of {} has no cache of {name}", self.0.resource_type).into())
        })
    }

    /// A reference to the object for one that it owns and controls.
    ///
    /// # Errors
    /// [`EnsureError::UnknownOwner`] if the object has no uid.
    pub fn owner_reference(&self) -> Result<OwnerReference, EnsureError> {
        controller_reference(&*self.0.object, &self.0.resource_type)
    }

    /// Makes a child of the object as `child` says, and answers with it as stored.
    ///
    /// A child that is not there is created under the object; one that is there is patched where it differs: fields
    /// that `child` leaves out are left alone, maps are merged, lists are replaced, and nothing is sent if nothing differs. The
    /// name, and the namespace where there is one, are the object's unless `child` has its own. The status is left alone.
    ///
    /// # Errors
    /// A wait while the child is being deleted; a failure if an object of that name belongs to somebody else or the
    /// API server refuses; a terminal failure if the child cannot be one of this object, as in another namespace.
    pub async fn ensure<C: KnownResource>(&self, child: C) -> Result<C, Stop> {
        let child_type = C::resource_type();
        let wanted = request::to_json(&child)?;
        let desired =
            DesiredChild::new(wanted, &child_type, &*self.0.object, &self.0.resource_type).map_err(Stop::terminal)?;
        let api = self.0.client.api_for(child_type).scoped(desired.namespace());
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let live = api.get_opt(desired.name()).await?.map(Unstructured::into_value);
            let written = match desired.step(live.as_ref())? {
                EnsureStep::Nothing => return typed(&live.unwrap_or_default()),
                EnsureStep::Create(object) => api.create(&serde_json::from_value(object)?).send().await,
                EnsureStep::Patch(patch) => api.patch(desired.name(), Patch::from(patch)).send().await,
                EnsureStep::Wait => return Err(Wait::new("ChildDeleting").message(gone(&desired)).into()),
            };
            match written {
                Ok(object) => return typed(&object.into_value()),
                Err(error) if error.is_already_exists() || error.is_failed_guard() || error.is_not_found() => {
                    last = Some(error);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(last.map_or_else(|| Stop::failed("no attempt was made"), Stop::from))
    }
}

fn gone(desired: &DesiredChild) -> String {
    format!("{} is being deleted", desired.name())
}

fn typed<C: Resource>(object: &serde_json::Value) -> Result<C, Stop> {
    Ok(response::decode_object(&object.to_string())?)
}

/// How often a child is read and written anew when others write to it at the same time.
const ATTEMPTS: u32 = 5;
