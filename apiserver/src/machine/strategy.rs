//! What differs between resources when their objects are created and changed.

use serde_json::{Map, Value, json};

use super::catalog::Resource;
use super::definitions;
use super::object::{self, Draft, child_mut, meta_value, set_meta};
use super::ownership::FIELD;
use super::user::User;
use crate::kinds::Kinds;

/// What the server decides of a new object.
pub(crate) fn prepare_create(kinds: &Kinds, resource: &Resource, fields: &mut Draft) {
    if has_status(resource) && !resource.is("", "nodes") {
        reset_status(kinds, resource, fields);
    }
    if has_generation(resource) {
        set_meta(fields, "generation", Some(json!(1)));
    }
    match (&*resource.of.group, &*resource.of.plural) {
        ("", "namespaces") => {
            let name = object::meta(fields, "name").to_owned();
            let finalizers = child_mut(fields, "spec").entry("finalizers").or_insert_with(|| json!([]));
            if let Some(list) = finalizers.as_array_mut().filter(|list| !list.contains(&json!("kubernetes"))) {
                list.push(json!("kubernetes"));
            }
            label_namespace(fields, &name);
            fields.insert("status".to_owned(), json!({"phase": "Active"}));
        }
        ("", "pods") => {
            fields.insert("status".to_owned(), json!({"phase": "Pending", "qosClass": quality_of_service(fields)}));
        }
        ("", "persistentvolumeclaims" | "persistentvolumes") => {
            fields.insert("status".to_owned(), json!({"phase": "Pending"}));
        }
        ("batch", "jobs") => prepare_job(fields),
        ("apiextensions.k8s.io", "customresourcedefinitions") => {
            fields.insert("status".to_owned(), definitions::initial_status(fields));
        }
        _ => {}
    }
}

/// A request for a certificate says who makes it.
pub(crate) fn name_requester(resource: &Resource, user: &User, fields: &mut Draft) {
    if !resource.is("certificates.k8s.io", "certificatesigningrequests") {
        return;
    }
    let spec = child_mut(fields, "spec");
    for (field, value) in [
        ("username", (!user.name.is_empty()).then(|| json!(user.name))),
        ("uid", (!user.uid.is_empty()).then(|| json!(user.uid))),
        ("groups", (!user.groups.is_empty()).then(|| json!(user.groups))),
        ("extra", (!user.extra.is_empty()).then(|| json!(user.extra))),
    ] {
        match value {
            Some(value) => spec.insert(field.to_owned(), value),
            None => spec.remove(field),
        };
    }
}

/// A job selects its pods by a label that only they have.
fn prepare_job(fields: &mut Draft) {
    if object::at(fields, &["spec", "manualSelector"]) == Some(&Value::Bool(true)) {
        return;
    }
    let uid = object::meta(fields, "uid").to_owned();
    let name = object::meta(fields, "name").to_owned();
    let labelled = meta_value(fields, "labels").and_then(Value::as_object).is_some_and(|map| !map.is_empty());
    let spec = child_mut(fields, "spec");
    spec.insert("selector".to_owned(), json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}));
    let labels = child_mut(child_mut(child_mut(spec, "template"), "metadata"), "labels");
    for (key, value) in [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ] {
        labels.entry(key).or_insert_with(|| Value::from(value.as_str()));
    }
    let labels = labels.clone();
    if !labelled {
        set_meta(fields, "labels", Some(Value::Object(labels)));
    }
}

/// What an update through `subresource` leaves as it was, and what it counts.
pub(crate) fn prepare_update(resource: &Resource, subresource: Option<&str>, old: &Draft, new: &mut Draft) {
    set_meta(new, "generation", meta_value(old, "generation").cloned());
    match subresource {
        Some("status") => only(resource, old, new, "status"),
        Some("ephemeralcontainers") => {
            only_at(old, new, "ephemeralContainers");
            count(resource, old, new);
        }
        Some("resize") => {
            only_at(old, new, "containers");
            count(resource, old, new);
        }
        Some("finalize") => keep(old, new, "status"),
        Some("approval") => {
            let conditions = object::at(new, &["status", "conditions"]).cloned();
            only(resource, old, new, "");
            if let Some(conditions) = conditions {
                child_mut(new, "status").insert("conditions".to_owned(), conditions);
            }
        }
        Some(_) | None => {
            if has_status(resource) {
                keep(old, new, "status");
            }
            if resource.is("", "namespaces") {
                keep_at(old, new, "spec", "finalizers");
                let name = object::meta(old, "name").to_owned();
                label_namespace(new, &name);
            }
            count(resource, old, new);
        }
    }
}

/// Lets through a change of one part alone.
fn only(resource: &Resource, old: &Draft, new: &mut Draft, part: &str) {
    let wanted = new.remove(part);
    let given = new.get("metadata").cloned().unwrap_or(Value::Null);
    *new = old.clone();
    match wanted {
        Some(wanted) => new.insert(part.to_owned(), wanted),
        None => new.remove(part),
    };
    // Kubelets annotate through the status.
    if !resource.is_custom() && matches!(&*resource.of.plural, "pods" | "nodes" | "namespaces") {
        for field in ["labels", "annotations"] {
            set_meta(new, field, given.get(field).cloned());
        }
    }
    // What the write was conditional on is checked by now, and checked again by whoever looks at metadata.
    for field in ["resourceVersion", "uid", "name", "namespace", FIELD] {
        set_meta(new, field, given.get(field).cloned());
    }
}

/// Lets through a change of one field of the desired state alone.
fn only_at(old: &Draft, new: &mut Draft, field: &str) {
    let wanted = object::at(new, &["spec", field]).cloned();
    let conditions = ["resourceVersion", "uid", FIELD].map(|field| (field, meta_value(new, field).cloned()));
    *new = old.clone();
    if let Some(wanted) = wanted {
        child_mut(new, "spec").insert(field.to_owned(), wanted);
    }
    for (field, value) in conditions {
        set_meta(new, field, value);
    }
}

/// Counts a change of the desired state.
fn count(resource: &Resource, old: &Draft, new: &mut Draft) {
    let Some(generation) = meta_value(old, "generation").and_then(Value::as_i64) else { return };
    if has_generation(resource) && differs(resource, old, new) {
        set_meta(new, "generation", Some(json!(generation + 1)));
    }
}

fn differs(resource: &Resource, old: &Draft, new: &Draft) -> bool {
    let ignored = |name: &str| name == "metadata" || (name == "status" && has_status(resource));
    let desired = |fields: &Draft| -> Map<String, Value> {
        fields.iter().filter(|(name, _)| !ignored(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    desired(old) != desired(new)
}

/// Of a new object there is no status yet: none at all for a custom resource, one with nothing in it for others.
fn reset_status(kinds: &Kinds, resource: &Resource, fields: &mut Draft) {
    fields.remove("status");
    let of = &resource.of;
    let kind = kinds.kind(&of.group, &of.version, &of.kind).filter(|_| !resource.is_custom());
    let status = kind.and_then(|kind| kinds.field(kind.structure, "status")?.structure());
    if let Some(status) = status {
        let empty = kinds.canonicalize(status, json!({})).map(|canonical| canonical.object).unwrap_or_default();
        fields.insert("status".to_owned(), Value::Object(empty));
    }
}

fn keep(old: &Draft, new: &mut Draft, part: &str) {
    match old.get(part) {
        Some(value) => new.insert(part.to_owned(), value.clone()),
        None => new.remove(part),
    };
}

fn keep_at(old: &Draft, new: &mut Draft, part: &str, field: &str) {
    let kept = object::at(old, &[part, field]).cloned();
    let part = child_mut(new, part);
    match kept {
        Some(value) => part.insert(field.to_owned(), value),
        None => part.remove(field),
    };
}

fn label_namespace(fields: &mut Draft, name: &str) {
    let labels = child_mut(object::metadata_mut(fields), "labels");
    labels.insert("kubernetes.io/metadata.name".to_owned(), Value::from(name));
}

/// Whether the status is written through a subresource alone.
pub(crate) fn has_status(resource: &Resource) -> bool {
    resource.subresource("status").is_some()
}

/// Whether changes of the desired state are counted.
pub(crate) fn has_generation(resource: &Resource) -> bool {
    resource.is_custom()
        || matches!(
            (&*resource.of.group, &*resource.of.plural),
            ("", "pods" | "podtemplates" | "replicationcontrollers")
                | ("apps", "daemonsets" | "deployments" | "replicasets" | "statefulsets")
                | ("batch", "cronjobs" | "jobs")
                | ("autoscaling", "horizontalpodautoscalers")
                | ("networking.k8s.io", "ingresses" | "ingressclasses" | "networkpolicies")
                | ("policy", "poddisruptionbudgets")
                | ("discovery.k8s.io", "endpointslices")
                | ("resource.k8s.io", "deviceclasses" | "resourceslices")
                | ("scheduling.k8s.io", "priorityclasses")
                | ("admissionregistration.k8s.io" | "flowcontrol.apiserver.k8s.io", _)
                | ("apiextensions.k8s.io", "customresourcedefinitions")
        )
}

/// Whether an update may leave out which version of the object it is about.
pub(crate) fn updates_unconditionally(resource: &Resource) -> bool {
    !resource.is_custom()
        && !matches!(
            (&*resource.of.group, &*resource.of.plural),
            ("admissionregistration.k8s.io" | "apiextensions.k8s.io" | "apiregistration.k8s.io", _)
                | ("certificates.k8s.io", "clustertrustbundles" | "podcertificaterequests")
                | ("coordination.k8s.io" | "storagemigration.k8s.io", _)
                | ("node.k8s.io", "runtimeclasses")
                | ("policy", "poddisruptionbudgets")
                | ("storage.k8s.io", "csidrivers" | "csinodes" | "csistoragecapacities" | "volumeattachments")
        )
}

/// Whether a replace of an object that is not there creates it.
pub(crate) fn creates_on_update(resource: &Resource) -> bool {
    !resource.is_custom()
        && matches!(
            (&*resource.of.group, &*resource.of.plural),
            ("", "endpoints" | "events" | "limitranges" | "services")
                | ("coordination.k8s.io" | "rbac.authorization.k8s.io" | "events.k8s.io", _)
                | ("node.k8s.io", "runtimeclasses")
        )
}

/// Whether nothing keeps the object from going away.
pub(crate) fn is_finalized(resource: &Resource, fields: &Draft) -> bool {
    let held = resource.is("", "namespaces")
        && object::at(fields, &["spec", "finalizers"]).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    !held && object::texts(fields, "finalizers").is_empty()
}

/// Whether a deletion is answered with the object in the place of a status.
pub(crate) fn returns_deleted(resource: &Resource) -> bool {
    matches!(
        (&*resource.of.group, &*resource.of.plural),
        (
            "",
            "namespaces"
                | "persistentvolumeclaims"
                | "persistentvolumes"
                | "pods"
                | "podtemplates"
                | "resourcequotas"
                | "serviceaccounts"
                | "services"
        ) | ("storage.k8s.io", "csidrivers" | "csinodes" | "storageclasses" | "volumeattachments")
            | ("storage.k8s.io", "volumeattributesclasses")
            | ("resource.k8s.io", _)
    )
}

/// How much of its pods' demands a node keeps free for them.
fn quality_of_service(fields: &Draft) -> &'static str {
    let containers = || {
        ["containers", "initContainers"]
            .into_iter()
            .flat_map(|list| object::at(fields, &["spec", list]).and_then(Value::as_array).into_iter().flatten())
    };
    let amounts = |container: &Value, part: &str| -> Map<String, Value> {
        container["resources"][part].as_object().cloned().unwrap_or_default()
    };
    if containers()
        .all(|container| amounts(container, "limits").is_empty() && amounts(container, "requests").is_empty())
    {
        return "BestEffort";
    }
    let guaranteed = containers().all(|container| {
        let (limits, requests) = (amounts(container, "limits"), amounts(container, "requests"));
        ["cpu", "memory"]
            .into_iter()
            .all(|name| limits.get(name).is_some_and(|limit| requests.get(name).is_none_or(|request| request == limit)))
    });
    if guaranteed { "Guaranteed" } else { "Burstable" }
}
