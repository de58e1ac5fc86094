//! JSONPath as Kubernetes has it: printer columns, `kubectl wait --for=jsonpath`, scale paths.
//!
//! The dialect is that of `kubectl`, with its own rules for quotes, slices and comparisons. See
//! <https://kubernetes.io/docs/reference/kubectl/jsonpath/>.

mod eval;
mod parse;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use serde_json::Value;
use thiserror::Error;

/// One parsed expression, such as `.status.conditions[?(@.type=="Ready")].status`.
///
/// ```
/// use cloudcoil_core::JsonPath;
/// use serde_json::json;
///
/// let ready = JsonPath::parse(r#".status.conditions[?(@.type=="Ready")].status"#)?;
/// let pod = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
/// assert_eq!(ready.find(&pod)?, [&json!("True")]);
/// assert!(ready.find(&json!({}))?.is_empty());
///
/// // A dot within a key is escaped, within quotes too.
/// let zone = JsonPath::parse(r".labels['example\.com/zone']")?;
/// assert_eq!(zone.find(&json!({"labels": {"example.com/zone": "a"}}))?, [&json!("a")]);
/// # Ok::<(), cloudcoil_core::jsonpath::JsonPathError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    text: String,
    steps: Vec<Step>,
}

impl JsonPath {
    /// Reads an expression. As `kubectl` does, takes `.a.b`, `a.b`, `{.a.b}` and `{a.b}` for the same; templates
    /// with text around expressions, and `range`, are not expressions.
    ///
    /// # Errors
    /// [`JsonPathError::Syntax`] with the place.
    pub fn parse(text: &str) -> Result<Self, JsonPathError> {
        Ok(Self { text: text.to_owned(), steps: parse::expression(text)? })
    }

    /// Everything in `value` that the expression selects, in order; nothing where fields are missing.
    ///
    /// # Errors
    /// An index out of bounds, an index or filter on what is no list, a comparison of what cannot be compared,
    /// or more than 100,000 values at some step.
    pub fn find<'a>(&'a self, value: &'a Value) -> Result<Vec<&'a Value>, JsonPathError> {
        eval::steps(&self.steps, vec![value])
    }
}

impl FromStr for JsonPath {
    type Err = JsonPathError;

    fn from_str(text: &str) -> Result<Self, JsonPathError> {
        Self::parse(text)
    }
}

/// As it was given to [`JsonPath::parse`].
impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// An expression that cannot be read, or that does not fit the value it is applied to.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum JsonPathError {
    /// The text is no expression.
    #[error("JSONPath {text:?} at byte {at}: {fault}")]
    Syntax {
        /// The whole text.
        text: String,
        /// Where in it, in bytes.
        at: usize,
        /// What is wrong there.
        fault: SyntaxFault,
    },
    /// An index or a slice reaches outside of a list.
    #[error("index {index} is out of bounds of a list of {length}")]
    OutOfBounds {
        /// The index, counted from the start; negative when it lies before the start.
        index: i64,
        /// How long the list is.
        length: usize,
    },
    /// A slice ends before it starts.
    #[error("a slice starts at {start}, after its end at {end}")]
    EndsBeforeStart {
        /// The start, counted from the list's start.
        start: i64,
        /// The end, counted from the list's start.
        end: i64,
    },
    /// An index, slice or filter is applied to something else than a list.
    #[error("{found} is no list")]
    NotAList {
        /// What is there instead, such as `a string`.
        found: &'static str,
    },
    /// A filter compares values of different types, or objects, lists or nulls.
    #[error("{left} cannot be compared with {right}")]
    NotComparable {
        /// What the left side gives.
        left: &'static str,
        /// What the right side gives.
        right: &'static str,
    },
    /// One side of a comparison gives several values.
    #[error("a comparison has {count} values on one side")]
    SeveralCompared {
        /// How many.
        count: usize,
    },
    /// The expression selects too many values on its way.
    #[error("the expression selects more than {limit} values")]
    TooMany {
        /// The most that are allowed.
        limit: usize,
    },
}

/// What is wrong with the text of an expression.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SyntaxFault {
    /// The text ends, or a line does, within the named part.
    #[error("{0} has no end")]
    Unterminated(&'static str),
    /// A character that cannot stand there.
    #[error("unexpected {0:?}")]
    Unexpected(char),
    /// A word that is neither `true` nor `false` where a value must stand.
    #[error("unknown word {0:?}")]
    UnknownWord(String),
    /// The text in brackets is no index, slice, key in single quotes, or filter.
    #[error("invalid index {0:?}")]
    Index(String),
    /// A slice with a step below 1.
    #[error("the step of a slice must be at least 1")]
    Step,
    /// A number that is none.
    #[error("invalid number {0:?}")]
    Number(String),
    /// A quoted text with an escape that does not exist.
    #[error("invalid escape in {0}")]
    Escape(String),
    /// An operator that does not exist.
    #[error("unknown operator {0:?}")]
    Operator(String),
    /// `..` twice in a row.
    #[error("'..' follows '..'")]
    RecursiveTwice,
    /// Something follows the closing brace.
    #[error("only one expression in braces is allowed")]
    Template,
}

/// A value as `kubectl` prints it: texts without quotes, objects and lists as compact JSON.
///
/// ```
/// use cloudcoil_core::jsonpath::printed;
/// use serde_json::json;
///
/// assert_eq!(printed(&json!("a b")), "a b");
/// assert_eq!(printed(&json!([1, "<x>"])), r#"[1,"\u003cx\u003e"]"#);
/// ```
pub fn printed(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if !number.is_i64() && !number.is_u64() => printed_float(float),
            _ => number.to_string(),
        },
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => {
            let json = value.to_string();
            // These stand only within strings, where Go's encoder escapes them.
            json.chars().fold(String::with_capacity(json.len()), |mut out, c| {
                match c {
                    '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
                    _ => out.push(c),
                }
                out
            })
        }
    }
}

/// The shortest text of a number, with an exponent below 1e-4 and from 1e21.
fn printed_float(float: f64) -> String {
    let scientific = format!("{float:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(exponent) if exponent < -4 => format!("{digits}e-{:02}", -exponent),
        Ok(exponent) if exponent >= 21 => format!("{digits}e+{exponent:02}"),
        _ => float.to_string(),
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// The field of this name.
    Field(String),
    /// Every value of an object or list.
    Wildcard,
    /// The value and everything within that can hold something.
    Recursive,
    Slice(Slice),
    /// What each of these selects, one after the other.
    Union(Vec<Vec<Self>>),
    Filter(Filter),
    /// A value in place of all that was selected.
    Text(Value),
    /// A value in place of each that was selected.
    Literal(Value),
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Slice {
    start: i64,
    end: SliceEnd,
    step: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum SliceEnd {
    /// The list's end.
    Open,
    At(i64),
    /// Right after the start: an index.
    Single,
}

#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: Vec<Step>,
    /// `None` asks whether the left side selects anything.
    test: Option<(Operator, Vec<Step>)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}
