//! Objects as the store keeps them: compact JSON text with a small header.

mod field;
mod header;
mod identity;
mod outline;

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) use identity::{Identity, describe};
pub(crate) use outline::Outline;

use header::{Header, Span};

use crate::error::DecodeError;
use crate::json::{Flaw, Scanner};
use crate::resource::{ResourceKey, ResourceType};
use crate::response;
use crate::selector::{FieldSelector, Selector};

/// One object: its JSON text, compact, and a header of what is asked for most, at hand without decoding.
///
/// Shared as `Arc<Object>`. The header is read leniently: what does not have its proper type is absent there, and
/// shows when the object is decoded. Only the name must be a name.
///
/// ```
/// use cloudcoil_core::k8s_openapi::api::core::v1::ConfigMap;
/// use cloudcoil_core::{Object, Trim};
///
/// let text = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "ns", "labels": {"x": "1"}}}"#;
/// let object = Object::parse(text, Trim::ManagedFields)?;
/// assert_eq!((object.namespace(), object.name(), object.label("x")), (Some("ns"), "a", Some("1")));
/// let map: ConfigMap = object.decode()?;
/// # Ok::<(), cloudcoil_core::DecodeError>(())
/// ```
pub struct Object {
    /// The JSON text, and behind it the plain text of those header strings that have escapes in JSON.
    text: Box<str>,
    header: Header,
}

/// What is left out of an object's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trim {
    /// `metadata.managedFields`: a fifth of a Pod, and of use to no reader but a tool about field ownership.
    #[default]
    ManagedFields,
    /// Nothing but blanks.
    Nothing,
}

/// The `apiVersion` and `kind` that objects of a list get which do not say their own, as the API server leaves them out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeMeta {
    api_version: Box<str>,
    kind: Box<str>,
}

impl Object {
    /// The largest object that can be kept, in bytes of its text.
    pub const MAX_BYTES: usize = u32::MAX as usize / 2;

    /// Reads an object in one pass over its text.
    ///
    /// # Errors
    /// A [`DecodeError`] that names the object as far as it can be read, when the text is no JSON object, or when it
    /// has no name.
    pub fn parse(json: &str, trim: Trim) -> Result<Self, DecodeError> {
        Self::read(json, trim, None)
    }

    /// The same for an object of a list or a watch of one type, which gets the type's `apiVersion` and `kind` in its
    /// text when it does not say its own.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_as(json: &str, trim: Trim, types: &TypeMeta) -> Result<Self, DecodeError> {
        Self::read(json, trim, Some(types))
    }

    fn read(json: &str, trim: Trim, types: Option<&TypeMeta>) -> Result<Self, DecodeError> {
        let error = |message: &str| Identity::of(json).error(types, message);
        let mut scanner = Scanner::new(json);
        let outline = Outline::scan(&mut scanner, trim, types).map_err(|flaw| error(&describe(flaw)))?;
        let object = outline.finish(&scanner, types).map_err(error)?;
        match scanner.peek() {
            Err(_) => Ok(object),
            Ok(_) => Err(error(&describe(Flaw::Syntax(scanner.scanned())))),
        }
    }

    /// The object as compact JSON text.
    pub fn json(&self) -> &str {
        &self.text[..self.header.json as usize]
    }

    /// The `apiVersion`; empty when the object has none.
    pub fn api_version(&self) -> &str {
        self.at(self.header.api_version)
    }

    /// The `kind`; empty when the object has none.
    pub fn kind(&self) -> &str {
        self.at(self.header.kind)
    }

    /// The name, never empty.
    pub fn name(&self) -> &str {
        self.at(self.header.name)
    }

    /// The namespace; `None` for cluster-scoped objects.
    pub fn namespace(&self) -> Option<&str> {
        self.part(self.header.namespace)
    }

    /// The identity that the API server gave the object; another object of the same name has another.
    pub fn uid(&self) -> Option<&str> {
        self.part(self.header.uid)
    }

    /// The version of the object as stored: opaque, to be compared for equality.
    pub fn resource_version(&self) -> Option<&str> {
        self.part(self.header.resource_version)
    }

    /// Counts changes of the desired state.
    pub const fn generation(&self) -> Option<i64> {
        self.header.generation
    }

    /// Whether the object is being deleted: it has a deletion timestamp, and goes when its finalizers are gone.
    pub const fn is_deleting(&self) -> bool {
        self.header.deleting
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        let labels = &self.header.labels;
        let found = labels.binary_search_by(|(label, _)| self.at(*label).cmp(key)).ok()?;
        Some(self.at(labels[found].1))
    }

    /// All labels, in order of their keys.
    pub fn labels(&self) -> impl ExactSizeIterator<Item = (&str, &str)> + Clone {
        self.header.labels.iter().map(|(key, value)| (self.at(*key), self.at(*value)))
    }

    /// All annotations, parsed on demand; those that are no strings are left out.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        let annotations: BTreeMap<String, Value> = self.parsed(self.header.annotations).unwrap_or_default();
        annotations.into_iter().filter_map(|(key, value)| Some((key, string(value)?))).collect()
    }

    /// All owners that are well formed, parsed on demand.
    pub fn owner_references(&self) -> Vec<OwnerReference> {
        let owners: Vec<Value> = self.parsed(self.header.owner_references).unwrap_or_default();
        owners.into_iter().filter_map(|owner| serde_json::from_value(owner).ok()).collect()
    }

    /// The finalizers that keep the object from going away, parsed on demand.
    pub fn finalizers(&self) -> Vec<String> {
        let finalizers: Vec<Value> = self.parsed(self.header.finalizers).unwrap_or_default();
        finalizers.into_iter().filter_map(string).collect()
    }

    /// The identity of the object within its type.
    pub fn key(&self) -> ResourceKey {
        ResourceKey::new(self.namespace(), self.name()).expect("an object without a name is not parsed")
    }

    /// The object as a value of type `K`.
    ///
    /// # Errors
    /// A [`DecodeError`] that names the object and the field that does not fit.
    pub fn decode<K: DeserializeOwned>(&self) -> Result<K, DecodeError> {
        response::decode_object(self.json())
    }

    /// Whether the labels fulfil a selector; needs no decoding.
    pub fn matches(&self, selector: &Selector) -> bool {
        selector.matches(|key| self.label(key))
    }

    /// Whether the fields fulfil a selector: name and namespace come from the header, others are looked up in the
    /// text without decoding it.
    pub fn matches_fields(&self, selector: &FieldSelector) -> bool {
        selector.matches_with(|path| self.field(path))
    }

    /// Whether this is the same version of the same object as `other`.
    pub fn is_same_version(&self, other: &Self) -> bool {
        match (self.resource_version(), other.resource_version()) {
            (Some(one), Some(other_version)) => one == other_version && self.uid() == other.uid(),
            _ => self.json() == other.json(),
        }
    }

    fn at(&self, span: Span) -> &str {
        span.of(&self.text)
    }

    fn part(&self, span: Span) -> Option<&str> {
        Some(self.at(span)).filter(|text| !text.is_empty())
    }

    fn parsed<T: DeserializeOwned>(&self, span: Span) -> Option<T> {
        serde_json::from_str(self.part(span)?).ok()
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.json() == other.json()
    }
}

impl Eq for Object {}

/// Names the object and its version; what it holds may be a secret.
impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.resource_version().unwrap_or("?");
        let kind = if self.kind().is_empty() { "object" } else { self.kind() };
        write!(f, "{kind} {}@{version}", self.key())
    }
}

impl TypeMeta {
    /// The type meta of objects with this `apiVersion` and `kind`.
    pub fn new(api_version: &str, kind: &str) -> Self {
        Self { api_version: api_version.into(), kind: kind.into() }
    }

    /// Of objects of which only the metadata is asked for.
    pub fn partial_metadata() -> Self {
        Self::new("meta.k8s.io/v1", "PartialObjectMetadata")
    }

    /// As objects carry it: `v1` for the core group, else `group/version`.
    pub fn api_version(&self) -> &str {
        &self.api_version
    }

    /// The kind, such as `Pod`.
    pub fn kind(&self) -> &str {
        &self.kind
    }
}

impl From<&ResourceType> for TypeMeta {
    fn from(resource_type: &ResourceType) -> Self {
        Self::new(&resource_type.api_version(), &resource_type.kind)
    }
}

fn string(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
