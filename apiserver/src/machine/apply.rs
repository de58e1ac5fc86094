//! Server-side apply.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::body;
use super::cluster::{Call, Cluster, place_in_namespace};
use super::errors::{Fault, Outcome, apply_conflict, bad_request, conflict, not_found, unexplained};
use super::object::{Draft, Object, meta, meta_value, set_meta};
use super::ownership::{self, FIELD, Seen};
use super::pages::refuse_options;
use super::present::View;
use super::reply::{Body, Reply};
use super::route::Query;
use super::text;
use super::write::check_name;
use crate::managed::{self, Applied, Owner, Owners, Type, Versions};

impl Cluster {
    /// Applies the configuration in the body of a call, which makes an object that is not there.
    pub(crate) fn apply(&mut self, call: &Call<'_>) -> Outcome<Reply> {
        let view = View::of(&self.kinds, call.resource, call.form()?, call.query)?;
        let mut config = read(call)?;
        let existing = self.store.get(&call.resource.place, &call.key()).cloned();
        if existing.is_none() && call.target.subresource.is_some() {
            return Err(not_found(call.resource, call.name()));
        }
        let of = &call.resource.of;
        check_type(&mut config, &of.api_version(), &of.kind)?;
        let (fields, owners) = self.applied(call, existing.as_deref(), config)?;
        let duplicates = duplicates(call)?;
        let admitted = body::admit_applied(&self.kinds, call.resource, fields);
        let mut fields = admitted.map_err(|fault| unexplained(500, fault))?;
        set_meta(&mut fields, FIELD, owners.write());
        if existing.is_none() && !meta(&fields, "uid").is_empty() {
            let uid = meta(&fields, "uid");
            let why =
                format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
            return Err(conflict(call.resource, call.name(), &why));
        }
        place_in_namespace(call, &mut fields)?;
        check_name(call, &fields)?;
        let (code, object) = match existing {
            Some(old) => (200, self.update_tracked(call, &old, fields)?),
            None => {
                // What is not there yet has no version to be checked.
                set_meta(&mut fields, "resourceVersion", None);
                (201, self.create_applied(call, fields)?)
            }
        };
        let body = Body::text(code, "application/json", view.one(call.now, &object)? + "\n");
        Ok(Reply::Body(Body { warnings: duplicates, ..body }))
    }

    fn create_applied(&mut self, call: &Call<'_>, fields: Draft) -> Outcome<Arc<Object>> {
        self.check_namespace(call, call.name(), true)?;
        self.check_definition(call)?;
        self.create_object(call, fields)
    }

    /// The fields that an apply leaves, in the version of the call, and who owns them.
    fn applied(&self, call: &Call<'_>, live: Option<&Object>, config: Draft) -> Outcome<(Draft, Owners)> {
        let seen = Seen::of(self, call);
        let version = call.resource.of.api_version();
        let managed = live.and_then(|live| meta_value(live.fields(), FIELD));
        let owners = Owners::read(managed).ok_or_else(|| unexplained(500, "failed to decode managed fields"))?;
        let mut live = seen.served(live.map(Object::value)).into_owned();
        if let Some(metadata) = live.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove(FIELD);
        }
        let (object, owners) = merge(
            call,
            &seen,
            (&version, &call.resource.of.kind),
            (seen.nothing(), live, Value::Object(config)),
            owners,
        )?;
        match object {
            Value::Object(fields) => Ok((fields, owners)),
            _ => Ok((Map::new(), owners)),
        }
    }
}

/// Merges a configuration into an object, both of this version and kind, which `seen` knows. Also given is an object of it
/// of which nothing is set.
pub(crate) fn merge<'s>(
    call: &Call<'_>,
    seen: &impl Versions<'s>,
    (version, kind): (&str, &str),
    (nothing, live, config): (Value, Value, Value),
    mut owners: Owners,
) -> Outcome<(Value, Owners)> {
    let time = ownership::time(call);
    let subresource = call.target.subresource.as_deref().unwrap_or_default();
    if owners.is_none()
        && let Some(difference) = managed::difference(seen, version, &nothing, &live)
    {
        let before = Owner::updating(ownership::BEFORE_FIRST_APPLY, version, subresource);
        owners = managed::update(seen, &before, (&nothing, &live), difference, owners, &time);
    }
    if config["metadata"].get(FIELD).is_some_and(Value::is_array) {
        return Err(bad_request("metadata.managedFields must be nil"));
    }
    if let Some(of) = seen.of(version) {
        check_fields(seen, of, &config, (version, kind))?;
    }
    let manager = call.query.text("fieldManager");
    let owner = Owner::applying(manager, subresource);
    let force = call.query.flag("force");
    let applied = managed::apply(seen, (&owner, version), (&live, &config), owners.clone(), force, &time);
    let applied = match applied {
        Err(conflicts) if manager == KUBECTL => {
            let left = managed::beyond_last_applied(seen, version, &live, conflicts);
            if !left.is_empty() {
                return Err(apply_conflict(&left));
            }
            managed::apply(seen, (&owner, version), (&live, &config), owners, true, &time)
        }
        other => other,
    };
    let Applied { mut object, owners, .. } = applied.map_err(|conflicts| apply_conflict(&conflicts))?;
    if manager == KUBECTL {
        managed::note_last_applied(&mut object, &config, (version, kind));
    }
    Ok((object, owners))
}

/// Refuses a configuration that does not fit its type.
fn check_fields<'s>(
    seen: &impl Versions<'s>,
    of: Type<'s>,
    config: &Value,
    (version, kind): (&str, &str),
) -> Outcome<()> {
    let faults = seen.types().check(of, config, false);
    let all = match &faults[..] {
        [] => return Ok(()),
        [one] => one.clone(),
        many => format!("errors:\n  {}", many.join("\n  ")),
    };
    let text = |field: &str| config["metadata"][field].as_str().unwrap_or_default().to_owned();
    let message = format!(
        "failed to create typed patch object ({}/{}; {}, Kind={kind}): {all}",
        text("namespace"),
        text("name"),
        group_version(version)
    );
    Err(unexplained(500, message))
}

/// The configuration in the body, which is YAML, as JSON is too.
pub(crate) fn read(call: &Call<'_>) -> Outcome<Draft> {
    let undecodable = |fault: String| bad_request(format!("error decoding patch: {fault}"));
    let parsed =
        text::yaml(call.body).map_err(|fault| undecodable(format!("error converting YAML to JSON: {fault}")))?;
    match Value::from(parsed.node) {
        Value::Object(fields) => Ok(fields),
        Value::Null => Ok(Map::new()),
        other => {
            let found = body::type_name(&other);
            let fault = format!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into Go value of type \
                 map[string]interface {{}}"
            );
            Err(undecodable(fault))
        }
    }
}

/// What strict validation says of fields that the body has twice.
fn duplicates(call: &Call<'_>) -> Outcome<Vec<String>> {
    let found = text::yaml(call.body).map(|parsed| parsed.duplicates).unwrap_or_default();
    if found.is_empty() {
        return Ok(found);
    }
    match call.query.text("fieldValidation") {
        "Strict" => Err(bad_request(format!(
            "error strict decoding patch: error converting YAML to JSON: yaml: unmarshal errors:\n  {}",
            found.join("\n  ")
        ))),
        "Ignore" => Ok(Vec::new()),
        _ => Ok(found),
    }
}

/// Takes the type out of a configuration, which must be that of the path.
pub(crate) fn check_type(config: &mut Draft, version: &str, kind: &str) -> Outcome<()> {
    let mut take = |field: &str| match config.remove(field) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    let (found, found_kind) = (take("apiVersion"), take("kind"));
    if (found.as_str(), found_kind.as_str()) == (version, kind) {
        return Ok(());
    }
    Err(bad_request(format!("invalid object type: {}, Kind={found_kind}", group_version(&found))))
}

/// As Go prints a group and version, the core group with nothing before the slash.
fn group_version(version: &str) -> String {
    if version.contains('/') { version.to_owned() } else { format!("/{version}") }
}

/// Checks the options of a patch that are an apply's alone.
pub(crate) fn check_options(query: &Query, applies: bool) -> Outcome<()> {
    let mut faults = Vec::new();
    if applies && query.text("fieldManager").is_empty() {
        faults.push(Fault::required("fieldManager", "is required for apply patch"));
    }
    if !applies && query.has("force") {
        faults.push(Fault::forbidden("force", "may not be specified for non-apply patch"));
    }
    refuse_options("PatchOptions", &faults)
}

/// The manager that what `kubectl apply` noted on the client's side belongs to.
const KUBECTL: &str = "kubectl";
