//! Garbage collection: objects go with their owners, before them, or stay behind.
//!
//! See <https://kubernetes.io/docs/concepts/architecture/garbage-collection/>.

use std::sync::Arc;

use cloudcoil_core::Now;
use serde_json::Value;

use super::catalog::Resource;
use super::cluster::Cluster;
use super::controllers::Owners;
use super::delete::DeleteOptions;
use super::object::{self, Draft, Object, set_meta, text_at};
use super::store::{Key, key};

/// An owner that exists.
pub(crate) struct Owner {
    pub(crate) resource: Arc<Resource>,
    pub(crate) key: Key,
    pub(crate) object: Arc<Object>,
}

/// What there is at the place an owner reference names.
enum Referent {
    /// The owner.
    There(Owner),
    /// Nothing, or another object of that name.
    Gone,
    /// Nobody can say: its type is not served, or it would be in a namespace and the dependent is in none.
    Unknown,
}

impl Cluster {
    /// The owners of an object that exist.
    pub(crate) fn owners(&self, object: &Object) -> Vec<Owner> {
        let there = references(object.fields()).iter().filter_map(|reference| match self.referent(object, reference) {
            Referent::There(owner) => Some(owner),
            Referent::Gone | Referent::Unknown => None,
        });
        there.collect()
    }

    fn referent(&self, dependent: &Object, reference: &Value) -> Referent {
        let Some(reference) = reference.as_object() else { return Referent::Unknown };
        let api_version = text_at(reference, &["apiVersion"]);
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let Some(resource) = self.catalog.kind(group, version, text_at(reference, &["kind"])) else {
            return Referent::Unknown;
        };
        let namespace = match (resource.is_namespaced(), dependent.namespace()) {
            (false, _) => None,
            (true, "") => return Referent::Unknown,
            (true, namespace) => Some(namespace),
        };
        let key = key(namespace, text_at(reference, &["name"]));
        match self.store.get(&resource.place, &key) {
            Some(found) if found.uid() == text_at(reference, &["uid"]) => {
                Referent::There(Owner { resource: Arc::clone(resource), key, object: Arc::clone(found) })
            }
            _ => Referent::Gone,
        }
    }

    /// Deletes an object whose owners are gone, or going after it.
    pub(crate) fn collect(&mut self, now: Now, place: &str, key: &Key, owners: &Owners) {
        let Some(object) = self.store.get(place, key).cloned() else { return };
        if object.is_deleting() {
            return;
        }
        let references = references(object.fields());
        if references.is_empty() {
            return;
        }
        let (mut solid, mut waiting, mut dangling) = (Vec::new(), Vec::new(), Vec::new());
        for reference in references {
            let uid = reference.get("uid").and_then(Value::as_str).unwrap_or_default();
            match self.referent(&object, reference) {
                Referent::There(owner) if goes_last(&owner.object) => waiting.push(uid),
                Referent::There(_) | Referent::Unknown => solid.push(uid),
                Referent::Gone => dangling.push(uid),
            }
        }
        if !solid.is_empty() {
            let lost: Vec<_> = waiting.into_iter().chain(dangling).collect();
            if !lost.is_empty() {
                let fields = without_owners(object.fields(), |uid| lost.contains(&uid));
                self.rewrite(place, key, fields);
            }
            return;
        }
        let finalizers = object::texts(object.fields(), "finalizers");
        let policy = match () {
            () if !waiting.is_empty() && !owners.dependents(object.uid()).is_empty() => "Foreground",
            () if finalizers.contains(&"orphan") => "Orphan",
            () if finalizers.contains(&"foregroundDeletion") => "Foreground",
            () => "Background",
        };
        let options = DeleteOptions { propagation_policy: Some(policy.to_owned()), ..DeleteOptions::default() };
        if let Some(resource) = self.catalog.at(place).cloned() {
            // Only a precondition could refuse this, and nothing has changed since the object was read.
            let _ = self.delete_object(now, &resource, key, &options.with_uid(object.uid()));
        }
    }

    /// Goes on with the deletion of an object that waits for its dependents, or leaves them behind.
    pub(crate) fn delete_around(&mut self, now: Now, place: &str, key: &Key, owners: &Owners) {
        let Some(object) = self.store.get(place, key).cloned() else { return };
        if !object.is_deleting() {
            return;
        }
        let finalizers = object::texts(object.fields(), "finalizers");
        if finalizers.contains(&"orphan") {
            self.leave_behind(&object, owners);
            self.rewrite(place, key, without_finalizer(object.fields(), "orphan"));
        } else if finalizers.contains(&"foregroundDeletion") {
            let dependents = owners.dependents(object.uid());
            let blocking = dependents.iter().filter(|(place, key)| self.blocks(place, key, &object)).count();
            if blocking == 0 {
                self.rewrite(place, key, without_finalizer(object.fields(), "foregroundDeletion"));
                return;
            }
            for (place, key) in dependents {
                self.collect(now, &place, &key, owners);
            }
        }
    }

    /// Takes the owner out of everything it owns.
    fn leave_behind(&mut self, owner: &Object, owners: &Owners) {
        for (place, key) in owners.dependents(owner.uid()) {
            if let Some(dependent) = self.store.get(&place, &key) {
                let fields = without_owners(dependent.fields(), |uid| uid == owner.uid());
                self.rewrite(&place, &key, fields);
            }
        }
    }

    /// Whether an owner that goes last has to wait for this dependent.
    fn blocks(&self, place: &str, key: &Key, owner: &Object) -> bool {
        let Some(dependent) = self.store.get(place, key) else { return false };
        references(dependent.fields())
            .iter()
            .any(|reference| reference["uid"] == owner.uid() && reference["blockOwnerDeletion"] == Value::Bool(true))
    }
}

/// Whether an object goes after what it owns.
fn goes_last(object: &Object) -> bool {
    object.is_deleting() && object::texts(object.fields(), "finalizers").contains(&"foregroundDeletion")
}

fn references(fields: &Draft) -> &[Value] {
    object::meta_value(fields, "ownerReferences").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn without_owners(fields: &Draft, lost: impl Fn(&str) -> bool) -> Draft {
    let kept: Vec<_> =
        references(fields).iter().filter(|reference| !reference["uid"].as_str().is_some_and(&lost)).cloned().collect();
    let mut fields = fields.clone();
    set_meta(&mut fields, "ownerReferences", (!kept.is_empty()).then_some(Value::Array(kept)));
    fields
}

/// The object without one of its finalizers.
pub(crate) fn without_finalizer(fields: &Draft, finalizer: &str) -> Draft {
    let kept: Vec<_> =
        object::texts(fields, "finalizers").into_iter().filter(|name| *name != finalizer).map(Value::from).collect();
    let mut fields = fields.clone();
    set_meta(&mut fields, "finalizers", (!kept.is_empty()).then_some(Value::Array(kept)));
    fields
}
