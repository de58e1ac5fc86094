//! HTTP by hyper.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use cloudcoil_runtime::core::config::{Config, ConfigError, Identity};
use cloudcoil_runtime::core::{NetworkError, NetworkErrorKind};
use cloudcoil_runtime::{Body, Carrier, LocalSystem, Session, Transport};
use futures_util::future::BoxFuture;
use http::{Request, Response};
use http_body_util::Full;

use crate::TokioRuntime;
use crate::connector::Connector;
use crate::pool::Pool;

/// Carries requests to the API server of one [`Config`] over HTTP/2, or HTTP/1.1 if the server speaks nothing newer or the
/// connection is not encrypted. Connections are kept and shared; clones share them too, and the credentials as well.
///
/// All that goes into a request, and what happens when its credentials are rejected, is the business of [`Session`].
#[derive(Clone, Debug)]
pub struct HyperTransport(Session);

impl HyperTransport {
    /// A transport that has not connected yet.
    ///
    /// # Errors
    /// [`ConfigError`] where TLS, the proxy or the impersonated user cannot be as configured.
    pub fn new(config: &Config, runtime: TokioRuntime) -> Result<Self, ConfigError> {
        let carrier = Arc::new(HyperCarrier::new(config)?);
        Ok(Self(Session::new(config, Arc::new(runtime), carrier, Arc::new(LocalSystem))?))
    }
}

impl Transport for HyperTransport {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>, NetworkError>> {
        self.0.send(request)
    }
}

/// Keeps a pool of connections for the client certificate that is in use. When it changes, there is a new pool; the old
/// connections close as soon as the exchanges on them have ended, for nobody can start another.
struct HyperCarrier {
    config: Config,
    current: Mutex<(Option<Arc<Identity>>, Arc<Pool>)>,
}

impl HyperCarrier {
    fn new(config: &Config) -> Result<Self, ConfigError> {
        let identity = config.tls.identity.clone().filter(|_| config.is_tls()).map(Arc::new);
        let pool = Arc::new(Pool::new(Connector::new(config)?));
        Ok(Self { config: config.clone(), current: Mutex::new((identity, pool)) })
    }

    fn pool(&self, identity: Option<Arc<Identity>>) -> Result<Arc<Pool>, ConfigError> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.0 != identity {
            let mut config = self.config.clone();
            config.tls.identity = identity.as_deref().cloned();
            let pool = Arc::new(Pool::new(Connector::new(&config)?));
            tracing::debug!("connecting anew with another client certificate");
            *current = (identity, pool);
        }
        Ok(current.1.clone())
    }
}

impl Carrier for HyperCarrier {
    fn carry(
        &self,
        request: Request<Bytes>,
        identity: Option<Arc<Identity>>,
    ) -> BoxFuture<'static, Result<Response<Body>, NetworkError>> {
        let pool = self.pool(identity);
        Box::pin(async move {
            let pool = pool.map_err(|error| NetworkError::new(NetworkErrorKind::Tls, error.to_string()))?;
            pool.send(request.map(Full::new)).await
        })
    }
}
