//! HTTP/1.1 over the streams of any executor.

mod connection;
mod connector;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use cloudcoil_core::config::{Config, ConfigError, Tls};
use cloudcoil_core::http1::{Part, encode, encode_forwarded, may_repeat};
use cloudcoil_core::{NetworkError, NetworkErrorKind, Time};
use cloudcoil_runtime::{Body, Carrier, Runtime};
use cloudcoil_tls::{Current, Route};
use futures_util::future::BoxFuture;
use futures_util::io::{AsyncRead, AsyncWrite};
use futures_util::stream;
use http::header::PROXY_AUTHORIZATION;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use socket2::{SockRef, TcpKeepalive};

use connection::Connection;
use connector::Connector;

/// A stream of bytes to a server and back.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// How an executor connects.
pub trait Dial: Send + Sync + 'static {
    /// A TCP connection, [prepared](prepare).
    fn dial(&self, address: SocketAddr) -> BoxFuture<'static, io::Result<Box<dyn Io>>>;
}

/// Readies the socket of a TCP connection: what is written goes out at once, and when it is silent for
/// [a while](Route::KEEPALIVE), the system looks whether the other side is still there.
///
/// # Errors
/// Those of the system, for a connection that is closed already.
pub fn prepare<'s>(socket: impl Into<SockRef<'s>>) -> io::Result<()> {
    let socket = socket.into();
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(Route::KEEPALIVE))
}

/// Exchanges with the server of one [`Config`]; clones share their connections.
#[derive(Clone)]
pub struct Http1 {
    shared: Arc<Shared>,
}

struct Shared {
    runtime: Arc<dyn Runtime>,
    pools: Current<Arc<Pool>>,
}

/// The connections that were made with the same certificates.
struct Pool {
    connector: Connector,
    /// Connections that carry nothing, and since when.
    idle: Mutex<Vec<(Connection, Time)>>,
}

impl Http1 {
    /// Exchanges that have not connected yet.
    ///
    /// # Errors
    /// [`ConfigError::InvalidPem`] or [`ConfigError::InvalidServer`], where TLS cannot be set up as configured.
    pub fn new(config: &Config, dial: Arc<dyn Dial>, runtime: Arc<dyn Runtime>) -> Result<Self, ConfigError> {
        let pools = Current::new(config, move |config| {
            Ok(Arc::new(Pool { connector: Connector::new(config, dial.clone())?, idle: Mutex::default() }))
        })?;
        Ok(Self { shared: Arc::new(Shared { runtime, pools }) })
    }

    /// Sends a request, whose URI is absolute, and answers once the head of the answer is there. Dropping the future or the body
    /// closes the connection. A connection that was made otherwise than `tls` says is not used again.
    ///
    /// # Errors
    /// By its kind, a [`NetworkError`] tells whether the request can have reached the server.
    pub async fn send(&self, mut request: Request<Bytes>, tls: Arc<Tls>) -> Result<Response<Body>, NetworkError> {
        let pool = self.shared.pools.with(&tls)?;
        let bytes = match pool.connector.forwarding() {
            None => encode(&request)?,
            Some(authorization) => {
                request.headers_mut().extend(authorization.map(|value| (PROXY_AUTHORIZATION, value)));
                encode_forwarded(&request)?
            }
        };
        let bytes = Bytes::from(bytes);
        let (mut connection, is_new) = self.connection(&pool).await?;
        let mut answered = ask(&mut connection, &bytes, request.method()).await;
        if let Err(error) = &answered
            && may_repeat(request.method(), is_new, error)
        {
            connection = pool.connector.connect(&*self.shared.runtime).await?;
            answered = ask(&mut connection, &bytes, request.method()).await;
        }
        let (status, headers) = answered?;
        let mut response = Response::new(self.body(connection, Arc::downgrade(&pool)));
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Ok(response)
    }

    /// Whose connection is kept when it has been read to its end, unless its pool is not in use any more.
    fn body(&self, connection: Connection, pool: Weak<Pool>) -> Body {
        let http = self.clone();
        let pieces = stream::unfold(Some(connection), move |connection| {
            let (http, pool) = (http.clone(), pool.clone());
            async move {
                let mut connection = connection?;
                match connection.part().await {
                    Ok(Part::Data(bytes)) => Some((Ok(bytes), Some(connection))),
                    Ok(Part::End { reusable }) => {
                        if let Some(pool) = pool.upgrade().filter(|_| reusable) {
                            pool.keep(connection, http.shared.runtime.now().mono);
                        }
                        None
                    }
                    Ok(Part::Head { .. }) => None,
                    Err(error) => Some((Err(error), None)),
                }
            }
        });
        Box::pin(pieces)
    }

    /// A connection that is still there, or else a new one; and whether it is new.
    async fn connection(&self, pool: &Pool) -> Result<(Connection, bool), NetworkError> {
        let now = self.shared.runtime.now().mono;
        while let Some((mut connection, since)) = pool.take() {
            if now.since(since) < IDLE && connection.is_quiet() {
                return Ok((connection, false));
            }
        }
        Ok((pool.connector.connect(&*self.shared.runtime).await?, true))
    }
}

/// Sends a request, and reads the head of its answer.
async fn ask(
    connection: &mut Connection,
    bytes: &Bytes,
    method: &Method,
) -> Result<(StatusCode, HeaderMap), NetworkError> {
    connection.ask(bytes.clone(), method);
    match connection.part().await? {
        Part::Head { status, headers } => Ok((status, headers)),
        _ => Err(NetworkError::new(NetworkErrorKind::Protocol, "an answer without a head")),
    }
}

impl Pool {
    fn take(&self) -> Option<(Connection, Time)> {
        self.idle().pop()
    }

    fn keep(&self, connection: Connection, now: Time) {
        let mut idle = self.idle();
        idle.retain(|(_, since)| now.since(*since) < IDLE);
        if idle.len() < MAX_IDLE {
            idle.push((connection, now));
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(Connection, Time)>> {
        // Pushing and popping leave it whole.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Carrier for Http1 {
    fn carry(
        &self,
        request: Request<Bytes>,
        tls: Arc<Tls>,
    ) -> BoxFuture<'static, Result<Response<Body>, NetworkError>> {
        let http = self.clone();
        Box::pin(async move { http.send(request, tls).await })
    }

    fn check(&self, tls: &Tls) -> Result<(), ConfigError> {
        cloudcoil_tls::check(tls)
    }
}

/// How long a connection is kept without use.
const IDLE: Duration = Duration::from_secs(90);
/// How many connections are kept without use.
const MAX_IDLE: usize = 32;
