//! HTTP by hyper.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use cloudcoil_runtime::core::config::{Config, ConfigError, Tls};
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

/// Keeps a pool of connections for the certificates that are in use. When they change, there is a new pool; the old connections
/// close as soon as the exchanges on them have ended, for nobody can start another.
struct HyperCarrier(Mutex<(Config, Arc<Pool>)>);

impl HyperCarrier {
    fn new(config: &Config) -> Result<Self, ConfigError> {
        Ok(Self(Mutex::new((config.clone(), Arc::new(Pool::new(Connector::new(config)?))))))
    }

    fn pool(&self, tls: &Tls) -> Result<Arc<Pool>, ConfigError> {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if current.0.tls != *tls {
            let mut config = current.0.clone();
            config.tls = tls.clone();
            let pool = Arc::new(Pool::new(Connector::new(&config)?));
            tracing::debug!("connecting anew with other certificates");
            *current = (config, pool);
        }
        Ok(current.1.clone())
    }
}

impl Carrier for HyperCarrier {
    fn carry(
        &self,
        request: Request<Bytes>,
        tls: Arc<Tls>,
    ) -> BoxFuture<'static, Result<Response<Body>, NetworkError>> {
        let pool = self.pool(&tls);
        Box::pin(async move {
            let pool = pool.map_err(|error| NetworkError::new(NetworkErrorKind::Tls, error.to_string()))?;
            pool.send(request.map(Full::new)).await
        })
    }

    fn check(&self, tls: &Tls) -> Result<(), ConfigError> {
        cloudcoil_tls::check(tls)
    }
}
