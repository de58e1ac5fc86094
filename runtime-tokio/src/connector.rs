//! Connections: TCP, and what is to be done on it.

use std::future::poll_fn;

use cloudcoil_runtime::core::NetworkError;
use cloudcoil_runtime::core::config::{Config, ConfigError};
use cloudcoil_runtime::core::proxy::{ProxyHandshake, ProxyStep};
use cloudcoil_tls::{Route, Step, connect_failure};
use http::uri::InvalidUri;
use http::{HeaderValue, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tower_service::Service as _;

use crate::candid::Candid;
use crate::heard::{Ear, Heard};

/// Makes connections to one server.
pub(crate) struct Connector {
    route: Route,
    tcp: HttpConnector,
}

/// A connection, encrypted or not.
pub(crate) struct Connection {
    pub(crate) io: TokioIo<Stream>,
    pub(crate) ear: Ear,
    /// Whether both sides have agreed on HTTP/2.
    pub(crate) is_http2: bool,
}

pub(crate) type Stream = Box<dyn Io>;

pub(crate) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

impl Connector {
    pub(crate) fn new(config: &Config) -> Result<Self, ConfigError> {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(Route::KEEPALIVE));
        tcp.set_connect_timeout(Some(Route::PATIENCE));
        Ok(Self { route: Route::new(config, &[b"h2", b"http/1.1"])?, tcp })
    }

    /// See [`Route::forwarding`].
    pub(crate) fn forwarding(&self) -> Option<Option<HeaderValue>> {
        self.route.forwarding()
    }

    pub(crate) async fn connect(&self) -> Result<Connection, NetworkError> {
        let steps = self.route.steps()?;
        let tcp = self.dial().await.map_err(|error| self.route.about(error))?;
        let ear = tcp.ear();
        let mut stream: Stream = Box::new(tcp);
        let mut is_http2 = false;
        for step in steps {
            let is_proxys = step.is_proxys();
            let about = |error| if is_proxys { self.route.about(error) } else { error };
            match step {
                Step::Encrypt { config, name, .. } => {
                    let shaken = within(TlsConnector::from(config).connect(name, stream)).await;
                    let shaken = shaken.and_then(|tls| tls.map_err(|error| cloudcoil_tls::handshake_failure(&error)));
                    let tls = shaken.map_err(about)?;
                    is_http2 = tls.get_ref().1.alpn_protocol() == Some(b"h2");
                    stream = Box::new(Candid::new(tls));
                }
                Step::Speak(handshake) => {
                    within(speak(&mut stream, handshake)).await.map_err(about)??;
                }
            }
        }
        Ok(Connection { io: TokioIo::new(stream), ear, is_http2 })
    }

    async fn dial(&self) -> Result<Heard, NetworkError> {
        let (host, port) = self.route.address();
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let address: Uri =
            format!("http://{host}:{port}").parse().map_err(|error: InvalidUri| connect_failure(&error))?;
        let mut tcp = self.tcp.clone();
        poll_fn(|context| tcp.poll_ready(context)).await.map_err(|error| connect_failure(&error))?;
        let tcp = tcp.call(address).await.map_err(|error| connect_failure(&error))?;
        Ok(Heard::new(tcp.into_inner()))
    }
}

async fn speak(stream: &mut Stream, mut handshake: ProxyHandshake) -> Result<(), NetworkError> {
    let mut buffer = [0; 4096];
    let mut length = 0;
    loop {
        match handshake.received(&buffer[..length])? {
            ProxyStep::Done => return Ok(()),
            ProxyStep::Receive => {}
            ProxyStep::Send(bytes) => {
                let sent = async {
                    stream.write_all(&bytes).await?;
                    stream.flush().await
                };
                sent.await.map_err(|error| connect_failure(&error))?;
            }
        }
        // A connection that breaks has been closed, for all that it says.
        length = stream.read(&mut buffer).await.unwrap_or_default();
        if length == 0 {
            return Err(handshake.closed());
        }
    }
}

/// Gives a step of connecting its time, and no more.
async fn within<T>(step: impl Future<Output = T>) -> Result<T, NetworkError> {
    timeout(Route::PATIENCE, step).await.map_err(|_| Route::late())
}
