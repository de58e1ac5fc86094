//! Decodes the protobuf bodies of Kubernetes' typed Go clients to JSON.
//!
//! The JSON is what the API server itself would answer for the decoded object before defaulting: fields with
//! `omitempty` vanish when empty even though such clients write them, pointers to empty values stay, and fields
//! without it appear with the zero value of their type even if they were never sent.

use std::collections::BTreeMap;

use cloudcoil_core::Quantity;
use serde_json::{Map, Value};
use thiserror::Error;

use super::form::{base64, double, text};
use super::time::{UNSET, rfc3339};
use super::wire::{Fault, Reader, Wire};
use super::{Container, Field, Kinds, Shape, StructId};

/// Why a body is no object of a built-in kind in Kubernetes' protobuf.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProtobufError {
    /// The body does not begin with the bytes `k8s\0`, or holds no more than these.
    #[error("the body is not in the protobuf encoding of Kubernetes")]
    Prefix,
    /// What encloses the object cannot be read.
    #[error("the envelope of the object: {0}")]
    Envelope(Fault),
    /// The object is of no built-in kind; custom resources have no protobuf encoding.
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    UnknownKind {
        /// The `apiVersion` of the object; may be empty.
        api_version: String,
        /// The `kind` of the object; may be empty.
        kind: String,
    },
    /// A part of the object cannot be read.
    #[error("{kind}{}{path}: {fault}", if path.is_empty() { "" } else { "." })]
    Object {
        /// The kind of the object.
        kind: String,
        /// The field at fault, such as `spec.containers[0].image`; empty for the object itself.
        path: String,
        /// What is wrong there.
        fault: Fault,
    },
}

impl Kinds {
    /// Decodes a request body of `application/vnd.kubernetes.protobuf` to the JSON object it stands for, with
    /// `apiVersion` and `kind`.
    ///
    /// `default` is the group, version and kind of the request's resource, used when the body names none.
    /// Whether the kind in the body is the one the request is for is left to the caller.
    ///
    /// See <https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding>.
    ///
    /// # Errors
    /// When the body is truncated, malformed or nested too deep, or of no built-in kind.
    pub fn decode_protobuf(
        &self,
        body: &[u8],
        default: Option<(&str, &str, &str)>,
    ) -> Result<Map<String, Value>, ProtobufError> {
        let message = body.strip_prefix(PREFIX).filter(|rest| !rest.is_empty()).ok_or(ProtobufError::Prefix)?;
        let envelope = Envelope::read(message).map_err(ProtobufError::Envelope)?;
        let (group, version, kind) = envelope.type_meta(default);
        let found = self.kind(group, version, kind);
        let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        let Some(found) = found else {
            return Err(ProtobufError::UnknownKind { api_version, kind: kind.into() });
        };
        let mut object = Map::new();
        Decoder { kinds: self }.message(found.structure, &[&envelope.raw], 0, &mut object).map_err(|broken| {
            ProtobufError::Object { kind: found.kind.into(), path: broken.path(), fault: broken.fault }
        })?;
        object.insert("apiVersion".into(), api_version.into());
        object.insert("kind".into(), found.kind.into());
        Ok(object)
    }
}

/// What every body holds around its object (`runtime.Unknown`).
#[derive(Default)]
struct Envelope {
    api_version: String,
    kind: String,
    raw: Vec<u8>,
}

impl Envelope {
    fn read(message: &[u8]) -> Result<Self, Fault> {
        let mut envelope = Self::default();
        let mut reader = Reader::new(message);
        while let Some((number, wire)) = reader.field()? {
            match number {
                1 => envelope.read_type_meta(wire.bytes()?)?,
                2 => envelope.raw = wire.bytes()?.into(),
                CONTENT_ENCODING | CONTENT_TYPE => drop(wire.bytes()?),
                _ => {}
            }
        }
        Ok(envelope)
    }

    fn read_type_meta(&mut self, message: &[u8]) -> Result<(), Fault> {
        let mut reader = Reader::new(message);
        while let Some((number, wire)) = reader.field()? {
            match number {
                1 => self.api_version = text(wire.bytes()?),
                2 => self.kind = text(wire.bytes()?),
                _ => {}
            }
        }
        Ok(())
    }

    /// Group, version and kind, each taken from `default` when the body leaves it out.
    fn type_meta<'a>(&'a self, default: Option<(&'a str, &'a str, &'a str)>) -> (&'a str, &'a str, &'a str) {
        let (mut group, mut version) = self.api_version.split_once('/').unwrap_or(("", &self.api_version));
        let mut kind = self.kind.as_str();
        if let Some((default_group, default_version, default_kind)) = default {
            if kind.is_empty() {
                kind = default_kind;
            }
            if version.is_empty() {
                (group, version) = (default_group, default_version);
            }
        }
        (group, version, kind)
    }
}

/// A fault with the way to it, innermost step first.
struct Broken {
    steps: Vec<Step>,
    fault: Fault,
}

enum Step {
    Field(&'static str),
    Index(usize),
    Key(String),
}

impl From<Fault> for Broken {
    fn from(fault: Fault) -> Self {
        Self { steps: Vec::new(), fault }
    }
}

impl Broken {
    fn within(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    fn path(&self) -> String {
        let mut path = String::new();
        for step in self.steps.iter().rev() {
            match step {
                Step::Field(name) if path.is_empty() || name.is_empty() => path.push_str(name),
                Step::Field(name) => path.extend([".", name]),
                Step::Index(index) => path.push_str(&format!("[{index}]")),
                Step::Key(key) => path.extend(["[", key, "]"]),
            }
        }
        path
    }
}

type Decoded<T> = Result<T, Broken>;

/// What has been read of a field so far.
enum Slot<'a> {
    Value(Value),
    /// The pieces of a single message, decoded at the end: if it is sent more than once, they add up.
    Message(Vec<&'a [u8]>),
    List(Vec<Value>),
    Map(Map<String, Value>),
}

struct Decoder<'k> {
    kinds: &'k Kinds,
}

impl Decoder<'_> {
    /// Decodes one message into an object; those of inlined types are spread into the same one.
    fn message(&self, id: StructId, pieces: &[&[u8]], depth: u32, object: &mut Map<String, Value>) -> Decoded<()> {
        if depth > MAX_DEPTH {
            return Err(Fault::TooDeep.into());
        }
        let fields = &self.kinds.structure(id).fields;
        let mut slots = BTreeMap::new();
        let mut reader = Reader::of(pieces);
        while let Some((number, wire)) = reader.field()? {
            let Some((index, field)) = fields.iter().enumerate().find(|(_, field)| field.number == number) else {
                continue;
            };
            let slot = self.read(field, wire, slots.remove(&index), depth);
            slots.insert(index, slot.map_err(|broken| broken.within(Step::Field(field.name)))?);
        }
        for (index, field) in fields.iter().enumerate() {
            self.finish(field, slots.remove(&index), depth, object)
                .map_err(|broken| broken.within(Step::Field(field.name)))?;
        }
        Ok(())
    }

    /// Adds one occurrence of a field to what was read of it before.
    fn read<'a>(&self, field: &Field, wire: Wire<'a>, before: Option<Slot<'a>>, depth: u32) -> Decoded<Slot<'a>> {
        match field.container {
            Container::List => {
                let mut items = match before {
                    Some(Slot::List(items)) => items,
                    _ => Vec::new(),
                };
                self.push(field.shape, wire, depth, &mut items)?;
                Ok(Slot::List(items))
            }
            Container::Map => {
                let mut map = match before {
                    Some(Slot::Map(map)) => map,
                    _ => Map::new(),
                };
                let (key, value) = self.entry(field.shape, wire.bytes()?, depth)?;
                map.insert(key, value);
                Ok(Slot::Map(map))
            }
            Container::One | Container::Pointer if adds_up(field.shape) => {
                let mut pieces = match before {
                    Some(Slot::Message(pieces)) => pieces,
                    _ => Vec::new(),
                };
                pieces.push(wire.bytes()?);
                Ok(Slot::Message(pieces))
            }
            Container::One | Container::Pointer => Ok(Slot::Value(self.value(field.shape, wire, depth)?)),
        }
    }

    fn finish(
        &self,
        field: &Field,
        slot: Option<Slot<'_>>,
        depth: u32,
        object: &mut Map<String, Value>,
    ) -> Decoded<()> {
        if let Some(inlined) = field.structure().filter(|_| field.is_inlined()) {
            return match slot {
                Some(Slot::Message(pieces)) => self.message(inlined, &pieces, depth + 1, object),
                _ => self.message(inlined, &[], depth + 1, object),
            };
        }
        let value = match slot {
            None => None,
            Some(Slot::Value(value)) => Some(value),
            Some(Slot::Message(pieces)) => Some(self.whole(field.shape, &pieces, depth)?),
            Some(Slot::List(items)) => Some(Value::Array(items)),
            Some(Slot::Map(map)) => Some(Value::Object(map)),
        };
        self.kinds.put(field, value, object);
        Ok(())
    }

    /// Adds an item to a list, or many: lists of numbers may be packed into one field.
    fn push(&self, shape: Shape, wire: Wire<'_>, depth: u32, items: &mut Vec<Value>) -> Decoded<()> {
        if let (Shape::Bool | Shape::Int32 | Shape::Int64, Wire::Bytes(packed)) = (shape, wire) {
            let mut reader = Reader::new(packed);
            while !reader.is_empty() {
                items.push(self.value(shape, Wire::Varint(reader.varint()?), depth)?);
            }
            return Ok(());
        }
        let item = self.value(shape, wire, depth).map_err(|broken| broken.within(Step::Index(items.len())))?;
        items.push(item);
        Ok(())
    }

    /// One entry of a map; a key or value that is left out is the zero value of its type.
    fn entry(&self, shape: Shape, bytes: &[u8], depth: u32) -> Decoded<(String, Value)> {
        let (mut key, mut value) = (String::new(), None);
        let mut reader = Reader::new(bytes);
        while let Some((number, wire)) = reader.field()? {
            match number {
                1 => key = text(wire.bytes()?),
                2 => value = Some(wire),
                _ => {}
            }
        }
        let value = match value {
            Some(wire) => self.value(shape, wire, depth),
            None => Ok(self.kinds.zero_element(shape)),
        };
        match value {
            Ok(value) => Ok((key, value)),
            Err(broken) => Err(broken.within(Step::Key(key))),
        }
    }

    fn value(&self, shape: Shape, wire: Wire<'_>, depth: u32) -> Decoded<Value> {
        Ok(match shape {
            Shape::String => text(wire.bytes()?).into(),
            Shape::Bool => (wire.varint()? != 0).into(),
            // Negative numbers are sent in 64 bits, of which these are the low ones.
            Shape::Int32 => (wire.varint()? as i32).into(),
            Shape::Int64 => (wire.varint()? as i64).into(),
            Shape::Double => double(wire.double()?).ok_or(Fault::NotFinite)?,
            Shape::Bytes => base64(wire.bytes()?),
            _ => self.whole(shape, &[wire.bytes()?], depth)?,
        })
    }

    /// The value of a shape that is a message, from all its pieces.
    fn whole(&self, shape: Shape, pieces: &[&[u8]], depth: u32) -> Decoded<Value> {
        Ok(match shape {
            Shape::Time => time(pieces, false)?,
            Shape::MicroTime => time(pieces, true)?,
            Shape::Quantity => quantity(pieces)?,
            Shape::IntOrString => int_or_string(pieces)?,
            Shape::RawExtension | Shape::FieldsV1 | Shape::Json => json(pieces)?,
            Shape::Strings => strings(pieces)?,
            Shape::SchemaOrArray | Shape::SchemaOrBool | Shape::SchemaOrStrings => {
                self.schema_or(shape, pieces, depth)?
            }
            Shape::Struct(id) => {
                let mut object = Map::new();
                self.message(id, pieces, depth + 1, &mut object)?;
                object.into()
            }
            Shape::String | Shape::Bool | Shape::Int32 | Shape::Int64 | Shape::Double | Shape::Bytes => {
                unreachable!("scalars are no messages")
            }
        })
    }

    /// A schema, or what may stand in its place. Of the two fields, a list that is not empty goes first.
    fn schema_or(&self, shape: Shape, pieces: &[&[u8]], depth: u32) -> Decoded<Value> {
        let (schema_number, other_number) = if shape == Shape::SchemaOrBool { (2, 1) } else { (1, 2) };
        let (mut schema, mut allows, mut items) = (Vec::new(), false, Vec::new());
        let mut reader = Reader::of(pieces);
        while let Some((number, wire)) = reader.field()? {
            if number == schema_number {
                schema.push(wire.bytes()?);
            } else if number != other_number {
                continue;
            } else if shape == Shape::SchemaOrBool {
                allows = wire.varint()? != 0;
            } else if shape == Shape::SchemaOrStrings {
                items.push(text(wire.bytes()?).into());
            } else {
                let item = self.schema(&[wire.bytes()?], depth).map_err(|b| b.within(Step::Index(items.len())))?;
                items.push(item);
            }
        }
        Ok(match schema.as_slice() {
            _ if !items.is_empty() => items.into(),
            [] if shape == Shape::SchemaOrBool => allows.into(),
            [] => Value::Null,
            pieces => self.schema(pieces, depth)?,
        })
    }

    fn schema(&self, pieces: &[&[u8]], depth: u32) -> Decoded<Value> {
        self.whole(Shape::Struct(self.kinds.schema), pieces, depth)
    }
}

/// Whether a single value of this shape that is sent twice is merged, as messages are, or replaced.
fn adds_up(shape: Shape) -> bool {
    match shape {
        Shape::Struct(_)
        | Shape::IntOrString
        | Shape::RawExtension
        | Shape::Json
        | Shape::SchemaOrArray
        | Shape::SchemaOrBool
        | Shape::SchemaOrStrings
        | Shape::Strings => true,
        Shape::String
        | Shape::Bool
        | Shape::Int32
        | Shape::Int64
        | Shape::Double
        | Shape::Bytes
        | Shape::Time
        | Shape::MicroTime
        | Shape::Quantity
        | Shape::FieldsV1 => false,
    }
}

fn time(pieces: &[&[u8]], micro: bool) -> Result<Value, Fault> {
    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = Reader::of(pieces);
    while let Some((number, wire)) = reader.field()? {
        match number {
            1 => seconds = wire.varint()? as i64,
            2 => nanos = wire.varint()? as i32,
            _ => {}
        }
    }
    if pieces.iter().all(|piece| piece.is_empty()) {
        return Ok(Value::Null);
    }
    let micros = i64::from(if micro { nanos / 1000 } else { 0 });
    let seconds = seconds.saturating_add(micros.div_euclid(1_000_000));
    let micros = micros.rem_euclid(1_000_000) as u32;
    if (seconds, micros) == (UNSET, 0) {
        return Ok(Value::Null);
    }
    rfc3339(seconds, micro.then_some(micros)).map(Value::from).ok_or(Fault::Time(seconds))
}

fn quantity(pieces: &[&[u8]]) -> Result<Value, Fault> {
    let mut quantity = Value::from("0");
    let mut reader = Reader::of(pieces);
    while let Some((number, wire)) = reader.field()? {
        if number == 1 {
            quantity = Quantity::parse(text(wire.bytes()?)).map_err(Fault::Quantity)?.served().into();
        }
    }
    Ok(quantity)
}

fn int_or_string(pieces: &[&[u8]]) -> Result<Value, Fault> {
    let (mut kind, mut number, mut string) = (0, 0, String::new());
    let mut reader = Reader::of(pieces);
    while let Some((field, wire)) = reader.field()? {
        match field {
            1 => kind = wire.varint()? as i64,
            2 => number = wire.varint()? as i32,
            3 => string = text(wire.bytes()?),
            _ => {}
        }
    }
    match kind {
        0 => Ok(number.into()),
        1 => Ok(string.into()),
        _ => Err(Fault::IntOrString(kind)),
    }
}

/// A message that holds JSON in its field 1.
fn json(pieces: &[&[u8]]) -> Result<Value, Fault> {
    let mut raw: &[u8] = &[];
    let mut reader = Reader::of(pieces);
    while let Some((number, wire)) = reader.field()? {
        if number == 1 {
            raw = wire.bytes()?;
        }
    }
    match raw {
        [] => Ok(Value::Null),
        raw => serde_json::from_slice(raw).map_err(|error| Fault::Json(error.to_string())),
    }
}

fn strings(pieces: &[&[u8]]) -> Result<Value, Fault> {
    let mut items: Vec<Value> = Vec::new();
    let mut reader = Reader::of(pieces);
    while let Some((number, wire)) = reader.field()? {
        if number == 1 {
            items.push(text(wire.bytes()?).into());
        }
    }
    Ok(if items.is_empty() { Value::Null } else { items.into() })
}

/// What every body begins with.
const PREFIX: &[u8] = b"k8s\0";

/// Fields of the envelope that the API server reads and does not use.
const CONTENT_ENCODING: u32 = 3;
const CONTENT_TYPE: u32 = 4;

/// Messages within messages; objects of users nest a few, schemas of CustomResourceDefinitions some dozens.
const MAX_DEPTH: u32 = 100;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A field of bytes.
    fn bytes(number: u32, value: &[u8]) -> Vec<u8> {
        let mut field = vec![(number << 3) as u8 | 2, value.len() as u8];
        assert!(number < 16 && value.len() < 128);
        field.extend(value);
        field
    }

    fn body(api_version: &str, kind: &str, object: &[u8]) -> Vec<u8> {
        let type_meta = [bytes(1, api_version.as_bytes()), bytes(2, kind.as_bytes())].concat();
        [PREFIX, &bytes(1, &type_meta), &[0x12, 0x80 | (object.len() & 0x7f) as u8, (object.len() >> 7) as u8], object]
            .concat()
    }

    fn decode(api_version: &str, kind: &str, object: &[u8]) -> Result<Value, ProtobufError> {
        Kinds::builtin().decode_protobuf(&body(api_version, kind, object), None).map(Value::Object)
    }

    #[test]
    fn a_fault_names_kind_and_field() {
        let container = bytes(2, &bytes(2, &[0x08]));
        let ports = bytes(2, &bytes(2, &bytes(6, &[0x12, 0x00])));
        let labels = bytes(1, &bytes(11, &[bytes(1, b"app"), vec![0x10, 0x01]].concat()));
        let cases = [
            (container.as_slice(), "spec.containers[0]", Fault::Truncated),
            (&ports, "spec.containers[0].ports[0].hostPort", Fault::WireType(2)),
            (&labels, "metadata.labels[app]", Fault::WireType(0)),
            (&[0x0a], "", Fault::Truncated),
        ];
        for (object, path, fault) in cases {
            let expected = ProtobufError::Object { kind: "Pod".into(), path: path.into(), fault };
            assert_eq!(decode("v1", "Pod", object), Err(expected));
        }
        let error = decode("v1", "Pod", &ports).unwrap_err();
        assert_eq!(error.to_string(), "Pod.spec.containers[0].ports[0].hostPort: wrong wire type 2");
    }

    #[test]
    fn unknown_fields_are_read_past_and_a_message_sent_twice_adds_up() {
        let object =
            [bytes(1, &[bytes(3, b"ns"), bytes(1, b"a")].concat()), bytes(15, b"unknown"), bytes(1, &bytes(1, b"b"))];
        let expected = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "namespace": "ns"}});
        assert_eq!(decode("v1", "ConfigMap", &object.concat()), Ok(expected));
    }

    #[test]
    fn a_message_cut_short_is_not_completed_by_its_next_piece() {
        let object = [bytes(1, &[0x0a, 0x02]), bytes(1, b"ab")].concat();
        assert!(decode("v1", "ConfigMap", &object).is_err());
    }

    #[test]
    fn numbers_of_a_list_may_be_packed() {
        // supplementalGroups 1, 2 and -1 in one field, and 3 in another.
        let packed = [&[0x01, 0x02][..], &[0xff; 9], &[0x01]].concat();
        let context = [bytes(4, &packed), vec![0x20, 0x03]].concat();
        let pod = decode("v1", "Pod", &bytes(2, &bytes(14, &context))).unwrap();
        assert_eq!(pod["spec"]["securityContext"], json!({"supplementalGroups": [1, 2, -1, 3]}));
    }

    #[test]
    fn nesting_is_bounded() {
        let kinds = Kinds::builtin();
        let wrap = |number: u8, message: &[u8]| {
            let (low, high) = ((message.len() & 0x7f) as u8 | 0x80, (message.len() >> 7) as u8);
            [&[number << 3 | 2, low, high], message].concat()
        };
        // JSONSchemaProps.not is field 28; one definition within another.
        let nest = |levels: usize| {
            let mut schema = Vec::new();
            for _ in 0..levels {
                let length = [(schema.len() & 0x7f) as u8 | 0x80, (schema.len() >> 7) as u8];
                schema = [&[0xe2, 0x01][..], &length, &schema].concat();
            }
            let version = wrap(4, &wrap(1, &schema));
            wrap(2, &wrap(2, &wrap(7, &version)[..]))
        };
        let default = Some(("apiextensions.k8s.io", "v1", "CustomResourceDefinition"));
        let decode = |levels| kinds.decode_protobuf(&[PREFIX, &nest(levels)].concat(), default);
        assert!(decode(90).is_ok());
        let error = decode(200).unwrap_err();
        assert!(matches!(error, ProtobufError::Object { fault: Fault::TooDeep, .. }), "{error}");
    }

    #[test]
    fn what_is_no_body_is_an_error_of_its_own() {
        let kinds = Kinds::builtin();
        for body in [&b""[..], b"k8s", b"k8s\0", b"{\"kind\":\"Pod\"}"] {
            assert_eq!(kinds.decode_protobuf(body, None), Err(ProtobufError::Prefix));
        }
        assert_eq!(kinds.decode_protobuf(b"k8s\0\x0a\x7f", None), Err(ProtobufError::Envelope(Fault::Truncated)));
        let unknown = decode("example.com/v1", "Widget", &[]).unwrap_err();
        assert_eq!(unknown.to_string(), r#"no kind "Widget" is registered for version "example.com/v1""#);
        assert!(decode("", "DeleteOptions", &[]).is_err());
    }

    #[test]
    fn a_body_without_type_meta_is_of_the_requests_kind() {
        let kinds = Kinds::builtin();
        let default = Some(("apps", "v1", "Deployment"));
        let body = [PREFIX, &bytes(2, &bytes(1, &bytes(1, b"web")))].concat();
        let object = kinds.decode_protobuf(&body, default).unwrap();
        assert_eq!((&object["apiVersion"], &object["kind"]), (&json!("apps/v1"), &json!("Deployment")));
        assert_eq!(object["metadata"], json!({"name": "web"}));
    }

    #[test]
    fn no_time_and_times_out_of_range() {
        // 0001-01-01T00:00:00Z in ten bytes, as a client that sends unset times would.
        let unset = [&[0x08, 0x80, 0x92, 0xb8, 0xc3, 0x98, 0xfe, 0xff, 0xff, 0xff, 0x01][..]].concat();
        let created = |time: &[u8]| decode("v1", "ConfigMap", &bytes(1, &bytes(8, time)));
        assert_eq!(created(&unset).unwrap()["metadata"], json!({}));
        assert_eq!(created(&[0x08, 0x00]).unwrap()["metadata"], json!({"creationTimestamp": "1970-01-01T00:00:00Z"}));
        let far = created(&[&[0x08][..], &[0xff; 8], &[0x7f]].concat()).unwrap_err();
        assert!(far.to_string().starts_with("ConfigMap.metadata.creationTimestamp: time out of range"), "{far}");
    }
}
