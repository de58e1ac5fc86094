//! Objects, and lists of them: whole, by page and as iterators.

use std::fmt::Display;
use std::marker::PhantomData;
use std::time::Duration;

use cloudcoil_core::{
    Error, ListParams, ListVersion, Pages, Resource, ResourceList, Table, Unstructured, View, WholeList, response,
};

use crate::Api;

/// A read of one object.
#[derive(Debug)]
#[must_use = "nothing is sent until `send` is called"]
pub struct Get<K> {
    api: Api<K>,
    name: String,
    version: ListVersion,
}

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
    /// [`Error::Api`] for which [`is_not_found`](Error::is_not_found) holds when there is none. Apart from that, as for every
    /// verb: [`Error::Api`], [`Error::Body`], [`Error::Network`], [`Error::Decode`], [`Error::TimedOut`], and
    /// [`Error::Misuse`] for a name that cannot be one, or where a namespace has to be chosen.
    pub fn send(self) -> Result<K, Error> {
        self.api.fetch(self.api.requests.get_at(&self.name, &self.version)?)
    }

    /// Reads the object's metadata alone.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn metadata(self) -> Result<Unstructured, Error> {
        let requests = self.api.requests.viewed(View::Metadata);
        response::decode(&self.api.client.request(requests.get_at(&self.name, &self.version)?)?)
    }

    /// Reads the object as the server prints it.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn table(self) -> Result<Table, Error> {
        let requests = self.api.requests.viewed(View::Table);
        Table::decode(&self.api.client.request(requests.get_at(&self.name, &self.version)?)?)
    }
}

/// A list to be read: loop over its objects, take it whole with [`send`](List::send), or one [`page`](List::page) of it.
///
/// In a loop the objects are read page by page, as they are asked for. One that does not fit its type is an error among them,
/// and the loop goes on; any other error ends it. How a token that expires is dealt with is said at [`Pages`].
#[derive(Debug)]
#[must_use = "loop over it, or call `send` or `page`"]
pub struct List<K> {
    api: Api<K>,
    params: ListParams,
}

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

    /// The most objects in one page. A loop asks for pages of 500 unless told otherwise; the other ways, for all at once.
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
    /// As [`Get::send`]; one for which [`is_expired`](Error::is_expired) holds when the continue token is too old.
    pub fn page(&self) -> Result<ResourceList<K>, Error> {
        page(&self.api, &self.params)
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
    pub fn table(self) -> Result<Table, Error> {
        let requests = self.api.requests.clone().viewed(View::Table);
        Table::decode(&self.api.client.request(requests.list(&self.params)?)?)
    }

    /// Reads all pages. Fails if one object does not fit its type: use a loop or [`page`](List::page) to have the others.
    ///
    /// # Errors
    /// As [`page`](Self::page), but for a token that expires: then everything is read anew at once.
    pub fn send(self) -> Result<ResourceList<K>, Error> {
        let mut whole = WholeList::new(self.params);
        let list = loop {
            if let Some(result) = whole.heard(page(&self.api, whole.next())) {
                break result?;
            }
        };
        match list.errors.first() {
            Some(error) => Err(error.clone().into()),
            None => Ok(list),
        }
    }
}

impl<K: Resource> IntoIterator for List<K> {
    type Item = Result<K, Error>;
    type IntoIter = Objects<K>;

    fn into_iter(self) -> Objects<K> {
        Objects {
            api: self.api,
            pages: Pages::new(self.params),
            objects: Vec::new().into_iter(),
            errors: Vec::new().into_iter(),
        }
    }
}

/// The objects of a list, page after page; see [`List`].
#[derive(Debug)]
#[must_use = "iterators do nothing unless advanced"]
pub struct Objects<K> {
    api: Api<K>,
    pages: Pages,
    objects: std::vec::IntoIter<K>,
    errors: std::vec::IntoIter<cloudcoil_core::DecodeError>,
}

impl<K: Resource> Iterator for Objects<K> {
    type Item = Result<K, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(object) = self.objects.next() {
                return Some(Ok(object));
            }
            if let Some(error) = self.errors.next() {
                return Some(Err(error.into()));
            }
            let read = page(&self.api, self.pages.next()?);
            match self.pages.heard(read) {
                Ok(page) => {
                    self.objects = page.items.into_iter();
                    self.errors = page.errors.into_iter();
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

fn page<K: Resource>(api: &Api<K>, params: &ListParams) -> Result<ResourceList<K>, Error> {
    let mut list = ResourceList::decode(&api.client.request(api.requests.list(params)?)?)?;
    let resource_type = api.resource_type();
    for object in &mut list.items {
        let object: &mut K = object;
        object.fill_type(&resource_type.api_version(), &resource_type.kind);
    }
    Ok(list)
}
