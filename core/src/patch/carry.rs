//! Edits of an object that was seen through a type, carried over to the object itself.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::diff::Place;
use super::{PatchError, Pointer};

/// `stored` with the difference between `read`, which is how a type shows it, and `edited`. Where it is unsure which
/// elements of lists belong together, it goes by their places.
pub(crate) fn carry(stored: Value, read: &Value, edited: Value) -> Value {
    Carry::default().value(stored, read, edited, &Place::ROOT)
}

/// As [`carry`], but an error where it is unsure which elements belong together.
pub(super) fn carry_surely(stored: Value, read: &Value, edited: Value) -> Result<Value, PatchError> {
    let mut carry = Carry::default();
    let value = carry.value(stored, read, edited, &Place::ROOT);
    match carry.doubt {
        Some((path, fault)) => Err(PatchError::Unmatched { path, fault }),
        None => Ok(value),
    }
}

#[derive(Default)]
struct Carry {
    /// The first list whose elements may belong together in another way, and why.
    doubt: Option<(Pointer, &'static str)>,
}

impl Carry {
    fn value(&mut self, stored: Value, read: &Value, edited: Value, place: &Place<'_>) -> Value {
        if *read == edited {
            return stored;
        }
        match (stored, read, edited) {
            (Value::Object(stored), Value::Object(read), Value::Object(edited)) => {
                Value::Object(self.members(stored, read, edited, place))
            }
            // The type filled it in: of that only the edits are wanted.
            (Value::Null, Value::Object(read), Value::Object(edited)) => {
                Value::Object(self.members(Map::new(), read, edited, place))
            }
            (Value::Array(stored), Value::Array(read), Value::Array(edited)) => {
                Value::Array(self.elements(stored, read, edited, place))
            }
            (_, _, edited) => edited,
        }
    }

    fn members(
        &mut self,
        mut stored: Map<String, Value>,
        read: &Map<String, Value>,
        edited: Map<String, Value>,
        place: &Place<'_>,
    ) -> Map<String, Value> {
        stored.retain(|key, _| edited.contains_key(key) || !read.contains_key(key));
        for (key, edited) in edited {
            match read.get(&key) {
                Some(read) if *read == edited => {}
                Some(read) => {
                    let member = stored.get_mut(&key).map(Value::take).unwrap_or_default();
                    let member = self.value(member, read, edited, &place.member(&key));
                    stored.insert(key, member);
                }
                None => drop(stored.insert(key, edited)),
            }
        }
        stored
    }

    fn elements(&mut self, stored: Vec<Value>, read: &[Value], edited: Vec<Value>, place: &Place<'_>) -> Vec<Value> {
        if *stored == *read {
            return edited;
        }
        let shown = names(read);
        if shown.is_some() && names(&stored) == shown && names(&edited).is_some() {
            return self.named(stored, read, edited, place);
        }
        if stored.len() != read.len() {
            self.doubt(place, "the type shows another number of elements than there are");
            return edited;
        }
        self.placed(stored, read, edited, place)
    }

    /// Elements of one name belong together, wherever they are.
    fn named(&mut self, stored: Vec<Value>, read: &[Value], edited: Vec<Value>, place: &Place<'_>) -> Vec<Value> {
        let read: BTreeMap<_, _> = read.iter().filter_map(|element| Some((name(element)?, element))).collect();
        let stored = stored.into_iter().filter_map(|element| Some((name(&element)?.to_owned(), element)));
        let mut stored: BTreeMap<_, _> = stored.collect();
        let carried = edited.into_iter().enumerate().map(|(index, edited)| {
            let known = name(&edited).and_then(|name| Some((stored.remove(name)?, *read.get(name)?)));
            match known {
                Some((stored, read)) => self.value(stored, read, edited, &place.member(&index.to_string())),
                None => edited,
            }
        });
        carried.collect()
    }

    /// The elements before and after what was changed belong together, and those between if they are as many.
    fn placed(&mut self, mut stored: Vec<Value>, read: &[Value], edited: Vec<Value>, place: &Place<'_>) -> Vec<Value> {
        let shorter = read.len().min(edited.len());
        let before = read.iter().zip(&edited).take_while(|(read, edited)| read == edited).count();
        let ends = read.iter().rev().zip(edited.iter().rev());
        let alike = ends.take(shorter).take_while(|(read, edited)| read == edited).count();
        let after = alike.min(shorter - before);
        // What both ends could claim is there more than once.
        let claimed = shorter - alike.max(after)..read.len() - after;
        if before + alike > shorter && stored[claimed.clone()] != read[claimed] {
            self.doubt(place, "elements that look the same were added or removed");
        }
        let ending = stored.split_off(read.len() - after);
        let middle = stored.split_off(before);
        let shown = &read[before..read.len() - after];
        let count = edited.len() - after - before;
        let wanted: Vec<_> = edited.into_iter().skip(before).take(count).collect();
        let middle = self.middle(middle, shown, wanted, (place, before));
        stored.into_iter().chain(middle).chain(ending).collect()
    }

    /// As [`placed`](Self::placed), for what is between: `first` is the index of its first element.
    fn middle(
        &mut self,
        stored: Vec<Value>,
        read: &[Value],
        edited: Vec<Value>,
        (place, first): (&Place<'_>, usize),
    ) -> Vec<Value> {
        if read.is_empty() || edited.is_empty() || *stored == *read {
            return edited;
        }
        if read.len() != edited.len() {
            self.doubt(place, "elements without names of their own were changed, and others added or removed");
            return edited;
        }
        let shown: BTreeSet<_> = read.iter().map(Value::to_string).collect();
        let moved = |(read, edited): (&Value, &Value)| read != edited && shown.contains(&edited.to_string());
        if read.iter().zip(&edited).any(moved) {
            self.doubt(place, "elements without names of their own were moved");
        }
        let elements = stored.into_iter().zip(read).zip(edited).enumerate();
        let carried = elements.map(|(index, ((stored, read), edited))| {
            self.value(stored, read, edited, &place.member(&(first + index).to_string()))
        });
        carried.collect()
    }

    fn doubt(&mut self, place: &Place<'_>, fault: &'static str) {
        self.doubt.get_or_insert_with(|| (place.pointer(), fault));
    }
}

/// The names of elements, if each has its own.
fn names(elements: &[Value]) -> Option<BTreeSet<&str>> {
    let mut names = BTreeSet::new();
    elements.iter().all(|element| name(element).is_some_and(|name| names.insert(name))).then_some(names)
}

fn name(element: &Value) -> Option<&str> {
    element.get("name")?.as_str()
}
