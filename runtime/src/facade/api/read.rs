//! Objects, and lists of them: whole, by page and one by one.

use std::fmt::Display;
use std::marker::PhantomData;
use std::time::Duration;
use std::vec;

use cloudcoil_core::{
    DecodeError, Error, ListParams, ListVersion, Pages, Resource, ResourceList, Table, Unstructured, View, WholeList,
    response,
};

use super::world::ListStream;
use super::{Api, dual};

/// A read of one object; [`send`](Get::send) it to have the object.
#[derive(Debug)]
#[must_use = "call `send`"]
pub struct Get<K> {
    api: Api<K>,
    name: String,
    version: ListVersion,
}

#[dual]
impl<K: Resource> Get<K> {
    pub(super) fn new(api: Api<K>, name: &str) -> Self {
        Self { api, name: name.to_owned(), version: ListVersion::MostRecent }
    }

    /// How new the object must be; as new as can be, unless told otherwise. It cannot be read at an exact version.
    pub fn version(self, version: ListVersion) -> Self {
        Self { version, ..self }
    }

    /// Reads the object.
    ///
    /// # Errors
    /// As [`Api::get`].
    pub async fn send(self) -> Result<K, Error> {
        self.api.fetch(self.api.requests.get_at(&self.name, &self.version)?).await
    }

    /// Reads the object's metadata alone.
    ///
    /// # Errors
    /// As [`Api::get`].
    pub async fn metadata(self) -> Result<Unstructured, Error> {
        let requests = self.api.requests.viewed(View::Metadata);
        response::decode(&self.api.client.request(requests.get_at(&self.name, &self.version)?).await?)
    }

    /// Reads the object as the server prints it.
    ///
    /// # Errors
    /// As [`Api::get`].
    pub async fn table(self) -> Result<Table, Error> {
        let requests = self.api.requests.viewed(View::Table);
        Table::decode(&self.api.client.request(requests.get_at(&self.name, &self.version)?).await?)
    }
}

/// A list to be read: [`send`](List::send) for it whole, take one [`page`](List::page), or read it as a [`stream`](List::stream).
#[derive(Debug)]
#[must_use = "call `send`, `page` or `stream`"]
pub struct List<K> {
    pub(super) api: Api<K>,
    pub(super) params: ListParams,
}

#[dual]
impl<K: Resource> List<K> {
    pub(super) fn new(api: Api<K>) -> Self {
        Self { api, params: ListParams::default() }
    }

    /// Only objects in this namespace.
    pub fn namespace(self, namespace: &str) -> Self {
        Self { api: self.api.namespace(namespace), ..self }
    }

    /// Objects in all namespaces.
    pub fn all_namespaces(self) -> Self {
        Self { api: self.api.all_namespaces(), ..self }
    }

    /// Only objects whose labels match: a selector as `kubectl -l` takes it, or a [`Selector`](cloudcoil_core::Selector).
    pub fn labels(mut self, selector: impl Display) -> Self {
        self.params.label_selector = Some(selector.to_string());
        self
    }

    /// Only objects whose fields match: a selector as `kubectl --field-selector` takes it, or a
    /// [`FieldSelector`](cloudcoil_core::FieldSelector).
    pub fn fields(mut self, selector: impl Display) -> Self {
        self.params.field_selector = Some(selector.to_string());
        self
    }

    /// The most objects in one page. A stream asks for pages of 500 unless told otherwise; the other ways, for all at once.
    pub fn limit(mut self, limit: u32) -> Self {
        self.params.limit = Some(limit);
        self
    }

    /// Start with the page that this token names.
    pub fn continue_from(mut self, token: impl Into<String>) -> Self {
        self.params.continue_token = Some(token.into());
        self
    }

    /// How new the list must be; as new as can be, unless told otherwise.
    pub fn version(mut self, version: ListVersion) -> Self {
        self.params.version = version;
        self
    }

    /// How long the server may take over one page, in whole seconds.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.params.timeout = Some(timeout);
        self
    }

    /// Reads one page. Objects that do not fit their type are in its [`errors`](ResourceList::errors).
    ///
    /// # Errors
    /// As [`Api::get`]; one for which [`is_expired`](Error::is_expired) holds when the continue token is too old.
    pub async fn page(&self) -> Result<ResourceList<K>, Error> {
        page(&self.api, &self.params).await
    }

    /// Reads the objects page by page, as they are asked for. One that does not fit its type is an error among them, and
    /// the stream goes on; any other error ends it.
    ///
    /// If the token of the next page is too old by the time it is asked for, the server's offer to go on from the newest
    /// version is taken: objects that were created or deleted since the first page may then be missed or reported.
    pub fn stream(self) -> ListStream<K> {
        let Self { api, params } = self;
        let (objects, errors) = (Vec::new().into_iter(), Vec::new().into_iter());
        ListStream::new(Listing { api, pages: Pages::new(params), objects, errors })
    }

    /// Only the metadata of the objects, as `PartialObjectMetadata`.
    pub fn metadata(self) -> List<Unstructured> {
        let Api { client, requests, .. } = self.api;
        let api = Api { client, requests: requests.viewed(View::Metadata), kind: PhantomData };
        List { api, params: self.params }
    }

    /// Reads the objects as the server prints them: all pages, unless there is a [`limit`](Self::limit), which makes it the
    /// one page that its [token](Table::continue_token) goes on from.
    ///
    /// # Errors
    /// As [`page`](Self::page).
    pub async fn table(self) -> Result<Table, Error> {
        let requests = self.api.requests.clone().viewed(View::Table);
        Table::decode(&self.api.client.request(requests.list(&self.params)?).await?)
    }

    /// Reads all pages, one after the other. If a token expires meanwhile, everything is read anew at once.
    ///
    /// # Errors
    /// As [`page`](Self::page), and [`Error::Decode`] if one object does not fit its type: use [`page`](Self::page) or
    /// [`stream`](Self::stream) to have the others.
    pub async fn send(self) -> Result<ResourceList<K>, Error> {
        let mut whole = WholeList::new(self.params);
        let list = loop {
            let read = page(&self.api, whole.next()).await;
            if let Some(result) = whole.heard(read) {
                break result?;
            }
        };
        match list.errors.first() {
            Some(error) => Err(error.clone().into()),
            None => Ok(list),
        }
    }
}

/// The objects of a list, page after page.
pub(crate) struct Listing<K> {
    api: Api<K>,
    pages: Pages,
    objects: vec::IntoIter<K>,
    errors: vec::IntoIter<DecodeError>,
}

#[dual]
impl<K: Resource> Listing<K> {
    pub(crate) async fn next(&mut self) -> Option<Result<K, Error>> {
        loop {
            if let Some(object) = self.objects.next() {
                return Some(Ok(object));
            }
            if let Some(error) = self.errors.next() {
                return Some(Err(error.into()));
            }
            let read = page(&self.api, self.pages.next()?).await;
            match self.pages.heard(read) {
                Ok(page) => (self.objects, self.errors) = (page.items.into_iter(), page.errors.into_iter()),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

#[dual]
async fn page<K: Resource>(api: &Api<K>, params: &ListParams) -> Result<ResourceList<K>, Error> {
    let mut list = ResourceList::decode(&api.client.request(api.requests.list(params)?).await?)?;
    let resource_type = api.resource_type();
    for object in &mut list.items {
        let object: &mut K = object;
        object.fill_type(&resource_type.api_version(), &resource_type.kind);
    }
    Ok(list)
}
