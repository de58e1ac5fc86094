//! Parts of objects that have types of their own.

use std::marker::PhantomData;
use std::time::Duration;

use cloudcoil_core::k8s_openapi::api::autoscaling::v1::Scale;
use cloudcoil_core::{
    DeleteParams, Error, Evicted, FieldValidation, Patch, PatchParams, Propagation, Requests, Resource, WriteParams,
    request, response,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::write::{delete_options, write_options};
use super::{Api, Client, dual};

#[dual]
impl<K: Resource> Api<K> {
    /// A part of an object that is read and written on its own, as a `T`: `scale`, `token`, `ephemeralcontainers` and so on.
    ///
    /// ```no_run
    /// use cloudcoil_runtime::{Client, Error};
    /// use cloudcoil_core::k8s_openapi::api::core::v1::Pod;
    ///
    /// async fn debugged(client: Client) -> Result<bool, Error> {
    ///     let pods = client.api::<Pod>();
    ///     let pod = pods.subresource::<Pod>("web-0", "ephemeralcontainers").get().await?;
    ///     Ok(pod.spec.is_some_and(|spec| spec.ephemeral_containers.is_some()))
    /// }
    /// ```
    pub fn subresource<T>(&self, name: &str, subresource: impl Into<String>) -> Subresource<T> {
        Subresource {
            client: self.client.clone(),
            requests: self.requests.clone(),
            name: name.to_owned(),
            subresource: subresource.into(),
            kind: PhantomData,
        }
    }

    /// The `scale` of an object, whatever its type: how many replicas it has, and is to have.
    pub fn scale(&self, name: &str) -> Subresource<Scale> {
        self.subresource(name, "scale")
    }

    /// The object as far as its `status` can be read and written.
    pub fn status(&self, name: &str) -> Subresource<K> {
        self.subresource(name, "status")
    }

    /// Sets the number of replicas and nothing else; the object as it is then answers.
    ///
    /// ```no_run
    /// use cloudcoil_runtime::{Client, Error};
    /// use cloudcoil_core::k8s_openapi::api::apps::v1::Deployment;
    ///
    /// async fn double(client: Client) -> Result<(), Error> {
    ///     let deployments = client.api::<Deployment>();
    ///     let replicas = deployments.scale("web").get().await?.spec.and_then(|spec| spec.replicas).unwrap_or(1);
    ///     let deployment = deployments.set_replicas("web", u32::try_from(replicas).unwrap_or(1) * 2).send().await?;
    ///     println!("{} now wants {:?}", "web", deployment.spec.replicas);
    ///     Ok(())
    /// }
    /// ```
    pub fn set_replicas(&self, name: &str, replicas: u32) -> SetReplicas<K> {
        SetReplicas { api: self.clone(), name: name.to_owned(), replicas, params: WriteParams::default() }
    }

    /// Evicts a pod: deletes it, unless a disruption budget is against it, which is an answer and not an error.
    ///
    /// ```no_run
    /// use cloudcoil_runtime::{Client, Error, Evicted};
    /// use cloudcoil_core::k8s_openapi::api::core::v1::Pod;
    ///
    /// async fn evict(client: Client) -> Result<(), Error> {
    ///     match client.api::<Pod>().evict("web-0").send().await? {
    ///         Evicted::Accepted(_) => println!("it goes"),
    ///         Evicted::Refused(refusal) => println!("not now: {refusal}"),
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn evict(&self, name: &str) -> Evict {
        let (client, requests) = (self.client.clone(), self.requests.clone());
        Evict { client, requests, name: name.to_owned(), params: DeleteParams::default() }
    }
}

/// A part of an object; see [`Api::subresource`].
#[derive(Debug)]
#[must_use = "nothing is sent until a verb is called"]
pub struct Subresource<T> {
    client: Client,
    requests: Requests,
    name: String,
    subresource: String,
    kind: PhantomData<fn() -> T>,
}

#[dual]
impl<T: Serialize + DeserializeOwned> Subresource<T> {
    /// Reads it.
    ///
    /// # Errors
    /// As [`Api::get`].
    pub async fn get(&self) -> Result<T, Error> {
        let request = self.requests.get_subresource(&self.name, &self.subresource)?;
        response::decode(&self.client.request(request).await?)
    }

    /// Creates one, as a `token`; a body of another type than the answer's is possible.
    pub fn create(self, body: &impl Serialize) -> SubresourceWrite<T> {
        let action = request::to_json(body).map(Action::Create);
        self.write(action)
    }

    /// Replaces it. If the body carries a resource version, only while the stored object has the same.
    pub fn replace(self, body: &T) -> SubresourceWrite<T> {
        let action = request::to_json(body).map(Action::Replace);
        self.write(action)
    }

    /// Patches it.
    pub fn patch(self, patch: Patch) -> SubresourceWrite<T> {
        self.write(Ok(Action::Patch(patch)))
    }

    /// Makes `field_manager` own the fields that `body` sets.
    pub fn apply(self, field_manager: &str, body: &T) -> SubresourceWrite<T> {
        let patch = request::to_apply(body).map(|body| Action::Patch(Patch::Apply(body)));
        self.write(patch).field_manager(field_manager)
    }

    fn write(self, action: Result<Action, Error>) -> SubresourceWrite<T> {
        SubresourceWrite { target: self, action, params: PatchParams::default() }
    }
}

/// A write of a part of an object; [`send`](SubresourceWrite::send) it to have what the server makes of it.
#[derive(Debug)]
#[must_use = "call `send`"]
pub struct SubresourceWrite<T> {
    target: Subresource<T>,
    action: Result<Action, Error>,
    params: PatchParams,
}

#[derive(Debug)]
enum Action {
    Create(Value),
    Replace(Value),
    Patch(Patch),
}

#[dual]
impl<T> SubresourceWrite<T> {
    /// For an apply: take fields over from other managers where they conflict.
    pub fn force(mut self) -> Self {
        self.params.force = true;
        self
    }

    write_options!(params.write);
}

#[dual]
impl<T: DeserializeOwned> SubresourceWrite<T> {
    /// Sends it, and answers with what the server makes of it.
    ///
    /// # Errors
    /// As [`Api::get`].
    pub async fn send(self) -> Result<T, Error> {
        let Self { target: Subresource { client, requests, name, subresource, .. }, action, params } = self;
        let write = &params.write;
        let request = match action? {
            Action::Create(body) => requests.create_subresource(&name, &subresource, &body, write)?,
            Action::Replace(body) => requests.replace(&name, Some(&subresource), &body, write)?,
            Action::Patch(patch) => requests.patch(&name, Some(&subresource), &patch, &params)?,
        };
        response::decode(&client.request(request).await?)
    }
}

/// A change of the number of replicas; [`send`](SetReplicas::send) it to have the object as it is then. See [`Api::set_replicas`].
#[derive(Debug)]
#[must_use = "call `send`"]
pub struct SetReplicas<K> {
    api: Api<K>,
    name: String,
    replicas: u32,
    params: WriteParams,
}

#[dual]
impl<K: Resource> SetReplicas<K> {
    write_options!(params);

    /// Sends it, and answers with the object as it is then.
    ///
    /// # Errors
    /// As [`Api::get`].
    pub async fn send(self) -> Result<K, Error> {
        let Self { api, name, replicas, params } = self;
        let request = api.requests.set_replicas(&name, replicas, &params)?;
        response::check(&api.client.request(request).await?)?;
        api.get(&name).send().await
    }
}

/// An eviction; [`send`](Evict::send) it to learn whether the pod goes. See [`Api::evict`].
#[derive(Debug)]
#[must_use = "call `send`"]
pub struct Evict {
    client: Client,
    requests: Requests,
    name: String,
    params: DeleteParams,
}

#[dual]
impl Evict {
    delete_options!();

    /// Only if the pod has this uid, not another of the same name.
    pub fn uid(mut self, uid: impl Into<String>) -> Self {
        self.params.uid = Some(uid.into());
        self
    }

    /// Sends it, and answers whether the pod goes.
    ///
    /// # Errors
    /// As [`Api::get`]; a budget that is against it is none.
    pub async fn send(self) -> Result<Evicted, Error> {
        let Self { client, requests, name, params } = self;
        Evicted::decode(&client.request(requests.evict(&name, &params)?).await?)
    }
}
