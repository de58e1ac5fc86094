//! Namespaces: what every cluster has, what every namespace gets, and how one goes away.

use std::collections::BTreeMap;
use std::sync::Arc;

use cloudcoil_core::Now;
use serde_json::{Value, json};

use super::catalog::Resource;
use super::cluster::Cluster;
use super::controllers::NAMESPACES;
use super::delete::DeleteOptions;
use super::object::{self, Draft, child_mut, set_meta};
use super::store::{Key, key};
use super::strategy;

impl Cluster {
    /// Creates the namespaces that every cluster has.
    pub(crate) fn create_system_namespaces(&mut self, now: Now) {
        let resource = self.catalog.resource("", "v1", "namespaces").cloned().expect("every table has namespaces");
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            self.create_for_system(now, &resource, None, name, Draft::new());
        }
    }

    fn create_for_system(
        &mut self,
        now: Now,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        mut fields: Draft,
    ) {
        let key = key(namespace, name);
        if self.store.get(&resource.place, &key).is_some() {
            return;
        }
        set_meta(&mut fields, "name", Some(Value::from(name)));
        set_meta(&mut fields, "namespace", namespace.map(Value::from));
        set_meta(&mut fields, "uid", Some(Value::from(self.uid())));
        set_meta(&mut fields, "creationTimestamp", Some(Value::from(now.wall.to_rfc3339())));
        strategy::prepare_create(&self.kinds, resource, &mut fields);
        self.put(resource, &key, fields);
    }

    /// Gives a namespace its service account and the certificate of the server, as clients wait for them.
    pub(crate) fn equip_namespace(&mut self, now: Now, name: &Key) {
        if self.store.get(NAMESPACES, name).is_none_or(|namespace| namespace.is_deleting()) {
            return;
        }
        let resource = |plural| self.catalog.resource("", "v1", plural).cloned();
        let (Some(accounts), Some(maps)) = (resource("serviceaccounts"), resource("configmaps")) else { return };
        self.create_for_system(now, &accounts, Some(name), "default", Draft::new());
        let mut map = Draft::new();
        map.insert("data".to_owned(), json!({"ca.crt": self.root_ca}));
        self.create_for_system(now, &maps, Some(name), "kube-root-ca.crt", map);
    }

    /// Deletes what is in a namespace that is going away, and then the namespace.
    pub(crate) fn empty_namespace(&mut self, now: Now, name: &Key) {
        let Some(namespace) = self.store.get(NAMESPACES, name).cloned().filter(|found| found.is_deleting()) else {
            return;
        };
        let prefix = format!("{name}/");
        let mut places: BTreeMap<_, Arc<Resource>> = BTreeMap::new();
        for resource in self.catalog.resources().filter(|resource| resource.is_namespaced()) {
            places.entry(Arc::clone(&resource.place)).or_insert_with(|| Arc::clone(resource));
        }
        let mut remaining: Vec<(Arc<Resource>, Key)> = Vec::new();
        for (place, resource) in places {
            let keys: Vec<_> = self.store.under(&place, &prefix).map(|(key, _)| Arc::clone(key)).collect();
            for key in keys {
                let _ = self.delete_object(now, &resource, &key, &DeleteOptions::background());
                if self.store.get(&place, &key).is_some() {
                    remaining.push((Arc::clone(&resource), key));
                }
            }
        }
        let mut fields = namespace.fields().clone();
        if remaining.is_empty() {
            let spec = child_mut(&mut fields, "spec");
            if let Some(finalizers) = spec.get_mut("finalizers").and_then(Value::as_array_mut) {
                finalizers.retain(|finalizer| finalizer != "kubernetes");
            }
        }
        self.report_remaining(now, &mut fields, &remaining);
        self.rewrite(NAMESPACES, name, fields);
    }

    /// Says in the status of a namespace what keeps it.
    fn report_remaining(&self, now: Now, fields: &mut Draft, remaining: &[(Arc<Resource>, Key)]) {
        let mut resources: BTreeMap<String, usize> = BTreeMap::new();
        let mut finalizers: BTreeMap<String, usize> = BTreeMap::new();
        for (resource, key) in remaining {
            *resources.entry(resource.qualified()).or_default() += 1;
            let object = self.store.get(&resource.place, key);
            for finalizer in object.iter().flat_map(|object| object::texts(object.fields(), "finalizers")) {
                *finalizers.entry(finalizer.to_owned()).or_default() += 1;
            }
        }
        let list = |counts: &BTreeMap<String, usize>, words: &str| {
            counts.iter().map(|(name, count)| format!("{name} {words} {count} resource instances")).collect::<Vec<_>>()
        };
        let content = format!("Some resources are remaining: {}", list(&resources, "has").join(", "));
        let held =
            format!("Some content in the namespace has finalizers remaining: {}", list(&finalizers, "in").join(", "));
        for (kind, reason, message, nothing, holds) in [
            ("NamespaceContentRemaining", "SomeResourcesRemain", content, CONTENT_REMOVED, !resources.is_empty()),
            ("NamespaceFinalizersRemaining", "SomeFinalizersRemain", held, FINALIZERS_DONE, !finalizers.is_empty()),
        ] {
            let (status, (reason, message)) =
                if holds { ("True", (reason, message)) } else { ("False", (nothing.0, nothing.1.to_owned())) };
            set_condition(child_mut(fields, "status"), now, kind, status, reason, &message);
        }
    }
}

/// Sets a condition in a status; its transition time changes with its status alone.
pub(crate) fn set_condition(status: &mut Draft, now: Now, kind: &str, value: &str, reason: &str, message: &str) {
    let conditions = status.entry("conditions").or_insert(Value::Null);
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    let found = conditions.iter_mut().find(|condition| condition["type"] == kind);
    let since = match &found {
        Some(condition) if condition["status"] == value => condition["lastTransitionTime"].clone(),
        _ => Value::from(now.wall.to_rfc3339()),
    };
    let condition =
        json!({"type": kind, "status": value, "reason": reason, "message": message, "lastTransitionTime": since});
    match found {
        Some(found) => *found = condition,
        None => conditions.push(condition),
    }
}

const CONTENT_REMOVED: (&str, &str) = ("ContentRemoved", "All content successfully removed");
const FINALIZERS_DONE: (&str, &str) = ("ContentHasNoFinalizers", "All content-preserving finalizers finished");
