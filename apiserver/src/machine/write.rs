//! Creating and replacing.

use std::sync::Arc;

use cloudcoil_core::Random;
use serde_json::Value;

use super::admission;
use super::body::{self, Decoded};
use super::cluster::{Call, Cluster, place_in_namespace};
use super::errors::{
    Fault, Outcome, already_exists, bad_request, conflict, generated_name_conflict, invalid, modified, not_found,
    unexplained,
};
use super::object::{self, Draft, Object, meta, set_meta};
use super::pages::check_write;
use super::present::View;
use super::reply::{Body, Reply};
use super::store::{Key, key};
use super::{ownership, strategy, validation};

impl Cluster {
    pub(crate) fn create(&mut self, call: &Call<'_>) -> Outcome<Reply> {
        Self::allow(call.resource, "create")?;
        let view = View::of(&self.kinds, call.resource, call.form()?, call.query)?;
        check_write(call.query, "CreateOptions")?;
        let Decoded { mut fields, warnings } = body::decode(&self.kinds, call)?;
        self.warnings.clone_from(&warnings);
        place_in_namespace(call, &mut fields)?;
        self.check_namespace(call, meta(&fields, "name"), true)?;
        self.check_definition(call)?;
        self.track(call, None, &mut fields);
        let object = self.create_object(call, fields)?;
        let body = Body::text(201, "application/json", view.one(call.now, &object)? + "\n");
        Ok(Reply::Body(Body { warnings, ..body }))
    }

    /// Gives a new object what the server gives it, checks it, and stores it.
    pub(crate) fn create_object(&mut self, call: &Call<'_>, mut fields: Draft) -> Outcome<Arc<Object>> {
        let versioned = !meta(&fields, "resourceVersion").is_empty();
        self.stamp(call, &mut fields);
        strategy::prepare_create(&self.kinds, call.resource, &mut fields);
        self.admit_pod(call.resource, &mut fields)?;
        strategy::name_requester(call.resource, call.user, &mut fields);
        if call.resource.is("", "services") {
            self.assign_addresses(None, &mut fields);
        }
        let mut key = self.name(call, &mut fields);
        let name = meta(&fields, "name").to_owned();
        let faults = validation::create(call.resource, &fields);
        if !faults.is_empty() {
            return Err(invalid(&call.resource.of.group, &call.resource.of.kind, &name, &faults));
        }
        if versioned {
            return Err(unexplained(500, "resourceVersion should not be set on objects to be created"));
        }
        let generated = meta(&fields, "generateName").to_owned();
        for _ in 0..NAME_ATTEMPTS {
            if generated.is_empty() || self.store.get(&call.resource.place, &key).is_none() {
                break;
            }
            key = self.generate(call, &generated, &mut fields);
        }
        if let Some(existing) = self.store.get(&call.resource.place, &key) {
            let mut refusal = if generated.is_empty() {
                already_exists(call.resource, &name)
            } else {
                generated_name_conflict(call.resource, meta(&fields, "name"))
            };
            if existing.is_deleting() {
                refusal.message = format!("object is being deleted: {}", refusal.message);
            }
            return Err(refusal);
        }
        if call.query.dry_run() {
            return Ok(Object::unstored(fields));
        }
        Ok(self.put(call.resource, &key, fields))
    }

    /// What no client may say of a new object.
    fn stamp(&mut self, call: &Call<'_>, fields: &mut Draft) {
        for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion"] {
            set_meta(fields, field, None);
        }
        set_meta(fields, "creationTimestamp", Some(Value::from(call.now.wall.to_rfc3339())));
        set_meta(fields, "uid", Some(Value::from(self.uid())));
        validation::drop_duplicate_owners(fields);
    }

    /// The object's key, with a name made from its prefix when it has none.
    fn name(&mut self, call: &Call<'_>, fields: &mut Draft) -> Key {
        let (name, prefix) = (meta(fields, "name").to_owned(), meta(fields, "generateName").to_owned());
        if name.is_empty() && !prefix.is_empty() {
            return self.generate(call, &prefix, fields);
        }
        key(call.namespace(), &name)
    }

    fn generate(&mut self, call: &Call<'_>, prefix: &str, fields: &mut Draft) -> Key {
        let name = generated_name(prefix, &mut self.random);
        let key = key(call.namespace(), &name);
        set_meta(fields, "name", Some(Value::from(name)));
        key
    }

    pub(crate) fn replace(&mut self, call: &Call<'_>) -> Outcome<Reply> {
        if call.target.subresource.is_none() {
            Self::allow(call.resource, "update")?;
        }
        let view = View::of(&self.kinds, call.resource, call.form()?, call.query)?;
        check_write(call.query, "UpdateOptions")?;
        let Decoded { mut fields, warnings } = body::decode(&self.kinds, call)?;
        self.warnings.clone_from(&warnings);
        place_in_namespace(call, &mut fields)?;
        check_name(call, &fields)?;
        let existing = self.store.get(&call.resource.place, &call.key()).cloned();
        let (code, object) = match existing {
            Some(old) => {
                check_uid(call, &old, &fields)?;
                (200, self.update_object(call, &old, fields)?)
            }
            None if call.target.subresource.is_none() && strategy::creates_on_update(call.resource) => {
                self.check_namespace(call, call.name(), true)?;
                // A version names an object that is not there, so the write has lost a race.
                if !matches!(meta(&fields, "resourceVersion"), "" | "0") || !meta(&fields, "uid").is_empty() {
                    return Err(not_found(call.resource, call.name()));
                }
                self.track(call, None, &mut fields);
                (201, self.create_object(call, fields)?)
            }
            None => return Err(not_found(call.resource, call.name())),
        };
        let body = Body::text(code, "application/json", view.one(call.now, &object)? + "\n");
        Ok(Reply::Body(Body { warnings, ..body }))
    }

    /// Puts `new` in the place of `old`, as far as a client may change it.
    pub(crate) fn update_object(&mut self, call: &Call<'_>, old: &Arc<Object>, mut new: Draft) -> Outcome<Arc<Object>> {
        validation::drop_duplicate_owners(&mut new);
        self.track(call, Some(old.value()), &mut new);
        self.update_tracked(call, old, new)
    }

    /// The same when it is known who owns what.
    pub(crate) fn update_tracked(
        &mut self,
        call: &Call<'_>,
        old: &Arc<Object>,
        mut new: Draft,
    ) -> Outcome<Arc<Object>> {
        let resource = call.resource;
        check_version(call, old, &new)?;
        strategy::prepare_update(resource, call.target.subresource.as_deref(), old.fields(), &mut new);
        admission::admit_pod_change(resource, old.fields(), &mut new);
        if resource.is("", "services") {
            self.assign_addresses(Some(old.fields()), &mut new);
        }
        keep_system_fields(old, &mut new);
        validation::drop_duplicate_owners(&mut new);
        let subresource = call.target.subresource.as_deref().unwrap_or_default();
        let faults = validation::update(resource, subresource, old, &new);
        if !faults.is_empty() {
            return Err(invalid(&resource.of.group, &resource.of.kind, call.name(), &faults));
        }
        self.store_update(call, old, new)
    }

    /// Stores a checked change; an object whose last finalizer goes while it is being deleted goes with it.
    pub(crate) fn store_update(&mut self, call: &Call<'_>, old: &Arc<Object>, mut new: Draft) -> Outcome<Arc<Object>> {
        set_meta(&mut new, "resourceVersion", Some(Value::from(old.revision().to_string())));
        let ended = old.is_deleting() && strategy::is_finalized(call.resource, &new) && grace_is_over(old);
        if call.query.dry_run() {
            return Ok(Object::new(new, old.revision()));
        }
        if ended {
            // Whoever took the last finalizer away is answered with the object as it asked for it.
            self.remove(call.resource, &call.key());
            return Ok(Object::new(new, old.revision()));
        }
        if ownership::differ_in_times(old.fields(), &new) {
            let mut as_it_was = new.clone();
            set_meta(&mut as_it_was, ownership::FIELD, object::meta_value(old.fields(), ownership::FIELD).cloned());
            if as_it_was == *old.fields() {
                new = as_it_was;
            }
        }
        if new == *old.fields() {
            return Ok(Arc::clone(old));
        }
        Ok(self.put(call.resource, &call.key(), new))
    }

    /// Nothing is created of a type that is going away.
    pub(crate) fn check_definition(&self, call: &Call<'_>) -> Outcome<()> {
        match &call.resource.custom {
            Some(custom) if custom.terminating => Err(super::errors::terminating_definition(call.resource)),
            _ => Ok(()),
        }
    }
}

/// Refuses an object of another name than the path has.
pub(crate) fn check_name(call: &Call<'_>, fields: &Draft) -> Outcome<()> {
    let (name, wanted) = (meta(fields, "name"), call.name());
    if name.is_empty() {
        let message =
            format!("the name of the object ({wanted} based on URL) was undeterminable: name must be provided");
        return Err(bad_request(message));
    }
    if name == wanted {
        return Ok(());
    }
    Err(bad_request(format!("the name of the object ({name}) does not match the name on the URL ({wanted})")))
}

fn check_uid(call: &Call<'_>, old: &Object, new: &Draft) -> Outcome<()> {
    let uid = meta(new, "uid");
    if uid.is_empty() || uid == old.uid() {
        return Ok(());
    }
    let prefix = registry_path(call);
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {prefix}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
         failed: UID in precondition: {uid}, UID in object meta: {}",
        old.uid()
    );
    Err(conflict(call.resource, call.name(), &why))
}

/// Where etcd would keep the object.
fn registry_path(call: &Call<'_>) -> String {
    let of = &call.resource.of;
    let group = if call.resource.is_custom() { format!("{}/", of.group) } else { String::new() };
    format!("/registry/{group}{}/{}", of.plural, call.key())
}

fn check_version(call: &Call<'_>, old: &Object, new: &Draft) -> Outcome<()> {
    let text = meta(new, "resourceVersion");
    let asked = match text {
        "" => 0,
        text => text.parse::<u64>().map_err(|_| {
            unexplained(500, format!("strconv.ParseUint: parsing {}: invalid syntax", super::errors::quote(text)))
        })?,
    };
    if asked == 0 {
        if strategy::updates_unconditionally(call.resource) {
            return Ok(());
        }
        let fault = Fault::invalid("metadata.resourceVersion", 0, "must be specified for an update");
        // The API server names the resource in the place of the kind here.
        return Err(invalid(&call.resource.of.group, &call.resource.of.plural, call.name(), &[fault]));
    }
    if asked == old.revision() { Ok(()) } else { Err(modified(call.resource, call.name())) }
}

/// What an update never changes, whatever it says.
fn keep_system_fields(old: &Object, new: &mut Draft) {
    for field in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        set_meta(new, field, object::meta_value(old.fields(), field).cloned());
    }
    for field in ["uid", "name", "namespace"] {
        if meta(new, field).is_empty() {
            set_meta(new, field, object::meta_value(old.fields(), field).cloned());
        }
    }
}

/// Whether nothing but finalizers keeps a deleted object.
fn grace_is_over(old: &Object) -> bool {
    object::meta_value(old.fields(), "deletionGracePeriodSeconds")
        .and_then(Value::as_i64)
        .is_none_or(|seconds| seconds == 0)
}

/// A name that begins with `prefix`, cut so that it can be a label too.
pub(crate) fn generated_name(prefix: &str, random: &mut Random) -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    const LONGEST: usize = 63 - 5;
    let cut = (0..=prefix.len().min(LONGEST)).rev().find(|end| prefix.is_char_boundary(*end)).unwrap_or(0);
    let mut name = prefix[..cut].to_owned();
    for _ in 0..5 {
        let index = random.below(ALPHABET.len() as u64);
        name.push(char::from(ALPHABET[usize::try_from(index).unwrap_or(0)]));
    }
    name
}

/// How often a name is made anew when the one made exists.
const NAME_ATTEMPTS: usize = 7;
