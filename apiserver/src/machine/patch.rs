//! Patching: JSON patch, merge patch, and strategic merge patch.

use cloudcoil_core::JsonPatch;
use cloudcoil_core::patch::merge_patch;
use serde_json::{Map, Value};

use super::body::{self, Decoded};
use super::catalog::Resource;
use super::cluster::{Call, Cluster, whole};
use super::convert;
use super::errors::{
    Fault, Outcome, bad_request, invalid, not_found, unprocessable, unsupported_media_type, unsupported_patch,
};
use super::media::content_type;
use super::object::{Draft, meta};
use super::pages::check_write;
use super::present::View;
use super::reply::{Body, Reply};
use super::write::check_name;
use crate::kinds::Kinds;
use crate::strategic;

impl Cluster {
    pub(crate) fn patch(&mut self, call: &Call<'_>) -> Outcome<Reply> {
        if call.target.subresource.is_none() {
            Self::allow(call.resource, "patch")?;
        }
        let change = Change::of(call)?;
        let view = View::of(&self.kinds, call.resource, call.form()?, call.query)?;
        check_write(call.query, "PatchOptions")?;
        let Some(old) = self.store.get(&call.resource.place, &call.key()).cloned() else {
            return Err(not_found(call.resource, call.name()));
        };
        let served = convert::served(&self.kinds, call.resource, old.fields());
        let patched = change.apply(&self.kinds, call.resource, served.as_ref().unwrap_or_else(|| old.fields()))?;
        let of = &call.resource.of;
        let text = Value::Object(whole(&of.api_version(), &of.kind, &patched)).to_string();
        let admitted = body::admit(&self.kinds, call.resource, call.query, patched);
        let misfit = |fault: String| invalid("", "", "", &[Fault::invalid("patch", text, fault)]);
        let Decoded { fields, warnings } = admitted.map_err(misfit)?;
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
    pub(crate) fn of(call: &Call<'_>) -> Outcome<Self> {
        match &*content_type(call.headers) {
            "application/json-patch+json" => {
                let patch: JsonPatch = decode(call)?;
                if patch.len() > MAX_OPERATIONS {
                    let message = format!(
                        "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
                        patch.len()
                    );
                    return Err(super::errors::too_large_patch(message));
                }
                Ok(Self::Json(patch))
            }
            "application/merge-patch+json" => Ok(Self::Merge(Value::Object(decode(call)?))),
            "application/strategic-merge-patch+json" if !call.resource.is_custom() => {
                Ok(Self::Strategic(decode(call)?))
            }
            _ if call.resource.is_custom() => {
                Err(unsupported_media_type("application/json-patch+json, application/merge-patch+json"))
            }
            _ => Err(unsupported_patch()),
        }
    }

    /// The fields of the changed object.
    fn apply(self, kinds: &Kinds, resource: &Resource, old: &Draft) -> Outcome<Map<String, Value>> {
        let of = &resource.of;
        let document = whole(&of.api_version(), &of.kind, old);
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

fn decode<T: serde::de::DeserializeOwned>(call: &Call<'_>) -> Outcome<T> {
    serde_json::from_slice(call.body).map_err(|error| bad_request(format!("error decoding patch: {error}")))
}

/// The most operations in a JSON patch.
const MAX_OPERATIONS: usize = 10_000;
