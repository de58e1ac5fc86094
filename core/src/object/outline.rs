//! From JSON text to an object.

use super::header::{Header, Tail};
use super::{Object, Trim, TypeMeta};
use crate::json::{Flaw, Keep, Scanner};

/// What one pass over the text of an object finds out: where the parts stand in its compact copy.
#[derive(Default)]
pub(crate) struct Outline {
    /// Where the members begin in the text that is scanned; `None` when it is no object.
    opened: Option<usize>,
    members: usize,
    api_version: Option<Region>,
    kind: Option<Region>,
    metadata: Option<Region>,
}

/// Where a value stands in the compact copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Outline {
    /// Passes over one value. One that is no object is only noted; what is no JSON fails.
    ///
    /// The scanner must be new, as positions count from its beginning.
    pub(crate) fn scan(scanner: &mut Scanner<'_>, trim: Trim, types: Option<&TypeMeta>) -> Result<Self, Flaw> {
        let mut outline = Self::default();
        if scanner.peek()? != b'{' {
            scanner.skip()?;
            return Ok(outline);
        }
        outline.opened = Some(scanner.scanned() + 1);
        outline.members = scanner.members(|scanner, key| match &*key.value(scanner.text()) {
            "apiVersion" => type_part(scanner, &mut outline.api_version, types),
            "kind" => type_part(scanner, &mut outline.kind, types),
            "metadata" => {
                let start = scanner.position();
                metadata(scanner, trim)?;
                outline.metadata = Some(Region { start, end: scanner.position() });
                Ok(Keep::Yes)
            }
            _ => scanner.skip().map(|()| Keep::Yes),
        })?;
        Ok(outline)
    }

    /// The object, from the scanner that has just passed over it.
    ///
    /// # Errors
    /// What is wrong with an object that cannot be kept.
    pub(crate) fn finish(mut self, scanner: &Scanner<'_>, types: Option<&TypeMeta>) -> Result<Object, &'static str> {
        let opened = self.opened.ok_or("is no object")?;
        let prefix = types.map(|types| self.supply(types)).unwrap_or_default();
        let mut text = String::new();
        text.reserve_exact(scanner.position() + prefix.len());
        text.push('{');
        text.push_str(&prefix);
        scanner.copy(opened, &mut text);
        if text.len() > Object::MAX_BYTES {
            return Err("is too large");
        }
        let mut tail = Tail::behind(&text);
        let mut header = Header::new(text.len());
        header.api_version = tail.string(&text, self.api_version);
        header.kind = tail.string(&text, self.kind);
        if let Some(metadata) = self.metadata {
            header.read(&text, metadata, &mut tail);
        }
        text.push_str(tail.text());
        let object = Object { text: text.into_boxed_str(), header };
        if object.name().is_empty() {
            return Err("has no metadata.name");
        }
        if object.name().contains('\0') || object.namespace().is_some_and(|namespace| namespace.contains('\0')) {
            return Err("has a name that no object can have");
        }
        Ok(object)
    }

    /// The members that the object lacks and its type has, to be put before its own; moves all regions behind them.
    fn supply(&mut self, types: &TypeMeta) -> String {
        let mut prefix = String::new();
        let supplied = [("apiVersion", self.api_version, types.api_version()), ("kind", self.kind, types.kind())].map(
            |(name, region, value)| {
                if region.is_some() {
                    return None;
                }
                prefix.push('"');
                prefix.push_str(name);
                prefix.push_str("\":");
                let start = prefix.len() + 1;
                prefix.push_str(&serde_json::to_string(value).expect("text can be written as JSON"));
                let end = prefix.len() + 1;
                prefix.push(',');
                Some(Region { start, end })
            },
        );
        if self.members == 0 {
            prefix.pop();
        }
        let shift = |region: Region| Region { start: region.start + prefix.len(), end: region.end + prefix.len() };
        let [api_version, kind] = supplied;
        self.api_version = api_version.or_else(|| self.api_version.map(shift));
        self.kind = kind.or_else(|| self.kind.map(shift));
        self.metadata = self.metadata.map(shift);
        prefix
    }
}

/// `apiVersion` or `kind`: an empty one, or one that is no string, counts as absent, and goes when one is supplied.
fn type_part(scanner: &mut Scanner<'_>, part: &mut Option<Region>, types: Option<&TypeMeta>) -> Result<Keep, Flaw> {
    let start = scanner.position();
    let text = scanner.string_or_skip()?;
    let region = Region { start, end: scanner.position() };
    *part = text.filter(|text| !text.raw(scanner.text()).is_empty()).map(|_| region);
    Ok(if part.is_none() && types.is_some() { Keep::No } else { Keep::Yes })
}

fn metadata(scanner: &mut Scanner<'_>, trim: Trim) -> Result<(), Flaw> {
    if trim == Trim::Nothing || scanner.peek()? != b'{' {
        return scanner.skip();
    }
    scanner.members(|scanner, key| {
        scanner.skip()?;
        Ok(if key.value(scanner.text()) == "managedFields" { Keep::No } else { Keep::Yes })
    })?;
    Ok(())
}
