//! What every Kubernetes object has: a type, a name, metadata.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::Error;

/// Whether objects of a type live in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "Kubernetes has these two scopes")]
pub enum Scope {
    /// One object of a name in the whole cluster.
    Cluster,
    /// One object of a name in each namespace.
    Namespaced,
}

/// A type of object as the API server serves it: everything a request needs to know.
///
/// Typed kinds know theirs ([`KnownResource::resource_type`]); for [`Unstructured`](crate::Unstructured) objects it comes from
/// discovery, or from the caller.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceType {
    /// The API group; empty for the core group.
    pub group: Cow<'static, str>,
    /// The version within the group, such as `v1`.
    pub version: Cow<'static, str>,
    /// The kind, such as `Pod`.
    pub kind: Cow<'static, str>,
    /// The name in URLs, such as `pods`.
    pub plural: Cow<'static, str>,
    /// Whether objects live in namespaces.
    pub scope: Scope,
}

impl ResourceType {
    /// A type from its parts; `group` is empty for the core group.
    pub fn new(
        group: impl Into<Cow<'static, str>>,
        version: impl Into<Cow<'static, str>>,
        kind: impl Into<Cow<'static, str>>,
        plural: impl Into<Cow<'static, str>>,
        scope: Scope,
    ) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into(), plural: plural.into(), scope }
    }

    /// As objects carry it: `v1` for the core group, else `group/version`.
    pub fn api_version(&self) -> Cow<'_, str> {
        if self.group.is_empty() {
            Cow::Borrowed(&self.version)
        } else {
            Cow::Owned(format!("{}/{}", self.group, self.version))
        }
    }

    /// Whether objects live in namespaces.
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }
}

/// As `kubectl` writes it: `deployments.apps`, or `pods` for the core group.
impl fmt::Display for ResourceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.plural)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, ".{}", self.group) }
    }
}

/// The identity of an object within its type: a name, and a namespace unless the type is cluster-scoped.
///
/// Cheap to clone. Keys are ordered by namespace, those without one first, and then by name.
#[derive(Clone, PartialEq, Eq)]
pub struct ResourceKey {
    /// `namespace/name`, or the name alone; shared, as a key is kept wherever something is known of its object.
    text: Arc<str>,
    /// Where the name begins; zero if there is no namespace.
    name_at: usize,
}

impl ResourceKey {
    /// A key; an empty namespace is none.
    ///
    /// # Errors
    /// [`Error::Misuse`] if the name is empty.
    pub fn new(namespace: Option<&str>, name: &str) -> Result<Self, Error> {
        if name.is_empty() {
            return Err(Error::misuse("an object's name must not be empty"));
        }
        Ok(match namespace.filter(|namespace| !namespace.is_empty()) {
            Some(namespace) => Self { text: [namespace, "/", name].concat().into(), name_at: namespace.len() + 1 },
            None => Self { text: name.into(), name_at: 0 },
        })
    }

    /// The key of an object.
    ///
    /// # Errors
    /// [`Error::Misuse`] if the object has no name yet.
    pub fn of(object: &impl Resource) -> Result<Self, Error> {
        Self::new(object.namespace(), object.name())
    }

    /// The namespace; `None` for cluster-scoped objects.
    pub fn namespace(&self) -> Option<&str> {
        self.name_at.checked_sub(1).map(|end| &self.text[..end])
    }

    /// The name, never empty.
    pub fn name(&self) -> &str {
        &self.text[self.name_at..]
    }
}

impl Ord for ResourceKey {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.namespace(), self.name()).cmp(&(other.namespace(), other.name()))
    }
}

/// Of the text alone: keys that differ only in where the name begins are not worth a longer hash.
impl Hash for ResourceKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl PartialOrd for ResourceKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// `namespace/name`, or the name alone.
impl fmt::Display for ResourceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Debug for ResourceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A Kubernetes object: every `k8s-openapi` type with metadata, every derived custom resource, and
/// [`Unstructured`](crate::Unstructured).
///
/// ```
/// use cloudcoil_core::Resource;
/// use cloudcoil_core::k8s_openapi::api::core::v1::ConfigMap;
///
/// let mut map = ConfigMap::default();
/// map.metadata_mut().set_name("settings");
/// assert_eq!((map.name(), map.namespace()), ("settings", None));
/// ```
pub trait Resource: Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The object's metadata.
    fn metadata(&self) -> Metadata<'_>;

    /// The object's metadata, to be changed.
    fn metadata_mut(&mut self) -> MetadataMut<'_>;

    /// Fills in `apiVersion` and `kind`, which the API server leaves out of the objects in a list. For types that hold
    /// them as fields; those that know them from their Rust type have nothing to do.
    fn fill_type(&mut self, api_version: &str, kind: &str) {
        let _ = (api_version, kind);
    }

    /// The name; empty while the object has none.
    fn name(&self) -> &str {
        self.metadata().text("name").unwrap_or_default()
    }

    /// The namespace; `None` for cluster-scoped objects and while it is not set.
    fn namespace(&self) -> Option<&str> {
        self.metadata().text("namespace")
    }

    /// The identity the API server gave the object; another object of the same name has another.
    fn uid(&self) -> Option<&str> {
        self.metadata().text("uid")
    }

    /// The version of the object as stored: opaque, to be compared for equality.
    fn resource_version(&self) -> Option<&str> {
        self.metadata().text("resourceVersion")
    }

    /// Counts changes of the desired state.
    fn generation(&self) -> Option<i64> {
        self.metadata().generation()
    }

    /// The value of a label.
    fn label(&self, key: &str) -> Option<&str> {
        self.metadata().entry("labels", key)
    }

    /// The value of an annotation.
    fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata().entry("annotations", key)
    }

    /// Whether the object is being deleted: it has a deletion timestamp, and goes when its finalizers are gone.
    fn is_deleting(&self) -> bool {
        self.metadata().is_deleting()
    }

    /// The owner that controls the object, if any.
    fn controller_owner(&self) -> Option<OwnerReference> {
        self.metadata().owner_references().into_iter().find(|owner| owner.controller == Some(true))
    }
}

/// A [`Resource`] whose Rust type says which Kubernetes type it is, so that no discovery is needed.
pub trait KnownResource: Resource {
    /// The type of every object of this Rust type.
    fn resource_type() -> ResourceType;
}

/// The metadata of an object, typed or not, for reading.
#[derive(Clone, Copy, Debug)]
pub struct Metadata<'a>(Repr<'a>);

#[derive(Clone, Copy, Debug)]
enum Repr<'a> {
    Typed(&'a ObjectMeta),
    Untyped(Option<&'a Map<String, Value>>),
}

impl<'a> Metadata<'a> {
    /// Metadata of a typed object.
    pub const fn typed(metadata: &'a ObjectMeta) -> Self {
        Self(Repr::Typed(metadata))
    }

    pub(crate) fn untyped(metadata: Option<&'a Value>) -> Self {
        Self(Repr::Untyped(metadata.and_then(Value::as_object)))
    }

    fn text(self, field: &str) -> Option<&'a str> {
        let text = match self.0 {
            Repr::Untyped(map) => map?.get(field)?.as_str(),
            Repr::Typed(meta) => match field {
                "name" => meta.name.as_deref(),
                "namespace" => meta.namespace.as_deref(),
                "uid" => meta.uid.as_deref(),
                "resourceVersion" => meta.resource_version.as_deref(),
                "generateName" => meta.generate_name.as_deref(),
                _ => None,
            },
        };
        text.filter(|text| !text.is_empty())
    }

    /// The prefix from which the API server makes a name when the object has none.
    pub fn generate_name(self) -> Option<&'a str> {
        self.text("generateName")
    }

    fn generation(self) -> Option<i64> {
        match self.0 {
            Repr::Typed(meta) => meta.generation,
            Repr::Untyped(map) => map?.get("generation")?.as_i64(),
        }
    }

    fn entry(self, field: &str, key: &str) -> Option<&'a str> {
        match self.0 {
            Repr::Untyped(map) => map?.get(field)?.as_object()?.get(key)?.as_str(),
            Repr::Typed(meta) => {
                let map = if field == "labels" { &meta.labels } else { &meta.annotations };
                map.as_ref()?.get(key).map(String::as_str)
            }
        }
    }

    fn is_deleting(self) -> bool {
        match self.0 {
            Repr::Typed(meta) => meta.deletion_timestamp.is_some(),
            Repr::Untyped(map) => map.and_then(|map| map.get("deletionTimestamp")).is_some_and(|time| !time.is_null()),
        }
    }

    /// All labels, in order of their keys.
    pub fn labels(self) -> Cow<'a, BTreeMap<String, String>> {
        self.entries("labels")
    }

    /// All annotations, in order of their keys.
    pub fn annotations(self) -> Cow<'a, BTreeMap<String, String>> {
        self.entries("annotations")
    }

    fn entries(self, field: &str) -> Cow<'a, BTreeMap<String, String>> {
        match self.0 {
            Repr::Typed(meta) => {
                let map = if field == "labels" { &meta.labels } else { &meta.annotations };
                map.as_ref().map_or_else(|| Cow::Owned(BTreeMap::new()), Cow::Borrowed)
            }
            Repr::Untyped(map) => Cow::Owned(
                map.and_then(|map| map.get(field)?.as_object())
                    .into_iter()
                    .flatten()
                    .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                    .collect(),
            ),
        }
    }

    /// The finalizers that keep the object from going away.
    pub fn finalizers(self) -> Vec<&'a str> {
        match self.0 {
            Repr::Typed(meta) => meta.finalizers.iter().flatten().map(String::as_str).collect(),
            Repr::Untyped(map) => map
                .and_then(|map| map.get("finalizers")?.as_array())
                .map(|list| list.iter().filter_map(Value::as_str).collect())
                .unwrap_or_default(),
        }
    }

    /// All owners; of an untyped object only those that are well formed.
    pub fn owner_references(self) -> Vec<OwnerReference> {
        match self.0 {
            Repr::Typed(meta) => meta.owner_references.clone().unwrap_or_default(),
            Repr::Untyped(map) => map
                .and_then(|map| map.get("ownerReferences")?.as_array())
                .map(|list| list.iter().filter_map(|owner| serde_json::from_value(owner.clone()).ok()).collect())
                .unwrap_or_default(),
        }
    }
}

/// The metadata of an object, typed or not, to be changed.
#[derive(Debug)]
pub struct MetadataMut<'a>(ReprMut<'a>);

#[derive(Debug)]
enum ReprMut<'a> {
    Typed(&'a mut ObjectMeta),
    Untyped(&'a mut Map<String, Value>),
}

impl<'a> MetadataMut<'a> {
    /// Metadata of a typed object.
    pub const fn typed(metadata: &'a mut ObjectMeta) -> Self {
        Self(ReprMut::Typed(metadata))
    }

    pub(crate) const fn untyped(metadata: &'a mut Map<String, Value>) -> Self {
        Self(ReprMut::Untyped(metadata))
    }

    /// Sets the name.
    pub fn set_name(&mut self, name: &str) {
        match &mut self.0 {
            ReprMut::Typed(meta) => meta.name = Some(name.to_owned()),
            ReprMut::Untyped(map) => set(map, "name", Some(name)),
        }
    }

    /// Sets the namespace, or removes it.
    pub fn set_namespace(&mut self, namespace: Option<&str>) {
        match &mut self.0 {
            ReprMut::Typed(meta) => meta.namespace = namespace.map(ToOwned::to_owned),
            ReprMut::Untyped(map) => set(map, "namespace", namespace),
        }
    }

    /// Sets the resource version a write is conditional on, or removes the condition.
    pub fn set_resource_version(&mut self, version: Option<&str>) {
        match &mut self.0 {
            ReprMut::Typed(meta) => meta.resource_version = version.map(ToOwned::to_owned),
            ReprMut::Untyped(map) => set(map, "resourceVersion", version),
        }
    }

    /// Sets a label.
    pub fn set_label(&mut self, key: &str, value: &str) {
        match &mut self.0 {
            ReprMut::Typed(meta) => insert(meta.labels.get_or_insert_default(), key, value),
            ReprMut::Untyped(map) => insert_untyped(map, "labels", key, value),
        }
    }

    /// Sets an annotation.
    pub fn set_annotation(&mut self, key: &str, value: &str) {
        match &mut self.0 {
            ReprMut::Typed(meta) => insert(meta.annotations.get_or_insert_default(), key, value),
            ReprMut::Untyped(map) => insert_untyped(map, "annotations", key, value),
        }
    }

    /// Replaces the list of owners.
    pub fn set_owner_references(&mut self, owners: Vec<OwnerReference>) {
        match &mut self.0 {
            ReprMut::Typed(meta) => meta.owner_references = Some(owners),
            ReprMut::Untyped(map) => {
                let owners = serde_json::to_value(owners).expect("owner references are plain strings and flags");
                map.insert("ownerReferences".to_owned(), owners);
            }
        }
    }
}

fn set(map: &mut Map<String, Value>, field: &str, text: Option<&str>) {
    match text {
        Some(text) => map.insert(field.to_owned(), Value::from(text)),
        None => map.remove(field),
    };
}

fn insert(map: &mut BTreeMap<String, String>, key: &str, value: &str) {
    map.insert(key.to_owned(), value.to_owned());
}

fn insert_untyped(metadata: &mut Map<String, Value>, field: &str, key: &str, value: &str) {
    let entry = metadata.entry(field).or_insert(Value::Null);
    if !entry.is_object() {
        *entry = Value::Object(Map::new());
    }
    if let Value::Object(map) = entry {
        map.insert(key.to_owned(), Value::from(value));
    }
}

impl<K, S> Resource for K
where
    K: k8s_openapi::Metadata<Ty = ObjectMeta> + k8s_openapi::Resource<Scope = S>,
    K: Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static,
    S: KnownScope,
{
    fn metadata(&self) -> Metadata<'_> {
        Metadata::typed(k8s_openapi::Metadata::metadata(self))
    }

    fn metadata_mut(&mut self) -> MetadataMut<'_> {
        MetadataMut::typed(k8s_openapi::Metadata::metadata_mut(self))
    }
}

impl<K, S> KnownResource for K
where
    K: k8s_openapi::Metadata<Ty = ObjectMeta> + k8s_openapi::Resource<Scope = S>,
    K: Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static,
    S: KnownScope,
{
    fn resource_type() -> ResourceType {
        ResourceType::new(K::GROUP, K::VERSION, K::KIND, K::URL_PATH_SEGMENT, S::SCOPE)
    }
}

/// The scopes of `k8s-openapi` under which whole objects are served; subresources are not.
pub trait KnownScope: k8s_openapi::ResourceScope {
    /// The same scope as a value.
    const SCOPE: Scope;
}

impl KnownScope for k8s_openapi::NamespaceResourceScope {
    const SCOPE: Scope = Scope::Namespaced;
}

impl KnownScope for k8s_openapi::ClusterResourceScope {
    const SCOPE: Scope = Scope::Cluster;
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::{apps::v1::Deployment, core::v1::Namespace};

    #[test]
    fn typed_kinds_know_their_type() {
        let deployments = Deployment::resource_type();
        assert_eq!(deployments, ResourceType::new("apps", "v1", "Deployment", "deployments", Scope::Namespaced));
        assert_eq!((deployments.api_version().as_ref(), &*deployments.to_string()), ("apps/v1", "deployments.apps"));
        let namespaces = Namespace::resource_type();
        assert_eq!((namespaces.api_version().as_ref(), namespaces.is_namespaced()), ("v1", false));
    }

    #[test]
    fn a_key_needs_a_name_and_drops_an_empty_namespace() {
        assert!(ResourceKey::new(Some("ns"), "").is_err());
        assert_eq!(ResourceKey::new(Some(""), "a").unwrap().namespace(), None);
        assert_eq!(ResourceKey::new(Some("ns"), "a").unwrap().to_string(), "ns/a");
    }

    #[test]
    fn keys_are_ordered_by_namespace_and_then_by_name() {
        let key = |namespace, name| ResourceKey::new(namespace, name).unwrap();
        // `-` sorts before `/`, and must not come between the objects of a namespace.
        let keys =
            [key(None, "z"), key(Some("a"), "b"), key(Some("a"), "z"), key(Some("a-b"), "a"), key(Some("b"), "a")];
        assert!(keys.is_sorted());
        let split = keys.map(|key| (key.namespace().map(ToOwned::to_owned), key.name().to_owned()));
        assert_eq!(split[3], (Some("a-b".to_owned()), "a".to_owned()));
        assert_ne!(key(None, "a/b"), key(Some("a"), "b"));
    }
}
