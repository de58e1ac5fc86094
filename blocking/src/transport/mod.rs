//! HTTP from threads.

mod connector;
mod failure;
mod http;
mod wire;

use std::fmt;
use std::sync::Arc;

use ::http::{Request, Response};
use bytes::Bytes;
use cloudcoil_core::NetworkError;
use cloudcoil_core::config::{Config, ConfigError, Tls};
use cloudcoil_runtime::LocalSystem;
use cloudcoil_tls::Current;

use self::http::Connections;
use crate::{Body, Cancel, Carrier, Session, Transport};

/// Carries requests to the API server of one [`Config`] over HTTP/1.1. Connections are kept and shared; clones share them too.
#[derive(Clone)]
pub struct UreqTransport(Session);

impl UreqTransport {
    /// A transport that has not connected yet.
    ///
    /// # Errors
    /// [`ConfigError`] where TLS or the impersonated user cannot be as configured.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        let carrier = UreqCarrier(Current::new(config, Connections::new)?);
        Ok(Self(Session::new(config, Arc::new(carrier), Arc::new(LocalSystem))?))
    }
}

impl Transport for UreqTransport {
    fn send(&self, request: Request<Bytes>, cancel: &Cancel) -> Result<Response<Body>, NetworkError> {
        self.0.send(request, cancel)
    }
}

impl fmt::Debug for UreqTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UreqTransport").field(&self.0).finish()
    }
}

struct UreqCarrier(Current<Connections>);

impl Carrier for UreqCarrier {
    fn carry(&self, request: Request<Bytes>, tls: Arc<Tls>, cancel: &Cancel) -> Result<Response<Body>, NetworkError> {
        self.0.with(&tls)?.send(request, cancel)
    }

    fn check(&self, tls: &Tls) -> Result<(), ConfigError> {
        cloudcoil_tls::check(tls)
    }
}
