//! What makes an owned child as its owner wants it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::patch::{JsonPatch, PatchError, merge_patch};
use crate::resource::{Resource, ResourceType};

/// A child as its owner wants it.
///
/// Fields that are not mentioned are left alone; maps are merged; lists are replaced; `null` removes. The name, and the
/// namespace where there is one, are the owner's unless the child has its own. The status is not the owner's to write.
///
/// ```
/// use cloudcoil_core::k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// use cloudcoil_core::{DesiredChild, EnsureStep, KnownResource};
/// use serde_json::json;
///
/// let owner: Secret = serde_json::from_value(json!({"metadata": {"name": "a", "namespace": "ns", "uid": "u1"}}))?;
/// let child = json!({"data": {"mode": "fast"}});
/// let child = DesiredChild::new(child, &ConfigMap::resource_type(), &owner, &Secret::resource_type())?;
/// assert_eq!((child.namespace(), child.name()), (Some("ns"), "a"));
/// assert!(matches!(child.step(None), Ok(EnsureStep::Create(_))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredChild {
    object: Map<String, Value>,
    kind: String,
    owner: OwnerReference,
}

/// What has to be done next for a child.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "whoever ensures a child must do all of them")]
pub enum EnsureStep {
    /// Nothing: it is as it should be.
    Nothing,
    /// Create this object. If one exists by then, read it and ask again.
    Create(Value),
    /// Patch the object. If it has changed by then, read it and ask again.
    Patch(JsonPatch),
    /// Wait until the child is gone, and ask again: it is being deleted, or will be because its owner was replaced by another
    /// of the same name.
    Wait,
}

/// Why a child cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EnsureError {
    /// The owner has no name or uid, so it has not been read from the server.
    #[error("the owner has no name or no uid")]
    UnknownOwner,
    /// What is wanted is no object.
    #[error("a child must be a JSON object")]
    NotAnObject,
    /// The owner lives in another namespace than the child, or in one when the child has none. Kubernetes takes
    /// such a child for an orphan and deletes it.
    #[error("{child} cannot be owned from namespace {owner:?}")]
    CrossNamespace {
        /// The child's kind, namespace and name.
        child: Box<str>,
        /// The owner's namespace.
        owner: Box<str>,
    },
    /// The owner has no namespace, and the child needs one and names none.
    #[error("{child} needs a namespace: its owner has none")]
    NoNamespace {
        /// The child's kind and name.
        child: Box<str>,
    },
    /// An object of that name exists and belongs to somebody else.
    #[error("{child} exists and is not owned by this object{}", By(.controller))]
    NotOwned {
        /// The child's kind, namespace and name.
        child: Box<str>,
        /// The kind and name of the object that controls it, if one does.
        controller: Option<Box<str>>,
    },
    /// The change cannot be written as a patch.
    #[error("the change of {child} cannot be written: {error}")]
    Patch {
        /// The child's kind, namespace and name.
        child: Box<str>,
        /// Why not.
        error: PatchError,
    },
}

struct By<'a>(&'a Option<Box<str>>);

impl std::fmt::Display for By<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(controller) => write!(f, " but controlled by {controller}"),
            None => Ok(()),
        }
    }
}

/// A reference to an owner that controls its children, and that stays until they are gone when they are to go first.
///
/// # Errors
/// [`EnsureError::UnknownOwner`] if the owner has no name or uid.
pub fn controller_reference(owner: &impl Resource, owner_type: &ResourceType) -> Result<OwnerReference, EnsureError> {
    let (Some(uid), false) = (owner.uid(), owner.name().is_empty()) else { return Err(EnsureError::UnknownOwner) };
    Ok(OwnerReference {
        api_version: owner_type.api_version().into_owned(),
        kind: owner_type.kind.clone().into_owned(),
        name: owner.name().to_owned(),
        uid: uid.to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    })
}

impl DesiredChild {
    /// A child of `child_type` that `owner`, as it was read from the server, wants to look like `child`.
    ///
    /// # Errors
    /// [`EnsureError`], where the child cannot be one of that owner.
    pub fn new(
        child: Value,
        child_type: &ResourceType,
        owner: &impl Resource,
        owner_type: &ResourceType,
    ) -> Result<Self, EnsureError> {
        let reference = controller_reference(owner, owner_type)?;
        let Value::Object(mut object) = child else { return Err(EnsureError::NotAnObject) };
        object.insert("apiVersion".to_owned(), Value::from(child_type.api_version()));
        object.insert("kind".to_owned(), Value::from(child_type.kind.as_ref()));
        object.remove("status");
        let metadata = member(&mut object, "metadata");
        SERVER_FIELDS.iter().for_each(|field| drop(metadata.remove(*field)));
        if text(metadata, "name").is_none() {
            metadata.insert("name".to_owned(), Value::from(owner.name()));
        }
        if !child_type.is_namespaced() {
            metadata.remove("namespace");
        } else if let (None, Some(namespace)) = (text(metadata, "namespace"), owner.namespace()) {
            metadata.insert("namespace".to_owned(), Value::from(namespace));
        }
        let desired = Self { object, kind: child_type.kind.clone().into_owned(), owner: reference };
        match (desired.namespace(), owner.namespace()) {
            (None, None) if child_type.is_namespaced() => Err(EnsureError::NoNamespace { child: desired.describe() }),
            (child, Some(namespace)) if child != Some(namespace) => {
                Err(EnsureError::CrossNamespace { child: desired.describe(), owner: namespace.into() })
            }
            _ => Ok(desired),
        }
    }

    /// The child's name.
    pub fn name(&self) -> &str {
        self.metadata("name").unwrap_or_default()
    }

    /// The child's namespace; `None` for cluster-scoped types.
    pub fn namespace(&self) -> Option<&str> {
        self.metadata("namespace")
    }

    /// What has to be done next, given the object of that name as it was just read, if there is one.
    ///
    /// # Errors
    /// [`EnsureError::NotOwned`] if somebody else's object has the name; [`EnsureError::Patch`] if the change cannot be
    /// written.
    pub fn step(&self, live: Option<&Value>) -> Result<EnsureStep, EnsureError> {
        let Some(live) = live else {
            let mut object = self.object.clone();
            set_owners(&mut object, vec![self.owner_value()]);
            return Ok(EnsureStep::Create(Value::Object(object)));
        };
        let owners: Vec<Value> =
            live.pointer("/metadata/ownerReferences").and_then(Value::as_array).cloned().unwrap_or_default();
        let is_deleting = live.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null());
        if is_deleting || owners.iter().any(|owner| self.is_predecessor(owner)) {
            return Ok(EnsureStep::Wait);
        }
        let owned = owners.iter().any(|owner| self.is_owner(owner));
        let rival = owners.iter().find(|owner| is_controller(owner) && !self.is_owner(owner));
        if rival.is_some() || !owned {
            let controller = rival.map(|owner| format!("{} {}", field(owner, "kind"), field(owner, "name")).into());
            return Err(EnsureError::NotOwned { child: self.describe(), controller });
        }
        let patched = |error| EnsureError::Patch { child: self.describe(), error };
        match JsonPatch::guarded(live, &self.merged(live, owners).map_err(patched)?).map_err(patched)? {
            Some(patch) => Ok(EnsureStep::Patch(patch)),
            None => Ok(EnsureStep::Nothing),
        }
    }

    /// The live object with what is wanted; its owners, of which this one is among them, stay in their order.
    fn merged(&self, live: &Value, mut owners: Vec<Value>) -> Result<Value, PatchError> {
        for owner in owners.iter_mut().filter(|owner| self.is_owner(owner)) {
            merge_patch(owner, &self.owner_value())?;
        }
        let mut merged = live.clone();
        merge_patch(&mut merged, &Value::Object(self.object.clone()))?;
        if let Value::Object(object) = &mut merged {
            // The same type may be stored, and read, in another version.
            object.insert("apiVersion".to_owned(), live["apiVersion"].clone());
            object.insert("kind".to_owned(), live["kind"].clone());
            set_owners(object, owners);
        }
        Ok(merged)
    }

    fn owner_value(&self) -> Value {
        serde_json::to_value(&self.owner).expect("an owner reference is plain strings and flags")
    }

    fn is_owner(&self, owner: &Value) -> bool {
        field(owner, "uid") == self.owner.uid
    }

    /// Whether a reference names another object of the owner's kind and name: one that was there before.
    fn is_predecessor(&self, owner: &Value) -> bool {
        let group = |api_version: &str| api_version.rsplit_once('/').map_or("", |(group, _)| group).to_owned();
        is_controller(owner)
            && !self.is_owner(owner)
            && field(owner, "kind") == self.owner.kind
            && field(owner, "name") == self.owner.name
            && group(field(owner, "apiVersion")) == group(&self.owner.api_version)
    }

    fn metadata(&self, field: &str) -> Option<&str> {
        text(self.object.get("metadata")?.as_object()?, field)
    }

    fn describe(&self) -> Box<str> {
        match self.namespace() {
            Some(namespace) => format!("{} {namespace}/{}", self.kind, self.name()),
            None => format!("{} {}", self.kind, self.name()),
        }
        .into()
    }
}

fn set_owners(object: &mut Map<String, Value>, owners: Vec<Value>) {
    member(object, "metadata").insert("ownerReferences".to_owned(), Value::from(owners));
}

/// A member that is an object, made one if it is not.
fn member<'a>(object: &'a mut Map<String, Value>, name: &str) -> &'a mut Map<String, Value> {
    let member = object.entry(name).or_insert(Value::Null);
    if !member.is_object() {
        *member = Value::Object(Map::new());
    }
    member.as_object_mut().expect("made an object above")
}

fn text<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    object.get(name)?.as_str().filter(|text| !text.is_empty())
}

fn field<'a>(owner: &'a Value, name: &str) -> &'a str {
    owner.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn is_controller(owner: &Value) -> bool {
    owner.get("controller") == Some(&Value::Bool(true))
}

/// Metadata that the server writes; owners are kept apart.
const SERVER_FIELDS: &[&str] = &[
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
    "generateName",
    "ownerReferences",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KnownResource;
    use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
    use serde_json::json;

    fn owner() -> Secret {
        serde_json::from_value(json!({"metadata": {"name": "a", "namespace": "ns", "uid": "u1"}})).unwrap()
    }

    fn child(object: Value) -> Result<DesiredChild, EnsureError> {
        DesiredChild::new(object, &ConfigMap::resource_type(), &owner(), &Secret::resource_type())
    }

    fn reference(uid: &str, name: &str, controller: bool) -> Value {
        json!({"apiVersion": "v1", "kind": "Secret", "name": name, "uid": uid, "controller": controller,
            "blockOwnerDeletion": true})
    }

    fn live(owners: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": "1", "y": "2"}, "list": [1, 2],
            "metadata": {"name": "a", "namespace": "ns", "uid": "c1", "resourceVersion": "5", "ownerReferences": owners}})
    }

    /// What the live object becomes, and the number of operations it takes.
    fn after(desired: Value, mut live: Value) -> (Value, usize) {
        match child(desired).unwrap().step(Some(&live)).unwrap() {
            EnsureStep::Patch(patch) => {
                patch.apply(&mut live).unwrap();
                (live, patch.len() - 2)
            }
            EnsureStep::Nothing => (live, 0),
            step => panic!("{step:?}"),
        }
    }

    #[test]
    fn a_child_that_is_not_there_is_created_under_its_owner() {
        let desired = json!({"metadata": {"labels": {"x": "1"}, "uid": "no", "resourceVersion": "no", "managedFields": [1],
            "creationTimestamp": null, "ownerReferences": [{}]}, "data": {"x": "1"}, "status": {"no": 1}});
        let created = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": "1"}, "metadata": {"name": "a",
            "namespace": "ns", "labels": {"x": "1"}, "ownerReferences": [reference("u1", "a", true)]}});
        assert_eq!(child(desired).unwrap().step(None), Ok(EnsureStep::Create(created)));
    }

    #[test]
    fn maps_merge_lists_replace_null_removes_and_the_rest_stays() {
        let owners = json!([reference("u1", "a", true)]);
        let (patched, operations) =
            after(json!({"data": {"x": "3", "y": null, "z": "4"}, "list": [1]}), live(owners.clone()));
        assert_eq!((&patched["data"], &patched["list"]), (&json!({"x": "3", "z": "4"}), &json!([1])));
        assert_eq!((&patched["metadata"], operations), (&live(owners.clone())["metadata"], 4));
        assert_eq!(after(json!({"data": {"x": "1"}}), live(owners)).1, 0);
    }

    #[test]
    fn other_owners_stay_and_this_one_is_made_to_control() {
        let mut other = reference("u9", "z", false);
        other["kind"] = json!("Pod");
        let (patched, _) = after(json!({}), live(json!([other, reference("u1", "a", false)])));
        assert_eq!(patched["metadata"]["ownerReferences"], json!([other, reference("u1", "a", true)]));
    }

    #[test]
    fn an_object_of_somebody_else_is_refused() {
        let refused = |owners| child(json!({})).unwrap().step(Some(&live(owners))).unwrap_err().to_string();
        assert_eq!(refused(json!([])), "ConfigMap ns/a exists and is not owned by this object");
        assert_eq!(
            refused(json!([reference("u2", "a", false)])),
            "ConfigMap ns/a exists and is not owned by this object"
        );
        let rival = "ConfigMap ns/a exists and is not owned by this object but controlled by Secret b";
        assert_eq!(refused(json!([reference("u2", "b", true)])), rival);
        assert_eq!(refused(json!([reference("u1", "a", false), reference("u2", "b", true)])), rival);
    }

    #[test]
    fn a_child_on_its_way_out_is_waited_for() {
        let mut deleting = live(json!([reference("u1", "a", true)]));
        deleting["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let orphaned = live(json!([reference("u0", "a", true)]));
        for live in [deleting, orphaned] {
            assert_eq!(child(json!({})).unwrap().step(Some(&live)), Ok(EnsureStep::Wait));
        }
    }

    #[test]
    fn ownership_does_not_cross_namespaces() {
        let elsewhere = child(json!({"metadata": {"name": "x", "namespace": "other"}})).unwrap_err();
        assert_eq!(elsewhere.to_string(), "ConfigMap other/x cannot be owned from namespace \"ns\"");
        let global = DesiredChild::new(json!({}), &Namespace::resource_type(), &owner(), &Secret::resource_type());
        assert!(matches!(global, Err(EnsureError::CrossNamespace { .. })));
        let above: Namespace = serde_json::from_value(json!({"metadata": {"name": "a", "uid": "u1"}})).unwrap();
        let of = |child| DesiredChild::new(child, &ConfigMap::resource_type(), &above, &Namespace::resource_type());
        assert!(matches!(of(json!({})), Err(EnsureError::NoNamespace { .. })));
        assert_eq!(of(json!({"metadata": {"namespace": "x"}})).unwrap().namespace(), Some("x"));
        let unread =
            DesiredChild::new(json!({}), &ConfigMap::resource_type(), &Secret::default(), &Secret::resource_type());
        assert_eq!(unread, Err(EnsureError::UnknownOwner));
    }
}
