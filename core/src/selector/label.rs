//! Label selectors: the value, its builder and its evaluation.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use super::name::{NameFault, check_label_key, check_label_value};
use super::parse;

/// A label selector: a set of requirements that must all hold. The empty selector matches everything.
///
/// Every value of this type is valid by the API server's rules, so [`Display`](fmt::Display) prints text that the
/// server accepts and that parses back to the same value. Requirements are kept in order of their keys and
/// without duplicates, and `==` is printed as `=`.
///
/// ```
/// use cloudcoil_core::Selector;
///
/// let selector: Selector = "tier notin (cache), app in (web, api)".parse()?;
/// assert_eq!(selector.to_string(), "app in (api,web),tier notin (cache)");
/// assert!(selector.matches(|key| (key == "app").then_some("web")));
///
/// let built = Selector::new().is_in("app", ["web", "api"])?.not_in("tier", ["cache"])?;
/// assert_eq!(built, selector);
/// # Ok::<(), cloudcoil_core::SelectorError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Selector(Vec<Requirement>);

impl Selector {
    /// The selector that matches everything.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Reads the API server's syntax: `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b)`, `a`, `!a`, `a>1`, `a<1`,
    /// joined by commas, blanks between tokens. A value that is left out is the empty value.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        parse::parse(text)
    }

    /// Also requires the label to be there with this value.
    pub fn eq(self, key: impl Into<String>, value: impl Into<String>) -> Result<Self, SelectorError> {
        Ok(self.and(Requirement::new(key, Test::Equals(value.into()))?))
    }

    /// Also requires the label to be absent or to have another value.
    pub fn not_eq(self, key: impl Into<String>, value: impl Into<String>) -> Result<Self, SelectorError> {
        Ok(self.and(Requirement::new(key, Test::NotEquals(value.into()))?))
    }

    /// Also requires the label to be there with one of these values, of which there must be one.
    pub fn is_in<V: Into<String>>(
        self,
        key: impl Into<String>,
        values: impl IntoIterator<Item = V>,
    ) -> Result<Self, SelectorError> {
        Ok(self.and(Requirement::new(key, Test::In(values.into_iter().map(Into::into).collect()))?))
    }

    /// Also requires the label to be absent or to have none of these values, of which there must be one.
    pub fn not_in<V: Into<String>>(
        self,
        key: impl Into<String>,
        values: impl IntoIterator<Item = V>,
    ) -> Result<Self, SelectorError> {
        Ok(self.and(Requirement::new(key, Test::NotIn(values.into_iter().map(Into::into).collect()))?))
    }

    /// Also requires the label to be there, with any value.
    pub fn exists(self, key: impl Into<String>) -> Result<Self, SelectorError> {
        Ok(self.and(Requirement::new(key, Test::Exists)?))
    }

    /// Also requires the label to be absent.
    pub fn not_exists(self, key: impl Into<String>) -> Result<Self, SelectorError> {
        Ok(self.and(Requirement::new(key, Test::NotExists)?))
    }

    /// Also requires the label to be there with an integer greater than `bound`, which is at least 0.
    pub fn greater_than(self, key: impl Into<String>, bound: i64) -> Result<Self, SelectorError> {
        Ok(self.and(Requirement::new(key, Test::GreaterThan(bound))?))
    }

    /// Also requires the label to be there with an integer less than `bound`, which is at least 0.
    pub fn less_than(self, key: impl Into<String>, bound: i64) -> Result<Self, SelectorError> {
        Ok(self.and(Requirement::new(key, Test::LessThan(bound))?))
    }

    /// Also requires what `requirement` says.
    #[must_use]
    pub fn and(mut self, requirement: Requirement) -> Self {
        self.insert(requirement);
        self
    }

    /// The requirements, in order of their keys.
    pub fn requirements(&self) -> &[Requirement] {
        &self.0
    }

    /// Whether there is no requirement, so that everything matches.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether labels, looked up by `label`, fulfil every requirement.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|requirement| requirement.matches(label(&requirement.key)))
    }

    /// Whether `labels` fulfil every requirement.
    pub fn matches_map(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches(|key| labels.get(key).map(String::as_str))
    }

    /// Whether labels given as pairs fulfil every requirement; of pairs with one key the last counts.
    pub fn matches_pairs<'a, I>(&self, labels: I) -> bool
    where
        I: IntoIterator<Item = (&'a str, &'a str)> + Clone,
    {
        let lookup =
            |wanted: &str| labels.clone().into_iter().filter(|(key, _)| *key == wanted).map(|(_, value)| value).last();
        self.matches(lookup)
    }

    /// The only value that the label `key` may have, when a requirement says so: what an index can be asked for.
    pub fn exact(&self, key: &str) -> Option<&str> {
        self.0.iter().filter(|requirement| requirement.key == key).find_map(Requirement::exact)
    }

    pub(super) fn insert(&mut self, requirement: Requirement) {
        if let Err(index) = self.0.binary_search(&requirement) {
            self.0.insert(index, requirement);
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        Self::parse(text)
    }
}

impl TryFrom<&str> for Selector {
    type Error = SelectorError;

    fn try_from(text: &str) -> Result<Self, SelectorError> {
        Self::parse(text)
    }
}

impl TryFrom<&String> for Selector {
    type Error = SelectorError;

    fn try_from(text: &String) -> Result<Self, SelectorError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for Selector {
    type Error = SelectorError;

    fn try_from(text: String) -> Result<Self, SelectorError> {
        Self::parse(&text)
    }
}

/// The selector inside an object, as in a Deployment's `spec.selector`; the empty one matches everything.
///
/// A field that is absent altogether matches nothing, which is for the caller to tell.
impl TryFrom<&LabelSelector> for Selector {
    type Error = SelectorError;

    fn try_from(selector: &LabelSelector) -> Result<Self, SelectorError> {
        let mut all = Self::new();
        for (key, value) in selector.match_labels.iter().flatten() {
            all.insert(Requirement::new(key, Test::Equals(value.clone()))?);
        }
        for expression in selector.match_expressions.iter().flatten() {
            all.insert(Requirement::try_from(expression)?);
        }
        Ok(all)
    }
}

/// One requirement of a [`Selector`]: what the label `key` must be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    key: String,
    test: Test,
}

impl Requirement {
    /// A requirement on the label `key`; an error when the key or a value is no label syntax, or a set is empty.
    pub fn new(key: impl Into<String>, test: Test) -> Result<Self, SelectorError> {
        let key = key.into();
        if let Err(fault) = check_label_key(&key) {
            return Err(SelectorError::Key { key, at: None, fault });
        }
        let check = |value: &String| {
            check_label_value(value).map_err(|fault| SelectorError::Value {
                key: key.clone(),
                value: value.clone(),
                at: None,
                fault,
            })
        };
        match &test {
            Test::Equals(value) | Test::NotEquals(value) => check(value)?,
            Test::In(values) | Test::NotIn(values) if values.is_empty() => {
                return Err(SelectorError::NoValues { key });
            }
            Test::In(values) | Test::NotIn(values) => values.iter().try_for_each(check)?,
            Test::GreaterThan(bound) | Test::LessThan(bound) => check(&bound.to_string())?,
            Test::Exists | Test::NotExists => {}
        }
        Ok(Self { key, test })
    }

    /// For the parser, which has checked key and values.
    pub(super) fn raw(key: &str, test: Test) -> Self {
        Self { key: key.to_owned(), test }
    }

    /// The key of the label.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What the label must be.
    pub const fn test(&self) -> &Test {
        &self.test
    }

    /// Whether a label of this value, or its absence, fulfils the requirement.
    pub fn matches(&self, value: Option<&str>) -> bool {
        match (&self.test, value) {
            (Test::Equals(wanted), value) => value == Some(wanted),
            (Test::NotEquals(unwanted), value) => value != Some(unwanted),
            (Test::In(wanted), value) => value.is_some_and(|value| wanted.contains(value)),
            (Test::NotIn(unwanted), value) => value.is_none_or(|value| !unwanted.contains(value)),
            (Test::Exists, value) => value.is_some(),
            (Test::NotExists, value) => value.is_none(),
            (Test::GreaterThan(bound), value) => integer(value).is_some_and(|value| value > *bound),
            (Test::LessThan(bound), value) => integer(value).is_some_and(|value| value < *bound),
        }
    }

    fn exact(&self) -> Option<&str> {
        match &self.test {
            Test::Equals(value) => Some(value),
            Test::In(values) if values.len() == 1 => values.first().map(String::as_str),
            _ => None,
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, test } = self;
        match test {
            Test::Equals(value) => write!(f, "{key}={value}"),
            Test::NotEquals(value) => write!(f, "{key}!={value}"),
            Test::In(values) => write!(f, "{key} in {}", Values(values)),
            Test::NotIn(values) => write!(f, "{key} notin {}", Values(values)),
            Test::Exists => write!(f, "{key}"),
            Test::NotExists => write!(f, "!{key}"),
            Test::GreaterThan(bound) => write!(f, "{key}>{bound}"),
            Test::LessThan(bound) => write!(f, "{key}<{bound}"),
        }
    }
}

impl TryFrom<&LabelSelectorRequirement> for Requirement {
    type Error = SelectorError;

    fn try_from(expression: &LabelSelectorRequirement) -> Result<Self, SelectorError> {
        let LabelSelectorRequirement { key, operator, values } = expression;
        let values: BTreeSet<String> = values.iter().flatten().cloned().collect();
        let test = match operator.as_str() {
            "In" => Test::In(values),
            "NotIn" => Test::NotIn(values),
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                return Err(SelectorError::UnwantedValues { key: key.clone(), operator: operator.clone() });
            }
            "Exists" => Test::Exists,
            "DoesNotExist" => Test::NotExists,
            _ => return Err(SelectorError::Operator { key: key.clone(), operator: operator.clone() }),
        };
        Self::new(key, test)
    }
}

/// What a [`Requirement`] asks of a label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the grammar is fixed, and whoever evaluates it must handle every case")]
pub enum Test {
    /// It is there with this value.
    Equals(String),
    /// It is absent or has another value.
    NotEquals(String),
    /// It is there with one of these values.
    In(BTreeSet<String>),
    /// It is absent or has none of these values.
    NotIn(BTreeSet<String>),
    /// It is there.
    Exists,
    /// It is absent.
    NotExists,
    /// It is there with a decimal integer greater than this one.
    GreaterThan(i64),
    /// It is there with a decimal integer less than this one.
    LessThan(i64),
}

/// Why something is no label selector. Offsets count bytes from the start of the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectorError {
    /// A token stands where it may not.
    #[error("label selector: found {found} at offset {at}, expected {expected}")]
    Syntax {
        /// The offset of the token.
        at: usize,
        /// The token, in quotes, or "the end".
        found: String,
        /// What may stand there.
        expected: &'static str,
    },
    /// A key that is no label key.
    #[error("label selector: key {key:?}{}: {fault}", offset(*at))]
    Key {
        /// The key.
        key: String,
        /// Its offset, when it was parsed.
        at: Option<usize>,
        /// What is wrong with it.
        fault: NameFault,
    },
    /// A value that is no label value.
    #[error("label selector: value {value:?} for key {key:?}{}: {fault}", offset(*at))]
    Value {
        /// The key it belongs to.
        key: String,
        /// The value.
        value: String,
        /// Its offset, when it was parsed.
        at: Option<usize>,
        /// What is wrong with it.
        fault: NameFault,
    },
    /// `>` or `<` against something that is no integer.
    #[error(
        "label selector: value {value:?} for key {key:?} at offset {at}: '>' and '<' compare with a 64-bit integer"
    )]
    NotAnInteger {
        /// The key it belongs to.
        key: String,
        /// The value.
        value: String,
        /// Its offset.
        at: usize,
    },
    /// `In` or `NotIn` without values.
    #[error("label selector: key {key:?}: In and NotIn need at least one value")]
    NoValues {
        /// The key.
        key: String,
    },
    /// `Exists` or `DoesNotExist` with values.
    #[error("label selector: key {key:?}: {operator} takes no values")]
    UnwantedValues {
        /// The key.
        key: String,
        /// The operator.
        operator: String,
    },
    /// An operator that `matchExpressions` does not have.
    #[error("label selector: key {key:?}: {operator:?} is not one of In, NotIn, Exists, DoesNotExist")]
    Operator {
        /// The key.
        key: String,
        /// The operator.
        operator: String,
    },
}

struct Values<'a>(&'a BTreeSet<String>);

impl fmt::Display for Values<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (index, value) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{value}")?;
        }
        f.write_str(")")
    }
}

fn integer(value: Option<&str>) -> Option<i64> {
    value?.parse().ok()
}

fn offset(at: Option<usize>) -> String {
    at.map(|at| format!(" at offset {at}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Selector {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn syntax(at: usize, found: &str, expected: &'static str) -> SelectorError {
        SelectorError::Syntax { at, found: found.to_owned(), expected }
    }

    #[test]
    fn a_missing_label_is_unequal_and_absent() {
        let absent = ["env!=prod", "env notin (prod)", "!env"];
        let present = ["env", "env in (prod)", "env=", "env==prod", "env>1", "env<1", "env in ()"];
        for text in absent {
            assert!(parse(text).matches(|_| None), "{text}");
        }
        for text in present {
            assert!(!parse(text).matches(|_| None), "{text}");
        }
        for text in ["env", "env=", "env in ()", "env in (,a)", "env!=a"] {
            assert!(parse(text).matches(|_| Some("")), "{text}");
        }
        for text in ["!env", "env!=", "env notin ()", "env>0", "env<0"] {
            assert!(!parse(text).matches(|_| Some("")), "{text}");
        }
    }

    #[test]
    fn numbers_compare_as_numbers() {
        let label = |value: &'static str| move |_: &str| Some(value);
        assert!(parse("n>9").matches(label("10")) && !parse("n>10").matches(label("10")));
        assert!(parse("n<10").matches(label("9")) && parse("n<007").matches(label("-5")));
        for value in ["x", "", "1.5", "9223372036854775808", " 1"] {
            assert!(!parse("n>0").matches(label(value)) && !parse("n<9").matches(label(value)), "{value:?}");
        }
    }

    #[test]
    fn text_is_canonical_and_parses_back() {
        for (text, canonical) in [
            ("", ""),
            (" \t\r\n", ""),
            ("a", "a"),
            ("! a", "!a"),
            ("a = b", "a=b"),
            ("a==b", "a=b"),
            ("a!=b", "a!=b"),
            ("a=", "a="),
            ("a!=,b==", "a!=,b="),
            ("b,a", "a,b"),
            ("a,a", "a"),
            ("a in(b,c)", "a in (b,c)"),
            ("a in ( c , b , c )", "a in (b,c)"),
            ("a notin ()", "a notin ()"),
            ("a in (b,)", "a in (,b)"),
            ("a in (,)", "a in ()"),
            ("a in (b,,c)", "a in (,b,c)"),
            ("in in (in,notin)", "in in (in,notin)"),
            ("notin,in", "in,notin"),
            ("a=in", "a=in"),
            ("a > 007,a<8", "a>7,a<8"),
            ("example.com/a_b.c=X-1", "example.com/a_b.c=X-1"),
        ] {
            let selector = parse(text);
            assert_eq!(selector.to_string(), canonical, "{text}");
            assert_eq!(parse(canonical), selector, "{text}");
        }
    }

    #[test]
    fn errors_name_the_token_and_its_place() {
        for (text, error) in [
            (",a", syntax(0, "','", "a key or '!'")),
            ("a,", syntax(2, "the end", "a key or '!'")),
            ("a,,b", syntax(2, "','", "a key or '!'")),
            ("!", syntax(1, "the end", "a key")),
            ("!!a", syntax(1, "'!'", "a key")),
            ("!a=b", syntax(2, "'='", "',' or the end")),
            ("a b", syntax(2, "'b'", "'=', '==', '!=', 'in', 'notin', '>', '<', ',' or the end")),
            ("a=b c", syntax(4, "'c'", "',' or the end")),
            ("a===b", syntax(3, "'='", "a value")),
            ("a=!b", syntax(2, "'!'", "a value")),
            ("a in b", syntax(5, "'b'", "'('")),
            ("a notin", syntax(7, "the end", "'('")),
            ("a in (b", syntax(7, "the end", "a value, ',' or ')'")),
            ("a in (b c)", syntax(8, "'c'", "a value, ',' or ')'")),
            ("a in ((b))", syntax(6, "'('", "a value, ',' or ')'")),
            ("a in (b))", syntax(8, "')'", "',' or the end")),
            ("(a)", syntax(0, "'('", "a key or '!'")),
        ] {
            assert_eq!(Selector::parse(text), Err(error), "{text}");
        }
        let message = |text: &str| Selector::parse(text).unwrap_err().to_string();
        assert_eq!(message("a, /b"), "label selector: key \"/b\" at offset 3: prefix part must be non-empty");
        assert!(message("a = -1").starts_with("label selector: value \"-1\" for key \"a\" at offset 4: a value must"));
        assert!(message("a > x").starts_with("label selector: value \"x\" for key \"a\" at offset 4: '>'"));
        assert!(message("a>9223372036854775808").contains("64-bit"));
        assert!(message("a>").contains("64-bit"));
        assert!(message("a\0").contains("must consist of"));
        assert!(message("ключ=a").contains("must consist of"));
    }

    #[test]
    fn builders_refuse_what_would_not_parse() {
        assert!(matches!(Selector::new().eq("a", "b,c"), Err(SelectorError::Value { at: None, .. })));
        assert!(matches!(Selector::new().exists("a=b"), Err(SelectorError::Key { at: None, .. })));
        assert!(matches!(Selector::new().greater_than("a", -1), Err(SelectorError::Value { .. })));
        let none = Selector::new().is_in("a", [""; 0]);
        assert_eq!(none, Err(SelectorError::NoValues { key: "a".to_owned() }));
        let all = Selector::new().less_than("f", 3).and_then(|s| s.not_exists("e")?.exists("d")?.not_in("c", ["x"]));
        let all = all.and_then(|s| s.not_eq("b", "")?.eq("a", "1")).unwrap();
        assert_eq!(all.to_string(), "a=1,b!=,c notin (x),d,!e,f<3");
    }

    #[test]
    fn selectors_inside_objects_convert() {
        let from = |json: &str| Selector::try_from(&serde_json::from_str::<LabelSelector>(json).unwrap());
        let expression = |json: &str| from(&format!(r#"{{"matchExpressions":[{json}]}}"#));
        assert_eq!(from("{}"), Ok(Selector::new()));
        let both = r#"{"matchLabels":{"a":"b"},"matchExpressions":[
            {"key":"c","operator":"In","values":["e","d"]},{"key":"f","operator":"NotIn","values":[""]},
            {"key":"g","operator":"Exists"},{"key":"h","operator":"DoesNotExist","values":[]}]}"#;
        assert_eq!(from(both).unwrap().to_string(), "a=b,c in (d,e),f notin (),g,!h");
        assert!(matches!(expression(r#"{"key":"a","operator":"In"}"#), Err(SelectorError::NoValues { .. })));
        let values = expression(r#"{"key":"a","operator":"Exists","values":["b"]}"#);
        assert!(matches!(values, Err(SelectorError::UnwantedValues { .. })));
        for operator in ["in", "Gt", ""] {
            let result = expression(&format!(r#"{{"key":"a","operator":"{operator}"}}"#));
            assert!(matches!(result, Err(SelectorError::Operator { .. })), "{operator}");
        }
        assert!(matches!(from(r#"{"matchLabels":{"a b":""}}"#), Err(SelectorError::Key { .. })));
        assert!(matches!(from(r#"{"matchLabels":{"a":"b c"}}"#), Err(SelectorError::Value { .. })));
    }

    #[test]
    fn an_exact_value_is_found_for_an_index() {
        let selector = parse("a in (x),b,c=y,d in (1,2)");
        assert_eq!([selector.exact("a"), selector.exact("c")], [Some("x"), Some("y")]);
        assert_eq!([selector.exact("b"), selector.exact("d"), selector.exact("e")], [None; 3]);
    }

    #[test]
    fn maps_and_pairs_match_alike() {
        let labels: BTreeMap<String, String> = [("a", "1"), ("b", "2")].map(|(k, v)| (k.into(), v.into())).into();
        for (text, expected) in [("a=1,b", true), ("a=2", false), ("!c", true)] {
            let pairs = labels.iter().map(|(key, value)| (key.as_str(), value.as_str()));
            assert_eq!([parse(text).matches_map(&labels), parse(text).matches_pairs(pairs)], [expected; 2], "{text}");
        }
    }
}
