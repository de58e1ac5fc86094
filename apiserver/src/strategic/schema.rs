//! What the types of built-in kinds say about merging.

use super::StrategicError;
use crate::kinds::{Container, Field, Kinds, Shape, StructId};

/// The type of a value, as far as merging looks at it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Schema {
    Struct(StructId),
    /// A Go struct whose JSON has nothing to do with its fields.
    Opaque(&'static str),
    /// A Go type of this kind, which has no fields.
    Other(&'static str),
}

/// How values of a field are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Strategy {
    /// `merge` or `replace`.
    pub(super) merging: Option<&'static str>,
    /// The field by which the items of a list are told apart.
    pub(super) key: Option<&'static str>,
}

impl Schema {
    /// The kind of the Go type.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Struct(_) | Self::Opaque(_) => "struct",
            Self::Other(kind) => kind,
        }
    }

    /// The type of a field that holds an object.
    pub(super) fn map(self, kinds: &Kinds, key: &str) -> Result<(Self, Strategy), StrategicError> {
        let field = self.field(kinds, key)?;
        let schema = match field.container {
            Container::One | Container::Pointer => of(field.shape),
            Container::List => Self::Other("slice"),
            Container::Map => Self::Other("map"),
        };
        Ok((schema, Strategy::of(field)))
    }

    /// The type of the items of a field that holds a list.
    pub(super) fn list(self, kinds: &Kinds, key: &str) -> Result<(Self, Strategy), StrategicError> {
        let field = self.field(kinds, key)?;
        match field.container {
            Container::List | Container::Pointer => Ok((of(field.shape), Strategy::of(field))),
            Container::One | Container::Map => {
                Err(StrategicError::other("expected slice or array type, but got: struct"))
            }
        }
    }

    fn field<'a>(self, kinds: &'a Kinds, key: &str) -> Result<&'a Field, StrategicError> {
        let unknown = |name: &str| {
            let key = serde_json::Value::from(key);
            StrategicError::other(format!("unable to find api field in struct {name} for the json field {key}"))
        };
        match self {
            Self::Struct(id) => kinds.field(id, key).ok_or_else(|| unknown(kinds.structure(id).name)),
            Self::Opaque(name) => Err(unknown(name)),
            Self::Other(kind) => Err(StrategicError::other(format!(
                "merging an object in json but data type is not struct, instead is: {kind}"
            ))),
        }
    }
}

fn of(shape: Shape) -> Schema {
    match shape {
        Shape::Struct(id) => Schema::Struct(id),
        Shape::String => Schema::Other("string"),
        Shape::Bool => Schema::Other("bool"),
        Shape::Int32 => Schema::Other("int32"),
        Shape::Int64 => Schema::Other("int64"),
        Shape::Double => Schema::Other("float64"),
        Shape::Bytes | Shape::Strings => Schema::Other("slice"),
        Shape::Time => Schema::Opaque("Time"),
        Shape::MicroTime => Schema::Opaque("MicroTime"),
        Shape::Quantity => Schema::Opaque("Quantity"),
        Shape::IntOrString => Schema::Opaque("IntOrString"),
        Shape::RawExtension => Schema::Opaque("RawExtension"),
        Shape::FieldsV1 => Schema::Opaque("FieldsV1"),
        Shape::Json => Schema::Opaque("JSON"),
        Shape::SchemaOrArray => Schema::Opaque("JSONSchemaPropsOrArray"),
        Shape::SchemaOrBool => Schema::Opaque("JSONSchemaPropsOrBool"),
        Shape::SchemaOrStrings => Schema::Opaque("JSONSchemaPropsOrStringArray"),
    }
}

impl Strategy {
    /// `retainKeys` only tells clients to name the keys to be retained.
    fn of(field: &Field) -> Self {
        let merging = field.patch_strategy.and_then(|all| all.split(',').find(|one| *one != "retainKeys"));
        Self { merging, key: field.merge_key }
    }
}
