//! Connections: HTTP/1.1 and HTTP/2, plain or over TLS.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use cloudcoil_core::Ticket;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::driver::{Head, Job};
use super::tls::Tls;
use crate::machine::{BODY_LIMIT, Peer};

/// Takes connections until told to stop, then lets those that are open finish.
pub(super) async fn accept(
    listener: TcpListener,
    tls: Option<Tls>,
    jobs: mpsc::UnboundedSender<Job>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = stopped.changed() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve_connection(stream, tls.clone(), jobs.clone(), stopped.clone()));
                }
                // Such as too many open files: it passes, but not at once.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
        }
    }
    drop(listener);
    let finished = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, finished).await.is_err() {
        connections.shutdown().await;
    }
}

async fn serve_connection(
    stream: TcpStream,
    tls: Option<Tls>,
    jobs: mpsc::UnboundedSender<Job>,
    stopped: watch::Receiver<bool>,
) {
    // Small frames of a watch are sent when they are there.
    let _ = stream.set_nodelay(true);
    match tls {
        None => serve_stream(TokioIo::new(stream), None, jobs, stopped).await,
        Some(tls) => {
            let handshake = tokio::time::timeout(HANDSHAKE, tls.acceptor().accept(stream)).await;
            // A client that does not trust the certificate ends the handshake: nothing to serve then.
            if let Ok(Ok(stream)) = handshake {
                let peer = tls.peer(stream.get_ref().1.peer_certificates());
                serve_stream(TokioIo::new(stream), peer, jobs, stopped).await;
            }
        }
    }
}

async fn serve_stream<I>(
    io: I,
    peer: Option<Peer>,
    jobs: mpsc::UnboundedSender<Job>,
    mut stopped: watch::Receiver<bool>,
) where
    I: hyper::rt::Read + hyper::rt::Write + Unpin + 'static,
{
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(IDLE);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        .max_header_list_size(HEADERS)
        .max_concurrent_streams(STREAMS);
    let service = service_fn(move |mut request: Request<Incoming>| {
        if let Some(peer) = &peer {
            request.extensions_mut().insert(peer.clone());
        }
        answer(request, jobs.clone())
    });
    let mut connection = std::pin::pin!(builder.serve_connection(io, service));
    tokio::select! {
        // A connection that breaks is the client's affair.
        _ = connection.as_mut() => {}
        _ = stopped.changed() => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

async fn answer(
    request: Request<Incoming>,
    jobs: mpsc::UnboundedSender<Job>,
) -> Result<Response<AnswerBody>, Infallible> {
    let (parts, body) = request.into_parts();
    // One byte over the limit is enough for the machine to refuse the body in its own words.
    let body = match tokio::time::timeout(BODY, Limited::new(body, BODY_LIMIT).collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Bytes::from(vec![0; BODY_LIMIT + 1]),
        Ok(Err(_)) => return Ok(AnswerBody::nothing(StatusCode::BAD_REQUEST)),
        Err(_) => return Ok(AnswerBody::nothing(StatusCode::REQUEST_TIMEOUT)),
    };
    let (head, headed) = oneshot::channel();
    let _ = jobs.send(Job::Answer { request: Request::from_parts(parts, body).into(), head });
    let Ok(Head { ticket, status, headers, body }) = headed.await else {
        return Ok(AnswerBody::nothing(StatusCode::SERVICE_UNAVAILABLE));
    };
    let mut response = Response::new(AnswerBody::Pieces(Pieces { ticket, body, jobs }));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}

/// The body of an answer.
enum AnswerBody {
    Nothing,
    Pieces(Pieces),
}

/// Pieces as they come; when they are not wanted any more, the driver is told.
struct Pieces {
    ticket: Ticket,
    body: mpsc::Receiver<Bytes>,
    jobs: mpsc::UnboundedSender<Job>,
}

impl AnswerBody {
    fn nothing(status: StatusCode) -> Response<Self> {
        let mut response = Response::new(Self::Nothing);
        *response.status_mut() = status;
        response
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Nothing => Poll::Ready(None),
            Self::Pieces(pieces) => {
                pieces.body.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        let _ = self.jobs.send(Job::Forget(self.ticket));
    }
}

/// How long connections have to finish when the server stops.
const GRACE: Duration = Duration::from_secs(2);

/// How long a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How long a connection may stay without a request, and a request without the end of its head.
const IDLE: Duration = Duration::from_secs(180);

/// How long the body of a request may take.
const BODY: Duration = Duration::from_secs(60);

/// How often a connection that is silent is asked whether it lives, and how long it may take to say so.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// The longest head of a request over HTTP/2, in bytes.
const HEADERS: u32 = 1 << 20;

/// How many requests may be open at once on a connection over HTTP/2.
const STREAMS: u32 = 250;
