//! Strategic merge patches: what the types of built-in kinds say about merging.

#[cfg(test)]
mod golden;

use cloudcoil_core::patch::{MergeSchema, MergeStrategy, Merging, StrategicError, strategic_merge};
use serde_json::{Map, Value};

use crate::kinds::{Container, Field, Kinds, Shape, StructId};

/// Applies `patch` to `original`, an object of the type `structure`.
///
/// # Errors
/// What the API server says of a patch whose directives are malformed or do not fit the type. Its fields may still be
/// unknown or of the wrong type: that shows when the result is decoded.
pub(crate) fn apply(
    kinds: &Kinds,
    structure: StructId,
    original: Map<String, Value>,
    patch: Map<String, Value>,
) -> Result<Map<String, Value>, StrategicError> {
    strategic_merge(&Schema { kinds, of: Type::Struct(structure) }, original, patch)
}

/// A type among those of the built-in kinds.
#[derive(Clone, Copy)]
struct Schema<'a> {
    kinds: &'a Kinds,
    of: Type,
}

/// The type of a value, as far as merging looks at it.
#[derive(Clone, Copy)]
enum Type {
    Struct(StructId),
    /// A Go struct whose JSON has nothing to do with its fields.
    Opaque(&'static str),
    /// A Go type of this kind, which has no fields.
    Other(&'static str),
}

impl MergeSchema for Schema<'_> {
    fn object(&self, name: &str) -> Result<(Self, MergeStrategy), StrategicError> {
        let field = self.field(name)?;
        let of = match field.container {
            Container::One | Container::Pointer => of(field.shape),
            Container::List => Type::Other("slice"),
            Container::Map => Type::Other("map"),
        };
        Ok((Self { of, ..*self }, strategy(field)))
    }

    fn list(&self, name: &str) -> Result<(Self, MergeStrategy), StrategicError> {
        let field = self.field(name)?;
        match field.container {
            Container::List | Container::Pointer => Ok((Self { of: of(field.shape), ..*self }, strategy(field))),
            Container::One | Container::Map => {
                Err(StrategicError::Other("expected slice or array type, but got: struct".to_owned()))
            }
        }
    }

    fn kind(&self) -> &str {
        match self.of {
            Type::Struct(_) | Type::Opaque(_) => "struct",
            Type::Other(kind) => kind,
        }
    }
}

impl<'a> Schema<'a> {
    fn field(self, key: &str) -> Result<&'a Field, StrategicError> {
        let unknown = |name: &str| {
            let key = Value::from(key);
            StrategicError::Other(format!("unable to find api field in struct {name} for the json field {key}"))
        };
        match self.of {
            Type::Struct(id) => self.kinds.field(id, key).ok_or_else(|| unknown(self.kinds.structure(id).name)),
            Type::Opaque(name) => Err(unknown(name)),
            Type::Other(kind) => Err(StrategicError::Other(format!(
                "merging an object in json but data type is not struct, instead is: {kind}"
            ))),
        }
    }
}

fn of(shape: Shape) -> Type {
    match shape {
        Shape::Struct(id) => Type::Struct(id),
        Shape::String => Type::Other("string"),
        Shape::Bool => Type::Other("bool"),
        Shape::Int32 => Type::Other("int32"),
        Shape::Int64 => Type::Other("int64"),
        Shape::Double => Type::Other("float64"),
        Shape::Bytes | Shape::Strings => Type::Other("slice"),
        Shape::Time => Type::Opaque("Time"),
        Shape::MicroTime => Type::Opaque("MicroTime"),
        Shape::Quantity => Type::Opaque("Quantity"),
        Shape::IntOrString => Type::Opaque("IntOrString"),
        Shape::RawExtension => Type::Opaque("RawExtension"),
        Shape::FieldsV1 => Type::Opaque("FieldsV1"),
        Shape::Json => Type::Opaque("JSON"),
        Shape::SchemaOrArray => Type::Opaque("JSONSchemaPropsOrArray"),
        Shape::SchemaOrBool => Type::Opaque("JSONSchemaPropsOrBool"),
        Shape::SchemaOrStrings => Type::Opaque("JSONSchemaPropsOrStringArray"),
    }
}

/// `retainKeys` only tells clients to name the keys to be retained.
fn strategy(field: &Field) -> MergeStrategy {
    let merging = field.patch_strategy.and_then(|all| all.split(',').find(|one| *one != "retainKeys"));
    let merging = match merging {
        Some("merge") => Merging::Merge,
        Some("replace") => Merging::Replace,
        _ => Merging::Unsaid,
    };
    MergeStrategy { merging, key: field.merge_key.map(Into::into) }
}
