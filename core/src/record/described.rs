//! Requests, answers, objects and failures, as far as they may be shown.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, Uri, header};

use super::Entry;
use crate::error::Error;
use crate::exchange::{Answer, HttpEffect, HttpEvent, HttpRequest};
use crate::object::Object;
use crate::resource::ResourceKey;

/// What is asked of the network.
pub(super) fn effect(effect: &HttpEffect) -> Entry {
    match effect {
        HttpEffect::Send { ticket, request } => sending(request).ticket(*ticket),
        HttpEffect::Cancel { ticket } => Entry::new("Cancel").ticket(*ticket),
    }
}

/// A request to send.
pub(super) fn sending(request: &HttpRequest) -> Entry {
    let request = request.inner();
    let text = format!("{} {}{}", request.method(), address(request.uri()), shown(request.headers(), &SENT));
    Entry::new("Send").text(text).body(request.body().clone())
}

/// What the network says.
pub(super) fn event(event: &HttpEvent) -> Entry {
    match event {
        HttpEvent::Responded { ticket, status, headers } => {
            let text = format!("{}{}", status.as_u16(), shown(headers, &TOLD));
            Entry::new("Responded").ticket(*ticket).text(text)
        }
        HttpEvent::Received { ticket, bytes } => Entry::new(super::PIECE).ticket(*ticket).body(bytes.clone()),
        HttpEvent::Closed { ticket, result } => {
            let closed = Entry::new("Closed").ticket(*ticket);
            match result {
                Ok(()) => closed,
                Err(error) => failure(closed, &Error::from(error.clone())),
            }
        }
    }
}

/// The same entry, about an object.
pub(super) fn object(entry: Entry, object: &Object) -> Entry {
    entry.text(version(object))
}

/// The kind, name and version of an object.
pub(super) fn version(object: &Object) -> String {
    let (kind, key) = (object.kind(), object.key());
    format!("{kind} {key} version {}", object.resource_version().unwrap_or("unknown"))
}

/// An object of which perhaps not even the name can be read.
pub(super) fn key(key: Option<&ResourceKey>) -> String {
    key.map_or_else(|| "an object without a name".to_owned(), ToString::to_string)
}

/// An answer as a whole; its body was described as it came in.
pub(super) fn answer(answer: &Answer) -> String {
    format!("{} after {} attempts", answer.status.as_u16(), answer.attempts())
}

/// The same entry, about a failure: what kind it is may be compared, how it is worded not.
pub(super) fn failure(entry: Entry, error: &Error) -> Entry {
    let (text, detail) = match error {
        Error::Api(status) => (format!("{} {}", status.code, status.reason), status.message.clone()),
        // What the body begins with may be anything.
        Error::Body(error) => (format!("{} with {}", error.code, error.problem), String::new()),
        Error::Network(error) => {
            (format!("{} after {} attempts", error.kind, error.attempts), error.message.to_string())
        }
        Error::Credentials(_) => ("no credentials".to_owned(), String::new()),
        // The message may quote what does not fit.
        Error::Decode(error) => (format!("{} does not fit at {:?}", error.object, error.path), String::new()),
        Error::Config(_) => ("no configuration".to_owned(), String::new()),
        Error::TimedOut(limit) => ("timed out".to_owned(), format!("{limit:?}")),
        Error::Cancelled => ("cancelled".to_owned(), String::new()),
        Error::NotServed(not_served) => ("not served".to_owned(), not_served.to_string()),
        Error::Stopped(why) => ("stopped".to_owned(), why.to_string()),
        Error::Misuse(why) => ("misuse".to_owned(), why.to_string()),
    };
    entry.text(text).detail(detail)
}

/// The path and query, without the values of parameters that are not Kubernetes' own.
fn address(uri: &Uri) -> String {
    let Some(query) = uri.query() else { return uri.path().to_owned() };
    let shown = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if !PARAMETERS.contains(&name) => Cow::Owned(format!("{name}=...")),
        _ => Cow::Borrowed(pair),
    });
    format!("{}?{}", uri.path(), shown.collect::<Vec<_>>().join("&"))
}

/// The headers that do no harm, and say the same on every way to a server.
fn shown(headers: &HeaderMap, names: &[HeaderName]) -> String {
    let mut text = String::new();
    for name in names {
        for value in headers.get_all(name) {
            text.push_str(&format!(" {name}: {}", String::from_utf8_lossy(value.as_bytes())));
        }
    }
    text
}

/// Headers of requests.
const SENT: [HeaderName; 3] = [header::ACCEPT, header::CONTENT_TYPE, header::IF_NONE_MATCH];
/// Headers of answers.
const TOLD: [HeaderName; 4] = [header::CONTENT_TYPE, header::RETRY_AFTER, header::WARNING, header::ETAG];
/// Parameters of the Kubernetes API.
const PARAMETERS: [&str; 27] = [
    "allowWatchBookmarks",
    "container",
    "continue",
    "dryRun",
    "fieldManager",
    "fieldSelector",
    "fieldValidation",
    "follow",
    "force",
    "gracePeriodSeconds",
    "includeObject",
    "insecureSkipTLSVerifyBackend",
    "labelSelector",
    "limit",
    "limitBytes",
    "orphanDependents",
    "previous",
    "propagationPolicy",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "sinceSeconds",
    "sinceTime",
    "stream",
    "tailLines",
    "timeoutSeconds",
    "watch",
];
