//! How values are merged and owned, by their type.

use serde_json::Value;

use super::element::Element;
use crate::kinds::{Container, Field, Kinds, ListType, Shape, StructId};
use crate::structural::{self, Additional, Schema};

/// The type of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Type<'s> {
    /// A type of the built-in kinds.
    Struct(StructId),
    /// A field of one.
    Field(&'s Field),
    /// An item of the list or a value of the map in a field.
    Inner(&'s Field),
    /// A value of a custom resource; `root` also has the type and metadata of an object of Kubernetes, and what is
    /// under a value that keeps unknown fields does so too.
    Custom { schema: &'s Schema, root: bool, preserves: bool },
    /// A single value.
    Scalar(Scalar),
    /// Anything: a list is one value, an object is not.
    Deduced,
    /// Anything, as one value.
    Opaque,
    /// What nobody owns and nobody merges.
    Ignored,
}

/// What a single value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Numeric,
    Text,
    Bool,
    Any,
}

/// What a value of a type is to whoever owns it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Atom<'s> {
    Scalar(Scalar),
    List(List<'s>),
    Map(Map<'s>),
}

/// A list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List<'s> {
    pub(crate) keys: Keys<'s>,
    pub(crate) item: Type<'s>,
}

/// How the items of a list are told apart.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Keys<'s> {
    /// Not at all: the list is one value.
    None,
    /// By what they are.
    Whole,
    /// By fields that the table of kinds names.
    Builtin(&'s [&'static str]),
    /// By fields that a definition names.
    Custom(&'s [String]),
}

/// An object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Map<'s> {
    pub(crate) atomic: bool,
    fields: Fields<'s>,
}

#[derive(Clone, Copy, Debug)]
enum Fields<'s> {
    Struct(StructId),
    /// A map of values of one type.
    All(Type<'s>),
    Custom {
        schema: &'s Schema,
        root: bool,
        preserves: bool,
    },
}

/// What a field of an object is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found<'s> {
    /// A field that the type names.
    Named(Type<'s>),
    /// A key of a map.
    Key(Type<'s>),
    /// No field of the type.
    Unknown,
}

impl<'s> Found<'s> {
    /// The type of the field; of one that the type does not have, nothing is known.
    pub(crate) const fn of(self) -> Type<'s> {
        match self {
            Self::Named(of) | Self::Key(of) => of,
            Self::Unknown => Type::Deduced,
        }
    }
}

/// Types with the table that they refer to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Types<'s> {
    pub(crate) kinds: &'s Kinds,
}

impl<'s> Types<'s> {
    /// What `value` of type `of` is. What the type leaves open, the value decides; without one it is an object.
    pub(crate) fn atom(self, of: Type<'s>, value: Option<&Value>) -> Atom<'s> {
        match of {
            Type::Struct(id) => self.structure(id, false),
            Type::Field(field) => self.field(field),
            Type::Inner(field) => self.shape(field),
            Type::Custom { schema, root, preserves } => custom(schema, root, preserves, value),
            Type::Scalar(scalar) => Atom::Scalar(scalar),
            Type::Deduced => untyped(value, Map { atomic: false, fields: Fields::All(Type::Deduced) }),
            Type::Opaque | Type::Ignored => untyped(value, Map { atomic: true, fields: Fields::All(Type::Opaque) }),
        }
    }

    fn structure(self, id: StructId, atomic: bool) -> Atom<'s> {
        let atomic = atomic || self.kinds.structure(id).atomic;
        Atom::Map(Map { atomic, fields: Fields::Struct(id) })
    }

    fn field(self, field: &'s Field) -> Atom<'s> {
        match field.container {
            Container::One | Container::Pointer => self.shape(field),
            Container::List => {
                let keys = match &field.list {
                    ListType::Atomic => Keys::None,
                    ListType::Set => Keys::Whole,
                    ListType::Map(keys) => Keys::Builtin(keys),
                };
                Atom::List(List { keys, item: Type::Inner(field) })
            }
            Container::Map => Atom::Map(Map { atomic: field.atomic_map, fields: Fields::All(Type::Inner(field)) }),
        }
    }

    fn shape(self, field: &'s Field) -> Atom<'s> {
        match field.shape {
            Shape::String | Shape::Bytes => Atom::Scalar(Scalar::Text),
            Shape::Bool => Atom::Scalar(Scalar::Bool),
            Shape::Int32 | Shape::Int64 | Shape::Double => Atom::Scalar(Scalar::Numeric),
            Shape::Time | Shape::MicroTime | Shape::Quantity | Shape::IntOrString => Atom::Scalar(Scalar::Any),
            Shape::RawExtension => Atom::Map(Map { atomic: true, fields: Fields::All(Type::Opaque) }),
            Shape::FieldsV1 | Shape::Json | Shape::SchemaOrArray | Shape::SchemaOrBool | Shape::SchemaOrStrings => {
                Atom::Map(Map { atomic: false, fields: Fields::All(Type::Deduced) })
            }
            Shape::Strings => Atom::List(List { keys: Keys::None, item: Type::Scalar(Scalar::Text) }),
            Shape::Struct(id) => self.structure(id, field.atomic_map),
        }
    }

    /// The field of this name.
    pub(crate) fn find(self, map: &Map<'s>, name: &str) -> Found<'s> {
        match map.fields {
            Fields::Struct(id) if id == self.kinds.object_meta() && name == "managedFields" => {
                Found::Named(Type::Ignored)
            }
            Fields::Struct(id) => match self.kinds.field(id, name) {
                Some(field) => Found::Named(open(field)),
                None if self.kinds.structure(id).fields.is_empty() => Found::Key(Type::Deduced),
                None => Found::Unknown,
            },
            Fields::All(of) => Found::Key(of),
            Fields::Custom { root: true, .. } if name == "metadata" => {
                Found::Named(Type::Struct(self.kinds.object_meta()))
            }
            Fields::Custom { root: true, .. } if matches!(name, "apiVersion" | "kind") => {
                Found::Named(Type::Scalar(Scalar::Text))
            }
            Fields::Custom { schema, preserves, .. } => {
                let preserves = preserves || schema.preserves_unknown;
                let of = |schema: &'s Schema| Type::Custom { schema, root: schema.embedded, preserves };
                match (schema.properties.get(name), &schema.additional) {
                    (Some(property), _) => Found::Named(of(property)),
                    (None, Additional::Of(schema)) => Found::Key(of(schema)),
                    (None, Additional::Any) => Found::Key(Type::Deduced),
                    (None, Additional::Unsaid) if preserves || schema.properties.is_empty() => {
                        Found::Key(Type::Deduced)
                    }
                    (None, _) => Found::Unknown,
                }
            }
        }
    }

    /// The element that an item of a list is found by.
    ///
    /// # Errors
    /// What keeps the item from being told from others.
    pub(crate) fn element(self, list: &List<'s>, item: &Value) -> Result<Element, String> {
        let keys: Vec<&str> = match list.keys {
            Keys::None => return Err("invalid indexing of non-associative list".to_owned()),
            Keys::Whole => return whole(item),
            Keys::Builtin(keys) => keys.to_vec(),
            Keys::Custom(keys) => keys.iter().map(String::as_str).collect(),
        };
        let fields = match item {
            Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
            Value::Object(fields) => fields,
            _ => return Err("associative list with keys may not have non-map elements".to_owned()),
        };
        let value = |name: &&str| {
            let value = fields.get(*name).cloned().or_else(|| self.key_default(list, name))?;
            Some(((*name).to_owned(), value))
        };
        let key: Vec<_> = keys.iter().filter_map(value).collect();
        if key.is_empty() && !keys.is_empty() {
            let quoted: Vec<_> = keys.iter().map(|key| Value::from(*key).to_string()).collect();
            let quoted = quoted.join(" ");
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{quoted}] (and doesn't have \
                 default values for any key fields)"
            ));
        }
        Ok(Element::key(key))
    }

    /// What stands for a key field that an item leaves out.
    fn key_default(self, list: &List<'s>, name: &str) -> Option<Value> {
        match list.item {
            Type::Inner(field) => {
                let id = field.structure()?;
                let key = self.kinds.field(id, name)?;
                if name == "protocol" {
                    return Some(Value::from("TCP"));
                }
                let named = self.kinds.structure(id).name == "LocalObjectReference";
                match key.shape {
                    Shape::String if key.required || named => Some(Value::from("")),
                    Shape::Int32 | Shape::Int64 if key.required => Some(Value::from(0)),
                    _ => None,
                }
            }
            Type::Custom { schema, .. } => schema.properties.get(name)?.default.clone(),
            _ => None,
        }
    }
}

/// The type of a field whose value its Go type leaves open.
fn open(field: &Field) -> Type<'_> {
    match (field.container, field.shape) {
        (
            Container::One | Container::Pointer,
            Shape::Json | Shape::SchemaOrArray | Shape::SchemaOrBool | Shape::SchemaOrStrings,
        ) => Type::Deduced,
        (Container::One | Container::Pointer, Shape::RawExtension) => Type::Opaque,
        _ => Type::Field(field),
    }
}

fn whole(item: &Value) -> Result<Element, String> {
    let fault = match item {
        Value::Object(_) => "associative list without keys has an element that's a map type",
        Value::Array(_) => "not supported: associative list with lists as elements",
        Value::Null => "associative list without keys has an element that's an explicit null",
        scalar => return Ok(Element::Item(super::element::Scalar(scalar.clone()))),
    };
    Err(fault.to_owned())
}

fn untyped<'s>(value: Option<&Value>, map: Map<'s>) -> Atom<'s> {
    match value {
        Some(Value::Array(_)) => Atom::List(List { keys: Keys::None, item: Type::Opaque }),
        Some(Value::String(_) | Value::Number(_) | Value::Bool(_)) => Atom::Scalar(Scalar::Any),
        Some(Value::Object(_) | Value::Null) | None => Atom::Map(map),
    }
}

fn custom<'s>(schema: &'s Schema, root: bool, preserves: bool, value: Option<&Value>) -> Atom<'s> {
    let map = Map { atomic: schema.atomic_map, fields: Fields::Custom { schema, root, preserves } };
    let list = || {
        let keys = match &schema.list {
            structural::ListType::Atomic => Keys::None,
            structural::ListType::Set => Keys::Whole,
            structural::ListType::Map(keys) => Keys::Custom(keys),
        };
        let preserves = preserves || schema.preserves_unknown;
        let item = match schema.items.as_deref() {
            Some(schema) => Type::Custom { schema, root: schema.embedded, preserves },
            None => Type::Opaque,
        };
        Atom::List(List { keys, item })
    };
    match (schema.of, value) {
        (Some(structural::Type::Object), _) => Atom::Map(map),
        (Some(structural::Type::Array), _) => list(),
        (Some(structural::Type::String), _) => Atom::Scalar(Scalar::Text),
        (Some(structural::Type::Integer | structural::Type::Number), _) => Atom::Scalar(Scalar::Numeric),
        (Some(structural::Type::Boolean), _) => Atom::Scalar(Scalar::Bool),
        (None, Some(Value::Array(_))) => list(),
        (None, value) => untyped(value, map),
    }
}
