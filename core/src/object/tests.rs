use super::*;
use k8s_openapi::api::core::v1::Pod;
use proptest::prelude::*;
use serde_json::json;

fn parse(text: &str) -> Object {
    Object::parse(text, Trim::ManagedFields).unwrap()
}

#[test]
fn the_header_is_at_hand_and_the_text_compact() {
    let object = parse(
        r#" { "kind" : "Pod", "apiVersion": "v1", "metadata": { "name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "7",
            "generation": 3, "labels": {"b": "2", "a": "1"}, "annotations": {"x": "y", "n": null}, "finalizers": ["f"],
            "deletionTimestamp": "2026-01-02T03:04:05Z",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "o"}, 3]}, "spec": { } } "#,
    );
    assert!(object.json().starts_with(r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"ns","#));
    assert!(object.json().ends_with(r#"},3]},"spec":{}}"#), "{}", object.json());
    assert_eq!((object.api_version(), object.kind(), object.name()), ("v1", "Pod", "a"));
    assert_eq!((object.namespace(), object.uid(), object.resource_version()), (Some("ns"), Some("u"), Some("7")));
    assert_eq!((object.generation(), object.is_deleting(), object.finalizers()), (Some(3), true, vec!["f".to_owned()]));
    assert_eq!(object.labels().collect::<Vec<_>>(), [("a", "1"), ("b", "2")]);
    assert_eq!((object.label("b"), object.label("c")), (Some("2"), None));
    assert_eq!(object.annotations(), [("x".to_owned(), "y".to_owned())].into());
    assert_eq!(object.owner_references().into_iter().map(|owner| owner.uid).collect::<Vec<_>>(), ["o"]);
    assert_eq!((object.key().to_string(), format!("{object:?}")), ("ns/a".to_owned(), "Pod ns/a@7".to_owned()));
}

#[test]
fn managed_fields_go_wherever_they_stand_and_stay_when_asked_for() {
    for (text, trimmed) in [
        (r#"{"metadata":{"managedFields":[{}],"name":"a"}}"#, r#"{"metadata":{"name":"a"}}"#),
        (r#"{"metadata":{"name":"a","managedFields":[{}]}}"#, r#"{"metadata":{"name":"a"}}"#),
        (r#"{"metadata":{"name":"a","managedFields":null,"uid":"u"}}"#, r#"{"metadata":{"name":"a","uid":"u"}}"#),
        (r#"{"metadata":{"name":"a"},"managedFields":1}"#, r#"{"metadata":{"name":"a"},"managedFields":1}"#),
    ] {
        assert_eq!(parse(text).json(), trimmed);
        assert_eq!(Object::parse(text, Trim::Nothing).unwrap().json(), text);
    }
    let late = parse(r#"{"metadata":{"managedFields":[{"a":"é"}],"name":"n","uid":"u"},"kind":"K"}"#);
    assert_eq!((late.name(), late.uid(), late.kind()), ("n", Some("u"), "K"));
}

#[test]
fn escapes_and_doubled_members_read_as_json_says() {
    let text = r#"{"kind":"\u004b","metadata":{"name":"x","n\u0061me":"\u0061-é","labels":{"k\u0065y":"old","key":"v\"","a":"1"}}}"#;
    let object = parse(text);
    assert_eq!(
        (object.kind(), object.name(), object.label("key"), object.label("a")),
        ("K", "a-é", Some("v\""), Some("1"))
    );
    assert_eq!(object.labels().len(), 2);
    assert_eq!(object.json(), text);
}

#[test]
fn an_item_of_a_list_gets_the_type_it_does_not_say() {
    let types = TypeMeta::new("apps/v1", "Deployment");
    let read = |text: &str| {
        let object = Object::parse_as(text, Trim::ManagedFields, &types).unwrap();
        assert_eq!(object.name(), "a");
        (object.json().to_owned(), object.api_version().to_owned(), object.kind().to_owned())
    };
    let whole = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"}}"#;
    let parts = ("apps/v1".to_owned(), "Deployment".to_owned());
    for text in [r#"{"metadata":{"name":"a"}}"#, r#"{"apiVersion":null,"kind":"","metadata":{"name":"a"}}"#] {
        assert_eq!(read(text), (whole.to_owned(), parts.0.clone(), parts.1.clone()), "{text}");
    }
    let (text, api_version, kind) = read(r#"{"kind":"Other","metadata":{"name":"a"}}"#);
    assert_eq!(text, r#"{"apiVersion":"apps/v1","kind":"Other","metadata":{"name":"a"}}"#);
    assert_eq!((&*api_version, &*kind), ("apps/v1", "Other"));
}

#[test]
fn what_is_no_object_is_refused_by_name() {
    let fault = |text: &str| Object::parse(text, Trim::ManagedFields).unwrap_err().to_string();
    assert_eq!(fault("[1]"), "object: is no object");
    assert_eq!(fault(r#"{"kind":"Pod","metadata":{"namespace":"ns"}}"#), "Pod: has no metadata.name");
    assert_eq!(fault(r#"{"kind":"Pod","metadata":{"name":3}}"#), "Pod: has no metadata.name");
    assert_eq!(fault(r#"{"kind":"Pod"}"#), "Pod: has no metadata.name");
    assert_eq!(fault(r#"{"kind":"Pod","metadata":{"name":"\u0000"}}"#), "Pod \0: has a name that no object can have");
    assert_eq!(
        fault(r#"{"kind":"Pod","metadata":{"name":"a","namespace":"ns","#),
        "Pod ns/a: the text ends in the middle"
    );
    assert_eq!(fault(r#"{"metadata":{"name":"a"}} x"#), "object a: the text is no JSON at byte 26");
    let deep = format!(r#"{{"metadata":{{"name":"a"}},"x":{}1{}}}"#, "[".repeat(200), "]".repeat(200));
    assert!(fault(&deep).starts_with("object a: nests deeper than 128 levels"));
}

#[test]
fn a_header_of_the_wrong_shape_is_absent_and_shows_when_decoded() {
    let object = parse(
        r#"{"metadata":{"name":"a","labels":[1],"uid":3,"generation":"x","annotations":7,"ownerReferences":{}}}"#,
    );
    assert_eq!((object.labels().len(), object.uid(), object.generation()), (0, None, None));
    assert!(object.annotations().is_empty() && object.owner_references().is_empty());
    let error = object.decode::<Pod>().unwrap_err();
    assert_eq!((&*error.object, &*error.path), ("object a", "metadata.labels"));
}

#[test]
fn a_version_is_the_same_by_uid_and_version_or_else_by_text() {
    let one = parse(r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"1"},"x":1}"#);
    let other = parse(r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"1"},"x":2}"#);
    let replaced = parse(r#"{"metadata":{"name":"a","uid":"v","resourceVersion":"1"}}"#);
    assert!(one.is_same_version(&other) && !one.is_same_version(&replaced));
    let (bare, changed) = (parse(r#"{"metadata":{"name":"a"}}"#), parse(r#"{"metadata":{"name":"a"},"x":2}"#));
    assert!(bare.is_same_version(&bare) && !bare.is_same_version(&changed));
}

fn member_names() -> impl Strategy<Value = String> {
    prop_oneof!["[ab]", "[ab]\\.[ab]", Just("0".to_owned()), Just("1".to_owned())]
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-c\\\\\"\u{e9}\n]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(member_names(), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn every_object_survives(mut value in values(), pretty in any::<bool>()) {
        if !value.is_object() {
            value = json!({ "a": value });
        }
        value["metadata"] = json!({"managedFields": value.clone(), "name": "\u{e9}\"", "labels": {"a": "b"}});
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        let whole = Object::parse(&text, Trim::Nothing).unwrap();
        prop_assert_eq!(whole.json(), serde_json::to_string(&value).unwrap());
        value["metadata"].as_object_mut().unwrap().remove("managedFields");
        let object = Object::parse(&text, Trim::ManagedFields).unwrap();
        prop_assert_eq!(object.json(), serde_json::to_string(&value).unwrap());
        prop_assert_eq!((object.name(), object.label("a")), ("\u{e9}\"", Some("b")));
        let types = TypeMeta::new("v1", "K");
        value["apiVersion"] = json!("v1");
        value["kind"] = json!("K");
        let typed = Object::parse_as(&text, Trim::ManagedFields, &types).unwrap();
        prop_assert_eq!(serde_json::from_str::<Value>(typed.json()).unwrap(), value);
        prop_assert_eq!((typed.kind(), typed.api_version()), ("K", "v1"));
    }

    #[test]
    fn fields_are_found_as_in_the_decoded_value(value in values(), path in "[ab01](\\.[ab01]){0,3}", wanted in "[a-c0-9]{0,1}") {
        let value = json!({"metadata": {"name": "n"}, "a": value});
        let object = parse(&value.to_string());
        let selector = FieldSelector::new().eq(path, wanted).unwrap();
        prop_assert_eq!(object.matches_fields(&selector), selector.matches(&value));
    }
}
