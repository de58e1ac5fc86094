use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn shelf() -> Value {
    json!({
        "name": "shelf",
        "books": [
            {"title": "Moby Dick", "price": 9, "sold": true, "tags": ["sea", "whale"]},
            {"title": "Emma", "price": 12, "sold": false},
            {"title": "Ulysses", "price": 7.5, "tags": []},
        ],
        "labels": {"example.com/zone": "a", "k8s-app": "x", "web/html": 15},
        "none": null,
        "empty": [],
    })
}

fn found(path: &str) -> Result<Vec<String>, JsonPathError> {
    let shelf = shelf();
    let path = JsonPath::parse(path)?;
    Ok(path.find(&shelf)?.into_iter().map(printed).collect())
}

#[test]
fn paths_select_what_kubectl_selects() {
    let cases: &[(&str, &[&str])] = &[
        (".name", &["shelf"]),
        ("name", &["shelf"]),
        ("{.name}", &["shelf"]),
        ("{name}", &["shelf"]),
        ("$.name", &["shelf"]),
        ("{ .name }", &["shelf"]),
        (".missing", &[]),
        (".name.deeper", &[]),
        (".none", &["null"]),
        (".none.deeper", &[]),
        (".none[0]", &[]),
        (".books[0].title", &["Moby Dick"]),
        (".books[-1].title", &["Ulysses"]),
        (".books[-3].title", &["Moby Dick"]),
        (".books[].title", &["Moby Dick"]),
        (".books[*].title", &["Moby Dick", "Emma", "Ulysses"]),
        (".books.*.title", &["Moby Dick", "Emma", "Ulysses"]),
        (".books[1:].title", &["Emma", "Ulysses"]),
        (".books[:2].title", &["Moby Dick", "Emma"]),
        (".books[0:-1].title", &["Moby Dick", "Emma"]),
        (".books[-1:].title", &["Ulysses"]),
        (".books[::2].title", &["Moby Dick", "Ulysses"]),
        (".books[0:3:3].title", &["Moby Dick"]),
        (".books[0:0].title", &[]),
        (".books[7:7].title", &[]),
        (".empty[*]", &[]),
        (".books[0,2].title", &["Moby Dick", "Ulysses"]),
        (".books[*]['title', 'price']", &["Moby Dick", "Emma", "Ulysses", "9", "12", "7.5"]),
        (".books[0]['tags']", &[r#"["sea","whale"]"#]),
        (r".labels.example\.com/zone", &["a"]),
        (r".labels['example\.com/zone']", &["a"]),
        (".labels['example.com/zone']", &[]),
        (".labels.k8s-app", &["x"]),
        (".labels.web/html", &["15"]),
        ("..title", &["Moby Dick", "Emma", "Ulysses"]),
        ("...title", &["Moby Dick", "Emma", "Ulysses"]),
        (".books[?(@.title=='Emma')].price", &["12"]),
        (r#".books[?(@.title=="Emma")].price"#, &["12"]),
        (r#".books[?( @.title == "Emma" )].price"#, &["12"]),
        (r#".books[?(.title!="Emma")].title"#, &["Moby Dick", "Ulysses"]),
        (r#".books[?(@.title>"F")].title"#, &["Moby Dick", "Ulysses"]),
        (r#".books[?(@.title=="a ) b")].title"#, &[]),
        (".books[?(@.sold==true)].title", &["Moby Dick"]),
        (".books[?(@.sold)].title", &["Moby Dick", "Emma"]),
        (".books[?(@.tags[0])].title", &["Moby Dick"]),
        (r#"{"a\tb"}"#, &["a\tb"]),
    ];
    for (path, expected) in cases {
        let expected: Vec<_> = expected.iter().map(ToString::to_string).collect();
        assert_eq!(found(path), Ok(expected), "{path}");
    }
}

#[test]
fn what_does_not_fit_the_value_is_an_error() {
    let out = |index, length| JsonPathError::OutOfBounds { index, length };
    let cases = [
        (".books[3]", out(3, 3)),
        (".books[-4]", out(-1, 3)),
        (".books[1:4]", out(3, 3)),
        (".empty[0]", out(0, 0)),
        (".empty[-1]", out(-1, 0)),
        (".books[*].tags[0]", out(0, 0)),
        (".books[2:1]", JsonPathError::EndsBeforeStart { start: 2, end: 1 }),
        (".books[-1:-2]", JsonPathError::EndsBeforeStart { start: 2, end: 1 }),
        (".name[0]", JsonPathError::NotAList { found: "a string" }),
        (".labels[*]", JsonPathError::NotAList { found: "an object" }),
        (".none[?(@.x)]", JsonPathError::NotAList { found: "null" }),
        (".books[:2][?(@.price)]", JsonPathError::NotAList { found: "an object" }),
        (".books[?(@.sold>true)]", JsonPathError::NotComparable { left: "a bool", right: "a bool" }),
        (".books[?(@.price==9)]", JsonPathError::NotComparable { left: "a number", right: "an integer" }),
        (".books[?(@.title==9)]", JsonPathError::NotComparable { left: "a string", right: "an integer" }),
        (".books[?(@.*=='x')]", JsonPathError::SeveralCompared { count: 4 }),
    ];
    for (path, error) in cases {
        assert_eq!(found(path), Err(error), "{path}");
    }
}

#[test]
fn what_is_no_expression_is_an_error_at_its_place() {
    use SyntaxFault::*;
    let cases = [
        ("{.a", 3, Unterminated("the expression")),
        ("{.a}{.b}", 3, Template),
        ("{.a} text", 9, Unterminated("the expression")),
        (".a}", 2, Template),
        (".a[0", 2, Unterminated("the index")),
        (".a[x]", 3, Index("x".into())),
        (".a[-]", 3, Index("-".into())),
        (".a[1:2:3:4]", 3, Index("1:2:3:4".into())),
        (".a[99999999999999999999]", 3, Index("99999999999999999999".into())),
        (r#".a["b"]"#, 3, Index(r#""b""#.into())),
        (".a[0,y]", 5, Index("y".into())),
        (".a[0:1:0]", 3, Step),
        (".a[0:1:-1]", 3, Step),
        (".a[?(@.b==1]", 2, Unterminated("the filter")),
        (".a[?(@.b==1)", 12, Unterminated("the filter")),
        (".a[?(@.b==)]", 8, Unterminated("the comparison")),
        (".a[?(==1)]", 5, Unterminated("the comparison")),
        (".a[?(@.b<>1)]", 8, Operator("<>".into())),
        (".a[?(@.b==Ready)]", 10, UnknownWord("Ready".into())),
        (".a .b range", 6, UnknownWord("range".into())),
        ("....a", 2, RecursiveTwice),
        ("'a", 0, Unterminated("the quoted text")),
        (r"'\q'", 1, Escape(r"\q".into())),
        ("1.2.3", 0, Number("1.2.3".into())),
        (".a,b", 2, Unexpected(',')),
        (".a\n.b", 2, Unterminated("the expression")),
    ];
    for (path, at, fault) in cases {
        assert_eq!(JsonPath::parse(path), Err(JsonPathError::Syntax { text: path.into(), at, fault }), "{path}");
    }
}

#[test]
fn a_path_that_multiplies_is_stopped() {
    let mut deep = json!([1]);
    for _ in 0..100 {
        deep = json!([deep, 1]);
    }
    let path = JsonPath::parse(&"...*".repeat(12)).unwrap();
    assert_eq!(path.find(&deep), Err(JsonPathError::TooMany { limit: 100_000 }));
}

#[test]
fn values_deeper_than_the_stack_are_walked() {
    let mut deep = json!({"a": 1});
    for _ in 0..200_000 {
        deep = Value::Array(vec![deep]);
    }
    assert!(matches!(JsonPath::parse("..a").unwrap().find(&deep), Err(JsonPathError::TooMany { .. })));
    // Dropping nested values recurses; take them apart first.
    while let Value::Array(mut list) = deep {
        deep = list.pop().unwrap_or_default();
    }
}

#[test]
fn values_are_printed_as_go_prints_them() {
    let cases = [
        (json!(null), "null"),
        (json!(1.0), "1"),
        (json!(0.1), "0.1"),
        (json!(1e20), "100000000000000000000"),
        (json!(1e21), "1e+21"),
        (json!(2.5e-7), "2.5e-07"),
        (json!(-3), "-3"),
        (json!({"b": 1, "a": "x&y"}), r#"{"a":"x\u0026y","b":1}"#),
    ];
    for (value, text) in cases {
        assert_eq!(printed(&value), text);
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ab]{0,2}".prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[ab]", inner, 0..3).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn any_text() -> impl Strategy<Value = String> {
    const PARTS: &[&str] = &[
        ".a", ".b", "..", "*", "[", "]", "[?(", ")]", "@", "$", "==", "<", "'", "\"", "\\", ",", ":", "-", "1", "0",
        "{", "}", " ", "true", "é", "[0]", "[-1]", "[*]", "['a']",
    ];
    prop_oneof![prop::collection::vec(prop::sample::select(PARTS), 0..12).prop_map(|parts| parts.concat()), ".{0,12}"]
}

proptest! {
    #[test]
    fn no_text_and_no_value_panics(text in any_text(), value in any_value()) {
        match JsonPath::parse(&text) {
            Ok(path) => drop(path.find(&value)),
            Err(JsonPathError::Syntax { at, .. }) => prop_assert!(at <= text.len(), "{at} in {text:?}"),
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn what_is_found_is_part_of_the_value(value in any_value()) {
        let path = JsonPath::parse("..a").unwrap();
        let found = path.find(&value).unwrap().len();
        let text = value.to_string();
        prop_assert_eq!(found, text.matches("\"a\":").count());
    }
}

/// The lines of `golden.txt`, made by `tests/controlplane/kubernetes/golden`: a value, then what paths find in it.
#[test]
fn paths_find_what_client_go_finds() {
    let mut lines = include_str!("golden.txt").lines();
    let value: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    let mut differences = Vec::new();
    for line in lines {
        let case: Value = serde_json::from_str(line).unwrap();
        let path = case["path"].as_str().unwrap();
        let found = JsonPath::parse(path).and_then(|path| path.find(&value).map(|found| json!(found)));
        if found.as_ref().ok() != case.get("found") {
            differences.push(format!("{path}\n  ours:   {found:?}\n  theirs: {:?}", case.get("found")));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
