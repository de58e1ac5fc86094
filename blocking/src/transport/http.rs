//! HTTP by ureq.

use std::io::Read as _;
use std::time::Duration;

use bytes::Bytes;
use cloudcoil_core::NetworkError;
use cloudcoil_core::config::{Config, ConfigError};
use cloudcoil_core::http1::{Flaw, encode, encode_forwarded, may_repeat};
use http::{HeaderValue, Request, Response, StatusCode, Uri, header};
use ureq::Agent;

use super::connector::{Connector, INPUT, Unresolved};
use super::failure::{body_failure, exchange_failure};
use super::wire::lending;
use crate::{Body, Cancel};

/// Carries requests whose address is absolute over HTTP/1.1. A connection is kept when an answer was read to its end; every
/// watch has one of its own.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    agent: Agent,
    /// Whether a proxy forwards the requests, and with which header; see [`cloudcoil_tls::Route::forwarding`].
    forwarding: Option<Option<HeaderValue>>,
}

impl Connections {
    pub(crate) fn new(config: &Config) -> Result<Self, ConfigError> {
        let settings = ureq::config::Config::builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            // Otherwise a buffer that is full would pass for a connection that has ended.
            .max_response_header_size(INPUT - 1)
            .max_idle_connections(IDLE)
            .max_idle_connections_per_host(IDLE)
            .max_idle_age(IDLE_AGE)
            .build();
        let connector = Connector::new(config)?;
        let forwarding = connector.forwarding();
        let agent = Agent::with_parts(settings, connector, Unresolved);
        Ok(Self { agent, forwarding })
    }

    /// Sends, and if [`may_repeat`] says so, once more.
    pub(crate) fn send(&self, mut request: Request<Bytes>, cancel: &Cancel) -> Result<Response<Body>, NetworkError> {
        if let Some(Some(authorization)) = &self.forwarding {
            request.headers_mut().insert(header::PROXY_AUTHORIZATION, authorization.clone());
        }
        match self.attempt(&request, cancel) {
            (Err(error), is_new) if may_repeat(request.method(), is_new, &error) && !cancel.is_cancelled() => {
                self.attempt(&request, cancel).0
            }
            (result, _) => result,
        }
    }

    /// Sends once; says also whether a connection was made for it.
    fn attempt(&self, request: &Request<Bytes>, cancel: &Cancel) -> (Result<Response<Body>, NetworkError>, bool) {
        let bytes = if self.forwarding.is_some() { encode_forwarded(request) } else { encode(request) };
        let bytes = match bytes {
            Ok(bytes) => bytes,
            Err(error) => return (Err(error), true),
        };
        let (result, connected) = lending(bytes, cancel, || self.agent.run(outline(request)));
        let response = result.map_err(exchange_failure).and_then(|response| match response.status() {
            StatusCode::SWITCHING_PROTOCOLS => Err(Flaw::Switched.into()),
            _ => Ok(response),
        });
        (response.map(|response| response.map(|body| Box::new(Pieces(Some(body.into_reader()))) as Body)), connected)
    }
}

/// What ureq has to know of a request: of what kind the answer is. All its connections lead to one server, and a
/// [`Link`](super::connector::Link) sends the request itself, because ureq refuses long lines and some values of headers.
fn outline(request: &Request<Bytes>) -> Request<()> {
    let mut outline = Request::new(());
    *outline.method_mut() = request.method().clone();
    *outline.uri_mut() = Uri::from_static("http://server/");
    outline
}

/// The rest of an answer. It is dropped where it ends, so that its connection serves others.
struct Pieces(Option<ureq::BodyReader<'static>>);

impl Iterator for Pieces {
    type Item = Result<Bytes, NetworkError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut buffer = [0; PIECE];
        match self.0.as_mut()?.read(&mut buffer) {
            Ok(0) => {
                self.0 = None;
                None
            }
            Ok(length) => Some(Ok(Bytes::copy_from_slice(&buffer[..length]))),
            Err(error) => {
                self.0 = None;
                Some(Err(body_failure(error)))
            }
        }
    }
}

/// How many connections are kept, and for how long, while nobody uses them.
const IDLE: usize = 32;
const IDLE_AGE: Duration = Duration::from_secs(90);
const PIECE: usize = 16 << 10;
