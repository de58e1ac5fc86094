//! Connections to one server, kept and shared.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use cloudcoil_runtime::Body;
use cloudcoil_runtime::core::http1::{Flaw, ResponseDecoder, may_repeat};
use cloudcoil_runtime::core::{NetworkError, NetworkErrorKind};
use cloudcoil_tls::connect_failure;
use futures_util::FutureExt as _;
use http::{HeaderMap, Request, Response, StatusCode, Uri, header};
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::{TrySendError, http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::time::Instant;

use crate::connector::{Connection, Connector, Stream};
use crate::failure::{exchange_failure, request_failure};
use crate::heard::Ear;

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
    idle: Vec<(Own, Instant)>,
    is_http1: bool,
    attempts: u64,
    failure: Option<NetworkError>,
}

/// An HTTP/2 connection. The server allows only so many exchanges on it, 100 as a rule, and whoever comes after waits: for
/// ever, if the others are watches. So there are as many connections as are needed.
#[derive(Clone)]
struct Shared {
    sender: http2::SendRequest<Full<Bytes>>,
    limit: Limit,
}

/// An HTTP/1.1 connection.
struct Own {
    sender: http1::SendRequest<Full<Bytes>>,
    ear: Ear,
}

/// How many exchanges the server allows on a connection; each that is under way holds a clone, and so does the pool.
type Limit = Arc<AtomicUsize>;

/// What carries one exchange.
enum Link {
    Own(Own),
    Shared(Shared),
}

/// What an exchange holds until its answer has ended.
enum Held {
    Own(Own),
    Room(Limit),
}

impl Pool {
    pub(crate) fn new(connector: Connector) -> Self {
        Self { connector, open: Mutex::default(), gate: tokio::sync::Mutex::default() }
    }

    /// Sends a request whose address is absolute. One that was not sent, because a connection at hand turned out to be
    /// closed, is sent on another.
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
            let (link, is_new) = self.link().await?;
            let repetition = (!is_repeated).then(|| request.clone());
            let (answered, held) = link.send(request, forwarding.is_some()).await;
            match answered {
                Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                    return Err(Flaw::Switched.into());
                }
                Ok(response) if !is_short(response.headers()) => return Err(Flaw::LongHead.into()),
                Ok(response) => {
                    return Ok(response.map(|body| Box::pin(Pieces { body, held: Some(held), pool: self }) as Body));
                }
                Err(mut error) => {
                    let unsent = error.take_message();
                    let failure = request_failure(error.error(), unsent.is_some());
                    if unsent.is_some() || failure.kind == NetworkErrorKind::Unprocessed {
                        self.forget(&held);
                    }
                    match unsent {
                        Some(unsent) if !is_new => request = unsent,
                        _ => {
                            let again = repetition.filter(|again| may_repeat(again.method(), is_new, &failure));
                            request = again.ok_or(failure)?;
                            is_repeated = true;
                        }
                    }
                }
            }
        }
    }

    /// Gives a connection to nobody any more.
    fn forget(&self, held: &Held) {
        if let Held::Room(limit) = held {
            self.open().shared.retain(|other| !Arc::ptr_eq(&other.limit, limit));
        }
    }

    /// A connection with room for one more exchange, and whether it is new.
    async fn link(self: &Arc<Self>) -> Result<(Link, bool), NetworkError> {
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

    async fn connect(self: &Arc<Self>) -> Result<Link, NetworkError> {
        let Connection { io, ear, is_http2 } = self.connector.connect().await?;
        if is_http2 {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            // A connection that has died is noticed within 45 seconds, also when nothing is sent on it.
            let builder = builder
                .timer(TokioTimer::new())
                .keep_alive_interval(Duration::from_secs(30))
                .keep_alive_timeout(Duration::from_secs(15))
                .initial_stream_window_size(WINDOW)
                .initial_connection_window_size(WINDOW * MAX_STREAMS as u32)
                // Beyond this the server is not heard out.
                .max_header_list_size(4 * ResponseDecoder::MAX_HEAD as u32);
            let (sender, connection) = builder.handshake(io).await.map_err(|error| connect_failure(&error))?;
            let limit = Arc::new(AtomicUsize::new(connection.current_max_send_streams()));
            tokio::spawn(attend(connection, Arc::downgrade(&limit), Arc::downgrade(self)));
            Ok(Link::Shared(Shared { sender, limit }))
        } else {
            let mut builder = http1::Builder::new();
            let builder = builder.max_headers(ResponseDecoder::MAX_HEADERS).max_buf_size(ResponseDecoder::MAX_HEAD);
            let handshake = builder.handshake(io);
            let (sender, connection) = handshake.await.map_err(|error| connect_failure(&error))?;
            tokio::spawn(connection.map(drop));
            Ok(Link::Own(Own { sender, ear }))
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
        self.idle.retain(|(own, since)| !own.sender.is_closed() && since.elapsed() < IDLE);
        std::iter::from_fn(|| self.idle.pop()).map(|(own, _)| own).find(|own| own.ear.is_quiet()).map(Link::Own)
    }
}

impl Shared {
    fn has_room(&self) -> bool {
        // One of the holders is the pool itself.
        Arc::strong_count(&self.limit) <= self.limit.load(Ordering::Relaxed).clamp(1, MAX_STREAMS)
    }
}

impl Link {
    async fn send(self, mut request: Request<Full<Bytes>>, is_forwarded: bool) -> (Answered, Held) {
        match self {
            Self::Shared(Shared { mut sender, limit }) => {
                let answer = sender.try_send_request(request);
                // See `attend`.
                drop(sender);
                (answer.await, Held::Room(limit))
            }
            Self::Own(mut own) => {
                to_http1(&mut request, is_forwarded);
                // An error shows again when the request is sent.
                let _ = own.sender.ready().await;
                (own.sender.try_send_request(request).await, Held::Own(own))
            }
        }
    }
}

type Answered = Result<Response<Incoming>, TrySendError<Request<Full<Bytes>>>>;

/// Has a connection work to its end, and keeps its limit up to date.
///
/// A request that comes just when a connection ends may stay in its queue, which gives it back only when nobody can add to it
/// any more. So nobody keeps the means to: neither the pool, nor who waits for an answer.
async fn attend(
    connection: http2::Connection<TokioIo<Stream>, Full<Bytes>, TokioExecutor>,
    limit: Weak<AtomicUsize>,
    pool: Weak<Pool>,
) {
    let mut connection = Box::pin(connection);
    poll_fn(|context| {
        let polled = connection.poll_unpin(context).map(drop);
        if let Some(limit) = limit.upgrade() {
            limit.store(connection.current_max_send_streams(), Ordering::Relaxed);
        }
        polled
    })
    .await;
    drop(connection);
    if let (Some(limit), Some(pool)) = (limit.upgrade(), pool.upgrade()) {
        pool.forget(&Held::Room(limit));
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

/// Whether the head of an answer is no longer than those of HTTP/1.1 may be.
fn is_short(headers: &HeaderMap) -> bool {
    let length: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len()).sum();
    headers.len() <= ResponseDecoder::MAX_HEADERS && length <= ResponseDecoder::MAX_HEAD
}

/// The pieces of a body. When it is whole, its connection is kept; when it is dropped before, the connection closes, or on a
/// shared connection its stream.
struct Pieces {
    body: Incoming,
    held: Option<Held>,
    pool: Arc<Pool>,
}

impl futures_util::Stream for Pieces {
    type Item = Result<Bytes, NetworkError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) if !bytes.is_empty() => return Poll::Ready(Some(Ok(bytes))),
                    _ => {}
                },
                Some(Err(error)) => {
                    self.held = None;
                    return Poll::Ready(Some(Err(exchange_failure(&error))));
                }
                None => {
                    match self.held.take() {
                        Some(Held::Own(own)) => self.pool.open().idle.push((own, Instant::now())),
                        // Some ways to break off pass for an end with hyper.
                        Some(Held::Room(_)) if !self.body.is_end_stream() => {
                            return Poll::Ready(Some(Err(Flaw::CutShort.into())));
                        }
                        Some(Held::Room(_)) | None => {}
                    }
                    return Poll::Ready(None);
                }
            }
        }
    }
}

/// How long a connection of HTTP/1.1 is kept without use.
const IDLE: Duration = Duration::from_secs(90);

/// Exchanges on one HTTP/2 connection at the most, whatever the server allows.
const MAX_STREAMS: usize = 250;

/// How many bytes of an answer that nobody reads yet the server may send over HTTP/2, a megabyte. A connection has room for as
/// many of all its answers: who lags holds up his own answer, and no other.
const WINDOW: u32 = 1 << 20;
