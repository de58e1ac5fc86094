//! Servers: one that speaks HTTP properly, with or without TLS, and one that writes whatever it is told.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use http::{Request, Response};
use http_body_util::StreamBody;
use http_body_util::combinators::BoxBody;
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

pub(crate) type ServerBody = BoxBody<Bytes, Infallible>;

/// A body of these pieces; while the stream has no end, the body has none.
pub(crate) fn body(pieces: impl Stream<Item = Bytes> + Send + Sync + 'static) -> ServerBody {
    BoxBody::new(StreamBody::new(pieces.map(|bytes| Ok(Frame::data(bytes)))))
}

pub(crate) fn whole(text: &'static str) -> ServerBody {
    body(futures_util::stream::iter([Bytes::from_static(text.as_bytes())]))
}

/// A server and what it has seen.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    closed: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<Request<()>>>>,
}

impl Server {
    /// Waits until that many connections have been closed.
    pub(crate) async fn closed(&self, count: usize) {
        while self.closed.load(Ordering::SeqCst) < count {
            tokio::task::yield_now().await;
        }
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> Vec<Request<()>> {
        self.requests.lock().unwrap().clone()
    }
}

/// Answers every request 200, with the body that `answer` makes; with TLS, over HTTP/2 if the client can.
pub(crate) async fn serve(
    tls: Option<ServerConfig>,
    make: impl Fn(&Request<()>) -> ServerBody + Clone + Send + Sync + 'static,
) -> Server {
    answer(tls, move |request| Response::new(make(request))).await
}

/// Answers every request as `answer` says; with TLS, over HTTP/2 if the client can.
pub(crate) async fn answer(
    tls: Option<ServerConfig>,
    answer: impl Fn(&Request<()>) -> Response<ServerBody> + Clone + Send + Sync + 'static,
) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (connections, requests) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let closed = Arc::new(AtomicUsize::new(0));
    let server =
        Server { address, connections: connections.clone(), closed: closed.clone(), requests: requests.clone() };
    let acceptor = tls.map(|config| TlsAcceptor::from(Arc::new(config)));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            connections.fetch_add(1, Ordering::SeqCst);
            let connection = connection(stream, acceptor.clone(), answer.clone(), requests.clone());
            let closed = closed.clone();
            tokio::spawn(async move {
                connection.await;
                closed.fetch_add(1, Ordering::SeqCst);
            });
        }
    });
    server
}

async fn connection(
    stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    answer: impl Fn(&Request<()>) -> Response<ServerBody> + Clone + Send + Sync + 'static,
    requests: Arc<Mutex<Vec<Request<()>>>>,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let (parts, _) = request.into_parts();
        let request = Request::from_parts(parts, ());
        let response = answer(&request);
        requests.lock().unwrap().push(request);
        async move { Ok::<_, Infallible>(response) }
    });
    let Some(acceptor) = acceptor else {
        let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        return;
    };
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let io = TokioIo::new(stream);
    if is_h2 {
        let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        let _ = builder.max_concurrent_streams(100).serve_connection(io, service).await;
    } else {
        let _ = hyper::server::conn::http1::Builder::new().serve_connection(io, service).await;
    }
}

/// Hands each connection to `talk`, one after the other.
pub(crate) async fn raw<F: Future<Output = ()> + Send>(
    talk: impl Fn(TcpStream) -> F + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            talk(stream).await;
        }
    });
    address
}
