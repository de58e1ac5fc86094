//! The controllers inside the server: what they have to look at, and when.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cloudcoil_core::{Now, Time};
use serde_json::Value;

use super::cluster::Cluster;
use super::delete::DeleteOptions;
use super::logs::PODS;
use super::object::{self, Object};
use super::store::{Change, Key, Place};

/// What the controllers know, and what is left for them to do.
#[derive(Debug)]
pub(crate) struct Controllers {
    delay: Duration,
    agenda: BTreeSet<(Time, Work)>,
    /// When each piece of work on the agenda is due, so that none is on it twice.
    due: BTreeMap<Work, Time>,
    pub(crate) owners: Owners,
}

/// One thing to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Work {
    /// An object with owners, which may be gone.
    Dependent(Place, Key),
    /// An object that is deleted before or after, or without, what it owns.
    Owner(Place, Key),
    /// A namespace that is going away.
    Namespace(Key),
    /// A namespace that must have what every namespace has.
    Equip(Key),
    /// A custom resource definition.
    Definition(Key),
    /// A pod whose time to end is over. There is no kubelet that would end it.
    Pod(Key),
}

/// Who owns whom, by uid.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    dependents: BTreeMap<String, BTreeSet<(Place, Key)>>,
}

impl Owners {
    /// The objects that name `uid` as an owner.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<(Place, Key)> {
        self.dependents.get(uid).into_iter().flatten().cloned().collect()
    }

    fn learn(&mut self, change: &Change) {
        let uids = |object: &Option<Arc<Object>>| -> BTreeSet<String> {
            object.iter().flat_map(|object| owner_uids(object)).collect()
        };
        let (before, after) = (uids(&change.before), uids(&change.after));
        let at = (Arc::clone(&change.place), Arc::clone(&change.key));
        for gone in before.difference(&after) {
            if let Some(dependents) = self.dependents.get_mut(gone) {
                dependents.remove(&at);
                if dependents.is_empty() {
                    self.dependents.remove(gone);
                }
            }
        }
        for new in after.difference(&before) {
            self.dependents.entry(new.clone()).or_default().insert(at.clone());
        }
    }
}

fn owner_uids(object: &Object) -> Vec<String> {
    let owners = object::meta_value(object.fields(), "ownerReferences").and_then(Value::as_array);
    owners.into_iter().flatten().filter_map(|owner| Some(owner.get("uid")?.as_str()?.to_owned())).collect()
}

impl Controllers {
    pub(crate) fn new(delay: Duration) -> Self {
        Self { delay, agenda: BTreeSet::new(), due: BTreeMap::new(), owners: Owners::default() }
    }

    /// When the next piece of work is due.
    pub(crate) fn due(&self) -> Option<Time> {
        self.agenda.first().map(|(at, _)| *at)
    }

    /// Takes the next piece of work if it is due; with `None`, whatever is next.
    pub(crate) fn take(&mut self, now: Option<Time>) -> Option<Work> {
        let (at, _) = self.agenda.first()?;
        if now.is_some_and(|now| *at > now) {
            return None;
        }
        let (_, work) = self.agenda.pop_first()?;
        self.due.remove(&work);
        Some(work)
    }

    fn plan(&mut self, now: Now, work: Work) {
        self.plan_at(now.mono + self.delay, work);
    }

    /// Plans work for `at`, or leaves it where it is planned sooner.
    fn plan_at(&mut self, at: Time, work: Work) {
        match self.due.get(&work) {
            Some(due) if *due <= at => return,
            Some(due) => self.agenda.remove(&(*due, work.clone())),
            None => false,
        };
        self.agenda.insert((at, work.clone()));
        self.due.insert(work, at);
    }

    /// Hears of a write, and plans what follows from it.
    pub(crate) fn observe(&mut self, now: Now, cluster: &Cluster, change: &Change) {
        self.owners.learn(change);
        let at = |(place, key): (Place, Key)| Work::Dependent(place, key);
        match (&change.before, &change.after) {
            (_, Some(after)) => self.observe_write(now, change, after),
            (Some(before), None) => {
                for dependent in self.owners.dependents(before.uid()) {
                    self.plan(now, at(dependent));
                }
            }
            (None, None) => {}
        }
        // Owners that go after their dependents look again when a dependent goes, or is no longer one.
        for owner in change.before.iter().flat_map(|before| cluster.owners(before)) {
            if owner.object.is_deleting() {
                self.plan(now, Work::Owner(Arc::clone(&owner.resource.place), owner.key));
            }
        }
        self.observe_namespaced(now, cluster, change);
    }

    fn observe_write(&mut self, now: Now, change: &Change, after: &Object) {
        let at = (Arc::clone(&change.place), Arc::clone(&change.key));
        if !owner_uids(after).is_empty() {
            self.plan(now, Work::Dependent(at.0.clone(), at.1.clone()));
        }
        if &*change.place == PODS && object::grace(after.fields()) > 0 {
            let ends = object::time(after.meta("deletionTimestamp")).unwrap_or(now.wall);
            let left = ends.as_micros().saturating_sub(now.wall.as_micros());
            let left = Duration::from_micros(u64::try_from(left).unwrap_or(0));
            self.plan_at(now.mono + left.max(self.delay), Work::Pod(Arc::clone(&change.key)));
        }
        let finalizers = object::texts(after.fields(), "finalizers");
        if after.is_deleting() && finalizers.iter().any(|name| matches!(*name, "orphan" | "foregroundDeletion")) {
            self.plan(now, Work::Owner(at.0, at.1));
        }
    }

    fn observe_namespaced(&mut self, now: Now, cluster: &Cluster, change: &Change) {
        match (&*change.place, &change.after) {
            (NAMESPACES, Some(after)) if after.is_deleting() => {
                self.plan(now, Work::Namespace(Arc::clone(&change.key)));
            }
            (NAMESPACES, Some(_)) if change.before.is_none() => self.plan(now, Work::Equip(Arc::clone(&change.key))),
            (DEFINITIONS, after) => {
                self.plan(now, Work::Definition(Arc::clone(&change.key)));
                // The names of one that is gone are free for those that wait for them.
                for (key, _) in cluster.store.all(DEFINITIONS).filter(|_| after.is_none()) {
                    self.plan(now, Work::Definition(Arc::clone(key)));
                }
            }
            (place, None) => {
                if let Some((namespace, name)) = change.key.split_once('/') {
                    let equipment = [("/serviceaccounts", "default"), ("/configmaps", "kube-root-ca.crt")];
                    let namespace = Key::from(namespace);
                    if cluster.store.get(NAMESPACES, &namespace).is_some_and(|found| found.is_deleting()) {
                        self.plan(now, Work::Namespace(namespace));
                    } else if equipment.contains(&(place, name)) {
                        self.plan(now, Work::Equip(namespace));
                    }
                }
                if let Some(definition) = cluster.definition_of(place) {
                    self.plan(now, Work::Definition(definition));
                }
            }
            _ => {}
        }
    }
}

impl Cluster {
    /// Does a piece of work of the controllers.
    pub(crate) fn perform(&mut self, now: Now, work: &Work, owners: &Owners) {
        match work {
            Work::Dependent(place, key) => self.collect(now, place, key, owners),
            Work::Owner(place, key) => self.delete_around(now, place, key, owners),
            Work::Namespace(name) => self.empty_namespace(now, name),
            Work::Equip(name) => self.equip_namespace(now, name),
            Work::Definition(name) => self.look_at_definition(now, name),
            Work::Pod(key) => self.end_pod(now, key),
        }
    }

    /// Deletes a pod whose time to end is over.
    fn end_pod(&mut self, now: Now, key: &Key) {
        let Some(pods) = self.catalog.at(PODS).cloned() else { return };
        let Some(pod) = self.store.get(PODS, key) else { return };
        // One of the same name may have come since.
        let over = pod.is_deleting() && object::time(pod.meta("deletionTimestamp")).is_none_or(|at| at <= now.wall);
        if over {
            let options = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
            let _ = self.delete_object(now, &pods, key, &options.with_uid(pod.uid()));
        }
    }

    /// The definition whose objects are kept at `place`, if it is going away.
    fn definition_of(&self, at: &str) -> Option<Key> {
        let custom = self.catalog.at(at)?.custom.as_ref()?;
        custom.terminating.then(|| Key::from(&*custom.definition))
    }

    /// Stores what a controller has made of an object; without its last finalizer a deleted object goes.
    pub(crate) fn rewrite(&mut self, at: &str, key: &Key, fields: object::Draft) {
        let Some(resource) = self.catalog.at(at).cloned() else { return };
        let Some(old) = self.store.get(at, key) else { return };
        if *old.fields() == fields {
            return;
        }
        if object::is_deleting(&fields) && super::strategy::is_finalized(&resource, &fields) {
            self.remove(&resource, key);
        } else {
            self.put(&resource, key, fields);
        }
    }
}

/// Where namespaces are kept.
pub(crate) const NAMESPACES: &str = "/namespaces";

/// Where custom resource definitions are kept.
pub(crate) const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";

#[cfg(test)]
mod tests {
    use super::super::catalog::place;
    use super::*;

    #[test]
    fn the_places_are_those_of_the_catalog() {
        assert_eq!(&*place("", "namespaces"), NAMESPACES);
        assert_eq!(&*place("apiextensions.k8s.io", "customresourcedefinitions"), DEFINITIONS);
    }
}
