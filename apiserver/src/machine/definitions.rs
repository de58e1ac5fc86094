//! Custom resource definitions: from the object to what is served.

use std::sync::Arc;

use cloudcoil_core::{Now, ResourceType, Scope};
use serde_json::{Map, Value, json};

use super::catalog::{Custom, Resource, ScalePaths, Subresource, place};
use super::cluster::Cluster;
use super::controllers::DEFINITIONS;
use super::delete::DeleteOptions;
use super::garbage::without_finalizer;
use super::namespaces::set_condition;
use super::object::{self, Draft, Object, at, child_mut, list, text_at};
use super::store::Key;
use crate::structural::Schema;

impl Cluster {
    /// Accepts a definition, serves it, or takes it away with its objects.
    pub(crate) fn look_at_definition(&mut self, now: Now, name: &Key) {
        let Some(definition) = self.store.get(DEFINITIONS, name).cloned() else {
            self.catalog.define(name, Vec::new());
            return;
        };
        if definition.is_deleting() {
            self.take_away(now, name, &definition);
            return;
        }
        let fields = self.accept(now, name, &definition);
        self.rewrite(DEFINITIONS, name, fields);
        self.serve(name);
    }

    /// Serves a definition as it is now, if its names were accepted.
    fn serve(&mut self, name: &Key) {
        let Some(definition) = self.store.get(DEFINITIONS, name) else { return };
        let resources = if is_true(definition.fields(), "Established") { resources(definition) } else { Vec::new() };
        self.catalog.define(name, resources);
    }

    /// The definition with the conditions that say whether its names can be served.
    fn accept(&self, now: Now, name: &Key, definition: &Object) -> Draft {
        let mut fields = definition.fields().clone();
        let names = at(definition.fields(), &["spec", "names"]).cloned().unwrap_or(Value::Null);
        let conflict = self.conflict(name, definition);
        let status = child_mut(&mut fields, "status");
        let Some((reason, message)) = conflict else {
            set_condition(status, now, "NamesAccepted", "True", "NoConflicts", "no conflicts found");
            let words = "the initial names have been accepted";
            set_condition(status, now, "Established", "True", "InitialNamesAccepted", words);
            status.insert("acceptedNames".to_owned(), names);
            return fields;
        };
        set_condition(status, now, "NamesAccepted", "False", reason, &message);
        if !is_true(definition.fields(), "Established") {
            let words = "not all names are accepted";
            set_condition(status, now, "Established", "False", "NotAccepted", words);
        }
        fields
    }

    /// Which name another definition of the group has already.
    fn conflict(&self, name: &Key, definition: &Object) -> Option<(&'static str, String)> {
        let group = text_at(definition.fields(), &["spec", "group"]);
        let taken = |wanted: &str, fields: &[&str]| {
            let others = self
                .store
                .all(DEFINITIONS)
                .filter(|(key, other)| *key != name && text_at(other.fields(), &["spec", "group"]) == group);
            others.into_iter().any(|(_, other)| {
                let accepted = at(other.fields(), &["status", "acceptedNames"]);
                fields.iter().any(|field| match accepted.and_then(|names| names.get(field)) {
                    Some(Value::String(text)) => text == wanted,
                    Some(Value::Array(list)) => list.iter().any(|text| text == wanted),
                    _ => false,
                })
            })
        };
        let said = |name: &str| format!("{} is already in use", super::errors::quote(name));
        let names = |field: &str| text_at(definition.fields(), &["spec", "names", field]);
        let resource_names = ["plural", "singular", "shortNames"];
        for (field, among, reason) in [
            ("plural", &resource_names[..], "PluralConflict"),
            ("singular", &resource_names[..], "SingularConflict"),
            ("kind", &["kind", "listKind"][..], "KindConflict"),
            ("listKind", &["kind", "listKind"][..], "ListKindConflict"),
        ] {
            let wanted = names(field);
            if !wanted.is_empty() && taken(wanted, among) {
                return Some((reason, said(wanted)));
            }
        }
        let shorts = at(definition.fields(), &["spec", "names", "shortNames"]).and_then(Value::as_array);
        let taken_short = shorts.into_iter().flatten().filter_map(Value::as_str).find(|s| taken(s, &resource_names));
        taken_short.map(|short| ("ShortNamesConflict", said(short)))
    }

    /// Deletes the objects of a definition that is going away, and then the definition.
    fn take_away(&mut self, now: Now, name: &Key, definition: &Object) {
        self.serve(name);
        let fields = definition.fields();
        let of = place(text_at(fields, &["spec", "group"]), text_at(fields, &["spec", "names", "plural"]));
        if let Some(resource) = self.catalog.at(&of).cloned() {
            let keys: Vec<_> = self.store.all(&of).map(|(key, _)| Arc::clone(key)).collect();
            for key in keys {
                let _ = self.delete_object(now, &resource, &key, &DeleteOptions::background());
            }
        }
        if self.store.all(&of).next().is_none() {
            self.rewrite(DEFINITIONS, name, without_finalizer(fields, CLEANUP));
        }
    }
}

/// Marks a definition as going away: its objects go first.
pub(crate) fn mark(fields: &mut Draft, now: Now) {
    let mut finalizers: Vec<_> = object::texts(fields, "finalizers").into_iter().map(str::to_owned).collect();
    if !finalizers.iter().any(|finalizer| finalizer == CLEANUP) {
        finalizers.push(CLEANUP.to_owned());
    }
    object::set_meta(fields, "finalizers", Some(Value::from(finalizers)));
    object::set_meta(fields, "deletionTimestamp", Some(Value::from(now.wall.to_rfc3339())));
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    set_condition(child_mut(fields, "status"), now, "Terminating", "True", "InstanceDeletionPending", message);
}

/// Whether a condition of a definition holds.
fn is_true(fields: &Draft, kind: &str) -> bool {
    let conditions = at(fields, &["status", "conditions"]).and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| condition["type"] == kind && condition["status"] == "True")
}

/// What a definition serves: one resource in each version that is served.
fn resources(definition: &Object) -> Vec<Resource> {
    let spec = definition.fields().get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    let served = |version: &&Value| version["served"] == Value::Bool(true);
    list(&spec, "versions").iter().filter(served).map(|version| resource(definition, &spec, version)).collect()
}

fn resource(definition: &Object, spec: &Map<String, Value>, version: &Value) -> Resource {
    let text = |path: &[&str]| text_at(spec, path).to_owned();
    let texts = |field: &str| {
        let list = at(spec, &["names", field]).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(|text| Some(text.as_str()?.to_owned().into())).collect()
    };
    let scope = if text(&["scope"]) == "Cluster" { Scope::Cluster } else { Scope::Namespaced };
    let (group, plural, kind) = (text(&["group"]), text(&["names", "plural"]), text(&["names", "kind"]));
    let name = version["name"].as_str().unwrap_or_default().to_owned();
    let place = place(&group, &plural);
    Resource {
        singular: text(&["names", "singular"]).into(),
        list_kind: text(&["names", "listKind"]).into(),
        verbs: ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
            .map(Into::into)
            .to_vec(),
        short_names: texts("shortNames"),
        categories: texts("categories"),
        hash: hash(&group, &name, &kind).into(),
        subresources: subresources(&group, &name, &kind, version),
        custom: Some(custom(definition, version)),
        place,
        of: ResourceType::new(group, name, kind, plural, scope),
    }
}

fn subresources(group: &str, version: &str, kind: &str, of: &Value) -> Vec<Subresource> {
    let verbs = || ["get", "patch", "update"].map(Into::into).to_vec();
    let mut found = Vec::new();
    if of["subresources"]["status"].is_object() {
        let (group, version, kind) = (group.to_owned().into(), version.to_owned().into(), kind.to_owned().into());
        found.push(Subresource { name: "status".into(), group, version, kind, verbs: verbs() });
    }
    if of["subresources"]["scale"].is_object() {
        let (group, version, kind) = ("autoscaling".into(), "v1".into(), "Scale".into());
        found.push(Subresource { name: "scale".into(), group, version, kind, verbs: verbs() });
    }
    found
}

fn custom(definition: &Object, version: &Value) -> Custom {
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let selectable = version["selectableFields"].as_array().into_iter().flatten();
    let scale = &version["subresources"]["scale"];
    Custom {
        definition: definition.name().to_owned().into(),
        schema: Arc::new(Schema::parse(&version["schema"]["openAPIV3Schema"])),
        // What is no list of columns has been refused, or is empty.
        columns: serde_json::from_value(version["additionalPrinterColumns"].clone()).unwrap_or_default(),
        selectable: selectable
            .filter_map(|field| Some(field["jsonPath"].as_str()?.trim_start_matches('.').to_owned().into()))
            .collect(),
        scale: scale.is_object().then(|| ScalePaths {
            spec: text(scale, "specReplicasPath").into(),
            status: text(scale, "statusReplicasPath").into(),
            selector: scale["labelSelectorPath"].as_str().map(|path| path.to_owned().into()),
        }),
        terminating: definition.is_deleting(),
    }
}

/// Stands for how the objects are stored: the same for the same type, as discovery wants it.
fn hash(group: &str, version: &str, kind: &str) -> String {
    use base64::Engine;
    let bytes = format!("{group}/{version}/{kind}")
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    base64::engine::general_purpose::STANDARD.encode(bytes.to_be_bytes())
}

/// What the server fills in when a definition leaves it out.
pub(crate) fn default_names(fields: &mut Draft) {
    let spec = child_mut(fields, "spec");
    let conversion = child_mut(spec, "conversion");
    conversion.entry("strategy").or_insert_with(|| json!("None"));
    let names = child_mut(spec, "names");
    let kind = text_at(names, &["kind"]).to_owned();
    for (field, default) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
        if text_at(names, &[field]).is_empty() {
            names.insert(field.to_owned(), Value::from(default));
        }
    }
}

/// The status of a definition that nobody has looked at: which version its objects will be stored in.
pub(crate) fn initial_status(fields: &Draft) -> Value {
    let versions = at(fields, &["spec", "versions"]).and_then(Value::as_array);
    let stored: Vec<_> = versions
        .into_iter()
        .flatten()
        .filter(|version| version["storage"] == Value::Bool(true))
        .map(|version| version["name"].clone())
        .collect();
    json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored})
}

/// The finalizer by which a definition waits for its objects.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";
