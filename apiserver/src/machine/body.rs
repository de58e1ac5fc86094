//! From the bytes of a request to an object in its normal form.

use serde_json::{Map, Value};

use super::catalog::Resource;
use super::cluster::Call;
use super::convert;
use super::defaults;
use super::errors::{Fault, Outcome, Refusal, bad_request, invalid, quote, unsupported_media_type};
use super::media::content_type;
use super::object::{Draft, meta};
use super::route::Query;
use crate::kinds::{JsonObject, Kinds};

/// An object as it is stored, and what to warn of.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) fields: Draft,
    pub(crate) warnings: Vec<String>,
}

/// The object in the body of a create or replace.
pub(crate) fn decode(kinds: &Kinds, call: &Call<'_>) -> Outcome<Decoded> {
    let of = &call.resource.of;
    let mut whole = read(kinds, call, (&of.group, &of.version, &of.kind))?;
    let found_kind = take_text(&mut whole, "kind");
    let found_version = take_text(&mut whole, "apiVersion");
    if found_kind.is_empty() && call.resource.is_custom() {
        let text = String::from_utf8_lossy(call.body);
        let fault = format!("Object 'Kind' is missing in '{text}' ({})", summary(call.body));
        return Err(bad_request(format!("the object provided is unrecognized (must be of type {}): {fault}", of.kind)));
    }
    check_type(call.resource, &found_version, &found_kind, meta(&whole, "name"))?;
    admit(kinds, call.resource, call.query, whole).map_err(|fault| misfit(call.resource, &fault))
}

/// Brings the fields of an object into the form in which it is stored.
///
/// # Errors
/// What is wrong with a field of the wrong type, or with one that the type does not have when the query is strict.
pub(crate) fn admit(
    kinds: &Kinds,
    resource: &Resource,
    query: &Query,
    fields: Map<String, Value>,
) -> Result<Decoded, String> {
    let of = &resource.of;
    let JsonObject { object, strict, .. } = match kinds
        .kind(&of.group, &of.version, &of.kind)
        .filter(|_| !resource.is_custom())
    {
        Some(kind) => kinds.canonicalize(kind.structure, Value::Object(fields)).map_err(|error| error.to_string())?,
        None => super::custom::canonicalize(kinds, fields)?,
    };
    let warnings = match query.text("fieldValidation") {
        "Strict" if !strict.is_empty() => return Err(format!("strict decoding error: {}", strict.join(", "))),
        "Ignore" => Vec::new(),
        _ => strict,
    };
    let mut fields = convert::stored(resource, object);
    defaults::apply(resource, &mut fields);
    Ok(Decoded { fields, warnings })
}

/// The body is an object that does not fit its type.
fn misfit(resource: &Resource, fault: &str) -> Refusal {
    let (kind, version) = (&resource.of.kind, quote(&resource.of.version));
    bad_request(format!("{kind} in version {version} cannot be handled as a {kind}: {fault}"))
}

/// The JSON object in a body, whatever its media type.
pub(crate) fn read(kinds: &Kinds, call: &Call<'_>, default: (&str, &str, &str)) -> Outcome<Map<String, Value>> {
    let kind = default.2;
    let value = match &*content_type(call.headers) {
        "application/json" => json(call.body),
        "application/yaml" => yaml(call.body),
        "application/vnd.kubernetes.protobuf" if !call.resource.is_custom() => {
            let decoded = kinds.decode_protobuf(call.body, Some(default));
            return decoded.map_err(|error| {
                bad_request(format!("the object provided is unrecognized (must be of type {kind}): {error}"))
            });
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
    match value.map_err(&unrecognized)? {
        Value::Object(map) => Ok(map),
        Value::Null => Err(unrecognized("unexpected end of JSON input".to_owned())),
        other => Err(unrecognized(format!("json: cannot unmarshal {} into an object", type_name(&other)))),
    }
}

fn json(body: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(body)
        .map_err(|error| if error.is_eof() { "unexpected end of JSON input".to_owned() } else { error.to_string() })
}

fn yaml(body: &[u8]) -> Result<Value, String> {
    let text = str::from_utf8(body).map_err(|error| error.to_string())?;
    serde_saphyr::from_str(text).map_err(|error| error.to_string())
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

fn take_text(map: &mut Map<String, Value>, field: &str) -> String {
    match map.remove(field) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    }
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
