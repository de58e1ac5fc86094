//! Requests to one server from one identity.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use cloudcoil_core::NetworkError;
use cloudcoil_core::config::{Config, ConfigError};
use cloudcoil_runtime::Target;
use http::{Request, Response};

use super::http::Connections;
use super::{Body, Transport};
use crate::Cancel;
use crate::clock::Clock;
use crate::connect::read_file;

/// Carries requests to the API server of one [`Config`] over HTTP/1.1. Connections are kept and shared; clones share them too.
#[derive(Clone)]
pub struct UreqTransport {
    connections: Connections,
    target: Arc<Target>,
    clock: Clock,
}

impl UreqTransport {
    /// A transport that has not connected yet.
    ///
    /// # Errors
    /// [`ConfigError::InvalidPem`] or [`ConfigError::InvalidServer`], where TLS cannot be set up as configured.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        let target = Arc::new(Target::new(config));
        Ok(Self { connections: Connections::new(config)?, target, clock: Clock::new() })
    }

    fn address(&self, request: Request<Bytes>) -> Result<Request<Bytes>, NetworkError> {
        let addressed = pin!(self.target.address(request, self.clock.now(), async |path| read_file(&path)));
        // The files are read on the spot, so there is nothing to wait for.
        match addressed.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(request) => request,
            Poll::Pending => unreachable!("nothing was waited for"),
        }
    }
}

impl Transport for UreqTransport {
    fn send(&self, request: Request<Bytes>, cancel: &Cancel) -> Result<Response<Body>, NetworkError> {
        self.connections.send(self.address(request)?, cancel)
    }
}

impl std::fmt::Debug for UreqTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("UreqTransport").field(&self.connections).finish()
    }
}
