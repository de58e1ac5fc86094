//! Paths and queries, escaped.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::error::Error;

/// A path under construction; every segment is escaped.
pub(crate) struct Uri(pub(super) String);

impl Uri {
    pub(crate) fn segment(&mut self, text: &str) -> &mut Self {
        self.0.push('/');
        self.0.extend(utf8_percent_encode(text, SEGMENT));
        self
    }

    pub(crate) fn query(self) -> Query {
        Query { uri: self.0, separator: '?' }
    }
}

/// A query under construction; every value is escaped.
pub(crate) struct Query {
    uri: String,
    separator: char,
}

impl Query {
    pub(crate) fn text(&mut self, key: &str, value: Option<&str>) {
        let Some(value) = value else { return };
        self.uri.push(self.separator);
        self.uri.push_str(key);
        self.uri.push('=');
        self.uri.extend(utf8_percent_encode(value, VALUE).map(Cow::Borrowed));
        self.separator = '&';
    }

    pub(crate) fn number(&mut self, key: &str, value: Option<u64>) {
        self.text(key, value.map(|value| value.to_string()).as_deref());
    }

    pub(crate) fn flag(&mut self, key: &str, on: bool) {
        self.text(key, on.then_some("true"));
    }

    pub(crate) fn finish(self) -> Uri {
        Uri(self.uri)
    }
}

const VALUE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b',');
const SEGMENT: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'`')
    .add(b'{')
    .add(b'}')
    .add(b'%')
    .add(b'/');

/// A path segment that says what it means: no separator, no step up.
pub(crate) fn valid<'a>(what: &str, text: &'a str) -> Result<&'a str, Error> {
    if text.is_empty() || text == "." || text == ".." || text.contains(['/', '%']) {
        return Err(Error::misuse(format!("{text:?} cannot be the {what} in a path")));
    }
    Ok(text)
}
