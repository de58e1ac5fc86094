//! Serving HTTP: what a listener is told, and what one connection of it does.
//!
//! An adapter accepts connections, encrypts them, and drives a [`ServerConnection`] on each. Who calls is known by the [`Peer`]
//! among the extensions of a request.

mod connection;
pub(crate) mod fuzz;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};

use crate::config::{ConfigError, Identity, Pem, Subject};
use crate::http1::RequestDecoder;

pub use connection::{ServerConnection, ServerInput, ServerOutput};

/// Where a listener listens, and how.
///
/// ```
/// use std::time::Duration;
/// use cloudcoil_core::listen::{ListenConfig, ListenLimits};
///
/// let config = ListenConfig {
///     limits: ListenLimits { handler: Duration::from_secs(5), ..ListenLimits::default() },
///     ..ListenConfig::new("0.0.0.0:8080".parse()?)
/// };
/// assert!(config.tls.is_none());
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made with struct update syntax")]
pub struct ListenConfig {
    /// The address; port 0 is any that is free.
    pub address: SocketAddr,
    /// How connections are encrypted; `None` for plain HTTP.
    pub tls: Option<ServerTls>,
    /// What a client may ask for.
    pub limits: ListenLimits,
}

impl ListenConfig {
    /// Plain HTTP at an address, with the default limits.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, tls: None, limits: ListenLimits::default() }
    }
}

/// How a server shows who it is, and learns who its clients are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made with struct update syntax")]
pub struct ServerTls {
    /// The server's certificate, leaf first, and its key.
    pub identity: Identity,
    /// The authorities of clients. A client that shows a certificate of theirs is known by its [`Peer`]; one that shows
    /// none is served all the same, as probes and API servers have none as a rule; one that shows another is refused. `None` asks
    /// nobody.
    pub client_ca: Option<Pem>,
}

/// What clients may ask of a listener.
///
/// The defaults fit webhooks, metrics and probes: API servers give a webhook
/// [10 seconds, and 30 at the most](https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#timeouts),
/// and send it two objects of up to 3 MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made with struct update syntax")]
pub struct ListenLimits {
    /// The longest body of a request in bytes, 8 MiB; a longer one is answered 413.
    pub body: usize,
    /// The longest head of a request in bytes, 64 KiB; a longer one is answered 431.
    pub head: usize,
    /// How many connections are open at once, 1000; others wait until one of these has closed.
    pub connections: usize,
    /// How long the handshake of TLS may take, and then the first head to come, and any other head from its first byte on: 10
    /// seconds. A head that takes longer is answered 408.
    pub arrival: Duration,
    /// How long a body may take to come, 30 seconds; one that takes longer is answered 408.
    pub transfer: Duration,
    /// How long the handler may take, 30 seconds. If it takes longer it is given up, and 503 is answered. A handler on a thread
    /// cannot be ended, and counts until it ends: while as many run as there may be `connections`, further requests are
    /// answered 503 at once.
    pub handler: Duration,
    /// How long the client may take to take in an answer, 30 seconds.
    pub reply: Duration,
    /// How long a connection stays open between two requests, 3 minutes: longer than clients keep theirs, so that it is
    /// not closed while a request is on its way.
    pub idle: Duration,
}

impl Default for ListenLimits {
    fn default() -> Self {
        Self {
            body: 8 << 20,
            head: RequestDecoder::MAX_HEAD,
            connections: 1000,
            arrival: Duration::from_secs(10),
            transfer: Duration::from_secs(30),
            handler: Duration::from_secs(30),
            reply: Duration::from_secs(30),
            idle: Duration::from_secs(180),
        }
    }
}

/// Who has sent a request: among its extensions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "an address and a name are all that is known")]
pub struct Peer {
    /// Where the connection comes from.
    pub address: SocketAddr,
    /// Whom the client's certificate names, if it has shown one that [the authorities of clients](ServerTls::client_ca) have issued.
    pub subject: Option<Arc<Subject>>,
}

/// Why nothing listens.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {problem}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        problem: Box<str>,
    },
    /// A certificate or key cannot be used.
    #[error(transparent)]
    Tls(#[from] ConfigError),
}

impl ListenError {
    /// What it means that an address cannot be listened on.
    pub fn bind(address: SocketAddr, problem: &dyn std::error::Error) -> Self {
        Self::Bind { address, problem: problem.to_string().into() }
    }
}

/// An answer that says why there is no other, in a line of text.
pub fn failure(status: StatusCode, problem: &str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(format!("{problem}\n")));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// What is answered when a handler has panicked.
pub fn panicked() -> Response<Bytes> {
    failure(StatusCode::INTERNAL_SERVER_ERROR, "the handler of this request has failed")
}

/// What is answered when a handler takes too long.
pub fn overdue() -> Response<Bytes> {
    failure(StatusCode::SERVICE_UNAVAILABLE, "the handler of this request takes too long")
}

/// What is answered to a body that is over the limit.
pub fn too_large(limit: usize) -> Response<Bytes> {
    failure(StatusCode::PAYLOAD_TOO_LARGE, &format!("the body of the request is longer than {limit} bytes"))
}

/// What is answered to a request that does not come to its end.
pub fn too_slow() -> Response<Bytes> {
    failure(StatusCode::REQUEST_TIMEOUT, "the request takes too long to come")
}
