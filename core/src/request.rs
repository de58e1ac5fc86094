//! Requests to the API server, as data.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, header};
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::{Value, json};

use crate::error::Error;
use crate::resource::ResourceType;

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
}

impl Requests {
    /// Requests for `resource_type` in `namespace`; with `None`, or an empty one, in all namespaces.
    ///
    /// A cluster-scoped type has no namespace, so one that is given is not used.
    pub fn new(resource_type: ResourceType, namespace: Option<&str>) -> Self {
        let namespaced = resource_type.is_namespaced();
        let namespace = namespace.filter(|ns| namespaced && !ns.is_empty()).map(ToOwned::to_owned);
        Self { resource_type, namespace }
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
        self.read(self.object_path(name, None)?)
    }

    /// Reads a subresource of one object, such as `status` or `scale`.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_subresource(&self, name: &str, subresource: &str) -> Result<Request<Bytes>, Error> {
        self.read(self.object_path(name, Some(subresource))?)
    }

    /// Reads one page of a list.
    ///
    /// # Errors
    /// [`Error::Misuse`] when the parameters exclude each other.
    pub fn list(&self, params: &ListParams) -> Result<Request<Bytes>, Error> {
        let mut query = self.collection_path()?.query();
        params.write(&mut query)?;
        self.read(query.finish())
    }

    /// Watches for changes.
    ///
    /// # Errors
    /// [`Error::Misuse`] when the parameters exclude each other.
    pub fn watch(&self, params: &WatchParams) -> Result<Request<Bytes>, Error> {
        let mut query = self.collection_path()?.query();
        params.write(&mut query);
        self.read(query.finish())
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
        let body = to_json(object)?;
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
        let body = if subresource.is_none_or(|sub| sub == "status") { self.body(object)? } else { to_json(object)? };
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
            Patch::Apply(object) => self.body(&without_null_managed_fields(object)?)?,
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

    /// The object as JSON, with `apiVersion` and `kind`, which the API server wants in every body.
    fn body(&self, object: &impl Serialize) -> Result<Value, Error> {
        let mut body = to_json(object)?;
        let Some(fields) = body.as_object_mut() else {
            return Err(Error::misuse("the body of a request must be an object"));
        };
        fields.entry("apiVersion").or_insert_with(|| Value::from(self.resource_type.api_version()));
        fields.entry("kind").or_insert_with(|| Value::from(self.resource_type.kind.as_ref()));
        Ok(body)
    }

    fn read(&self, uri: Uri) -> Result<Request<Bytes>, Error> {
        build(Request::get(uri.0), Bytes::new())
    }

    fn write(&self, method: Method, uri: Uri, body: Value) -> Result<Request<Bytes>, Error> {
        let builder = Request::builder().method(method).uri(uri.0).header(header::CONTENT_TYPE, "application/json");
        build(builder, serde_json::to_vec(&body).map_err(not_json)?.into())
    }
}

fn build(builder: http::request::Builder, body: Bytes) -> Result<Request<Bytes>, Error> {
    builder
        .header(header::ACCEPT, "application/json")
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

fn not_json(error: serde_json::Error) -> Error {
    Error::misuse(format!("the object cannot be written as JSON: {error}"))
}

/// A path segment that says what it means: no separator, no step up.
fn valid<'a>(what: &str, text: &'a str) -> Result<&'a str, Error> {
    if text.is_empty() || text == "." || text == ".." || text.contains(['/', '%']) {
        return Err(Error::misuse(format!("{text:?} cannot be the {what} in a path")));
    }
    Ok(text)
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

/// Which objects a list holds, and how much of them a page.
///
/// See <https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list>.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made with struct update syntax")]
pub struct ListParams {
    /// A label selector as `kubectl -l` takes it.
    pub label_selector: Option<String>,
    /// A field selector as `kubectl --field-selector` takes it.
    pub field_selector: Option<String>,
    /// The most objects in a page; the answer then carries a continue token. `None` asks for all at once.
    pub limit: Option<u32>,
    /// The token of the page before.
    pub continue_token: Option<String>,
    /// How new the list must be.
    pub version: ListVersion,
    /// How long the server may take, in whole seconds.
    pub timeout: Option<Duration>,
}

impl ListParams {
    fn write(&self, query: &mut Query) -> Result<(), Error> {
        if self.continue_token.is_some() && self.version != ListVersion::MostRecent {
            return Err(Error::misuse("a continue token and a resource version exclude each other"));
        }
        query.text("labelSelector", self.label_selector.as_deref());
        query.text("fieldSelector", self.field_selector.as_deref());
        query.number("limit", self.limit.map(u64::from));
        query.text("continue", self.continue_token.as_deref());
        match &self.version {
            ListVersion::MostRecent => {}
            ListVersion::Any => query.text("resourceVersion", Some("0")),
            ListVersion::NotOlderThan(version) => {
                query.text("resourceVersion", Some(version));
                query.text("resourceVersionMatch", Some("NotOlderThan"));
            }
            ListVersion::Exact(version) => {
                query.text("resourceVersion", Some(version));
                query.text("resourceVersionMatch", Some("Exact"));
            }
        }
        query.number("timeoutSeconds", self.timeout.map(|timeout| timeout.as_secs()));
        Ok(())
    }
}

/// How new a list must be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "these are the API's choices")]
pub enum ListVersion {
    /// The newest there is, read with a quorum.
    #[default]
    MostRecent,
    /// Whatever the server has in its cache, however old.
    Any,
    /// At least as new as this resource version.
    NotOlderThan(String),
    /// Exactly this resource version.
    Exact(String),
}

/// What a watch reports, and from where.
///
/// See <https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes>.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made with struct update syntax")]
pub struct WatchParams {
    /// A label selector as `kubectl -l` takes it.
    pub label_selector: Option<String>,
    /// A field selector as `kubectl --field-selector` takes it.
    pub field_selector: Option<String>,
    /// The resource version after which changes are reported; `None` starts anywhere, with what exists as additions.
    pub resource_version: Option<String>,
    /// After how many whole seconds the server ends the watch.
    pub timeout: Option<Duration>,
    /// Whether the server tells from time to time how far the watch has got.
    pub bookmarks: bool,
    /// Whether the watch begins with what exists, and a bookmark behind it, in place of a list.
    pub initial_events: bool,
}

impl WatchParams {
    fn write(&self, query: &mut Query) {
        query.text("watch", Some("true"));
        query.text("labelSelector", self.label_selector.as_deref());
        query.text("fieldSelector", self.field_selector.as_deref());
        query.text("resourceVersion", self.resource_version.as_deref());
        query.flag("allowWatchBookmarks", self.bookmarks || self.initial_events);
        if self.initial_events {
            query.text("sendInitialEvents", Some("true"));
            query.text("resourceVersionMatch", Some("NotOlderThan"));
        }
        query.number("timeoutSeconds", self.timeout.map(|timeout| timeout.as_secs().max(1)));
    }
}

/// How a create or replace is done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made with struct update syntax")]
pub struct WriteParams {
    /// Whether nothing is stored, only checked.
    pub dry_run: bool,
    /// Who is writing, for field ownership.
    pub field_manager: Option<String>,
    /// What becomes of fields that the type does not have.
    pub field_validation: Option<FieldValidation>,
}

impl WriteParams {
    fn write(&self, query: &mut Query) {
        query.text("dryRun", self.dry_run.then_some("All"));
        query.text("fieldManager", self.field_manager.as_deref());
        query.text("fieldValidation", self.field_validation.map(FieldValidation::as_str));
    }
}

/// What becomes of fields that a type does not have, or that occur twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "these are the API's choices")]
pub enum FieldValidation {
    /// They are dropped.
    Ignore,
    /// They are dropped, and a warning comes with the answer.
    Warn,
    /// The request is refused.
    Strict,
}

impl FieldValidation {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Ignore => "Ignore",
            Self::Warn => "Warn",
            Self::Strict => "Strict",
        }
    }
}

/// A change to an object, in one of the forms the API server takes.
///
/// See <https://kubernetes.io/docs/reference/using-api/api-concepts/#patch-and-apply>.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "these are the API's choices")]
pub enum Patch {
    /// RFC 6902: a list of operations.
    Json(Value),
    /// RFC 7386: an object in which `null` removes.
    Merge(Value),
    /// As merge, but lists merge by their keys; built-in kinds only.
    Strategic(Value),
    /// Server-side apply: the fields that the field manager wants to own.
    Apply(Value),
}

impl Patch {
    const fn content_type(&self) -> &'static str {
        match self {
            Self::Json(_) => "application/json-patch+json",
            Self::Merge(_) => "application/merge-patch+json",
            Self::Strategic(_) => "application/strategic-merge-patch+json",
            Self::Apply(_) => "application/apply-patch+yaml",
        }
    }
}

/// How a patch is done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made with struct update syntax")]
pub struct PatchParams {
    /// What every write may say.
    pub write: WriteParams,
    /// For an apply: take fields over from other managers where they conflict.
    pub force: bool,
}

impl PatchParams {
    fn write(&self, patch: &Patch, query: &mut Query) -> Result<(), Error> {
        let apply = matches!(patch, Patch::Apply(_));
        if apply && self.write.field_manager.as_deref().is_none_or(str::is_empty) {
            return Err(Error::misuse("an apply needs a field manager"));
        }
        if self.force && !apply {
            return Err(Error::misuse("only an apply can be forced"));
        }
        self.write.write(query);
        query.flag("force", self.force);
        Ok(())
    }
}

/// How a deletion is done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made with struct update syntax")]
pub struct DeleteParams {
    /// Whether nothing is deleted, only checked.
    pub dry_run: bool,
    /// What becomes of the objects it owns.
    pub propagation: Option<Propagation>,
    /// How long the object may take to end, in whole seconds.
    pub grace_period: Option<Duration>,
    /// Delete only the object of this uid, not another of the same name.
    pub uid: Option<String>,
    /// Delete only this version of the object.
    pub resource_version: Option<String>,
}

impl DeleteParams {
    fn body(&self) -> Value {
        let mut body = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        if self.dry_run {
            body["dryRun"] = json!(["All"]);
        }
        if let Some(propagation) = self.propagation {
            body["propagationPolicy"] = Value::from(propagation.as_str());
        }
        if let Some(grace) = self.grace_period {
            body["gracePeriodSeconds"] = Value::from(grace.as_secs());
        }
        if let Some(uid) = &self.uid {
            body["preconditions"]["uid"] = Value::from(uid.as_str());
        }
        if let Some(version) = &self.resource_version {
            body["preconditions"]["resourceVersion"] = Value::from(version.as_str());
        }
        body
    }
}

/// What becomes of the objects that a deleted object owns.
///
/// See <https://kubernetes.io/docs/concepts/architecture/garbage-collection/>.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "these are the API's choices")]
pub enum Propagation {
    /// They stay, without the owner.
    Orphan,
    /// They go after it.
    Background,
    /// They go before it.
    Foreground,
}

impl Propagation {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Orphan => "Orphan",
            Self::Background => "Background",
            Self::Foreground => "Foreground",
        }
    }
}

/// A path under construction; every segment is escaped.
struct Uri(String);

impl Uri {
    fn segment(&mut self, text: &str) -> &mut Self {
        self.0.push('/');
        self.0.extend(utf8_percent_encode(text, SEGMENT));
        self
    }

    fn query(self) -> Query {
        Query { uri: self.0, separator: '?' }
    }
}

/// A query under construction; every value is escaped.
struct Query {
    uri: String,
    separator: char,
}

impl Query {
    fn text(&mut self, key: &str, value: Option<&str>) {
        let Some(value) = value else { return };
        self.uri.push(self.separator);
        self.uri.push_str(key);
        self.uri.push('=');
        self.uri.extend(utf8_percent_encode(value, VALUE).map(Cow::Borrowed));
        self.separator = '&';
    }

    fn number(&mut self, key: &str, value: Option<u64>) {
        self.text(key, value.map(|value| value.to_string()).as_deref());
    }

    fn flag(&mut self, key: &str, on: bool) {
        self.text(key, on.then_some("true"));
    }

    fn finish(self) -> Uri {
        Uri(self.uri)
    }
}

const VALUE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b',');
const SEGMENT: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'`')
    .add(b'{')
    .add(b'}')
    .add(b'%')
    .add(b'/');

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::KnownResource;
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::{Namespace, Pod};

    fn pods() -> Requests {
        Requests::new(Pod::resource_type(), Some("ns"))
    }

    fn body(request: &Request<Bytes>) -> Value {
        serde_json::from_slice(request.body()).unwrap()
    }

    #[test]
    fn paths_follow_group_scope_and_subresource() {
        let all = Requests::new(Deployment::resource_type(), None);
        assert_eq!(all.list(&ListParams::default()).unwrap().uri(), "/apis/apps/v1/deployments");
        let namespaces = Requests::new(Namespace::resource_type(), Some("ignored"));
        assert_eq!(namespaces.get("a").unwrap().uri(), "/api/v1/namespaces/a");
        assert_eq!(pods().get_subresource("a", "status").unwrap().uri(), "/api/v1/namespaces/ns/pods/a/status");
        assert_eq!(pods().get_subresource("a", "proxy/x").unwrap().uri(), "/api/v1/namespaces/ns/pods/a/proxy/x");
    }

    #[test]
    fn names_cannot_leave_their_segment() {
        for name in ["", ".", "..", "a/b", "../x", "a%2fb"] {
            assert!(matches!(pods().get(name), Err(Error::Misuse(_))), "{name:?}");
        }
        assert_eq!(pods().get("system:a?b#c").unwrap().uri(), "/api/v1/namespaces/ns/pods/system:a%3Fb%23c");
    }

    #[test]
    fn one_namespaced_object_needs_a_namespace() {
        let all = Requests::new(Pod::resource_type(), Some(""));
        assert!(all.get("a").is_err() && all.create(&Pod::default(), &WriteParams::default()).is_err());
        assert!(all.delete_collection(&DeleteParams::default(), &ListParams::default()).is_err());
    }

    #[test]
    fn selectors_are_escaped() {
        let params =
            ListParams { label_selector: Some("a in (b,c),d!=é".into()), limit: Some(5), ..Default::default() };
        let uri = pods().list(&params).unwrap().uri().to_string();
        assert_eq!(uri, "/api/v1/namespaces/ns/pods?labelSelector=a%20in%20%28b,c%29,d%21%3D%C3%A9&limit=5");
    }

    #[test]
    fn a_continue_token_excludes_a_version() {
        let version = ListVersion::NotOlderThan("5".into());
        let params = ListParams { continue_token: Some("t".into()), version, ..Default::default() };
        assert!(pods().list(&params).is_err());
    }

    #[test]
    fn a_streaming_list_asks_for_bookmarks_and_a_match() {
        let params =
            WatchParams { initial_events: true, timeout: Some(Duration::from_millis(1)), ..Default::default() };
        let uri = pods().watch(&params).unwrap().uri().to_string();
        let query = "watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
        assert_eq!(uri, format!("/api/v1/namespaces/ns/pods?{query}&timeoutSeconds=1"));
    }

    #[test]
    fn bodies_carry_their_type() {
        let request = pods().create(&Pod::default(), &WriteParams::default()).unwrap();
        assert_eq!((&body(&request)["apiVersion"], &body(&request)["kind"]), (&json!("v1"), &json!("Pod")));
    }

    #[test]
    fn an_apply_needs_a_manager_and_has_no_managed_fields() {
        let manager = WriteParams { field_manager: Some("me".into()), ..Default::default() };
        let named = PatchParams { write: manager, force: true };
        let apply = |metadata: Value, params: PatchParams| {
            pods().patch("a", None, &Patch::Apply(json!({"metadata": metadata})), &params)
        };
        assert!(apply(json!({}), PatchParams::default()).is_err());
        assert!(apply(json!({"managedFields": [{}]}), named.clone()).is_err());
        let request = apply(json!({"managedFields": null}), named.clone()).unwrap();
        assert_eq!(body(&request)["metadata"], json!({}));
        assert_eq!(request.headers()[header::CONTENT_TYPE], "application/apply-patch+yaml");
        assert!(pods().patch("a", None, &Patch::Merge(json!({})), &named).is_err());
    }

    #[test]
    fn deletions_say_their_conditions_in_the_body() {
        let params = DeleteParams { uid: Some("u".into()), grace_period: Some(Duration::ZERO), ..Default::default() };
        let request = pods().delete("a", &params).unwrap();
        assert_eq!(
            (&body(&request)["preconditions"]["uid"], &body(&request)["gracePeriodSeconds"]),
            (&json!("u"), &json!(0))
        );
    }
}
