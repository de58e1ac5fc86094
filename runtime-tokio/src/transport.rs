//! HTTP by hyper.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use cloudcoil_runtime::core::NetworkError;
use cloudcoil_runtime::core::config::{Config, ConfigError, ReadError};
use cloudcoil_runtime::{Body, Runtime as _, Target, Transport};
use futures_util::future::BoxFuture;
use http::{Request, Response};
use http_body_util::Full;

use crate::TokioRuntime;
use crate::connector::Connector;
use crate::pool::Pool;

/// Carries requests to the API server of one [`Config`] over HTTP/2, or HTTP/1.1 if the server speaks nothing newer or the
/// connection is not encrypted. Connections are kept and shared; clones share them too.
#[derive(Clone)]
pub struct HyperTransport {
    pool: Arc<Pool>,
    target: Arc<Target>,
    runtime: TokioRuntime,
}

impl HyperTransport {
    /// A transport that has not connected yet.
    ///
    /// # Errors
    /// [`ConfigError::InvalidPem`] or [`ConfigError::InvalidServer`], where TLS cannot be set up as configured.
    pub fn new(config: &Config, runtime: TokioRuntime) -> Result<Self, ConfigError> {
        let pool = Arc::new(Pool::new(Connector::new(config)?));
        Ok(Self { pool, target: Arc::new(Target::new(config)), runtime })
    }
}

impl Transport for HyperTransport {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>, NetworkError>> {
        let Self { pool, target, runtime } = self.clone();
        Box::pin(async move {
            let request = target.address(request, runtime.now(), read_file).await?;
            pool.send(request.map(Full::new)).await
        })
    }
}

/// Reads a file whole.
pub(crate) async fn read_file(path: PathBuf) -> Result<Vec<u8>, ReadError> {
    tokio::fs::read(path).await.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ReadError::NotFound,
        _ => ReadError::Failed(error.to_string().into()),
    })
}
