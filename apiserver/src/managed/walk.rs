//! Walks through objects by their types: what differs, what is set, what they merge to, and what is left.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map as Object, Value};

use super::element::{Element, same};
use super::set::Set;
use super::types::{Atom, Found, Keys, List, Map, Scalar, Type, Types};

/// What differs between an object and another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    pub(crate) removed: Set,
    pub(crate) modified: Set,
    pub(crate) added: Set,
}

type Path = Vec<Element>;

impl<'s> Types<'s> {
    /// What differs between two objects of a type.
    pub(crate) fn compare(self, of: Type<'s>, old: &Value, new: &Value) -> Comparison {
        let mut found = Comparison::default();
        self.compare_at(of, Some(old), Some(new), &mut Vec::new(), &mut found);
        found
    }

    fn compare_at(
        self,
        of: Type<'s>,
        old: Option<&Value>,
        new: Option<&Value>,
        path: &mut Path,
        found: &mut Comparison,
    ) {
        if matches!(of, Type::Ignored) || old == new {
            return;
        }
        let mut leaf = false;
        match (old, new) {
            (Some(old), None) => leaf = self.compare_as(self.atom(of, Some(old)), Some(old), None, path, found),
            (None, new) => leaf = self.compare_as(self.atom(of, new), None, new, path, found),
            (Some(old), Some(new)) => {
                let (before, after) = (self.atom(of, Some(old)), self.atom(of, Some(new)));
                if !before.is_like(&after) {
                    self.compare_as(before, Some(old), Some(new), path, found);
                }
                self.compare_as(after, Some(old), Some(new), path, found);
            }
        }
        match (old, new) {
            (None, Some(_)) if !leaf => found.added.insert(path),
            (Some(_), None) if !leaf => found.removed.insert(path),
            _ => {}
        }
    }

    /// Compares values that both are as `atom` says, as far as they are; answers whether they are one value.
    fn compare_as(
        self,
        atom: Atom<'s>,
        old: Option<&Value>,
        new: Option<&Value>,
        path: &mut Path,
        found: &mut Comparison,
    ) -> bool {
        match atom {
            Atom::List(list) if !matches!(list.keys, Keys::None) && has_items(old, new) => {
                self.compare_items(&list, items(old), items(new), path, found);
                false
            }
            Atom::Map(map) if !map.atomic && has_fields(old, new) => {
                for name in names(old, new) {
                    let of = self.find(&map, name).of();
                    path.push(Element::field(name));
                    self.compare_at(of, get(old, name), get(new, name), path, found);
                    path.pop();
                }
                false
            }
            _ => {
                match (old, new) {
                    (None, _) => found.added.insert(path),
                    (_, None) => found.removed.insert(path),
                    (Some(old), Some(new)) if !same(old, new) => found.modified.insert(path),
                    _ => {}
                }
                true
            }
        }
    }

    fn compare_items(self, list: &List<'s>, old: &[Value], new: &[Value], path: &mut Path, found: &mut Comparison) {
        let mut pairs: BTreeMap<Element, [Vec<&Value>; 2]> = BTreeMap::new();
        for (side, items) in [old, new].into_iter().enumerate() {
            for item in items {
                if let Ok(element) = self.element(list, item) {
                    pairs.entry(element).or_default()[side].push(item);
                }
            }
        }
        for (element, [old, new]) in pairs {
            path.push(element);
            match (&old[..], &new[..]) {
                ([], []) => {}
                ([] | [_], [] | [_]) => {
                    self.compare_at(list.item, old.first().copied(), new.first().copied(), path, found);
                }
                ([_, _, ..], [_, _, ..]) => {
                    if old.len() != new.len() || old.iter().zip(&new).any(|(old, new)| !same(old, new)) {
                        found.modified.insert(path);
                    }
                }
                ([_, _, ..], _) => {
                    if let Some(new) = new.first() {
                        self.compare_at(list.item, None, Some(new), path, found);
                    }
                    found.removed.insert(path);
                }
                (_, _) => {
                    if let Some(old) = old.first() {
                        self.compare_at(list.item, Some(old), None, path, found);
                    }
                    found.added.insert(path);
                }
            }
            path.pop();
        }
    }

    /// Every field that an object sets.
    pub(crate) fn fields(self, of: Type<'s>, value: &Value) -> Set {
        let mut set = Set::default();
        self.fields_at(of, value, &mut Vec::new(), &mut set);
        set
    }

    fn fields_at(self, of: Type<'s>, value: &Value, path: &mut Path, set: &mut Set) {
        match self.atom(of, Some(value)) {
            Atom::Scalar(_) => set.insert(path),
            Atom::List(List { keys: Keys::None, .. }) => set.insert(path),
            Atom::List(list) => self.item_fields(&list, items(Some(value)), path, set),
            Atom::Map(map) if map.atomic => set.insert(path),
            Atom::Map(map) => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    let found = self.find(&map, name);
                    path.push(Element::field(name));
                    if !matches!(found.of(), Type::Ignored) {
                        self.fields_at(found.of(), value, path, set);
                    }
                    let empty = value.is_null() || value.as_object().is_some_and(Object::is_empty);
                    if empty || !matches!(found, Found::Named(_)) {
                        set.insert(path);
                    }
                    path.pop();
                }
            }
        }
    }

    fn item_fields(self, list: &List<'s>, items: &[Value], path: &mut Path, set: &mut Set) {
        let mut times: BTreeMap<Element, usize> = BTreeMap::new();
        let elements: Vec<_> = items.iter().filter_map(|item| Some((self.element(list, item).ok()?, item))).collect();
        for (element, _) in &elements {
            *times.entry(element.clone()).or_default() += 1;
        }
        for (element, item) in elements {
            let once = times.get(&element) == Some(&1);
            path.push(element);
            // Items of the same key are owned together, with nothing in them.
            if once {
                self.fields_at(list.item, item, path, set);
            }
            set.insert(path);
            path.pop();
        }
    }

    /// The object without the fields and items in `gone`.
    pub(crate) fn remove(self, of: Type<'s>, value: &Value, gone: &Set) -> Value {
        match (self.atom(of, Some(value)), value) {
            (Atom::Scalar(_), value) => value.clone(),
            (Atom::List(list), Value::Array(items)) if !items.is_empty() && !matches!(list.keys, Keys::None) => {
                let left = items.iter().filter_map(|item| {
                    let Ok(element) = self.element(&list, item) else { return Some(item.clone()) };
                    match gone.below(&element) {
                        _ if gone.has(&element) => None,
                        Some(below) => Some(self.remove(list.item, item, below)),
                        None => Some(item.clone()),
                    }
                });
                let left: Vec<_> = left.collect();
                if left.is_empty() { Value::Null } else { Value::Array(left) }
            }
            (Atom::Map(map), Value::Object(fields)) if !fields.is_empty() && !map.atomic => {
                let left = fields.iter().filter_map(|(name, value)| {
                    let element = Element::field(name);
                    let value = match gone.below(&element) {
                        _ if gone.has(&element) => return None,
                        Some(below) => self.remove(self.find(&map, name).of(), value, below),
                        None => value.clone(),
                    };
                    Some((name.clone(), value))
                });
                let left: Object<_, _> = left.collect();
                if left.is_empty() { Value::Null } else { Value::Object(left) }
            }
            // What is one value goes with what holds it, or not at all; and in the walk as Kubernetes does it, it goes.
            _ => Value::Null,
        }
    }

    /// The set with each named field that something goes on from.
    pub(crate) fn with_named(self, of: Option<Type<'s>>, set: &Set) -> Set {
        let atom = of.map(|of| self.atom(of, None));
        let mut whole = Set::default();
        for (element, member, rest) in set.elements() {
            let found = match (&atom, element) {
                (Some(Atom::Map(map)), Element::Field(name)) => Some(self.find(map, name)),
                _ => None,
            };
            let below = match (&atom, element, found) {
                (_, _, Some(Found::Named(of) | Found::Key(of))) => Some(of),
                (Some(Atom::List(list)), Element::Key(_), _) => Some(list.item),
                _ => None,
            };
            let named = matches!(found, Some(Found::Named(_))) && !rest.is_empty();
            whole.put(element, member || named, self.with_named(below, rest));
        }
        whole
    }

    /// The set brought in line with a type that may have changed since: what has become one value is owned as one.
    pub(crate) fn reconciled(self, of: Type<'s>, set: &Set) -> Set {
        let mut whole = Set::default();
        let atom = self.atom(of, None);
        for (element, member, rest) in set.elements() {
            let below = match (&atom, element) {
                (Atom::Map(map), Element::Field(name)) => match self.find(map, name) {
                    Found::Named(of) | Found::Key(of) => Some(of),
                    Found::Unknown => None,
                },
                (Atom::List(list), _) => Some(list.item),
                _ => None,
            };
            match below {
                Some(of) if !rest.is_empty() && self.is_one_value(of) => whole.put(element, true, Set::default()),
                Some(of) => whole.put(element, member, self.reconciled(of, rest)),
                None => whole.put(element, member, rest.clone()),
            }
        }
        whole
    }

    fn is_one_value(self, of: Type<'s>) -> bool {
        match self.atom(of, None) {
            Atom::List(list) => matches!(list.keys, Keys::None),
            Atom::Map(map) => map.atomic,
            Atom::Scalar(_) => false,
        }
    }

    /// The object that `change` makes of `base`: what it sets is as it says, the rest as it was.
    pub(crate) fn merge(self, of: Type<'s>, base: Option<&Value>, change: Option<&Value>) -> Option<Value> {
        if matches!(of, Type::Ignored) {
            return base.cloned();
        }
        let atom = self.atom(of, change.or(base));
        match atom {
            Atom::List(list) if !matches!(list.keys, Keys::None) && has_items(base, change) => {
                let merged = self.merge_items(&list, items(base), items(change));
                (!merged.is_empty()).then_some(Value::Array(merged))
            }
            Atom::Map(map) if !map.atomic && has_fields(base, change) => {
                let merged = names(base, change).into_iter().filter_map(|name| {
                    let merged = self.merge(self.find(&map, name).of(), get(base, name), get(change, name))?;
                    Some((name.to_owned(), merged))
                });
                let merged: Object<_, _> = merged.collect();
                (!merged.is_empty()).then_some(Value::Object(merged))
            }
            _ => change.or(base).cloned(),
        }
    }

    /// Items in both lists are in the order of the change; the others keep their place among them.
    fn merge_items(self, list: &List<'s>, base: &[Value], change: &[Value]) -> Vec<Value> {
        let keyed = |items| -> Vec<(Element, &'_ Value)> {
            let items: &[Value] = items;
            items.iter().filter_map(|item| Some((self.element(list, item).ok()?, item))).collect()
        };
        let (old, new) = (keyed(base), keyed(change));
        let index = |items: &[(Element, &'_ Value)]| {
            let mut index: BTreeMap<Element, Option<Value>> = BTreeMap::new();
            for (element, item) in items {
                match index.entry(element.clone()) {
                    Entry::Vacant(vacant) => drop(vacant.insert(Some((*item).clone()))),
                    // Nothing is known of items that share a key.
                    Entry::Occupied(mut occupied) => drop(occupied.insert(None)),
                }
            }
            index
        };
        let (olds, news) = (index(&old), index(&new));
        let merged = |element: &Element| {
            let old = olds.get(element).and_then(Option::as_ref);
            self.merge(list.item, old, news.get(element).and_then(Option::as_ref))
        };
        let mut shared = new.iter().map(|(element, _)| element).filter(|element| olds.contains_key(element));
        let mut next = shared.next();
        let mut done: BTreeSet<&Element> = BTreeSet::new();
        let (mut left, mut right) = (0, 0);
        let mut out = Vec::with_capacity(old.len().max(new.len()));
        while left < old.len() || right < new.len() {
            if let (Some((a, _)), Some((b, _))) = (old.get(left), new.get(right)) {
                if a == b {
                    done.insert(a);
                    out.extend(merged(a));
                    (left, right) = (left + 1, right + 1);
                    next = shared.next();
                    continue;
                }
                if news.contains_key(a) && next.is_some_and(|next| next != a) {
                    left += 1;
                    continue;
                }
            }
            if let Some((a, item)) = old.get(left) {
                if !news.contains_key(a) {
                    out.extend(self.merge(list.item, Some(item), None));
                    left += 1;
                    continue;
                }
                if done.contains(a) {
                    left += 1;
                }
            }
            if let Some((b, _)) = new.get(right) {
                done.insert(b);
                out.extend(merged(b));
                right += 1;
                if next == Some(b) {
                    next = shared.next();
                }
            }
        }
        out
    }

    /// What keeps an object from being of a type, in the words of an apply.
    pub(crate) fn check(self, of: Type<'s>, value: &Value, duplicates: bool) -> Vec<String> {
        let mut faults = Vec::new();
        self.check_at(of, value, duplicates, &mut String::new(), &mut faults);
        faults
    }

    fn check_at(self, of: Type<'s>, value: &Value, duplicates: bool, path: &mut String, faults: &mut Vec<String>) {
        let outside = path.len();
        let mut fault = |path: &str, words: String| {
            faults.push(if path.is_empty() { words } else { format!("{path}: {words}") });
        };
        match (self.atom(of, Some(value)), value) {
            (_, Value::Null) => {}
            (Atom::Scalar(scalar), value) => {
                if let Some(words) = wrong_scalar(scalar, value) {
                    fault(path, words);
                }
            }
            (Atom::List(list), Value::Array(items)) => {
                let mut seen = Set::default();
                for (index, item) in items.iter().enumerate() {
                    let element = match list.keys {
                        Keys::None => Element::Index(i64::try_from(index).unwrap_or(i64::MAX)),
                        _ => match self.element(&list, item) {
                            Ok(element) => element,
                            Err(words) => return fault(path, format!("element {index}: {words}")),
                        },
                    };
                    if seen.has(&element) && !duplicates {
                        fault(path, format!("duplicate entries for key {element}"));
                    }
                    path.push_str(&element.to_string());
                    seen.insert(&[element]);
                    let mut inner = Vec::new();
                    self.check_at(list.item, item, duplicates, path, &mut inner);
                    inner.into_iter().for_each(|words| fault("", words));
                    path.truncate(outside);
                }
            }
            (Atom::Map(map), Value::Object(fields)) => self.check_fields(&map, fields, duplicates, path, faults),
            (Atom::List(_), value) => fault(path, format!("expected list, got &{{{}}}", go(value))),
            (Atom::Map(_), value) => fault(path, format!("expected map, got &{{{}}}", go(value))),
        }
    }

    fn check_fields(
        self,
        map: &Map<'s>,
        fields: &Object<String, Value>,
        duplicates: bool,
        path: &mut String,
        faults: &mut Vec<String>,
    ) {
        let outside = path.len();
        for (name, value) in fields {
            path.push_str(&format!(".{name}"));
            match self.find(map, name) {
                Found::Named(Type::Ignored) => {}
                Found::Named(of) | Found::Key(of) => self.check_at(of, value, duplicates, path, faults),
                Found::Unknown => {
                    faults.push(format!("{path}: field not declared in schema"));
                    path.truncate(outside);
                    return;
                }
            }
            path.truncate(outside);
        }
    }
}

impl Atom<'_> {
    /// Whether values of both are compared in the same way.
    fn is_like(&self, other: &Atom<'_>) -> bool {
        matches!(
            (self, other),
            (Atom::Scalar(_), Atom::Scalar(_)) | (Atom::List(_), Atom::List(_)) | (Atom::Map(_), Atom::Map(_))
        )
    }
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn has_items(old: Option<&Value>, new: Option<&Value>) -> bool {
    !items(old).is_empty() || !items(new).is_empty()
}

fn has_fields(old: Option<&Value>, new: Option<&Value>) -> bool {
    let filled = |value: Option<&Value>| value.and_then(Value::as_object).is_some_and(|map| !map.is_empty());
    filled(old) || filled(new)
}

fn get<'a>(value: Option<&'a Value>, name: &str) -> Option<&'a Value> {
    value?.as_object()?.get(name)
}

/// The names of the fields of two objects, each once.
fn names<'a>(old: Option<&'a Value>, new: Option<&'a Value>) -> Vec<&'a str> {
    let keys = |value: Option<&'a Value>| value.and_then(Value::as_object).into_iter().flat_map(Object::keys);
    let mut names: Vec<_> = keys(old).chain(keys(new)).map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn wrong_scalar(scalar: Scalar, value: &Value) -> Option<String> {
    match (scalar, value) {
        (Scalar::Numeric, Value::Number(_))
        | (Scalar::Text, Value::String(_))
        | (Scalar::Bool, Value::Bool(_))
        | (Scalar::Any, Value::Number(_) | Value::String(_) | Value::Bool(_)) => None,
        (Scalar::Numeric, value) => Some(format!("expected numeric (int or float), got {}", go_type(value))),
        (Scalar::Text, value) => {
            Some(format!("expected string, got &value.valueUnstructured{{Value:{}}}", go_syntax(value)))
        }
        (Scalar::Bool, value) => Some(format!("expected boolean, got &{{{}}}", go(value))),
        (Scalar::Any, value) => Some(format!("expected any scalar, got &{{{}}}", go(value))),
    }
}

/// What Go calls the type of a value.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value as Go's `%v` prints it.
fn go(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(go).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let fields: Vec<_> = fields.iter().map(|(name, value)| format!("{name}:{}", go(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
        scalar => scalar.to_string(),
    }
}

/// A value as Go's `%#v` prints it.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(go_syntax).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<_> = fields
                .iter()
                .map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), go_syntax(value)))
                .collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
        scalar => scalar.to_string(),
    }
}
