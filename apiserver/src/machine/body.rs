//! From the bytes of a request to an object in its normal form.

use serde_json::{Map, Value};

use super::catalog::Resource;
use super::cluster::Call;
use super::convert;
use super::defaults;
use super::errors::{Fault, Outcome, Refusal, bad_request, invalid, quote, unsupported_media_type};
use super::media::content_type;
use super::object::{self, Draft};
use super::ownership::FIELD;
use super::route::Query;
use super::text::{self, Parsed};
use crate::kinds::{JsonObject, Kinds, Node};

/// An object as it is stored, and what to warn of.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) fields: Draft,
    pub(crate) warnings: Vec<String>,
}

/// The object in the body of a create or replace.
pub(crate) fn decode(kinds: &Kinds, call: &Call<'_>) -> Outcome<Decoded> {
    let of = &call.resource.of;
    let (mut whole, mut strict) = read_twice(kinds, call, (&of.group, &of.version, &of.kind))?;
    let found_kind = take_text(&mut whole, "kind");
    let found_version = take_text(&mut whole, "apiVersion");
    if found_kind.is_empty() && call.resource.is_custom() {
        let text = String::from_utf8_lossy(call.body);
        let fault = format!("Object 'Kind' is missing in '{text}' ({})", summary(call.body));
        return Err(bad_request(format!("the object provided is unrecognized (must be of type {}): {fault}", of.kind)));
    }
    check_type(call.resource, &found_version, &found_kind, &name_in(&whole))?;
    // A YAML text has its faults in its own words, all in one where they stop a write.
    let lines = std::mem::take(&mut strict);
    let admitted = admit(kinds, call.resource, Node::Object(whole), &mut strict);
    let fields = admitted.map_err(|fault| misfit(call.resource, &fault))?;
    let mut faults = strict.clone();
    if !lines.is_empty() {
        faults.insert(0, format!("yaml: unmarshal errors:\n  {}", lines.join("\n  ")));
    }
    let warnings = lines.into_iter().chain(strict).collect();
    let warnings = validated(call.query, &faults, warnings).map_err(|fault| misfit(call.resource, &fault))?;
    Ok(Decoded { fields, warnings })
}

/// Brings the fields of an object into the form in which it is stored. Fields that its type does not have, or that are
/// there twice, are told in `strict`.
///
/// # Errors
/// What is wrong with a field of the wrong type.
pub(crate) fn admit(
    kinds: &Kinds,
    resource: &Resource,
    fields: Node,
    strict: &mut Vec<String>,
) -> Result<Draft, String> {
    admit_from(kinds, resource, fields, strict, false)
}

/// The same for what an apply leaves, which fits its type.
pub(crate) fn admit_applied(kinds: &Kinds, resource: &Resource, fields: Draft) -> Result<Draft, String> {
    admit_from(kinds, resource, Value::Object(fields).into(), &mut Vec::new(), true)
}

fn admit_from(
    kinds: &Kinds,
    resource: &Resource,
    fields: Node,
    strict: &mut Vec<String>,
    applied: bool,
) -> Result<Draft, String> {
    let of = &resource.of;
    // An empty list is dropped below, but here it says something.
    let disowned = disowned(&fields);
    let JsonObject { object, strict: faults, .. } = match &resource.custom {
        None => match kinds.kind(&of.group, &of.version, &of.kind) {
            Some(kind) => kinds.decode_node(kind.structure, fields).map_err(|error| error.to_string())?,
            None => return Err(format!("no kind {} is registered", quote(&of.kind))),
        },
        Some(custom) => super::custom::canonicalize(kinds, &custom.schema, fields, applied)?,
    };
    strict.extend(faults);
    let mut fields = convert::stored(resource, object);
    defaults::apply(resource, &mut fields);
    if disowned {
        object::set_meta(&mut fields, FIELD, Some(Value::Array(Vec::new())));
    }
    Ok(fields)
}

/// What to warn of, when a write asks for no more than that.
///
/// # Errors
/// All faults, when the write is to be strict.
pub(crate) fn validated(query: &Query, faults: &[String], warnings: Vec<String>) -> Result<Vec<String>, String> {
    match query.text("fieldValidation") {
        "Strict" if !faults.is_empty() => Err(format!("strict decoding error: {}", faults.join(", "))),
        "Ignore" => Ok(Vec::new()),
        _ => Ok(warnings),
    }
}

/// Whether an object says that nobody owns its fields.
fn disowned(fields: &Node) -> bool {
    let field = |node: &Node, name: &str| match node {
        Node::Object(fields) => fields.iter().rev().find(|(found, _)| found == name).map(|(_, node)| node.clone()),
        _ => None,
    };
    let Node::Object(whole) = fields else { return false };
    let metadata = whole.iter().rev().find(|(name, _)| name == "metadata");
    metadata.is_some_and(|(_, metadata)| field(metadata, FIELD) == Some(Node::List(Vec::new())))
}

/// The name of an object that is not checked yet.
fn name_in(whole: &[(String, Node)]) -> String {
    let metadata = whole.iter().rev().find(|(name, _)| name == "metadata").map(|(_, metadata)| metadata);
    match metadata {
        Some(Node::Object(fields)) => match fields.iter().rev().find(|(name, _)| name == "name") {
            Some((_, Node::Text(name))) => name.clone(),
            _ => String::new(),
        },
        _ => String::new(),
    }
}

/// The body is an object that does not fit its type.
fn misfit(resource: &Resource, fault: &str) -> Refusal {
    let (kind, version) = (&resource.of.kind, quote(&resource.of.version));
    bad_request(format!("{kind} in version {version} cannot be handled as a {kind}: {fault}"))
}

/// The JSON object in a body, whatever its media type.
pub(crate) fn read(kinds: &Kinds, call: &Call<'_>, default: (&str, &str, &str)) -> Outcome<Map<String, Value>> {
    let (fields, _) = read_twice(kinds, call, default)?;
    match text::value(Node::Object(fields), "", &mut Vec::new()) {
        Value::Object(map) => Ok(map),
        _ => Ok(Map::new()),
    }
}

type Fields = Vec<(String, Node)>;

/// The same with what may be in it twice, and with what a YAML text says of that.
fn read_twice(kinds: &Kinds, call: &Call<'_>, default: (&str, &str, &str)) -> Outcome<(Fields, Vec<String>)> {
    let kind = default.2;
    let parsed = match &*content_type(call.headers) {
        "application/json" => text::json(call.body),
        "application/yaml" => text::yaml(call.body),
        "application/vnd.kubernetes.protobuf" if !call.resource.is_custom() => {
            let decoded = kinds.decode_protobuf(call.body, Some(default)).map_err(|error| {
                bad_request(format!("the object provided is unrecognized (must be of type {kind}): {error}"))
            })?;
            return Ok((decoded.into_iter().map(|(name, value)| (name, value.into())).collect(), Vec::new()));
        }
        _ if call.resource.is_custom() => return Err(unsupported_media_type(ACCEPTED_CUSTOM)),
        _ => return Err(unsupported_media_type(ACCEPTED)),
    };
    let unrecognized = |fault: String| {
        bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse \
             error: {fault} ({})",
            summary(call.body)
        ))
    };
    let Parsed { node, duplicates } = parsed.map_err(&unrecognized)?;
    match node {
        Node::Object(fields) => Ok((fields, duplicates)),
        Node::Null => Err(unrecognized("unexpected end of JSON input".to_owned())),
        other => Err(unrecognized(format!("json: cannot unmarshal {} into an object", other.sort()))),
    }
}

/// What Go calls the type of a JSON value.
pub(crate) const fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The beginning of a body, as text if it is text.
fn summary(body: &[u8]) -> String {
    const LENGTH: usize = 30;
    let head = &body[..body.len().min(LENGTH)];
    let cut = if body.len() > LENGTH { "..." } else { "" };
    match str::from_utf8(head) {
        Ok("") => "<empty>".to_owned(),
        Ok(text) if text.starts_with('{') => format!("{text}{cut}"),
        _ => head.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + cut,
    }
}

fn take_text(fields: &mut Fields, field: &str) -> String {
    let mut found = String::new();
    fields.retain(|(name, node)| {
        if let (true, Node::Text(text)) = (name == field, node) {
            found.clone_from(text);
        }
        name != field
    });
    found
}

/// Refuses a body of another type than the path has; what a body of a built-in kind does not say is understood.
pub(crate) fn check_type(resource: &Resource, version: &str, kind: &str, name: &str) -> Outcome<()> {
    let of = &resource.of;
    let expected = of.api_version();
    let version_or_default = match version {
        "" if !resource.is_custom() => expected.as_ref(),
        version => version,
    };
    let kind_or_default = match kind {
        "" if !resource.is_custom() => of.kind.as_ref(),
        kind => kind,
    };
    if kind_or_default != of.kind && resource.is_custom() {
        let fault = Fault::invalid("kind", kind, format!("must be {}", of.kind));
        return Err(invalid(&of.group, kind, name, &[fault]));
    }
    if kind_or_default != of.kind {
        let short = version_or_default.rsplit('/').next().unwrap_or_default();
        let message = format!(
            "{kind_or_default} in version {} cannot be handled as a {}: no kind {} is registered for version {} of it",
            quote(short),
            of.kind,
            quote(kind_or_default),
            quote(version_or_default)
        );
        return Err(bad_request(message));
    }
    if version_or_default != expected {
        let message = format!(
            "the API version in the data ({version_or_default}) does not match the expected API version ({expected})"
        );
        return Err(bad_request(message));
    }
    Ok(())
}

/// Those of bodies of custom resources.
const ACCEPTED_CUSTOM: &str = "application/json, application/yaml";

/// The media types of bodies, as errors list them.
const ACCEPTED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
