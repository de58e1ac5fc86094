//! The body of the fuzz target for selectors.

use std::collections::BTreeMap;

use super::{FieldSelector, Selector};

/// Takes text: a selector, then `key=value` lines. Whatever parses must print as text that parses back to it, and
/// must match just when each of its requirements does.
pub fn selector(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (selector, lines) = text.split_once('\n').unwrap_or((text, ""));
    let fields: BTreeMap<&str, &str> = lines.lines().filter_map(|line| line.split_once('=')).collect();
    if let Ok(selector) = Selector::parse(selector) {
        let printed = selector.to_string();
        assert_eq!(Selector::parse(&printed).as_ref(), Ok(&selector), "{printed:?}");
        let each = selector.requirements().iter().all(|one| one.matches(fields.get(one.key()).copied()));
        assert_eq!(selector.matches(|key| fields.get(key).copied()), each);
        assert_eq!(selector.matches_pairs(fields.iter().map(|(key, value)| (*key, *value))), each);
        let rebuilt = selector.requirements().iter().rev().cloned().fold(Selector::new(), Selector::and);
        assert_eq!(rebuilt, selector);
    }
    if let Ok(selector) = FieldSelector::parse(selector) {
        let printed = selector.to_string();
        assert_eq!(FieldSelector::parse(&printed).as_ref(), Ok(&selector), "{printed:?}");
        let each = selector.terms().iter().all(|one| one.matches(fields.get(one.path()).copied()));
        assert_eq!(selector.matches_with(|path| fields.get(path).map(|value| (*value).into())), each);
    }
    for (path, value) in fields {
        if let Ok(selector) = FieldSelector::new().eq(path, value) {
            assert_eq!(FieldSelector::parse(&selector.to_string()).as_ref(), Ok(&selector));
            assert!(selector.matches_with(|_| Some(value.into())));
        }
    }
}
