//! Applying a JSON Patch: all of it, or nothing.

use std::mem::replace;

use serde_json::{Number, Value};

use super::pointer::index;
use super::{JsonPatch, MAX_DEPTH, Operation, OperationFault, PatchError, Pointer, fits};

impl JsonPatch {
    /// Does the operations in order. On an error, which names the operation at fault, `document` is unchanged.
    pub fn apply(&self, document: &mut Value) -> Result<(), PatchError> {
        let mut work = Work { document, undo: Vec::new(), copied: 0 };
        for (index, operation) in self.0.iter().enumerate() {
            if let Err(fault) = work.perform(operation) {
                work.roll_back();
                let (name, path) = (operation.name(), operation.path().clone());
                return Err(PatchError::Operation { index, name, path, fault });
            }
        }
        Ok(())
    }
}

/// A patch half done, and the way back.
struct Work<'d> {
    document: &'d mut Value,
    undo: Vec<Undo>,
    /// Roughly how many bytes `copy` operations have copied.
    copied: usize,
}

enum Undo {
    /// Of an addition.
    Remove(Pointer),
    /// Of a removal.
    Insert(Pointer, Value),
    /// Of a replacement.
    Set(Pointer, Value),
}

impl Work<'_> {
    fn perform(&mut self, operation: &Operation) -> Result<(), OperationFault> {
        match operation {
            Operation::Add { path, value } => self.add(path, kept(value, path)?),
            Operation::Remove { path } => self.remove(path),
            Operation::Replace { path, value } => self.replace(path, kept(value, path)?),
            Operation::Move { from, path } => self.relocate(from, path),
            Operation::Copy { from, path } => self.copy(from, path),
            Operation::Test { path, value } => self.test(path, value),
        }
    }

    fn add(&mut self, path: &Pointer, value: Value) -> Result<(), OperationFault> {
        let Some((parent, segment)) = path.split_last() else {
            self.undo.push(Undo::Set(Pointer::root(), replace(self.document, value)));
            return Ok(());
        };
        let undo = match self.find(&parent)? {
            Value::Object(members) => match members.insert(segment.into_owned(), value) {
                Some(previous) => Undo::Set(path.clone(), previous),
                None => Undo::Remove(path.clone()),
            },
            Value::Array(elements) => {
                let at = if segment == "-" { elements.len() } else { element(&segment)? };
                if at > elements.len() {
                    return Err(OperationFault::Missing(path.clone()));
                }
                elements.insert(at, value);
                Undo::Remove(parent.child(&at.to_string()))
            }
            _ => return Err(OperationFault::Scalar(parent)),
        };
        self.undo.push(undo);
        Ok(())
    }

    fn remove(&mut self, path: &Pointer) -> Result<(), OperationFault> {
        let (parent, segment) = path.split_last().ok_or(OperationFault::Root)?;
        let removed = match self.find(&parent)? {
            Value::Object(members) => members.remove(&*segment),
            Value::Array(elements) => {
                let at = element(&segment)?;
                (at < elements.len()).then(|| elements.remove(at))
            }
            _ => return Err(OperationFault::Scalar(parent)),
        };
        let removed = removed.ok_or_else(|| OperationFault::Missing(path.clone()))?;
        self.undo.push(Undo::Insert(path.clone(), removed));
        Ok(())
    }

    fn replace(&mut self, path: &Pointer, value: Value) -> Result<(), OperationFault> {
        let previous = replace(self.find(path)?, value);
        self.undo.push(Undo::Set(path.clone(), previous));
        Ok(())
    }

    fn relocate(&mut self, from: &Pointer, path: &Pointer) -> Result<(), OperationFault> {
        if path.is_inside(from) {
            return Err(OperationFault::IntoItself);
        }
        let value = self.find(from)?;
        if path == from {
            return Ok(());
        }
        let value = kept(value, path)?;
        self.remove(from)?;
        self.add(path, value)
    }

    fn copy(&mut self, from: &Pointer, path: &Pointer) -> Result<(), OperationFault> {
        let value = kept(self.find(from)?, path)?;
        self.copied = self.copied.saturating_add(size(&value));
        if self.copied > COPIED_MAX {
            return Err(OperationFault::CopiesTooMuch);
        }
        self.add(path, value)
    }

    fn test(&mut self, path: &Pointer, value: &Value) -> Result<(), OperationFault> {
        let found = self.find(path)?;
        if !fits(value, MAX_DEPTH) {
            Err(OperationFault::TooDeep)
        } else if equal(found, value) {
            Ok(())
        } else {
            Err(OperationFault::TestFailed)
        }
    }

    fn find(&mut self, path: &Pointer) -> Result<&mut Value, OperationFault> {
        let mut value = &mut *self.document;
        for (depth, segment) in path.segments().enumerate() {
            let inner = match value {
                Value::Object(members) => members.get_mut(&*segment),
                Value::Array(elements) => elements.get_mut(element(&segment)?),
                _ => return Err(OperationFault::Scalar(path.prefix(depth))),
            };
            value = inner.ok_or_else(|| OperationFault::Missing(path.prefix(depth + 1)))?;
        }
        Ok(value)
    }

    /// Takes the steps back, the last one first; each meets the document as its step left it.
    fn roll_back(&mut self) {
        while let Some(step) = self.undo.pop() {
            let undone = match step {
                Undo::Remove(path) => self.remove(&path),
                Undo::Insert(path, value) => self.add(&path, value),
                Undo::Set(path, value) => self.replace(&path, value),
            };
            debug_assert_eq!(undone, Ok(()), "the inverse of a step that was done can be done");
            self.undo.pop();
        }
    }
}

fn element(segment: &str) -> Result<usize, OperationFault> {
    // `-` is the element after the last, which only an addition can have.
    index(segment).ok_or_else(|| OperationFault::Index(segment.to_owned()))
}

/// A copy of `value` to be put at `path`.
fn kept(value: &Value, path: &Pointer) -> Result<Value, OperationFault> {
    match MAX_DEPTH.checked_sub(path.depth()) {
        Some(levels) if fits(value, levels) => Ok(value.clone()),
        _ => Err(OperationFault::TooDeep),
    }
}

/// Equality as RFC 6902 wants it for `test`: numbers are equal when their values are.
fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || equal_numbers(one, other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, one)| other.get(key).is_some_and(|other| equal(one, other)))
        }
        (one, other) => one == other,
    }
}

fn equal_numbers(one: &Number, other: &Number) -> bool {
    whole(one).is_some_and(|one| whole(other) == Some(one))
}

/// The number as an integer, if it is one; exact, as no double above 2^127 equals an integer that JSON text holds.
fn whole(number: &Number) -> Option<i128> {
    if let Some(integer) = number.as_i64() {
        return Some(integer.into());
    }
    if let Some(integer) = number.as_u64() {
        return Some(integer.into());
    }
    let double = number.as_f64()?;
    (double.fract() == 0.0 && double.abs() < 1e38).then_some(double as i128)
}

/// Roughly how many bytes a value is as text.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(elements) => elements.iter().fold(2, |sum, element| sum + size(element) + 1),
        Value::Object(members) => members.iter().fold(2, |sum, (key, member)| sum + key.len() + 4 + size(member)),
        _ => 8,
    }
}

/// What the API server allows a patch to copy: the size of the largest request body.
const COPIED_MAX: usize = 3 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patch(operations: Value) -> JsonPatch {
        serde_json::from_value(operations).unwrap()
    }

    fn apply(mut document: Value, operations: Value) -> Result<Value, OperationFault> {
        let before = document.clone();
        match patch(operations).apply(&mut document) {
            Ok(()) => Ok(document),
            Err(PatchError::Operation { fault, .. }) => {
                assert_eq!(document, before, "a failed patch changes nothing");
                Err(fault)
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn at(text: &str) -> Pointer {
        Pointer::parse(text).unwrap()
    }

    #[test]
    fn additions_set_members_and_insert_elements() {
        for (document, operation, expected) in [
            (json!({}), json!({ "op": "add", "path": "/a", "value": 1 }), json!({ "a": 1 })),
            (json!({ "a": 2 }), json!({ "op": "add", "path": "/a", "value": null }), json!({ "a": null })),
            (json!({ "a": 2 }), json!({ "op": "add", "path": "", "value": [] }), json!([])),
            (json!({}), json!({ "op": "add", "path": "/", "value": 1 }), json!({ "": 1 })),
            (json!({}), json!({ "op": "add", "path": "/-", "value": 1 }), json!({ "-": 1 })),
            (json!({ "0": 1 }), json!({ "op": "add", "path": "/01", "value": 1 }), json!({ "0": 1, "01": 1 })),
            (json!([1, 2]), json!({ "op": "add", "path": "/0", "value": 0 }), json!([0, 1, 2])),
            (json!([1, 2]), json!({ "op": "add", "path": "/1", "value": 0 }), json!([1, 0, 2])),
            (json!([1, 2]), json!({ "op": "add", "path": "/2", "value": 0 }), json!([1, 2, 0])),
            (json!([1, 2]), json!({ "op": "add", "path": "/-", "value": [3] }), json!([1, 2, [3]])),
        ] {
            assert_eq!(apply(document, json!([operation])), Ok(expected), "{operation}");
        }
    }

    #[test]
    fn the_other_operations_do_what_they_are_named_for() {
        let document = json!({ "a": { "b": [1, 2, 3] }, "c": "x" });
        for (operation, expected) in [
            (json!({ "op": "remove", "path": "/a" }), json!({ "c": "x" })),
            (json!({ "op": "remove", "path": "/a/b/1" }), json!({ "a": { "b": [1, 3] }, "c": "x" })),
            (json!({ "op": "replace", "path": "/c", "value": {} }), json!({ "a": { "b": [1, 2, 3] }, "c": {} })),
            (json!({ "op": "replace", "path": "", "value": 7 }), json!(7)),
            (json!({ "op": "move", "from": "/c", "path": "/a/b" }), json!({ "a": { "b": "x" } })),
            (json!({ "op": "move", "from": "/a/b/0", "path": "/a/b/2" }), json!({ "a": { "b": [2, 3, 1] }, "c": "x" })),
            (json!({ "op": "move", "from": "/a/b", "path": "" }), json!([1, 2, 3])),
            (json!({ "op": "move", "from": "/c", "path": "/c" }), document.clone()),
            (
                json!({ "op": "copy", "from": "/c", "path": "/a/b/-" }),
                json!({ "a": { "b": [1, 2, 3, "x"] }, "c": "x" }),
            ),
            (json!({ "op": "copy", "from": "", "path": "/c" }), json!({ "a": { "b": [1, 2, 3] }, "c": document })),
            (json!({ "op": "test", "path": "/a", "value": { "b": [1, 2.0, 3] } }), document.clone()),
        ] {
            assert_eq!(apply(document.clone(), json!([operation])), Ok(expected), "{operation}");
        }
    }

    #[test]
    fn operations_that_cannot_be_done_say_why() {
        let document = json!({ "a": { "b": [1, 2, 3] }, "c": "x", "n": null });
        let missing = |text: &str| OperationFault::Missing(at(text));
        let scalar = |text: &str| OperationFault::Scalar(at(text));
        let no_index = |text: &str| OperationFault::Index(text.to_owned());
        for (operation, fault) in [
            (json!({ "op": "add", "path": "/x/y/z", "value": 1 }), missing("/x")),
            (json!({ "op": "add", "path": "/c/y", "value": 1 }), scalar("/c")),
            (json!({ "op": "add", "path": "/n/y", "value": 1 }), scalar("/n")),
            (json!({ "op": "add", "path": "/a/b/4", "value": 1 }), missing("/a/b/4")),
            (json!({ "op": "add", "path": "/a/b/01", "value": 1 }), no_index("01")),
            (json!({ "op": "add", "path": "/a/b/-1", "value": 1 }), no_index("-1")),
            (json!({ "op": "add", "path": "/a/b/-/x", "value": 1 }), no_index("-")),
            (json!({ "op": "add", "path": "/a/b/1e0", "value": 1 }), no_index("1e0")),
            (json!({ "op": "add", "path": "/a/b/18446744073709551616", "value": 1 }), no_index("18446744073709551616")),
            (json!({ "op": "remove", "path": "/x" }), missing("/x")),
            (json!({ "op": "remove", "path": "/a/b/3" }), missing("/a/b/3")),
            (json!({ "op": "remove", "path": "/a/b/-" }), no_index("-")),
            (json!({ "op": "remove", "path": "" }), OperationFault::Root),
            (json!({ "op": "remove", "path": "/c/d" }), scalar("/c")),
            (json!({ "op": "replace", "path": "/x", "value": 1 }), missing("/x")),
            (json!({ "op": "replace", "path": "/a/b/3", "value": 1 }), missing("/a/b/3")),
            (json!({ "op": "move", "from": "/x", "path": "/y" }), missing("/x")),
            (json!({ "op": "move", "from": "/x", "path": "/x" }), missing("/x")),
            (json!({ "op": "move", "from": "/a", "path": "/a/b" }), OperationFault::IntoItself),
            (json!({ "op": "move", "from": "", "path": "/a" }), OperationFault::IntoItself),
            (json!({ "op": "move", "from": "/a/b/0", "path": "/a/b/3" }), missing("/a/b/3")),
            (json!({ "op": "move", "from": "/c", "path": "/x/y" }), missing("/x")),
            (json!({ "op": "copy", "from": "/x", "path": "/y" }), missing("/x")),
            (json!({ "op": "test", "path": "/x", "value": null }), missing("/x")),
            (json!({ "op": "test", "path": "/n", "value": 0 }), OperationFault::TestFailed),
            (json!({ "op": "test", "path": "/c", "value": "X" }), OperationFault::TestFailed),
            (json!({ "op": "test", "path": "/a/b", "value": [1, 2] }), OperationFault::TestFailed),
        ] {
            assert_eq!(apply(document.clone(), json!([operation])), Err(fault), "{operation}");
        }
    }

    #[test]
    fn an_error_undoes_every_step_and_names_the_operation() {
        let document = json!({ "a": [1, 2], "b": { "c": 1 }, "d": "x" });
        let steps = json!([
            { "op": "add", "path": "/a/-", "value": 3 },
            { "op": "add", "path": "/a/0", "value": 0 },
            { "op": "remove", "path": "/a/1" },
            { "op": "add", "path": "/b/c", "value": 2 },
            { "op": "add", "path": "/b/e", "value": 2 },
            { "op": "move", "from": "/b", "path": "/d" },
            { "op": "copy", "from": "/d", "path": "/a/1" },
            { "op": "replace", "path": "", "value": {} },
            { "op": "add", "path": "", "value": [] },
            { "op": "test", "path": "", "value": {} },
        ]);
        let mut changed = document.clone();
        let error = patch(steps).apply(&mut changed).unwrap_err();
        assert_eq!(changed, document);
        assert_eq!(error.to_string(), "operation 9 (test \"\"): the value differs");
    }

    #[test]
    fn numbers_are_equal_by_value() {
        for (one, other, same) in [
            ("1", "1.0", true),
            ("-1", "-1.0e0", true),
            ("0", "-0.0", true),
            ("9007199254740993", "9007199254740992.0", false),
            ("18446744073709551615", "18446744073709551616.0", false),
            ("18446744073709551615", "-1", false),
            ("1e300", "10e299", true),
            ("1.5", "1", false),
        ] {
            let value = |text| serde_json::from_str::<Value>(text).unwrap();
            assert_eq!(equal(&value(one), &value(other)), same, "{one} {other}");
            assert_eq!(equal(&value(other), &value(one)), same, "{other} {one}");
        }
    }

    #[test]
    fn copies_cannot_blow_up_the_document() {
        let doubling: Vec<Value> = (0..64).map(|_| json!({ "op": "copy", "from": "/a", "path": "/a/-" })).collect();
        let document = json!({ "a": ["x".repeat(1024)] });
        assert_eq!(apply(document, doubling.into()), Err(OperationFault::CopiesTooMuch));
    }

    #[test]
    fn values_cannot_be_nested_without_end() {
        let deep = |levels: usize| (0..levels).fold(json!(0), |inner, _| json!([inner]));
        let add = |value: Value| json!([{ "op": "add", "path": "/a", "value": value }]);
        assert!(apply(json!({}), add(deep(MAX_DEPTH - 1))).is_ok());
        assert_eq!(apply(json!({}), add(deep(MAX_DEPTH))), Err(OperationFault::TooDeep));
        let test = json!([{ "op": "test", "path": "", "value": deep(MAX_DEPTH + 1) }]);
        assert_eq!(apply(json!({}), test), Err(OperationFault::TooDeep));
        let deeper: Vec<Value> =
            (1..200).map(|depth| json!({ "op": "add", "path": "/0".repeat(depth), "value": [] })).collect();
        assert_eq!(apply(json!([]), deeper.into()), Err(OperationFault::TooDeep));
    }
}
