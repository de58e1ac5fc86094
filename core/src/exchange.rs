//! HTTP as an effect: what a machine asks of a driver, and what it hears back.

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};

use crate::error::NetworkError;
use crate::machine::Ticket;
use crate::warning::{self, Warning};

/// A request to send: its URI is a path and query, to be resolved against the cluster's address.
///
/// Credentials are not in it; whoever sends it adds them.
#[derive(Clone, Debug)]
pub struct HttpRequest(Box<Request<Bytes>>);

impl HttpRequest {
    /// The request as the `http` crate has it.
    pub fn into_inner(self) -> Request<Bytes> {
        *self.0
    }

    /// The request as the `http` crate has it.
    pub fn inner(&self) -> &Request<Bytes> {
        &self.0
    }
}

impl From<Request<Bytes>> for HttpRequest {
    fn from(request: Request<Bytes>) -> Self {
        Self(Box::new(request))
    }
}

impl PartialEq for HttpRequest {
    fn eq(&self, other: &Self) -> bool {
        let parts = |request: &Self| {
            (request.0.method().clone(), request.0.uri().clone(), request.0.headers().clone(), request.0.body().clone())
        };
        parts(self) == parts(other)
    }
}

/// What a machine asks of the driver's transport.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a transport must do both")]
pub enum HttpEffect {
    /// Send a request. The answer comes as [`HttpEvent`]s with the same ticket, ending with
    /// [`Closed`](HttpEvent::Closed).
    Send {
        /// Names the exchange.
        ticket: Ticket,
        /// What to send.
        request: HttpRequest,
    },
    /// Give up an exchange and close its connection or stream; nothing that comes of it later is heard.
    Cancel {
        /// Names the exchange.
        ticket: Ticket,
    },
}

/// What became of a request: one `Responded`, any number of `Received`, one `Closed`; or only a `Closed` that says why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "this is all that HTTP tells")]
pub enum HttpEvent {
    /// The head of the answer came.
    Responded {
        /// Names the exchange.
        ticket: Ticket,
        /// The HTTP code.
        status: StatusCode,
        /// The headers.
        headers: HeaderMap,
    },
    /// A piece of the body came, cut anywhere.
    Received {
        /// Names the exchange.
        ticket: Ticket,
        /// The bytes.
        bytes: Bytes,
    },
    /// The exchange is over: the body is complete, or the network failed.
    Closed {
        /// Names the exchange.
        ticket: Ticket,
        /// Whether the answer is whole.
        result: Result<(), NetworkError>,
    },
}

impl HttpEvent {
    /// The exchange it belongs to.
    pub const fn ticket(&self) -> Ticket {
        match self {
            Self::Responded { ticket, .. } | Self::Received { ticket, .. } | Self::Closed { ticket, .. } => *ticket,
        }
    }
}

/// The head and body of an answer as they come in, with a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP code.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// What has come of the body.
    pub body: Vec<u8>,
    limit: usize,
    attempts: u32,
}

impl Answer {
    /// The largest body that is read whole, in bytes, unless another limit is asked for.
    pub const LIMIT: usize = 256 << 20;

    /// An answer whose body is still to come.
    pub const fn new(status: StatusCode, headers: HeaderMap) -> Self {
        Self { status, headers, body: Vec::new(), limit: Self::LIMIT, attempts: 1 }
    }

    /// The same, with another limit in bytes.
    #[must_use]
    pub fn limited(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// The same, as that to the last of so many attempts.
    pub(crate) fn after(self, attempts: u32) -> Self {
        Self { attempts, ..self }
    }

    /// How many times the request was sent until this answer came.
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// What the server warns of in its headers, such as that a version of an API will go.
    pub fn warnings(&self) -> Vec<Warning> {
        warning::parse(&self.headers)
    }

    /// Adds a piece of the body. A body over the limit is cut there; decoding it gives
    /// [`BodyProblem::TooLarge`](crate::error::BodyProblem::TooLarge).
    pub fn receive(&mut self, bytes: &[u8]) {
        let room = (self.limit + 1).saturating_sub(self.body.len());
        self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// The limit, if the body is over it.
    pub const fn over_limit(&self) -> Option<usize> {
        if self.body.len() > self.limit { Some(self.limit) } else { None }
    }
}
