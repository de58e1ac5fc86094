//! What the log tells of requests.

use std::time::Duration;

use cloudcoil_core::{HttpRequest, NetworkError};
use tracing::Span;
use tracing::field::Empty;

/// The span of a request; its `code` comes with the answer.
pub(crate) fn request_span(request: &HttpRequest) -> Span {
    let request = request.inner();
    let method = request.method().as_str();
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    tracing::debug_span!("request", method, path, code = Empty)
}

/// Puts the end of a request into the log.
pub(crate) fn report_request(span: &Span, result: &Result<(), NetworkError>, elapsed: Duration) {
    span.in_scope(|| match result {
        Ok(()) => tracing::debug!(?elapsed, "answered"),
        Err(error) => tracing::debug!(?elapsed, %error, "failed"),
    });
}
