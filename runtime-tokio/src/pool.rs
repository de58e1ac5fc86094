//! Connections to one server, kept and shared.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use cloudcoil_runtime::Body;
use cloudcoil_runtime::core::NetworkError;
use cloudcoil_runtime::core::http1::{Flaw, may_repeat};
use futures_util::{FutureExt as _, Stream};
use http::{Request, Response, StatusCode, Uri, header};
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::{TrySendError, http1, http2};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::Instant;

use crate::connector::{Connection, Connector};
use crate::failure::exchange_failure;

/// The connections to one server.
pub(crate) struct Pool {
    connector: Connector,
    open: Mutex<Open>,
    /// Held while connecting, as long as the connection may turn out to be one that others can share.
    gate: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Open {
    shared: Vec<Shared>,
    idle: Vec<(http1::SendRequest<Full<Bytes>>, Instant)>,
    is_http1: bool,
    attempts: u64,
    failure: Option<NetworkError>,
}

/// An HTTP/2 connection. The server allows only so many exchanges on it, 100 as a rule, and whoever comes after waits: for
/// ever, if the others are watches. So there are as many connections as are needed.
#[derive(Clone)]
struct Shared {
    sender: http2::SendRequest<Full<Bytes>>,
    /// How many exchanges the server allows; each that is under way holds a clone, and so does the pool.
    limit: Arc<AtomicUsize>,
}

/// What carries one exchange.
enum Link {
    Own(http1::SendRequest<Full<Bytes>>),
    Shared(Shared),
}

impl Pool {
    pub(crate) fn new(connector: Connector) -> Self {
        Self { connector, open: Mutex::default(), gate: tokio::sync::Mutex::default() }
    }

    /// Sends a request whose address is absolute. One that was not taken up, because a connection at hand turned out to be
    /// closed, is sent again on another.
    pub(crate) async fn send(
        self: Arc<Self>,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Body>, NetworkError> {
        let forwarding = self.connector.forwarding();
        if let Some(Some(authorization)) = &forwarding {
            request.headers_mut().insert(header::PROXY_AUTHORIZATION, authorization.clone());
        }
        let mut is_repeated = false;
        loop {
            let (mut link, is_new) = self.link().await?;
            let repetition = (!is_repeated && matches!(link, Link::Own(_))).then(|| request.clone());
            match link.send(request, forwarding.is_some()).await {
                Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                    return Err(Flaw::Switched.into());
                }
                Ok(response) => {
                    return Ok(response.map(|body| Box::pin(Pieces { body, link: Some(link), pool: self }) as Body));
                }
                Err(mut error) => match (error.take_message(), repetition) {
                    (Some(unsent), _) if !is_new => {
                        self.forget(&link);
                        request = unsent;
                    }
                    (_, repetition) => {
                        let error = exchange_failure(error.error());
                        request = repetition.filter(|again| may_repeat(again.method(), is_new, &error)).ok_or(error)?;
                        is_repeated = true;
                    }
                },
            }
        }
    }

    /// Gives a connection to nobody any more.
    fn forget(&self, link: &Link) {
        if let Link::Shared(shared) = link {
            self.open().shared.retain(|other| !Arc::ptr_eq(&other.limit, &shared.limit));
        }
    }

    /// A connection with room for one more exchange, and whether it is new.
    async fn link(&self) -> Result<(Link, bool), NetworkError> {
        let (before, is_http1) = {
            let mut open = self.open();
            if let Some(link) = open.take() {
                return Ok((link, false));
            }
            (open.attempts, open.is_http1)
        };
        let _gate = if is_http1 { None } else { Some(self.gate.lock().await) };
        {
            let mut open = self.open();
            if let Some(link) = open.take() {
                return Ok((link, false));
            }
            // All who waited for the same attempt share its failure, so that they do not wait for one another's.
            if let Some(failure) = open.failure.clone().filter(|_| open.attempts != before) {
                return Err(failure);
            }
        }
        let result = self.connect().await;
        let mut open = self.open();
        open.attempts += 1;
        open.failure = result.as_ref().err().cloned();
        if let Ok(Link::Shared(shared)) = &result {
            open.shared.push(shared.clone());
        }
        open.is_http1 = matches!(&result, Ok(Link::Own(_)));
        result.map(|link| (link, true))
    }

    async fn connect(&self) -> Result<Link, NetworkError> {
        let Connection { io, is_http2 } = self.connector.connect().await?;
        if is_http2 {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            // A connection that has died is noticed within 45 seconds, also when nothing is sent on it.
            let builder = builder
                .timer(TokioTimer::new())
                .keep_alive_interval(Duration::from_secs(30))
                .keep_alive_timeout(Duration::from_secs(15));
            let (sender, connection) = builder.handshake(io).await.map_err(|error| exchange_failure(&error))?;
            let limit = Arc::new(AtomicUsize::new(connection.current_max_send_streams()));
            let (mut connection, server_limit) = (Box::pin(connection), Arc::downgrade(&limit));
            tokio::spawn(poll_fn(move |context| {
                let polled = connection.poll_unpin(context).map(drop);
                if let Some(limit) = server_limit.upgrade() {
                    limit.store(connection.current_max_send_streams(), Ordering::Relaxed);
                }
                polled
            }));
            Ok(Link::Shared(Shared { sender, limit }))
        } else {
            let mut builder = http1::Builder::new();
            let handshake = builder.max_headers(MAX_HEADERS).handshake(io);
            let (sender, connection) = handshake.await.map_err(|error| exchange_failure(&error))?;
            tokio::spawn(connection.map(drop));
            Ok(Link::Own(sender))
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn take(&mut self) -> Option<Link> {
        self.shared.retain(|shared| !shared.sender.is_closed());
        if let Some(shared) = self.shared.iter().find(|shared| shared.has_room()) {
            return Some(Link::Shared(shared.clone()));
        }
        self.idle.retain(|(sender, since)| !sender.is_closed() && since.elapsed() < IDLE);
        self.idle.pop().map(|(sender, _)| Link::Own(sender))
    }
}

impl Shared {
    fn has_room(&self) -> bool {
        // One of the holders is the pool itself.
        Arc::strong_count(&self.limit) <= self.limit.load(Ordering::Relaxed).clamp(1, MAX_STREAMS)
    }
}

impl Link {
    async fn send(
        &mut self,
        mut request: Request<Full<Bytes>>,
        is_forwarded: bool,
    ) -> Result<Response<Incoming>, TrySendError<Request<Full<Bytes>>>> {
        match self {
            Self::Shared(shared) => shared.sender.try_send_request(request).await,
            Self::Own(sender) => {
                to_http1(&mut request, is_forwarded);
                // An error shows again when the request is sent.
                let _ = sender.ready().await;
                sender.try_send_request(request).await
            }
        }
    }
}

/// HTTP/1.1 has the host in a header, and in the request line only the rest, or for a proxy all of it.
fn to_http1(request: &mut Request<Full<Bytes>>, is_forwarded: bool) {
    let host = request.uri().authority().and_then(|authority| authority.as_str().parse().ok());
    if let Some(host) = host {
        request.headers_mut().entry(header::HOST).or_insert(host);
    }
    if let Some(path) = request.uri().path_and_query().cloned().filter(|_| !is_forwarded) {
        *request.uri_mut() = Uri::from(path);
    }
}

/// The pieces of a body. When it is whole, its connection is kept; when it is dropped before, the connection closes, or on a
/// shared connection its stream.
struct Pieces {
    body: Incoming,
    link: Option<Link>,
    pool: Arc<Pool>,
}

impl Stream for Pieces {
    type Item = Result<Bytes, NetworkError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) if !bytes.is_empty() => return Poll::Ready(Some(Ok(bytes))),
                    _ => {}
                },
                Some(Err(error)) => {
                    self.link = None;
                    return Poll::Ready(Some(Err(exchange_failure(&error))));
                }
                None => {
                    if let Some(Link::Own(sender)) = self.link.take() {
                        self.pool.open().idle.push((sender, Instant::now()));
                    }
                    return Poll::Ready(None);
                }
            }
        }
    }
}

/// Headers of an answer over HTTP/1.1 at the most: API servers give each warning one of its own, up to hundreds.
const MAX_HEADERS: usize = 1000;

/// How long a connection of HTTP/1.1 is kept without use.
const IDLE: Duration = Duration::from_secs(90);

/// Exchanges on one HTTP/2 connection at the most, whatever the server allows.
const MAX_STREAMS: usize = 250;
