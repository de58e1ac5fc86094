//! The verbs of one type of object.

mod logs;
mod read;
mod review;
mod subresource;
mod tables;
mod wait;
mod watch;
mod write;

use std::marker::PhantomData;

use bytes::Bytes;
use cloudcoil_core::{Error, KnownResource, Patch, Requests, Resource, ResourceType, request, response};
use http::Request;

use super::world::dual;
use super::{Client, world};

pub use logs::Logs;
pub(crate) use logs::{Lines, Reading};
pub(crate) use read::Listing;
pub use read::{Get, List};
pub use subresource::{Evict, SetReplicas, Subresource, SubresourceWrite};
pub(crate) use tables::Tabulating;
pub use wait::WaitRequest;
pub use watch::Watch;
pub(crate) use watch::Watching;
pub use write::{Create, Delete, DeleteCollection, PatchRequest, Replace, Save};

/// The objects of one type, in one namespace or in all. Cheap to clone.
///
/// Most verbs are builders: set what they need, then [`send`](Create::send) them.
///
/// ```no_run
/// use cloudcoil_runtime::{Client, Error, Patch, Propagation};
/// use cloudcoil_core::k8s_openapi::api::core::v1::ConfigMap;
/// use serde_json::json;
///
/// async fn verbs(client: Client) -> Result<(), Error> {
///     let maps = client.api::<ConfigMap>().namespace("team");
///     let map = maps.get("settings").send().await?;
///     let patch = Patch::Merge(json!({"data": {"mode": "fast"}}));
///     maps.patch("settings", patch).field_manager("me").dry_run().send().await?;
///     maps.replace(&map).send().await?;
///     maps.delete("settings").propagation(Propagation::Foreground).send().await?;
///     Ok(())
/// }
/// ```
#[dual]
#[derive(Debug)]
pub struct Api<K> {
    client: Client,
    requests: Requests,
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Api<K> {
    fn clone(&self) -> Self {
        Self { client: self.client.clone(), requests: self.requests.clone(), kind: PhantomData }
    }
}

#[dual]
impl<K: Resource> Api<K> {
    pub(crate) fn new(client: Client, resource_type: ResourceType) -> Self {
        let requests = Requests::new(resource_type, Some(client.default_namespace()));
        Self { client, requests, kind: PhantomData }
    }

    /// The same type in another namespace; nothing changes for a type that has none.
    #[must_use]
    pub fn namespace(self, namespace: &str) -> Self {
        self.scoped(Some(namespace))
    }

    /// The same type in all namespaces: for lists and watches, and for writes of objects that name their namespace.
    #[must_use]
    pub fn all_namespaces(self) -> Self {
        self.scoped(None)
    }

    pub(crate) fn scoped(self, namespace: Option<&str>) -> Self {
        let requests = Requests::new(self.requests.resource_type().clone(), namespace);
        Self { requests, ..self }
    }

    /// The client that the requests go through.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// The type of the objects.
    pub const fn resource_type(&self) -> &ResourceType {
        self.requests.resource_type()
    }

    /// The requests that the verbs send, as data.
    pub const fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Reads an object; a builder to be sent.
    ///
    /// # Errors
    /// [`Error::Api`] for which [`is_not_found`](Error::is_not_found) holds when there is none. Apart from that, as for every
    /// verb: [`Error::Api`], [`Error::Body`], [`Error::Network`], [`Error::Decode`], [`Error::TimedOut`], and
    /// [`Error::Misuse`] for a name that cannot be one, or where a namespace has to be chosen.
    pub fn get(&self, name: &str) -> Get<K> {
        Get::new(self.clone(), name)
    }

    /// Reads an object, if there is one of that name.
    ///
    /// # Errors
    /// As [`get`](Self::get), but for an object that does not exist. A type that the server does not serve is an error.
    pub async fn get_opt(&self, name: &str) -> Result<Option<K>, Error> {
        match self.get(name).send().await {
            // A path that is not served is 404 too.
            Err(Error::Api(status)) if status.is_not_found() && !status.is_not_served() => Ok(None),
            result => result.map(Some),
        }
    }

    /// Reads the objects: [whole](List::send), [page](List::page) by page, or [one by one](List::stream).
    pub fn list(&self) -> List<K> {
        List::new(self.clone())
    }

    /// Follows the objects: what exists, and then every change.
    ///
    /// ```no_run
    /// use cloudcoil_runtime::{Client, Error, Resource, WatchEvent};
    /// use cloudcoil_core::k8s_openapi::api::core::v1::Pod;
    /// use futures_util::TryStreamExt;
    ///
    /// async fn follow(client: Client) -> Result<(), Error> {
    ///     let mut pods = client.api::<Pod>().watch().labels("app=web").stream();
    ///     while let Some(event) = pods.try_next().await? {
    ///         match event {
    ///             WatchEvent::Listed(pod) | WatchEvent::Applied(pod) => println!("{} is there", pod.name()),
    ///             WatchEvent::Deleted(pod) => println!("{} is gone", pod.name()),
    ///             WatchEvent::Restarted | WatchEvent::Synced => {}
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn watch(&self) -> Watch<K> {
        Watch::new(self.clone())
    }

    /// Creates an object. Its name may be left to the server by `generateName`.
    pub fn create<'a>(&self, object: &'a K) -> Create<'a, K> {
        Create::new(self.for_object(object), object)
    }

    /// Replaces an object by one of the same name. If it carries a resource version, only while the stored one has the
    /// same; otherwise the answer is an error for which [`is_conflict`](Error::is_conflict) holds.
    pub fn replace<'a>(&self, object: &'a K) -> Replace<'a, K> {
        Replace::new(self.for_object(object), object)
    }

    /// Creates an object, or replaces the one that is stored: created when it has no name yet or does not exist, replaced if
    /// nobody has changed it since it was read, or since now if it carries no resource version.
    pub fn save<'a>(&self, object: &'a K) -> Save<'a, K> {
        Save::new(self.for_object(object), object)
    }

    /// Replaces an object's status and nothing else.
    pub fn replace_status<'a>(&self, object: &'a K) -> Replace<'a, K> {
        self.replace(object).subresource("status")
    }

    /// Patches an object.
    pub fn patch(&self, name: &str, patch: Patch) -> PatchRequest<K> {
        PatchRequest::new(self.clone(), name, Ok(patch))
    }

    /// Patches an object's status and nothing else.
    pub fn patch_status(&self, name: &str, patch: Patch) -> PatchRequest<K> {
        self.patch(name, patch).subresource("status")
    }

    /// Makes `field_manager` own the fields that `object` sets, and creates the object if there is none.
    ///
    /// An object that was read can be applied as it is: `metadata.managedFields` are not sent, and neither are fields that
    /// are `null`. To apply a `null`, [`patch`](Self::patch) with [`Patch::Apply`].
    ///
    /// See <https://kubernetes.io/docs/reference/using-api/server-side-apply/>.
    pub fn apply(&self, field_manager: &str, object: &K) -> PatchRequest<K> {
        let patch = request::to_apply(object).map(Patch::Apply);
        PatchRequest::new(self.for_object(object), object.name(), patch).field_manager(field_manager)
    }

    /// Deletes an object.
    pub fn delete(&self, name: &str) -> Delete<K> {
        Delete::new(self.clone(), name)
    }

    /// Deletes an object that was read: this very one, and not another that has taken its name.
    pub fn remove(&self, object: &K) -> Delete<K> {
        let delete = Delete::new(self.for_object(object), object.name());
        match object.uid() {
            Some(uid) => delete.uid(uid),
            None => delete,
        }
    }

    /// Deletes all objects, or those that the builder's selectors match.
    pub fn delete_collection(&self) -> DeleteCollection<K> {
        DeleteCollection::new(self.clone())
    }

    /// With no namespace chosen, the one that the object names.
    fn for_object(&self, object: &K) -> Self {
        match (self.requests.namespace(), object.namespace()) {
            (None, Some(namespace)) => self.clone().namespace(namespace),
            _ => self.clone(),
        }
    }

    /// Sends a request that an object answers.
    async fn fetch(&self, request: Request<Bytes>) -> Result<K, Error> {
        let mut object: K = response::decode(&self.client.request(request).await?)?;
        object.fill_type(&self.resource_type().api_version(), &self.resource_type().kind);
        Ok(object)
    }
}

impl<K: KnownResource> From<Client> for Api<K> {
    fn from(client: Client) -> Self {
        client.api()
    }
}

impl<K: KnownResource> From<&Client> for Api<K> {
    fn from(client: &Client) -> Self {
        client.api()
    }
}
