//! Laws of patches, tried on random documents.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::{Arrays, JsonPatch, Operation, Pointer, merge_diff, merge_patch};

/// Documents of few keys, so that two of them meet in many places.
fn document(null: bool) -> impl Strategy<Value = Value> {
    let null = if null { Value::Null } else { json!(0) };
    let leaf =
        select(vec![null, json!(true), json!(1), json!(1.0), json!(-2), json!(""), json!("x"), json!({}), json!([])]);
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::Array),
            btree_map(key(), inner, 0..4).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    select(vec!["a", "b", "0", "", "a/b", "~1", "é"]).prop_map(str::to_owned)
}

fn pointer() -> impl Strategy<Value = Pointer> {
    let segment = prop_oneof![key(), select(vec!["-", "1", "01"]).prop_map(str::to_owned)];
    vec(segment, 0..3).prop_map(Pointer::from_iter)
}

fn operation() -> impl Strategy<Value = Operation> {
    let value = || document(true);
    prop_oneof![
        (pointer(), value()).prop_map(|(path, value)| Operation::Add { path, value }),
        pointer().prop_map(|path| Operation::Remove { path }),
        (pointer(), value()).prop_map(|(path, value)| Operation::Replace { path, value }),
        (pointer(), pointer()).prop_map(|(from, path)| Operation::Move { from, path }),
        (pointer(), pointer()).prop_map(|(from, path)| Operation::Copy { from, path }),
        (pointer(), value()).prop_map(|(path, value)| Operation::Test { path, value }),
    ]
}

fn object(uid: u8, spec: Value, status: Value) -> Value {
    json!({ "metadata": { "uid": format!("u{uid}"), "resourceVersion": "1" }, "spec": spec, "status": status })
}

/// Whether `second` has an object somewhere `first` has something else.
fn replaces_with_object(first: &Value, second: &Value) -> bool {
    match (first, second) {
        (Value::Object(first), Value::Object(second)) => {
            second.iter().any(|(key, second)| first.get(key).is_some_and(|first| replaces_with_object(first, second)))
        }
        (_, second) => second.is_object(),
    }
}

#[test]
fn merging_is_not_associative_where_removals_are_forgotten_or_objects_replace() {
    let merged = |target: &Value, patch: &Value| {
        let mut target = target.clone();
        merge_patch(&mut target, patch).unwrap();
        target
    };
    for (target, first, second) in [
        (json!({ "a": 0 }), json!({ "a": 1 }), json!({ "a": null })),
        (json!({ "a": { "x": 1 } }), json!({ "a": null }), json!({ "a": { "y": 1 } })),
    ] {
        let (one_by_one, at_once) =
            (merged(&merged(&target, &first), &second), merged(&target, &merged(&first, &second)));
        assert_ne!(one_by_one, at_once, "{target} {first} {second}");
    }
}

proptest! {
    #[test]
    fn applying_the_difference_gives_the_other_document(old in document(true), new in document(true)) {
        let patch = JsonPatch::diff(&old, &new).unwrap();
        prop_assert_eq!(patch.is_empty(), old == new);
        let mut document = old;
        patch.apply(&mut document).unwrap();
        prop_assert_eq!(document, new);
    }

    #[test]
    fn applying_the_difference_by_element_gives_the_other_document(old in document(true), new in document(true)) {
        let patch = JsonPatch::diff_with(&old, &new, Arrays::ByElement).unwrap();
        prop_assert_eq!(patch.is_empty(), old == new);
        let mut document = old;
        patch.apply(&mut document).unwrap();
        prop_assert_eq!(document, new);
    }

    #[test]
    fn a_mutation_of_all_that_was_received_gives_what_the_handler_made(
        received in document(true), after in document(true),
    ) {
        let mut document = received.clone();
        JsonPatch::mutation(&received, &received, &after).unwrap().apply(&mut document).unwrap();
        prop_assert_eq!(document, after);
    }

    #[test]
    fn a_mutation_is_empty_without_a_change_and_any_other_is_done_or_refused(
        received in document(true), before in document(true), after in document(true),
    ) {
        prop_assert!(JsonPatch::mutation(&received, &before, &before).unwrap().is_empty());
        if let Ok(patch) = JsonPatch::mutation(&received, &before, &after) {
            prop_assert!(patch.apply(&mut received.clone()).is_ok());
        }
    }

    #[test]
    fn merging_the_difference_gives_the_other_document(old in document(false), new in document(false)) {
        let mut document = old.clone();
        merge_patch(&mut document, &merge_diff(&old, &new).unwrap()).unwrap();
        prop_assert_eq!(document, new);
    }

    /// Two merge patches are one, the second merged into the first, unless the second removes anything, which is then
    /// forgotten, or has an object where the first has none: the first replaces what the second merges into. Those of
    /// `kubectl` and the API server are no better.
    #[test]
    fn merging_is_associative_without_removals_and_objects_in_place_of_others(
        target in document(true), first in document(true), second in document(false),
    ) {
        prop_assume!(!replaces_with_object(&first, &second));
        let merged = |mut target: Value, patch: &Value| {
            merge_patch(&mut target, patch).unwrap();
            target
        };
        let both = merged(first.clone(), &second);
        prop_assert_eq!(merged(merged(target.clone(), &first), &second), merged(target, &both));
    }

    #[test]
    fn a_patch_is_done_whole_or_not_at_all(
        before in document(true),
        operations in vec(operation(), 0..6),
    ) {
        // Operation by operation, each on a copy: what a patch must amount to.
        let single = |document: &Value, operation: &Operation| {
            let mut copy = document.clone();
            JsonPatch::from(vec![operation.clone()]).apply(&mut copy).ok().map(|()| copy)
        };
        let expected = operations.iter().try_fold(before.clone(), |document, operation| single(&document, operation));
        let mut document = before.clone();
        let result = JsonPatch::from(operations).apply(&mut document);
        prop_assert_eq!(result.is_ok(), expected.is_some());
        prop_assert_eq!(document, expected.unwrap_or(before));
    }

    #[test]
    fn a_patch_survives_its_text(operations in vec(operation(), 0..4)) {
        let patch = JsonPatch::from(operations);
        let text = serde_json::to_string(&patch).unwrap();
        prop_assert_eq!(&serde_json::from_str::<JsonPatch>(&text).unwrap(), &patch);
        prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), Value::from(patch));
    }

    #[test]
    fn a_guarded_change_applies_to_its_object_only(
        spec in document(true), status in document(true), new_spec in document(true), new_status in document(true),
    ) {
        let (old, new) = (object(1, spec, status), object(1, new_spec, new_status));
        let Some(patch) = JsonPatch::guarded(&old, &new).unwrap() else {
            prop_assert_eq!(old, new);
            return Ok(());
        };
        let mut document = old.clone();
        patch.apply(&mut document).unwrap();
        prop_assert_eq!(&document, &new);
        let mut other = old.clone();
        other["metadata"]["uid"] = json!("u2");
        prop_assert!(patch.apply(&mut other).is_err());

        let (object, status) = JsonPatch::guarded_parts(&old, &new).unwrap();
        let mut document = old;
        object.into_iter().chain(status).for_each(|part| part.apply(&mut document).unwrap());
        prop_assert_eq!(document, new);
    }

    #[test]
    fn any_text_is_a_pointer_or_an_error(text in "[/~01a-é]{0,12}") {
        if let Ok(pointer) = Pointer::parse(text.as_str()) {
            prop_assert_eq!(Pointer::from_iter(pointer.segments()), pointer);
        }
    }
}
