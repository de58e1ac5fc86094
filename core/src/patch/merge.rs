//! Merge patches ([RFC 7386](https://www.rfc-editor.org/rfc/rfc7386)).

use serde_json::{Map, Value};

use super::diff::{Pair, Place, members, same};
use super::{MAX_DEPTH, PatchError, fits};

/// Merges `patch` into `target`: members that are `null` in an object of the patch are removed, objects are merged,
/// anything else is replaced. On an error `target` is unchanged.
///
/// ```
/// use cloudcoil_core::patch::merge_patch;
/// use serde_json::json;
///
/// let mut target = json!({ "a": { "b": 1, "c": 2 } });
/// merge_patch(&mut target, &json!({ "a": { "b": null, "d": [3] } }))?;
/// assert_eq!(target, json!({ "a": { "c": 2, "d": [3] } }));
/// # Ok::<(), cloudcoil_core::PatchError>(())
/// ```
pub fn merge_patch(target: &mut Value, patch: &Value) -> Result<(), PatchError> {
    if !fits(patch, MAX_DEPTH) {
        return Err(PatchError::TooDeep);
    }
    merge(target, patch);
    Ok(())
}

/// The merge patch that makes `new` of `old`; `{}` when two objects are equal.
///
/// It cannot set a member to `null`; a change that would need it is an error. Inside arrays `null` is a value.
pub fn merge_diff(old: &Value, new: &Value) -> Result<Value, PatchError> {
    difference(old, new, &Place::ROOT)
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(members) = target else { return };
    for (key, change) in changes {
        if change.is_null() {
            members.remove(key);
        } else if let Some(member) = members.get_mut(key) {
            merge(member, change);
        } else {
            let mut member = Value::Null;
            merge(&mut member, change);
            members.insert(key.clone(), member);
        }
    }
}

fn difference(old: &Value, new: &Value, place: &Place<'_>) -> Result<Value, PatchError> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let mut changes = Map::new();
            members(old, new, place, |key, pair| {
                let place = place.member(key);
                let change = match pair {
                    Pair::Both(old, new) if same(old, new, place.levels())? => return Ok(()),
                    Pair::Both(old, new) => difference(old, new, &place)?,
                    Pair::Added(new) => difference(&Value::Null, new, &place)?,
                    Pair::Removed => Value::Null,
                };
                if matches!(pair, Pair::Both(..) | Pair::Added(_)) && change.is_null() {
                    return Err(PatchError::NullInMerge { path: place.pointer() });
                }
                changes.insert(key.to_owned(), change);
                Ok(())
            })?;
            Ok(Value::Object(changes))
        }
        // Merged into something that is no object, an object starts from an empty one.
        (_, Value::Object(_)) => difference(&Value::Object(Map::new()), new, place),
        _ if fits(new, place.levels()) => Ok(new.clone()),
        _ => Err(PatchError::TooDeep),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::patch::Pointer;

    #[test]
    fn the_examples_of_the_standard_hold() {
        for (original, patch, result) in [
            (json!({ "a": "b" }), json!({ "a": "c" }), json!({ "a": "c" })),
            (json!({ "a": "b" }), json!({ "b": "c" }), json!({ "a": "b", "b": "c" })),
            (json!({ "a": "b" }), json!({ "a": null }), json!({})),
            (json!({ "a": "b", "b": "c" }), json!({ "a": null }), json!({ "b": "c" })),
            (json!({ "a": ["b"] }), json!({ "a": "c" }), json!({ "a": "c" })),
            (json!({ "a": "c" }), json!({ "a": ["b"] }), json!({ "a": ["b"] })),
            (json!({ "a": { "b": "c" } }), json!({ "a": { "b": "d", "c": null } }), json!({ "a": { "b": "d" } })),
            (json!({ "a": [{ "b": "c" }] }), json!({ "a": [1] }), json!({ "a": [1] })),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({ "a": "b" }), json!(["c"]), json!(["c"])),
            (json!({ "a": "foo" }), json!(null), json!(null)),
            (json!({ "a": "foo" }), json!("bar"), json!("bar")),
            (json!({ "e": null }), json!({ "a": 1 }), json!({ "e": null, "a": 1 })),
            (json!([1, 2]), json!({ "a": "b", "c": null }), json!({ "a": "b" })),
            (json!({}), json!({ "a": { "bb": { "ccc": null } } }), json!({ "a": { "bb": {} } })),
        ] {
            let mut target = original.clone();
            merge_patch(&mut target, &patch).unwrap();
            assert_eq!(target, result, "{original} {patch}");
        }
    }

    #[test]
    fn a_difference_holds_what_changed() {
        for (old, new, patch) in [
            (
                json!({ "a": 1, "b": { "c": 1, "d": 2 } }),
                json!({ "b": { "c": 1, "d": 3 } }),
                json!({ "a": null, "b": { "d": 3 } }),
            ),
            (json!({ "a": 1 }), json!({ "a": 1 }), json!({})),
            (json!({ "a": null }), json!({ "a": null, "b": {} }), json!({ "b": {} })),
            (json!({ "a": 1 }), json!({ "a": {} }), json!({ "a": {} })),
            (json!({ "a": { "b": 1 } }), json!({ "a": [null] }), json!({ "a": [null] })),
            (json!([1]), json!({ "a": 1 }), json!({ "a": 1 })),
            (json!({}), json!(null), json!(null)),
        ] {
            assert_eq!(merge_diff(&old, &new), Ok(patch), "{old} {new}");
        }
    }

    #[test]
    fn a_null_cannot_be_set() {
        let error = |path: &str| Err(PatchError::NullInMerge { path: Pointer::parse(path).unwrap() });
        assert_eq!(merge_diff(&json!({ "a": 1 }), &json!({ "a": null })), error("/a"));
        assert_eq!(merge_diff(&json!({}), &json!({ "a": { "b": null } })), error("/a/b"));
    }

    #[test]
    fn documents_that_are_nested_too_deep_are_refused() {
        let deep = (0..=MAX_DEPTH).fold(json!(0), |inner, _| json!({ "a": inner }));
        let mut target = json!(1);
        assert_eq!(merge_patch(&mut target, &deep), Err(PatchError::TooDeep));
        assert_eq!(target, json!(1));
        assert_eq!(merge_diff(&json!(0), &deep), Err(PatchError::TooDeep));
        assert_eq!(merge_diff(&deep, &deep), Err(PatchError::TooDeep));
    }
}
