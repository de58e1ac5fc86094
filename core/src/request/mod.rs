//! Requests to the API server, as data.

mod params;
mod subresource;
pub(crate) mod uri;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, header};
use serde::Serialize;
use serde_json::Value;

use crate::error::Error;
use crate::resource::ResourceType;

pub use params::{
    DeleteParams, FieldValidation, ListParams, ListVersion, Patch, PatchParams, Propagation, View, WatchParams,
    WriteParams,
};

use uri::{Uri, valid};

/// Builds the requests for one type of object in one namespace, or in all.
///
/// Every request is relative: its URI is a path and query. See
/// <https://kubernetes.io/docs/reference/using-api/api-concepts/>.
///
/// ```
/// use cloudcoil_core::{KnownResource, Requests};
/// use cloudcoil_core::k8s_openapi::api::core::v1::Pod;
///
/// let pods = Requests::new(Pod::resource_type(), Some("default"));
/// assert_eq!(pods.get("web-0")?.uri(), "/api/v1/namespaces/default/pods/web-0");
/// # Ok::<(), cloudcoil_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requests {
    resource_type: ResourceType,
    namespace: Option<String>,
    view: View,
}

impl Requests {
    /// Requests for `resource_type` in `namespace`; with `None`, or an empty one, in all namespaces.
    ///
    /// A cluster-scoped type has no namespace, so one that is given is not used.
    pub fn new(resource_type: ResourceType, namespace: Option<&str>) -> Self {
        let namespaced = resource_type.is_namespaced();
        let namespace = namespace.filter(|ns| namespaced && !ns.is_empty()).map(ToOwned::to_owned);
        Self { resource_type, namespace, view: View::Object }
    }

    /// The same, with reads that ask for `view` of the objects in place of the objects.
    #[must_use]
    pub fn viewed(self, view: View) -> Self {
        Self { view, ..self }
    }

    /// What reads ask for.
    pub const fn view(&self) -> View {
        self.view
    }

    /// The type of object.
    pub const fn resource_type(&self) -> &ResourceType {
        &self.resource_type
    }

    /// The namespace; `None` means all, or that the type has none.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Reads one object.
    ///
    /// # Errors
    /// [`Error::Misuse`], as for every request, when a name cannot be part of a path, or when a namespaced object is
    /// asked for without a namespace.
    pub fn get(&self, name: &str) -> Result<Request<Bytes>, Error> {
        self.read(self.object_path(name, None)?, false)
    }

    /// Reads one object no older than a version.
    ///
    /// # Errors
    /// As [`get`](Self::get); [`Error::Misuse`] for [`ListVersion::Exact`], which only lists can have.
    pub fn get_at(&self, name: &str, version: &ListVersion) -> Result<Request<Bytes>, Error> {
        let mut query = self.object_path(name, None)?.query();
        match version {
            ListVersion::MostRecent => {}
            ListVersion::Any => query.text("resourceVersion", Some("0")),
            ListVersion::NotOlderThan(version) => query.text("resourceVersion", Some(version)),
            ListVersion::Exact(_) => return Err(Error::misuse("a single object cannot be read at an exact version")),
        }
        self.read(query.finish(), false)
    }

    /// Reads a subresource of one object, such as `status` or `scale`.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_subresource(&self, name: &str, subresource: &str) -> Result<Request<Bytes>, Error> {
        self.read(self.object_path(name, Some(subresource))?, false)
    }

    /// Reads one page of a list.
    ///
    /// # Errors
    /// [`Error::Misuse`] when the parameters exclude each other.
    pub fn list(&self, params: &ListParams) -> Result<Request<Bytes>, Error> {
        let mut query = self.collection_path()?.query();
        params.write(&mut query)?;
        self.read(query.finish(), true)
    }

    /// Watches for changes.
    ///
    /// # Errors
    /// [`Error::Misuse`] when the parameters exclude each other.
    pub fn watch(&self, params: &WatchParams) -> Result<Request<Bytes>, Error> {
        let mut query = self.collection_path()?.query();
        params.write(&mut query);
        self.read(query.finish(), false)
    }

    /// Creates an object.
    ///
    /// # Errors
    /// [`Error::Misuse`] when the object cannot be written as JSON.
    pub fn create(&self, object: &impl Serialize, params: &WriteParams) -> Result<Request<Bytes>, Error> {
        let mut query = self.writable_collection()?.query();
        params.write(&mut query);
        self.write(Method::POST, query.finish(), self.body(object)?)
    }

    /// Creates a subresource of an object, such as `eviction`.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_subresource(
        &self,
        name: &str,
        subresource: &str,
        object: &impl Serialize,
        params: &WriteParams,
    ) -> Result<Request<Bytes>, Error> {
        let mut query = self.object_path(name, Some(subresource))?.query();
        params.write(&mut query);
        let body = self.subresource_body(subresource, to_json(object)?)?;
        self.write(Method::POST, query.finish(), body)
    }

    /// Replaces an object, or with `subresource` that part of it.
    ///
    /// # Errors
    /// [`Error::Misuse`] when the object cannot be written as JSON.
    pub fn replace(
        &self,
        name: &str,
        subresource: Option<&str>,
        object: &impl Serialize,
        params: &WriteParams,
    ) -> Result<Request<Bytes>, Error> {
        let mut query = self.object_path(name, subresource)?.query();
        params.write(&mut query);
        let body = self.body_for(subresource, object)?;
        self.write(Method::PUT, query.finish(), body)
    }

    /// Patches an object, or with `subresource` that part of it.
    ///
    /// # Errors
    /// [`Error::Misuse`] when the patch cannot be sent: an apply without a field manager, or with managed fields.
    pub fn patch(
        &self,
        name: &str,
        subresource: Option<&str>,
        patch: &Patch,
        params: &PatchParams,
    ) -> Result<Request<Bytes>, Error> {
        let mut query = self.object_path(name, subresource)?.query();
        params.write(patch, &mut query)?;
        let body = match patch {
            Patch::Apply(object) => self.body_for(subresource, &without_null_managed_fields(object)?)?,
            Patch::Json(body) | Patch::Merge(body) | Patch::Strategic(body) => body.clone(),
        };
        let mut request = self.write(Method::PATCH, query.finish(), body)?;
        request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(patch.content_type()));
        Ok(request)
    }

    /// Deletes one object.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn delete(&self, name: &str, params: &DeleteParams) -> Result<Request<Bytes>, Error> {
        self.write(Method::DELETE, self.object_path(name, None)?, params.body())
    }

    /// Deletes every object that the list parameters select.
    ///
    /// # Errors
    /// As [`list`](Self::list); [`Error::Misuse`] for a namespaced type without a namespace.
    pub fn delete_collection(&self, params: &DeleteParams, which: &ListParams) -> Result<Request<Bytes>, Error> {
        let mut query = self.writable_collection()?.query();
        which.write(&mut query)?;
        self.write(Method::DELETE, query.finish(), params.body())
    }

    fn root(&self) -> Uri {
        let ResourceType { group, version, .. } = &self.resource_type;
        let mut uri = Uri(String::new());
        if group.is_empty() {
            uri.segment("api").segment(version);
        } else {
            uri.segment("apis").segment(group).segment(version);
        }
        uri
    }

    fn collection_path(&self) -> Result<Uri, Error> {
        let mut uri = self.root();
        if let Some(namespace) = &self.namespace {
            uri.segment("namespaces").segment(valid("namespace", namespace)?);
        }
        uri.segment(&self.resource_type.plural);
        Ok(uri)
    }

    /// The collection an object can be written to: that of one namespace, if the type has any.
    fn writable_collection(&self) -> Result<Uri, Error> {
        if self.resource_type.is_namespaced() && self.namespace.is_none() {
            return Err(Error::misuse(format!("a request for one of {} needs a namespace", self.resource_type)));
        }
        self.collection_path()
    }

    fn object_path(&self, name: &str, subresource: Option<&str>) -> Result<Uri, Error> {
        let mut uri = self.writable_collection()?;
        uri.segment(valid("name", name)?);
        for part in subresource.into_iter().flat_map(|sub| sub.split('/')) {
            uri.segment(valid("subresource", part)?);
        }
        Ok(uri)
    }

    fn body_for(&self, subresource: Option<&str>, object: &impl Serialize) -> Result<Value, Error> {
        match subresource {
            Some(subresource) => self.subresource_body(subresource, to_json(object)?),
            None => self.body(object),
        }
    }

    /// The object as JSON, with `apiVersion` and `kind`, which the API server wants in every body.
    fn body(&self, object: &impl Serialize) -> Result<Value, Error> {
        typed(to_json(object)?, &self.resource_type.api_version(), &self.resource_type.kind)
    }

    fn read(&self, uri: Uri, list: bool) -> Result<Request<Bytes>, Error> {
        build(Request::get(uri.0), Bytes::new(), self.view.accept(list))
    }

    fn write(&self, method: Method, uri: Uri, body: Value) -> Result<Request<Bytes>, Error> {
        let builder = Request::builder().method(method).uri(uri.0).header(header::CONTENT_TYPE, "application/json");
        build(builder, serde_json::to_vec(&body).map_err(not_json)?.into(), ACCEPT_JSON)
    }
}

fn build(builder: http::request::Builder, body: Bytes, accept: &'static str) -> Result<Request<Bytes>, Error> {
    builder
        .header(header::ACCEPT, accept)
        .body(body)
        .map_err(|error| Error::misuse(format!("the request cannot be written: {error}")))
}

/// An object as JSON.
///
/// # Errors
/// [`Error::Misuse`] when it cannot be written as JSON.
pub fn to_json(object: &impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(object).map_err(not_json)
}

/// An object as the body of an apply: without the fields that are `null`, which say that they are not set, and without
/// `metadata.managedFields`, which are the server's to write.
///
/// # Errors
/// [`Error::Misuse`] when it cannot be written as JSON.
///
/// ```
/// use cloudcoil_core::request::to_apply;
/// use serde_json::json;
///
/// let read = json!({"metadata": {"name": "a", "managedFields": [{}], "creationTimestamp": null}, "spec": {"size": null}});
/// assert_eq!(to_apply(&read)?, json!({"metadata": {"name": "a"}, "spec": {}}));
/// # Ok::<(), cloudcoil_core::Error>(())
/// ```
pub fn to_apply(object: &impl Serialize) -> Result<Value, Error> {
    let mut object = without_managed_fields(to_json(object)?);
    drop_nulls(&mut object);
    Ok(object)
}

/// The object without what the server alone writes and refuses in an apply.
pub(crate) fn without_managed_fields(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

/// Elements of lists stay where they are, even those that are `null`.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(elements) => elements.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// Fills in what a body does not say of its type.
fn typed(mut body: Value, api_version: &str, kind: &str) -> Result<Value, Error> {
    let Some(fields) = body.as_object_mut() else {
        return Err(Error::misuse("the body of a request must be an object"));
    };
    for (field, value) in [("apiVersion", api_version), ("kind", kind)] {
        if fields.get(field).and_then(Value::as_str).is_none_or(str::is_empty) {
            fields.insert(field.to_owned(), Value::from(value));
        }
    }
    Ok(body)
}

fn not_json(error: serde_json::Error) -> Error {
    Error::misuse(format!("the object cannot be written as JSON: {error}"))
}

/// `managedFields` are the server's to write, and it refuses an apply that carries them; `null` means none.
fn without_null_managed_fields(object: &Value) -> Result<Value, Error> {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
        && metadata.remove("managedFields").is_some_and(|fields| !fields.is_null())
    {
        return Err(Error::misuse("metadata.managedFields must not be set in an apply"));
    }
    Ok(object)
}

const ACCEPT_JSON: &str = "application/json";

#[cfg(test)]
mod tests;
