//! Deleting: at once, or when the last finalizer goes.

use std::sync::Arc;

use cloudcoil_core::{Now, Status, UnixTime};
use serde::Deserialize;
use serde_json::{Value, json};

use super::body;
use super::catalog::Resource;
use super::cluster::{Call, Cluster};
use super::definitions;
use super::errors::{Fault, Outcome, bad_request, conflict, forbidden, not_found, not_registered, render};
use super::object::{self, Draft, Object, set_meta};
use super::pages::{Page, check_write, refuse_options};
use super::present::View;
use super::reply::{Body, Reply};
use super::select::Selection;
use super::store::{Key, key};
use super::strategy;
use crate::kinds::Kinds;

/// What a deletion asks for.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DeleteOptions {
    pub(crate) propagation_policy: Option<String>,
    pub(crate) orphan_dependents: Option<bool>,
    pub(crate) preconditions: Option<Preconditions>,
    pub(crate) dry_run: Option<Vec<String>>,
    pub(crate) grace_period_seconds: Option<i64>,
}

/// What must hold of the object for it to be deleted.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Preconditions {
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
}

/// What became of an object that was to be deleted.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// It is gone, and this is what it was.
    Gone(Arc<Object>),
    /// Finalizers keep it.
    Kept(Arc<Object>),
}

impl DeleteOptions {
    /// Deletes what the owner leaves behind after it.
    pub(crate) fn background() -> Self {
        Self { propagation_policy: Some("Background".to_owned()), ..Self::default() }
    }

    pub(crate) fn with_uid(self, uid: &str) -> Self {
        let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        Self { preconditions: Some(preconditions), ..self }
    }

    /// The options in the body of a call, or in its query when it has no body.
    fn of(kinds: &Kinds, call: &Call<'_>) -> Outcome<Self> {
        check_write(call.query, "DeleteOptions")?;
        let mut options = if call.body.is_empty() {
            Self {
                propagation_policy: Some(call.query.text("propagationPolicy").to_owned()).filter(|p| !p.is_empty()),
                grace_period_seconds: call.query.number("gracePeriodSeconds")?,
                orphan_dependents: call.query.has("orphanDependents").then(|| call.query.flag("orphanDependents")),
                ..Self::default()
            }
        } else {
            Self::of_body(kinds, call)?
        };
        if call.query.dry_run() {
            options.dry_run = Some(vec!["All".to_owned()]);
        }
        options.check()?;
        Ok(options)
    }

    fn of_body(kinds: &Kinds, call: &Call<'_>) -> Outcome<Self> {
        let whole = body::read(kinds, call, ("", "v1", "DeleteOptions"))?;
        let text = |field| whole.get(field).and_then(Value::as_str).unwrap_or_default();
        let (kind, version) = (text("kind"), text("apiVersion"));
        if !matches!(kind, "" | "DeleteOptions") {
            return Err(not_registered(kind, version));
        }
        Self::of_value(Value::Object(whole))
    }

    /// The options as JSON has them; whether they make sense is for [`check`](Self::check) to say.
    pub(crate) fn of_value(value: Value) -> Outcome<Self> {
        let grace = value.get("gracePeriodSeconds").filter(|grace| !grace.is_null() && !grace.is_i64());
        if let Some(grace) = grace {
            let found = body::type_name(grace);
            let field = "DeleteOptions.gracePeriodSeconds of type int64";
            return Err(bad_request(format!("json: cannot unmarshal {found} into Go struct field {field}")));
        }
        serde_json::from_value(value).map_err(|error| bad_request(error.to_string()))
    }

    pub(crate) fn check(&self) -> Outcome<()> {
        let mut faults = Vec::new();
        if self.propagation_policy.is_some() && self.orphan_dependents.is_some() {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            faults.push(Fault::invalid("propagationPolicy", self.propagation_policy.as_deref(), detail));
        }
        let policies = ["Foreground", "Background", "Orphan"];
        if let Some(policy) = self.propagation_policy.as_deref().filter(|policy| !policies.contains(policy)) {
            faults.push(Fault::not_supported(
                "propagationPolicy",
                policy,
                &["Foreground", "Background", "Orphan", "nil"],
            ));
        }
        let dry_run = self.dry_run.iter().flatten();
        if dry_run.clone().any(|value| value != "All") {
            let value = dry_run.map(|value| Value::from(value.as_str())).collect::<Value>();
            faults.push(Fault::not_supported("dryRun", value, &["All"]));
        }
        refuse_options("DeleteOptions", &faults)
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        self.dry_run.iter().flatten().any(|value| value == "All")
    }

    fn policy(&self) -> Option<&str> {
        match self.orphan_dependents {
            Some(true) => Some("Orphan"),
            Some(false) => Some("Background"),
            None => self.propagation_policy.as_deref(),
        }
    }
}

impl Cluster {
    pub(crate) fn delete(&mut self, call: &Call<'_>) -> Outcome<Reply> {
        Self::allow(call.resource, "delete")?;
        let form = call.form()?;
        let options = DeleteOptions::of(&self.kinds, call)?;
        if call.resource.is("", "namespaces") && IMMORTAL.contains(&call.name()) {
            return Err(forbidden(call.resource, call.name(), "this namespace may not be deleted"));
        }
        let deleted = self.delete_object(call.now, call.resource, &call.key(), &options)?;
        let whole = match &deleted {
            Deleted::Kept(object) => Some(object),
            Deleted::Gone(object) => Some(object).filter(|_| strategy::returns_deleted(call.resource)),
        };
        let text = match (whole, &deleted) {
            (Some(object), _) => View::of(&self.kinds, call.resource, form, call.query)?.one(call.now, object)?,
            (None, Deleted::Gone(object) | Deleted::Kept(object)) => deleted_status(call.resource, object).to_string(),
        };
        let kept = matches!(deleted, Deleted::Kept(_));
        let code = if kept && options.orphan_dependents == Some(false) { 202 } else { 200 };
        Ok(Reply::Body(Body::text(code, "application/json", text + "\n")))
    }

    pub(crate) fn delete_collection(&mut self, call: &Call<'_>) -> Outcome<Reply> {
        Self::allow(call.resource, "deletecollection")?;
        let view = View::of(&self.kinds, call.resource, call.form()?, call.query)?;
        let options = DeleteOptions::of(&self.kinds, call)?;
        let selection = Selection::of(call)?;
        let (objects, meta) = self.page(call, &selection, &Page::of(call.query)?)?;
        for object in &objects {
            let key = key(Some(object.namespace()), object.name());
            match self.delete_object(call.now, call.resource, &key, &options) {
                Err(refusal) if !refusal.is_not_found() => return Err(refusal),
                _ => {}
            }
        }
        Ok(Reply::Body(Body::text(200, "application/json", view.list(call.now, &objects, &meta)? + "\n")))
    }

    /// Deletes an object, or marks it as being deleted while finalizers keep it.
    pub(crate) fn delete_object(
        &mut self,
        now: Now,
        resource: &Resource,
        key: &Key,
        options: &DeleteOptions,
    ) -> Outcome<Deleted> {
        let name = key.rsplit('/').next().unwrap_or_default();
        let Some(old) = self.store.get(&resource.place, key).cloned() else { return Err(not_found(resource, name)) };
        check_preconditions(resource, &old, options)?;
        let mut new = old.fields().clone();
        set_finalizers(resource, &mut new, options);
        if resource.is("", "namespaces") && !old.is_deleting() {
            // A namespace goes away in two steps, however empty it is.
            object::child_mut(&mut new, "status").insert("phase".to_owned(), json!("Terminating"));
            set_meta(&mut new, "deletionTimestamp", Some(Value::from(now.wall.to_rfc3339())));
            return Ok(Deleted::Kept(self.keep(resource, key, &old, new, options)));
        }
        if resource.is("apiextensions.k8s.io", "customresourcedefinitions") && !old.is_deleting() {
            definitions::mark(&mut new, now);
            return Ok(Deleted::Kept(self.keep(resource, key, &old, new, options)));
        }
        let grace = if resource.is("", "pods") { Grace::of_pod(now, &old, options) } else { Grace::Without };
        let lasts = match grace {
            Grace::Pending => return Ok(Deleted::Kept(old)),
            Grace::Without => false,
            Grace::Until { at, seconds } => {
                mark(&mut new, at, seconds);
                seconds > 0
            }
        };
        if strategy::is_finalized(resource, &new) && !lasts {
            if options.is_dry_run() {
                let shown = if grace == Grace::Without { old } else { Object::new(new, old.revision()) };
                return Ok(Deleted::Gone(shown));
            }
            if grace != Grace::Without {
                // Whoever watches sees a pod end before it goes.
                self.put(resource, key, new);
            }
            let gone = self.remove(resource, key).expect("it was there a moment ago");
            return Ok(Deleted::Gone(gone));
        }
        if grace == Grace::Without {
            mark(&mut new, now.wall, 0);
        }
        Ok(Deleted::Kept(self.keep(resource, key, &old, new, options)))
    }

    fn keep(
        &mut self,
        resource: &Resource,
        key: &Key,
        old: &Arc<Object>,
        new: Draft,
        options: &DeleteOptions,
    ) -> Arc<Object> {
        match () {
            () if options.is_dry_run() => Object::new(new, old.revision()),
            () if new == *old.fields() => Arc::clone(old),
            () => self.put(resource, key, new),
        }
    }
}

pub(crate) fn check_preconditions(resource: &Resource, old: &Object, options: &DeleteOptions) -> Outcome<()> {
    let Some(Preconditions { uid, resource_version }) = &options.preconditions else { return Ok(()) };
    if let Some(uid) = uid.as_deref().filter(|uid| *uid != old.uid()) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been \
             deleted and then recreated",
            old.uid()
        );
        return Err(conflict_by_kind(resource, old, &why));
    }
    let stored = old.meta("resourceVersion");
    if let Some(version) = resource_version.as_deref().filter(|version| *version != stored) {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record \
             ({stored}). The object might have been modified"
        );
        return Err(conflict_by_kind(resource, old, &why));
    }
    Ok(())
}

/// The API server names the kind here, where it names the resource elsewhere.
fn conflict_by_kind(resource: &Resource, old: &Object, why: &str) -> Box<Status> {
    let mut refusal = conflict(resource, old.name(), why);
    refusal.message = refusal.message.replacen(&resource.qualified(), &resource.qualified_kind(), 1);
    refusal.details.kind = resource.of.kind.to_string();
    refusal
}

/// Adds or removes the finalizers by which the garbage collector knows what to do with dependents.
fn set_finalizers(resource: &Resource, new: &mut Draft, options: &DeleteOptions) {
    let held = object::texts(new, "finalizers");
    let wanted = match options.policy() {
        _ if resource.of.plural == "events" => None,
        Some("Orphan") => Some("orphan"),
        Some("Foreground") => Some("foregroundDeletion"),
        Some(_) => None,
        None if held.contains(&"orphan") => Some("orphan"),
        None if held.contains(&"foregroundDeletion") => Some("foregroundDeletion"),
        None => orphans_by_default(resource).then_some("orphan"),
    };
    let kept = held.iter().filter(|finalizer| !["orphan", "foregroundDeletion"].contains(finalizer));
    let finalizers: Vec<_> = kept.copied().chain(wanted).map(Value::from).collect();
    let unchanged = finalizers.len() == held.len()
        && held.iter().all(|finalizer| finalizers.iter().any(|kept| kept.as_str() == Some(finalizer)));
    if unchanged {
        return;
    }
    set_meta(new, "finalizers", (!finalizers.is_empty()).then_some(Value::Array(finalizers)));
}

/// Old kinds leave their dependents alone unless told otherwise.
fn orphans_by_default(resource: &Resource) -> bool {
    resource.is("batch", "jobs") || resource.is("", "replicationcontrollers")
}

/// Marks an object as being deleted at `at`; one that is being deleted already keeps its time, unless it has some left.
fn mark(new: &mut Draft, at: UnixTime, seconds: i64) {
    let left = object::grace(new) > 0;
    if !object::is_deleting(new) {
        if let Some(generation) = object::meta_value(new, "generation").and_then(Value::as_i64) {
            set_meta(new, "generation", Some(json!(generation + 1)));
        }
        set_meta(new, "deletionTimestamp", Some(Value::from(at.to_rfc3339())));
    } else if left {
        set_meta(new, "deletionTimestamp", Some(Value::from(at.to_rfc3339())));
    }
    set_meta(new, "deletionGracePeriodSeconds", Some(json!(seconds)));
}

/// What time a pod has to end:
/// <https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination>.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Grace {
    /// It is ending already, and sooner than is asked for.
    Pending,
    /// It ends by then.
    Until { at: UnixTime, seconds: i64 },
    /// There is nothing to wait for.
    Without,
}

impl Grace {
    fn of_pod(now: Now, old: &Object, options: &DeleteOptions) -> Self {
        // No time is less than none, which means at once.
        let asked = options.grace_period_seconds.map(|seconds| if seconds < 0 { 1 } else { seconds });
        let until = |from: i64, seconds: i64| {
            let at = from.saturating_add(seconds.saturating_mul(MICROS));
            // What is asked of a pod may not end after all time.
            Self::Until { at: UnixTime::from_micros(at.clamp(0, LATEST)), seconds }
        };
        if !old.is_deleting() {
            return until(now.wall.as_micros(), Self::seconds(old, asked));
        }
        let left = object::grace(old.fields());
        match asked {
            _ if left <= 0 => Self::Without,
            Some(seconds) if seconds < left => {
                let begun = object::time(old.meta("deletionTimestamp")).unwrap_or(now.wall).as_micros()
                    - left.saturating_mul(MICROS);
                match until(begun, seconds) {
                    Self::Until { at, seconds } if at < now.wall => {
                        Self::Until { at: now.wall, seconds: seconds.min(1) }
                    }
                    until => until,
                }
            }
            _ => Self::Pending,
        }
    }

    /// How long a pod may take that is asked to end now.
    fn seconds(old: &Object, asked: Option<i64>) -> i64 {
        let fields = old.fields();
        let own = object::at(fields, &["spec", "terminationGracePeriodSeconds"]).and_then(Value::as_i64);
        let ended = matches!(object::text_at(fields, &["status", "phase"]), "Failed" | "Succeeded");
        if ended || object::text_at(fields, &["spec", "nodeName"]).is_empty() {
            return 0;
        }
        match asked.or(own).unwrap_or(0) {
            negative if negative < 0 => 1,
            seconds => seconds,
        }
    }
}

fn deleted_status(resource: &Resource, object: &Object) -> Value {
    let mut status = Status::default();
    status.status = "Success".to_owned();
    status.details.name = object.name().to_owned();
    status.details.group = resource.of.group.to_string();
    status.details.kind = resource.of.plural.to_string();
    status.details.uid = object.uid().to_owned();
    render(&status)
}

/// The namespaces that a cluster cannot be without.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

const MICROS: i64 = 1_000_000;

/// Almost the end of the year 9999, in microseconds: the last time that can be written.
const LATEST: i64 = 253_402_207_200 * MICROS;
