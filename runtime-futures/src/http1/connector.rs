//! Connections: TCP, and TLS over it.

use std::sync::Arc;
use std::time::Duration;

use cloudcoil_core::config::{Config, ConfigError, Identity, Proxy, ProxyScheme};
use cloudcoil_core::proxy::{ProxyHandshake, ProxyStep};
use cloudcoil_core::{NetworkError, NetworkErrorKind};
use cloudcoil_runtime::Runtime;
use futures_rustls::TlsConnector;
use futures_rustls::pki_types::ServerName;
use futures_util::future::{Either, select};
use futures_util::io::{AsyncReadExt as _, AsyncWriteExt as _};
use http::HeaderValue;

use super::connection::Connection;
use super::failure::connect_failure;
use super::{Dial, Io};

/// Makes connections to one server, with one client certificate.
pub(crate) struct Connector {
    host: String,
    port: u16,
    dial: Arc<dyn Dial>,
    config: Config,
    identity: Option<Arc<Identity>>,
    tls: Option<Tls>,
    proxy: Option<Via>,
}

type Tls = (TlsConnector, ServerName<'static>);

/// A proxy, and the encryption of what is said to it.
struct Via {
    proxy: Proxy,
    tls: Option<Tls>,
}

impl Connector {
    pub(crate) fn new(config: &Config, dial: Arc<dyn Dial>) -> Result<Self, ConfigError> {
        Self::made(config.clone(), dial, config.tls.identity.clone().map(Arc::new))
    }

    /// The same, with another client certificate.
    pub(crate) fn with_identity(&self, identity: Option<Arc<Identity>>) -> Result<Self, ConfigError> {
        Self::made(self.config.clone(), self.dial.clone(), identity)
    }

    pub(crate) fn has_identity(&self, identity: Option<&Identity>) -> bool {
        self.identity.as_deref() == identity
    }

    fn made(mut config: Config, dial: Arc<dyn Dial>, identity: Option<Arc<Identity>>) -> Result<Self, ConfigError> {
        config.tls.identity = identity.as_deref().cloned();
        let tls = match config.is_tls() {
            true => {
                let tls = cloudcoil_tls::client_config(&config.tls, &[b"http/1.1"])?;
                Some((TlsConnector::from(Arc::new(tls)), cloudcoil_tls::server_name(&config)?))
            }
            false => None,
        };
        let host = config.server.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = config.server.port_u16().unwrap_or_else(|| if config.is_tls() { 443 } else { 80 });
        let proxy = config.proxy.as_ref().map(|proxy| Via::new(proxy, &config)).transpose()?;
        Ok(Self { host, port, dial, config, identity, tls, proxy })
    }

    /// Whether requests are to be handed to a proxy as they are, and with which header; see [`Proxy::forwards`].
    pub(crate) fn forwarding(&self) -> Option<Option<HeaderValue>> {
        let via = self.proxy.as_ref().filter(|via| via.proxy.forwards(&self.config.server))?;
        Some(via.proxy.authorization())
    }

    pub(crate) async fn connect(&self, runtime: &dyn Runtime) -> Result<Connection, NetworkError> {
        let stream = match &self.proxy {
            None => self.dial(runtime, &self.host, self.port).await?,
            Some(via) => self.through(runtime, via).await?,
        };
        let Some(tls) = &self.tls else { return Ok(Connection::new(stream)) };
        Ok(Connection::new(encrypt(runtime, tls, stream).await?))
    }

    async fn dial(&self, runtime: &dyn Runtime, host: &str, port: u16) -> Result<Box<dyn Io>, NetworkError> {
        let dialled = self.dial.dial(host.to_owned(), port);
        within(runtime, NetworkErrorKind::Connect, dialled).await?.map_err(|error| connect_failure(&error))
    }

    /// A connection to the server through its proxy, or one to the proxy if that forwards requests.
    async fn through(&self, runtime: &dyn Runtime, via: &Via) -> Result<Box<dyn Io>, NetworkError> {
        let about = |error: NetworkError| NetworkError::new(error.kind, format!("{:?}: {}", via.proxy, error.message));
        let mut stream = self.dial(runtime, &via.proxy.host, via.proxy.port).await.map_err(about)?;
        if let Some(tls) = &via.tls {
            stream = encrypt(runtime, tls, stream).await.map_err(about)?;
        }
        if via.proxy.forwards(&self.config.server) {
            return Ok(stream);
        }
        let handshake = ProxyHandshake::new(&via.proxy, self.config.server.host().unwrap_or_default(), self.port)?;
        let spoken = Box::pin(speak(stream, handshake));
        within(runtime, NetworkErrorKind::Connect, spoken).await.map_err(about)?
    }
}

impl Via {
    fn new(proxy: &Proxy, config: &Config) -> Result<Self, ConfigError> {
        let tls = match proxy.scheme {
            ProxyScheme::Https => {
                let name = ServerName::try_from(proxy.host.clone()).map_err(|_| ConfigError::InvalidProxy {
                    origin: "the proxy".into(),
                    problem: "its host has no valid name",
                })?;
                Some((TlsConnector::from(Arc::new(cloudcoil_tls::proxy_config(&config.tls)?)), name))
            }
            ProxyScheme::Http | ProxyScheme::Socks5 | ProxyScheme::Socks5h => None,
        };
        Ok(Self { proxy: proxy.clone(), tls })
    }
}

async fn encrypt(
    runtime: &dyn Runtime,
    (connector, name): &Tls,
    stream: Box<dyn Io>,
) -> Result<Box<dyn Io>, NetworkError> {
    let handshake = connector.connect(name.clone(), stream);
    let tls = within(runtime, NetworkErrorKind::Connect, handshake)
        .await?
        .map_err(|error| cloudcoil_tls::handshake_failure(&error))?;
    Ok(Box::new(tls))
}

async fn speak(mut stream: Box<dyn Io>, mut handshake: ProxyHandshake) -> Result<Box<dyn Io>, NetworkError> {
    let mut buffer = [0; 4096];
    let mut length = 0;
    loop {
        match handshake.received(&buffer[..length])? {
            ProxyStep::Done => return Ok(stream),
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
async fn within<T>(
    runtime: &dyn Runtime,
    kind: NetworkErrorKind,
    step: impl Future<Output = T> + Send + Unpin,
) -> Result<T, NetworkError> {
    match select(step, runtime.sleep_until(runtime.now().mono + TIMEOUT)).await {
        Either::Left((value, _)) => Ok(value),
        Either::Right(((), _)) => Err(NetworkError::new(kind, format!("nothing happened for {TIMEOUT:?}"))),
    }
}

/// For each of the TCP connection, the TLS handshake and the words with a proxy.
const TIMEOUT: Duration = Duration::from_secs(10);
