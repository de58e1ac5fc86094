//! Creating, replacing, patching and deleting.

use std::fmt::Display;
use std::time::Duration;

use cloudcoil_core::{
    DeleteParams, Deleted, Error, FieldValidation, ListParams, Patch, PatchParams, Propagation, Resource, ResourceList,
    SaveStep, WriteParams, response,
};

use super::{Api, dual};

/// Options that every write has.
macro_rules! write_options {
    ($($params:ident).+) => {
        /// Check and answer as if it were done, but store nothing.
        pub fn dry_run(mut self) -> Self {
            self.$($params).+.dry_run = true;
            self
        }

        /// Who is writing, for field ownership.
        pub fn field_manager(mut self, name: impl Into<String>) -> Self {
            self.$($params).+.field_manager = Some(name.into());
            self
        }

        /// What becomes of fields that the type does not have.
        pub fn field_validation(mut self, validation: FieldValidation) -> Self {
            self.$($params).+.field_validation = Some(validation);
            self
        }
    };
}
pub(super) use write_options;

/// Options that every deletion has.
macro_rules! delete_options {
    () => {
        /// Check and answer as if it were done, but delete nothing.
        pub fn dry_run(mut self) -> Self {
            self.params.dry_run = true;
            self
        }

        /// What becomes of the objects that it owns.
        pub fn propagation(mut self, propagation: Propagation) -> Self {
            self.params.propagation = Some(propagation);
            self
        }

        /// How long it may take to end, in whole seconds; zero ends it at once.
        pub fn grace_period(mut self, period: Duration) -> Self {
            self.params.grace_period = Some(period);
            self
        }
    };
}
pub(super) use delete_options;

/// A creation; [`send`](Create::send) it to have the object as stored.
#[derive(Debug)]
#[must_use = "call `send`"]
pub struct Create<'a, K> {
    api: Api<K>,
    object: &'a K,
    params: WriteParams,
}

#[dual]
impl<'a, K: Resource> Create<'a, K> {
    pub(super) fn new(api: Api<K>, object: &'a K) -> Self {
        Self { api, object, params: WriteParams::default() }
    }

    write_options!(params);

    /// Sends it, and answers with the object as stored.
    ///
    /// # Errors
    /// As [`Api::get`]; one for which [`is_already_exists`](Error::is_already_exists) holds when there is one of that name.
    pub async fn send(self) -> Result<K, Error> {
        self.api.fetch(self.api.requests.create(self.object, &self.params)?).await
    }
}

/// A replacement; [`send`](Replace::send) it to have the object as stored.
#[derive(Debug)]
#[must_use = "call `send`"]
pub struct Replace<'a, K> {
    api: Api<K>,
    object: &'a K,
    subresource: Option<&'static str>,
    params: WriteParams,
}

#[dual]
impl<'a, K: Resource> Replace<'a, K> {
    pub(super) fn new(api: Api<K>, object: &'a K) -> Self {
        Self { api, object, subresource: None, params: WriteParams::default() }
    }

    /// Replace only this part of the object, such as `status`.
    pub fn subresource(mut self, subresource: &'static str) -> Self {
        self.subresource = Some(subresource);
        self
    }

    write_options!(params);

    /// Sends it, and answers with the object as stored.
    ///
    /// # Errors
    /// As [`Api::get`]; one for which [`is_conflict`](Error::is_conflict) holds when the stored object is newer.
    pub async fn send(self) -> Result<K, Error> {
        let Self { api, object, subresource, params } = self;
        api.fetch(api.requests.replace(object.name(), subresource, object, &params)?).await
    }
}

/// A creation or replacement; [`send`](Save::send) it to have the object as stored. See [`Api::save`].
#[derive(Debug)]
#[must_use = "call `send`"]
pub struct Save<'a, K> {
    api: Api<K>,
    object: &'a K,
    params: WriteParams,
}

#[dual]
impl<'a, K: Resource> Save<'a, K> {
    pub(super) fn new(api: Api<K>, object: &'a K) -> Self {
        Self { api, object, params: WriteParams::default() }
    }

    write_options!(params);

    /// Sends what is needed, and answers with the object as stored.
    ///
    /// # Errors
    /// As [`Api::get`]; one for which [`is_conflict`](Error::is_conflict) holds when the stored object is newer.
    pub async fn send(self) -> Result<K, Error> {
        let Self { api, object, params } = self;
        let mut object = object.clone();
        let step = match SaveStep::first(&object) {
            SaveStep::Fetch => {
                let stored = api.get(object.name()).send().await;
                SaveStep::fetched(&mut object, stored)?
            }
            step => step,
        };
        let request = match step {
            SaveStep::Create => api.requests.create(&object, &params)?,
            SaveStep::Replace | SaveStep::Fetch => api.requests.replace(object.name(), None, &object, &params)?,
        };
        api.fetch(request).await
    }
}

/// A patch; [`send`](PatchRequest::send) it to have the object as stored.
#[derive(Debug)]
#[must_use = "call `send`"]
pub struct PatchRequest<K> {
    api: Api<K>,
    name: String,
    patch: Result<Patch, Error>,
    subresource: Option<String>,
    params: PatchParams,
}

#[dual]
impl<K: Resource> PatchRequest<K> {
    pub(super) fn new(api: Api<K>, name: &str, patch: Result<Patch, Error>) -> Self {
        Self { api, name: name.to_owned(), patch, subresource: None, params: PatchParams::default() }
    }

    /// Patch only this part of the object, such as `status` or `scale`. The object answers, so for a subresource of another
    /// type take [`Api::subresource`].
    pub fn subresource(mut self, subresource: impl Into<String>) -> Self {
        self.subresource = Some(subresource.into());
        self
    }

    /// For an apply: take fields over from other managers where they conflict.
    pub fn force(mut self) -> Self {
        self.params.force = true;
        self
    }

    write_options!(params.write);

    /// Sends it, and answers with the object as stored.
    ///
    /// # Errors
    /// As [`Api::get`]; one for which [`is_conflict`](Error::is_conflict) holds when an apply meets fields of other managers.
    pub async fn send(self) -> Result<K, Error> {
        let Self { api, name, patch, subresource, params } = self;
        api.fetch(api.requests.patch(&name, subresource.as_deref(), &patch?, &params)?).await
    }
}

/// A deletion; [`send`](Delete::send) it to have the object, or the account that it is gone.
#[derive(Debug)]
#[must_use = "call `send`"]
pub struct Delete<K> {
    api: Api<K>,
    name: String,
    params: DeleteParams,
}

#[dual]
impl<K: Resource> Delete<K> {
    pub(super) fn new(api: Api<K>, name: &str) -> Self {
        Self { api, name: name.to_owned(), params: DeleteParams::default() }
    }

    delete_options!();

    /// Only if the object has this uid, not another of the same name.
    pub fn uid(mut self, uid: impl Into<String>) -> Self {
        self.params.uid = Some(uid.into());
        self
    }

    /// Only if the object has this resource version.
    pub fn resource_version(mut self, version: impl Into<String>) -> Self {
        self.params.resource_version = Some(version.into());
        self
    }

    /// Sends it, and answers with the object, or the account that it is gone.
    ///
    /// # Errors
    /// As [`Api::get`].
    pub async fn send(self) -> Result<Deleted<K>, Error> {
        let Self { api, name, params } = self;
        Deleted::decode(&api.client.request(api.requests.delete(&name, &params)?).await?)
    }
}

/// A deletion of many; [`send`](DeleteCollection::send) it to have those that are deleted, if the server lists them.
#[derive(Debug)]
#[must_use = "call `send`"]
pub struct DeleteCollection<K> {
    api: Api<K>,
    params: DeleteParams,
    which: ListParams,
}

#[dual]
impl<K: Resource> DeleteCollection<K> {
    pub(super) fn new(api: Api<K>) -> Self {
        Self { api, params: DeleteParams::default(), which: ListParams::default() }
    }

    /// Only objects whose labels match.
    pub fn labels(mut self, selector: impl Display) -> Self {
        self.which.label_selector = Some(selector.to_string());
        self
    }

    /// Only objects whose fields match.
    pub fn fields(mut self, selector: impl Display) -> Self {
        self.which.field_selector = Some(selector.to_string());
        self
    }

    delete_options!();

    /// Sends it, and answers with those that are deleted, if the server lists them.
    ///
    /// # Errors
    /// As [`Api::get`].
    pub async fn send(self) -> Result<ResourceList<K>, Error> {
        let request = self.api.requests.delete_collection(&self.params, &self.which)?;
        let answer = self.api.client.request(request).await?;
        match response::is_status(&answer)? {
            true => Ok(ResourceList::default()),
            false => ResourceList::decode(&answer),
        }
    }
}
