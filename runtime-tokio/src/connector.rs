//! Connections: TCP, and TLS over it.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use cloudcoil_runtime::core::NetworkError;
use cloudcoil_runtime::core::config::{Config, ConfigError};
use http::Uri;
use hyper::rt::{Read, Write};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio_rustls::TlsConnector;
use tower_service::Service as _;

use crate::failure::{connect_failure, tls_failure};

/// Makes connections to one server.
pub(crate) struct Connector {
    server: Uri,
    tcp: HttpConnector,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

/// A connection, encrypted or not.
pub(crate) struct Connection {
    pub(crate) io: Box<dyn Io>,
    /// Whether both sides have agreed on HTTP/2.
    pub(crate) is_http2: bool,
}

pub(crate) trait Io: Read + Write + Send + Unpin {}

impl<T: Read + Write + Send + Unpin> Io for T {}

impl Connector {
    pub(crate) fn new(config: &Config) -> Result<Self, ConfigError> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(Duration::from_secs(30)));
        tcp.set_connect_timeout(Some(TIMEOUT));
        let tls = match config.is_tls() {
            true => {
                let tls = cloudcoil_tls::client_config(&config.tls, &[b"h2", b"http/1.1"])?;
                Some((TlsConnector::from(Arc::new(tls)), cloudcoil_tls::server_name(config)?))
            }
            false => None,
        };
        Ok(Self { server: config.server.clone(), tcp, tls })
    }

    pub(crate) async fn connect(&self) -> Result<Connection, NetworkError> {
        let mut tcp = self.tcp.clone();
        poll_fn(|context| tcp.poll_ready(context)).await.map_err(|error| connect_failure(&error))?;
        let tcp = tcp.call(self.server.clone()).await.map_err(|error| connect_failure(&error))?;
        let Some((connector, name)) = &self.tls else {
            return Ok(Connection { io: Box::new(tcp), is_http2: false });
        };
        let handshake = tokio::time::timeout(TIMEOUT, connector.connect(name.clone(), tcp.into_inner()));
        let tls = handshake.await.map_err(|elapsed| tls_failure(&elapsed))?.map_err(|error| tls_failure(&error))?;
        let is_http2 = tls.get_ref().1.alpn_protocol() == Some(b"h2");
        Ok(Connection { io: Box::new(TokioIo::new(tls)), is_http2 })
    }
}

/// For each of the TCP connection and the TLS handshake.
const TIMEOUT: Duration = Duration::from_secs(10);
