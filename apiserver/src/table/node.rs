//! Reading objects: what is absent is empty, as in the API server's own types.

use cloudcoil_core::k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use cloudcoil_core::{Quantity, Selector};
use serde_json::Value;

/// A value within an object, or nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node<'a>(Option<&'a Value>);

impl<'a> Node<'a> {
    pub(super) fn of(value: &'a Value) -> Self {
        Self(Some(value).filter(|value| !value.is_null()))
    }

    /// The value at a path of field names with dots between.
    pub(super) fn at(self, path: &str) -> Self {
        path.split('.').fold(self, Self::field)
    }

    /// The value of a field, whose name may have dots.
    pub(super) fn field(self, name: &str) -> Self {
        Self(self.0.and_then(|value| value.get(name)).filter(|value| !value.is_null()))
    }

    pub(super) const fn is_set(self) -> bool {
        self.0.is_some()
    }

    pub(super) fn text(self) -> &'a str {
        self.0.and_then(Value::as_str).unwrap_or_default()
    }

    /// The text, or another where it is empty or absent.
    pub(super) fn text_or(self, other: &'a str) -> &'a str {
        match self.text() {
            "" => other,
            text => text,
        }
    }

    /// The text even if empty, or another where it is absent.
    pub(super) fn set_or(self, other: &'a str) -> &'a str {
        if self.is_set() { self.text() } else { other }
    }

    pub(super) fn integer(self) -> i64 {
        self.integer_or(0)
    }

    pub(super) fn integer_or(self, other: i64) -> i64 {
        self.0.and_then(Value::as_i64).unwrap_or(other)
    }

    pub(super) fn boolean(self) -> bool {
        self.0.and_then(Value::as_bool).unwrap_or(false)
    }

    pub(super) fn boolean_or(self, other: bool) -> bool {
        self.0.and_then(Value::as_bool).unwrap_or(other)
    }

    /// A number or a text, as text.
    pub(super) fn int_or_text(self) -> Option<String> {
        match self.0? {
            Value::Number(number) => Some(number.to_string()),
            Value::String(text) => Some(text.clone()),
            _ => None,
        }
    }

    /// A quantity as the API server prints it; nothing is zero.
    pub(super) fn quantity(self) -> String {
        match self.0 {
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::String(text)) => {
                Quantity::parse(text.as_str()).map_or_else(|_| text.clone(), |quantity| quantity.served())
            }
            _ => "0".to_owned(),
        }
    }

    pub(super) fn list(self) -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator {
        self.0.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default().iter().map(Self::of)
    }

    pub(super) fn entries(self) -> impl Iterator<Item = (&'a str, Self)> {
        self.0.and_then(Value::as_object).into_iter().flatten().map(|(key, value)| (key.as_str(), Self::of(value)))
    }

    /// How many values a list or map has.
    pub(super) fn count(self) -> i64 {
        let count = match self.0 {
            Some(Value::Array(list)) => list.len(),
            Some(Value::Object(map)) => map.len(),
            _ => 0,
        };
        i64::try_from(count).unwrap_or(i64::MAX)
    }

    pub(super) fn texts(self) -> impl Iterator<Item = &'a str> {
        self.list().map(Self::text)
    }

    pub(super) fn joined(self) -> String {
        self.texts().collect::<Vec<_>>().join(",")
    }

    /// The item of a list whose `type` is this, and its `status` is `True`.
    pub(super) fn has_condition(self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|condition| condition.field("status").text() == "True")
    }

    /// The first item of a list whose `type` is this.
    pub(super) fn condition(self, kind: &str) -> Option<Self> {
        self.list().find(|condition| condition.field("type").text() == kind)
    }

    /// A map of labels as `a=b,c=d`, in order of its keys.
    pub(super) fn labels(self) -> String {
        let mut pairs: Vec<_> = self.entries().map(|(key, value)| format!("{key}={}", value.text())).collect();
        pairs.sort();
        if pairs.is_empty() { NONE.to_owned() } else { pairs.join(",") }
    }

    /// A `LabelSelector` in the syntax of selectors; `None` when it is none. One that is absent selects nothing, which
    /// has no text, as the one that selects everything.
    pub(super) fn selector(self) -> Option<String> {
        let Some(value) = self.0 else { return Some(String::new()) };
        let selector: LabelSelector = serde_json::from_value(value.clone()).ok()?;
        Some(Selector::try_from(&selector).ok()?.to_string())
    }

    /// The same, with words for none and for what is none.
    pub(super) fn selector_or_none(self) -> String {
        match self.selector().as_deref() {
            None => "<error>".to_owned(),
            Some("") => NONE.to_owned(),
            Some(text) => text.to_owned(),
        }
    }

    /// The names and the images of the containers in a pod's spec, each list by comma.
    pub(super) fn containers(self) -> [String; 2] {
        ["name", "image"].map(|field| {
            self.field("containers").list().map(|container| container.field(field).text()).collect::<Vec<_>>().join(",")
        })
    }

    pub(super) fn name(self) -> &'a str {
        self.at("metadata.name").text()
    }

    pub(super) fn is_deleting(self) -> bool {
        self.at("metadata.deletionTimestamp").is_set()
    }

    pub(super) fn annotation(self, key: &str) -> Self {
        self.at("metadata.annotations").field(key)
    }
}

/// The first `most` texts by comma, and how many more there are.
pub(super) fn some_of(texts: &[String], most: usize) -> String {
    match texts.len().checked_sub(most) {
        Some(more @ 1..) => format!("{} + {more} more...", texts[..most].join(",")),
        _ => texts.join(","),
    }
}

pub(super) const NONE: &str = "<none>";
pub(super) const UNSET: &str = "<unset>";
pub(super) const UNKNOWN: &str = "<unknown>";
