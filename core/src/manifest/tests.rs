use serde_json::{Value, json};

use super::*;
use crate::resource::Resource as _;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

fn objects(text: &str) -> Vec<(String, usize, usize)> {
    let found = parse("f", text.as_bytes()).unwrap_or_else(|error| panic!("{text:?}: {error}"));
    found.into_iter().map(|it| (it.object.name().to_owned(), it.place.document, it.place.line)).collect()
}

fn error(text: &str) -> (usize, usize, ManifestProblem) {
    let error = parse("f", text.as_bytes()).map(|_| format!("{text:?} is read")).unwrap_err();
    (error.document, error.line, error.problem)
}

/// The value of `x` in a document.
fn value(text: &str) -> Value {
    let found = parse("f", format!("apiVersion: v1\nkind: X\nx: {text}\n").as_bytes()).unwrap();
    found[0].object.field("x").unwrap().clone()
}

fn map(name: &str) -> String {
    MAP.replace("name: a", &format!("name: {name}"))
}

#[test]
fn documents_are_told_apart_as_in_yaml_and_empty_ones_passed_over() {
    let (a, b) = (map("a"), map("b"));
    let two = |line| vec![("a".to_owned(), 1, 1), ("b".to_owned(), 2, line)];
    assert_eq!(objects(&format!("{a}---\n{b}")), two(5));
    assert_eq!(objects(&format!("{a}--- # next\n{b}---\n")), two(5));
    assert_eq!(objects(&format!("{a}...\n---\n{b}...\n")), two(6));
    assert_eq!(
        objects(&format!("{a}---\n# only a comment\n\n---\n~\n---\n{b}")),
        vec![("a".into(), 1, 1), ("b".into(), 3, 10)]
    );
    assert_eq!(
        objects(&format!("---\n---\n{a}---\t\n{b}").replace('\n', "\r\n")),
        vec![("a".into(), 1, 3), ("b".into(), 2, 7)]
    );
    assert_eq!(objects(&format!("\u{feff}# hello\n{a}")), vec![("a".into(), 1, 2)]);
    assert_eq!(objects(&format!("%YAML 1.1\n---\n{a}")), vec![("a".into(), 1, 3)]);
    assert_eq!(objects(&format!("{a}---\n{{apiVersion: v1, kind: C, metadata: {{name: b}}}}")), two(5));
    assert_eq!(objects("--- {apiVersion: v1, kind: C, metadata: {name: b}}"), vec![("b".into(), 1, 1)]);
    for text in ["", "\n \n", "# nothing", "---\n---\n", "null", "---\n...\n"] {
        assert!(objects(text).is_empty(), "{text:?}");
    }
}

#[test]
fn what_looks_like_a_mark_within_a_document_is_none() {
    let text = format!("{MAP}data:\n  k: |\n    ---\n    ...\n  ---x: y\n  l: \"a\n    --- b\"\n----: z\n");
    let found = parse("f", text.as_bytes()).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].object.pointer("/data/k"), Some(&json!("---\n...\n")));
    assert_eq!(found[0].object.field("----"), Some(&json!("z")));
}

#[test]
fn json_comes_one_after_the_other_and_may_be_yaml_after_all() {
    let json = |name: &str| json!({"apiVersion": "v1", "kind": "C", "metadata": {"name": name}}).to_string();
    assert_eq!(objects(&format!("{}{}\n\n{}", json("a"), json("b"), json("c"))).len(), 3);
    assert_eq!(objects(&format!("{}\n---\n{}\n", json("a"), json("b"))).len(), 2);
    assert_eq!(objects("{apiVersion: v1, kind: C, metadata: {name: a}} # yaml\n").len(), 1);
    let unclosed = format!("{}\n{{\"apiVersion\": \"v1\"", json("a"));
    assert!(matches!(error(&unclosed), (1, 2, ManifestProblem::Syntax(said)) if said.starts_with("no JSON")));
}

#[test]
fn scalars_mean_what_kubectl_takes_them_for() {
    for (text, expected) in [
        ("yes", json!(true)),
        ("on", json!(true)),
        ("N", json!(false)),
        ("'yes'", json!("yes")),
        ("0644", json!(420)),
        ("0o17", json!(15)),
        ("0x1F", json!(31)),
        ("1_000", json!(1000)),
        ("1e3", json!(1000)),
        ("1.0", json!(1)),
        ("1.5", json!(1.5)),
        ("9223372036854775807", json!(i64::MAX)),
        ("18446744073709551615", json!(u64::MAX)),
        ("2020-01-02", json!("2020-01-02")),
        ("12:30:45", json!("12:30:45")),
        ("~", Value::Null),
        ("!!str 5", json!("5")),
        ("{1: a, true: b}", json!({"1": "a", "true": "b"})),
        ("[&a {b: 1}, *a]", json!([{"b": 1}, {"b": 1}])),
        ("{<<: {a: 1, b: 2}, b: 3}", json!({"a": 1, "b": 3})),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
    assert!(matches!(error(&format!("{MAP}x: .inf\n")).2, ManifestProblem::Syntax(_)));
}

#[test]
fn lists_are_taken_apart() {
    let list = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A, metadata: {name: a}}\n- apiVersion: v1\n  kind: List\n  items: [{apiVersion: v1, kind: B, metadata: {name: b}}]\n";
    assert_eq!(objects(list), vec![("a".into(), 1, 1), ("b".into(), 1, 1)]);
    let typed = "apiVersion: example.com/v1\nkind: WidgetList\nitems: [{metadata: {name: a}}]";
    let found = parse("f", typed.as_bytes()).unwrap();
    assert_eq!((found[0].object.api_version(), found[0].object.kind()), ("example.com/v1", "Widget"));
    assert!(objects("apiVersion: v1\nkind: List\nitems: []").is_empty());
    assert!(objects("apiVersion: v1\nkind: List").is_empty());
    assert_eq!(objects("apiVersion: x/v1\nkind: PriceList\nmetadata: {name: p}\nspec: {}"), vec![("p".into(), 1, 1)]);
    assert_eq!(error("apiVersion: v1\nkind: List\nitems: [3]").2, ManifestProblem::NotAnObject("a number"));
    assert_eq!(error("apiVersion: v1\nkind: List\nitems: [{metadata: {}}]").2, ManifestProblem::MissingKind);
}

#[test]
fn each_fault_says_what_it_is_and_where() {
    use ManifestProblem as Problem;
    assert_eq!(error("kind: A\n"), (1, 1, Problem::MissingApiVersion));
    assert_eq!(error(&format!("{MAP}---\n\napiVersion: v1\n")), (2, 6, Problem::MissingKind));
    assert_eq!(error("apiVersion: v1\nkind: ''"), (1, 1, Problem::MissingKind));
    assert_eq!(error("- apiVersion: v1"), (1, 1, Problem::NotAnObject("a list")));
    assert_eq!(error("just text"), (1, 1, Problem::NotAnObject("a text")));
    assert_eq!(
        error(&format!("{MAP}---\n{MAP}data:\n  k: 1\n  l: 2\n  k: 3\n")),
        (2, 11, Problem::DuplicateKey("k".into()))
    );
    assert_eq!(error("{\"a\": {\"b\": 1,\n\"b\": 2}}"), (1, 2, Problem::DuplicateKey("b".into())));
    assert!(matches!(error(&format!("{MAP}---\na: [1\nb: 2\n")), (2, 5..=7, Problem::Syntax(_))));
    let shown = parse("dir/x.yaml", format!("{MAP}---\nkind: A").as_bytes()).unwrap_err().to_string();
    assert_eq!(shown, "dir/x.yaml: document 2 at line 5: the object has no apiVersion");
    let odd = parse("x", b"a: 1\nb: \xff").unwrap_err();
    assert_eq!((odd.line, odd.problem), (2, Problem::NotUtf8));
}

#[test]
fn one_object_is_asked_for_and_had_or_not() {
    let text = MAP.as_bytes();
    assert_eq!(parse_one("f", text).unwrap().name(), "a");
    assert_eq!(parse_typed::<ConfigMap>("f", text).unwrap().name(), "a");
    let problem = |text: &str| parse_one("f", text.as_bytes()).unwrap_err().problem;
    assert_eq!(problem("# nothing"), ManifestProblem::Empty);
    assert_eq!(problem(&format!("{MAP}---\n{MAP}")), ManifestProblem::Several(2));
    assert_eq!(parse_one("f", b"").unwrap_err().to_string(), "f: there is no object in it");
    let wrong = parse_typed::<Secret>("f", text).unwrap_err();
    assert_eq!(wrong.to_string(), "f: document 1 at line 1: it is a v1 ConfigMap, where a v1 Secret is asked for");
    let misfit = parse_typed::<ConfigMap>("f", format!("{MAP}data: {{k: 3}}\n").as_bytes()).unwrap_err();
    assert!(matches!(&misfit.problem, ManifestProblem::Misfit { path, .. } if &**path == "data.k"), "{misfit}");
}

#[test]
fn a_faulty_document_does_not_hide_the_others() {
    let text = format!("{MAP}---\nkind: A\n---\n{}", map("b"));
    let read: Vec<_> = documents("f", text.as_bytes()).map(|document| document.map(|found| found.len())).collect();
    assert!(matches!(&read[..], [Ok(1), Err(error), Ok(1)] if error.document == 2), "{read:?}");
}

#[test]
fn objects_are_ordered_for_installation_and_the_other_way_for_deletion() {
    let kinds = [
        "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration",
        "example.com/v1 Widget",
        "apps/v1 Deployment",
        "v1 Service",
        "v1 ConfigMap",
        "rbac.authorization.k8s.io/v1 RoleBinding",
        "rbac.authorization.k8s.io/v1 Role",
        "v1 ServiceAccount",
        "apiextensions.k8s.io/v1 CustomResourceDefinition",
        "v1 Namespace",
    ];
    let text: Vec<_> = kinds
        .iter()
        .map(|kind| {
            kind.split_once(' ').map(|(version, kind)| format!("apiVersion: {version}\nkind: {kind}\n")).unwrap()
        })
        .collect();
    let mut objects = parse("f", text.join("---\n").as_bytes()).unwrap();
    let shown = |objects: &[ManifestObject]| -> Vec<String> {
        objects.iter().map(|it| format!("{} {}", it.object.api_version(), it.object.kind())).collect()
    };
    installation_order(&mut objects);
    let mut expected: Vec<_> = kinds.to_vec();
    expected.reverse();
    assert_eq!(shown(&objects), expected);
    deletion_order(&mut objects);
    assert_eq!(shown(&objects), kinds);
}

mod properties {
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    use super::*;

    fn values() -> impl Strategy<Value = Value> {
        let scalar = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[ -~é\n]{0,12}".prop_map(Value::from),
            Just(json!("---\nyes")),
            Just(json!("on")),
        ];
        scalar.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                vec(inner.clone(), 0..4).prop_map(Value::from),
                btree_map("[a-z/.]{1,6}", inner, 0..4)
                    .prop_map(|map| map.into_iter().collect::<serde_json::Map<_, _>>().into()),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_printed_as_json_or_yaml_is_read_back(specs in vec(values(), 0..4)) {
            let objects: Vec<_> = specs
                .into_iter()
                .map(|spec| json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "a"}, "spec": spec}))
                .collect();
            let read = |text: &str| -> Vec<Value> {
                parse("f", text.as_bytes()).unwrap().into_iter().map(|it| it.object.into_value()).collect()
            };
            let json: String = objects.iter().map(Value::to_string).collect();
            prop_assert_eq!(&read(&json), &objects);
            let marked: Vec<_> = objects.iter().map(|object| serde_json::to_string_pretty(object).unwrap()).collect();
            prop_assert_eq!(read(&marked.join("\n---\n")), objects);
        }

        #[test]
        fn no_text_panics_and_lines_lie_within_it(text in "[ a-c:{}\\[\\]\"'|>&*!%#\n\r\t.-]{0,60}") {
            for document in documents("f", text.as_bytes()) {
                if let Err(error) = document {
                    prop_assert!(error.line <= text.matches(['\n', '\r']).count() + 2, "{error} of {text:?}");
                }
            }
        }
    }
}
