//! Connections: TCP, and TLS over it.

use std::sync::Arc;
use std::time::Duration;

use cloudcoil_core::config::{Config, ConfigError, Identity};
use cloudcoil_core::{NetworkError, NetworkErrorKind};
use cloudcoil_runtime::Runtime;
use futures_rustls::TlsConnector;
use futures_rustls::pki_types::ServerName;
use futures_util::future::{Either, select};

use super::Dial;
use super::connection::Connection;
use super::failure::{connect_failure, tls_failure};

/// Makes connections to one server, with one client certificate.
pub(crate) struct Connector {
    host: String,
    port: u16,
    dial: Arc<dyn Dial>,
    config: Config,
    identity: Option<Arc<Identity>>,
    tls: Option<(TlsConnector, ServerName<'static>)>,
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
        Ok(Self { host, port, dial, config, identity, tls })
    }

    pub(crate) async fn connect(&self, runtime: &dyn Runtime) -> Result<Connection, NetworkError> {
        let dialled = self.dial.dial(self.host.clone(), self.port);
        let tcp =
            within(runtime, NetworkErrorKind::Connect, dialled).await?.map_err(|error| connect_failure(&error))?;
        let Some((connector, name)) = &self.tls else { return Ok(Connection::new(tcp)) };
        let handshake = connector.connect(name.clone(), tcp);
        let tls = within(runtime, NetworkErrorKind::Tls, handshake).await?.map_err(|error| tls_failure(&error))?;
        Ok(Connection::new(Box::new(tls)))
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

/// For each of the TCP connection and the TLS handshake.
const TIMEOUT: Duration = Duration::from_secs(10);
