//! The built-in kinds: what discovery says of them, the fields of their types, and what follows from that.
//!
//! Everything here is read from one table of facts (`table.txt`, made from the types and discovery documents of
//! Kubernetes by `tests/controlplane/kinds`), parsed once by the caller into a [`Kinds`] value.
//!
//! ```
//! use cloudcoil_apiserver::kinds::Kinds;
//!
//! let kinds = Kinds::builtin();
//! let deployments = kinds.resource("apps", "v1", "deployments").expect("a built-in resource");
//! assert_eq!(deployments.short_names, ["deploy"]);
//! assert!(deployments.namespaced && deployments.allows("watch"));
//!
//! let kind = kinds.kind("apps", "v1", "Deployment").expect("a built-in kind");
//! let spec = kinds.field(kind.structure, "spec").expect("a field of every Deployment");
//! assert!(spec.structure().is_some() && spec.omit_empty);
//! ```

mod form;
#[doc(hidden)]
pub mod fuzz;
#[cfg(test)]
mod golden;
mod json;
mod node;
mod protobuf;
mod table;
mod time;
mod wire;

use std::collections::BTreeMap;

pub(crate) use json::MAX_STRICT;
pub use json::{JsonError, JsonObject};
pub(crate) use node::Node;
pub use protobuf::ProtobufError;
pub use table::TableError;
pub use wire::Fault;

/// Every built-in group, resource, kind and type, in the order of the discovery documents.
///
/// All text in it borrows from the table, which is part of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kinds {
    groups: Vec<Group>,
    resources: Vec<Resource>,
    resource_index: BTreeMap<[&'static str; 3], usize>,
    kinds: BTreeMap<[&'static str; 3], Kind>,
    everywhere: BTreeMap<&'static str, StructId>,
    structs: Vec<Struct>,
    /// The type of a schema in a CustomResourceDefinition, which some shapes hold.
    schema: StructId,
    object_meta: StructId,
}

impl Kinds {
    /// The built-in kinds of the Kubernetes release this crate was made for.
    pub fn builtin() -> Self {
        Self::parse(include_str!("table.txt")).expect("the table is part of the crate, and a test parses it")
    }

    /// Reads a table in the format that the head of `table.txt` describes.
    ///
    /// # Errors
    /// The first line that does not fit the format, or names a type the table lacks.
    pub fn parse(table: &'static str) -> Result<Self, TableError> {
        table::parse(table)
    }

    /// The API groups in discovery order, the core group (named "") first.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Every resource, grouped by group and version as in [`groups`](Self::groups), by name within.
    pub fn resources(&self) -> &[Resource] {
        &self.resources
    }

    /// The resource of this plural name, such as `("apps", "v1", "deployments")`.
    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&Resource> {
        self.resource_index.get(&[group, version, plural]).map(|&index| &self.resources[index])
    }

    /// The kind of this name: one of a resource or subresource, or `Status` or the options of a request
    /// (`DeleteOptions`, …), which exist in every group and version.
    pub fn kind(&self, group: &str, version: &str, kind: &str) -> Option<Kind> {
        if let Some(found) = self.kinds.get(&[group, version, kind]) {
            return Some(*found);
        }
        let (name, structure) = self.everywhere.get_key_value(kind).filter(|_| !version.is_empty())?;
        Some(Kind { kind: name, structure: *structure })
    }

    /// The type with this id.
    pub fn structure(&self, id: StructId) -> &Struct {
        &self.structs[usize::from(id.0)]
    }

    /// The type of every object's `metadata`, custom resources included.
    pub fn object_meta(&self) -> StructId {
        self.object_meta
    }

    /// The field of this JSON name, looked up through inlined types as JSON does.
    pub fn field(&self, id: StructId, name: &str) -> Option<&Field> {
        self.structure(id).fields.iter().find_map(|field| match field.structure() {
            Some(inlined) if field.is_inlined() => self.field(inlined, name),
            _ => (field.name == name).then_some(field),
        })
    }
}

/// An API group with the versions that are served, the preferred one first.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Group {
    /// The name; "" for the core group.
    pub name: &'static str,
    /// The versions, the preferred one first.
    pub versions: Vec<&'static str>,
}

/// A resource as discovery describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resource {
    /// The API group; "" for the core group.
    pub group: &'static str,
    /// The version within the group.
    pub version: &'static str,
    /// The name in URLs.
    pub plural: &'static str,
    /// The name of one, in lower case.
    pub singular: &'static str,
    /// Whether its objects live in a namespace.
    pub namespaced: bool,
    /// The kind of its objects, in the same group and version.
    pub kind: &'static str,
    /// What may be done, in discovery's words and order; virtual resources (`TokenReview`) only create.
    pub verbs: Vec<&'static str>,
    /// Abbreviations for command lines.
    pub short_names: Vec<&'static str>,
    /// The sets it belongs to, such as `all`.
    pub categories: Vec<&'static str>,
    /// Discovery's hash of how the object is stored; virtual resources have none.
    pub storage_version_hash: Option<&'static str>,
    /// Its subresources, by name.
    pub subresources: Vec<Subresource>,
}

impl Resource {
    /// Whether this verb of discovery is allowed on the resource itself.
    pub fn allows(&self, verb: &str) -> bool {
        self.verbs.contains(&verb)
    }

    /// The subresource of this name, such as `status`.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }
}

/// A subresource as discovery describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Subresource {
    /// The name after the object's in URLs, such as `status`.
    pub name: &'static str,
    /// The group of its kind, which differs from the resource's for `scale`, `eviction` and `token`.
    pub group: &'static str,
    /// The version of its kind.
    pub version: &'static str,
    /// The kind of its bodies. Those of connections (`PodExecOptions`) are no [`Kinds::kind`]: they are queries.
    pub kind: &'static str,
    /// What may be done, in discovery's words and order.
    pub verbs: Vec<&'static str>,
}

/// A kind that a body can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kind {
    /// The kind's name.
    pub kind: &'static str,
    /// Its type.
    pub structure: StructId,
}

/// Which type of a [`Kinds`] value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StructId(u16);

/// A type with named fields.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Struct {
    /// The name of the type in Go and, after the package, in OpenAPI: `PodSpec`.
    pub name: &'static str,
    /// The OpenAPI package: `io.k8s.api.core.v1`.
    pub package: &'static str,
    /// The Go package, whose last part is the version.
    go_package: &'static str,
    /// Whether server-side apply owns it as one value (`x-kubernetes-map-type: atomic`).
    pub atomic: bool,
    /// The fields as declared, inlined types among them.
    pub fields: Vec<Field>,
}

/// A field of a [`Struct`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Field {
    /// The name in JSON; "" for an inlined type, whose fields appear in place of it.
    pub name: &'static str,
    /// What encloses the values.
    pub container: Container,
    /// What the values are.
    pub shape: Shape,
    /// The number on the protobuf wire; 0 when it is not sent.
    pub number: u32,
    /// JSON leaves it out when it is false, 0, empty or absent; never a [`Container::One`] of a type.
    pub omit_empty: bool,
    /// JSON leaves it out when it is the zero value of its type.
    pub omit_zero: bool,
    /// OpenAPI lists it as required.
    pub required: bool,
    /// `patchStrategy` of strategic merge patch: `merge`, `replace`, `retainKeys` or a list of them by comma.
    pub patch_strategy: Option<&'static str>,
    /// `patchMergeKey` of strategic merge patch.
    pub merge_key: Option<&'static str>,
    /// How server-side apply merges a list.
    pub list: ListType,
    /// Whether server-side apply owns the map or type in it as one value.
    pub atomic_map: bool,
    /// Go's name of the list or map, if it has one.
    go_type: Option<&'static str>,
    /// Go's name of the scalar, if it has one.
    go_element: Option<&'static str>,
}

impl Field {
    /// The type of its values, when they have named fields.
    pub fn structure(&self) -> Option<StructId> {
        match self.shape {
            Shape::Struct(id) => Some(id),
            _ => None,
        }
    }

    /// Whether its own fields appear in place of it.
    pub fn is_inlined(&self) -> bool {
        self.name.is_empty()
    }
}

/// What encloses the values of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "decoders must handle every case")]
pub enum Container {
    /// One value, which is never absent: unset and empty are the same.
    One,
    /// One value or none: an empty value is not the same as none.
    Pointer,
    /// A list.
    List,
    /// A map from strings.
    Map,
}

/// What a value is, and so its forms in JSON and protobuf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "decoders must handle every case")]
pub enum Shape {
    /// Text.
    String,
    /// True or false.
    Bool,
    /// A signed number of 32 bits.
    Int32,
    /// A signed number of 64 bits.
    Int64,
    /// A floating-point number of 64 bits.
    Double,
    /// Bytes; base64 in JSON.
    Bytes,
    /// A time in seconds; RFC 3339 in JSON, `null` when unset.
    Time,
    /// A time in microseconds; RFC 3339 with six digits in JSON, `null` when unset.
    MicroTime,
    /// A quantity such as `500m`; its canonical text in JSON.
    Quantity,
    /// A number of 32 bits or a text.
    IntOrString,
    /// Any JSON value, an object of some kind as a rule.
    RawExtension,
    /// The set of fields of `managedFields`, a JSON object.
    FieldsV1,
    /// Any JSON value within a CustomResourceDefinition's schema.
    Json,
    /// A schema or a list of schemas.
    SchemaOrArray,
    /// A schema or a bool.
    SchemaOrBool,
    /// A schema or a list of texts.
    SchemaOrStrings,
    /// A list of texts that is a value of its own, as in a map of lists.
    Strings,
    /// A type with named fields.
    Struct(StructId),
}

/// How server-side apply merges a list (`x-kubernetes-list-type`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "Kubernetes has these three, and merging must handle every case")]
pub enum ListType {
    /// As one value; also of fields that are no lists.
    Atomic,
    /// As a set of scalars.
    Set,
    /// As items identified by these fields together.
    Map(Vec<&'static str>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_resource_is_found_by_its_plural_and_its_kind_has_a_type() {
        let kinds = Kinds::builtin();
        assert!(kinds.resources().len() > 60);
        for resource in kinds.resources() {
            assert_eq!(kinds.resource(resource.group, resource.version, resource.plural), Some(resource));
            let kind = kinds.kind(resource.group, resource.version, resource.kind).expect(resource.kind);
            assert_eq!(kinds.structure(kind.structure).name, resource.kind);
            assert!(kinds.field(kind.structure, "apiVersion").is_some(), "{} has type meta", resource.kind);
        }
        assert_eq!(kinds.resource("apps", "v1", "pods"), None);
    }

    #[test]
    fn every_subresource_that_is_no_connection_has_a_kind() {
        let kinds = Kinds::builtin();
        for resource in kinds.resources() {
            for sub in &resource.subresources {
                let connects = sub.kind.ends_with("Options");
                assert_eq!(kinds.kind(sub.group, sub.version, sub.kind).is_none(), connects, "{}", sub.kind);
            }
        }
        let deployments = kinds.resource("apps", "v1", "deployments").unwrap();
        let scale = deployments.subresource("scale").unwrap();
        assert_eq!((scale.group, scale.version, scale.kind), ("autoscaling", "v1", "Scale"));
    }

    #[test]
    fn groups_keep_the_order_of_discovery_with_the_preferred_version_first() {
        let kinds = Kinds::builtin();
        assert_eq!(kinds.groups()[0], Group { name: "", versions: vec!["v1"] });
        let autoscaling = kinds.groups().iter().find(|group| group.name == "autoscaling").unwrap();
        assert_eq!(autoscaling.versions, ["v2", "v1"]);
        let mut listed: Vec<_> = kinds.resources().iter().map(|r| (r.group, r.version)).collect();
        listed.dedup();
        let grouped: Vec<_> = kinds.groups().iter().flat_map(|g| g.versions.iter().map(|v| (g.name, *v))).collect();
        assert_eq!(listed, grouped);
    }

    #[test]
    fn options_are_kinds_in_every_group_and_version() {
        let kinds = Kinds::builtin();
        let core = kinds.kind("", "v1", "DeleteOptions").unwrap();
        assert_eq!(kinds.kind("example.com", "v3beta1", "DeleteOptions"), Some(core));
        assert_eq!(kinds.kind("example.com", "v3beta1", "Pod"), None);
    }

    #[test]
    fn fields_are_found_through_inlined_types() {
        let kinds = Kinds::builtin();
        let pod = kinds.kind("", "v1", "Pod").unwrap().structure;
        let spec = kinds.field(pod, "spec").and_then(Field::structure).unwrap();
        let containers = kinds.field(spec, "containers").unwrap();
        assert_eq!((containers.container, containers.merge_key), (Container::List, Some("name")));
        assert_eq!(containers.list, ListType::Map(vec!["name"]));
        let volume = kinds.field(spec, "volumes").and_then(Field::structure).unwrap();
        assert_eq!(kinds.field(volume, "emptyDir").unwrap().container, Container::Pointer);
        assert_eq!(kinds.field(volume, ""), None);
    }
}
