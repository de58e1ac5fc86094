//! The items of a list.

use std::iter;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::{Faulty, FrameOptions};
use crate::error::{BodyError, BodyProblem, Error};
use crate::json::{Flaw, Scanner, is_blank, plain_prefix};
use crate::object::{Object, Outline, describe};
use crate::response;
use crate::status::Status;

/// Reads the body of a list from chunks, item by item: no more than one item and the rest of the list is ever held.
///
/// ```
/// use cloudcoil_core::frame::{FrameOptions, ListBody, ListItem};
///
/// let mut body = ListBody::new(FrameOptions::default());
/// let chunks = [&br#"{"kind":"PodList","items":[{"metadata":{"na"#[..], br#"me":"a"}}],"metadata":{"resourceVersion":"7"}}"#];
/// let items: Vec<ListItem> = chunks.iter().flat_map(|chunk| body.read(chunk).collect::<Vec<_>>()).collect();
/// assert!(matches!(&items[..], [ListItem::Object(pod)] if pod.name() == "a"));
/// assert_eq!(body.finish(200)?.resource_version.as_deref(), Some("7"));
/// # Ok::<(), cloudcoil_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ListBody {
    options: FrameOptions,
    place: Place,
    /// Of the place among the members of the list.
    outer: Nesting,
    /// Of the place inside an item.
    inner: Nesting,
    /// The body without its items.
    envelope: Vec<u8>,
    /// The beginning of an item whose end has not come.
    item: Vec<u8>,
    /// The beginning of the body, for an error to show.
    head: Vec<u8>,
    broken: Option<BodyProblem>,
}

/// One item of a list.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "an item is one or the other")]
pub enum ListItem {
    /// An object.
    Object(Arc<Object>),
    /// An item that cannot be taken in; the rest of the list can.
    Faulty(Faulty),
}

/// What a list says besides its items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListMeta {
    /// The resource version of the list, from which a watch can go on.
    pub resource_version: Option<Box<str>>,
    /// The token of the next page, if there is one.
    pub continue_token: Option<Box<str>>,
    /// How many items are on later pages, where the server knows.
    pub remaining_item_count: Option<i64>,
    /// The `apiVersion` of the list.
    pub api_version: Option<Box<str>>,
    /// The `kind` of the list, such as `PodList`.
    pub kind: Option<Box<str>>,
}

/// Where in the body the next byte is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before the bracket that opens the list.
    Before,
    /// Among the members of the list.
    Envelope,
    /// Among the items: whether a comma came since the last one, and whether there was one.
    Items { comma: bool, any: bool },
    /// Inside an item, of which too much may have come to be kept.
    Item { too_long: bool },
    /// Behind the bracket that closes the list.
    After,
}

/// How deep in brackets, and whether in a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Nesting {
    depth: u32,
    string: bool,
    escape: bool,
}

impl ListBody {
    /// A reader that has seen nothing yet.
    pub const fn new(options: FrameOptions) -> Self {
        Self {
            options,
            place: Place::Before,
            outer: Nesting::new(),
            inner: Nesting::new(),
            envelope: Vec::new(),
            item: Vec::new(),
            head: Vec::new(),
            broken: None,
        }
    }

    /// The items that this chunk completes, in order. What is not asked for is lost, so read it to the end unless the
    /// list is given up. A body that turns out to be no list has no more items; [`finish`](Self::finish) tells why.
    pub fn read<'a>(&'a mut self, chunk: &'a [u8]) -> impl Iterator<Item = ListItem> + 'a {
        let room = HEAD - self.head.len();
        self.head.extend_from_slice(&chunk[..chunk.len().min(room)]);
        let mut rest = chunk;
        iter::from_fn(move || {
            while !rest.is_empty() && self.broken.is_none() {
                let item = self.advance(&mut rest);
                if item.is_some() {
                    return item;
                }
            }
            None
        })
    }

    /// What the list says besides its items, once the body is whole. `code` is that of the answer.
    ///
    /// # Errors
    /// [`Error::Body`] when the body was no list (HTML, empty, truncated, not UTF-8, of another shape): then its items
    /// count for nothing. [`Error::Api`] when it was a `Status` instead.
    pub fn finish(&mut self, code: u16) -> Result<ListMeta, Error> {
        let error = |problem| Err(Error::Body(BodyError::new(code, self.problem(problem), &self.head, None)));
        if let Some(problem) = self.broken {
            return error(problem);
        }
        if self.place != Place::After {
            return error(BodyProblem::Truncated);
        }
        let Ok(text) = str::from_utf8(&self.envelope) else { return error(BodyProblem::NotUtf8) };
        let Ok(envelope) = serde_json::from_str::<Value>(text) else { return error(BodyProblem::NotJson) };
        if envelope["kind"] == "Status" {
            let mut status = Status::deserialize(&envelope).unwrap_or_default();
            status.code = if status.code == 0 { code } else { status.code };
            return Err(status.into());
        }
        ListMeta::of(&envelope).map_or_else(|| error(BodyProblem::NotJson), Ok)
    }

    /// What is wrong, by what can be seen in the beginning before `problem`.
    fn problem(&self, problem: BodyProblem) -> BodyProblem {
        let cut_or_whole = |error: std::str::Utf8Error| error.error_len().is_none();
        let text = str::from_utf8(&self.head).map_or_else(cut_or_whole, |_| true);
        response::body_problem(&self.head, if text { problem } else { BodyProblem::NotUtf8 })
    }

    /// Takes something off the front of `rest`, which is not empty.
    fn advance(&mut self, rest: &mut &[u8]) -> Option<ListItem> {
        let first = rest[0];
        match self.place {
            Place::Item { too_long } => return self.in_item(rest, too_long),
            Place::Envelope => {
                *rest = &rest[1..];
                self.in_envelope(first);
            }
            _ if is_blank(first) => *rest = &rest[1..],
            Place::Before if first == b'{' => self.place = Place::Envelope,
            Place::Before | Place::After => self.broken = Some(BodyProblem::NotJson),
            Place::Items { comma: false, .. } if first == b']' => self.place = Place::Envelope,
            Place::Items { comma: false, any: true } if first == b',' => {
                self.place = Place::Items { comma: true, any: true };
                *rest = &rest[1..];
            }
            Place::Items { comma, any } if comma == any && !matches!(first, b',' | b']' | b'}') => {
                self.inner = Nesting::new();
                self.place = Place::Item { too_long: false };
            }
            Place::Items { .. } => self.broken = Some(BodyProblem::NotJson),
        }
        None
    }

    fn in_envelope(&mut self, byte: u8) {
        let before = self.outer;
        if before.string || !is_blank(byte) {
            self.envelope.push(byte);
        }
        if self.outer.end_of_value(&[byte]).is_some() {
            self.place = Place::After;
        }
        if self.envelope.len() > self.options.limit {
            self.broken = Some(BodyProblem::TooLarge(self.options.limit));
        } else if before.depth == 1 && !before.string && byte == b'[' && self.at_items() {
            self.place = Place::Items { comma: false, any: false };
        }
    }

    /// Whether the bracket at the end of the envelope opens the items: a quote inside a string would have a backslash
    /// before it, where here is a comma or a bracket.
    fn at_items(&self) -> bool {
        self.envelope.strip_suffix(b"\"items\":[").is_some_and(|before| matches!(before.last(), Some(b'{' | b',')))
    }

    fn in_item(&mut self, rest: &mut &[u8], too_long: bool) -> Option<ListItem> {
        let end = self.inner.end_of_value(rest);
        let piece = &rest[..end.unwrap_or(rest.len())];
        *rest = &rest[piece.len()..];
        let limit = self.options.limit;
        let too_long = too_long || piece.len() > limit - self.item.len();
        if end.is_some() && !too_long && self.item.is_empty() {
            return self.item_ended(|options| read_item(piece, options));
        }
        let room = limit - self.item.len();
        self.item.extend_from_slice(&piece[..piece.len().min(room)]);
        if end.is_none() {
            self.place = Place::Item { too_long };
            return None;
        }
        let item = std::mem::take(&mut self.item);
        let read = self.item_ended(|options| match too_long {
            true => Ok(ListItem::Faulty(Faulty::too_long(&String::from_utf8_lossy(&item), options))),
            false => read_item(&item, options),
        });
        if item.capacity() <= KEPT_CAPACITY {
            self.item = item;
            self.item.clear();
        }
        read
    }

    fn item_ended(&mut self, read: impl FnOnce(&FrameOptions) -> Result<ListItem, BodyProblem>) -> Option<ListItem> {
        self.place = Place::Items { comma: false, any: true };
        read(&self.options).map_err(|problem| self.broken = Some(problem)).ok()
    }
}

impl Nesting {
    const fn new() -> Self {
        Self { depth: 0, string: false, escape: false }
    }

    /// Passes over bytes of a value up to its end, and answers where that is, if it is among them.
    fn end_of_value(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            match byte {
                _ if self.escape => self.escape = false,
                b'\\' if self.string => self.escape = true,
                b'"' => {
                    self.string = !self.string;
                    if !self.string && self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ if self.string => at += plain_prefix(&bytes[at + 1..]),
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth <= 1 => return Some(at + self.depth as usize),
                b'}' | b']' => self.depth -= 1,
                b',' | b' ' | b'\n' | b'\r' | b'\t' if self.depth == 0 => return Some(at),
                _ => {}
            }
            at += 1;
        }
        None
    }
}

impl ListMeta {
    /// `None` when it is no list.
    fn of(envelope: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(Into::into);
        let kind: Option<Box<str>> = text(&envelope["kind"]);
        let named = kind.as_deref().is_some_and(|kind| kind.ends_with("List"));
        let listed = match envelope.get("items") {
            Some(Value::Array(_)) => true,
            Some(Value::Null) | None => named,
            Some(_) => false,
        };
        let metadata = &envelope["metadata"];
        listed.then(|| Self {
            resource_version: text(&metadata["resourceVersion"]),
            continue_token: text(&metadata["continue"]),
            remaining_item_count: metadata["remainingItemCount"].as_i64(),
            api_version: text(&envelope["apiVersion"]),
            kind,
        })
    }
}

/// One item; what is no JSON breaks the whole list.
fn read_item(item: &[u8], options: &FrameOptions) -> Result<ListItem, BodyProblem> {
    let types = options.types.as_ref();
    let text = str::from_utf8(item).map_err(|_| BodyProblem::NotUtf8)?;
    let faulty = |message: &str| ListItem::Faulty(Faulty::of(text, types, message));
    let mut scanner = Scanner::new(text);
    match Outline::scan(&mut scanner, options.trim, types) {
        Ok(_) if !scanner.rest().is_empty() => Err(BodyProblem::NotJson),
        Ok(outline) => Ok(match outline.finish(&scanner, types) {
            Ok(object) => ListItem::Object(Arc::new(object)),
            Err(fault) => faulty(fault),
        }),
        Err(flaw @ Flaw::TooDeep(_)) => Ok(faulty(&describe(flaw))),
        Err(_) => Err(BodyProblem::NotJson),
    }
}

/// How much of a body an error may show, in bytes.
const HEAD: usize = 4 * BodyError::SNIPPET;
const KEPT_CAPACITY: usize = 64 << 10;
