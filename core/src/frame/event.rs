//! The events of a watch.

use std::collections::VecDeque;
use std::iter;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::lines::{Line, Lines};
use super::{Faulty, FrameOptions};
use crate::error::{BodyError, BodyProblem};
use crate::json::{Flaw, Keep, Scanner};
use crate::object::{Object, Outline, describe};
use crate::response;
use crate::status::Status;

/// Reads the events of a watch from chunks, one event a line.
///
/// ```
/// use cloudcoil_core::frame::{Frame, FrameOptions, Frames};
///
/// let mut frames = Frames::new(FrameOptions::default());
/// let chunks = [&b"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"na"[..], b"me\":\"a\"}}}\r\n\r\n"];
/// let names: Vec<String> = chunks
///     .iter()
///     .flat_map(|chunk| frames.read(chunk).collect::<Vec<_>>())
///     .map(|frame| match frame {
///         Frame::Added(object) => object.name().to_owned(),
///         other => panic!("{other:?}"),
///     })
///     .collect();
/// assert_eq!((names, frames.finish()), (vec!["a".to_owned()], vec![]));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Frames {
    options: FrameOptions,
    lines: Lines,
    /// The events of a line behind the first, which no server is known to send.
    more: VecDeque<Frame>,
}

/// One event of a watch.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Frame {
    /// An object exists, or has come to match the selectors.
    Added(Arc<Object>),
    /// An object has changed.
    Modified(Arc<Object>),
    /// An object is gone, or has ceased to match the selectors; this is its last state.
    Deleted(Arc<Object>),
    /// The watch has got this far.
    Bookmark(Bookmark),
    /// The server reports a failure, and says no more.
    Failed(Box<Status>),
    /// An event about an object that cannot be taken in.
    Faulty(Faulty),
    /// An event of a type that this library does not know.
    Unknown(Box<str>),
    /// A line that is no event: what is wrong with it, and how it begins. The code is that of a watch that runs, 200.
    Broken(BodyError),
}

/// How far a watch has got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bookmark {
    /// The resource version from which a later watch can go on; `None` when the bookmark has none.
    pub resource_version: Option<Box<str>>,
    /// Whether all that existed at the beginning of a streaming list has been sent.
    pub ends_initial_events: bool,
}

impl Frames {
    /// A reader that has seen nothing yet.
    pub const fn new(options: FrameOptions) -> Self {
        Self { options, lines: Lines::new(), more: VecDeque::new() }
    }

    /// The events that this chunk completes. What is not asked for is lost, so read it to the end unless the stream is
    /// given up.
    pub fn read<'a>(&'a mut self, chunk: &'a [u8]) -> impl Iterator<Item = Frame> + 'a {
        let mut rest = chunk;
        iter::from_fn(move || {
            loop {
                if let Some(frame) = self.more.pop_front() {
                    return Some(frame);
                }
                let frame = match self.lines.next(&mut rest, self.options.limit)? {
                    Line::Whole(line) => read_line(line, &self.options, &mut self.more),
                    Line::TooLong(prefix) => Some(too_long(prefix, &self.options)),
                };
                if frame.is_some() {
                    return frame;
                }
            }
        })
    }

    /// The events on a last line that has no end, when the stream has ended.
    pub fn finish(&mut self) -> Vec<Frame> {
        let Some(line) = self.lines.finish() else { return Vec::new() };
        let first = read_line(&line, &self.options, &mut self.more);
        first.into_iter().chain(self.more.drain(..)).collect()
    }
}

/// The first event of a line, if it is not blank; more of them are put aside.
fn read_line(line: &[u8], options: &FrameOptions, more: &mut VecDeque<Frame>) -> Option<Frame> {
    let Ok(text) = str::from_utf8(line) else {
        return Some(Frame::Broken(broken(line, BodyProblem::NotUtf8)));
    };
    let mut first = None;
    let mut rest = text.trim_ascii_start();
    while !rest.is_empty() {
        let (frame, scanned) = read_event(rest, options);
        rest = rest[scanned..].trim_ascii_start();
        match first {
            None => first = Some(frame),
            Some(_) => more.push_back(frame),
        }
    }
    first
}

/// One event, and how far it goes.
fn read_event(text: &str, options: &FrameOptions) -> (Frame, usize) {
    let mut scanner = Scanner::new(text);
    let mut event = Event::default();
    let frame = match event.scan(&mut scanner, options) {
        Ok(()) => return (event.finish(text, options), scanner.scanned()),
        Err(flaw @ Flaw::TooDeep(_)) => Frame::Faulty(event.faulty(text, options, &describe(flaw))),
        Err(Flaw::Truncated) => Frame::Broken(broken(text.as_bytes(), BodyProblem::Truncated)),
        Err(Flaw::Syntax(_)) => Frame::Broken(broken(text.as_bytes(), BodyProblem::NotJson)),
    };
    (frame, text.len())
}

/// What is known of an event that is too long, from its beginning.
fn too_long(prefix: &[u8], options: &FrameOptions) -> Frame {
    let text = String::from_utf8_lossy(prefix);
    let mut event = Event::default();
    // It ends in the middle; what counts is how far it was understood.
    let _ = event.scan(&mut Scanner::new(&text), options);
    let object = event.object.map_or("", |(start, _)| &text[start..]);
    Frame::Faulty(Faulty::too_long(object, options))
}

/// An event while it is scanned.
#[derive(Default)]
struct Event {
    kind: Kind,
    /// Where the object begins and ends in the text.
    object: Option<(usize, usize)>,
    /// The object, when it could be read on the way.
    read: Option<Result<Object, &'static str>>,
    /// Whether the line is a bare `Status` and no event.
    status: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Absent,
    Change(Change),
    Bookmark,
    Error,
    Unknown(Box<str>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Added,
    Modified,
    Deleted,
}

impl Event {
    fn scan(&mut self, scanner: &mut Scanner<'_>, options: &FrameOptions) -> Result<(), Flaw> {
        scanner.members(|scanner, key| {
            match &*key.value(scanner.text()) {
                "type" => self.kind = Kind::read(scanner)?,
                "object" => self.object(scanner, options)?,
                "kind" => {
                    let kind = scanner.string_or_skip()?;
                    self.status = kind.is_some_and(|kind| kind.raw(scanner.text()) == "Status");
                }
                _ => scanner.skip()?,
            }
            Ok(Keep::Yes)
        })?;
        Ok(())
    }

    /// Reads the object at once when it is known to be one, as it is when the type comes first.
    fn object(&mut self, scanner: &mut Scanner<'_>, options: &FrameOptions) -> Result<(), Flaw> {
        let start = scanner.scanned();
        self.object = Some((start, scanner.text().len()));
        self.read = None;
        if matches!(self.kind, Kind::Change(_)) {
            let (read, scanned) = read_object(scanner.rest(), options)?;
            self.read = Some(read);
            scanner.pass(scanned);
        } else {
            scanner.skip()?;
        }
        self.object = Some((start, scanner.scanned()));
        Ok(())
    }

    fn finish(self, text: &str, options: &FrameOptions) -> Frame {
        let object = self.object.map(|(start, end)| &text[start..end]);
        match (self.kind, object) {
            (Kind::Change(change), Some(object)) => {
                let read = self.read.or_else(|| read_object(object, options).ok().map(|(read, _)| read));
                match read.unwrap_or(Err("nests too deep")) {
                    Ok(object) => change.of(Arc::new(object)),
                    Err(fault) => Frame::Faulty(Faulty::of(object, options.types.as_ref(), fault)),
                }
            }
            (Kind::Bookmark, object) => Frame::Bookmark(bookmark(object.unwrap_or("null"))),
            (Kind::Error, object) => Frame::Failed(Box::new(status(object.unwrap_or("null")))),
            (Kind::Unknown(kind), _) => Frame::Unknown(kind),
            // Some servers report a failure as they would in place of a watch.
            (Kind::Absent, _) if self.status => Frame::Failed(Box::new(status(text))),
            (Kind::Absent | Kind::Change(_), _) => Frame::Broken(broken(text.as_bytes(), BodyProblem::NotJson)),
        }
    }

    fn faulty(&self, text: &str, options: &FrameOptions, message: &str) -> Faulty {
        let object = self.object.map_or("", |(start, _)| &text[start..]);
        Faulty::of(object, options.types.as_ref(), message)
    }
}

impl Kind {
    fn read(scanner: &mut Scanner<'_>) -> Result<Self, Flaw> {
        let Some(kind) = scanner.string_or_skip()? else { return Ok(Self::Absent) };
        Ok(match &*kind.value(scanner.text()) {
            "ADDED" => Self::Change(Change::Added),
            "MODIFIED" => Self::Change(Change::Modified),
            "DELETED" => Self::Change(Change::Deleted),
            "BOOKMARK" => Self::Bookmark,
            "ERROR" => Self::Error,
            other => Self::Unknown(other.chars().take(MAX_KIND).collect::<String>().into()),
        })
    }
}

impl Change {
    const fn of(self, object: Arc<Object>) -> Frame {
        match self {
            Self::Added => Frame::Added(object),
            Self::Modified => Frame::Modified(object),
            Self::Deleted => Frame::Deleted(object),
        }
    }
}

/// The object at the beginning of a text, and how far it goes.
fn read_object(text: &str, options: &FrameOptions) -> Result<(Result<Object, &'static str>, usize), Flaw> {
    let mut scanner = Scanner::new(text);
    let outline = Outline::scan(&mut scanner, options.trim, options.types.as_ref())?;
    Ok((outline.finish(&scanner, options.types.as_ref()), scanner.scanned()))
}

/// Bookmarks come in any shape, so everything about them is optional.
fn bookmark(object: &str) -> Bookmark {
    let object: Value = serde_json::from_str(object).unwrap_or_default();
    let metadata = &object["metadata"];
    let version = metadata["resourceVersion"].as_str().filter(|version| !version.is_empty());
    Bookmark {
        resource_version: version.map(Into::into),
        ends_initial_events: metadata["annotations"]["k8s.io/initial-events-end"] == "true",
    }
}

fn status(object: &str) -> Status {
    let value = serde_json::from_str(object).ok().filter(Value::is_object);
    let mut status = value.and_then(|value| Status::deserialize(value).ok()).unwrap_or_default();
    if status.message.is_empty() && status.reason.is_empty() && status.code == 0 {
        "the server reports a failure and does not say which".clone_into(&mut status.message);
    }
    status
}

fn broken(line: &[u8], problem: BodyProblem) -> BodyError {
    BodyError::new(200, response::body_problem(line, problem), line, None)
}

/// How many characters of an unknown event type are kept.
const MAX_KIND: usize = 64;
