//! What can be waited for.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde_json::Value;

use crate::error::Error;
use crate::jsonpath::{JsonPath, JsonPathError, printed};
use crate::object::Object;

/// Something that an object may come to be.
///
/// Read from text as `kubectl wait --for` takes it: `create`, `delete`, `condition=Ready`, `condition=Ready=false`,
/// `jsonpath={.status.phase}=Running`, or `jsonpath={.status.loadBalancer.ingress}` for a value of any kind.
///
/// ```
/// use cloudcoil_core::{Object, Predicate, Trim};
///
/// let object = r#"{"metadata": {"name": "a", "generation": 2}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}"#;
/// let object = Object::parse(object, Trim::Nothing)?;
/// let ready: Predicate = "condition=ready".parse()?;
/// assert!(ready.holds(&object)?);
/// # Ok::<(), cloudcoil_core::Error>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub enum Predicate {
    /// There is an object of the name.
    Exists,
    /// There is none, or another of the same name in its place.
    Deleted,
    /// A condition in the object's status has a value, and is about what the object wants now: one that says it was observed
    /// at an older generation does not count. Neither name nor value cares for case.
    Condition {
        /// The condition's type.
        kind: String,
        /// Its status.
        status: String,
    },
    /// A path selects one value.
    JsonPath {
        /// The path.
        path: JsonPath,
        /// The text of the value; any will do if there is none.
        value: Option<String>,
    },
    /// Whatever this says of the object. Its error ends the wait.
    Holds(Arc<PredicateFn>),
}

/// Judges an object.
pub type PredicateFn = dyn Fn(&Object) -> Result<bool, Error> + Send + Sync;

impl Predicate {
    /// That a condition is `True`.
    pub fn condition(kind: impl Into<String>) -> Self {
        Self::Condition { kind: kind.into(), status: "True".to_owned() }
    }

    /// Whether it holds for an object that exists.
    ///
    /// # Errors
    /// Those of a function; [`Error::Misuse`] for a path that selects several values, or one that is no scalar, or that does
    /// not fit the object.
    pub fn holds(&self, object: &Object) -> Result<bool, Error> {
        match self {
            Self::Exists => Ok(true),
            Self::Deleted => Ok(false),
            Self::Condition { kind, status } => Ok(has_condition(&value_of(object)?, kind, status)),
            Self::JsonPath { path, value } => selects(path, value.as_deref(), &value_of(object)?),
            Self::Holds(judge) => judge(object),
        }
    }
}

/// As `kubectl wait --for` takes it; a function is `custom`.
impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists => f.write_str("create"),
            Self::Deleted => f.write_str("delete"),
            Self::Condition { kind, status } if status == "True" => write!(f, "condition={kind}"),
            Self::Condition { kind, status } => write!(f, "condition={kind}={status}"),
            Self::JsonPath { path, value: None } => write!(f, "jsonpath={path}"),
            Self::JsonPath { path, value: Some(value) } => write!(f, "jsonpath={path}={value}"),
            Self::Holds(_) => f.write_str("custom"),
        }
    }
}

impl fmt::Debug for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Predicate {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let lower = text.to_ascii_lowercase();
        if lower == "create" {
            Ok(Self::Exists)
        } else if lower == "delete" {
            Ok(Self::Deleted)
        } else if lower.starts_with(CONDITION) {
            condition(&text[CONDITION.len()..])
        } else if lower.starts_with(JSONPATH) {
            json_path(&text[JSONPATH.len()..])
        } else {
            let known = "create, delete, condition=NAME[=VALUE], or jsonpath=PATH[=VALUE]";
            Err(Error::misuse(format!("{text:?} cannot be waited for: it must be {known}")))
        }
    }
}

fn condition(text: &str) -> Result<Predicate, Error> {
    let (kind, status) = text.split_once('=').unwrap_or((text, "True"));
    if kind.is_empty() || status.is_empty() {
        return Err(Error::misuse(format!("{text:?} is no condition: it must be NAME or NAME=VALUE")));
    }
    Ok(Predicate::Condition { kind: kind.to_owned(), status: status.to_owned() })
}

fn json_path(text: &str) -> Result<Predicate, Error> {
    let end = end_of_path(text);
    let (path, rest) = text.split_at(end);
    let path = JsonPath::parse(unquoted(path)).map_err(|error| Error::misuse(error.to_string()))?;
    let value = match rest.strip_prefix('=').map(unquoted) {
        None if rest.is_empty() => None,
        None => return Err(Error::misuse(format!("{rest:?} after a path must begin with '='"))),
        Some("") => return Err(Error::misuse("the value that a path is to have must not be empty")),
        Some(value) => Some(value.to_owned()),
    };
    Ok(Predicate::JsonPath { path, value })
}

/// Where the path ends that a text begins with: behind its braces, or at a `=` outside of brackets and quotes.
fn end_of_path(text: &str) -> usize {
    let (mut depth, mut quote) = (0_u32, None);
    let braced = text.trim_start_matches(['\'', '"']).starts_with('{');
    let skipped = if braced { text.len() - text.trim_start_matches(['\'', '"']).len() } else { 0 };
    for (at, c) in text.char_indices().skip(skipped) {
        match (c, quote) {
            (_, Some(open)) if c == open => quote = None,
            (_, Some(_)) => {}
            ('\'' | '"', None) if depth > 0 => quote = Some(c),
            ('[' | '(' | '{', None) => depth += 1,
            (']' | ')' | '}', None) => {
                depth = depth.saturating_sub(1);
                if braced && depth == 0 {
                    let closing = text[at + 1..].len() - text[at + 1..].trim_start_matches(['\'', '"']).len();
                    return at + 1 + closing;
                }
            }
            ('=', None) if depth == 0 => return at,
            _ => {}
        }
    }
    text.len()
}

fn unquoted(text: &str) -> &str {
    text.trim_matches(['\'', '"'])
}

fn value_of(object: &Object) -> Result<Value, Error> {
    Ok(object.decode()?)
}

fn has_condition(object: &Value, kind: &str, status: &str) -> bool {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let text = |condition: &'_ Value, field: &str| condition.get(field).and_then(Value::as_str).map(str::to_owned);
    let found = conditions
        .into_iter()
        .flatten()
        .find(|condition| text(condition, "type").is_some_and(|found| found.eq_ignore_ascii_case(kind)));
    let Some(condition) = found else { return false };
    let generation = object.pointer("/metadata/generation").and_then(Value::as_i64);
    let observed = condition.get("observedGeneration").or_else(|| object.pointer("/status/observedGeneration"));
    let is_current = match (generation, observed.and_then(Value::as_i64)) {
        (Some(generation), Some(observed)) => observed >= generation,
        _ => true,
    };
    is_current && text(condition, "status").is_some_and(|found| found.eq_ignore_ascii_case(status))
}

fn selects(path: &JsonPath, wanted: Option<&str>, object: &Value) -> Result<bool, Error> {
    let found = match path.find(object) {
        // The list is not as long yet.
        Err(JsonPathError::OutOfBounds { .. }) => return Ok(false),
        found => found.map_err(|error| Error::misuse(format!("{path}: {error}")))?,
    };
    match (&found[..], wanted) {
        ([] | [Value::Null], _) => Ok(false),
        (_, None) => Ok(true),
        ([Value::Array(_) | Value::Object(_)], Some(_)) => {
            Err(Error::misuse(format!("{path} selects an object or a list, which cannot be compared")))
        }
        ([value], Some(wanted)) => Ok(printed(value).trim() == wanted.trim()),
        (several, Some(_)) => Err(Error::misuse(format!("{path} selects {} values", several.len()))),
    }
}

const CONDITION: &str = "condition=";
const JSONPATH: &str = "jsonpath=";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::object::Trim;

    fn holds(predicate: &str, object: &Value) -> Result<bool, Error> {
        let mut object = object.clone();
        object["metadata"]["name"] = json!("a");
        let object = Object::parse(&object.to_string(), Trim::Nothing).unwrap();
        predicate.parse::<Predicate>().unwrap().holds(&object)
    }

    #[test]
    fn text_is_read_as_kubectl_reads_it_and_printed_back() {
        for (text, printed) in [
            ("create", "create"),
            ("Delete", "delete"),
            ("condition=Ready", "condition=Ready"),
            ("condition=Ready=True", "condition=Ready"),
            ("condition=a/b=False", "condition=a/b=False"),
            ("jsonpath={.status.phase}=Running", "jsonpath={.status.phase}=Running"),
            ("jsonpath='{.status.phase}'=Running", "jsonpath={.status.phase}=Running"),
            ("jsonpath={.a[?(@.b==\"}=\")].c}=x=y", "jsonpath={.a[?(@.b==\"}=\")].c}=x=y"),
            ("jsonpath=.status.phase=Running", "jsonpath=.status.phase=Running"),
            ("jsonpath=.a[?(@.b=='x')].c='1 2'", "jsonpath=.a[?(@.b=='x')].c=1 2"),
            ("jsonpath={.status}", "jsonpath={.status}"),
        ] {
            let predicate: Predicate = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(predicate.to_string(), printed);
        }
        for text in [
            "",
            "ready",
            "condition=",
            "condition==x",
            "condition=a=",
            "jsonpath={.a",
            "jsonpath={.a}=",
            "jsonpath={.a}x",
        ] {
            assert!(matches!(text.parse::<Predicate>(), Err(Error::Misuse(_))), "{text}");
        }
    }

    #[test]
    fn a_condition_must_be_about_what_is_wanted_now() {
        let object = |generation: i64, condition: Value, observed: Value| {
            json!({"metadata": {"generation": generation}, "status": {"conditions": [{"type": "Other"}, condition],
                "observedGeneration": observed}})
        };
        let ready = |status: &str| json!({"type": "Ready", "status": status});
        assert_eq!(holds("condition=ready=true", &object(2, ready("True"), json!(2))), Ok(true));
        assert_eq!(holds("condition=Ready", &object(2, ready("True"), Value::Null)), Ok(true));
        assert_eq!(holds("condition=Ready", &object(2, ready("False"), json!(2))), Ok(false));
        assert_eq!(holds("condition=Ready=false", &object(2, ready("False"), json!(2))), Ok(true));
        assert_eq!(holds("condition=Ready", &object(2, ready("True"), json!(1))), Ok(false), "it is old");
        let own = json!({"type": "Ready", "status": "True", "observedGeneration": 2});
        assert_eq!(holds("condition=Ready", &object(2, own, json!(1))), Ok(true), "the condition's own goes before");
        assert_eq!(holds("condition=Ready", &json!({"status": {"conditions": 3}})), Ok(false));
        assert_eq!(holds("condition=Ready", &json!({})), Ok(false));
    }

    #[test]
    fn a_path_selects_one_scalar_that_reads_the_same() {
        let object = json!({"status": {"phase": "Running", "n": 3, "on": true, "list": [1, 2], "none": null}});
        for (text, result) in [
            ("jsonpath={.status.phase}=Running", true),
            ("jsonpath={.status.phase}=running", false),
            ("jsonpath={.status.n}=3", true),
            ("jsonpath={.status.on}=true", true),
            ("jsonpath={.status.gone}=x", false),
            ("jsonpath={.status.gone}", false),
            ("jsonpath={.status.none}", false),
            ("jsonpath={.status.list}", true),
            ("jsonpath={.status.list[5]}=1", false),
        ] {
            assert_eq!(holds(text, &object), Ok(result), "{text}");
        }
        for text in ["jsonpath={.status.list}=1", "jsonpath={.status.list[*]}=1", "jsonpath={.status.phase[0]}=1"] {
            assert!(matches!(holds(text, &object), Err(Error::Misuse(_))), "{text}");
        }
    }
}
