//! What an object must be to be stored: its name, its metadata, and what of it never changes.

use std::collections::BTreeSet;

use cloudcoil_core::selector::{NameFault, check_label_key, check_label_value};
use serde_json::Value;

use super::catalog::Resource;
use super::errors::Fault;
use super::object::{self, Draft, Object, meta, text_at};
use crate::structural;

/// The faults of a new object.
pub(crate) fn create(resource: &Resource, fields: &Draft) -> Vec<Fault> {
    let mut faults = Vec::new();
    let (name, prefix) = (meta(fields, "name"), meta(fields, "generateName"));
    if !prefix.is_empty() {
        let masked = mask_trailing_dash(prefix);
        faults
            .extend(name_faults(resource, &masked).map(|fault| Fault::invalid("metadata.generateName", prefix, fault)));
    }
    if name.is_empty() {
        faults.push(Fault::required("metadata.name", "name or generateName is required"));
    } else {
        faults.extend(name_faults(resource, name).map(|fault| Fault::invalid("metadata.name", name, fault)));
    }
    faults.extend(common(resource, fields));
    faults.extend(super::validation_kinds::check(resource, fields));
    if let Some(custom) = &resource.custom {
        faults.extend(structural::faults(&custom.schema, &Value::Object(fields.clone()), None));
    }
    faults
}

/// The faults of an object that is changed through `subresource` or by itself.
pub(crate) fn update(resource: &Resource, subresource: &str, old: &Object, new: &Draft) -> Vec<Fault> {
    let mut faults = change(resource, old.fields(), new);
    if let Some(custom) = &resource.custom {
        let new = Value::Object(new.clone());
        faults.extend(match subresource {
            "status" => structural::status_faults(&custom.schema, &new, Some(old.value())),
            _ => structural::faults(&custom.schema, &new, Some(old.value())),
        });
    }
    faults
}

fn change(resource: &Resource, old: &Draft, new: &Draft) -> Vec<Fault> {
    let mut faults = Vec::new();
    if object::is_deleting(old) {
        let known: BTreeSet<_> = object::texts(old, "finalizers").into_iter().collect();
        let added: BTreeSet<_> = object::texts(new, "finalizers").into_iter().filter(|f| !known.contains(f)).collect();
        if !added.is_empty() {
            let quoted: Vec<_> = added.iter().map(|finalizer| super::errors::quote(finalizer)).collect();
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                quoted.join(", ")
            );
            faults.push(Fault::forbidden("metadata.finalizers", detail));
        }
    }
    for field in ["name", "namespace", "uid"] {
        if meta(old, field) != meta(new, field) {
            faults.push(Fault::invalid(format!("metadata.{field}"), meta(new, field), IMMUTABLE));
        }
    }
    faults.extend(common(resource, new));
    faults.extend(super::validation_kinds::check(resource, new));
    faults.extend(super::validation_kinds::check_change(resource, old, new));
    faults
}

/// An owner that is named twice counts once.
pub(crate) fn drop_duplicate_owners(fields: &mut Draft) {
    let Some(owners) = object::metadata_mut(fields).get_mut("ownerReferences").and_then(Value::as_array_mut) else {
        return;
    };
    let mut seen = Vec::new();
    owners.retain(|owner| {
        let new = !seen.contains(owner);
        seen.push(owner.clone());
        new
    });
}

fn common(resource: &Resource, fields: &Draft) -> Vec<Fault> {
    let mut faults = labels(object::meta_value(fields, "labels"), "metadata.labels");
    faults.extend(annotations(fields));
    faults.extend(owners(fields));
    faults.extend(finalizers(resource, fields));
    faults
}

/// The faults of a map of labels at `path`.
pub(crate) fn labels(labels: Option<&Value>, path: &str) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        if let Err(fault) = check_label_key(key) {
            faults.push(Fault::invalid(path, key.as_str(), words(fault)));
        }
        let value = value.as_str().unwrap_or_default();
        if let Err(fault) = check_label_value(value) {
            faults.push(Fault::invalid(path, value, words(fault)));
        }
    }
    faults
}

fn annotations(fields: &Draft) -> Vec<Fault> {
    const LIMIT: usize = 256 << 10;
    const FIELD: &str = "metadata.annotations";
    let mut faults = Vec::new();
    let mut size = 0;
    for (key, value) in object::meta_value(fields, "annotations").and_then(Value::as_object).into_iter().flatten() {
        size += key.len() + value.as_str().map_or(0, str::len);
        if let Err(fault) = check_label_key(&key.to_lowercase()) {
            faults.push(Fault::invalid(FIELD, key.as_str(), words(fault)));
        }
    }
    if size > LIMIT {
        faults.push(Fault::too_long(FIELD, LIMIT));
    }
    faults
}

fn owners(fields: &Draft) -> Vec<Fault> {
    const FIELD: &str = "metadata.ownerReferences";
    let owners = object::meta_value(fields, "ownerReferences");
    let mut faults = Vec::new();
    let mut controller: Option<String> = None;
    for (index, owner) in owners.and_then(Value::as_array).into_iter().flatten().enumerate() {
        let Some(owner) = owner.as_object() else { continue };
        let at = |field: &str| format!("{FIELD}[{index}].{field}");
        let version = text_at(owner, &["apiVersion"]);
        match version.split('/').collect::<Vec<_>>()[..] {
            [""] => faults.push(Fault::required(at("apiVersion"), "must not be empty")),
            [_] => {}
            [_, second] if !second.is_empty() => {}
            _ => {
                let detail = "must be <group>/<version> or <version>";
                faults.push(Fault::invalid(at("apiVersion"), version, detail));
            }
        }
        for field in ["kind", "name", "uid"] {
            if text_at(owner, &[field]).is_empty() {
                faults.push(Fault::required(at(field), "must not be empty"));
            }
        }
        let kind = text_at(owner, &["kind"]);
        if (version, kind) == ("v1", "Event") {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            faults.push(Fault::invalid(format!("{FIELD}[{index}]"), Value::Object(owner.clone()), detail));
        }
        if owner.get("controller") == Some(&Value::Bool(true)) {
            let this = format!("{kind}/{}", text_at(owner, &["name"]));
            if let Some(first) = controller.replace(this.clone()) {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and \
                     {this}"
                );
                faults.push(Fault::invalid(FIELD, owners.cloned().unwrap_or(Value::Null), detail));
                controller = Some(first);
            }
        }
    }
    faults
}

fn finalizers(resource: &Resource, fields: &Draft) -> Vec<Fault> {
    const FIELD: &str = "metadata.finalizers";
    let finalizers = object::texts(fields, "finalizers");
    let mut faults: Vec<_> = finalizers
        .iter()
        .filter_map(|finalizer| {
            check_label_key(finalizer).err().map(|fault| Fault::invalid(FIELD, *finalizer, words(fault)))
        })
        .collect();
    let standard = ["kubernetes", "orphan", "foregroundDeletion"];
    for (index, finalizer) in finalizers.iter().enumerate() {
        let qualified = finalizer.contains('/') || standard.contains(finalizer);
        if !qualified && !resource.is_custom() && resource.of.group != "apiextensions.k8s.io" {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            faults.push(Fault::invalid(format!("{FIELD}[{index}]"), *finalizer, detail));
        }
    }
    if finalizers.contains(&"orphan") && finalizers.contains(&"foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        faults.push(Fault::invalid(FIELD, finalizers.into_iter().collect::<Value>(), detail));
    }
    faults
}

/// What is wrong with a name by the rules of its kind.
fn name_faults(resource: &Resource, name: &str) -> impl Iterator<Item = String> {
    let fault = match (&*resource.of.group, &*resource.of.plural) {
        ("", "namespaces" | "services") => label(name),
        ("rbac.authorization.k8s.io", _) => path_segment(name),
        _ => subdomain(name),
    };
    fault.into_iter()
}

/// What the API server says of a label key or value.
fn words(fault: NameFault) -> String {
    const NAME: &str = "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
        '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    const VALUE: &str = "(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is \
        '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    match fault {
        NameFault::NameSyntax => format!("{fault} {NAME}"),
        NameFault::ValueSyntax => {
            format!(
                "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
                 start and end with an alphanumeric character {VALUE}"
            )
        }
        fault => fault.to_string(),
    }
}

/// What is wrong with a key of a config map or secret.
pub(crate) fn config_key(key: &str) -> Option<String> {
    const WORDS: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
        'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
    let valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    match key {
        _ if key.len() > 253 => Some("must be no more than 253 characters".to_owned()),
        "" => Some(WORDS.to_owned()),
        "." => Some("must not be '.'".to_owned()),
        key if key.starts_with("..") => Some("must not start with '..'".to_owned()),
        key if key.bytes().all(valid) => None,
        _ => Some(WORDS.to_owned()),
    }
}

/// A DNS label of RFC 1123.
pub(crate) fn label(name: &str) -> Option<String> {
    const WORDS: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
        start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
        '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    if name.len() > 63 {
        return Some("must be no more than 63 characters".to_owned());
    }
    (!is_label(name)).then(|| WORDS.to_owned())
}

/// A DNS subdomain of RFC 1123.
pub(crate) fn subdomain(name: &str) -> Option<String> {
    const WORDS: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
        and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
        '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    if name.len() > 253 {
        return Some("must be no more than 253 characters".to_owned());
    }
    (!name.split('.').all(is_label)).then(|| WORDS.to_owned())
}

/// What can stand in a path.
fn path_segment(name: &str) -> Option<String> {
    match name {
        "." | ".." => Some(format!("may not be '{name}'")),
        name if name.contains('/') => Some("may not contain '/'".to_owned()),
        name if name.contains('%') => Some("may not contain '%'".to_owned()),
        _ => None,
    }
}

fn is_label(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    bytes.first().copied().is_some_and(inner)
        && bytes.last().copied().is_some_and(inner)
        && bytes.iter().all(|byte| inner(*byte) || *byte == b'-')
}

/// A prefix may end in a dash, since something comes behind it.
fn mask_trailing_dash(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            format!("{}a", &rest[..rest.len() - rest.chars().last().map_or(0, char::len_utf8)])
        }
        _ => prefix.to_owned(),
    }
}

/// What is said of a field that never changes.
pub(crate) const IMMUTABLE: &str = "field is immutable";
