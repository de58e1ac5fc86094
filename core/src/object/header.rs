//! The parsed header of an object.

use super::outline::Region;
use crate::json::{Flaw, Keep, Scanner, Text};

/// Where the parts of the header stand in the text of the object. An empty span is an absent part.
#[derive(Clone, Debug, Default)]
pub(super) struct Header {
    /// The length of the JSON.
    pub(super) json: u32,
    pub(super) api_version: Span,
    pub(super) kind: Span,
    pub(super) name: Span,
    pub(super) namespace: Span,
    pub(super) uid: Span,
    pub(super) resource_version: Span,
    pub(super) annotations: Span,
    pub(super) owner_references: Span,
    pub(super) finalizers: Span,
    pub(super) generation: Option<i64>,
    pub(super) deleting: bool,
    /// In order of their keys, each key once.
    pub(super) labels: Box<[(Span, Span)]>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    start: u32,
    len: u32,
}

impl Header {
    pub(super) fn new(json: usize) -> Self {
        Self { json: small(json), ..Self::default() }
    }

    /// Reads the metadata at `region` of the text, as far as it is what it should be.
    pub(super) fn read(&mut self, text: &str, region: Region, tail: &mut Tail) {
        let mut scanner = Scanner::new(&text[region.start..region.end]);
        let source = Source { text, shift: region.start };
        if scanner.peek() == Ok(b'{') {
            // It was scanned before, so that it cannot fail.
            let _ = scanner.members(|scanner, key| {
                self.member(scanner, &key.value(scanner.text()), source, tail)?;
                Ok(Keep::Yes)
            });
        }
    }

    fn member(
        &mut self,
        scanner: &mut Scanner<'_>,
        key: &str,
        source: Source<'_>,
        tail: &mut Tail,
    ) -> Result<(), Flaw> {
        match key {
            "name" => self.name = source.string(scanner, tail)?,
            "namespace" => self.namespace = source.string(scanner, tail)?,
            "uid" => self.uid = source.string(scanner, tail)?,
            "resourceVersion" => self.resource_version = source.string(scanner, tail)?,
            "annotations" => self.annotations = source.value(scanner)?,
            "ownerReferences" => self.owner_references = source.value(scanner)?,
            "finalizers" => self.finalizers = source.value(scanner)?,
            "generation" => self.generation = source.value(scanner)?.of(source.text).parse().ok(),
            "deletionTimestamp" => self.deleting = source.value(scanner)?.of(source.text) != "null",
            "labels" => self.labels = source.labels(scanner, tail)?,
            _ => scanner.skip()?,
        }
        Ok(())
    }
}

/// The text of the object, of which a scanner sees what comes behind `shift`.
#[derive(Clone, Copy)]
struct Source<'a> {
    text: &'a str,
    shift: usize,
}

impl Source<'_> {
    fn string(self, scanner: &mut Scanner<'_>, tail: &mut Tail) -> Result<Span, Flaw> {
        let text = scanner.string_or_skip()?;
        Ok(text.map_or_else(Span::default, |text| tail.span(scanner.text(), self.shift, text)))
    }

    fn value(self, scanner: &mut Scanner<'_>) -> Result<Span, Flaw> {
        let start = scanner.scanned();
        scanner.skip()?;
        Ok(Span::new(self.shift + start, scanner.scanned() - start))
    }

    fn labels(self, scanner: &mut Scanner<'_>, tail: &mut Tail) -> Result<Box<[(Span, Span)]>, Flaw> {
        let mut labels = Vec::new();
        if scanner.peek()? != b'{' {
            scanner.skip()?;
            return Ok(Box::default());
        }
        scanner.members(|scanner, key| {
            let key = tail.span(scanner.text(), self.shift, key);
            if let Some(value) = scanner.string_or_skip()? {
                labels.push((key, tail.span(scanner.text(), self.shift, value)));
            }
            Ok(Keep::Yes)
        })?;
        let key_of = |label: &(Span, Span)| tail.resolve(self.text, label.0);
        // A stable sort from the back, so that of equal keys the last comes first and stays.
        labels.reverse();
        labels.sort_by(|one, other| key_of(one).cmp(key_of(other)));
        labels.dedup_by(|one, other| key_of(one) == key_of(other));
        Ok(labels.into_boxed_slice())
    }
}

/// The plain text of strings that have escapes in JSON, to be put behind the JSON.
pub(super) struct Tail {
    behind: usize,
    text: String,
}

impl Tail {
    pub(super) const fn behind(text: &str) -> Self {
        Self { behind: text.len(), text: String::new() }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The string at `region` of the text of the object.
    pub(super) fn string(&mut self, text: &str, region: Option<Region>) -> Span {
        let Some(region) = region else { return Span::default() };
        let source = &text[region.start..region.end];
        Scanner::new(source).string().map_or_else(|_| Span::default(), |text| self.span(source, region.start, text))
    }

    /// The span of a string that stands in `source`, which begins at `shift` of the text of the object.
    fn span(&mut self, source: &str, shift: usize, text: Text) -> Span {
        if !text.is_escaped() {
            return Span::new(shift + text.start(), text.raw(source).len());
        }
        let start = self.behind + self.text.len();
        let value = text.value(source);
        self.text.push_str(&value);
        Span::new(start, value.len())
    }

    fn resolve<'a>(&'a self, text: &'a str, span: Span) -> &'a str {
        match (span.start as usize).checked_sub(self.behind) {
            Some(start) => &self.text[start..][..span.len as usize],
            None => span.of(text),
        }
    }
}

impl Span {
    fn new(start: usize, len: usize) -> Self {
        Self { start: small(start), len: small(len) }
    }

    pub(super) fn of(self, text: &str) -> &str {
        &text[self.start as usize..][..self.len as usize]
    }
}

/// Texts are limited to half of what fits, and their plain strings are no longer than they.
fn small(number: usize) -> u32 {
    u32::try_from(number).expect("an object's text is limited to Object::MAX_BYTES")
}
