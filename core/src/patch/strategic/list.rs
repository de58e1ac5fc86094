//! Merging and ordering of lists.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::error::{StrategicError, printed_list};
use super::{DIRECTIVE, ORDER_PREFIX};

type Fields = Map<String, Value>;

/// What is known of the items of a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct List<'a> {
    /// The field by which items are told apart; without one they are scalars.
    pub(super) key: Option<&'a str>,
    /// The kind of the items' type.
    pub(super) of: &'a str,
}

/// What the items of a list are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Maps,
    Scalars,
}

/// Merges the items of `new` into `old`, or with `deletes` takes them out of it if they are scalars.
pub(super) fn merge_lists(
    list: List<'_>,
    old: Vec<Value>,
    new: Vec<Value>,
    deletes: bool,
    merge: impl Fn(&mut Fields, Fields) -> Result<(), StrategicError>,
) -> Result<Vec<Value>, StrategicError> {
    if old.is_empty() && new.is_empty() {
        return Ok(old);
    }
    let kind = kind_of([&old, &new])?;
    match kind {
        Kind::Scalars if deletes => {
            let gone = Places::of(None, &new);
            Ok(old.into_iter().filter(|item| gone.find(item).is_none()).collect())
        }
        Kind::Scalars => {
            let mut merged = Vec::with_capacity(old.len() + new.len());
            let mut known = Places::default();
            for item in old.iter().chain(&new) {
                if known.add(item) {
                    merged.push(item.clone());
                }
            }
            order(list, kind, merged, &new, &old)
        }
        Kind::Maps => {
            let Some(key) = list.key else {
                return Err(StrategicError::other(format!("cannot merge lists without merge key for {}", list.of)));
            };
            let (live, new) = special_items(key, old, new)?;
            let merged = merge_items(key, live.clone(), &new, merge)?;
            order(list, kind, merged, &new, &live)
        }
    }
}

/// Does what the items of `new` that carry a directive say. Gives the old items that stay, and the other new ones.
fn special_items(key: &str, old: Vec<Value>, new: Vec<Value>) -> Result<(Vec<Value>, Vec<Value>), StrategicError> {
    let mut live = old;
    let mut replaces = false;
    let mut plain = Vec::with_capacity(new.len());
    for item in new {
        let fields = map_of(&item)?;
        let Some(directive) = fields.get(DIRECTIVE) else {
            plain.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let gone = fields.get(key).ok_or_else(|| StrategicError::merge_key(fields, key))?;
                live.retain(|item| item.get(key) != Some(gone));
            }
            Some("replace") => replaces = true,
            Some("merge") => return Err(StrategicError::other("merging lists cannot yet be specified in the patch")),
            _ => return Err(StrategicError::directive(directive, fields)),
        }
    }
    Ok(if replaces { (plain, Vec::new()) } else { (live, plain) })
}

fn merge_items(
    key: &str,
    mut live: Vec<Value>,
    new: &[Value],
    merge: impl Fn(&mut Fields, Fields) -> Result<(), StrategicError>,
) -> Result<Vec<Value>, StrategicError> {
    let mut places = Places::of(Some(key), &live);
    for item in new {
        let fields = map_of(item)?;
        if !fields.contains_key(key) {
            return Err(StrategicError::merge_key(fields, key));
        }
        match places.find(item).and_then(|place| live.get_mut(place)) {
            Some(Value::Object(old)) => merge(old, fields.clone())?,
            _ => {
                places.add(item);
                live.push(item.clone());
            }
        }
    }
    Ok(live)
}

/// Orders `merged`: the items in `wanted` as they are there, the others as in `live`, put before the first wanted item
/// that they were before.
pub(super) fn order(
    list: List<'_>,
    kind: Kind,
    merged: Vec<Value>,
    wanted: &[Value],
    live: &[Value],
) -> Result<Vec<Value>, StrategicError> {
    let key = match kind {
        Kind::Maps => list.key,
        Kind::Scalars => None,
    };
    for item in merged.iter().chain(wanted).chain(live).filter(|_| kind == Kind::Maps) {
        let fields = map_of(item)?;
        if let Some(key) = key.filter(|key| !fields.contains_key(*key)) {
            return Err(StrategicError::merge_key(fields, key));
        }
    }
    let (wanted, live) = (Places::of(key, wanted), Places::of(key, live));
    let (mut first, mut others): (Vec<_>, Vec<_>) = merged.into_iter().partition(|item| wanted.find(item).is_some());
    first.sort_by_key(|item| wanted.find(item));
    others.sort_by_key(|item| live.find(item));
    let mut ordered = Vec::with_capacity(first.len() + others.len());
    let mut others = others.into_iter().peekable();
    for item in first {
        let place = live.find(&item);
        // What is new has no place among the old: nothing goes before it.
        while let Some(other) = others.next_if(|other| matches!((live.find(other), place), (Some(a), Some(b)) if a < b))
        {
            ordered.push(other);
        }
        ordered.push(item);
    }
    ordered.extend(others);
    Ok(ordered)
}

impl List<'_> {
    /// Checks that the items of a patch are in the order that it says they have.
    pub(super) fn check_order(self, new: &[Value], wanted: &[Value]) -> Result<(), StrategicError> {
        if new.is_empty() || wanted.is_empty() {
            return Ok(());
        }
        let mut items = Vec::with_capacity(new.len());
        for item in new {
            let directive = match self.key {
                Some(_) => map_of(item)?.get(DIRECTIVE),
                None => None,
            };
            if directive.is_none_or(|directive| directive != "delete") {
                items.push(item);
            }
        }
        let (mut next, mut place) = (0, 0);
        while next < items.len() && place < wanted.len() {
            if items[next].get(DIRECTIVE).is_some() {
                next += 1;
                continue;
            }
            next += usize::from(self.same(items[next], &wanted[place])?);
            place += 1;
        }
        if next < items.len() {
            let (new, wanted) = (printed_list(new), printed_list(wanted));
            let message = format!("The order in patch list:\n{new}\n doesn't match {ORDER_PREFIX} list:\n{wanted}\n");
            return Err(StrategicError::Other(message));
        }
        Ok(())
    }

    fn same(self, a: &Value, b: &Value) -> Result<bool, StrategicError> {
        let Some(key) = self.key else { return Ok(a == b) };
        let value = |item| -> Result<_, StrategicError> {
            let fields = map_of(item)?;
            fields.get(key).ok_or_else(|| StrategicError::merge_key(fields, key))
        };
        Ok(value(a)? == value(b)?)
    }
}

/// What the items of some lists are, which must all be the same.
pub(super) fn kind_of(lists: [&[Value]; 2]) -> Result<Kind, StrategicError> {
    let mut items = lists.into_iter().flatten();
    let Some(first) = items.next() else {
        return Err(StrategicError::other("no elements in any of the given slices"));
    };
    if first.is_array() {
        return Err(StrategicError::ListOfLists);
    }
    let same = |item: &Value| match (first, item) {
        (Value::Number(a), Value::Number(b)) => a.is_i64() == b.is_i64(),
        (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
    };
    if !items.all(same) {
        let printed = lists.map(printed_list).join(" ");
        return Err(StrategicError::other(format!("list element types are not identical: [{printed}]")));
    }
    Ok(if first.is_object() { Kind::Maps } else { Kind::Scalars })
}

fn map_of(item: &Value) -> Result<&Fields, StrategicError> {
    item.as_object().ok_or_else(|| StrategicError::type_of("map[string]interface {}", item))
}

/// Where in a list items are, by the field that tells them apart or as a whole.
#[derive(Default)]
struct Places {
    key: Option<String>,
    /// By the JSON text of what tells items apart; the first one counts.
    places: BTreeMap<String, usize>,
    count: usize,
}

impl Places {
    fn of(key: Option<&str>, items: &[Value]) -> Self {
        let mut places = Self { key: key.map(str::to_owned), ..Self::default() };
        for item in items {
            places.add(item);
        }
        places
    }

    /// Takes in the next item of the list; whether there was none like it.
    fn add(&mut self, item: &Value) -> bool {
        let place = self.count;
        self.count += 1;
        let Some(text) = self.text(item) else { return false };
        *self.places.entry(text).or_insert(place) == place
    }

    fn find(&self, item: &Value) -> Option<usize> {
        self.places.get(&self.text(item)?).copied()
    }

    fn text(&self, item: &Value) -> Option<String> {
        match &self.key {
            Some(key) => item.get(key).map(Value::to_string),
            None => Some(item.to_string()),
        }
    }
}
