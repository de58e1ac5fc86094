//! Waiting until an object is what it should be.

use std::sync::Arc;
use std::time::Duration;

use cloudcoil_core::{Error, Predicate, Resource, WaitFor};

use super::{Api, dual};
use crate::plain::Awaited;

#[dual]
impl<K: Resource> Api<K> {
    /// Waits until an object, which need not exist yet, is what it should be: add what is waited for, then
    /// [`send`](WaitRequest::send) it to learn which came first.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use cloudcoil_runtime::{Client, Error};
    /// use cloudcoil_core::k8s_openapi::api::core::v1::Pod;
    ///
    /// async fn ready(client: Client) -> Result<bool, Error> {
    ///     let wait = client.api::<Pod>().wait_for("web-0").condition("Ready").deleted();
    ///     let awaited = wait.timeout(Duration::from_secs(60)).send().await?;
    ///     Ok(awaited.predicate == "condition=Ready")
    /// }
    /// ```
    pub fn wait_for(&self, name: &str) -> WaitRequest<K> {
        WaitRequest { api: self.clone(), name: name.to_owned(), predicates: Vec::new(), timeout: None, uid: None }
    }
}

/// A wait for an object; see [`Api::wait_for`]. Of several things that are waited for the first that holds is the answer, in
/// the order in which they were added.
#[derive(Debug)]
#[must_use = "nothing is waited for until it is sent"]
pub struct WaitRequest<K> {
    api: Api<K>,
    name: String,
    predicates: Vec<(String, Predicate)>,
    timeout: Option<Duration>,
    uid: Option<String>,
}

#[dual]
impl<K: Resource> WaitRequest<K> {
    /// Until there is an object of the name; called `create`.
    pub fn exists(self) -> Self {
        self.until(Predicate::Exists)
    }

    /// Until there is none, or another in its place; called `delete`.
    pub fn deleted(self) -> Self {
        self.until(Predicate::Deleted)
    }

    /// Until a condition is `True`; called `condition=`, and the condition's type.
    pub fn condition(self, kind: &str) -> Self {
        self.until(Predicate::condition(kind))
    }

    /// Until this holds; called as it is printed.
    pub fn until(self, predicate: Predicate) -> Self {
        let name = predicate.to_string();
        self.named(name, predicate)
    }

    /// Until this holds; called `name`.
    pub fn named(mut self, name: impl Into<String>, predicate: Predicate) -> Self {
        self.predicates.push((name.into(), predicate));
        self
    }

    /// Until a function says so of the object; called `name`. An object that does not fit its type ends the wait.
    pub fn when(self, name: impl Into<String>, holds: impl Fn(&K) -> bool + Send + Sync + 'static) -> Self {
        let holds = Predicate::Holds(Arc::new(move |object| Ok(holds(&object.decode::<K>()?))));
        self.named(name, holds)
    }

    /// Gives up after this time, with [`Error::TimedOut`]; zero looks once. Without it the wait has no limit.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The object that is meant: another of the same name counts as its deletion.
    pub fn uid(mut self, uid: impl Into<String>) -> Self {
        self.uid = Some(uid.into());
        self
    }

    /// Waits, and answers what came first.
    ///
    /// # Errors
    /// [`Error::TimedOut`], and as [`Api::get`] what will hardly pass.
    pub async fn send(self) -> Result<Awaited<K>, Error> {
        let client = &self.api.client;
        let requests = self.api.requests.clone();
        let mut wait = WaitFor::new(requests, &self.name, 0, client.seed::<WaitFor>())?.timeout(self.timeout);
        for (name, predicate) in self.predicates {
            wait = wait.when(name, predicate);
        }
        if let Some(uid) = self.uid {
            wait = wait.uid(uid);
        }
        Ok(client.finish(wait, Some).await??.try_into()?)
    }
}
