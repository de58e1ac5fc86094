//! Patches against what Kubernetes makes of them (`golden.txt`, made by `tests/controlplane/kubernetes/golden`).

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{StrategicError, apply};
use crate::kinds::{Kinds, StructId};

#[derive(Deserialize)]
struct Case {
    kind: String,
    original: Map<String, Value>,
    patch: Map<String, Value>,
    result: Option<Map<String, Value>>,
    #[serde(default)]
    error: String,
    #[serde(default)]
    code: u16,
}

fn structure(kinds: &Kinds, kind: &str) -> StructId {
    let (version, kind) = kind.split_once(' ').unwrap();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    kinds.kind(group, version, kind).unwrap().structure
}

fn cases() -> impl Iterator<Item = Case> {
    include_str!("golden.txt").lines().map(|line| serde_json::from_str(line).expect(line))
}

#[test]
fn patches_do_what_they_do_in_kubernetes() {
    let kinds = Kinds::builtin();
    let mut differences = Vec::new();
    for Case { kind, original, patch, result, error, code } in cases() {
        let ours = apply(&kinds, structure(&kinds, &kind), original.clone(), patch.clone());
        let same = match (&ours, &result) {
            (Ok(ours), Some(theirs)) => ours == theirs,
            // Of several faults Go tells any one.
            (Err(_), None) if error == "any" => true,
            // Where Go panics there is no message to compare.
            (Err(ours), None) => ours.code() == code && (error == "panic" || ours.to_string() == error),
            // An object that the patch leaves empty is not written down.
            (Ok(ours), None) => error.is_empty() && ours.is_empty(),
            (Err(_), Some(_)) => false,
        };
        if !same {
            let ours = ours.map_or_else(|error| format!("{} {error}", error.code()), |ours| json!(ours).to_string());
            let theirs = result.map_or_else(|| format!("{code} {error}"), |theirs| json!(theirs).to_string());
            differences.push(format!("{}\n  {}\n  ours:   {ours}\n  theirs: {theirs}", json!(original), json!(patch)));
        }
    }
    assert!(differences.is_empty(), "{} differ\n{}", differences.len(), differences.join("\n"));
}

/// Values whose keys are fields of Pods and directives, so that patches go deep.
fn any_value() -> impl Strategy<Value = Value> {
    const KEYS: &[&str] = &[
        "metadata",
        "spec",
        "containers",
        "volumes",
        "name",
        "env",
        "finalizers",
        "labels",
        "$patch",
        "$retainKeys",
        "$setElementOrder/containers",
        "$setElementOrder/finalizers",
        "$deleteFromPrimitiveList/finalizers",
    ];
    let scalar = prop_oneof![
        Just(Value::Null),
        prop::sample::select(&["a", "b", "replace", "delete", "name"]).prop_map(Value::from),
        (0..3).prop_map(Value::from),
    ];
    scalar.prop_recursive(5, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(prop::sample::select(KEYS), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())),
        ]
    })
}

fn any_map() -> impl Strategy<Value = Map<String, Value>> {
    any_value().prop_map(|value| match value {
        Value::Object(map) => map,
        other => Map::from_iter([("spec".to_owned(), other)]),
    })
}

#[test]
fn no_patch_panics() {
    let kinds = Kinds::builtin();
    let pod = structure(&kinds, "v1 Pod");
    proptest!(|(original in any_map(), patch in any_map())| {
        let _ = apply(&kinds, pod, original, patch);
    });
}

#[test]
fn an_empty_patch_changes_nothing() {
    let kinds = Kinds::builtin();
    let pod = structure(&kinds, "v1 Pod");
    proptest!(|(original in any_map())| {
        prop_assert_eq!(apply(&kinds, pod, original.clone(), Map::new()), Ok(original));
    });
}

#[test]
fn a_long_list_is_merged_without_comparing_all_with_all() {
    let kinds = Kinds::builtin();
    let item = |n: usize| json!({"name": format!("n{n}"), "value": "x"});
    let env: Vec<_> = (0..20_000).map(item).collect();
    let order: Vec<_> = (0..20_000).rev().map(|n| json!({"name": format!("n{n}")})).collect();
    let pod = |container: Value| match json!({"spec": {"containers": [container]}}) {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    let original = pod(json!({"name": "c", "env": env}));
    let reversed: Vec<_> = env.iter().rev().collect();
    let patch = pod(json!({"name": "c", "env": reversed, "$setElementOrder/env": order}));
    let merged = apply(&kinds, structure(&kinds, "v1 Pod"), original, patch).unwrap();
    assert_eq!(merged["spec"]["containers"][0]["env"][0]["name"], "n19999");
}

#[test]
fn errors_have_the_codes_of_the_api_server() {
    assert_eq!(StrategicError::RetainKeysFormat.code(), 400);
    assert_eq!(StrategicError::ListOfLists.code(), 422);
    assert_eq!(StrategicError::Other("x".to_owned()).code(), 500);
}
