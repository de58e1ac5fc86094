//! What is listed and watched, and with how much patience.

use std::time::Duration;

use http::{HeaderValue, Request, header};

use crate::backoff::BackoffPolicy;
use crate::error::Error;
use crate::exchange::HttpRequest;
use crate::frame::FrameOptions;
use crate::object::{Trim, TypeMeta};
use crate::request::{ListParams, ListVersion, Requests, WatchParams};

/// What a [`ListWatch`](crate::ListWatch) follows, and with how much patience.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made with struct update syntax")]
pub struct WatchConfig {
    /// The type of the objects, in one namespace or in all.
    pub requests: Requests,
    /// Only objects whose labels fulfil this, as `kubectl -l` takes it.
    pub label_selector: Option<String>,
    /// Only objects whose fields fulfil this, as `kubectl --field-selector` takes it.
    pub field_selector: Option<String>,
    /// How new the first list must be. Lists after an expired watch are always the most recent.
    pub version: ListVersion,
    /// The most objects in one page of a list; 0 asks for all at once.
    pub page_size: u32,
    /// Whether lists are asked for as a stream of events, where the server has it.
    pub streaming: bool,
    /// Only the metadata of objects is asked for, as `PartialObjectMetadata`.
    pub metadata_only: bool,
    /// What is left out of each object.
    pub trim: Trim,
    /// The longest event, or item of a list, in bytes; a longer one is passed over and reported.
    pub max_object_bytes: usize,
    /// After which time the server is to end a watch; each watch asks for up to twice as much, at random.
    pub watch_timeout: Duration,
    /// How long a watch may be silent before it is taken for dead and resumed. Servers send a bookmark each minute.
    pub idle_timeout: Duration,
    /// How long an answer, or the next piece of a list, may take.
    pub response_timeout: Duration,
    /// How long a streaming list may be silent before its end, once it has begun.
    pub stream_timeout: Duration,
    /// How long is waited after failures.
    pub backoff: BackoffPolicy,
}

impl WatchConfig {
    /// Streaming lists or pages of 500; watches of 5 to 10 minutes that may be silent for 90 seconds; 60 seconds for an
    /// answer, 15 for the next event of a streaming list.
    pub const fn new(requests: Requests) -> Self {
        Self {
            requests,
            label_selector: None,
            field_selector: None,
            version: ListVersion::MostRecent,
            page_size: 500,
            streaming: true,
            metadata_only: false,
            trim: Trim::ManagedFields,
            max_object_bytes: FrameOptions::LIMIT,
            watch_timeout: Duration::from_secs(300),
            idle_timeout: Duration::from_secs(90),
            response_timeout: Duration::from_secs(60),
            stream_timeout: Duration::from_secs(15),
            backoff: BackoffPolicy::WATCH,
        }
    }

    pub(super) fn frames(&self) -> FrameOptions {
        let types =
            if self.metadata_only { TypeMeta::partial_metadata() } else { self.requests.resource_type().into() };
        FrameOptions { limit: self.max_object_bytes, trim: self.trim, types: Some(types) }
    }

    pub(super) fn list(&self, limit: u32, token: Option<&str>, version: ListVersion) -> Result<HttpRequest, Error> {
        let params = ListParams {
            label_selector: self.label_selector.clone(),
            field_selector: self.field_selector.clone(),
            limit: Some(limit).filter(|limit| *limit > 0),
            continue_token: token.map(ToOwned::to_owned),
            version: if token.is_some() { ListVersion::MostRecent } else { version },
            timeout: None,
        };
        Ok(self.accepting("List", self.requests.list(&params)?))
    }

    pub(super) fn watch(&self, version: Option<&str>, initial: bool, timeout: Duration) -> Result<HttpRequest, Error> {
        let params = WatchParams {
            label_selector: self.label_selector.clone(),
            field_selector: self.field_selector.clone(),
            resource_version: version.map(ToOwned::to_owned),
            timeout: Some(timeout),
            bookmarks: true,
            initial_events: initial,
        };
        Ok(self.accepting("", self.requests.watch(&params)?))
    }

    fn accepting<T>(&self, list: &str, mut request: Request<T>) -> HttpRequest
    where
        HttpRequest: From<Request<T>>,
    {
        if self.metadata_only {
            let accept = format!("application/json;as=PartialObjectMetadata{list};g=meta.k8s.io;v=v1");
            let accept = HeaderValue::from_str(&accept).expect("plain ASCII");
            request.headers_mut().insert(header::ACCEPT, accept);
        }
        request.into()
    }
}
