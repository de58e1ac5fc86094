//! YAML as `kubectl` reads it: the first document, with the scalars of YAML 1.1, as a tree of what JSON can say.
//!
//! Kubernetes reads files by way of a parser for YAML 1.1, where `on` is a truth value and `017` is fifteen; a library
//! that goes by YAML 1.2 would find other things in the same file.

mod encoding;
mod scalar;

use std::collections::{BTreeMap, BTreeSet};

use granit_parser::{Event, Options, Parser, Span, StrInput, Tag};
use serde_json::{Number, Value};

pub(crate) use encoding::text;

use scalar::Scalar;

/// A node of a document.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    /// Where it begins, counted from 1; 0 when it is not known.
    pub(crate) line: u64,
    pub(crate) content: Content,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(BTreeMap<String, Node>),
}

/// What is wrong with a document, and at which line, which is 0 when it is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct YamlError {
    pub(crate) line: u64,
    pub(crate) problem: &'static str,
}

/// What is wrong with a document, in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flaw {
    pub(crate) error: YamlError,
    /// The key that occurs twice, if that is what is wrong.
    pub(crate) key: Option<String>,
    /// What the parser says; empty if it is not the parser's to say. Tells nothing of what is in the document.
    pub(crate) detail: String,
}

impl Node {
    /// Reads the first document. Of two equal keys the later one counts.
    pub(crate) fn parse(text: &str) -> Result<Self, YamlError> {
        let parsed = Builder::new(text).document();
        // JSON escapes that YAML does not know are legal here.
        if parsed.is_err()
            && text.trim_start().starts_with('{')
            && let Ok(value) = serde_json::from_str(text)
        {
            return Ok(Self::from_json(value));
        }
        parsed
    }

    /// Reads the one document of a text, in which no two keys of a map are equal.
    pub(crate) fn parse_unique(text: &str) -> Result<Self, Flaw> {
        let mut builder = Builder::new(text);
        builder.unique = true;
        match builder.document().and_then(|node| builder.end().map(|()| node)) {
            Ok(node) => Ok(node),
            Err(error) => Err(Flaw { error, key: builder.repeated, detail: builder.detail }),
        }
    }

    fn from_json(value: Value) -> Self {
        let content = match value {
            Value::Null => Content::Null,
            Value::Bool(flag) => Content::Bool(flag),
            Value::Number(number) => Content::Number(number),
            Value::String(text) => Content::Text(text),
            Value::Array(items) => Content::List(items.into_iter().map(Self::from_json).collect()),
            Value::Object(map) => {
                Content::Map(map.into_iter().map(|(key, value)| (key, Self::from_json(value))).collect())
            }
        };
        Self { line: 0, content }
    }

    /// The same as JSON.
    pub(crate) fn to_json(&self) -> Value {
        match &self.content {
            Content::Null => Value::Null,
            Content::Bool(flag) => Value::Bool(*flag),
            Content::Number(number) => Value::Number(number.clone()),
            Content::Text(text) => Value::String(text.clone()),
            Content::List(items) => Value::Array(items.iter().map(Self::to_json).collect()),
            Content::Map(map) => Value::Object(map.iter().map(|(key, value)| (key.clone(), value.to_json())).collect()),
        }
    }

    /// How much there is to copy: nodes, this one included, where so many bytes of text count as one more.
    fn size(&self) -> usize {
        let of_text = |text: &str| text.len() / TEXT_OF_NODE;
        match &self.content {
            Content::Text(text) => 1 + of_text(text),
            Content::List(items) => 1 + items.iter().map(Self::size).sum::<usize>(),
            Content::Map(map) => 1 + map.iter().map(|(key, value)| of_text(key) + value.size()).sum::<usize>(),
            _ => 1,
        }
    }

    /// How many nodes are within each other, this one included.
    fn height(&self) -> usize {
        match &self.content {
            Content::List(items) => 1 + items.iter().map(Self::height).max().unwrap_or(0),
            Content::Map(map) => 1 + map.values().map(Self::height).max().unwrap_or(0),
            _ => 1,
        }
    }
}

/// Makes a tree of the events of a parser.
struct Builder<'a> {
    parser: Parser<'a, StrInput<'a>>,
    /// What anchors name; nothing yet for those that are still open.
    anchors: BTreeMap<usize, Option<Node>>,
    /// How many nodes may still be copied for anchors and aliases.
    allowance: usize,
    depth: usize,
    /// Whether a key may not occur twice.
    unique: bool,
    repeated: Option<String>,
    detail: String,
}

impl<'a> Builder<'a> {
    fn new(text: &'a str) -> Self {
        let mut options = Options::default();
        options.emit_comments = false;
        let parser = Parser::new_from_str_with_options(text, options);
        Self {
            parser,
            anchors: BTreeMap::new(),
            allowance: COPIED_NODES,
            depth: 0,
            unique: false,
            repeated: None,
            detail: String::new(),
        }
    }

    fn document(&mut self) -> Result<Node, YamlError> {
        loop {
            match self.next()? {
                (Event::StreamStart | Event::DocumentStart(..), _) => {}
                (Event::StreamEnd, _) => return Ok(Node { line: 0, content: Content::Null }),
                (event, span) => return self.node(event, span),
            }
        }
    }

    /// Makes sure that no more follows.
    fn end(&mut self) -> Result<(), YamlError> {
        loop {
            match self.parser.next_event() {
                None | Some(Ok((Event::StreamEnd, _))) => return Ok(()),
                Some(Ok((Event::DocumentEnd, _))) => {}
                Some(Ok((_, span))) => {
                    return Err(YamlError { line: span.start.line() as u64, problem: "more than one value" });
                }
                Some(Err(error)) => return Err(YamlError { line: error.marker().line() as u64, problem: NO_YAML }),
            }
        }
    }

    fn next(&mut self) -> Result<(Event<'a>, Span), YamlError> {
        match self.parser.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => {
                error.info().clone_into(&mut self.detail);
                Err(YamlError { line: error.marker().line() as u64, problem: NO_YAML })
            }
            None => Err(YamlError { line: 0, problem: NO_YAML }),
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span) -> Result<Node, YamlError> {
        let line = span.start.line() as u64;
        let fail = |problem| Err(YamlError { line, problem });
        self.depth += 1;
        if self.depth > DEPTH {
            return fail(TOO_DEEP);
        }
        let (anchor, content) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let scalar = Scalar::resolve(&text, style, tag.as_deref());
                (anchor, scalar.and_then(Scalar::content).map_err(|problem| YamlError { line, problem })?)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.open(anchor, tag.as_deref(), line)?;
                (anchor, self.list()?)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.open(anchor, tag.as_deref(), line)?;
                (anchor, self.map()?)
            }
            Event::Alias(anchor) => (0, self.alias(anchor).map_err(|problem| YamlError { line, problem })?),
            _ => return fail(NO_YAML),
        };
        self.depth -= 1;
        let node = Node { line, content };
        if anchor != 0 {
            self.allowance = left(self.allowance, &node).map_err(|problem| YamlError { line, problem })?;
            self.anchors.insert(anchor, Some(node.clone()));
        }
        Ok(node)
    }

    fn open(&mut self, anchor: usize, tag: Option<&Tag>, line: u64) -> Result<(), YamlError> {
        if tag.is_some_and(|tag| tag.core_suffix().is_some_and(|suffix| !matches!(suffix, "map" | "seq"))) {
            return Err(YamlError { line, problem: "a list or a map tagged as something else" });
        }
        if anchor != 0 {
            self.anchors.insert(anchor, None);
        }
        Ok(())
    }

    fn alias(&mut self, anchor: usize) -> Result<Content, &'static str> {
        let node = match self.anchors.get(&anchor) {
            Some(Some(node)) => node,
            Some(None) => return Err("an anchor that holds itself"),
            None => return Err("an unknown anchor"),
        };
        self.allowance = left(self.allowance, node)?;
        // The depth counts this node already.
        if self.depth - 1 + node.height() > DEPTH {
            return Err(TOO_DEEP);
        }
        Ok(node.content.clone())
    }

    fn list(&mut self) -> Result<Content, YamlError> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Content::List(items)),
                (event, span) => items.push(self.node(event, span)?),
            }
        }
    }

    fn map(&mut self) -> Result<Content, YamlError> {
        let mut map = BTreeMap::new();
        // An entry of a merge may be said again.
        let mut said = BTreeSet::new();
        loop {
            let (event, span) = match self.next()? {
                (Event::MappingEnd, _) => return Ok(Content::Map(map)),
                next => next,
            };
            let line = span.start.line() as u64;
            let key = self.key(event, span)?;
            let (event, span) = self.next()?;
            let value = self.node(event, span)?;
            match key {
                Key::Merge => merge(&mut map, value).map_err(|problem| YamlError { line, problem })?,
                Key::Text(key) => {
                    if self.unique && !said.insert(key.clone()) {
                        self.repeated = Some(key);
                        return Err(YamlError { line, problem: "a key that occurs twice" });
                    }
                    map.insert(key, value);
                }
            }
        }
    }

    fn key(&mut self, event: Event<'a>, span: Span) -> Result<Key, YamlError> {
        let line = span.start.line() as u64;
        let fail = |problem| YamlError { line, problem };
        if let Event::Scalar(text, style, anchor, tag) = &event {
            let scalar = Scalar::resolve(text, *style, tag.as_deref()).map_err(fail)?;
            if *anchor != 0 {
                let content = scalar.clone().content().map_err(fail)?;
                self.anchors.insert(*anchor, Some(Node { line, content }));
            }
            return scalar.key().map(|key| key.map_or(Key::Merge, Key::Text)).map_err(fail);
        }
        match self.node(event, span)?.content {
            Content::Text(text) => Ok(Key::Text(text)),
            Content::Bool(flag) => Ok(Key::Text(flag.to_string())),
            Content::Number(number) => Ok(Key::Text(number.to_string())),
            Content::Null | Content::List(_) | Content::Map(_) => Err(fail("a key that is no text")),
        }
    }
}

enum Key {
    /// `<<`: the value's entries become the map's.
    Merge,
    Text(String),
}

/// What is left of an allowance when a node has been copied.
fn left(allowance: usize, copied: &Node) -> Result<usize, &'static str> {
    allowance.checked_sub(copied.size()).ok_or("too many aliases")
}

/// Puts the entries of a map, or of a list of maps of which the first counts most, into a map.
fn merge(map: &mut BTreeMap<String, Node>, value: Node) -> Result<(), &'static str> {
    match value.content {
        Content::Map(entries) => map.extend(entries),
        Content::List(items) => {
            for item in items.into_iter().rev() {
                match item.content {
                    Content::Map(entries) => map.extend(entries),
                    _ => return Err(NO_MERGE),
                }
            }
        }
        _ => return Err(NO_MERGE),
    }
    Ok(())
}

const NO_YAML: &str = "neither YAML nor JSON";
const NO_MERGE: &str = "`<<` takes a map or a list of maps";
/// Far more than a file for people needs, and far less than a file that is made to fill the memory asks for.
const COPIED_NODES: usize = 100_000;
const TEXT_OF_NODE: usize = 256;
const TOO_DEEP: &str = "nested too deeply";
const DEPTH: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> String {
        match Node::parse(text) {
            Ok(node) => node.to_json().to_string(),
            Err(error) => format!("{}: {}", error.line, error.problem),
        }
    }

    #[test]
    fn the_first_document_counts_and_nothing_is_null() {
        for text in ["", "# nothing\n", "---\n", "null", "~", "---\n---\na: 1\n"] {
            assert_eq!(json(text), "null", "{text:?}");
        }
        assert_eq!(json("a: 1\n---\nb: 2\n"), r#"{"a":1}"#);
        assert_eq!(json("a: 1\n...\n]"), r#"{"a":1}"#);
    }

    #[test]
    fn later_keys_count_and_keys_become_text() {
        let text = "{a: 1, a: 2, 3: x, 1.5: x, yes: x, 0x10: x, 2001-01-01: x, 'null': x}";
        assert_eq!(json(text), r#"{"1.5":"x","16":"x","2001-01-01":"x","3":"x","a":2,"null":"x","true":"x"}"#);
        assert_eq!(json("~: x"), "1: a key that is no text");
        assert_eq!(json("{[a]: x}"), "1: a key that is no text");
    }

    #[test]
    fn anchors_and_merges_are_followed() {
        assert_eq!(json("a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 2}"), r#"{"a":{"b":1},"c":{"b":1},"d":{"b":1,"e":2}}"#);
        assert_eq!(json("{<<: [{a: 1}, {a: 2, b: 3}], b: 4}"), r#"{"a":1,"b":4}"#);
        assert_eq!(json("{\"<<\": 1}"), r#"{"<<":1}"#);
        assert_eq!(json("{<<: 1}"), "1: `<<` takes a map or a list of maps");
        assert_eq!(json("a: &x [*x]"), "1: an anchor that holds itself");
        assert_eq!(json("a: *x"), "1: neither YAML nor JSON");
        assert_eq!(json("{&k a: *k}"), r#"{"a":"a"}"#);
    }

    #[test]
    fn a_bomb_is_refused() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..9 {
            let before = format!("*a{}", level - 1);
            text += &format!("a{level}: &a{level} [{}]\n", [before.as_str(); 9].join(", "));
        }
        assert!(json(&text).ends_with("too many aliases"));
        let mut text = "a0: &a0 [x]\n".to_owned();
        for level in 1..5000 {
            text += &format!("a{level}: &a{level} [*a{}]\n", level - 1);
        }
        assert!(json(&text).ends_with("too many aliases"));
        for open in ["[", "{a: "] {
            assert!(json(&open.repeat(100_000)).ends_with("neither YAML nor JSON"));
        }
    }

    #[test]
    fn a_bomb_of_text_is_refused() {
        let long = "x".repeat(1 << 20);
        let text = format!("a: &a {long}\nb: [{}]\n", ["*a"; 30].join(", "));
        assert!(json(&text).ends_with("too many aliases"));
        let text = format!("a: &a {{? {long} : 1}}\nb: [{}]\n", ["*a"; 30].join(", "));
        assert!(json(&text).ends_with("too many aliases"));
        let text = format!("a: &a {long}\nb: [*a, *a]\n");
        assert!(json(&text).ends_with("\"]}"), "a large text that is said three times is no bomb");
    }

    #[test]
    fn what_aliases_stack_up_is_not_nested_deeper_than_what_is_written_out() {
        let tower = |steps: usize, inner: &str| format!("{}{inner}{}", "[".repeat(steps), "]".repeat(steps));
        let mut text = format!("a0: &a0 {}\n", tower(200, "x"));
        for level in 1..20 {
            text += &format!("a{level}: &a{level} {}\n", tower(200, &format!("*a{}", level - 1)));
        }
        assert_eq!(json(&text), "3: nested too deeply");
        let nested = |steps| {
            let (a, b, c) = (tower(200, "x"), tower(200, "*a"), tower(steps, "*b"));
            json(&format!("a: &a {a}\nb: &b {b}\nc: {c}\n"))
        };
        assert!(nested(98).starts_with('{'), "the map, 98 lists, 400 of them named, and the text");
        assert_eq!(nested(99), "3: nested too deeply");
    }

    #[test]
    fn json_is_read_with_escapes_that_yaml_does_not_know() {
        assert_eq!(json(r#"{"a":"\ud83d\ude00\/","b":[1,true,null]}"#), r#"{"a":"😀/","b":[1,true,null]}"#);
    }

    #[test]
    fn lines_are_counted_from_one() {
        assert_eq!(json("a:\n- b\n- c: \"d\n"), "3: neither YAML nor JSON");
        let Content::Map(map) = Node::parse("a:\n  b: c\n").unwrap().content else { panic!("a map") };
        assert_eq!(map["a"].line, 2);
    }
}
