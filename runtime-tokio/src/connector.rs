//! Connections: TCP, and TLS over it.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use cloudcoil_runtime::core::config::{Config, ConfigError};
use cloudcoil_runtime::core::{NetworkError, NetworkErrorKind};
use futures_util::future::BoxFuture;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio_rustls::TlsConnector;
use tower_service::Service;

use crate::tls;

/// Makes connections to one server.
#[derive(Clone)]
pub(crate) struct Connector {
    tcp: HttpConnector,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl Connector {
    pub(crate) fn new(config: &Config) -> Result<Self, ConfigError> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(Duration::from_secs(30)));
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let tls = match config.is_tls() {
            true => Some((TlsConnector::from(Arc::new(tls::client_config(&config.tls)?)), server_name(config)?)),
            false => None,
        };
        Ok(Self { tcp, tls })
    }
}

/// The name that the server's certificate must carry.
fn server_name(config: &Config) -> Result<ServerName<'static>, ConfigError> {
    let host = config.server.host().unwrap_or_default();
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let (name, origin) = match &config.tls.server_name {
        Some(name) => (name.as_str(), "tls-server-name"),
        None => (host, "the host in the server's address"),
    };
    ServerName::try_from(name.to_owned()).map_err(|error| ConfigError::InvalidServer {
        origin: origin.into(),
        problem: format!("{name:?}: {error}").into(),
    })
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = ConnectError;
    type Future = BoxFuture<'static, Result<Stream, ConnectError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        self.tcp.poll_ready(context).map_err(|error| ConnectError::new(NetworkErrorKind::Connect, &error))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (connecting, tls) = (self.tcp.call(uri), self.tls.clone());
        Box::pin(async move {
            let tcp = connecting.await.map_err(|error| ConnectError::new(NetworkErrorKind::Connect, &error))?;
            let Some((connector, name)) = tls else {
                return Ok(Stream { io: Box::new(tcp), is_h2: false });
            };
            let handshake = tokio::time::timeout(CONNECT_TIMEOUT, connector.connect(name, tcp.into_inner()));
            let tls = match handshake.await {
                Ok(result) => result.map_err(|error| ConnectError::new(NetworkErrorKind::Tls, &error))?,
                Err(elapsed) => return Err(ConnectError::new(NetworkErrorKind::Tls, &elapsed)),
            };
            let is_h2 = tls.get_ref().1.alpn_protocol() == Some(b"h2");
            Ok(Stream { io: Box::new(TokioIo::new(tls)), is_h2 })
        })
    }
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) struct ConnectError(pub(crate) NetworkError);

impl ConnectError {
    fn new(kind: NetworkErrorKind, error: &(dyn StdError + 'static)) -> Self {
        Self(NetworkError::new(kind, chain(error)))
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for ConnectError {}

/// An error and what is behind it, without saying the same twice.
pub(crate) fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
        source = error.source();
    }
    text
}

trait Io: Read + Write + Send + Unpin {}

impl<T: Read + Write + Send + Unpin> Io for T {}

/// A connection, encrypted or not.
pub(crate) struct Stream {
    io: Box<dyn Io>,
    is_h2: bool,
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        let connected = Connected::new();
        if self.is_h2 { connected.negotiated_h2() } else { connected }
    }
}

impl Read for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl Write for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

/// For each of the TCP connection and the TLS handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
