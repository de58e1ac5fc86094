//! JSON pointers.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use super::PatchError;

/// A JSON pointer ([RFC 6901](https://www.rfc-editor.org/rfc/rfc6901)): the way to a value inside a document.
///
/// ```
/// use cloudcoil_core::patch::Pointer;
///
/// let pointer = Pointer::from_iter(["metadata", "annotations", "team.example/role~x"]);
/// assert_eq!(pointer.as_str(), "/metadata/annotations/team.example~1role~0x");
/// ```
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pointer(String);

impl Pointer {
    /// The pointer to the whole document.
    pub const fn root() -> Self {
        Self(String::new())
    }

    /// Reads a pointer: empty, or segments that each start with `/`, in which `~` stands only in `~0` and `~1`.
    pub fn parse(text: impl Into<String>) -> Result<Self, PatchError> {
        let text = text.into();
        let fault = if !text.is_empty() && !text.starts_with('/') {
            "it must be empty or start with '/'"
        } else if text.split('~').skip(1).any(|rest| !rest.starts_with(['0', '1'])) {
            "'~' must be followed by '0' or '1'"
        } else {
            return Ok(Self(text));
        };
        Err(PatchError::Pointer { text, fault })
    }

    /// The pointer as text, escaped.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the pointer to the whole document.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The segments, unescaped.
    pub fn segments(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.0.split('/').skip(1).map(unescape)
    }

    /// The pointer to the member or element `segment` of what this points to.
    #[must_use]
    pub fn child(mut self, segment: &str) -> Self {
        self.push(segment);
        self
    }

    /// Whether this points to something inside what `other` points to.
    pub fn is_inside(&self, other: &Self) -> bool {
        self.0.strip_prefix(&other.0).is_some_and(|rest| rest.starts_with('/'))
    }

    /// The value that it points to in `document`.
    pub fn find<'d>(&self, document: &'d Value) -> Option<&'d Value> {
        self.segments().try_fold(document, |value, segment| match value {
            Value::Object(members) => members.get(&*segment),
            Value::Array(elements) => elements.get(index(&segment)?),
            _ => None,
        })
    }

    pub(super) fn push(&mut self, segment: &str) {
        self.0.push('/');
        for part in segment.split_inclusive(['~', '/']) {
            match part.strip_suffix(['~', '/']) {
                Some(plain) => {
                    self.0.push_str(plain);
                    self.0.push_str(if part.ends_with('~') { "~0" } else { "~1" });
                }
                None => self.0.push_str(part),
            }
        }
    }

    /// The pointer to what holds this value, and the last segment; nothing for the root.
    pub(super) fn split_last(&self) -> Option<(Self, Cow<'_, str>)> {
        let (parent, segment) = self.0.rsplit_once('/')?;
        Some((Self(parent.to_owned()), unescape(segment)))
    }

    /// The pointer of the first `segments` segments.
    pub(super) fn prefix(&self, segments: usize) -> Self {
        let end = self.0.match_indices('/').nth(segments).map_or(self.0.len(), |(end, _)| end);
        Self(self.0[..end].to_owned())
    }

    pub(super) fn depth(&self) -> usize {
        self.0.bytes().filter(|byte| *byte == b'/').count()
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Pointer {
    type Err = PatchError;

    fn from_str(text: &str) -> Result<Self, PatchError> {
        Self::parse(text)
    }
}

impl<S: AsRef<str>> FromIterator<S> for Pointer {
    fn from_iter<I: IntoIterator<Item = S>>(segments: I) -> Self {
        segments.into_iter().fold(Self::root(), |pointer, segment| pointer.child(segment.as_ref()))
    }
}

/// The number of an element: decimal digits without leading zeros.
pub(super) fn index(segment: &str) -> Option<usize> {
    let digits = segment.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || (segment.len() > 1 && segment.starts_with('0')) {
        return None;
    }
    segment.parse().ok()
}

fn unescape(segment: &str) -> Cow<'_, str> {
    if segment.contains('~') {
        Cow::Owned(segment.replace("~1", "/").replace("~0", "~"))
    } else {
        Cow::Borrowed(segment)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn segments_are_escaped_and_read_back() {
        let segments = ["", "a/b", "~", "~1", "/~0", "é", "m~n"];
        let pointer = Pointer::from_iter(segments);
        assert_eq!(pointer.as_str(), "//a~1b/~0/~01/~1~00/é/m~0n");
        assert!(pointer.segments().eq(segments));
        assert_eq!(Pointer::parse(pointer.as_str()), Ok(pointer));
    }

    #[test]
    fn text_that_is_no_pointer_is_refused() {
        for text in ["a", "a/b", "/~", "/~2", "/a~/b", "~0"] {
            assert!(matches!(Pointer::parse(text), Err(PatchError::Pointer { .. })), "{text}");
        }
    }

    #[test]
    fn pointers_find_what_the_standard_says() {
        let document = json!({ "foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, " ": 7, "m~n": 8, "01": 9 });
        let find = |text: &str| Pointer::parse(text).unwrap().find(&document).cloned();
        assert_eq!(find(""), Some(document.clone()));
        for (text, value) in [("/foo/0", json!("bar")), ("/", json!(0)), ("/a~1b", json!(1)), ("/c%d", json!(2))] {
            assert_eq!(find(text), Some(value), "{text}");
        }
        assert_eq!([find("/ "), find("/m~0n"), find("/01")], [Some(json!(7)), Some(json!(8)), Some(json!(9))]);
        for text in ["/foo/2", "/foo/-", "/foo/01", "/foo/+1", "/foo/", "/foo/0/x", "/x", "/foo/99999999999999999999"] {
            assert_eq!(find(text), None, "{text}");
        }
    }

    #[test]
    fn inside_means_below() {
        let pointer = |text: &str| Pointer::parse(text).unwrap();
        assert!(pointer("/a/b").is_inside(&pointer("/a")) && pointer("/a").is_inside(&Pointer::root()));
        assert!(!pointer("/a").is_inside(&pointer("/a")) && !pointer("/ab").is_inside(&pointer("/a")));
    }
}
