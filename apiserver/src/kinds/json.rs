//! Decodes JSON bodies of built-in kinds as the API server does: into the types of their fields, and back.
//!
//! What comes out holds known fields only, in the forms the API server answers with (before defaulting): times in
//! UTC, canonical quantities, no empty `omitempty` fields, zero values where a field is never left out.

use std::collections::BTreeSet;

use cloudcoil_core::quantity::{Quantity, QuantityError, QuantityFault};
use serde_json::{Map, Number, Value};
use thiserror::Error;

use super::form::{Values, base64, canonical_base64, double};
use super::node::Node;
use super::time::{UNSET, parse, rfc3339};
use super::{Container, Field, Kinds, Shape, StructId};

/// A body that decodes, with what strict field validation has to say of it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct JsonObject {
    /// The object as the API server writes it, without unknown fields.
    pub object: Map<String, Value>,
    /// What strict validation reports, in the order of the body: `unknown field "spec.foo"` or
    /// `duplicate field "spec.replicas"`; at most 100, none twice.
    ///
    /// See <https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation>.
    pub strict: Vec<String>,
}

/// Why a JSON body is no object of its kind, in the API server's words.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum JsonError {
    /// The body is no JSON, or nested too deep.
    #[error("{0}")]
    Syntax(String),
    /// A value is of another type than its field.
    #[error("json: cannot unmarshal {found} into Go {} of type {expected}", place(.owner, .path))]
    Type {
        /// What the value is: `string`, `number 1.5`, `object`, ….
        found: String,
        /// The name of the type that has the field; empty when the body itself is at fault.
        owner: &'static str,
        /// The fields from the body to the value, joined by dots.
        path: String,
        /// The Go name of the type it should have.
        expected: String,
    },
    /// A text or number that its type does not take, such as a malformed quantity.
    #[error("{reason}")]
    Value {
        /// The fields from the body to the value, joined by dots.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
}

fn place(owner: &str, path: &str) -> String {
    if owner.is_empty() { "value".into() } else { format!("struct field {owner}.{path}") }
}

impl Kinds {
    /// Decodes a JSON body into the type of its kind. Texts that are times, quantities or base64 are checked;
    /// whether values make sense together is not.
    ///
    /// ```
    /// # use cloudcoil_apiserver::kinds::Kinds;
    /// let kinds = Kinds::builtin();
    /// let deployment = kinds.kind("apps", "v1", "Deployment").expect("a built-in kind").structure;
    /// let body = br#"{"kind": "Deployment", "spec": {"replicas": 3, "foo": 1}}"#;
    /// assert_eq!(kinds.decode_json(deployment, body).expect("a Deployment").strict, [r#"unknown field "spec.foo""#]);
    ///
    /// let error = kinds.decode_json(deployment, br#"{"spec": {"replicas": "3"}}"#).unwrap_err();
    /// let expected = "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32";
    /// assert_eq!(error.to_string(), expected);
    /// ```
    ///
    /// # Errors
    /// The error the API server gives: of the value that is no time, quantity or the like, else of the first value
    /// of a wrong type.
    pub fn decode_json(&self, id: StructId, body: &[u8]) -> Result<JsonObject, JsonError> {
        let node = serde_json::from_slice(body).map_err(|error| JsonError::Syntax(error.to_string()))?;
        self.decode_node(id, node)
    }

    /// The same for an object that is parsed already, such as the outcome of a patch.
    ///
    /// # Errors
    /// See [`decode_json`](Self::decode_json).
    pub fn canonicalize(&self, id: StructId, object: Value) -> Result<JsonObject, JsonError> {
        self.decode_node(id, object.into())
    }

    /// The same for a tree that may have fields twice.
    pub(crate) fn decode_node(&self, id: StructId, node: Node) -> Result<JsonObject, JsonError> {
        let mut reader = Reader::new(self);
        let read = reader.value(Wanted { container: Container::One, shape: Shape::Struct(id), field: None }, node);
        if let Some(error) = read.as_ref().err().or(reader.mismatch.as_ref()) {
            return Err(error.clone());
        }
        match read {
            Ok(Some(Value::Object(object))) => Ok(JsonObject { object, strict: reader.strict }),
            // A body of null sets nothing.
            _ => Ok(JsonObject { object: self.assemble(id, Values::new()), strict: reader.strict }),
        }
    }
}

/// What a value reads as: `None` for null, for nothing in a list or map, and for what is of a wrong type. An error
/// is a fault at which Go stops reading.
type Read = Result<Option<Value>, JsonError>;

/// What a value should be.
#[derive(Clone, Copy)]
struct Wanted<'k> {
    container: Container,
    shape: Shape,
    field: Option<&'k Field>,
}

impl<'k> Wanted<'k> {
    /// An item of the list or a value of the map.
    fn element(self) -> Self {
        Self { container: Container::One, ..self }
    }

    fn go_name(self, kinds: &Kinds) -> String {
        let element = match self.shape {
            Shape::Struct(id) => {
                let structure = kinds.structure(id);
                let version = structure.go_package.rsplit('/').next().unwrap_or_default();
                format!("{version}.{}", structure.name)
            }
            shape => self.field.and_then(|field| field.go_element).unwrap_or_else(|| go_name(shape)).into(),
        };
        match (self.container, self.field.and_then(|field| field.go_type)) {
            (Container::One | Container::Pointer, _) => element,
            (_, Some(name)) => name.into(),
            (Container::List, None) => format!("[]{element}"),
            (Container::Map, None) => format!("map[string]{element}"),
        }
    }
}

struct Reader<'k> {
    kinds: &'k Kinds,
    /// The way to the value being read, as strict validation writes it.
    path: String,
    /// The same in Go's errors: no indices and keys, but the names of inlined types.
    fields: Vec<&'static str>,
    /// The type whose field is being read; of what is read apart, the type around it.
    owner: &'static str,
    /// How many of the values around this one Go reads apart: strict validation does not look into them, and a
    /// fault in them ends reading.
    apart: usize,
    strict: Vec<String>,
    /// The first value of a wrong type, after which Go reads on.
    mismatch: Option<JsonError>,
}

impl<'k> Reader<'k> {
    fn new(kinds: &'k Kinds) -> Self {
        let (path, fields, strict) = (String::new(), Vec::new(), Vec::new());
        Self { kinds, path, fields, owner: "", apart: 0, strict, mismatch: None }
    }

    fn value(&mut self, wanted: Wanted<'k>, node: Node) -> Read {
        match (wanted.container, node) {
            (_, Node::Null) => Ok(None),
            (Container::List, Node::List(items)) => self.list(wanted.element(), items),
            (Container::Map, Node::Object(entries)) => self.map(wanted.element(), entries),
            (Container::List | Container::Map, node) => self.mismatch(wanted, node.sort()),
            (Container::One | Container::Pointer, node) => self.single(wanted, node),
        }
    }

    fn list(&mut self, wanted: Wanted<'k>, nodes: Vec<Node>) -> Read {
        let outside = self.path.len();
        let mut items = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.into_iter().enumerate() {
            self.path.push_str(&format!("[{index}]"));
            let item = self.value(wanted, node)?;
            self.path.truncate(outside);
            items.push(item.unwrap_or_else(|| self.kinds.zero_element(wanted.shape)));
        }
        // The API server's storage does not tell an empty list from none.
        Ok((!items.is_empty()).then_some(Value::Array(items)))
    }

    fn map(&mut self, wanted: Wanted<'k>, entries: Vec<(String, Node)>) -> Read {
        let outside = self.path.len();
        let mut map = Map::new();
        for (key, node) in entries {
            if map.contains_key(&key) {
                self.report("duplicate", &key);
            }
            self.enter(&key);
            let value = self.value(wanted, node)?;
            self.path.truncate(outside);
            map.insert(key, value.unwrap_or_else(|| self.kinds.zero_element(wanted.shape)));
        }
        Ok((!map.is_empty()).then_some(Value::Object(map)))
    }

    fn single(&mut self, wanted: Wanted<'k>, node: Node) -> Read {
        match (wanted.shape, node) {
            (Shape::Struct(id), Node::Object(fields)) => self.object(id, fields),
            (Shape::String, Node::Text(text)) => Ok(Some(text.into())),
            (Shape::Bool, Node::Bool(value)) => Ok(Some(value.into())),
            (Shape::Int32 | Shape::Int64, Node::Number(number)) => self.int(wanted, &number),
            (Shape::Double, Node::Number(number)) => Ok(number.as_f64().and_then(double)),
            (Shape::Bytes, Node::Text(text)) => self.bytes(&text),
            (Shape::Bytes, Node::List(items)) => self.listed_bytes(items),
            (Shape::Strings, Node::List(items)) => self.list(Wanted { shape: Shape::String, ..wanted }, items),
            (Shape::RawExtension | Shape::FieldsV1 | Shape::Json, node) => Ok(Some(node.into())),
            (Shape::Time | Shape::MicroTime, Node::Text(text)) => self.time(wanted.shape, &text),
            (Shape::Time | Shape::MicroTime, node) => Err(self.type_error(node.sort(), "string")),
            (Shape::Quantity, node) => self.quantity(node),
            (Shape::IntOrString, node) => self.int_or_string(node),
            (Shape::SchemaOrArray | Shape::SchemaOrBool | Shape::SchemaOrStrings, node) => {
                self.apart += 1;
                let read = self.schema_or(wanted.shape, node);
                self.apart -= 1;
                read
            }
            (_, node) => self.mismatch(wanted, node.sort()),
        }
    }

    fn object(&mut self, id: StructId, nodes: Vec<(String, Node)>) -> Read {
        let outside = (self.path.len(), self.fields.len(), self.owner);
        let mut seen = BTreeSet::new();
        let mut values = Values::new();
        for (name, node) in nodes {
            let Some(field) = self.enter_field(id, &name) else {
                self.report("unknown", &name);
                continue;
            };
            if !seen.insert(field.name) {
                self.path.truncate(outside.0);
                self.report("duplicate", &name);
                self.enter(&name);
            }
            let Field { container, shape, .. } = *field;
            let value = self.value(Wanted { container, shape, field: Some(field) }, node)?;
            self.path.truncate(outside.0);
            self.fields.truncate(outside.1);
            self.owner = outside.2;
            values.insert(field.name, value);
        }
        Ok(Some(self.kinds.assemble(id, values).into()))
    }

    /// Looks a field up and goes down to it.
    fn enter_field(&mut self, id: StructId, name: &str) -> Option<&'k Field> {
        let mut inlined = Vec::new();
        let field = find(self.kinds, id, name, &mut inlined)?;
        self.enter(name);
        self.fields.extend(inlined);
        self.fields.push(field.name);
        if self.apart == 0 {
            self.owner = self.kinds.structure(id).name;
        }
        Some(field)
    }

    fn enter(&mut self, name: &str) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(name);
    }

    fn int(&mut self, wanted: Wanted<'k>, number: &Number) -> Read {
        let fits = |int: i64| wanted.shape == Shape::Int64 || i32::try_from(int).is_ok();
        match number.as_i64().filter(|&int| fits(int)) {
            Some(int) => Ok(Some(int.into())),
            None => self.mismatch(wanted, &format!("number {number}")),
        }
    }

    fn bytes(&mut self, text: &str) -> Read {
        match canonical_base64(text) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(at) => self.read_on(self.value_error(format!("illegal base64 data at input byte {at}"))),
        }
    }

    /// Go takes a list of small numbers for bytes, too.
    fn listed_bytes(&mut self, nodes: Vec<Node>) -> Read {
        let mut bytes = Vec::with_capacity(nodes.len());
        for node in nodes {
            let found = match node {
                Node::Null => Ok(0),
                Node::Number(number) => {
                    number.as_u64().and_then(|n| u8::try_from(n).ok()).ok_or_else(|| format!("number {number}"))
                }
                other => Err(other.sort().into()),
            };
            match found {
                Ok(byte) => bytes.push(byte),
                Err(found) => drop(self.read_on(self.type_error(&found, "uint8"))?),
            }
        }
        Ok(Some(base64(&bytes)))
    }

    fn time(&self, shape: Shape, text: &str) -> Read {
        let micro = shape == Shape::MicroTime;
        let (seconds, micros) = parse(text, micro).map_err(|reason| self.value_error(reason))?;
        if (seconds, micros) == (UNSET, 0) {
            return Ok(Some(Value::Null));
        }
        match rfc3339(seconds, micro.then_some(micros)) {
            Some(time) => Ok(Some(time.into())),
            None => Err(self.value_error(format!("parsing time {text:?}: year out of range"))),
        }
    }

    fn quantity(&self, node: Node) -> Read {
        let text = match node {
            Node::Text(text) => text,
            other => Value::from(other).to_string(),
        };
        match Quantity::parse(text.trim()) {
            Ok(quantity) => Ok(Some(quantity.served().into())),
            Err(error) => Err(self.value_error(quantity_message(&error))),
        }
    }

    fn int_or_string(&self, node: Node) -> Read {
        match node {
            Node::Text(text) => Ok(Some(text.into())),
            Node::Number(number) => match number.as_i64().filter(|&int| i32::try_from(int).is_ok()) {
                Some(int) => Ok(Some(int.into())),
                None => Err(self.type_error(&format!("number {number}"), "int32")),
            },
            other => Err(self.type_error(other.sort(), "int32")),
        }
    }

    fn schema_or(&mut self, shape: Shape, node: Node) -> Read {
        let schema = Wanted { container: Container::One, shape: Shape::Struct(self.kinds.schema), field: None };
        match (shape, node) {
            (_, node @ Node::Object(_)) => self.value(schema, node),
            (Shape::SchemaOrBool, Node::Bool(allows)) => Ok(Some(allows.into())),
            (Shape::SchemaOrBool, _) => Err(self.value_error("boolean or JSON schema expected")),
            (Shape::SchemaOrArray, Node::List(items)) => Ok(Some(self.list(schema, items)?.unwrap_or_default())),
            (_, Node::List(items)) => {
                let strings = Wanted { shape: Shape::String, ..schema };
                Ok(Some(self.list(strings, items)?.unwrap_or_default()))
            }
            _ => Ok(Some(Value::Null)),
        }
    }

    /// Tells strict validation of a field of the object being read, once.
    fn report(&mut self, what: &str, name: &str) {
        if self.apart > 0 || self.strict.len() >= MAX_STRICT {
            return;
        }
        let dot = if self.path.is_empty() { "" } else { "." };
        let report = format!("{what} field {:?}", format!("{}{dot}{name}", self.path));
        if !self.strict.contains(&report) {
            self.strict.push(report);
        }
    }

    fn mismatch(&mut self, wanted: Wanted<'k>, found: &str) -> Read {
        self.read_on(self.type_error(found, &wanted.go_name(self.kinds)))
    }

    /// Remembers a fault after which Go reads on, unless it is in a value that Go reads apart.
    fn read_on(&mut self, error: JsonError) -> Read {
        if self.apart > 0 {
            return Err(error);
        }
        self.mismatch.get_or_insert(error);
        Ok(None)
    }

    fn type_error(&self, found: &str, expected: &str) -> JsonError {
        let path = self.fields.join(".");
        JsonError::Type { found: found.into(), owner: self.owner, path, expected: expected.into() }
    }

    fn value_error(&self, reason: impl Into<String>) -> JsonError {
        JsonError::Value { path: self.fields.join("."), reason: reason.into() }
    }
}

/// The field of this JSON name, with the names of the inlined types it is in.
fn find<'k>(kinds: &'k Kinds, id: StructId, name: &str, inlined: &mut Vec<&'static str>) -> Option<&'k Field> {
    for field in &kinds.structure(id).fields {
        match field.structure() {
            Some(inner) if field.is_inlined() => {
                inlined.push(kinds.structure(inner).name);
                if let Some(found) = find(kinds, inner, name, inlined) {
                    return Some(found);
                }
                inlined.pop();
            }
            _ if field.name == name => return Some(field),
            _ => {}
        }
    }
    None
}

/// What the API server says of a text that is no quantity.
fn quantity_message(error: &QuantityError) -> &'static str {
    let suffix = match error.fault() {
        QuantityFault::Suffix(suffix) | QuantityFault::Exponent(suffix) => suffix.as_str(),
        _ => return QUANTITY_FORMAT,
    };
    let exponent = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    match exponent.strip_prefix(['+', '-']).unwrap_or(exponent).trim_start_matches(|c: char| c.is_ascii_digit()) {
        "" => "unable to parse quantity's suffix",
        _ => QUANTITY_FORMAT,
    }
}

/// The Go name of a shape whose field has no other name for it.
fn go_name(shape: Shape) -> &'static str {
    match shape {
        Shape::String => "string",
        Shape::Bool => "bool",
        Shape::Int32 => "int32",
        Shape::Int64 => "int64",
        Shape::Double => "float64",
        Shape::Bytes => "[]uint8",
        Shape::Time => "v1.Time",
        Shape::MicroTime => "v1.MicroTime",
        Shape::Quantity => "resource.Quantity",
        Shape::IntOrString => "intstr.IntOrString",
        Shape::RawExtension => "runtime.RawExtension",
        Shape::FieldsV1 => "v1.FieldsV1",
        Shape::Json => "v1.JSON",
        Shape::SchemaOrArray => "v1.JSONSchemaPropsOrArray",
        Shape::SchemaOrBool => "v1.JSONSchemaPropsOrBool",
        Shape::SchemaOrStrings => "v1.JSONSchemaPropsOrStringArray",
        Shape::Strings => "v1.ExtraValue",
        Shape::Struct(_) => "struct",
    }
}

const QUANTITY_FORMAT: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// Kubernetes reports no more faults of one body to strict validation.
pub(crate) const MAX_STRICT: usize = 100;
