//! The difference of two documents as a JSON Patch.

use serde_json::{Map, Value};

use super::{JsonPatch, MAX_DEPTH, Operation, PatchError, Pointer, fits};

impl JsonPatch {
    /// The patch that makes `new` of `old`: objects member by member in order of their names, anything else,
    /// arrays too, replaced as a whole. A `null` is a value like others. Equal documents give an empty patch.
    pub fn diff(old: &Value, new: &Value) -> Result<Self, PatchError> {
        Self::diff_with(old, new, Arrays::Whole)
    }

    /// As [`diff`](Self::diff), with arrays changed as `arrays` says.
    ///
    /// ```
    /// use cloudcoil_core::JsonPatch;
    /// use cloudcoil_core::patch::Arrays;
    /// use serde_json::json;
    ///
    /// let (old, new) = (json!(["a", "b", "c"]), json!(["a", "c"]));
    /// let patch = JsonPatch::diff_with(&old, &new, Arrays::ByElement)?;
    /// assert_eq!(serde_json::to_value(patch).unwrap(), json!([{ "op": "remove", "path": "/1" }]));
    /// # Ok::<(), cloudcoil_core::PatchError>(())
    /// ```
    pub fn diff_with(old: &Value, new: &Value, arrays: Arrays) -> Result<Self, PatchError> {
        let mut operations = Vec::new();
        values(old, new, (&Place::ROOT, arrays), &mut operations)?;
        Ok(Self(operations))
    }
}

/// How the difference of two arrays is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Arrays {
    /// The array is replaced: nobody can mistake one element for another.
    #[default]
    Whole,
    /// Elements are changed, removed and added, those before and after them left alone. The operations are about the
    /// indices of the old array: send them with a test of the array or of the `resourceVersion`.
    ByElement,
}

/// Where the walk is; turned into a pointer only where something differs.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    parent: Option<&'a Self>,
    key: &'a str,
    depth: usize,
}

impl<'a> Place<'a> {
    pub(super) const ROOT: Self = Self { parent: None, key: "", depth: 0 };

    pub(super) const fn member(&'a self, key: &'a str) -> Self {
        Self { parent: Some(self), key, depth: self.depth + 1 }
    }

    pub(super) fn pointer(&self) -> Pointer {
        let mut pointer = self.parent.map(Self::pointer).unwrap_or_default();
        if self.parent.is_some() {
            pointer.push(self.key);
        }
        pointer
    }

    /// How many levels what is here may have.
    pub(super) const fn levels(&self) -> usize {
        MAX_DEPTH.saturating_sub(self.depth)
    }
}

/// One member of two objects.
pub(super) enum Pair<'a> {
    Removed,
    Added(&'a Value),
    Both(&'a Value, &'a Value),
}

fn values(
    old: &Value,
    new: &Value,
    (place, arrays): (&Place<'_>, Arrays),
    operations: &mut Vec<Operation>,
) -> Result<(), PatchError> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => members(old, new, place, |key, pair| {
            let place = place.member(key);
            match pair {
                Pair::Removed => operations.push(Operation::Remove { path: place.pointer() }),
                Pair::Added(new) => {
                    operations.push(Operation::Add { value: kept(new, &place)?, path: place.pointer() })
                }
                Pair::Both(old, new) => values(old, new, (&place, arrays), operations)?,
            }
            Ok(())
        }),
        (Value::Array(old), Value::Array(new)) if arrays == Arrays::ByElement => elements(old, new, place, operations),
        _ if same(old, new, place.levels())? => Ok(()),
        _ => {
            operations.push(Operation::Replace { value: kept(new, place)?, path: place.pointer() });
            Ok(())
        }
    }
}

/// Changes the elements between those that are the same at both ends, then removes or adds as many as are needed.
fn elements(
    old: &[Value],
    new: &[Value],
    place: &Place<'_>,
    operations: &mut Vec<Operation>,
) -> Result<(), PatchError> {
    let levels = place.levels().checked_sub(1).ok_or(PatchError::TooDeep)?;
    let shorter = old.len().min(new.len());
    let before = alike(old.iter().zip(new), levels)?;
    let after = alike(old.iter().rev().zip(new.iter().rev()).take(shorter - before), levels)?;
    for index in before..shorter - after {
        let key = index.to_string();
        values(&old[index], &new[index], (&place.member(&key), Arrays::ByElement), operations)?;
    }
    // From the last one, so that those still to go keep their indices.
    for index in (shorter - after..old.len() - after).rev() {
        operations.push(Operation::Remove { path: place.pointer().child(&index.to_string()) });
    }
    for (index, new) in new.iter().enumerate().take(new.len() - after).skip(shorter - after) {
        let key = index.to_string();
        let place = place.member(&key);
        operations.push(Operation::Add { value: kept(new, &place)?, path: place.pointer() });
    }
    Ok(())
}

/// How many of the first pairs are the same.
fn alike<'a>(pairs: impl Iterator<Item = (&'a Value, &'a Value)>, levels: usize) -> Result<usize, PatchError> {
    let mut count = 0;
    for (old, new) in pairs {
        if !same(old, new, levels)? {
            break;
        }
        count += 1;
    }
    Ok(count)
}

/// Visits the members of two objects in order of their names.
pub(super) fn members<'a>(
    old: &'a Map<String, Value>,
    new: &'a Map<String, Value>,
    place: &Place<'_>,
    visit: impl FnMut(&'a str, Pair<'a>) -> Result<(), PatchError>,
) -> Result<(), PatchError> {
    if place.levels() == 0 {
        return Err(PatchError::TooDeep);
    }
    // Maps are sorted unless another crate of the build turns on serde_json's `preserve_order`.
    if old.keys().is_sorted() && new.keys().is_sorted() {
        merge(old.iter(), new.iter(), visit)
    } else {
        merge(sorted(old).into_iter(), sorted(new).into_iter(), visit)
    }
}

fn merge<'a>(
    mut old: impl Iterator<Item = (&'a String, &'a Value)>,
    mut new: impl Iterator<Item = (&'a String, &'a Value)>,
    mut visit: impl FnMut(&'a str, Pair<'a>) -> Result<(), PatchError>,
) -> Result<(), PatchError> {
    let (mut next_old, mut next_new) = (old.next(), new.next());
    loop {
        match (next_old, next_new) {
            (Some((key, before)), Some((other, after))) if key == other => {
                visit(key, Pair::Both(before, after))?;
                (next_old, next_new) = (old.next(), new.next());
            }
            (Some((key, _)), other) if other.is_none_or(|(other, _)| key < other) => {
                visit(key, Pair::Removed)?;
                next_old = old.next();
            }
            (_, Some((key, after))) => {
                visit(key, Pair::Added(after))?;
                next_new = new.next();
            }
            (_, None) => return Ok(()),
        }
    }
}

fn sorted(members: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut sorted: Vec<_> = members.iter().collect();
    sorted.sort_unstable_by_key(|(key, _)| *key);
    sorted
}

/// Whether two values are the same to the letter: 1 and 1.0 differ.
pub(super) fn same(old: &Value, new: &Value, levels: usize) -> Result<bool, PatchError> {
    let inner = || levels.checked_sub(1).ok_or(PatchError::TooDeep);
    match (old, new) {
        (Value::Array(old), Value::Array(new)) => {
            let levels = inner()?;
            if old.len() != new.len() {
                return Ok(false);
            }
            for (old, new) in old.iter().zip(new) {
                if !same(old, new, levels)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::Object(old), Value::Object(new)) => {
            let levels = inner()?;
            if old.len() != new.len() {
                return Ok(false);
            }
            for ((key, old), (other, beside)) in old.iter().zip(new) {
                // Two maps of the same keys have them in the same order, but for `preserve_order`.
                let Some(new) = (if key == other { Some(beside) } else { new.get(key) }) else { return Ok(false) };
                if !same(old, new, levels)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        _ => Ok(old == new),
    }
}

pub(super) fn kept(value: &Value, place: &Place<'_>) -> Result<Value, PatchError> {
    if fits(value, place.levels()) { Ok(value.clone()) } else { Err(PatchError::TooDeep) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn diff(old: Value, new: Value) -> Value {
        JsonPatch::diff(&old, &new).unwrap().into()
    }

    #[test]
    fn members_are_compared_in_order_of_their_names() {
        let old = json!({ "b": 1, "c": { "x": 1, "y": [1, 2], "z": null }, "d": null, "e": 0 });
        let new = json!({ "a": {}, "b": 1, "c": { "x": 2, "y": [1], "z": null }, "d": 1, "f": null });
        assert_eq!(
            diff(old, new),
            json!([
                { "op": "add", "path": "/a", "value": {} },
                { "op": "replace", "path": "/c/x", "value": 2 },
                { "op": "replace", "path": "/c/y", "value": [1] },
                { "op": "replace", "path": "/d", "value": 1 },
                { "op": "remove", "path": "/e" },
                { "op": "add", "path": "/f", "value": null },
            ])
        );
    }

    #[test]
    fn equal_documents_differ_in_nothing() {
        let document = json!({ "a": [{ "b": 1, "c": [[]] }], "d": {} });
        assert_eq!(diff(document.clone(), document), json!([]));
        assert_eq!(diff(json!(0), json!(0)), json!([]));
    }

    #[test]
    fn values_of_another_kind_are_replaced() {
        let replaced = |path: &str, value: Value| json!([{ "op": "replace", "path": path, "value": value }]);
        assert_eq!(diff(json!({}), json!([])), replaced("", json!([])));
        assert_eq!(diff(json!({ "a": [] }), json!({ "a": {} })), replaced("/a", json!({})));
        assert_eq!(diff(json!([{ "a": 1 }]), json!([{ "b": 1 }])), replaced("", json!([{ "b": 1 }])));
        assert_eq!(diff(json!([{ "a": 1 }]), json!([{ "a": 2 }])), replaced("", json!([{ "a": 2 }])));
        assert_eq!(diff(json!({ "a": 1 }), json!({ "a": 1.0 })), replaced("/a", json!(1.0)));
        assert_eq!(diff(json!({ "a": 1 }), json!({ "a": "1" })), replaced("/a", json!("1")));
    }

    #[test]
    fn a_first_annotation_comes_with_its_map_and_others_stay() {
        let key = "team.example/role~x";
        let bare = json!({ "metadata": {} });
        let with = |other: Value| {
            let mut object = json!({ "metadata": { "annotations": other } });
            object["metadata"]["annotations"][key] = json!("y");
            object
        };
        let map = json!([{ "op": "add", "path": "/metadata/annotations", "value": { key: "y" } }]);
        assert_eq!(diff(bare, with(json!({}))), map);
        let one = json!([{ "op": "add", "path": "/metadata/annotations/team.example~1role~0x", "value": "y" }]);
        assert_eq!(diff(json!({ "metadata": { "annotations": { "a": "b" } } }), with(json!({ "a": "b" }))), one);
    }

    #[test]
    fn elements_are_changed_removed_and_added_if_that_is_wanted() {
        let by_element = |old, new| Value::from(JsonPatch::diff_with(&old, &new, Arrays::ByElement).unwrap());
        let old = json!({ "a": [{ "b": [1, 2] }, "x", "y", "z", 0] });
        assert_eq!(
            by_element(old.clone(), json!({ "a": [{ "b": [1, 3] }, "w", 0] })),
            json!([
                { "op": "replace", "path": "/a/0/b/1", "value": 3 },
                { "op": "replace", "path": "/a/1", "value": "w" },
                { "op": "remove", "path": "/a/3" },
                { "op": "remove", "path": "/a/2" },
            ])
        );
        assert_eq!(
            by_element(json!([1, 4]), json!([1, 2, null, 4])),
            json!([{ "op": "add", "path": "/1", "value": 2 }, { "op": "add", "path": "/2", "value": null }])
        );
        assert_eq!(by_element(json!([1]), json!([1, 1])), json!([{ "op": "add", "path": "/1", "value": 1 }]));
        assert_eq!(by_element(json!([1]), json!([])), json!([{ "op": "remove", "path": "/0" }]));
        assert_eq!(by_element(json!([1]), json!([1.0])), json!([{ "op": "replace", "path": "/0", "value": 1.0 }]));
        assert_eq!(by_element(old.clone(), old), json!([]));
    }

    #[test]
    fn documents_that_are_nested_too_deep_are_refused() {
        let list = |levels: usize, leaf: i32| (0..levels).fold(json!(leaf), |inner, _| json!([inner]));
        let map = |levels: usize, leaf: i32| (0..levels).fold(json!(leaf), |inner, _| json!({ "a": inner }));
        for deep in [list, map] {
            assert_eq!(JsonPatch::diff(&deep(MAX_DEPTH, 0), &deep(MAX_DEPTH, 1)).unwrap().len(), 1);
            assert_eq!(JsonPatch::diff(&deep(MAX_DEPTH + 1, 0), &deep(MAX_DEPTH + 1, 0)), Err(PatchError::TooDeep));
            let by_element = |old: &Value, new: &Value| JsonPatch::diff_with(old, new, Arrays::ByElement);
            assert_eq!(by_element(&deep(MAX_DEPTH, 0), &deep(MAX_DEPTH, 1)).unwrap().len(), 1);
            for leaf in [0, 1] {
                let (old, new) = (deep(MAX_DEPTH + 1, 0), deep(MAX_DEPTH + 1, leaf));
                assert_eq!(by_element(&old, &new), Err(PatchError::TooDeep));
            }
            assert_eq!(by_element(&json!([]), &json!([deep(MAX_DEPTH, 0)])), Err(PatchError::TooDeep));
            assert_eq!(JsonPatch::diff(&json!(0), &deep(MAX_DEPTH + 1, 0)), Err(PatchError::TooDeep));
            assert_eq!(JsonPatch::diff(&json!({}), &json!({ "a": deep(MAX_DEPTH, 0) })), Err(PatchError::TooDeep));
        }
    }
}
