//! The change of one object as a patch that only that object, in that version, takes.

use serde_json::Value;

use super::{JsonPatch, Operation, PatchError, Pointer};

/// See [`guarded`](Self::guarded).
impl JsonPatch {
    /// The patch that makes `new` of `old`, or nothing when there is no change.
    ///
    /// `old` is an object as the API server returned it, and `new` an edited copy. The patch starts with tests of
    /// `metadata.uid` and `metadata.resourceVersion`, so the server refuses it when the object has changed or was
    /// replaced meanwhile. A change of apiVersion, kind, name, namespace, uid or resourceVersion is an error.
    /// `metadata.managedFields` belongs to the server: changes there are left out.
    pub fn guarded(old: &Value, new: &Value) -> Result<Option<Self>, PatchError> {
        let tests = guard(old, new)?;
        Ok(guarded(tests, changes(old, new)?))
    }

    /// As [`guarded`](Self::guarded), for a patch of the `status` subresource: a change of anything but `status` is
    /// an error.
    pub fn guarded_status(old: &Value, new: &Value) -> Result<Option<Self>, PatchError> {
        let tests = guard(old, new)?;
        let changes = changes(old, new)?;
        match changes.iter().find(|change| !is_status(change.path())) {
            Some(change) => Err(PatchError::OutsideStatus { path: change.path().clone() }),
            None => Ok(guarded(tests, changes)),
        }
    }

    /// As [`guarded`](Self::guarded), in two patches: one of the object without `status`, for the object itself,
    /// and one of `status`, for the `status` subresource.
    ///
    /// Whichever is sent second tests the resourceVersion from before the first.
    pub fn guarded_parts(old: &Value, new: &Value) -> Result<(Option<Self>, Option<Self>), PatchError> {
        let tests = guard(old, new)?;
        let (status, object) = changes(old, new)?.into_iter().partition(|change| is_status(change.path()));
        Ok((guarded(tests.clone(), object), guarded(tests, status)))
    }
}

/// The tests that a patch of `old` starts with, once `new` is known to be the same object.
fn guard(old: &Value, new: &Value) -> Result<[Operation; 2], PatchError> {
    let test = |segments: &[&str]| {
        let path = Pointer::from_iter(segments);
        match find(old, segments) {
            Some(Value::String(text)) if !text.is_empty() => Ok(Operation::Test { value: text.clone().into(), path }),
            _ => Err(PatchError::NotFetched { path }),
        }
    };
    let tests = [test(UID)?, test(RESOURCE_VERSION)?];
    same_object(old, new)?;
    Ok(tests)
}

/// An error if what identifies the object differs.
pub(super) fn same_object(old: &Value, new: &Value) -> Result<(), PatchError> {
    match IDENTITY.iter().find(|segments| find(old, segments) != find(new, segments)) {
        Some(segments) => Err(PatchError::IdentityChanged { path: Pointer::from_iter(*segments) }),
        None => Ok(()),
    }
}

fn find<'v>(object: &'v Value, segments: &[&str]) -> Option<&'v Value> {
    segments.iter().try_fold(object, |value, segment| value.get(segment))
}

fn changes(old: &Value, new: &Value) -> Result<Vec<Operation>, PatchError> {
    let mut changes = Vec::from(JsonPatch::diff(old, new)?);
    changes.retain(|change| change.path().as_str() != "/metadata/managedFields");
    Ok(changes)
}

fn guarded(tests: [Operation; 2], changes: Vec<Operation>) -> Option<JsonPatch> {
    if changes.is_empty() { None } else { Some(Vec::from_iter(tests.into_iter().chain(changes)).into()) }
}

fn is_status(path: &Pointer) -> bool {
    path.segments().next().is_some_and(|segment| segment == "status")
}

const UID: &[&str] = &["metadata", "uid"];
const RESOURCE_VERSION: &[&str] = &["metadata", "resourceVersion"];
const IDENTITY: &[&[&str]] =
    &[&["apiVersion"], &["kind"], &["metadata", "name"], &["metadata", "namespace"], UID, RESOURCE_VERSION];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object() -> Value {
        json!({
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "metadata": {
                "name": "w", "namespace": "n", "uid": "u", "resourceVersion": "7",
                "managedFields": [{ "manager": "m" }],
            },
            "spec": { "size": 1 },
            "status": { "phase": "New" },
        })
    }

    fn edited(path: &str, value: Option<Value>) -> Value {
        let mut object = object();
        let path = Pointer::parse(path).unwrap();
        let operation = match value {
            Some(value) => Operation::Add { path, value },
            None => Operation::Remove { path },
        };
        JsonPatch::from(vec![operation]).apply(&mut object).unwrap();
        object
    }

    fn guarded_by_tests(operation: Value) -> Value {
        json!([
            { "op": "test", "path": "/metadata/uid", "value": "u" },
            { "op": "test", "path": "/metadata/resourceVersion", "value": "7" },
            operation,
        ])
    }

    #[test]
    fn a_change_is_guarded_and_no_change_is_no_patch() {
        let new = edited("/spec/size", Some(json!(2)));
        let patch = JsonPatch::guarded(&object(), &new).unwrap().unwrap();
        let replaced = guarded_by_tests(json!({ "op": "replace", "path": "/spec/size", "value": 2 }));
        assert_eq!(Value::from(patch.clone()), replaced);
        let mut document = object();
        patch.apply(&mut document).unwrap();
        assert_eq!(document, new);
        for path in ["/metadata/uid", "/metadata/resourceVersion"] {
            let mut other = edited(path, Some(json!("x")));
            assert!(matches!(patch.apply(&mut other), Err(PatchError::Operation { name: "test", .. })), "{path}");
        }
        assert_eq!(JsonPatch::guarded(&object(), &object()), Ok(None));
    }

    #[test]
    fn identity_cannot_change() {
        for path in ["/apiVersion", "/kind"].into_iter().chain(METADATA) {
            for value in [Some(json!("x")), None] {
                let error = JsonPatch::guarded(&object(), &edited(path, value)).unwrap_err();
                assert_eq!(error, PatchError::IdentityChanged { path: Pointer::parse(path).unwrap() });
            }
        }
        let replaced = json!([1]);
        assert!(JsonPatch::guarded(&object(), &replaced).is_err());
        assert!(JsonPatch::guarded(&replaced, &replaced).is_err());
    }

    #[test]
    fn only_an_object_from_the_server_can_be_guarded() {
        for path in ["/metadata/uid", "/metadata/resourceVersion", "/metadata"] {
            for value in [None, Some(json!("")), Some(json!(7)), Some(json!(null))] {
                let old = edited(path, value);
                let error = JsonPatch::guarded(&old, &old).unwrap_err();
                assert!(matches!(error, PatchError::NotFetched { .. }), "{path}: {error}");
            }
        }
    }

    #[test]
    fn a_status_patch_leaves_the_rest_alone() {
        for (path, value) in [("/status", None), ("/status/phase", Some(json!("Old"))), ("/status", Some(json!("x")))] {
            let new = edited(path, value);
            assert_eq!(JsonPatch::guarded_status(&object(), &new), JsonPatch::guarded(&object(), &new), "{path}");
        }
        let error = JsonPatch::guarded_status(&object(), &edited("/statusText", Some(json!(1)))).unwrap_err();
        assert_eq!(error, PatchError::OutsideStatus { path: Pointer::from_iter(["statusText"]) });
        assert_eq!(JsonPatch::guarded_status(&object(), &object()), Ok(None));
    }

    #[test]
    fn the_parts_of_a_change_go_their_own_ways() {
        let mut new = edited("/spec/size", Some(json!(2)));
        new["status"]["phase"] = json!("Old");
        let (spec, status) = JsonPatch::guarded_parts(&object(), &new).unwrap();
        let replaced =
            |path: &str, value: Value| Some(guarded_by_tests(json!({ "op": "replace", "path": path, "value": value })));
        assert_eq!(spec.map(Value::from), replaced("/spec/size", json!(2)));
        assert_eq!(status.map(Value::from), replaced("/status/phase", json!("Old")));
        assert_eq!(JsonPatch::guarded_parts(&object(), &object()), Ok((None, None)));
    }

    #[test]
    fn managed_fields_are_the_servers() {
        for value in [None, Some(json!([]))] {
            assert_eq!(JsonPatch::guarded(&object(), &edited("/metadata/managedFields", value)), Ok(None));
        }
    }

    const METADATA: [&str; 4] = ["/metadata/name", "/metadata/namespace", "/metadata/uid", "/metadata/resourceVersion"];
}
