//! Connections: TCP, and what is to be done on it.

use std::sync::Arc;

use cloudcoil_core::config::{Config, ConfigError, Identity};
use cloudcoil_core::proxy::{ProxyHandshake, ProxyStep};
use cloudcoil_core::{NetworkError, NetworkErrorKind};
use cloudcoil_runtime::Runtime;
use cloudcoil_tls::{Route, Step};
use futures_rustls::TlsConnector;
use futures_util::future::{Either, select};
use futures_util::io::{AsyncReadExt as _, AsyncWriteExt as _};
use http::HeaderValue;

use super::connection::Connection;
use super::failure::connect_failure;
use super::{Dial, Io};

/// Makes connections to one server, with one client certificate.
pub(crate) struct Connector {
    route: Route,
    dial: Arc<dyn Dial>,
    config: Config,
    identity: Option<Arc<Identity>>,
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
        let route = Route::new(&config, &[b"http/1.1"])?;
        Ok(Self { route, dial, config, identity })
    }

    /// See [`Route::forwarding`].
    pub(crate) fn forwarding(&self) -> Option<Option<HeaderValue>> {
        self.route.forwarding()
    }

    pub(crate) async fn connect(&self, runtime: &dyn Runtime) -> Result<Connection, NetworkError> {
        let steps = self.route.steps()?;
        let (host, port) = self.route.address();
        let dialled = within(runtime, self.dial.dial(host.to_owned(), port)).await;
        let dialled = dialled.and_then(|dialled| dialled.map_err(|error| connect_failure(&error)));
        let mut stream = dialled.map_err(|error| self.route.about(error))?;
        for step in steps {
            let is_proxys = step.is_proxys();
            let about = |error| if is_proxys { self.route.about(error) } else { error };
            stream = match step {
                Step::Encrypt { config, name, .. } => {
                    let shaken = within(runtime, TlsConnector::from(config).connect(name, stream)).await;
                    let shaken = shaken.and_then(|tls| tls.map_err(|error| cloudcoil_tls::handshake_failure(&error)));
                    Box::new(shaken.map_err(about)?)
                }
                Step::Speak(handshake) => {
                    within(runtime, Box::pin(speak(stream, handshake))).await.map_err(about)??
                }
            };
        }
        Ok(Connection::new(stream))
    }
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
async fn within<T>(runtime: &dyn Runtime, step: impl Future<Output = T> + Send + Unpin) -> Result<T, NetworkError> {
    match select(step, runtime.sleep_until(runtime.now().mono + Route::PATIENCE)).await {
        Either::Left((value, _)) => Ok(value),
        Either::Right(((), _)) => {
            Err(NetworkError::new(NetworkErrorKind::Connect, format!("nothing happened for {:?}", Route::PATIENCE)))
        }
    }
}
