//! What a schema demands of values, as it is read.

use regex::Regex;
use serde_json::Value;

use super::Schema;

/// What a schema demands of a value besides its type.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rules {
    pub(crate) required: Vec<String>,
    pub(crate) one_of_values: Vec<Value>,
    pub(crate) minimum: Option<Bound>,
    pub(crate) maximum: Option<Bound>,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) length: Range,
    pub(crate) items: Range,
    pub(crate) properties: Range,
    pub(crate) pattern: Option<Pattern>,
    pub(crate) format: String,
    pub(crate) all_of: Vec<Schema>,
    pub(crate) any_of: Vec<Schema>,
    pub(crate) one_of: Vec<Schema>,
    pub(crate) not: Option<Box<Schema>>,
}

/// How small or large a number may be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bound {
    pub(crate) value: f64,
    /// The bound itself is out of bounds.
    pub(crate) exclusive: bool,
}

/// How few or many there may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) least: Option<usize>,
    pub(crate) most: Option<usize>,
}

/// What a text must match somewhere.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(crate) text: String,
    /// Nothing when the text is no regular expression, which a definition is refused for.
    regex: Option<Regex>,
}

impl Pattern {
    pub(crate) fn parse(text: &str) -> Self {
        Self { text: text.to_owned(), regex: Regex::new(text).ok() }
    }

    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.regex.as_ref().is_none_or(|regex| regex.is_match(text))
    }

    pub(crate) const fn is_valid(&self) -> bool {
        self.regex.is_some()
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Rules {
    pub(super) fn parse(schema: &Value) -> Self {
        let count = |name: &str| schema[name].as_u64().and_then(|count| usize::try_from(count).ok());
        let bound = |name: &str, exclusive: &str| {
            let exclusive = schema[exclusive] == Value::Bool(true);
            schema[name].as_f64().map(|value| Bound { value, exclusive })
        };
        let schemas =
            |name: &str| -> Vec<Schema> { schema[name].as_array().into_iter().flatten().map(Schema::parse).collect() };
        let required = schema["required"].as_array().into_iter().flatten();
        Self {
            required: required.filter_map(|name| name.as_str().map(str::to_owned)).collect(),
            one_of_values: schema["enum"].as_array().cloned().unwrap_or_default(),
            minimum: bound("minimum", "exclusiveMinimum"),
            maximum: bound("maximum", "exclusiveMaximum"),
            multiple_of: schema["multipleOf"].as_f64(),
            length: Range { least: count("minLength"), most: count("maxLength") },
            items: Range { least: count("minItems"), most: count("maxItems") },
            properties: Range { least: count("minProperties"), most: count("maxProperties") },
            pattern: schema["pattern"].as_str().filter(|text| !text.is_empty()).map(Pattern::parse),
            format: schema["format"].as_str().unwrap_or_default().to_owned(),
            all_of: schemas("allOf"),
            any_of: schemas("anyOf"),
            one_of: schemas("oneOf"),
            not: schema.get("not").filter(|not| not.is_object()).map(|not| Box::new(Schema::parse(not))),
        }
    }
}
