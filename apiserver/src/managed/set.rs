//! A set of paths to fields.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::element::Element;

/// A set of paths. A path and one that goes on from it may both be in it, or either alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Set(BTreeMap<Element, Node>);

/// What is known of the paths that begin with an element: never a node that holds nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Node {
    /// Whether the path that ends here is in the set.
    member: bool,
    rest: Set,
}

impl Set {
    /// A set of paths of field names.
    pub(crate) fn of_fields(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let path: Vec<_> = path.iter().map(|name| Element::field(name)).collect();
            set.insert(&path);
        }
        set
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a path; the path to the object itself is in no set.
    pub(crate) fn insert(&mut self, path: &[Element]) {
        let Some((first, rest)) = path.split_first() else { return };
        let node = match self.0.get_mut(first) {
            Some(node) => node,
            None => self.0.entry(first.clone()).or_default(),
        };
        if rest.is_empty() {
            node.member = true;
        } else {
            node.rest.insert(rest);
        }
    }

    /// Whether the path of this one element is in the set.
    pub(crate) fn has(&self, element: &Element) -> bool {
        self.0.get(element).is_some_and(|node| node.member)
    }

    pub(crate) fn has_path(&self, path: &[Element]) -> bool {
        match path {
            [] => false,
            [last] => self.has(last),
            [first, rest @ ..] => self.below(first).is_some_and(|below| below.has_path(rest)),
        }
    }

    /// What goes on from an element, if anything does.
    pub(crate) fn below(&self, element: &Element) -> Option<&Self> {
        self.0.get(element).map(|node| &node.rest).filter(|rest| !rest.is_empty())
    }

    /// Adds what is in `other`.
    pub(crate) fn union(mut self, other: &Self) -> Self {
        self.extend(other);
        self
    }

    fn extend(&mut self, other: &Self) {
        for (element, node) in &other.0 {
            let own = match self.0.get_mut(element) {
                Some(own) => own,
                None => self.0.entry(element.clone()).or_default(),
            };
            own.member |= node.member;
            own.rest.extend(&node.rest);
        }
    }

    /// What is in both.
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let both = |(element, node): (&Element, &Node)| {
            let theirs = other.0.get(element)?;
            let both = Node { member: node.member && theirs.member, rest: node.rest.intersection(&theirs.rest) };
            both.kept(element)
        };
        Self(self.0.iter().filter_map(both).collect())
    }

    /// What is not in `other`, path by path.
    pub(crate) fn difference(&self, other: &Self) -> Self {
        let mut left = self.clone();
        left.subtract(other);
        left
    }

    /// Takes out what is in `other`, path by path.
    pub(crate) fn subtract(&mut self, other: &Self) {
        for (element, theirs) in &other.0 {
            let Some(node) = self.0.get_mut(element) else { continue };
            node.member &= !theirs.member;
            node.rest.subtract(&theirs.rest);
            if !node.member && node.rest.is_empty() {
                self.0.remove(element);
            }
        }
    }

    /// Takes out what is in `other`, and what goes on from a path in it.
    pub(crate) fn cut(&mut self, other: &Self) {
        for (element, theirs) in &other.0 {
            let Some(node) = self.0.get_mut(element) else { continue };
            node.rest.cut(&theirs.rest);
            if theirs.member || (!node.member && node.rest.is_empty()) {
                self.0.remove(element);
            }
        }
    }

    /// Whether a path is in both this and `fields`, a set as `fieldsV1` has it.
    pub(crate) fn meets(&self, fields: &Map<String, Value>) -> bool {
        self.0.iter().any(|(element, node)| match fields.get(&element.to_text()) {
            Some(Value::Object(below)) => {
                (node.member && (below.is_empty() || below.contains_key(ITSELF))) || node.rest.meets(below)
            }
            _ => false,
        })
    }

    /// What begins with one of these paths of field names, as a filter keeps it.
    pub(crate) fn only(&self, prefix: &[Element]) -> Self {
        let Some((first, rest)) = prefix.split_first() else { return self.clone() };
        let Some(node) = self.0.get(first) else { return Self::default() };
        let kept = Node { member: node.member, rest: node.rest.only(rest) };
        Self(kept.kept(first).into_iter().collect())
    }

    /// Every path, those that end at a level before those that go on from it.
    pub(crate) fn paths(&self) -> Vec<Vec<Element>> {
        let mut paths = Vec::new();
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect(&self, prefix: &mut Vec<Element>, paths: &mut Vec<Vec<Element>>) {
        for (element, _) in self.0.iter().filter(|(_, node)| node.member) {
            let mut path = prefix.clone();
            path.push(element.clone());
            paths.push(path);
        }
        for (element, node) in &self.0 {
            prefix.push(element.clone());
            node.rest.collect(prefix, paths);
            prefix.pop();
        }
    }

    /// The elements, with whether the path ends there, and what goes on from it.
    pub(crate) fn elements(&self) -> impl Iterator<Item = (&Element, bool, &Self)> {
        self.0.iter().map(|(element, node)| (element, node.member, &node.rest))
    }

    /// Puts a node in, with all that goes on from it.
    pub(crate) fn put(&mut self, element: &Element, member: bool, rest: Self) {
        if let Some((element, node)) = (Node { member, rest }).kept(element) {
            self.0.insert(element, node);
        }
    }

    /// As `fieldsV1` has it.
    pub(crate) fn to_json(&self) -> Value {
        let entries = self.0.iter().map(|(element, node)| {
            let mut rest = node.rest.to_json();
            if let (true, Value::Object(map)) = (node.member && !node.rest.is_empty(), &mut rest) {
                map.insert(ITSELF.to_owned(), Value::Object(Map::new()));
            }
            (element.to_text(), rest)
        });
        Value::Object(entries.collect())
    }

    /// Reads `fieldsV1`; `None` when it is nothing of the kind.
    pub(crate) fn from_json(value: &Value) -> Option<Self> {
        let mut set = Self::default();
        for (name, value) in value.as_object()? {
            if name == ITSELF {
                continue;
            }
            let rest = Self::from_json(value)?;
            let member = rest.is_empty() || value.get(ITSELF).is_some();
            set.put(&Element::parse(name)?, member, rest);
        }
        Some(set)
    }
}

impl Node {
    /// Itself if it holds anything.
    fn kept(self, element: &Element) -> Option<(Element, Self)> {
        (self.member || !self.rest.is_empty()).then(|| (element.clone(), self))
    }
}

/// Stands among what goes on from a path for the path itself.
const ITSELF: &str = ".";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn set(value: &Value) -> Set {
        Set::from_json(value).unwrap()
    }

    #[test]
    fn a_set_is_read_as_it_is_written() {
        let written = json!({"f:a": {".": {}, "f:b": {}}, "f:c": {"k:{\"n\":1}": {".": {}, "f:n": {}}, "v:\"x\"": {}}});
        let found = set(&written);
        assert_eq!(found.to_json(), written);
        assert!(found.has(&Element::field("a")) && !found.has(&Element::field("c")));
        for bad in [json!(5), json!({"a": {}}), json!({"f:a": 5})] {
            assert_eq!(Set::from_json(&bad), None, "{bad}");
        }
    }

    #[test]
    fn what_goes_on_from_a_path_stays_unless_it_goes_too() {
        let all = set(&json!({"f:a": {".": {}, "f:b": {}}, "f:c": {}}));
        let some = set(&json!({"f:a": {}}));
        assert_eq!(all.difference(&some).to_json(), json!({"f:a": {"f:b": {}}, "f:c": {}}));
        let mut left = all.clone();
        left.cut(&some);
        assert_eq!(left.to_json(), json!({"f:c": {}}));
        assert_eq!(all.intersection(&some).to_json(), json!({"f:a": {}}));
        assert_eq!(
            all.only(&[Element::field("a"), Element::field("b")]).to_json(),
            json!({"f:a": {".": {}, "f:b": {}}})
        );
    }

    fn paths() -> impl Strategy<Value = Vec<Vec<Element>>> {
        let element = (0_u8..3).prop_map(|name| Element::field(&name.to_string()));
        proptest::collection::vec(proptest::collection::vec(element, 1..4), 0..8)
    }

    fn made(paths: &[Vec<Element>]) -> Set {
        let mut set = Set::default();
        paths.iter().for_each(|path| set.insert(path));
        set
    }

    proptest! {
        #[test]
        fn sets_are_sets_of_their_paths(a in paths(), b in paths()) {
            let (left, right) = (made(&a), made(&b));
            prop_assert_eq!(Set::from_json(&left.to_json()), Some(left.clone()));
            let both = left.clone().union(&right);
            let (common, rest) = (left.intersection(&right), left.difference(&right));
            let meeting = matches!(left.to_json(), Value::Object(fields) if right.meets(&fields));
            prop_assert_eq!(meeting, !common.is_empty());
            for path in a.iter().chain(&b) {
                prop_assert!(both.has_path(path));
                prop_assert_eq!(common.has_path(path), a.contains(path) && b.contains(path));
                prop_assert_eq!(rest.has_path(path), a.contains(path) && !b.contains(path));
            }
            prop_assert_eq!(&made(&left.paths()), &left);
            prop_assert_eq!(rest.union(&common), left);
        }
    }
}
