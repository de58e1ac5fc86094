//! Answers on their way out.

use std::collections::BTreeSet;
use std::io::Write as _;

use bytes::Bytes;
use cloudcoil_core::{HttpEvent, Outbox, Ticket};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::Value;

use super::errors::{Refusal, render};
use super::logs::Follow;
use super::watch::Subscription;

/// What a request is answered with.
#[derive(Debug)]
pub(crate) enum Reply {
    /// A whole answer.
    Body(Body),
    /// A stream of changes.
    Watch(Box<Subscription>),
    /// The log of a container, which goes on.
    Follow(Box<Follow>),
    /// Nothing yet: the answer needs a revision that is still to come.
    Wait { revision: u64, watches: bool },
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) code: u16,
    pub(crate) content_type: &'static str,
    pub(crate) bytes: Bytes,
    /// What kubectl prints as warnings.
    pub(crate) warnings: Vec<String>,
    /// After how many seconds to come again.
    pub(crate) retry_after: u32,
    /// What stands for the content, for clients that keep it.
    pub(crate) etag: Option<String>,
    /// Whether the bytes are compressed.
    pub(crate) compressed: bool,
}

impl Body {
    pub(crate) fn json(code: u16, value: &Value) -> Self {
        Self::text(code, "application/json", format!("{value}\n"))
    }

    pub(crate) fn text(code: u16, content_type: &'static str, text: impl Into<Bytes>) -> Self {
        Self {
            code,
            content_type,
            bytes: text.into(),
            warnings: Vec::new(),
            retry_after: 0,
            etag: None,
            compressed: false,
        }
    }

    /// What is answered when no such path exists.
    pub(crate) fn no_such_page() -> Self {
        Self::text(404, "text/plain; charset=utf-8", "404 page not found\n")
    }

    pub(crate) fn refusal(refusal: &Refusal) -> Self {
        let body = Self::json(refusal.code, &render(refusal));
        Self { retry_after: refusal.details.retry_after_seconds, ..body }
    }

    /// Adds to what kubectl prints as warnings.
    pub(crate) fn remarked(mut self, remarks: Vec<String>) -> Self {
        self.warnings.splice(..0, remarks);
        self
    }

    /// Makes a long answer shorter for a client that can read it so.
    pub(crate) fn compressed(mut self, request: &HeaderMap) -> Self {
        let accepted = request.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let wanted = accepted.split(',').any(|one| one.trim() == "gzip");
        if wanted && self.content_type.starts_with("application/json") && self.bytes.len() > COMPRESSED {
            // A write to memory does not fail; if it did, the answer as it is would do.
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            if let Ok(bytes) = encoder.write_all(&self.bytes).and_then(|()| encoder.finish()) {
                (self.bytes, self.compressed) = (bytes.into(), true);
            }
        }
        self
    }

    /// Lets clients keep the answer; one that has it already is told so instead.
    pub(crate) fn kept(mut self, request: &HeaderMap) -> Self {
        let etag = format!("\"{:032X}\"", fnv1a(&self.bytes));
        let known = request.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
        if known.is_some_and(|known| known.split(',').any(|one| one.trim() == etag)) {
            (self.code, self.bytes) = (304, Bytes::new());
        }
        self.etag = Some(etag);
        self
    }

    /// Sends it.
    pub(crate) fn send(self, ticket: Ticket, head_only: bool, out: &mut Outbox<HttpEvent>) {
        let status = StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut headers = head(self.content_type);
        if status == StatusCode::NO_CONTENT {
            headers.remove(header::CONTENT_TYPE);
        } else if status != StatusCode::NOT_MODIFIED {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(self.bytes.len()));
        }
        if let Some(etag) = self.etag.and_then(|etag| HeaderValue::from_str(&etag).ok()) {
            headers.insert(header::ETAG, etag);
            headers.insert(header::VARY, HeaderValue::from_static("Accept"));
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
        }
        if self.compressed {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        }
        warn(&mut headers, &self.warnings);
        if self.retry_after > 0 {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(self.retry_after));
        }
        out.push(HttpEvent::Responded { ticket, status, headers });
        if !head_only && !self.bytes.is_empty() {
            out.push(HttpEvent::Received { ticket, bytes: self.bytes });
        }
        out.push(HttpEvent::Closed { ticket, result: Ok(()) });
    }
}

/// The headers that every answer has.
pub(crate) fn head(content_type: &'static str) -> HeaderMap {
    HeaderMap::from_iter([
        (header::CONTENT_TYPE, HeaderValue::from_static(content_type)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private")),
    ])
}

/// Says warnings as the API server does: each once, and where all together are too long, no more than the beginnings of the
/// first.
pub(crate) fn warn(headers: &mut HeaderMap, warnings: &[String]) {
    let mut seen = BTreeSet::new();
    let warnings: Vec<&String> = warnings.iter().filter(|text| !text.is_empty() && seen.insert(*text)).collect();
    let whole: usize = warnings.iter().map(|text| text.chars().count()).sum();
    let most = if whole > ALL_WARNINGS { ONE_WARNING } else { ALL_WARNINGS };
    let mut written = 0;
    for warning in warnings {
        if written >= ALL_WARNINGS {
            return;
        }
        let text: String = warning.chars().take(most).collect();
        written += text.chars().count();
        if let Ok(value) = HeaderValue::from_str(&format!("299 - {}", super::errors::quote(&text))) {
            headers.append(header::WARNING, value);
        }
    }
}

/// How many characters the warnings of one answer have together, unless they are cut.
const ALL_WARNINGS: usize = 4096;

/// How many characters of a warning stay when they are cut.
const ONE_WARNING: usize = 256;

/// From how many bytes on an answer is compressed, as at a real API server.
const COMPRESSED: usize = 128 << 10;

/// FNV-1a with 128 bits: the same text has the same hash in every build.
fn fnv1a(bytes: &[u8]) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_fnv_1a() {
        assert_eq!(fnv1a(b""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(fnv1a(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }

    #[test]
    fn warnings_are_said_once_and_cut_where_they_are_too_long() {
        let said = |warnings: Vec<String>| {
            let mut headers = HeaderMap::new();
            warn(&mut headers, &warnings);
            headers.get_all(header::WARNING).iter().map(|value| value.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(said(vec!["a".into(), "b".into(), String::new(), "a".into()]), ["299 - \"a\"", "299 - \"b\""]);
        let whole = said(vec!["x".repeat(4000), "y".repeat(96)]);
        assert_eq!(whole.iter().map(String::len).collect::<Vec<_>>(), [4008, 104]);
        let cut = said(vec!["x".repeat(4000), "y".repeat(97)]);
        assert_eq!(cut.iter().map(String::len).collect::<Vec<_>>(), [264, 105]);
        // More than a map of headers can hold.
        let many = said((0..50_000).map(|n| format!("{n:05}")).collect());
        assert_eq!(many.len(), 4096_usize.div_ceil(5));
    }

    #[test]
    fn a_client_that_has_the_content_is_told_so() {
        let body = || Body::json(200, &Value::from("x"));
        let etag = body().kept(&HeaderMap::new()).etag.unwrap();
        let asks = |value: &str| HeaderMap::from_iter([(header::IF_NONE_MATCH, HeaderValue::from_str(value).unwrap())]);
        for (value, code) in [(etag.clone(), 304), (format!("\"a\", {etag}"), 304), ("\"a\"".to_owned(), 200)] {
            let answer = body().kept(&asks(&value));
            assert_eq!((answer.code, answer.bytes.is_empty()), (code, code == 304), "{value}");
        }
        let other = Body::json(200, &Value::from("y")).kept(&asks(&etag));
        assert_eq!(other.code, 200);
    }
}
