//! A change of an object, and the patches that write it.

use serde::Deserialize;
use serde_json::Value;

use crate::error::Error;
use crate::exchange::Answer;
use crate::patch::{JsonPatch, Operation, PatchError, carry};
use crate::response;

/// A change of an object: what the API server returned, and what it is to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    old: Value,
    new: Value,
}

impl Update {
    /// The change from `old`, an object as the API server returned it, to `new`.
    pub const fn new(old: Value, new: Value) -> Self {
        Self { old, new }
    }

    /// The change of `stored`, an object as the API server returned it, that somebody made who saw it through a type:
    /// as `read`, which became `edited`.
    ///
    /// Only what differs between the two is changed. So what the type does not know stays, in elements of lists too
    /// if each has its own `name` or keeps its place, and a default that the type filled in is not written.
    ///
    /// ```
    /// use cloudcoil_core::Update;
    /// use serde_json::json;
    ///
    /// let stored = json!({"spec": {"size": 1, "novel": true}});
    /// let update = Update::typed(stored, &json!({"spec": {"size": 1}}), json!({"spec": {"size": 2}}));
    /// assert_eq!(update.new_object(), &json!({"spec": {"size": 2, "novel": true}}));
    /// ```
    pub fn typed(stored: Value, read: &Value, edited: Value) -> Self {
        let new = carry(stored.clone(), read, edited);
        Self { old: stored, new }
    }

    /// The object as the API server returned it.
    pub const fn old_object(&self) -> &Value {
        &self.old
    }

    /// What the object is to be.
    pub const fn new_object(&self) -> &Value {
        &self.new
    }

    /// The patches for the object and for its status, each only if there is something to change.
    pub(super) fn patches(&self, status: StatusEndpoint) -> Result<(Option<JsonPatch>, Option<JsonPatch>), PatchError> {
        match status {
            StatusEndpoint::Object => Ok((JsonPatch::guarded(&self.old, &self.new)?, None)),
            StatusEndpoint::Detect | StatusEndpoint::Subresource => JsonPatch::guarded_parts(&self.old, &self.new),
        }
    }
}

/// Where the status of a type is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there are no other ways to write a status")]
pub enum StatusEndpoint {
    /// In the `status` subresource, or with the object if the type turns out to have none.
    #[default]
    Detect,
    /// In the `status` subresource.
    Subresource,
    /// With the object.
    Object,
}

/// Which version of which object: enough to know it again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "whoever watches objects makes it")]
pub struct ObjectVersion {
    /// The uid of the object.
    pub uid: Box<str>,
    /// Its resource version.
    pub resource_version: Box<str>,
}

impl ObjectVersion {
    /// Whether one who has seen `seen` of the same key knows what this version holds: it is this version, a later
    /// one, or another object.
    ///
    /// Versions are compared by size only if both are written as numbers, as those of the API server are. See
    /// <https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions>.
    pub fn is_known_from(&self, seen: &Self) -> bool {
        let (one, other) = (&*self.resource_version, &*seen.resource_version);
        self.uid != seen.uid
            || one == other
            || (is_number(one) && is_number(other) && (one.len(), one) < (other.len(), other))
    }
}

fn is_number(version: &str) -> bool {
    !version.starts_with('0') && !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit())
}

/// The version that a write has led to; `None` if the answer, which is an object, does not name one.
pub(super) fn written(answer: &Answer) -> Result<Option<ObjectVersion>, Error> {
    #[derive(Deserialize)]
    struct Object {
        metadata: Option<Meta>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Meta {
        uid: Option<Box<str>>,
        resource_version: Option<Box<str>>,
    }
    let object: Object = response::decode(answer)?;
    Ok(object.metadata.and_then(|meta| {
        let version = ObjectVersion { uid: meta.uid?, resource_version: meta.resource_version? };
        (!version.uid.is_empty() && !version.resource_version.is_empty()).then_some(version)
    }))
}

/// The version that a guarded patch was made for.
pub(super) fn guarded_version(patch: &JsonPatch) -> Option<&str> {
    patch.operations().iter().find_map(|operation| match operation {
        Operation::Test { path, value } if path.as_str() == VERSION => value.as_str(),
        _ => None,
    })
}

/// The same guarded patch for another version of the object.
pub(super) fn guard_anew(patch: JsonPatch, version: &str) -> JsonPatch {
    let mut operations = Vec::from(patch);
    for operation in &mut operations {
        if let Operation::Test { path, value } = operation
            && path.as_str() == VERSION
        {
            *value = version.into();
        }
    }
    operations.into()
}

const VERSION: &str = "/metadata/resourceVersion";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn version(uid: &str, resource_version: &str) -> ObjectVersion {
        ObjectVersion { uid: uid.into(), resource_version: resource_version.into() }
    }

    #[test]
    fn what_a_type_does_not_know_survives_its_edits() {
        for (stored, read, edited, new) in [
            (json!({"a": 1, "x": 2}), json!({"a": 1}), json!({"a": 3}), json!({"a": 3, "x": 2})),
            (json!({"x": 2}), json!({"a": 0, "b": []}), json!({"a": 0, "b": [1]}), json!({"x": 2, "b": [1]})),
            (json!({"x": 2}), json!({"a": 0}), json!({}), json!({"x": 2})),
            (json!({}), json!({"s": {"c": []}}), json!({"s": {"c": [1]}}), json!({"s": {"c": [1]}})),
            (json!({"s": null}), json!({"s": {"c": 0}}), json!({"s": {"c": 1}}), json!({"s": {"c": 1}})),
            (json!({}), json!({"s": {"c": 0, "d": 0}}), json!({"s": {"c": 1, "d": 0}}), json!({"s": {"c": 1}})),
            (json!({"a": 1}), json!({"a": 1}), json!({"a": null}), json!({"a": null})),
            (json!({"n": 1.0}), json!({"n": 1, "m": 0}), json!({"n": 1, "m": 1}), json!({"n": 1.0, "m": 1})),
        ] {
            assert_eq!(Update::typed(stored, &read, edited).new, new);
        }
    }

    #[test]
    fn what_a_type_does_not_know_survives_in_lists() {
        let stored = || json!([{"n": 1, "x": 1}, {"n": 2, "x": 2}, {"n": 3, "x": 3}]);
        let read = json!([{"n": 1}, {"n": 2}, {"n": 3}]);
        for (edited, new) in [
            (json!([{"n": 1}, {"n": 5}, {"n": 3}]), json!([{"n": 1, "x": 1}, {"n": 5, "x": 2}, {"n": 3, "x": 3}])),
            (json!([{"n": 1}, {"n": 3}]), json!([{"n": 1, "x": 1}, {"n": 3, "x": 3}])),
            (json!([{"n": 2}, {"n": 3}]), json!([{"n": 2, "x": 2}, {"n": 3, "x": 3}])),
            (
                json!([{"n": 1}, {"n": 9}, {"n": 2}, {"n": 3}]),
                json!([{"n": 1, "x": 1}, {"n": 9}, {"n": 2, "x": 2}, {"n": 3, "x": 3}]),
            ),
            (json!([]), json!([])),
            (json!([{"n": 7}]), json!([{"n": 7}])),
        ] {
            assert_eq!(Update::typed(stored(), &read, edited).new, new);
        }
        let named = |names: [&str; 2]| Value::from_iter(names.map(|name| json!({"name": name})));
        let stored = json!([{"name": "a", "x": 1}, {"name": "b", "x": 2}]);
        let swapped = Update::typed(stored, &named(["a", "b"]), named(["b", "a"]));
        assert_eq!(swapped.new, json!([{"name": "b", "x": 2}, {"name": "a", "x": 1}]));
        let repeated = Update::typed(json!([1, 1]), &json!([1, 1]), json!([1, 1, 1]));
        assert_eq!(repeated.new, json!([1, 1, 1]));
    }

    #[test]
    fn versions_are_compared_by_size_only_where_they_are_numbers() {
        for (own, seen, known) in [
            (version("u", "9"), version("u", "9"), true),
            (version("u", "9"), version("u", "10"), true),
            (version("u", "10"), version("u", "9"), false),
            (version("u", "99999999999999999999999"), version("u", "100000000000000000000000"), true),
            (version("u", "b"), version("u", "c"), false),
            (version("u", "9"), version("u", "010"), false),
            (version("u", "9"), version("u", ""), false),
            (version("u", "9"), version("v", "1"), true),
        ] {
            assert_eq!(own.is_known_from(&seen), known, "{own:?} from {seen:?}");
        }
    }

    fn document() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Null), (0..3).prop_map(Value::from), "[ab]{0,2}".prop_map(Value::from)];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map("[a-c]", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn an_edit_of_all_that_is_stored_is_taken_as_it_is(stored in document(), edited in document()) {
            prop_assert_eq!(Update::typed(stored.clone(), &stored, edited.clone()).new, edited);
        }

        #[test]
        fn no_edit_is_no_change(stored in document(), read in document()) {
            let update = Update::typed(stored.clone(), &read, read.clone());
            prop_assert_eq!(update.new, stored);
        }
    }
}
