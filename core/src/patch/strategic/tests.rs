//! Merging by a small schema. The in-memory API server compares the merging of built-in kinds with that of Kubernetes.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{MergeSchema, MergeStrategy, Merging, StrategicError, strategic_merge};
use crate::patch::MAX_DEPTH;

/// A type with `named`, a list of itself by name, `plain`, a list of strings, `whole`, which is replaced, and `inner`.
#[derive(Clone)]
struct Sample;

impl MergeSchema for Sample {
    fn object(&self, name: &str) -> Result<(Self, MergeStrategy), StrategicError> {
        let merging = if name == "whole" { Merging::Replace } else { Merging::Unsaid };
        Ok((Self, MergeStrategy { merging, key: None }))
    }

    fn list(&self, name: &str) -> Result<(Self, MergeStrategy), StrategicError> {
        let strategy = match name {
            "named" => MergeStrategy { merging: Merging::Merge, key: Some("name".into()) },
            "plain" => MergeStrategy { merging: Merging::Merge, key: None },
            "whole" => MergeStrategy::default(),
            _ => return Err(StrategicError::Other(format!("no list {name}"))),
        };
        Ok((Self, strategy))
    }

    fn kind(&self) -> &str {
        "sample"
    }
}

fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        other => Map::from_iter([("inner".to_owned(), other)]),
    }
}

fn merged(original: Value, patch: Value) -> Result<Value, StrategicError> {
    strategic_merge(&Sample, fields(original), fields(patch)).map(Value::Object)
}

#[test]
fn fields_are_merged_as_the_schema_says() {
    for (original, patch, result) in [
        (
            json!({ "named": [{ "name": "a", "x": 1 }, { "name": "b" }] }),
            json!({ "named": [{ "name": "b", "y": 2 }, { "name": "c" }] }),
            json!({ "named": [{ "name": "a", "x": 1 }, { "name": "b", "y": 2 }, { "name": "c" }] }),
        ),
        (json!({ "plain": ["a", "b"] }), json!({ "plain": ["c", "a"] }), json!({ "plain": ["c", "a", "b"] })),
        (json!({ "plain": ["a", "b"] }), json!({ "$deleteFromPrimitiveList/plain": ["a"] }), json!({ "plain": ["b"] })),
        (
            json!({ "whole": { "a": 1 }, "inner": { "a": 1 } }),
            json!({ "whole": { "b": 2 }, "inner": { "b": 2, "a": null } }),
            json!({ "whole": { "b": 2 }, "inner": { "b": 2 } }),
        ),
        (json!({ "whole": [1, 2] }), json!({ "whole": [3] }), json!({ "whole": [3] })),
        (
            json!({ "inner": { "a": 1 } }),
            json!({ "inner": { "$patch": "replace", "b": 2 } }),
            json!({ "inner": { "b": 2 } }),
        ),
        (json!({ "a": 1, "b": 2 }), json!({ "$retainKeys": ["b"] }), json!({ "b": 2 })),
    ] {
        assert_eq!(merged(original, patch.clone()), Ok(result), "{patch}");
    }
}

#[test]
fn what_the_schema_refuses_is_an_error() {
    let list = json!({ "odd": [1] });
    assert_eq!(merged(list.clone(), list), Err(StrategicError::Other("no list odd".to_owned())));
    let keyless = json!({ "plain": [{ "a": 1 }] });
    let error = merged(keyless.clone(), keyless).unwrap_err();
    assert_eq!(error.to_string(), "cannot merge lists without merge key for sample");
    let deep = (0..=MAX_DEPTH).fold(json!(0), |inner, _| json!({ "inner": inner }));
    assert_eq!(merged(deep.clone(), json!({})), Err(StrategicError::TooDeep));
    assert_eq!(merged(json!({}), deep), Err(StrategicError::TooDeep));
}

fn document() -> impl Strategy<Value = Value> {
    const KEYS: &[&str] = &[
        "named",
        "plain",
        "whole",
        "inner",
        "name",
        "$patch",
        "$retainKeys",
        "$setElementOrder/named",
        "$setElementOrder/plain",
        "$setElementOrder",
        "$deleteFromPrimitiveList/plain",
        "$deleteFromPrimitiveList",
    ];
    let words = prop::sample::select(&["a", "b", "replace", "delete", "merge", "name"]).prop_map(Value::from);
    let scalar = prop_oneof![Just(Value::Null), words, (0..3).prop_map(Value::from)];
    scalar.prop_recursive(5, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(prop::sample::select(KEYS), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_patch_is_merged_or_refused(original in document(), patch in document()) {
        let _ = merged(original, patch);
    }

    #[test]
    fn an_empty_patch_merges_to_the_same(original in document()) {
        let original = Value::Object(fields(original));
        prop_assert_eq!(merged(original.clone(), json!({})), Ok(original));
    }
}
