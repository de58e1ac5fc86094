//! Who owns the replicas of an object, when they are written through its scale.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::apply;
use super::cluster::{Call, Cluster};
use super::errors::Outcome;
use super::object::{Object, meta_value};
use super::ownership::{self, FIELD};
use super::scale;
use crate::kinds::{Kinds, StructId};
use crate::managed::{self, Element, Operation, Owned, Owner, Owners, Set, Type, Types, Versions};

/// The owners of an object, and those of its scale among them.
pub(crate) struct ScaleOwners<'a> {
    cluster: &'a Cluster,
    call: &'a Call<'a>,
    parent: Owners,
    scale: Owners,
    structure: StructId,
}

impl<'a> ScaleOwners<'a> {
    pub(crate) fn of(cluster: &'a Cluster, call: &'a Call<'a>, object: &Object) -> Self {
        let kind = cluster.kinds.kind("autoscaling", "v1", "Scale").expect("every table has scales");
        let parent = Owners::read(meta_value(object.fields(), FIELD)).unwrap_or_default();
        let mut owners = Self { cluster, call, parent, scale: Owners::default(), structure: kind.structure };
        owners.scale = owners.to_scale();
        owners
    }

    /// The scale that an apply leaves, and who owns the fields of the object then.
    pub(crate) fn apply(
        self,
        call: &Call<'_>,
        mut shown: Map<String, Value>,
    ) -> Outcome<(Map<String, Value>, Option<Value>)> {
        let mut config = apply::read(call)?;
        apply::check_type(&mut config, VERSION, "Scale")?;
        untyped(&mut shown);
        let nothing = self.cluster.kinds.canonicalize(self.structure, Value::Object(Map::new()));
        let nothing = Value::Object(nothing.map(|canonical| canonical.object).unwrap_or_default());
        let objects = (nothing, Value::Object(shown), Value::Object(config));
        let (object, owners) = apply::merge(call, &self.seen(), (VERSION, "Scale"), objects, self.scale.clone())?;
        let object = if let Value::Object(fields) = object { fields } else { Map::new() };
        let owners = self.to_parent(owners).write();
        Ok((object, owners))
    }

    /// Who owns the fields of the object when its scale becomes `wanted`.
    pub(crate) fn update(
        self,
        call: &Call<'_>,
        mut shown: Map<String, Value>,
        wanted: &Map<String, Value>,
    ) -> Option<Value> {
        let mut wanted = wanted.clone();
        untyped(&mut shown);
        untyped(&mut wanted);
        let (old, new) = (Value::Object(shown), Value::Object(wanted));
        let seen = self.seen();
        let mut owners = self.scale.clone();
        // Nobody is known to own the replicas, so it stays.
        if !owners.is_none()
            && let Some(difference) = managed::difference(&seen, VERSION, &old, &new)
        {
            let owner = Owner::updating(&ownership::manager(call), VERSION, "scale");
            owners = managed::update(&seen, &owner, (&old, &new), difference, owners, &ownership::time(call));
        }
        self.to_parent(owners).write()
    }

    fn seen(&self) -> Seen<'a> {
        Seen { kinds: &self.cluster.kinds, structure: self.structure }
    }

    /// Where an object of a version keeps its replicas; `None` when that version is not served or has no scale.
    fn path(&self, version: &str) -> Option<Vec<Element>> {
        let (group, name) = version.split_once('/').unwrap_or(("", version));
        let resource = self.cluster.catalog.resource(group, name, &self.call.resource.of.plural)?;
        resource.subresource("scale")?;
        Some(scale::paths(resource).spec.iter().map(|name| Element::field(name)).collect())
    }

    /// Those who own the replicas, by the names of the scale.
    fn to_scale(&self) -> Owners {
        let owners = self.parent.0.iter().filter_map(|(owner, owned)| {
            let path = self.path(&owned.version)?;
            owned.fields.has_path(&path).then(|| {
                let fields = Set::of_fields(&[&["spec", "replicas"]]);
                (in_scale(owner), Owned { time: owned.time.clone(), ..Owned::new(VERSION, fields) })
            })
        });
        Owners(owners.collect())
    }

    /// All owners of the object, when those of its scale are `scale`.
    fn to_parent(&self, scale: Owners) -> Owners {
        let mut scale = scale.0;
        let mut owners = Owners::default();
        for (owner, owned) in &self.parent.0 {
            let path = self.path(&owned.version).filter(|path| owned.fields.has_path(path));
            let (owner, mut owned) = (owner.clone(), owned.clone());
            if let Some(path) = path
                && scale.remove(&owner).is_none()
            {
                let mut taken = Set::default();
                taken.insert(&path);
                owned.fields.subtract(&taken);
            }
            if !owned.fields.is_empty() {
                owners.0.insert(owner, owned);
            }
        }
        let version = self.call.resource.of.api_version().into_owned();
        let path = self.path(&version).unwrap_or_default();
        for (owner, owned) in scale {
            if owned.fields.has_path(&[Element::field("spec"), Element::field("replicas")]) {
                let mut fields = Set::default();
                fields.insert(&path);
                let time = self.parent.0.get(&owner).and_then(|owned| owned.time.clone());
                owners.0.insert(owner, Owned { time, ..Owned::new(&version, fields) });
            }
        }
        owners
    }
}

/// An owner as it is known to the scale.
fn in_scale(owner: &Owner) -> Owner {
    let version = if owner.operation == Operation::Update { VERSION.to_owned() } else { String::new() };
    Owner { version, ..owner.clone() }
}

fn untyped(fields: &mut Map<String, Value>) {
    fields.remove("apiVersion");
    fields.remove("kind");
}

/// A scale, which has one version.
struct Seen<'s> {
    kinds: &'s Kinds,
    structure: StructId,
}

impl<'s> Versions<'s> for Seen<'s> {
    fn types(&self) -> Types<'s> {
        Types { kinds: self.kinds }
    }

    fn may_change(&self) -> bool {
        false
    }

    fn of(&self, version: &str) -> Option<Type<'s>> {
        (version == VERSION).then_some(Type::Struct(self.structure))
    }

    fn convert<'a>(&self, object: &'a Value, _from: &str, _to: &str) -> Cow<'a, Value> {
        Cow::Borrowed(object)
    }

    fn filter(&self, _version: &str, set: Set) -> Set {
        set
    }
}

/// The version of scales.
const VERSION: &str = "autoscaling/v1";
