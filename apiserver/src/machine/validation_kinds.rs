//! What the API server checks of some kinds besides their metadata: what clients run into, not every rule there is.

use cloudcoil_core::Selector;
use cloudcoil_core::k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Map, Value, json};

use super::catalog::Resource;
use super::errors::Fault;
use super::object::{self, Draft, at, text_at};
use super::validation::{IMMUTABLE, config_key, label, subdomain};
use crate::structural::schema_faults;

/// The faults of an object by the rules of its kind.
pub(crate) fn check(resource: &Resource, fields: &Draft) -> Vec<Fault> {
    let mut faults = Vec::new();
    match (&*resource.of.group, &*resource.of.plural) {
        _ if resource.is_custom() => {}
        ("", "configmaps" | "secrets") => {
            for field in ["data", "binaryData"] {
                keys(fields, field, &mut faults);
            }
        }
        ("", "pods") => pod(fields.get("spec"), "spec", &mut faults),
        ("", "services") => service(fields, &mut faults),
        ("", "events") => event(fields, &mut faults),
        ("apps", "deployments" | "statefulsets" | "daemonsets" | "replicasets") => workload(fields, &mut faults),
        ("batch", "jobs") => pod(at(fields, &["spec", "template", "spec"]), "spec.template.spec", &mut faults),
        ("coordination.k8s.io", "leases") => lease(fields, &mut faults),
        ("apiextensions.k8s.io", "customresourcedefinitions") => definition(fields, &mut faults),
        _ => {}
    }
    faults
}

/// The faults of a change by the rules of its kind.
pub(crate) fn check_change(resource: &Resource, old: &Draft, new: &Draft) -> Vec<Fault> {
    let mut faults = Vec::new();
    match (&*resource.of.group, &*resource.of.plural) {
        _ if resource.is_custom() => {}
        ("", "configmaps") => frozen(old, new, &mut faults),
        ("", "secrets") => {
            if old.get("type") != new.get("type") {
                faults.push(Fault::invalid("type", new.get("type").cloned().unwrap_or(Value::Null), IMMUTABLE));
            }
            frozen(old, new, &mut faults);
        }
        ("", "pods") => pod_change(old, new, &mut faults),
        ("", "services") => fixed(old, new, &["spec", "clusterIP"], "may not change once set", &mut faults),
        ("apps", "deployments" | "statefulsets" | "daemonsets" | "replicasets") | ("batch", "jobs") => {
            fixed(old, new, &["spec", "selector"], IMMUTABLE, &mut faults);
        }
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => {
            fixed(old, new, &["roleRef"], IMMUTABLE, &mut faults);
        }
        ("apiextensions.k8s.io", "customresourcedefinitions") => {
            for path in [["spec", "group"], ["spec", "scope"]] {
                fixed(old, new, &path, IMMUTABLE, &mut faults);
            }
            fixed(old, new, &["spec", "names", "plural"], IMMUTABLE, &mut faults);
        }
        _ => {}
    }
    faults
}

/// A field that never changes once it is set.
fn fixed(old: &Draft, new: &Draft, path: &[&str], words: &str, faults: &mut Vec<Fault>) {
    let (before, after) = (at(old, path), at(new, path));
    let set = before.is_some_and(|before| !before.is_null() && before.as_str() != Some(""));
    if set && before != after {
        faults.push(Fault::invalid(path.join("."), after.cloned().unwrap_or(Value::Null), words));
    }
}

/// What has said that it will not change does not.
fn frozen(old: &Draft, new: &Draft, faults: &mut Vec<Fault>) {
    if old.get("immutable") != Some(&Value::Bool(true)) {
        return;
    }
    const WORDS: &str = "field is immutable when `immutable` is set";
    if new.get("immutable") != Some(&Value::Bool(true)) {
        faults.push(Fault::forbidden("immutable", WORDS));
    }
    for field in ["data", "binaryData"] {
        if old.get(field) != new.get(field) {
            faults.push(Fault::forbidden(field, WORDS));
        }
    }
}

fn keys(fields: &Draft, field: &str, faults: &mut Vec<Fault>) {
    for key in fields.get(field).and_then(Value::as_object).into_iter().flat_map(Map::keys) {
        faults.extend(config_key(key).map(|words| Fault::invalid(format!("{field}[{key}]"), key.as_str(), words)));
    }
}

/// The faults of the desired state of a pod at `path`.
fn pod(spec: Option<&Value>, path: &str, faults: &mut Vec<Fault>) {
    let containers =
        |list: &str| spec.and_then(|spec| spec.get(list)?.as_array()).map(Vec::as_slice).unwrap_or_default();
    if containers("containers").is_empty() {
        faults.push(Fault::required(format!("{path}.containers"), ""));
    }
    let mut names = Vec::new();
    for list in ["initContainers", "containers"] {
        for (index, container) in containers(list).iter().enumerate() {
            let at = |field: &str| format!("{path}.{list}[{index}].{field}");
            let name = container["name"].as_str().unwrap_or_default();
            match name {
                "" => faults.push(Fault::required(at("name"), "")),
                name if names.contains(&name) => faults.push(Fault::duplicate(at("name"), name)),
                name => faults.extend(label(name).map(|words| Fault::invalid(at("name"), name, words))),
            }
            names.push(name);
            if container["image"].as_str().unwrap_or_default().is_empty() {
                faults.push(Fault::required(at("image"), ""));
            }
        }
    }
}

fn workload(fields: &Draft, faults: &mut Vec<Fault>) {
    let selector = at(fields, &["spec", "selector"]).filter(|selector| !selector.is_null());
    let labels = at(fields, &["spec", "template", "metadata", "labels"]);
    if selector.is_none() {
        faults.push(Fault::required("spec.selector", ""));
    }
    let parsed = selector.and_then(|selector| serde_json::from_value::<LabelSelector>(selector.clone()).ok());
    let selects = parsed.as_ref().and_then(|selector| Selector::try_from(selector).ok()).filter(|s| !s.is_empty());
    match selects {
        None if selector.is_some() => {
            let words = "empty selector is invalid for deployment";
            faults.push(Fault::invalid("spec.selector", selector.cloned().unwrap_or(Value::Null), words));
        }
        None => {
            let words = "`selector` does not match template `labels`";
            faults.push(Fault::invalid("spec.template.metadata.labels", labels.cloned().unwrap_or(Value::Null), words));
        }
        Some(selector) => {
            let matches = selector.matches(|key| labels?.get(key)?.as_str());
            if !matches {
                let words = "`selector` does not match template `labels`";
                let value = labels.cloned().unwrap_or(Value::Null);
                faults.push(Fault::invalid("spec.template.metadata.labels", value, words));
            }
        }
    }
    if let Some(replicas) = at(fields, &["spec", "replicas"]).and_then(Value::as_i64).filter(|count| *count < 0) {
        faults.push(Fault::invalid("spec.replicas", replicas, "must be greater than or equal to 0"));
    }
    pod(at(fields, &["spec", "template", "spec"]), "spec.template.spec", faults);
}

/// Of a pod that exists, little can be changed.
fn pod_change(old: &Draft, new: &Draft, faults: &mut Vec<Fault>) {
    const WORDS: &str = "pod updates may not change fields other than \
        `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only \
        additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
        previously negative)";
    let fixed = |fields: &Draft| {
        let mut spec = fields.get("spec").cloned().unwrap_or_else(|| json!({}));
        for list in ["containers", "initContainers"] {
            for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                container["image"] = Value::Null;
                // Resizing goes through a subresource that has checked what it lets through.
                container["resources"] = Value::Null;
                container["resizePolicy"] = Value::Null;
            }
        }
        for field in ["activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "ephemeralContainers"] {
            if let Some(spec) = spec.as_object_mut() {
                spec.remove(field);
            }
        }
        spec
    };
    if fixed(old) != fixed(new) {
        faults.push(Fault::forbidden("spec", WORDS));
    }
}

fn service(fields: &Draft, faults: &mut Vec<Fault>) {
    let spec = |path: &str| text_at(fields, &["spec", path]);
    let ports = at(fields, &["spec", "ports"]).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let headless = spec("clusterIP") == "None";
    if ports.is_empty() && !headless && spec("type") != "ExternalName" {
        faults.push(Fault::required("spec.ports", ""));
    }
    let mut names = Vec::new();
    for (index, port) in ports.iter().enumerate() {
        let number = port["port"].as_i64().unwrap_or(0);
        if !(1..=65_535).contains(&number) {
            let words = "must be between 1 and 65535, inclusive";
            faults.push(Fault::invalid(format!("spec.ports[{index}].port"), number, words));
        }
        let name = port["name"].as_str().unwrap_or_default();
        if name.is_empty() && ports.len() > 1 {
            faults.push(Fault::required(format!("spec.ports[{index}].name"), ""));
        } else if !name.is_empty() && names.contains(&name) {
            faults.push(Fault::duplicate(format!("spec.ports[{index}].name"), name));
        }
        names.push(name);
    }
    if !matches!(spec("type"), "ClusterIP" | "NodePort" | "LoadBalancer" | "ExternalName") {
        let supported = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
        faults.push(Fault::not_supported("spec.type", spec("type"), &supported));
    }
}

fn event(fields: &Draft, faults: &mut Vec<Fault>) {
    let involved = text_at(fields, &["involvedObject", "namespace"]);
    let namespace = object::meta(fields, "namespace");
    let cluster_wide = involved.is_empty() && matches!(namespace, "default" | "kube-system");
    if involved != namespace && !cluster_wide {
        faults.push(Fault::invalid("involvedObject.namespace", involved, "does not match event.namespace"));
    }
}

fn lease(fields: &Draft, faults: &mut Vec<Fault>) {
    let number = |field: &str| at(fields, &["spec", field]).and_then(Value::as_i64);
    if let Some(seconds) = number("leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
        faults.push(Fault::invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"));
    }
    if let Some(count) = number("leaseTransitions").filter(|count| *count < 0) {
        faults.push(Fault::invalid("spec.leaseTransitions", count, "must be greater than or equal to 0"));
    }
    if at(fields, &["spec", "holderIdentity"]).and_then(Value::as_str) == Some("") {
        faults.push(Fault::required("spec.holderIdentity", "must not be empty"));
    }
}

fn definition(fields: &Draft, faults: &mut Vec<Fault>) {
    let text = |path: &[&str]| text_at(fields, path);
    let (group, plural) = (text(&["spec", "group"]), text(&["spec", "names", "plural"]));
    let name = object::meta(fields, "name");
    let wanted = format!("{plural}.{group}");
    if name != wanted {
        let words = "must be spec.names.plural+\".\"+spec.group";
        faults.push(Fault::invalid("metadata.name", name, words));
    }
    match group {
        "" => faults.push(Fault::required("spec.group", "")),
        group if !group.contains('.') => {
            faults.push(Fault::invalid("spec.group", group, "should be a domain with at least one dot"));
        }
        group => faults.extend(subdomain(group).map(|words| Fault::invalid("spec.group", group, words))),
    }
    if !matches!(text(&["spec", "scope"]), "Cluster" | "Namespaced") {
        faults.push(match text(&["spec", "scope"]) {
            "" => Fault::required("spec.scope", ""),
            scope => Fault::not_supported("spec.scope", scope, &["Cluster", "Namespaced"]),
        });
    }
    for field in ["plural", "singular", "kind", "listKind"] {
        let name = text(&["spec", "names", field]);
        let path = format!("spec.names.{field}");
        match name {
            "" => faults.push(Fault::required(path, "")),
            name => {
                let checked = if matches!(field, "kind" | "listKind") { name.to_lowercase() } else { name.to_owned() };
                faults.extend(label(&checked).map(|words| Fault::invalid(path, name, words)));
            }
        }
    }
    versions(fields, faults);
}

/// The faults of the schema of a version, which is told of apart where versions differ in it.
fn schema(version: &Value, versions: &[Value], index: usize, faults: &mut Vec<Fault>) {
    let schema = &version["schema"]["openAPIV3Schema"];
    if schema.is_null() {
        faults.push(Fault::required(format!("spec.versions[{index}].schema.openAPIV3Schema"), ""));
        return;
    }
    let alike = versions.iter().all(|other| other["schema"] == version["schema"]);
    match (alike, index) {
        (true, 0) => faults.extend(schema_faults(schema, "spec.validation.openAPIV3Schema")),
        (true, _) => {}
        (false, _) => {
            faults.extend(schema_faults(schema, &format!("spec.versions[{index}].schema.openAPIV3Schema")));
        }
    }
}

fn versions(fields: &Draft, faults: &mut Vec<Fault>) {
    let versions = at(fields, &["spec", "versions"]).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if versions.is_empty() {
        faults.push(Fault::required("spec.versions", "must have exactly one version marked as storage version"));
        return;
    }
    for (index, version) in versions.iter().enumerate() {
        schema(version, versions, index, faults);
    }
    let stored = versions.iter().filter(|version| version["storage"] == Value::Bool(true)).count();
    if stored != 1 {
        let words = "must have exactly one version marked as storage version";
        faults.push(Fault::invalid("spec.versions", Value::Array(versions.to_vec()), words));
    }
    let mut names = Vec::new();
    for (index, version) in versions.iter().enumerate() {
        let name = version["name"].as_str().unwrap_or_default();
        let at = |field: &str| format!("spec.versions[{index}].{field}");
        match name {
            "" => faults.push(Fault::required(at("name"), "")),
            name if names.contains(&name) => {
                faults.push(Fault::invalid("spec.versions", name, "must contain unique version names"));
            }
            name => faults.extend(label(name).map(|words| Fault::invalid(at("name"), name, words))),
        }
        names.push(name);
    }
}
