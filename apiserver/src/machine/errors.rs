//! Refusals in the API server's own words and codes.

use std::fmt;

use cloudcoil_core::Status;
use cloudcoil_core::status::{StatusCause, StatusDetails};
use serde_json::{Map, Value, json};

use super::catalog::Resource;
use super::route::Target;
use crate::managed::{Conflict, path_text};

/// Why a request is refused.
pub(crate) type Refusal = Box<Status>;

/// What a request comes to, or why not.
pub(crate) type Outcome<T> = Result<T, Refusal>;

fn refusal(code: u16, reason: &str, message: impl Into<String>) -> Refusal {
    Box::new(Status::failure(code, reason, message))
}

fn about(mut refusal: Refusal, resource: &Resource, name: &str) -> Refusal {
    refusal.details.name = name.to_owned();
    refusal.details.group = resource.of.group.to_string();
    refusal.details.kind = resource.of.plural.to_string();
    refusal
}

pub(crate) fn not_found(resource: &Resource, name: &str) -> Refusal {
    about(refusal(404, "NotFound", format!("{} {} not found", resource.qualified(), quote(name))), resource, name)
}

/// A body is of a type that does not belong here.
pub(crate) fn not_registered(kind: &str, version: &str) -> Refusal {
    let (kind, version) = (quote(kind), quote(version));
    bad_request(format!("no kind {kind} is registered for version {version} in scheme \"pkg/runtime/scheme.go:111\""))
}

/// A namespace that a write needs is not there.
pub(crate) fn namespace_not_found(name: &str) -> Refusal {
    let mut refusal = refusal(404, "NotFound", format!("namespaces {} not found", quote(name)));
    refusal.details.name = name.to_owned();
    refusal.details.kind = "namespaces".to_owned();
    refusal
}

pub(crate) fn already_exists(resource: &Resource, name: &str) -> Refusal {
    let message = format!("{} {} already exists", resource.qualified(), quote(name));
    about(refusal(409, "AlreadyExists", message), resource, name)
}

pub(crate) fn generated_name_conflict(resource: &Resource, name: &str) -> Refusal {
    let message = format!(
        "{} {} already exists, the server was not able to generate a unique name for the object",
        resource.qualified(),
        quote(name)
    );
    let mut refusal = about(refusal(409, "AlreadyExists", message), resource, name);
    refusal.details.retry_after_seconds = 1;
    refusal
}

pub(crate) fn conflict(resource: &Resource, name: &str, why: &str) -> Refusal {
    let message = format!("Operation cannot be fulfilled on {} {}: {why}", resource.qualified(), quote(name));
    about(refusal(409, "Conflict", message), resource, name)
}

/// An apply would change what others own.
pub(crate) fn apply_conflict(conflicts: &[Conflict]) -> Refusal {
    let told: Vec<_> = conflicts
        .iter()
        .map(|(owner, path)| (format!("conflict with {}", owner.describe()), path_text(path)))
        .collect();
    let message = match (&told[..], conflicts) {
        ([(with, path)], _) => format!("Apply failed with 1 conflict: {with}: {path}"),
        _ => {
            let mut owners: Vec<_> = conflicts.iter().map(|(owner, _)| owner).collect();
            owners.dedup();
            let mut lines = Vec::new();
            for owner in owners {
                lines.push(format!("conflicts with {}:", owner.describe()));
                let paths = conflicts.iter().filter(|(other, _)| other == owner);
                lines.extend(paths.map(|(_, path)| format!("- {}", path_text(path))));
            }
            format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
        }
    };
    let mut refusal = refusal(409, "Conflict", message);
    refusal.details.causes = told.iter().map(|(with, path)| cause("FieldManagerConflict", with, path)).collect();
    refusal
}

/// As [`conflict`], where the API server names the kind and not the resource.
pub(crate) fn conflict_of_kind(group: &str, kind: &str, name: &str, why: &str) -> Refusal {
    let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
    let message = format!("Operation cannot be fulfilled on {qualified} {}: {why}", quote(name));
    let mut refusal = refusal(409, "Conflict", message);
    (refusal.details.name, refusal.details.group) = (name.to_owned(), group.to_owned());
    refusal.details.kind = kind.to_owned();
    refusal
}

/// The object was changed between reading and writing.
pub(crate) fn modified(resource: &Resource, name: &str) -> Refusal {
    let why = "the object has been modified; please apply your changes to the latest version and try again";
    conflict(resource, name, why)
}

pub(crate) fn forbidden(resource: &Resource, name: &str, why: &str) -> Refusal {
    let message = if name.is_empty() {
        format!("{} is forbidden: {why}", resource.qualified())
    } else {
        format!("{} {} is forbidden: {why}", resource.qualified(), quote(name))
    };
    about(refusal(403, "Forbidden", message), resource, name)
}

/// A user may not do this to a resource.
pub(crate) fn forbidden_verb(target: &Target, user: &str, verb: &str) -> Refusal {
    let Target { group, plural, name, subresource, namespace, .. } = target;
    let resource = match subresource {
        Some(subresource) => format!("{plural}/{subresource}"),
        None => plural.clone(),
    };
    // A namespace is in itself.
    let own = || name.as_ref().filter(|_| plural == "namespaces" && group.is_empty());
    let namespace = namespace.as_ref().or_else(own);
    let place = match namespace {
        Some(namespace) => format!("in the namespace {}", quote(namespace)),
        None => "at the cluster scope".to_owned(),
    };
    let qualified = if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") };
    let about = name.as_ref().map(|name| format!(" {}", quote(name))).unwrap_or_default();
    let message = format!(
        "{qualified}{about} is forbidden: User {} cannot {verb} resource {} in API group {} {place}",
        quote(user),
        quote(&resource),
        quote(group)
    );
    let mut refusal = refusal(403, "Forbidden", message);
    refusal.details.name = name.clone().unwrap_or_default();
    refusal.details.group = group.clone();
    refusal.details.kind = plural.clone();
    refusal
}

/// A user may not do this to what is no resource.
pub(crate) fn forbidden_path(why: &str) -> Refusal {
    refusal(403, "Forbidden", format!("forbidden: {why}"))
}

pub(crate) fn bad_request(message: impl Into<String>) -> Refusal {
    refusal(400, "BadRequest", message)
}

pub(crate) fn unauthorized() -> Refusal {
    refusal(401, "Unauthorized", "Unauthorized")
}

/// A patch that cannot be done; the API server says no more than that.
pub(crate) fn unprocessable() -> Refusal {
    refusal(422, "Invalid", "the server rejected our request due to an error in our request")
}

/// A patch of a media type that this resource does not take.
pub(crate) fn unsupported_patch() -> Refusal {
    refusal(415, "UnsupportedMediaType", "415: Unsupported Media Type")
}

pub(crate) fn too_large_patch(message: String) -> Refusal {
    refusal(413, "RequestEntityTooLarge", format!("Request entity too large: {message}"))
}

/// Nothing is created of a type whose definition is going away.
pub(crate) fn terminating_definition(resource: &Resource) -> Refusal {
    let message = "create not allowed while custom resource definition is terminating";
    about(refusal(405, "MethodNotAllowed", message), resource, "")
}

/// Nothing is served at this path, though things are around it.
pub(crate) fn no_such_path() -> Refusal {
    refusal(404, "NotFound", "the server could not find the requested resource")
}

/// What the server itself got wrong, in words that clients know.
pub(crate) fn unexplained(code: u16, message: impl Into<String>) -> Refusal {
    refusal(code, "", message)
}

pub(crate) fn method_not_supported(resource: &Resource, action: &str) -> Refusal {
    let message = format!("{action} is not supported on resources of kind {}", quote(&resource.qualified()));
    about(refusal(405, "MethodNotAllowed", message), resource, "")
}

/// The method means nothing on this path.
pub(crate) fn method_not_allowed() -> Refusal {
    refusal(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
}

pub(crate) fn not_acceptable() -> Refusal {
    refusal(406, "NotAcceptable", format!("only the following media types are accepted: {ACCEPTED}"))
}

/// The metadata of a list was asked for of one object, or that of one object of a list.
pub(crate) fn is_not_what_was_asked(resource: &Resource, list: bool) -> Refusal {
    let package = match &*resource.of.group {
        "" => "core",
        group => group.split('.').next().unwrap_or_default(),
    };
    let message = if list {
        let kind = &resource.list_kind;
        format!("you requested PartialObjectMetadata, but the requested object is a list (*{package}.{kind})")
    } else {
        let kind = &resource.of.kind;
        format!("you requested PartialObjectMetadataList, but the requested object is not a list (*{package}.{kind})")
    };
    refusal(406, "NotAcceptable", message)
}

/// The body's media type is none of `accepted`.
pub(crate) fn unsupported_media_type(accepted: &str) -> Refusal {
    let message =
        format!("the body of the request was in an unknown format - accepted media types include: {accepted}");
    refusal(415, "UnsupportedMediaType", message)
}

pub(crate) fn too_large(limit: usize) -> Refusal {
    let message = format!("Request entity too large: limit is {limit}");
    refusal(413, "RequestEntityTooLarge", message)
}

pub(crate) fn expired(message: impl Into<String>) -> Refusal {
    refusal(410, "Expired", message)
}

/// The server has not seen the asked resource version yet.
pub(crate) fn version_too_large(asked: u64, current: u64, retry_after: u32) -> Refusal {
    let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
    let mut refusal = refusal(504, "Timeout", message);
    refusal.details.retry_after_seconds = retry_after;
    refusal.details.causes = vec![cause("ResourceVersionTooLarge", "Too large resource version", "")];
    refusal
}

/// A pod cannot be evicted now, for its disruption budget has no room.
pub(crate) fn disrupted(why: &str) -> Refusal {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    let mut refusal = refusal(429, "TooManyRequests", message);
    refusal.details.causes = vec![cause("DisruptionBudget", why, "")];
    refusal
}

/// A pod cannot be evicted before somebody has looked at its disruption budget.
pub(crate) fn still_processed(budget: &str) -> Refusal {
    let mut refusal = disrupted(&format!("The disruption budget {budget} is still being processed by the server."));
    refusal.details.retry_after_seconds = 10;
    refusal
}

/// The object breaks rules of its kind; `kind` is as [`Resource::qualified_kind`] gives it.
pub(crate) fn invalid(group: &str, kind: &str, name: &str, faults: &[Fault]) -> Refusal {
    let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
    let mut texts: Vec<String> = Vec::new();
    for fault in faults {
        let text = fault.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    let all = match &texts[..] {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    };
    let mut refusal = refusal(422, "Invalid", format!("{qualified} {} is invalid: {all}", quote(name)));
    refusal.details.name = name.to_owned();
    refusal.details.group = group.to_owned();
    refusal.details.kind = kind.to_owned();
    refusal.details.causes =
        faults.iter().map(|fault| cause(fault.why.reason(), &fault.body(), &fault.field)).collect();
    refusal
}

pub(crate) fn cause(reason: &str, message: &str, field: &str) -> StatusCause {
    let mut cause = StatusCause::default();
    cause.reason = reason.to_owned();
    cause.message = message.to_owned();
    cause.field = field.to_owned();
    cause
}

/// A field that breaks a rule.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    why: Why,
    field: String,
    value: Value,
    detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Required,
    Duplicate,
    Invalid,
    NotSupported,
    Forbidden,
    TooLong,
    TooMany,
    TypeInvalid,
}

impl Why {
    const fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::TooMany => "Too many",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
        }
    }
}

impl Fault {
    fn new(why: Why, field: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self { why, field: field.into(), value: value.into(), detail: detail.into() }
    }

    pub(crate) fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Why::Required, field, Value::Null, detail)
    }

    pub(crate) fn invalid(field: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(Why::Invalid, field, value, detail)
    }

    pub(crate) fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Why::Forbidden, field, Value::Null, detail)
    }

    pub(crate) fn duplicate(field: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(Why::Duplicate, field, value, "")
    }

    pub(crate) fn too_long(field: impl Into<String>, limit: usize) -> Self {
        Self::new(Why::TooLong, field, Value::Null, format!("may not be more than {limit} bytes"))
    }

    pub(crate) fn not_supported(field: impl Into<String>, value: impl Into<Value>, supported: &[&str]) -> Self {
        let quoted: Vec<_> = supported.iter().map(|text| quote(text)).collect();
        Self::new(Why::NotSupported, field, value, format!("supported values: {}", quoted.join(", ")))
    }

    pub(crate) fn too_many(field: impl Into<String>, found: usize, most: usize) -> Self {
        Self::new(Why::TooMany, field, found, format!("must have at most {most} items"))
    }

    /// A value of another type than it should have; `value` may be the name of its type.
    pub(crate) fn type_invalid(field: impl Into<String>, value: &str, detail: impl Into<String>) -> Self {
        Self::new(Why::TypeInvalid, field, value, detail)
    }

    fn body(&self) -> String {
        let words = self.why.words();
        let head = match (self.why, &self.value) {
            (Why::Required | Why::Forbidden | Why::TooLong, _) => words.to_owned(),
            (_, Value::String(text)) => format!("{words}: {}", quote(text)),
            (_, value) => format!("{words}: {value}"),
        };
        if self.detail.is_empty() { head } else { format!("{head}: {}", self.detail) }
    }
}

/// As messages tell it.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// As Go's `%q` writes text.
pub(crate) fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

/// A status as the API server writes it: what is empty is left out.
pub(crate) fn render(status: &Status) -> Value {
    let StatusDetails { name, group, kind, uid, causes, retry_after_seconds, .. } = &status.details;
    let mut details = Map::new();
    for (field, text) in [("name", name), ("group", group), ("kind", kind), ("uid", uid)] {
        set_text(&mut details, field, text);
    }
    if !causes.is_empty() {
        details.insert("causes".to_owned(), causes.iter().map(render_cause).collect());
    }
    if *retry_after_seconds > 0 {
        details.insert("retryAfterSeconds".to_owned(), json!(retry_after_seconds));
    }
    let mut metadata = Map::new();
    set_text(&mut metadata, "continue", &status.metadata.continue_token);
    let mut body = Map::new();
    for (field, text) in [
        ("kind", "Status"),
        ("apiVersion", "v1"),
        ("status", &status.status),
        ("message", &status.message),
        ("reason", &status.reason),
    ] {
        set_text(&mut body, field, text);
    }
    body.insert("metadata".to_owned(), Value::Object(metadata));
    if !details.is_empty() {
        body.insert("details".to_owned(), Value::Object(details));
    }
    if status.code > 0 {
        body.insert("code".to_owned(), json!(status.code));
    }
    Value::Object(body)
}

fn render_cause(cause: &StatusCause) -> Value {
    let mut body = Map::new();
    for (field, text) in [("reason", &cause.reason), ("message", &cause.message), ("field", &cause.field)] {
        set_text(&mut body, field, text);
    }
    Value::Object(body)
}

fn set_text(map: &mut Map<String, Value>, field: &str, text: &str) {
    if !text.is_empty() {
        map.insert(field.to_owned(), Value::from(text));
    }
}

/// The media types of answers, as errors list them.
const ACCEPTED: &str = "application/json";
