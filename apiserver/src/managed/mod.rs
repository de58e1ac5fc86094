//! Server-side apply and the ownership of fields: who has set what, what an apply makes of an object, and where two
//! that want different things are in conflict.
//!
//! See <https://kubernetes.io/docs/reference/using-api/server-side-apply/>.

mod element;
mod entries;
mod last_applied;
mod set;
mod types;
mod walk;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

pub(crate) use element::{Element, path_text};
pub(crate) use entries::{Operation, Owned, Owner, Owners};
pub(crate) use last_applied::{beyond_last_applied, note_last_applied};
pub(crate) use set::Set;
pub(crate) use types::{Type, Types};
pub(crate) use walk::Comparison;

/// An object of the version of a request, and how to see it in others.
pub(crate) trait Versions<'s> {
    /// The types that values have.
    fn types(&self) -> Types<'s>;

    /// Whether types may be others than when something was last written.
    fn may_change(&self) -> bool;

    /// The type of the object in a version such as `apps/v1`; `None` when that is not served.
    fn of(&self, version: &str) -> Option<Type<'s>>;

    /// The object in `to`, given in `from`.
    fn convert<'a>(&self, object: &'a Value, from: &str, to: &str) -> Cow<'a, Value>;

    /// What of a set in this version the write does not let its caller own.
    fn filter(&self, version: &str, set: Set) -> Set;
}

/// Two that want different things of a field: the other owner, and the field.
pub(crate) type Conflict = (Owner, Vec<Element>);

/// What an apply comes to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Applied {
    /// The object that comes of it.
    pub(crate) object: Value,
    pub(crate) owners: Owners,
    /// Whether it changes anything but ownership.
    pub(crate) changed: bool,
}

/// What can be owned and differs between `old` and `new`, both in `version`; `None` when that is nothing.
pub(crate) fn difference<'s>(
    versions: &impl Versions<'s>,
    version: &str,
    old: &Value,
    new: &Value,
) -> Option<Comparison> {
    let Comparison { removed, modified, added } = versions.types().compare(versions.of(version)?, old, new);
    let never = never_owned();
    let owned = |set: Set| {
        let mut set = versions.filter(version, set);
        set.subtract(&never);
        set
    };
    let difference = Comparison { removed: owned(removed), modified: owned(modified), added: owned(added) };
    (difference != Comparison::default()).then_some(difference)
}

/// Ownership after an update that makes `new` of `old`, both in `owner.version`, where `difference` is what differs.
pub(crate) fn update<'s>(
    versions: &impl Versions<'s>,
    owner: &Owner,
    (old, new): (&Value, &Value),
    difference: Comparison,
    owners: Owners,
    time: &str,
) -> Owners {
    let Owners(mut owners) = reconcile(versions, owners);
    let own = changed(&difference);
    let mut differences = Differences::between(versions, &owner.version, old, new);
    differences.found.insert(owner.version.clone(), Some(difference));
    owners.retain(|_, owned| match differences.at(&owned.version) {
        _ if owned.kept.is_some() => true,
        Some(difference) => {
            for gone in [&difference.modified, &difference.added, &difference.removed] {
                owned.fields.subtract(gone);
            }
            !owned.fields.is_empty()
        }
        None => false,
    });
    if !own.is_empty() {
        let version = owner.version.clone();
        let owned = owners.entry(owner.clone()).or_insert_with(|| Owned::new(&version, Set::default()));
        owned.fields = std::mem::take(&mut owned.fields).union(&own);
        owned.time = Some(time.to_owned());
    }
    let mut owners = Owners(owners);
    owners.cap();
    owners
}

/// Applies `config` to `live`, both in `version`.
///
/// # Errors
/// The fields that others own and that the configuration would change, unless it has them by `force`.
pub(crate) fn apply<'s>(
    versions: &impl Versions<'s>,
    (owner, version): (&Owner, &str),
    (live, config): (&Value, &Value),
    owners: Owners,
    force: bool,
    time: &str,
) -> Result<Applied, Vec<Conflict>> {
    let types = versions.types();
    let Some(of) = versions.of(version) else {
        return Ok(Applied { object: live.clone(), owners, changed: false });
    };
    let Owners(mut owners) = reconcile(versions, owners);
    let merged = types.merge(of, Some(live), Some(config)).unwrap_or(Value::Null);
    let fields = versions.filter(version, types.fields(of, config));
    let before = owners.remove(owner);
    let last_time = before.as_ref().and_then(|owned| owned.time.clone());
    let now = Owned { time: last_time, ..Owned::new(version, fields) };
    owners.insert(owner.clone(), now);
    let object = match before.filter(|before| !before.fields.is_empty()) {
        Some(before) => prune(versions, &merged, version, &owners, &before),
        None => merged,
    };
    let mut differences = Differences::between(versions, version, live, &object);
    let conflicts = take_over(&mut owners, owner, &mut differences, force);
    if !conflicts.is_empty() {
        return Err(conflicts);
    }
    let changed = !element::same(live, &object);
    if let Some(owned) = owners.get_mut(owner) {
        owned.fields.subtract(&never_owned());
        if changed {
            owned.time = Some(time.to_owned());
        }
    }
    owners.retain(|_, owned| !owned.fields.is_empty());
    Ok(Applied { object, owners: Owners(owners), changed })
}

/// Takes from others what differs; without `force` answers with it instead.
fn take_over<'s>(
    owners: &mut BTreeMap<Owner, Owned>,
    owner: &Owner,
    differences: &mut Differences<'_, 's, impl Versions<'s>>,
    force: bool,
) -> Vec<Conflict> {
    let mut conflicts = Vec::new();
    owners.retain(|other, owned| {
        if other == owner {
            return true;
        }
        let Some(difference) = differences.at(&owned.version) else { return false };
        let wanted = owned.fields.intersection(&changed(difference));
        if !force {
            conflicts.extend(wanted.paths().into_iter().map(|path| (other.clone(), path)));
        }
        owned.fields.subtract(&wanted);
        owned.fields.subtract(&difference.removed);
        !owned.fields.is_empty()
    });
    conflicts
}

/// The object without what its applier applied last time, does not apply now, and nobody else owns.
fn prune<'s>(
    versions: &impl Versions<'s>,
    merged: &Value,
    version: &str,
    owners: &BTreeMap<Owner, Owned>,
    before: &Owned,
) -> Value {
    let types = versions.types();
    let Some(of) = versions.of(&before.version) else { return merged.clone() };
    let merged = versions.convert(merged, version, &before.version);
    let last = types.with_named(Some(of), &before.fields);
    let mut pruned = types.remove(of, &merged, &last);
    let mut owned: BTreeMap<&str, Set> = BTreeMap::new();
    for held in owners.values() {
        let set = owned.entry(&held.version).or_default();
        *set = std::mem::take(set).union(&held.fields);
    }
    // Those of the pruned version come first, since others are converted to from it.
    let mut order: Vec<_> = owned.into_iter().collect();
    order.sort_by_key(|(version, _)| *version != before.version);
    for (held_in, held) in order {
        let Some(held_of) = versions.of(held_in) else { continue };
        let whole = versions.convert(&merged, &before.version, held_in);
        let rest = versions.convert(&pruned, &before.version, held_in);
        let named = |set: &Set| types.with_named(Some(held_of), set);
        let kept = named(&types.fields(held_of, &rest)).union(&named(&held));
        let gone = named(&types.fields(held_of, &whole)).difference(&kept);
        let rest = types.remove(held_of, &whole, &gone);
        pruned = versions.convert(&rest, held_in, &before.version).into_owned();
    }
    // What goes must have been the applier's.
    let named = |set: &Set| types.with_named(Some(of), set);
    let gone = named(&types.fields(of, &merged)).difference(&named(&types.fields(of, &pruned))).intersection(&last);
    let pruned = types.remove(of, &merged, &gone);
    versions.convert(&pruned, &before.version, version).into_owned()
}

/// The fields in a set, in line with the types as they are now.
fn reconcile<'s>(versions: &impl Versions<'s>, owners: Owners) -> Owners {
    if !versions.may_change() {
        return owners;
    }
    let types = versions.types();
    let reconciled = owners.0.into_iter().filter_map(|(owner, owned)| {
        let of = versions.of(&owned.version)?;
        let fields = types.reconciled(of, &owned.fields);
        Some((owner, Owned { fields, ..owned }))
    });
    Owners(reconciled.collect())
}

/// What differs between two objects, in each version that is asked for.
struct Differences<'a, 's, V> {
    versions: &'a V,
    version: String,
    old: &'a Value,
    new: &'a Value,
    found: BTreeMap<String, Option<Comparison>>,
    of: std::marker::PhantomData<&'s ()>,
}

impl<'a, 's, V: Versions<'s>> Differences<'a, 's, V> {
    fn between(versions: &'a V, version: &str, old: &'a Value, new: &'a Value) -> Self {
        let (version, of) = (version.to_owned(), std::marker::PhantomData);
        Self { versions, version, old, new, found: BTreeMap::new(), of }
    }

    /// `None` when the version is not served.
    fn at(&mut self, version: &str) -> Option<&Comparison> {
        if !self.found.contains_key(version) {
            let comparison = self.versions.of(version).map(|of| {
                let seen = |object| self.versions.convert(object, &self.version, version);
                let Comparison { removed, modified, added } =
                    self.versions.types().compare(of, &seen(self.old), &seen(self.new));
                let filter = |set| self.versions.filter(version, set);
                Comparison { removed: filter(removed), modified: filter(modified), added: filter(added) }
            });
            self.found.insert(version.to_owned(), comparison);
        }
        self.found.get(version)?.as_ref()
    }
}

fn changed(difference: &Comparison) -> Set {
    difference.modified.clone().union(&difference.added)
}

/// What is the server's alone, or the object's identity.
fn never_owned() -> Set {
    Set::of_fields(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
}
