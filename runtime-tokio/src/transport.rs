//! HTTP by hyper.

use std::error::Error as StdError;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cloudcoil_runtime::core::config::{Config, ConfigError, ReadError};
use cloudcoil_runtime::core::{NetworkError, NetworkErrorKind};
use cloudcoil_runtime::{Body, Runtime as _, Target, Transport};
use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, TryFutureExt as _};
use http::{Request, Response};
use http_body_util::{BodyDataStream, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::TokioRuntime;
use crate::connector::{ConnectError, Connector, chain};

/// Carries requests to the API server of one [`Config`] over HTTP/2, or HTTP/1.1 if the server speaks nothing newer or the
/// connection is not encrypted. Connections are kept and shared; clones share them too.
#[derive(Clone)]
pub struct HyperTransport {
    client: Client<Connector, Full<Bytes>>,
    target: Arc<Target>,
    runtime: TokioRuntime,
}

impl HyperTransport {
    /// A transport that has not connected yet.
    ///
    /// # Errors
    /// [`ConfigError::InvalidPem`] or [`ConfigError::InvalidServer`], where TLS cannot be set up as configured.
    pub fn new(config: &Config, runtime: TokioRuntime) -> Result<Self, ConfigError> {
        let client = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(90))
            // A connection that has died is noticed within 45 seconds, also when nothing is sent on it.
            .http2_keep_alive_interval(Duration::from_secs(30))
            .http2_keep_alive_timeout(Duration::from_secs(15))
            .build(Connector::new(config)?);
        Ok(Self { client, target: Arc::new(Target::new(config)), runtime })
    }
}

impl Transport for HyperTransport {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>, NetworkError>> {
        let Self { client, target, runtime } = self.clone();
        Box::pin(async move {
            let request = target.address(request, runtime.now(), read_file).await?;
            let response = client.request(request.map(Full::new)).map_err(|error| send_error(&error)).await?;
            Ok(response.map(|body| {
                BodyDataStream::new(body).map(|piece| piece.map_err(|error| exchange_error(&error))).boxed()
            }))
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

/// Why there is no answer.
fn send_error(error: &hyper_util::client::legacy::Error) -> NetworkError {
    match find::<ConnectError>(error) {
        Some(ConnectError(error)) => error.clone(),
        None if error.is_connect() => NetworkError::new(NetworkErrorKind::Connect, chain(error)),
        None => exchange_error(error),
    }
}

/// Why an exchange ended early.
fn exchange_error(error: &(dyn StdError + 'static)) -> NetworkError {
    let malformed =
        |error: &io::Error| matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput);
    let is_protocol = find::<hyper::Error>(error).is_some_and(hyper::Error::is_parse)
        || find::<io::Error>(error).is_some_and(malformed);
    let kind = match find::<hyper::Error>(error) {
        _ if is_protocol => NetworkErrorKind::Protocol,
        Some(error) if error.is_user() => NetworkErrorKind::Request,
        _ => NetworkErrorKind::Lost,
    };
    NetworkError::new(kind, chain(error))
}

/// The outermost error of a type, in an error and those behind it.
fn find<'a, E: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}
