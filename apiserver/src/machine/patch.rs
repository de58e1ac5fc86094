//! Patching: JSON patch and merge patch.

use cloudcoil_core::JsonPatch;
use cloudcoil_core::patch::merge_patch;
use serde_json::{Map, Value};

use super::body::{self, Decoded};
use super::cluster::{Call, Cluster, whole};
use super::convert;
use super::errors::{Outcome, bad_request, not_found, unprocessable, unsupported_media_type};
use super::media::content_type;
use super::object::Draft;
use super::pages::check_write;
use super::present::View;
use super::reply::{Body, Reply};

impl Cluster {
    pub(crate) fn patch(&mut self, call: &Call<'_>) -> Outcome<Reply> {
        if call.target.subresource.is_none() {
            Self::allow(call.resource, "patch")?;
        }
        let change = Change::of(call)?;
        let view = View::of(call.resource, call.form()?, call.query)?;
        check_write(call.query, "PatchOptions")?;
        let Some(old) = self.store.get(&call.resource.place, &call.key()).cloned() else {
            return Err(not_found(call.resource, call.name()));
        };
        let served = convert::served(call.resource, old.fields());
        let patched = change.apply(call, served.as_ref().unwrap_or_else(|| old.fields()))?;
        let strictly = "strict decoding error: ";
        let Decoded { fields, warnings } = body::admit(&self.kinds, call.resource, call.query, patched, strictly)?;
        let object = self.update_object(call, &old, fields)?;
        let body = Body::text(200, "application/json", view.one(call.now, &object)? + "\n");
        Ok(Reply::Body(Body { warnings, ..body }))
    }
}

/// A change as the body of a request has it.
enum Change {
    Json(JsonPatch),
    Merge(Value),
}

impl Change {
    fn of(call: &Call<'_>) -> Outcome<Self> {
        match &*content_type(call.headers) {
            "application/json-patch+json" => {
                let patch = serde_json::from_slice(call.body)
                    .map_err(|error| bad_request(format!("error decoding patch: {error}")))?;
                Ok(Self::Json(patch))
            }
            "application/merge-patch+json" => {
                let patch: Value = serde_json::from_slice(call.body)
                    .map_err(|error| bad_request(format!("error decoding patch: {error}")))?;
                if patch.is_object() { Ok(Self::Merge(patch)) } else { Err(bad_request("invalid JSON patch")) }
            }
            _ => Err(unsupported_media_type("application/json-patch+json, application/merge-patch+json")),
        }
    }

    /// The fields of the changed object.
    fn apply(&self, call: &Call<'_>, old: &Draft) -> Outcome<Map<String, Value>> {
        let of = &call.resource.of;
        let mut document = Value::Object(whole(&of.api_version(), &of.kind, old));
        match self {
            Self::Json(patch) => {
                patch.apply(&mut document).map_err(|error| unprocessable(&error.to_string()))?;
            }
            Self::Merge(patch) => merge_patch(&mut document, patch).map_err(|error| bad_request(error.to_string()))?,
        }
        let Value::Object(mut fields) = document else {
            return Err(bad_request("the patch leaves no object"));
        };
        let version = fields.remove("apiVersion");
        let kind = fields.remove("kind");
        let text = |value: &Option<Value>| value.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
        body::check_type(call.resource, &text(&version), &text(&kind))?;
        Ok(fields)
    }
}
