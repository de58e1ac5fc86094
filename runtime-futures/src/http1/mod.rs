//! HTTP/1.1 over the streams of any executor.

mod connection;
mod connector;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use cloudcoil_core::config::{Config, ConfigError, Tls};
use cloudcoil_core::http1::{Part, encode, encode_forwarded, may_repeat};
use cloudcoil_core::{NetworkError, NetworkErrorKind, Time};
use cloudcoil_runtime::{Body, Carrier, Runtime};
use cloudcoil_tls::Route;
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
    pool: Mutex<Pool>,
}

/// The connections that were made with the same certificates.
struct Pool {
    connector: Arc<Connector>,
    /// Connections that carry nothing, and since when.
    idle: Vec<(Connection, Time)>,
}

impl Http1 {
    /// Exchanges that have not connected yet.
    ///
    /// # Errors
    /// [`ConfigError::InvalidPem`] or [`ConfigError::InvalidServer`], where TLS cannot be set up as configured.
    pub fn new(config: &Config, dial: Arc<dyn Dial>, runtime: Arc<dyn Runtime>) -> Result<Self, ConfigError> {
        let connector = Arc::new(Connector::new(config, dial)?);
        Ok(Self { shared: Arc::new(Shared { runtime, pool: Mutex::new(Pool { connector, idle: Vec::new() }) }) })
    }

    /// Sends a request, whose URI is absolute, and answers once the head of the answer is there. Dropping the future or the body
    /// closes the connection. A connection that was made otherwise than `tls` says is not used again.
    ///
    /// # Errors
    /// By its kind, a [`NetworkError`] tells whether the request can have reached the server.
    pub async fn send(&self, mut request: Request<Bytes>, tls: Arc<Tls>) -> Result<Response<Body>, NetworkError> {
        let connector = self.connector(&tls)?;
        let bytes = match connector.forwarding() {
            None => encode(&request)?,
            Some(authorization) => {
                request.headers_mut().extend(authorization.map(|value| (PROXY_AUTHORIZATION, value)));
                encode_forwarded(&request)?
            }
        };
        let (mut connection, is_new) = self.connection(&connector).await?;
        let mut answered = ask(&mut connection, &bytes, request.method()).await;
        if let Err(error) = &answered
            && may_repeat(request.method(), is_new, error)
        {
            connection = connector.connect(&*self.shared.runtime).await?;
            answered = ask(&mut connection, &bytes, request.method()).await;
        }
        let (status, headers) = answered?;
        let mut response = Response::new(self.body(connection, connector));
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Ok(response)
    }

    fn body(&self, connection: Connection, connector: Arc<Connector>) -> Body {
        let http = self.clone();
        let pieces = stream::unfold(Some(connection), move |connection| {
            let (http, connector) = (http.clone(), connector.clone());
            async move {
                let mut connection = connection?;
                match connection.part().await {
                    Ok(Part::Data(bytes)) => Some((Ok(bytes), Some(connection))),
                    Ok(Part::End { reusable }) => {
                        if reusable {
                            http.keep(connection, &connector);
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

    /// What connects with certificates; the connections of others are forgotten.
    fn connector(&self, tls: &Tls) -> Result<Arc<Connector>, NetworkError> {
        let mut pool = self.pool();
        if pool.connector.tls() != tls {
            let connector = pool.connector.with_tls(tls.clone());
            let connector = connector.map_err(|error| NetworkError::new(NetworkErrorKind::Tls, error.to_string()))?;
            pool.connector = Arc::new(connector);
            pool.idle.clear();
        }
        Ok(pool.connector.clone())
    }

    /// A connection that is still there, or else a new one; and whether it is new.
    async fn connection(&self, connector: &Arc<Connector>) -> Result<(Connection, bool), NetworkError> {
        let now = self.shared.runtime.now().mono;
        while let Some((mut connection, since)) = self.pool().take(connector) {
            if now.since(since) < IDLE && connection.is_quiet() {
                return Ok((connection, false));
            }
        }
        Ok((connector.connect(&*self.shared.runtime).await?, true))
    }

    fn keep(&self, connection: Connection, connector: &Arc<Connector>) {
        let now = self.shared.runtime.now().mono;
        let mut pool = self.pool();
        pool.idle.retain(|(_, since)| now.since(*since) < IDLE);
        if pool.idle.len() < MAX_IDLE && Arc::ptr_eq(&pool.connector, connector) {
            pool.idle.push((connection, now));
        }
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        // Pushing, popping and replacing leave a pool whole.
        self.shared.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends a request, and reads the head of its answer.
async fn ask(
    connection: &mut Connection,
    bytes: &[u8],
    method: &Method,
) -> Result<(StatusCode, HeaderMap), NetworkError> {
    let sent = connection.write(bytes, method).await;
    match (connection.part().await, sent) {
        (Ok(Part::Head { status, headers }), _) => Ok((status, headers)),
        // In TLS 1.3 a server that does not take a client's certificate says so, and closes, when requests are on their way.
        (Err(said), Err(_)) if said.kind == NetworkErrorKind::Tls => Err(said),
        // A server may refuse and close before it has read everything; only if it said nothing, the sending failed.
        (_, Err(error)) | (Err(error), Ok(())) => Err(error),
        (Ok(_), Ok(())) => Err(NetworkError::new(NetworkErrorKind::Protocol, "an answer without a head")),
    }
}

impl Pool {
    fn take(&mut self, connector: &Arc<Connector>) -> Option<(Connection, Time)> {
        if Arc::ptr_eq(&self.connector, connector) { self.idle.pop() } else { None }
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
