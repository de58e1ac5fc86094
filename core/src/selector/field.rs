//! Field selectors: the value, its parser, its builder and its evaluation.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde_json::Value;

/// A field selector: a set of terms that must all hold. The empty selector matches everything.
///
/// A field that is missing equals the empty string, as on the API server. Which fields may be selected is the
/// server's decision for each kind; this type evaluates any scalar field. [`Display`](fmt::Display) prints text
/// that parses back to the same value; terms are kept in order of their paths and without duplicates.
///
/// ```
/// use cloudcoil_core::FieldSelector;
/// use serde_json::json;
///
/// let selector: FieldSelector = "status.phase!=Running,spec.nodeName=".parse()?;
/// assert!(selector.matches(&json!({ "status": { "phase": "Pending" } })));
/// assert_eq!(selector.to_string(), "spec.nodeName=,status.phase!=Running");
/// # Ok::<(), cloudcoil_core::FieldSelectorError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldSelector(Vec<FieldTerm>);

impl FieldSelector {
    /// The selector that matches everything.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Reads the API server's syntax: `path=value`, `path==value` and `path!=value`, joined by commas.
    ///
    /// In a value `\,`, `\=` and `\\` stand for the second character, and a blank counts. Empty terms are skipped.
    pub fn parse(text: &str) -> Result<Self, FieldSelectorError> {
        let mut selector = Self::new();
        let mut start = 0;
        for term in split_terms(text) {
            if !term.is_empty() {
                selector.insert(parse_term(term, start)?);
            }
            start += term.len() + 1;
        }
        Ok(selector)
    }

    /// Also requires the field at `path` to have this value; the empty value also means that it is missing.
    pub fn eq(self, path: impl Into<String>, value: impl Into<String>) -> Result<Self, FieldSelectorError> {
        self.and(path.into(), true, value.into())
    }

    /// Also requires the field at `path` to have another value.
    pub fn not_eq(self, path: impl Into<String>, value: impl Into<String>) -> Result<Self, FieldSelectorError> {
        self.and(path.into(), false, value.into())
    }

    /// The terms, in order of their paths.
    pub fn terms(&self) -> &[FieldTerm] {
        &self.0
    }

    /// Whether there is no term, so that everything matches.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `metadata.name` and `metadata.namespace` are all that has to be known to evaluate the selector.
    pub fn needs_only_key(&self) -> bool {
        self.0.iter().all(|term| matches!(&*term.path, "metadata.name" | "metadata.namespace"))
    }

    /// Whether `object` fulfils every term.
    ///
    /// A path names members of objects, or elements of arrays by number, between dots; a last member may have dots
    /// in its own name, as `metadata.labels.example.com/app`. Strings count as they are, booleans and numbers as
    /// JSON prints them; anything else is no scalar, and missing.
    pub fn matches(&self, object: &Value) -> bool {
        self.matches_with(|path| scalar(resolve(object, path)?))
    }

    /// Whether the fields that `field` answers for a path fulfil every term; `None` is a missing field.
    pub fn matches_with<'a>(&self, field: impl Fn(&str) -> Option<Cow<'a, str>>) -> bool {
        self.0.iter().all(|term| term.matches(field(&term.path).as_deref()))
    }

    /// The only value that the field at `path` may have, when a term says so.
    pub fn exact(&self, path: &str) -> Option<&str> {
        self.0.iter().find(|term| term.equal && term.path == path).map(|term| &*term.value)
    }

    fn and(mut self, path: String, equal: bool, value: String) -> Result<Self, FieldSelectorError> {
        if let Some(fault) = path_fault(&path) {
            return Err(FieldSelectorError::Path { path, at: None, fault });
        }
        self.insert(FieldTerm { path, equal, value });
        Ok(self)
    }

    fn insert(&mut self, term: FieldTerm) {
        if let Err(index) = self.0.binary_search(&term) {
            self.0.insert(index, term);
        }
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{term}")?;
        }
        Ok(())
    }
}

impl FromStr for FieldSelector {
    type Err = FieldSelectorError;

    fn from_str(text: &str) -> Result<Self, FieldSelectorError> {
        Self::parse(text)
    }
}

impl TryFrom<&str> for FieldSelector {
    type Error = FieldSelectorError;

    fn try_from(text: &str) -> Result<Self, FieldSelectorError> {
        Self::parse(text)
    }
}

impl TryFrom<&String> for FieldSelector {
    type Error = FieldSelectorError;

    fn try_from(text: &String) -> Result<Self, FieldSelectorError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for FieldSelector {
    type Error = FieldSelectorError;

    fn try_from(text: String) -> Result<Self, FieldSelectorError> {
        Self::parse(&text)
    }
}

/// One term of a [`FieldSelector`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldTerm {
    path: String,
    equal: bool,
    value: String,
}

impl FieldTerm {
    /// The path of the field, as `metadata.name`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether the field must have the value, rather than another.
    pub const fn is_equal(&self) -> bool {
        self.equal
    }

    /// The value, unescaped.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Whether a field of this value, or its absence, fulfils the term.
    pub fn matches(&self, value: Option<&str>) -> bool {
        (value.unwrap_or_default() == self.value) == self.equal
    }
}

impl fmt::Display for FieldTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = if self.equal { "=" } else { "!=" };
        write!(f, "{}{operator}", self.path)?;
        self.value.split_inclusive(ESCAPED).try_for_each(|part| match part.strip_suffix(ESCAPED) {
            Some(plain) => write!(f, "{plain}\\{}", &part[plain.len()..]),
            None => f.write_str(part),
        })
    }
}

/// Why something is no field selector. Offsets count bytes from the start of the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldSelectorError {
    /// A term without an operator.
    #[error("field selector: no '=', '==' or '!=' in {term:?} at offset {at}")]
    NoOperator {
        /// The term.
        term: String,
        /// Its offset.
        at: usize,
    },
    /// A path that names no field.
    #[error("field selector: path {path:?}{} {fault}", at.map(|at| format!(" at offset {at}")).unwrap_or_default())]
    Path {
        /// The path.
        path: String,
        /// Its offset, when it was parsed.
        at: Option<usize>,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// A backslash before something that needs no escape, or at the end.
    #[error(r"field selector: {sequence:?} at offset {at} is no escape; '\\', '\,' and '\=' are")]
    Escape {
        /// The backslash and what follows it.
        sequence: String,
        /// Its offset.
        at: usize,
    },
    /// A `=` inside a value that is not escaped.
    #[error(r"field selector: '=' at offset {at} inside a value must be written '\='")]
    Unescaped {
        /// Its offset.
        at: usize,
    },
}

/// The terms between commas; a backslash keeps the character behind it from being one.
fn split_terms(text: &str) -> impl Iterator<Item = &str> {
    let mut escaped = false;
    text.split(move |c| {
        let splits = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        splits
    })
}

fn parse_term(term: &str, start: usize) -> Result<FieldTerm, FieldSelectorError> {
    let operators = ["!=", "==", "="];
    let split = term.char_indices().find_map(|(index, _)| {
        let operator = operators.into_iter().find(|operator| term[index..].starts_with(operator))?;
        Some((index, operator))
    });
    let Some((index, operator)) = split else {
        return Err(FieldSelectorError::NoOperator { term: term.to_owned(), at: start });
    };
    let path = term[..index].to_owned();
    if let Some(fault) = path_fault(&path) {
        return Err(FieldSelectorError::Path { path, at: Some(start), fault });
    }
    let value = index + operator.len();
    let value = unescape(&term[value..], start + value)?;
    Ok(FieldTerm { path, equal: operator != "!=", value })
}

fn unescape(value: &str, start: usize) -> Result<String, FieldSelectorError> {
    let mut plain = String::with_capacity(value.len());
    let mut characters = value.char_indices();
    while let Some((index, c)) = characters.next() {
        match c {
            '=' => return Err(FieldSelectorError::Unescaped { at: start + index }),
            '\\' => match characters.next() {
                Some((_, escaped)) if ESCAPED.contains(&escaped) => plain.push(escaped),
                other => {
                    let sequence = ['\\'].into_iter().chain(other.map(|(_, c)| c)).collect();
                    return Err(FieldSelectorError::Escape { sequence, at: start + index });
                }
            },
            c => plain.push(c),
        }
    }
    Ok(plain)
}

/// A path may not hold what the grammar gives another meaning, as it cannot be escaped there.
fn path_fault(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        Some("is empty")
    } else if path.split('.').any(str::is_empty) {
        Some("has an empty segment")
    } else if path.contains(|c: char| c.is_whitespace() || c.is_control() || "!=,\\".contains(c)) {
        Some("has a character that no path may have")
    } else {
        None
    }
}

fn resolve<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut value = object;
    let mut rest = path;
    loop {
        let (segment, deeper) = rest.split_once('.').map_or((rest, None), |(segment, deeper)| (segment, Some(deeper)));
        value = match value {
            Value::Object(members) => match members.get(rest) {
                Some(member) => return Some(member),
                None => members.get(segment)?,
            },
            Value::Array(elements) => elements.get(segment.parse::<usize>().ok()?)?,
            _ => return None,
        };
        match deeper {
            Some(deeper) => rest = deeper,
            None => return Some(value),
        }
    }
}

fn scalar(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Bool(flag) => Some(Cow::Borrowed(if *flag { "true" } else { "false" })),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

const ESCAPED: [char; 3] = ['\\', ',', '='];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(text: &str) -> FieldSelector {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn text_is_canonical_and_parses_back() {
        for (text, canonical) in [
            ("", ""),
            (",", ""),
            ("a=b,", "a=b"),
            ("b==c,a!=d", "a!=d,b=c"),
            ("a=b,a=b", "a=b"),
            ("a=", "a="),
            ("a= b ", "a= b "),
            (r"a=b\,c\=d\\", r"a=b\,c\=d\\"),
            (r"a=\\,b=c", r"a=\\,b=c"),
            ("a=b!c", "a=b!c"),
            ("a=é→", "a=é→"),
        ] {
            let selector = parse(text);
            assert_eq!(selector.to_string(), canonical, "{text}");
            assert_eq!(parse(canonical), selector, "{text}");
        }
        assert_eq!(parse(r"a=b\,c\=d\\").terms()[0].value(), r"b,c=d\");
    }

    #[test]
    fn errors_name_the_place() {
        let message = |text: &str| FieldSelector::parse(text).unwrap_err().to_string();
        assert_eq!(message("a=b,c"), "field selector: no '=', '==' or '!=' in \"c\" at offset 4");
        assert_eq!(message("=b"), "field selector: path \"\" at offset 0 is empty");
        assert_eq!(
            message("a=b, c=d"),
            "field selector: path \" c\" at offset 4 has a character that no path may have"
        );
        assert_eq!(message("a..b=c"), "field selector: path \"a..b\" at offset 0 has an empty segment");
        assert_eq!(message("a=b=c"), r"field selector: '=' at offset 3 inside a value must be written '\='");
        assert_eq!(message("a===c"), r"field selector: '=' at offset 3 inside a value must be written '\='");
        assert!(message(r"a=b\x").contains("at offset 3 is no escape"));
        assert!(message(r"a=b\").contains("at offset 3 is no escape"));
        assert!(message(r"a\,b=c").contains("has a character"));
        assert!(FieldSelector::new().eq("a,b", "").is_err());
    }

    #[test]
    fn a_missing_field_equals_the_empty_string() {
        let pod = json!({ "metadata": { "name": "a", "labels": { "example.com/app": "x" } },
            "spec": { "on": true, "n": 3, "f": 1.5, "null": null, "list": [{ "name": "c" }], "map": {} } });
        for text in [
            "metadata.name=a",
            "metadata.namespace=",
            "status.phase=",
            "status.phase!=Running",
            "spec.on=true,spec.n=3,spec.f=1.5,spec.null=,spec.map=,spec.list=",
            "spec.list.0.name=c,spec.list.1.name=",
            "metadata.labels.example.com/app=x",
            "metadata.name.first=",
            "",
        ] {
            assert!(parse(text).matches(&pod), "{text}");
        }
        for text in ["metadata.name!=a", "metadata.namespace!=", "status.phase=Running", "metadata.name=a,spec.n=4"] {
            assert!(!parse(text).matches(&pod), "{text}");
        }
    }

    #[test]
    fn a_header_is_enough_for_name_and_namespace() {
        let selector = parse("metadata.name=a,metadata.namespace!=b");
        assert!(selector.needs_only_key() && parse("").needs_only_key() && !parse("metadata.uid=a").needs_only_key());
        assert!(selector.matches_with(|path| (path == "metadata.name").then_some(Cow::Borrowed("a"))));
        assert_eq!([selector.exact("metadata.name"), selector.exact("metadata.namespace")], [Some("a"), None]);
    }

    #[test]
    fn builders_escape_what_they_are_given() {
        let selector = FieldSelector::new().eq("a.b", r"x,y=z\").and_then(|s| s.not_eq("c", "d")).unwrap();
        assert_eq!(selector.to_string(), r"a.b=x\,y\=z\\,c!=d");
        assert_eq!(parse(&selector.to_string()), selector);
    }
}
