//! Who an object is, as far as it can be read.

use super::TypeMeta;
use crate::error::DecodeError;
use crate::json::{Flaw, Keep, MAX_DEPTH, Scanner};
use crate::resource::ResourceKey;

/// The kind, namespace and name in a text that need not be an object, nor whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    kind: Option<Box<str>>,
    namespace: Option<Box<str>>,
    name: Option<Box<str>>,
}

impl Identity {
    /// Reads as far as the text goes.
    pub(crate) fn of(text: &str) -> Self {
        let mut identity = Self::default();
        let mut scanner = Scanner::new(text);
        if scanner.peek() == Ok(b'{') {
            let _ = scanner.members(|scanner, key| identity.member(scanner, &key.value(scanner.text())));
        }
        identity
    }

    /// The key, if there is a name.
    pub(crate) fn key(&self) -> Option<ResourceKey> {
        ResourceKey::new(self.namespace.as_deref(), self.name.as_deref()?).ok()
    }

    /// The error that this object has that `fault`.
    pub(crate) fn error(&self, types: Option<&TypeMeta>, message: &str) -> DecodeError {
        let kind = self.kind.as_deref().or_else(|| types.map(TypeMeta::kind)).unwrap_or("object");
        let object = self.key().map_or_else(|| kind.to_owned(), |key| format!("{kind} {key}"));
        DecodeError { object: object.into(), path: Box::default(), message: message.into() }
    }

    fn member(&mut self, scanner: &mut Scanner<'_>, key: &str) -> Result<Keep, Flaw> {
        match key {
            "kind" => self.kind = string(scanner)?,
            "metadata" if scanner.peek()? == b'{' => {
                scanner.members(|scanner, key| {
                    match &*key.value(scanner.text()) {
                        "name" => self.name = string(scanner)?,
                        "namespace" => self.namespace = string(scanner)?,
                        _ => scanner.skip()?,
                    }
                    Ok(Keep::Yes)
                })?;
            }
            _ => scanner.skip()?,
        }
        Ok(Keep::Yes)
    }
}

fn string(scanner: &mut Scanner<'_>) -> Result<Option<Box<str>>, Flaw> {
    let text = scanner.string_or_skip()?;
    Ok(text.map(|text| text.value(scanner.text())).filter(|text| !text.is_empty()).map(Into::into))
}

/// A flaw in words.
pub(crate) fn describe(flaw: Flaw) -> String {
    match flaw {
        Flaw::Truncated => "the text ends in the middle".to_owned(),
        Flaw::Syntax(at) => format!("the text is no JSON at byte {at}"),
        Flaw::TooDeep(at) => format!("nests deeper than {MAX_DEPTH} levels at byte {at}"),
    }
}
