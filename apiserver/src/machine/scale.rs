//! The scale subresource: how many replicas an object has, whatever kind it is.

use cloudcoil_core::Selector;
use cloudcoil_core::k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Map, Value, json};

use super::apply::check_options;
use super::body;
use super::catalog::Resource;
use super::cluster::{Call, Cluster, place_in_namespace};
use super::errors::{Fault, Outcome, bad_request, invalid, not_found};
use super::media::content_type;
use super::object::{self, Draft, Object, meta};
use super::ownership::FIELD;
use super::pages::check_write;
use super::patch::{APPLY, Change};
use super::reply::{Body, Reply};
use super::scale_owners::ScaleOwners;

/// Where an object keeps what its scale shows.
pub(crate) struct Paths {
    pub(crate) spec: Vec<String>,
    status: Vec<String>,
    selector: Option<Vec<String>>,
}

impl Cluster {
    pub(crate) fn scale(&mut self, call: &Call<'_>, verb: &str) -> Outcome<Reply> {
        let Some(old) = self.store.get(&call.resource.place, &call.key()).cloned() else {
            return Err(not_found(call.resource, call.name()));
        };
        let paths = paths(call.resource);
        let shown = show(call.resource, &paths, &old);
        if verb == "get" {
            return Ok(reply(&shown));
        }
        let applies = verb == "patch" && content_type(call.headers) == APPLY;
        check_write(call.query, if verb == "patch" { "PatchOptions" } else { "UpdateOptions" })?;
        if verb == "patch" {
            check_options(call.query, applies)?;
        }
        let owned = ScaleOwners::of(self, call, &old);
        let (mut wanted, owners) = if applies {
            owned.apply(call, shown)?
        } else {
            let wanted = match verb {
                "patch" => Change::of(call, &mut Vec::new())?.apply_to_scale(&self.kinds, shown.clone())?,
                _ => body::read(&self.kinds, call, ("autoscaling", "v1", "Scale"))?,
            };
            let owners = owned.update(call, shown, &wanted);
            (wanted, owners)
        };
        place_in_namespace(call, &mut wanted)?;
        let name = meta(&wanted, "name");
        if !name.is_empty() && name != call.name() {
            let message =
                format!("the name of the object ({name}) does not match the name on the URL ({})", call.name());
            return Err(bad_request(message));
        }
        let replicas = replicas(&wanted)?;
        let mut new = old.fields().clone();
        set(&mut new, &paths.spec, json!(replicas));
        for field in ["resourceVersion", "uid"] {
            let given = object::meta_value(&wanted, field).filter(|value| value.as_str() != Some("")).cloned();
            object::set_meta(&mut new, field, given.or_else(|| object::meta_value(old.fields(), field).cloned()));
        }
        object::set_meta(&mut new, FIELD, owners);
        // It is the object itself that changes, by the rules of the object.
        let target = super::route::Target { subresource: None, ..call.target.clone() };
        let object = self.update_tracked(&Call { target: &target, ..*call }, &old, new)?;
        Ok(reply(&show(call.resource, &paths, &object)))
    }
}

fn reply(scale: &Map<String, Value>) -> Reply {
    Reply::Body(Body::json(200, &Value::Object(scale.clone())))
}

fn replicas(wanted: &Draft) -> Outcome<i64> {
    let replicas = match object::at(wanted, &["spec", "replicas"]) {
        None | Some(Value::Null) => 0,
        Some(value) => value.as_i64().filter(|count| i32::try_from(*count).is_ok()).ok_or_else(|| {
            bad_request("Scale in version \"v1\" cannot be handled as a Scale: spec.replicas is no number of 32 bits")
        })?,
    };
    if replicas < 0 {
        let fault = Fault::invalid("spec.replicas", replicas, "must be greater than or equal to 0");
        return Err(invalid("autoscaling", "Scale", meta(wanted, "name"), &[fault]));
    }
    Ok(replicas)
}

pub(crate) fn paths(resource: &Resource) -> Paths {
    let split = |path: &str| path.trim_start_matches('.').split('.').map(str::to_owned).collect();
    match resource.custom.as_ref().and_then(|custom| custom.scale.as_ref()) {
        Some(scale) => Paths {
            spec: split(&scale.spec),
            status: split(&scale.status),
            selector: scale.selector.as_ref().map(|path| split(path)),
        },
        None => Paths {
            spec: split("spec.replicas"),
            status: split("status.replicas"),
            selector: Some(split("spec.selector")),
        },
    }
}

fn show(resource: &Resource, paths: &Paths, object: &Object) -> Map<String, Value> {
    let fields = object.fields();
    let find = |path: &[String]| object::at(fields, &path.iter().map(String::as_str).collect::<Vec<_>>());
    let count = |path: &[String]| find(path).and_then(Value::as_i64).unwrap_or(0);
    let mut metadata = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object::meta_value(fields, field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let mut status = json!({"replicas": count(&paths.status)});
    if let Some(selector) = paths.selector.as_deref().and_then(find).and_then(|value| selector_text(resource, value)) {
        status["selector"] = Value::from(selector);
    }
    let mut spec = Map::new();
    if count(&paths.spec) != 0 {
        spec.insert("replicas".to_owned(), json!(count(&paths.spec)));
    }
    [
        ("kind", json!("Scale")),
        ("apiVersion", json!("autoscaling/v1")),
        ("metadata", Value::Object(metadata)),
        ("spec", Value::Object(spec)),
        ("status", status),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

/// A selector as text: a custom resource keeps it so, others as labels or as a `LabelSelector`.
fn selector_text(resource: &Resource, value: &Value) -> Option<String> {
    if let Some(text) = value.as_str() {
        return Some(text.to_owned());
    }
    if resource.is("", "replicationcontrollers") {
        let pairs =
            value.as_object()?.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
        return Some(pairs.collect::<Vec<_>>().join(","));
    }
    let selector: LabelSelector = serde_json::from_value(value.clone()).ok()?;
    Some(Selector::try_from(&selector).ok()?.to_string())
}

fn set(fields: &mut Map<String, Value>, path: &[String], value: Value) {
    match path {
        [] => {}
        [last] => {
            fields.insert(last.clone(), value);
        }
        [first, rest @ ..] => set(object::child_mut(fields, first), rest, value),
    }
}
