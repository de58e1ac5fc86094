//! What is asked, as data.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// A list of requests, made one after the other in a namespace of their own.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
}

/// One request. In every text `{name}` stands for what is kept under that name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// Method and path; one without a slash in front is in the core group and the scenario's namespace.
    #[serde(rename = "do")]
    pub(crate) request: String,
    /// The body as JSON.
    pub(crate) body: Option<Value>,
    /// The body as it is.
    pub(crate) text: Option<String>,
    /// `merge`, `json`, `strategic`, `apply`, or a media type.
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) accept: Option<String>,
    /// The bearer token; an administrator's unless said, none when empty.
    pub(crate) token: Option<String>,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, Values>,
    /// What to keep of the answer: names, and where it is.
    #[serde(default)]
    pub(crate) keep: BTreeMap<String, String>,
    /// What to compare when it is not everything: `status`, `headers`, or `body/FIELD`.
    pub(crate) only: Option<String>,
    /// Ask until this is the code.
    pub(crate) wait: Option<u16>,
    /// Whether the events come in any order.
    #[serde(default)]
    pub(crate) sort: bool,
    /// Where the answers differ, and why; an empty place is everywhere.
    #[serde(default)]
    pub(crate) differs: BTreeMap<String, String>,
}

/// One value of a header, or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Values {
    One(String),
    Several(Vec<String>),
}

impl Values {
    pub(crate) fn all(&self) -> Vec<&str> {
        match self {
            Self::One(value) => vec![value],
            Self::Several(values) => values.iter().map(String::as_str).collect(),
        }
    }
}

/// All scenarios, by file.
pub(crate) fn scenarios() -> Vec<Scenario> {
    let files = [
        include_str!("data/verbs.yaml"),
        include_str!("data/patches.yaml"),
        include_str!("data/delete.yaml"),
        include_str!("data/lists.yaml"),
        include_str!("data/watches.yaml"),
        include_str!("data/rules.yaml"),
        include_str!("data/pods.yaml"),
        include_str!("data/identity.yaml"),
        include_str!("data/server.yaml"),
    ];
    let parse = |text| serde_saphyr::from_str::<BTreeMap<String, Vec<Step>>>(text).unwrap();
    files.into_iter().flat_map(parse).map(|(name, steps)| Scenario { name, steps }).collect()
}

/// What is kept, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept(pub(crate) BTreeMap<String, String>);

impl Kept {
    /// The text with what is kept in it; other braces stay.
    pub(crate) fn fill(&self, text: &str) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            filled.push_str(before);
            let known = after.split_once('}').and_then(|(name, after)| Some((self.0.get(name)?, after)));
            match known {
                Some((value, after)) => {
                    filled.push_str(value);
                    rest = after;
                }
                None => {
                    filled.push('{');
                    rest = after;
                }
            }
        }
        filled + rest
    }

    pub(crate) fn fill_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::from(self.fill(text)),
            Value::Array(items) => items.iter().map(|item| self.fill_value(item)).collect(),
            Value::Object(fields) => {
                let filled = fields.iter().map(|(name, value)| (self.fill(name), self.fill_value(value)));
                Value::Object(filled.collect())
            }
            other => other.clone(),
        }
    }
}
