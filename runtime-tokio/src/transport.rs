//! HTTP by hyper.

use std::sync::Arc;

use bytes::Bytes;
use cloudcoil_runtime::core::NetworkError;
use cloudcoil_runtime::core::config::{Config, ConfigError, Tls};
use cloudcoil_runtime::{Body, Carrier, LocalSystem, Session, Transport};
use cloudcoil_tls::Current;
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
        let pools = Current::new(config, |config| Ok(Arc::new(Pool::new(Connector::new(config)?))))?;
        Ok(Self(Session::new(config, Arc::new(runtime), Arc::new(HyperCarrier(pools)), Arc::new(LocalSystem))?))
    }
}

impl Transport for HyperTransport {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>, NetworkError>> {
        self.0.send(request)
    }
}

struct HyperCarrier(Current<Arc<Pool>>);

impl Carrier for HyperCarrier {
    fn carry(
        &self,
        request: Request<Bytes>,
        tls: Arc<Tls>,
    ) -> BoxFuture<'static, Result<Response<Body>, NetworkError>> {
        let pool = self.0.with(&tls);
        Box::pin(async move { pool?.send(request.map(Full::new)).await })
    }

    fn check(&self, tls: &Tls) -> Result<(), ConfigError> {
        cloudcoil_tls::check(tls)
    }
}
