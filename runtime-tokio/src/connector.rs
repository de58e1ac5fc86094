//! Connections: TCP, what it takes to get through a proxy, and TLS over it.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use cloudcoil_runtime::core::config::{Config, ConfigError, Proxy, ProxyScheme};
use cloudcoil_runtime::core::proxy::{ProxyHandshake, ProxyStep};
use cloudcoil_runtime::core::{NetworkError, NetworkErrorKind};
use http::{HeaderValue, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_rustls::TlsConnector;
use tower_service::Service as _;

use crate::failure::connect_failure;

/// Makes connections to one server.
pub(crate) struct Connector {
    server: Uri,
    tcp: HttpConnector,
    tls: Option<Tls>,
    proxy: Option<Via>,
}

/// A connection, encrypted or not.
pub(crate) struct Connection {
    pub(crate) io: TokioIo<Stream>,
    /// Whether both sides have agreed on HTTP/2.
    pub(crate) is_http2: bool,
}

pub(crate) type Stream = Box<dyn Io>;

pub(crate) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

type Tls = (TlsConnector, ServerName<'static>);

/// A proxy, and how it is reached.
struct Via {
    proxy: Proxy,
    address: Uri,
    tls: Option<Tls>,
}

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
        let proxy = config.proxy.as_ref().map(|proxy| Via::new(proxy, config)).transpose()?;
        Ok(Self { server: config.server.clone(), tcp, tls, proxy })
    }

    /// Whether requests are to be handed to a proxy as they are, and with which header; see [`Proxy::forwards`].
    pub(crate) fn forwarding(&self) -> Option<Option<HeaderValue>> {
        let via = self.proxy.as_ref().filter(|via| via.proxy.forwards(&self.server))?;
        Some(via.proxy.authorization())
    }

    pub(crate) async fn connect(&self) -> Result<Connection, NetworkError> {
        let stream = match &self.proxy {
            None => self.dial(&self.server).await?,
            Some(via) => self.through(via).await?,
        };
        let Some(tls) = &self.tls else {
            return Ok(Connection { io: TokioIo::new(stream), is_http2: false });
        };
        let (stream, is_http2) = encrypt(tls, stream).await?;
        Ok(Connection { io: TokioIo::new(stream), is_http2 })
    }

    async fn dial(&self, address: &Uri) -> Result<Stream, NetworkError> {
        let mut tcp = self.tcp.clone();
        poll_fn(|context| tcp.poll_ready(context)).await.map_err(|error| connect_failure(&error))?;
        let tcp = tcp.call(address.clone()).await.map_err(|error| connect_failure(&error))?;
        Ok(Box::new(tcp.into_inner()))
    }

    /// A connection to the server through its proxy, or one to the proxy if that forwards requests.
    async fn through(&self, via: &Via) -> Result<Stream, NetworkError> {
        let about = |error: NetworkError| NetworkError::new(error.kind, format!("{:?}: {}", via.proxy, error.message));
        let mut stream = self.dial(&via.address).await.map_err(about)?;
        if let Some(tls) = &via.tls {
            (stream, _) = encrypt(tls, stream).await.map_err(about)?;
        }
        if via.proxy.forwards(&self.server) {
            return Ok(stream);
        }
        let port = self.server.port_u16().unwrap_or_else(|| if self.tls.is_some() { 443 } else { 80 });
        let handshake = ProxyHandshake::new(&via.proxy, self.server.host().unwrap_or_default(), port)?;
        let spoken = tokio::time::timeout(TIMEOUT, speak(&mut stream, handshake)).await;
        spoken.map_err(|elapsed| about(connect_failure(&elapsed)))??;
        Ok(stream)
    }
}

impl Via {
    fn new(proxy: &Proxy, config: &Config) -> Result<Self, ConfigError> {
        let invalid = |problem| ConfigError::InvalidProxy { origin: "the proxy".into(), problem };
        let host = if proxy.host.contains(':') { format!("[{}]", proxy.host) } else { proxy.host.clone() };
        let address =
            format!("http://{host}:{}", proxy.port).parse().map_err(|_| invalid("its host cannot be looked up"))?;
        let tls = match proxy.scheme {
            ProxyScheme::Https => {
                let name =
                    ServerName::try_from(proxy.host.clone()).map_err(|_| invalid("its host has no valid name"))?;
                Some((TlsConnector::from(Arc::new(cloudcoil_tls::proxy_config(&config.tls)?)), name))
            }
            ProxyScheme::Http | ProxyScheme::Socks5 | ProxyScheme::Socks5h => None,
        };
        Ok(Self { proxy: proxy.clone(), address, tls })
    }
}

/// Encrypts; says also whether both sides have agreed on HTTP/2.
async fn encrypt((connector, name): &Tls, stream: Stream) -> Result<(Stream, bool), NetworkError> {
    let handshake = tokio::time::timeout(TIMEOUT, connector.connect(name.clone(), stream));
    let tls = handshake.await.unwrap_or_else(|elapsed| Err(elapsed.into()));
    let tls = tls.map_err(|error| cloudcoil_tls::handshake_failure(&error))?;
    let is_http2 = tls.get_ref().1.alpn_protocol() == Some(b"h2");
    Ok((Box::new(tls), is_http2))
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
                sent.await.map_err(|error| NetworkError::new(NetworkErrorKind::Connect, error.to_string()))?;
            }
        }
        // A connection that breaks has been closed, for all that it says.
        length = stream.read(&mut buffer).await.unwrap_or_default();
        if length == 0 {
            return Err(handshake.closed());
        }
    }
}

/// For each of the TCP connection, the TLS handshake and the words with a proxy.
const TIMEOUT: Duration = Duration::from_secs(10);
