//! Bodies of built-in kinds as Go's decoder takes them and its encoder gives them back.
//!
//! Empty and absent are the same for most fields, nulls vanish, and a value of the wrong type is refused. What a type
//! does not have is dropped, and named for whoever wants to be strict about it.

use cloudcoil_core::Quantity;
use serde_json::{Map, Value};

use crate::kinds::{Container, Field, Kinds, Shape, StructId};

/// A body in its normal form.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Typed {
    pub(crate) fields: Map<String, Value>,
    /// The paths of fields that the type does not have.
    pub(crate) unknown: Vec<String>,
}

/// Brings `fields` into the normal form of type `id`.
///
/// # Errors
/// What Go's decoder says of the first value that is of the wrong type.
pub(crate) fn normalise(kinds: &Kinds, id: StructId, fields: Map<String, Value>) -> Result<Typed, String> {
    let mut walk = Walk { kinds, unknown: Vec::new() };
    let fields = walk.structure(id, fields, &Path::Root)?;
    Ok(Typed { fields, unknown: walk.unknown })
}

struct Walk<'k> {
    kinds: &'k Kinds,
    unknown: Vec<String>,
}

/// The path of a field: Go's errors name fields alone, ours of unknown fields name the place in lists and maps too.
enum Path<'a> {
    Root,
    Field(&'a Self, &'a str),
    Index(&'a Self, usize),
    Key(&'a Self, &'a str),
}

impl Path<'_> {
    fn fields(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Field(Self::Root, name) => (*name).to_owned(),
            Self::Field(parent, name) => match parent.fields().as_str() {
                "" => (*name).to_owned(),
                path => format!("{path}.{name}"),
            },
            Self::Index(parent, _) | Self::Key(parent, _) => parent.fields(),
        }
    }

    fn full(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Field(Self::Root, name) => (*name).to_owned(),
            Self::Field(parent, name) => format!("{}.{name}", parent.full()),
            Self::Index(parent, index) => format!("{}[{index}]", parent.full()),
            Self::Key(parent, key) => format!("{}.{key}", parent.full()),
        }
    }
}

/// A value of the wrong type, before it is known which field it is in.
struct Mismatch<'a> {
    value: &'a Value,
    wanted: String,
}

impl Walk<'_> {
    fn structure(
        &mut self,
        id: StructId,
        fields: Map<String, Value>,
        path: &Path<'_>,
    ) -> Result<Map<String, Value>, String> {
        let mut normal = Map::new();
        for (name, value) in fields {
            let here = Path::Field(path, &name);
            let Some(field) = self.kinds.field(id, &name).filter(|_| !name.is_empty()) else {
                self.unknown.push(here.full());
                continue;
            };
            if let Some(value) = self.field(id, field, value, &here)? {
                normal.insert(name, value);
            }
        }
        self.fill(id, &mut normal);
        Ok(normal)
    }

    /// Adds what Go's encoder always writes: types that are no pointers, and scalars without `omitempty`.
    fn fill(&self, id: StructId, normal: &mut Map<String, Value>) {
        for field in &self.kinds.structure(id).fields {
            match field.structure() {
                Some(inlined) if field.is_inlined() => self.fill(inlined, normal),
                _ if field.container != Container::One || field.omit_zero => {}
                _ if normal.contains_key(field.name) => {}
                None if field.omit_empty => {}
                Some(inner) => {
                    let mut empty = Map::new();
                    self.fill(inner, &mut empty);
                    normal.insert(field.name.to_owned(), Value::Object(empty));
                }
                None => {
                    if let Some(zero) = zero(field.shape) {
                        normal.insert(field.name.to_owned(), zero);
                    }
                }
            }
        }
    }

    /// The value of a field in its normal form; `None` when it is as good as absent.
    fn field(&mut self, id: StructId, field: &Field, value: Value, path: &Path<'_>) -> Result<Option<Value>, String> {
        let of_struct = self.kinds.structure(id).name;
        if value.is_null() {
            return Ok(None);
        }
        let value = match (field.container, value) {
            (Container::One | Container::Pointer, value) => self.value(of_struct, field.shape, value, path)?,
            (Container::List, Value::Array(list)) => {
                let mut normal = Vec::with_capacity(list.len());
                for (index, value) in list.into_iter().enumerate() {
                    normal.push(self.element(of_struct, field.shape, value, &Path::Index(path, index))?);
                }
                Value::Array(normal)
            }
            (Container::Map, Value::Object(map)) => {
                let mut normal = Map::new();
                for (key, value) in map {
                    let value = self.element(of_struct, field.shape, value, &Path::Key(path, &key))?;
                    normal.insert(key, value);
                }
                Value::Object(normal)
            }
            (container, value) => {
                let inner = self.go_type(field.shape);
                let wanted =
                    if container == Container::List { format!("[]{inner}") } else { format!("map[string]{inner}") };
                return Err(mismatch(of_struct, path, &Mismatch { value: &value, wanted }));
            }
        };
        let is_struct = field.container == Container::One && field.structure().is_some();
        let vanishes = field.container != Container::Pointer
            && (field.omit_empty && !is_struct && is_empty(&value) || field.omit_zero && is_zero(&value));
        Ok((!vanishes).then_some(value))
    }

    /// An element of a list or map, where null is the zero value.
    fn element(&mut self, of: &str, shape: Shape, value: Value, path: &Path<'_>) -> Result<Value, String> {
        let value = match (value, shape) {
            (Value::Null, Shape::Struct(_)) => Value::Object(Map::new()),
            (Value::Null, shape) => zero(shape).unwrap_or(Value::Null),
            (value, _) => value,
        };
        if value.is_null() { Ok(value) } else { self.value(of, shape, value, path) }
    }

    fn value(&mut self, of: &str, shape: Shape, value: Value, path: &Path<'_>) -> Result<Value, String> {
        let fits = match (shape, &value) {
            (Shape::Struct(id), Value::Object(_)) => {
                let Value::Object(fields) = value else { unreachable!("an object by the pattern") };
                return self.structure(id, fields, path).map(Value::Object);
            }
            (Shape::Quantity, Value::Number(number)) => return quantity(&number.to_string()),
            (Shape::Quantity, Value::String(text)) => return quantity(text),
            (Shape::String | Shape::Bytes | Shape::Time | Shape::MicroTime, Value::String(_))
            | (Shape::Bool, Value::Bool(_))
            | (Shape::Double, Value::Number(_))
            | (Shape::IntOrString, Value::String(_))
            | (
                Shape::RawExtension | Shape::Json | Shape::SchemaOrArray | Shape::SchemaOrBool | Shape::SchemaOrStrings,
                _,
            )
            | (Shape::FieldsV1, Value::Object(_))
            | (Shape::Strings, Value::Array(_)) => true,
            (Shape::Int32 | Shape::IntOrString, Value::Number(number)) => {
                number.as_i64().is_some_and(|number| i32::try_from(number).is_ok())
            }
            (Shape::Int64, Value::Number(number)) => number.as_i64().is_some(),
            _ => false,
        };
        if fits {
            return Ok(value);
        }
        Err(mismatch(of, path, &Mismatch { value: &value, wanted: self.go_type(shape) }))
    }

    fn go_type(&self, shape: Shape) -> String {
        match shape {
            Shape::String => "string".to_owned(),
            Shape::Bool => "bool".to_owned(),
            Shape::Int32 => "int32".to_owned(),
            Shape::Int64 => "int64".to_owned(),
            Shape::Double => "float64".to_owned(),
            Shape::Bytes => "[]uint8".to_owned(),
            Shape::Time => "v1.Time".to_owned(),
            Shape::MicroTime => "v1.MicroTime".to_owned(),
            Shape::Quantity => "resource.Quantity".to_owned(),
            Shape::IntOrString => "intstr.IntOrString".to_owned(),
            Shape::FieldsV1 => "v1.FieldsV1".to_owned(),
            Shape::Strings => "[]string".to_owned(),
            Shape::Struct(id) => {
                let structure = self.kinds.structure(id);
                let package = structure.package.rsplit('.').next().unwrap_or_default();
                format!("{package}.{}", structure.name)
            }
            Shape::RawExtension | Shape::Json | Shape::SchemaOrArray | Shape::SchemaOrBool | Shape::SchemaOrStrings => {
                "object".to_owned()
            }
        }
    }
}

fn mismatch(of_struct: &str, path: &Path<'_>, Mismatch { value, wanted }: &Mismatch<'_>) -> String {
    let found = match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(number) if wanted.starts_with("int") => format!("number {number}"),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
    };
    format!("json: cannot unmarshal {found} into Go struct field {of_struct}.{} of type {wanted}", path.fields())
}

fn quantity(text: &str) -> Result<Value, String> {
    Quantity::parse(text).map(|quantity| Value::from(quantity.served())).map_err(|_| {
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'".to_owned()
    })
}

/// What Go writes for a scalar that was never set, where it writes anything of use.
fn zero(shape: Shape) -> Option<Value> {
    match shape {
        Shape::String => Some(Value::from("")),
        Shape::Bool => Some(Value::from(false)),
        Shape::Int32 | Shape::Int64 | Shape::Double => Some(Value::from(0)),
        Shape::Quantity => Some(Value::from("0")),
        _ => None,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.values().all(is_zero),
        value => is_empty(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn normal(group: &str, kind: &str, body: Value) -> Result<Typed, String> {
        let kinds = Kinds::builtin();
        let Value::Object(fields) = body else { panic!("{body}") };
        normalise(&kinds, kinds.kind(group, "v1", kind).unwrap().structure, fields)
    }

    #[test]
    fn nulls_and_empty_fields_vanish_but_pointers_to_zero_stay() {
        let body = json!({
            "metadata": {"name": "a", "generateName": "", "labels": {}, "creationTimestamp": null},
            "spec": {"replicas": 0, "paused": false, "selector": null, "template": {"spec": {"containers": [
                {"name": "c", "image": "", "resources": null, "env": [{"name": "E", "value": ""}]}]}}},
        });
        let typed = normal("apps", "Deployment", body).unwrap();
        assert_eq!(
            Value::Object(typed.fields),
            json!({
                "metadata": {"name": "a"},
                "spec": {"replicas": 0, "strategy": {}, "template": {"metadata": {}, "spec": {"containers": [
                    {"name": "c", "resources": {}, "env": [{"name": "E"}]}]}}},
                "status": {},
            })
        );
        assert_eq!(typed.unknown, [""; 0]);
    }

    #[test]
    fn unknown_fields_are_dropped_and_named() {
        let body = json!({"foo": 1, "metadata": {"odd": {}}, "spec": {"containers": [{"name": "c"}, {"nam": "d"}]}});
        let typed = normal("", "Pod", body).unwrap();
        assert_eq!(typed.unknown, ["foo", "metadata.odd", "spec.containers[1].nam"]);
    }

    #[test]
    fn a_value_of_the_wrong_type_is_refused_in_go_s_words() {
        for (group, kind, body, message) in [
            ("", "ConfigMap", json!({"data": {"x": 1}}), "number into Go struct field ConfigMap.data of type string"),
            (
                "apps",
                "Deployment",
                json!({"spec": {"replicas": "3"}}),
                "string into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                "apps",
                "Deployment",
                json!({"spec": {"replicas": 1.5}}),
                "number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                "",
                "Pod",
                json!({"spec": {"containers": {}}}),
                "object into Go struct field PodSpec.spec.containers of type []v1.Container",
            ),
            ("", "Pod", json!({"spec": []}), "array into Go struct field Pod.spec of type v1.PodSpec"),
            (
                "",
                "Secret",
                json!({"metadata": {"labels": "x"}}),
                "string into Go struct field ObjectMeta.metadata.labels of type map[string]string",
            ),
        ] {
            let error = normal(group, kind, body).unwrap_err();
            assert_eq!(error, format!("json: cannot unmarshal {message}"));
        }
    }

    #[test]
    fn a_null_in_a_map_or_list_is_the_zero_value() {
        let typed = normal("", "ConfigMap", json!({"data": {"x": null}})).unwrap();
        assert_eq!(Value::Object(typed.fields), json!({"metadata": {}, "data": {"x": ""}}));
    }
}
