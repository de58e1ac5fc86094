//! Answers on their way out.

use bytes::Bytes;
use cloudcoil_core::{HttpEvent, Outbox, Ticket};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::Value;

use super::errors::{Refusal, render};
use super::watch::Subscription;

/// What a request is answered with.
#[derive(Debug)]
pub(crate) enum Reply {
    /// A whole answer.
    Body(Body),
    /// A stream of changes.
    Watch(Box<Subscription>),
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
}

impl Body {
    pub(crate) fn json(code: u16, value: &Value) -> Self {
        Self::text(code, "application/json", format!("{value}\n"))
    }

    pub(crate) fn text(code: u16, content_type: &'static str, text: impl Into<Bytes>) -> Self {
        Self { code, content_type, bytes: text.into(), warnings: Vec::new(), retry_after: 0 }
    }

    /// What is answered when no such path exists.
    pub(crate) fn no_such_page() -> Self {
        Self::text(404, "text/plain; charset=utf-8", "404 page not found\n")
    }

    pub(crate) fn refusal(refusal: &Refusal) -> Self {
        let body = Self::json(refusal.code, &render(refusal));
        Self { retry_after: refusal.details.retry_after_seconds, ..body }
    }

    /// Sends it.
    pub(crate) fn send(self, ticket: Ticket, head_only: bool, out: &mut Outbox<HttpEvent>) {
        let status = StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut headers = head(self.content_type);
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(self.bytes.len()));
        for warning in self.warnings {
            let text = format!("299 - {}", super::errors::quote(&warning));
            if let Ok(value) = HeaderValue::from_str(&text) {
                headers.append(header::WARNING, value);
            }
        }
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
