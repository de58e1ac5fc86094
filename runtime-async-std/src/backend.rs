//! surf, with a backend that knows today's TLS, client certificates and streaming bodies.
//!
//! surf's own vocabulary has no unknown status codes, no header that is not ASCII, and writes URLs anew. What must not be changed
//! on the way therefore travels beside its requests and responses, as their extensions.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::str::FromStr as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use cloudcoil_futures::Http1;
use cloudcoil_runtime::core::config::{ConfigError, Tls};
use cloudcoil_runtime::core::{NetworkError, NetworkErrorKind};
use cloudcoil_runtime::{Body, Carrier};
use futures_util::future::BoxFuture;
use futures_util::io::{AsyncBufRead, AsyncRead};
use futures_util::{Stream, StreamExt as _};
use http::{HeaderMap, Request, Response, StatusCode, Uri};
use surf::http::{Method, Url};

/// Carries requests by surf.
#[derive(Clone)]
pub(crate) struct Surf {
    client: surf::Client,
    http: Http1,
}

impl Surf {
    pub(crate) fn new(http: Http1) -> Self {
        Self { client: surf::Client::with_http_client(Backend(http.clone())), http }
    }
}

impl Carrier for Surf {
    fn carry(
        &self,
        request: Request<Bytes>,
        tls: Arc<Tls>,
    ) -> BoxFuture<'static, Result<Response<Body>, NetworkError>> {
        let client = self.client.clone();
        Box::pin(async move { send(&client, request, tls).await })
    }

    fn check(&self, tls: &Tls) -> Result<(), ConfigError> {
        self.http.check(tls)
    }
}

async fn send(client: &surf::Client, request: Request<Bytes>, tls: Arc<Tls>) -> Result<Response<Body>, NetworkError> {
    let (head, body) = request.into_parts();
    let unusable = |error: &dyn fmt::Display| NetworkError::new(NetworkErrorKind::Request, error.to_string());
    let method = Method::from_str(head.method.as_str()).map_err(|error| unusable(&error))?;
    let url = Url::parse(&head.uri.to_string()).map_err(|error| unusable(&error))?;
    let mut request = surf::http::Request::new(method, url);
    request.set_body(body.to_vec());
    request.ext_mut().insert(Exact { uri: head.uri, headers: head.headers, tls, body });
    let mut response = client.send(request).await.map_err(network_error)?;
    let answer = response.ext::<Answered>().cloned();
    let Answered { status, headers } = answer.ok_or_else(|| unusable(&"the backend of surf has been replaced"))?;
    let mut answered = Response::new(pieces(response.take_body()));
    *answered.status_mut() = status;
    *answered.headers_mut() = headers;
    Ok(answered)
}

/// What a request says, letter by letter.
struct Exact {
    uri: Uri,
    headers: HeaderMap,
    tls: Arc<Tls>,
    body: Bytes,
}

/// What an answer says, letter by letter.
#[derive(Clone)]
struct Answered {
    status: StatusCode,
    headers: HeaderMap,
}

/// Connections for surf.
struct Backend(Http1);

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Backend")
    }
}

impl surf::HttpClient for Backend {
    fn send<'a, 'async_trait>(
        &'a self,
        mut request: surf::http::Request,
    ) -> BoxFuture<'async_trait, Result<surf::http::Response, surf::Error>>
    where
        'a: 'async_trait,
        Self: 'async_trait,
    {
        let http = self.0.clone();
        Box::pin(async move {
            let missing = || surf::Error::from_str(500, "the request was not made by this adapter");
            let Exact { uri, headers, tls, body } = request.ext_mut().remove().ok_or_else(missing)?;
            let mut exact = Request::new(body);
            *exact.method_mut() = http::Method::from_bytes(request.method().as_ref().as_bytes())?;
            *exact.uri_mut() = uri;
            *exact.headers_mut() = headers;
            let sent = http.send(exact, tls).await;
            let (head, body) = sent.map_err(|error| surf::Error::new(500, error))?.into_parts();
            let known = surf::StatusCode::try_from(head.status.as_u16());
            let mut response = surf::http::Response::new(known.unwrap_or(surf::StatusCode::Ok));
            response.set_body(surf::Body::from_reader(Reader::new(body), None));
            response.ext_mut().insert(Answered { status: head.status, headers: head.headers });
            Ok(response)
        })
    }
}

/// A body as surf reads it.
struct Reader {
    /// surf wants to share what nobody shares.
    pieces: Mutex<Body>,
    piece: Bytes,
}

impl Reader {
    fn new(body: Body) -> Self {
        Self { pieces: Mutex::new(body), piece: Bytes::new() }
    }
}

impl AsyncBufRead for Reader {
    fn poll_fill_buf(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let this = self.get_mut();
        while this.piece.is_empty() {
            let pieces = this.pieces.get_mut().unwrap_or_else(PoisonError::into_inner);
            match ready!(pieces.poll_next_unpin(context)) {
                Some(Ok(piece)) => this.piece = piece,
                Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error))),
                None => break,
            }
        }
        Poll::Ready(Ok(&this.piece))
    }

    fn consume(self: Pin<&mut Self>, amount: usize) {
        let this = self.get_mut();
        let _read = this.piece.split_to(amount.min(this.piece.len()));
    }
}

impl AsyncRead for Reader {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let piece = ready!(self.as_mut().poll_fill_buf(context))?;
        let length = piece.len().min(buffer.len());
        buffer[..length].copy_from_slice(&piece[..length]);
        self.consume(length);
        Poll::Ready(Ok(length))
    }
}

/// A body of surf in pieces.
fn pieces(body: surf::Body) -> Body {
    struct Pieces(surf::Body);

    impl Stream for Pieces {
        type Item = Result<Bytes, NetworkError>;

        fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            let piece = match ready!(Pin::new(&mut self.0).poll_fill_buf(context)) {
                Ok([]) => return Poll::Ready(None),
                Ok(piece) => Bytes::copy_from_slice(piece),
                Err(error) => return Poll::Ready(Some(Err(lost(error)))),
            };
            Pin::new(&mut self.0).consume(piece.len());
            Poll::Ready(Some(Ok(piece)))
        }
    }

    // A failed body is not read again.
    let ending = Pieces(body).scan(false, |failed, piece| {
        let over = std::mem::replace(failed, piece.is_err());
        std::future::ready((!over).then_some(piece))
    });
    ending.boxed()
}

fn network_error(error: surf::Error) -> NetworkError {
    match error.downcast::<NetworkError>() {
        Ok(error) => error,
        Err(error) => NetworkError::new(NetworkErrorKind::Request, error.to_string()),
    }
}

fn lost(error: io::Error) -> NetworkError {
    match error.downcast::<NetworkError>() {
        Ok(error) => error,
        Err(error) => NetworkError::new(NetworkErrorKind::Lost, error.to_string()),
    }
}
