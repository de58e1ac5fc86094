//! What the API server warns of, said once.

use std::sync::{Arc, Mutex, PoisonError};

use cloudcoil_core::Warning;
use cloudcoil_core::warning::{self, Heard};
use http::{HeaderMap, header};
use tracing::Span;

/// Whoever wants to hear of warnings.
pub(crate) type Handler = Arc<dyn Fn(&Warning) + Send + Sync>;

/// Hands on each warning of a text that is new to it.
#[derive(Default)]
pub(crate) struct Warnings {
    heard: Mutex<Heard>,
    handler: Option<Handler>,
}

impl Warnings {
    /// Each text once, to a handler.
    pub(crate) fn to(handler: Handler) -> Self {
        Self { handler: Some(handler), ..Self::default() }
    }

    /// What the headers of an answer warn of; `span` is that of the request.
    pub(crate) fn hear(&self, headers: &HeaderMap, span: &Span) {
        if !headers.contains_key(header::WARNING) {
            return;
        }
        let mut warnings = warning::parse(headers);
        {
            let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
            warnings.retain(|warning| warning.is_api() && heard.is_new(warning));
        }
        for warning in &warnings {
            match &self.handler {
                Some(handler) => handler(warning),
                None => span.in_scope(|| tracing::warn!("{warning}")),
            }
        }
    }
}
