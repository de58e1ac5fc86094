//! HTTPS for webhooks, metrics and probes: HTTP/1.1 as on every executor, and HTTP/2 by hyper.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use cloudcoil_runtime::core::http1::fit;
use cloudcoil_runtime::core::listen::{ListenConfig, ListenError, failure, panicked, too_large, too_slow};
use cloudcoil_runtime::listener::{Accept, Connection, Handler, ListenHandle, Reload, Service, Wire, listen};
use cloudcoil_runtime::{Listener, Runtime};
use cloudcoil_tls::Serving;
use futures_util::future::{BoxFuture, Either, select};
use http::header::HOST;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsAcceptor;

use crate::TokioRuntime;

impl Listener for TokioRuntime {
    fn listen(&self, config: ListenConfig, handler: Handler) -> BoxFuture<'static, Result<ListenHandle, ListenError>> {
        let runtime: Arc<dyn Runtime> = Arc::new(self.clone());
        Box::pin(async move {
            let tls =
                config.tls.as_ref().map(|tls| Serving::new(tls, &[b"h2", b"http/1.1"])).transpose()?.map(Arc::new);
            let bound = bind(config.address).await;
            let (tcp, address) = bound.map_err(|error| ListenError::bind(config.address, &error))?;
            let reload = tls.clone().map(|tls| Box::new(move |with: &_| tls.reload(with)) as Reload);
            Ok(listen(Port { tcp, tls }, address, Service { runtime, handler, limits: config.limits }, reload))
        })
    }
}

async fn bind(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let tcp = TcpListener::bind(address).await?;
    let address = tcp.local_addr()?;
    Ok((tcp, address))
}

struct Port {
    tcp: TcpListener,
    tls: Option<Arc<Serving>>,
}

impl Accept for Port {
    type Stream = TcpStream;

    fn accept(&self) -> BoxFuture<'_, io::Result<(TcpStream, SocketAddr)>> {
        Box::pin(self.tcp.accept())
    }

    fn serve(&self, tcp: TcpStream, connection: Connection) -> BoxFuture<'static, ()> {
        Box::pin(serve(self.tls.clone(), tcp, connection))
    }
}

async fn serve(tls: Option<Arc<Serving>>, tcp: TcpStream, connection: Connection) {
    // One that cannot be set is a connection that has closed.
    let _ = tcp.set_nodelay(true);
    let Some(tls) = tls else { return connection.serve_http1(Stream(tcp)).await };
    let stream = match connection.shake(TlsAcceptor::from(tls.current()).accept(tcp)).await {
        Some(Ok(stream)) => stream,
        Some(Err(error)) => return tracing::debug!("TLS handshake: {error}"),
        None => return,
    };
    let connection = connection.with_subject(cloudcoil_tls::subject(stream.get_ref().1.peer_certificates()));
    match stream.get_ref().1.alpn_protocol() {
        Some(b"h2") => serve_http2(stream, connection).await,
        _ => connection.serve_http1(Stream(stream)).await,
    }
}

struct Stream<T>(T);

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for Stream<T> {
    fn receive(&mut self) -> BoxFuture<'_, io::Result<Bytes>> {
        Box::pin(async {
            let mut bytes = vec![0; PIECE];
            let length = self.0.read(&mut bytes).await?;
            bytes.truncate(length);
            Ok(bytes.into())
        })
    }

    fn send(&mut self, bytes: Bytes) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(async move {
            self.0.write_all(&bytes).await?;
            self.0.flush().await
        })
    }

    fn finish(&mut self) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(self.0.shutdown())
    }
}

async fn serve_http2(io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, connection: Connection) {
    let limits = *connection.limits();
    let connection = Arc::new(connection);
    let (open, opened) = watch::channel(Exchanges::default());
    let (answering, open) = (connection.clone(), Arc::new(open));
    let room = Arc::new(Semaphore::new(BODIES * blocks(limits.body as u64) as usize));
    let service = service_fn(move |request| answered(answering.clone(), open.clone(), room.clone(), request));
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(ALIVE)
        .keep_alive_timeout(ALIVE)
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(u32::try_from(limits.head).unwrap_or(u32::MAX));
    let mut served = pin!(builder.serve_connection(TokioIo::new(io), service));
    let (end, stopped) = (pin!(end(opened, limits.arrival, limits.idle)), pin!(connection.stopped()));
    let patience = match select(served.as_mut(), select(end, stopped)).await {
        // A connection that breaks is the client's affair, and one whose answers are not taken closes at once.
        Either::Left(_) | Either::Right((Either::Left((End::Overdue, _)), _)) => return,
        Either::Right((Either::Left((End::Idle, _)), _)) => limits.arrival,
        Either::Right((Either::Right(_), _)) => {
            limits.transfer.saturating_add(limits.handler).saturating_add(limits.reply)
        }
    };
    served.as_mut().graceful_shutdown();
    // A client that says no goodbye, or takes nothing in, is not waited for.
    let _ = timeout(patience, served).await;
}

/// The requests that are open, and until when the client may take in the answer to each, once there is one.
#[derive(Default)]
struct Exchanges {
    begun: u64,
    open: BTreeMap<u64, Option<Instant>>,
}

/// A request that is open until its answer is taken.
struct Exchange {
    all: Arc<watch::Sender<Exchanges>>,
    number: u64,
}

impl Exchange {
    fn begin(all: Arc<watch::Sender<Exchanges>>) -> Self {
        let mut number = 0;
        all.send_modify(|exchanges| {
            (number, exchanges.begun) = (exchanges.begun, exchanges.begun + 1);
            exchanges.open.insert(number, None);
        });
        Self { all, number }
    }

    /// From now on the client has so much time.
    fn answer(&self, reply: Duration) {
        self.all.send_modify(|exchanges| {
            exchanges.open.insert(self.number, Instant::now().checked_add(reply));
        });
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.all.send_modify(|exchanges| {
            exchanges.open.remove(&self.number);
        });
    }
}

/// Why nothing more is to be served.
enum End {
    /// No request is open, and there was none for a while.
    Idle,
    /// An answer was not taken in time.
    Overdue,
}

async fn end(mut exchanges: watch::Receiver<Exchanges>, first: Duration, later: Duration) -> End {
    let mut patience = first;
    loop {
        let (is_busy, due) = {
            let exchanges = exchanges.borrow_and_update();
            (!exchanges.open.is_empty(), exchanges.open.values().flatten().min().copied())
        };
        let changed = exchanges.changed();
        let changed = match due {
            Some(at) => timeout_at(at, changed).await,
            None => timeout(patience, changed).await,
        };
        match changed {
            Ok(_) => patience = later,
            Err(_) if due.is_some() => return End::Overdue,
            Err(_) if !is_busy => return End::Idle,
            Err(_) => {}
        }
    }
}

/// An answer on its way, piece by piece, so that it lasts as long as the client takes it in, but for the last piece.
struct Reply {
    rest: Bytes,
    _exchange: Exchange,
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let length = self.rest.len().min(PIECE);
        let piece = self.rest.split_to(length);
        Poll::Ready((length > 0).then(|| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

async fn answered(
    connection: Arc<Connection>,
    open: Arc<watch::Sender<Exchanges>>,
    room: Arc<Semaphore>,
    request: Request<Incoming>,
) -> Result<Response<Reply>, Infallible> {
    let exchange = Exchange::begin(open);
    let method = request.method().clone();
    let limits = connection.limits();
    let length = request.body().size_hint().exact().unwrap_or(limits.body as u64).min(limits.body as u64);
    let response = match connection.within(limits.transfer, room.acquire_many(blocks(length))).await {
        // Its room is given back when it is answered.
        Some(_room) => match request_of(&connection, request).await {
            Ok(request) => connection.answer(request).await,
            Err(refusal) => refusal,
        },
        None => too_slow(),
    };
    // These announce an answer, and are none.
    let response = if response.status().is_informational() { panicked() } else { response };
    exchange.answer(limits.reply);
    Ok(fit(response, &method).map(|rest| Reply { rest, _exchange: exchange }))
}

/// How much room a body takes.
fn blocks(length: u64) -> u32 {
    u32::try_from(length.div_ceil(1024)).unwrap_or(u32::MAX).max(1)
}

/// The request as HTTP/1.1 has it, with its body; or what is answered if that does not come.
async fn request_of(connection: &Connection, request: Request<Incoming>) -> Result<Request<Bytes>, Response<Bytes>> {
    let limits = connection.limits();
    let (mut head, body) = request.into_parts();
    if head.method == Method::CONNECT {
        return Err(failure(StatusCode::NOT_IMPLEMENTED, "this server is no proxy"));
    }
    if body.size_hint().lower() > limits.body as u64 {
        return Err(too_large(limits.body));
    }
    let body = match connection.within(limits.transfer, Limited::new(body, limits.body).collect()).await {
        Some(Ok(body)) => body.to_bytes(),
        Some(Err(error)) if error.is::<LengthLimitError>() => return Err(too_large(limits.body)),
        Some(Err(_)) => return Err(failure(StatusCode::BAD_REQUEST, "the request is cut short")),
        None => return Err(too_slow()),
    };
    let host = head.uri.authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
    // What the client says besides does not count (RFC 9113, section 8.3.1).
    if let Some(host) = host {
        head.headers.insert(HOST, host);
    }
    head.uri = head.uri.path_and_query().cloned().map_or_else(|| Uri::from_static("/"), Uri::from);
    Ok(Request::from_parts(head, body))
}

/// How many bytes are received, or sent over HTTP/2, at once, at the most.
const PIECE: usize = 16 << 10;

/// How often a silent connection of HTTP/2 is asked whether it lives, and how long it may take to say so.
const ALIVE: Duration = Duration::from_secs(30);

/// How many of the largest bodies are held at once for a connection of HTTP/2; what does not fit waits.
const BODIES: usize = 4;

/// How many requests may be open at once on a connection of HTTP/2.
const STREAMS: u32 = 100;
