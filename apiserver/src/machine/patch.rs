//! Patching: JSON patch, merge patch, and strategic merge patch.

use cloudcoil_core::JsonPatch;
use cloudcoil_core::patch::merge_patch;
use serde_json::{Map, Value};

use super::apply::check_options;
use super::body;
use super::catalog::Resource;
use super::cluster::{Call, Cluster, whole};
use super::convert;
use super::errors::{
    Fault, Outcome, bad_request, invalid, not_found, unprocessable, unsupported_media_type, unsupported_patch,
};
use super::media::content_type;
use super::object::{Draft, meta, meta_value, metadata_mut, set_meta};
use super::ownership::FIELD;
use super::pages::check_write;
use super::present::View;
use super::reply::{Body, Reply};
use super::text;
use super::write::check_name;
use crate::kinds::{Kinds, Node};
use crate::strategic;

impl Cluster {
    pub(crate) fn patch(&mut self, call: &Call<'_>) -> Outcome<Reply> {
        if call.target.subresource.is_none() {
            Self::allow(call.resource, "patch")?;
        }
        let applies = content_type(call.headers) == APPLY;
        check_write(call.query, "PatchOptions")?;
        check_options(call.query, applies)?;
        if applies {
            return self.apply(call);
        }
        let mut strict = Vec::new();
        let change = Change::of(call, &mut strict)?;
        let view = View::of(&self.kinds, call.resource, call.form()?, call.query)?;
        let Some(old) = self.store.get(&call.resource.place, &call.key()).cloned() else {
            return Err(not_found(call.resource, call.name()));
        };
        // Ownership is long, and seldom what a patch is about.
        let mut document =
            convert::served(&self.kinds, call.resource, old.fields()).unwrap_or_else(|| old.fields().clone());
        let owners = if mentions_owners(call.body) { None } else { metadata_mut(&mut document).remove(FIELD) };
        let patched = change.apply(&self.kinds, call.resource, document)?;
        let fields = body::admit(&self.kinds, call.resource, Value::Object(patched.clone()).into(), &mut strict);
        let misfit = |fault: String| {
            let mut patched = patched.clone();
            let owners = owners.as_ref().or_else(|| meta_value(&patched, FIELD)).cloned();
            set_meta(&mut patched, FIELD, owners);
            let of = &call.resource.of;
            let text = Value::Object(whole(&of.api_version(), &of.kind, &patched)).to_string();
            invalid("", "", "", &[Fault::invalid("patch", text, fault)])
        };
        let fields = fields.map_err(misfit)?;
        let warnings = body::validated(call.query, &strict, strict.clone()).map_err(misfit)?;
        self.warnings.clone_from(&warnings);
        check_name(call, &fields)?;
        let object = self.update_object(call, &old, fields)?;
        let body = Body::text(200, "application/json", view.one(call.now, &object)? + "\n");
        Ok(Reply::Body(Body { warnings, ..body }))
    }
}

/// A change as the body of a request has it.
pub(crate) enum Change {
    Json(JsonPatch),
    Merge(Value),
    Strategic(Map<String, Value>),
}

impl Change {
    /// Reads the body; fields that are in it twice are told in `strict`.
    pub(crate) fn of(call: &Call<'_>, strict: &mut Vec<String>) -> Outcome<Self> {
        match &*content_type(call.headers) {
            "application/json-patch+json" => {
                let (value, duplicates): (Value, _) = decode(call)?;
                strict.extend(duplicates.into_iter().map(|fault| format!("json patch {fault}")));
                let patch: JsonPatch =
                    serde_json::from_value(value).map_err(|error| bad_request(undecodable(&error)))?;
                if patch.len() > MAX_OPERATIONS {
                    let message = format!(
                        "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
                        patch.len()
                    );
                    return Err(super::errors::too_large_patch(message));
                }
                Ok(Self::Json(patch))
            }
            "application/merge-patch+json" => {
                let (patch, duplicates) = decode(call)?;
                strict.extend(duplicates);
                Ok(Self::Merge(Value::Object(patch)))
            }
            "application/strategic-merge-patch+json" if !call.resource.is_custom() => {
                let (patch, duplicates) = decode(call)?;
                strict.extend(duplicates);
                Ok(Self::Strategic(patch))
            }
            _ if call.resource.is_custom() => Err(unsupported_media_type(
                "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            )),
            _ => Err(unsupported_patch()),
        }
    }

    /// The fields of the changed object.
    fn apply(self, kinds: &Kinds, resource: &Resource, old: Draft) -> Outcome<Map<String, Value>> {
        let of = &resource.of;
        let mut document = old;
        document.insert("apiVersion".to_owned(), Value::from(of.api_version()));
        document.insert("kind".to_owned(), Value::from(&*of.kind));
        let mut fields = self.change(kinds, (&of.group, &of.version, &of.kind), document)?;
        let version = fields.remove("apiVersion");
        let kind = fields.remove("kind");
        let text = |value: &Option<Value>| value.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
        body::check_type(resource, &text(&version), &text(&kind), meta(&fields, "name"))?;
        Ok(fields)
    }

    /// The scale that this change makes of another.
    pub(crate) fn apply_to_scale(self, kinds: &Kinds, scale: Map<String, Value>) -> Outcome<Map<String, Value>> {
        self.change(kinds, ("autoscaling", "v1", "Scale"), scale)
    }

    fn change(
        self,
        kinds: &Kinds,
        (group, version, kind): (&str, &str, &str),
        document: Map<String, Value>,
    ) -> Outcome<Map<String, Value>> {
        let mut document = Value::Object(document);
        match self {
            Self::Json(patch) => patch.apply(&mut document).map_err(|_| unprocessable())?,
            Self::Merge(patch) => merge_patch(&mut document, &patch).map_err(|error| bad_request(error.to_string()))?,
            Self::Strategic(patch) => {
                let (Some(kind), Value::Object(original)) = (kinds.kind(group, version, kind), document) else {
                    return Err(unprocessable());
                };
                let merged = strategic::apply(kinds, kind.structure, original, patch);
                document = Value::Object(merged.map_err(|error| match error.code() {
                    422 => unprocessable(),
                    _ => bad_request(error.to_string()),
                })?);
            }
        }
        match document {
            Value::Object(fields) => Ok(fields),
            _ => Err(bad_request("the patch leaves no object")),
        }
    }
}

/// Whether a patch may be about who owns what.
fn mentions_owners(body: &[u8]) -> bool {
    let name = FIELD.as_bytes();
    // What is escaped may be anything.
    body.contains(&b'\\') || body.windows(name.len()).any(|window| window == name)
}

/// The body, and what is in it twice.
fn decode<T: serde::de::DeserializeOwned>(call: &Call<'_>) -> Outcome<(T, Vec<String>)> {
    let node: Node = serde_json::from_slice(call.body).map_err(|error| bad_request(undecodable(&error)))?;
    let mut duplicates = Vec::new();
    let value = text::value(node, "", &mut duplicates);
    let patch = serde_json::from_value(value).map_err(|error| bad_request(undecodable(&error)))?;
    Ok((patch, duplicates))
}

fn undecodable(error: &serde_json::Error) -> String {
    format!("error decoding patch: {error}")
}

/// The media type of a configuration to be applied.
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

/// The most operations in a JSON patch.
const MAX_OPERATIONS: usize = 10_000;
