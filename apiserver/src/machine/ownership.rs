//! Who owns which fields of an object: what each write makes of `managedFields`.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::catalog::{Catalog, Resource};
use super::cluster::{Call, Cluster};
use super::convert;
use super::object::{Draft, meta_value, set_meta};
use super::strategy;
use crate::kinds::Kinds;
use crate::managed::{self, Element, Owner, Owners, Set, Type, Types, Versions};
use crate::structural::Schema;

impl Cluster {
    /// Writes into `new` who owns its fields, when `call` makes it of `old`.
    pub(crate) fn track(&self, call: &Call<'_>, old: Option<&Value>, new: &mut Draft) {
        let given = super::object::metadata_mut(new).remove(FIELD);
        let live = old.and_then(|old| old.get("metadata")?.get(FIELD));
        let subresource = call.target.subresource.as_deref().unwrap_or_default();
        let given = given.filter(|_| subresource.is_empty());
        let resets = given.as_ref().is_some_and(is_reset);
        let given = given.filter(|given| Some(given) != live);
        let seen = Seen::of(self, call);
        let version = call.resource.of.api_version();
        let whole = Value::Object(std::mem::take(new));
        let [before, after] = [old, Some(&whole)].map(|object| seen.served(object));
        let difference = managed::difference(&seen, &version, &before, &after);
        let owners = match (given, difference) {
            // What nobody changes stays as it is, word for word.
            (None, None) if !resets => live.cloned(),
            (given, difference) => {
                let read = |value: Option<&Value>| Owners::read(value).unwrap_or_default();
                let given = given.filter(|_| !resets).map(|given| read(Some(&given))).filter(|given| !given.is_none());
                let owner = Owner::updating(&manager(call), &version, subresource);
                let owners = match (given, &difference) {
                    _ if resets => Owners::default(),
                    (Some(given), _) => given,
                    (None, Some(difference)) if !seen.may_change() => {
                        Owners::read_touched(live, &owner, difference).unwrap_or_default()
                    }
                    (None, _) => read(live),
                };
                let tracked = old.is_none() || !owners.is_none();
                match difference.filter(|_| tracked) {
                    Some(difference) => {
                        let objects = (&*before, &*after);
                        managed::update(&seen, &owner, objects, difference, owners, &time(call)).write()
                    }
                    None => owners.write(),
                }
            }
        };
        drop((before, after));
        if let Value::Object(fields) = whole {
            *new = fields;
        }
        if let Some(owners) = owners {
            set_meta(new, FIELD, Some(owners));
        }
    }
}

/// Whether only the times in `new`'s `managedFields` differ from those in `old`'s.
pub(crate) fn differ_in_times(old: &Draft, new: &Draft) -> bool {
    let (Some(Value::Array(old)), Some(Value::Array(new))) = (meta_value(old, FIELD), meta_value(new, FIELD)) else {
        return false;
    };
    let timeless = |entry: &Value| {
        let mut entry = entry.clone();
        if let Some(entry) = entry.as_object_mut() {
            entry.remove("time");
        }
        entry
    };
    old.len() == new.len()
        && old != new
        && old.iter().zip(new).all(|(old, new)| old == new || timeless(old) == timeless(new))
}

/// The name of whoever writes: as it says, or the first word of its user agent.
pub(crate) fn manager(call: &Call<'_>) -> String {
    const LONGEST: usize = 128;
    let said = call.query.text("fieldManager");
    if !said.is_empty() {
        return said.to_owned();
    }
    let agent = call.headers.get(http::header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let name = agent.split('/').next().unwrap_or_default();
    name.chars().filter(|c| !c.is_control()).take(LONGEST).collect()
}

/// When a write of `call` happens, as `managedFields` has it.
pub(crate) fn time(call: &Call<'_>) -> String {
    call.now.wall.to_rfc3339()
}

/// Whether a client asks for ownership to be forgotten.
fn is_reset(given: &Value) -> bool {
    match given.as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([one]) => *one == json!({}),
        _ => false,
    }
}

/// A resource in all its versions, written through a subresource or none.
pub(crate) struct Seen<'s> {
    kinds: &'s Kinds,
    catalog: &'s Catalog,
    resource: &'s Resource,
    reset: Set,
    only: Option<Vec<Element>>,
}

impl<'s> Seen<'s> {
    pub(crate) fn of(cluster: &'s Cluster, call: &Call<'s>) -> Self {
        let resource: &'s Resource = call.resource;
        let subresource = call.target.subresource.as_deref().unwrap_or_default();
        let only = match subresource {
            "ephemeralcontainers" => Some(vec![Element::field("spec"), Element::field("ephemeralContainers")]),
            "resize" => Some(vec![Element::field("spec"), Element::field("containers")]),
            _ => None,
        };
        let reset = Set::of_fields(reset(resource, subresource));
        Self { kinds: &cluster.kinds, catalog: &cluster.catalog, resource, reset, only }
    }

    /// An object in the version of the request; one that is not there has no more than its type always has.
    pub(crate) fn served<'a>(&self, object: Option<&'a Value>) -> Cow<'a, Value> {
        let Some(object) = object else { return Cow::Owned(self.nothing()) };
        let served = object.as_object().and_then(|fields| convert::served(self.kinds, self.resource, fields));
        served.map_or(Cow::Borrowed(object), |served| Cow::Owned(Value::Object(served)))
    }

    /// An object of which nothing is set.
    pub(crate) fn nothing(&self) -> Value {
        match self.type_of(self.resource) {
            Some(Type::Struct(id)) => {
                let nothing = self.kinds.canonicalize(id, json!({})).map(|canonical| canonical.object);
                Value::Object(nothing.unwrap_or_default())
            }
            _ => json!({}),
        }
    }

    fn resource(&self, version: &str) -> Option<&'s Resource> {
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        self.catalog.resource(group, version, &self.resource.of.plural).map(AsRef::as_ref)
    }

    fn type_of(&self, resource: &'s Resource) -> Option<Type<'s>> {
        match &resource.custom {
            Some(custom) => {
                let schema: &'s Schema = &custom.schema;
                Some(Type::Custom { schema, root: true, preserves: false })
            }
            None => {
                let of = &resource.of;
                Some(Type::Struct(self.kinds.kind(&of.group, &of.version, &of.kind)?.structure))
            }
        }
    }
}

impl<'s> Versions<'s> for Seen<'s> {
    fn types(&self) -> Types<'s> {
        Types { kinds: self.kinds }
    }

    fn may_change(&self) -> bool {
        self.resource.is_custom()
    }

    fn of(&self, version: &str) -> Option<Type<'s>> {
        self.type_of(self.resource(version)?)
    }

    fn convert<'a>(&self, object: &'a Value, from: &str, to: &str) -> Cow<'a, Value> {
        let (Some(from), Some(to), Some(fields)) = (self.resource(from), self.resource(to), object.as_object()) else {
            return Cow::Borrowed(object);
        };
        // With the only conversion there is, custom resources differ in nothing but their version.
        if from.of == to.of || from.custom.is_some() {
            return Cow::Borrowed(object);
        }
        let stored = convert::stored(from, fields.clone());
        let served = convert::served(self.kinds, to, &stored);
        Cow::Owned(Value::Object(served.unwrap_or(stored)))
    }

    fn filter(&self, _version: &str, mut set: Set) -> Set {
        set.cut(&self.reset);
        match &self.only {
            Some(only) => set.only(only),
            None => set,
        }
    }
}

/// What a write takes back from whoever sets it, so that it is not owned.
fn reset(resource: &Resource, subresource: &str) -> &'static [&'static [&'static str]] {
    let of = (&*resource.of.group, &*resource.of.plural);
    match (subresource, of) {
        ("", ("certificates.k8s.io", "certificatesigningrequests")) => &[&["spec"], &["status"]],
        ("status", ("certificates.k8s.io", "certificatesigningrequests")) => &[&["spec"], &["status", "conditions"]],
        ("approval", _) => &[&["spec"], &["status", "certificate"]],
        ("status", ("", "pods")) => &[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]],
        ("status", ("apps", "deployments")) => &[&["spec"], &["metadata", "labels"]],
        ("status", _) if resource.is_custom() || RESETS_METADATA.contains(&of) => &[&["metadata"], &["spec"]],
        ("status", _) => &[&["spec"]],
        ("finalize", _) => &[&["status"]],
        _ if strategy::has_status(resource) => &[&["status"]],
        _ => &[],
    }
}

/// Kinds whose status is written without their metadata.
const RESETS_METADATA: [(&str, &str); 11] = [
    ("certificates.k8s.io", "podcertificaterequests"),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"),
    ("networking.k8s.io", "servicecidrs"),
    ("resource.k8s.io", "devicetaintrules"),
    ("resource.k8s.io", "resourceclaims"),
    ("storage.k8s.io", "csinodes"),
    ("storage.k8s.io", "volumeattachments"),
    ("storagemigration.k8s.io", "storageversionmigrations"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("apiregistration.k8s.io", "apiservices"),
];

/// Where ownership is kept.
pub(crate) const FIELD: &str = "managedFields";

/// The manager of what was there before the first apply.
pub(crate) const BEFORE_FIRST_APPLY: &str = "before-first-apply";
