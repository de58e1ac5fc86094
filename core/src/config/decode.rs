//! From YAML to the fields of a kubeconfig, as strict about types as `kubectl`: a number is no text.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;

use super::Secret;
use super::yaml::{Content, Node, YamlError};

/// What does not fit, and where. What is there is not told: it may be a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) line: u64,
    /// The path of the field, last step first.
    steps: Vec<Step>,
    pub(super) problem: Problem,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    NoBase64,
    /// Two entries of a list have the name of this one.
    Duplicate,
    Other(&'static str),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Item(usize),
}

impl Fault {
    pub(super) const fn new(line: u64, problem: Problem) -> Self {
        Self { line, steps: Vec::new(), problem }
    }

    /// The same, seen from one field further out.
    pub(super) fn within(mut self, field: &str) -> Self {
        self.steps.push(Step::Field(field.to_owned()));
        self
    }

    fn within_item(mut self, index: usize) -> Self {
        self.steps.push(Step::Item(index));
        self
    }

    /// The path of the field: `users[0].user.token`; empty for the whole file.
    pub(super) fn field(&self) -> String {
        let mut path = String::new();
        for step in self.steps.iter().rev() {
            match step {
                Step::Field(name) if path.is_empty() => path.push_str(name),
                Step::Field(name) => path.extend([".", name]),
                Step::Item(index) => path.push_str(&format!("[{index}]")),
            }
        }
        path
    }
}

impl From<YamlError> for Fault {
    fn from(error: YamlError) -> Self {
        Self::new(error.line, Problem::Other(error.problem))
    }
}

/// What can be read from a node that is not `null`; `null`, like absence, is the default.
pub(super) trait Decode: Default {
    fn decode(node: &Node) -> Result<Self, Fault>;
}

/// Reads a node, `null` or not.
pub(super) fn decode<T: Decode>(node: &Node) -> Result<T, Fault> {
    match node.content {
        Content::Null => Ok(T::default()),
        _ => T::decode(node),
    }
}

/// The fields of a map; those that nobody asks for are passed over.
pub(super) struct Fields<'a>(&'a BTreeMap<String, Node>);

impl<'a> Fields<'a> {
    pub(super) fn of(node: &'a Node) -> Result<Self, Fault> {
        match &node.content {
            Content::Map(map) => Ok(Self(map)),
            _ => Err(wrong_type(node)),
        }
    }

    pub(super) fn field<T: Decode>(&self, name: &str) -> Result<T, Fault> {
        match self.0.get(name) {
            Some(node) => decode(node).map_err(|fault| fault.within(name)),
            None => Ok(T::default()),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.0.iter().map(|(name, node)| (name.as_str(), node))
    }
}

impl Decode for String {
    fn decode(node: &Node) -> Result<Self, Fault> {
        match &node.content {
            Content::Text(text) => Ok(text.clone()),
            // Such as `n`, which means `false`.
            Content::Bool(_) | Content::Number(_) => {
                Err(Fault::new(node.line, Problem::Other("a number or a truth value where text belongs: quote it")))
            }
            _ => Err(wrong_type(node)),
        }
    }
}

impl Decode for bool {
    fn decode(node: &Node) -> Result<Self, Fault> {
        match &node.content {
            Content::Bool(flag) => Ok(*flag),
            _ => Err(wrong_type(node)),
        }
    }
}

impl Decode for Value {
    fn decode(node: &Node) -> Result<Self, Fault> {
        Ok(node.to_json())
    }
}

/// Bytes in base64, with or without line breaks, or a list of numbers.
impl Decode for Secret {
    fn decode(node: &Node) -> Result<Self, Fault> {
        match &node.content {
            Content::Text(text) => match decode_base64(text) {
                Some(bytes) => Ok(Self::new(bytes)),
                None => Err(Fault::new(node.line, Problem::NoBase64)),
            },
            Content::List(items) => {
                let byte = |item: &Node| match &item.content {
                    Content::Number(number) => number.as_u64().and_then(|number| u8::try_from(number).ok()),
                    Content::Null => Some(0),
                    _ => None,
                };
                items.iter().map(byte).collect::<Option<Vec<_>>>().map(Self::new).ok_or_else(|| wrong_type(node))
            }
            _ => Err(wrong_type(node)),
        }
    }
}

impl<T: Decode> Decode for Option<T> {
    fn decode(node: &Node) -> Result<Self, Fault> {
        T::decode(node).map(Some)
    }
}

impl<T: Decode> Decode for Vec<T> {
    fn decode(node: &Node) -> Result<Self, Fault> {
        let Content::List(items) = &node.content else {
            return Err(wrong_type(node));
        };
        let item = |(index, item)| decode(item).map_err(|fault: Fault| fault.within_item(index));
        items.iter().enumerate().map(item).collect()
    }
}

impl<T: Decode> Decode for BTreeMap<String, T> {
    fn decode(node: &Node) -> Result<Self, Fault> {
        let entry = |(key, value): (&str, &Node)| {
            decode(value).map(|decoded| (key.to_owned(), decoded)).map_err(|fault: Fault| fault.within(key))
        };
        Fields::of(node)?.iter().map(entry).collect()
    }
}

fn wrong_type(node: &Node) -> Fault {
    Fault::new(node.line, Problem::Other("not of the right type"))
}

/// Base64 as Go takes it: padded, with line breaks anywhere, and whatever the bits behind the last byte.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical)
        .with_decode_allow_trailing_bits(true);
    let text: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    GeneralPurpose::new(&alphabet::STANDARD, LENIENT).decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: Decode>(text: &str) -> Result<T, String> {
        decode(&Node::parse(text).unwrap())
            .map_err(|fault| format!("{}: {}: {:?}", fault.line, fault.field(), fault.problem))
    }

    #[test]
    fn null_is_the_default_and_other_types_are_refused_with_their_place() {
        assert_eq!(read::<Vec<String>>("[a, ~, '1']"), Ok(vec!["a".into(), String::new(), "1".into()]));
        assert_eq!(read::<Option<bool>>("~"), Ok(None));
        let error = read::<BTreeMap<String, Vec<String>>>("a: [x]\nb:\n- z\n- 1\n").unwrap_err();
        assert_eq!(error, "4: b[1]: Other(\"a number or a truth value where text belongs: quote it\")");
        for text in ["1", "true", "[]", "{}"] {
            assert!(read::<String>(text).is_err(), "{text}");
        }
        for text in ["'true'", "1", "[]"] {
            assert!(read::<bool>(text).is_err(), "{text}");
        }
        assert!(read::<Vec<String>>("{}").is_err() && read::<BTreeMap<String, String>>("[]").is_err());
    }

    #[test]
    fn base64_is_what_go_takes() {
        for (text, bytes) in [("", &b""[..]), ("YQ==", b"a"), ("Y\r\nQ=\n=\n", b"a"), ("YR==", b"a"), ("YWI=", b"ab")] {
            assert_eq!(decode_base64(text).as_deref(), Some(bytes), "{text:?}");
        }
        for text in ["YQ", "YQ=", " YQ==", "YQ== ", "Y-==", "YQ==YQ=="] {
            assert_eq!(decode_base64(text), None, "{text:?}");
        }
    }
}
