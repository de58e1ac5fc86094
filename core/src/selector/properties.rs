//! Laws of selectors, tried on random ones.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use proptest::sample::select;

use super::{FieldSelector, Requirement, Selector, Test};

fn key() -> impl Strategy<Value = &'static str> {
    select(vec!["a", "b", "in", "notin", "example.com/a", "A_1.x"])
}

fn value() -> impl Strategy<Value = &'static str> {
    select(vec!["", "a", "in", "0", "7", "10", "x-Y_z.0", "9223372036854775807"])
}

fn values() -> impl Strategy<Value = BTreeSet<String>> {
    btree_set(value().prop_map(str::to_owned), 1..4)
}

fn test() -> impl Strategy<Value = Test> {
    prop_oneof![
        value().prop_map(|value| Test::Equals(value.into())),
        value().prop_map(|value| Test::NotEquals(value.into())),
        values().prop_map(Test::In),
        values().prop_map(Test::NotIn),
        Just(Test::Exists),
        Just(Test::NotExists),
        (0..12_i64).prop_map(Test::GreaterThan),
        (0..12_i64).prop_map(Test::LessThan),
    ]
}

fn requirements() -> impl Strategy<Value = Vec<(&'static str, Test)>> {
    vec((key(), test()), 0..5)
}

fn build(requirements: &[(&str, Test)]) -> Selector {
    let requirement = |(key, test): &(&str, Test)| Requirement::new(*key, test.clone()).unwrap();
    requirements.iter().map(requirement).fold(Selector::new(), Selector::and)
}

/// The documented meaning, one line an operator.
fn holds(test: &Test, label: Option<&String>) -> bool {
    let number = label.map_or(Err(()), |label| label.parse::<i64>().map_err(|_| ()));
    match test {
        Test::Equals(value) => label.is_some() && label == Some(value),
        Test::NotEquals(value) => label.is_none() || label != Some(value),
        Test::In(values) => values.iter().any(|value| Some(value) == label),
        Test::NotIn(values) => label.is_none() || !values.iter().any(|value| Some(value) == label),
        Test::Exists => label.is_some(),
        Test::NotExists => label.is_none(),
        Test::GreaterThan(bound) => matches!(number, Ok(number) if number > *bound),
        Test::LessThan(bound) => matches!(number, Ok(number) if number < *bound),
    }
}

/// Text that is nearly a selector, so that the parser gets deep into it.
fn nearly() -> impl Strategy<Value = String> {
    let token = select(vec![
        "a", "b.c/d", "in", "notin", "=", "==", "!=", "!", "(", ")", ",", ">", "<", " ", "\t", "\\", "7", "é", "\0",
        ".",
    ]);
    vec(token, 0..12).prop_map(|tokens| tokens.concat())
}

proptest! {
    #[test]
    fn a_selector_matches_what_its_requirements_say(
        requirements in requirements(),
        labels in btree_map(key().prop_map(str::to_owned), value().prop_map(str::to_owned), 0..4),
    ) {
        let expected = requirements.iter().all(|(key, test)| holds(test, labels.get(*key)));
        prop_assert_eq!(build(&requirements).matches_map(&labels), expected);
    }

    #[test]
    fn a_printed_selector_parses_back(requirements in requirements()) {
        let selector = build(&requirements);
        prop_assert_eq!(Selector::parse(&selector.to_string()), Ok(selector));
    }

    #[test]
    fn any_text_parses_to_a_stable_selector_or_an_error(text in prop_oneof![any::<String>(), nearly()]) {
        if let Ok(selector) = Selector::parse(&text) {
            prop_assert_eq!(Selector::parse(&selector.to_string()), Ok(selector));
        }
        if let Ok(selector) = FieldSelector::parse(&text) {
            prop_assert_eq!(FieldSelector::parse(&selector.to_string()), Ok(selector));
        }
    }

    #[test]
    fn a_field_selector_matches_what_its_terms_say(
        terms in vec((select(vec!["a", "b.c", "metadata.name"]), any::<bool>(), select(vec!["", ",", "=\\", "x"])), 0..4),
        fields in btree_map(select(vec!["a", "b.c", "metadata.name"]), select(vec!["", ",", "=\\", "x"]), 0..3),
    ) {
        let fields: BTreeMap<&str, &str> = fields;
        let expected = terms.iter().all(|(path, equal, value)| {
            (fields.get(path).copied().unwrap_or("") == *value) == *equal
        });
        let selector = terms.iter().fold(FieldSelector::new(), |all, (path, equal, value)| {
            if *equal { all.eq(*path, *value) } else { all.not_eq(*path, *value) }.unwrap()
        });
        prop_assert_eq!(selector.matches_with(|path| fields.get(path).map(|value| Cow::Borrowed(*value))), expected);
        prop_assert_eq!(FieldSelector::parse(&selector.to_string()), Ok(selector));
    }
}
