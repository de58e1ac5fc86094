//! What the log tells of requests.

use cloudcoil_core::{HttpEvent, HttpRequest, Ticket, Time};
use tracing::Span;
use tracing::field::Empty;

use super::Warnings;

/// A request that is under way.
pub(crate) struct Sent {
    pub(crate) ticket: Ticket,
    /// That of the request; its `code` comes with the answer.
    pub(crate) span: Span,
    at: Time,
}

impl Sent {
    pub(crate) fn new(ticket: Ticket, request: &HttpRequest, now: Time) -> Self {
        let request = request.inner();
        let method = request.method().as_str();
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        Self { ticket, span: tracing::debug_span!("request", method, path, code = Empty), at: now }
    }

    /// Tells what has come of it; answers whether that was all.
    pub(crate) fn hear(&self, event: &HttpEvent, warnings: &Warnings, now: impl FnOnce() -> Time) -> bool {
        match event {
            HttpEvent::Responded { status, headers, .. } => {
                self.span.record("code", status.as_u16());
                warnings.hear(headers, &self.span);
                false
            }
            HttpEvent::Received { .. } => false,
            HttpEvent::Closed { result, .. } => {
                let elapsed = now().since(self.at);
                self.span.in_scope(|| match result {
                    Ok(()) => tracing::debug!(?elapsed, "answered"),
                    Err(error) => tracing::debug!(?elapsed, %error, "failed"),
                });
                true
            }
        }
    }
}
