//! Requests to one server from one identity.

use std::io::{self, IsTerminal as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use cloudcoil_core::config::{Config, ConfigError, Identity};
use cloudcoil_core::{Gunzip, NetworkError, NetworkErrorKind, Target};
use http::{Request, Response};

use super::http::Connections;
use super::keeper::Keeper;
use crate::{Body, Cancel, Transport};

/// Carries requests to the API server of one [`Config`] over HTTP/1.1. Connections are kept and shared; clones share them too.
#[derive(Clone)]
pub struct UreqTransport {
    shared: Arc<Shared>,
}

struct Shared {
    config: Config,
    target: Target,
    keeper: Arc<Keeper>,
    /// Those of the client certificate that is in use.
    connections: Mutex<(Option<Arc<Identity>>, Connections)>,
}

impl UreqTransport {
    /// A transport that has not connected yet.
    ///
    /// # Errors
    /// [`ConfigError`] where TLS or the impersonated user cannot be as configured.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        let identity = config.tls.identity.clone().filter(|_| config.is_tls()).map(Arc::new);
        let shared = Shared {
            config: config.clone(),
            target: Target::new(config)?,
            keeper: Keeper::new(config, io::stdin().is_terminal()),
            connections: Mutex::new((identity, Connections::new(config)?)),
        };
        Ok(Self { shared: Arc::new(shared) })
    }
}

impl Shared {
    fn connections(&self, identity: Option<Arc<Identity>>) -> Result<Connections, ConfigError> {
        let mut current = lock(&self.connections);
        if current.0 != identity {
            let mut config = self.config.clone();
            config.tls.identity = identity.as_deref().cloned();
            *current = (identity, Connections::new(&config)?);
        }
        Ok(current.1.clone())
    }
}

impl Transport for UreqTransport {
    fn send(&self, request: Request<Bytes>, cancel: &Cancel) -> Result<Response<Body>, NetworkError> {
        let shared = &self.shared;
        let mut outgoing = shared.target.outgoing(request)?;
        let mut grant = shared.keeper.ask(None, cancel)?.expect("only a rejection can stand");
        loop {
            let connections = shared
                .connections(grant.identity.clone())
                .map_err(|error| NetworkError::new(NetworkErrorKind::Tls, error.to_string()))?;
            let response = connections.send(outgoing.with(&grant), cancel)?;
            if outgoing.is_rejected(response.status())
                && let Some(better) = shared.keeper.ask(Some(grant.generation), cancel)?
            {
                grant = better;
                continue;
            }
            let (mut head, body) = response.into_parts();
            let body = match outgoing.decompression(&mut head.headers) {
                Some(gunzip) => Box::new(Plain { compressed: Some(body), gunzip }),
                None => body,
            };
            return Ok(Response::from_parts(head, body));
        }
    }
}

impl std::fmt::Debug for UreqTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("UreqTransport").field(&self.shared.target).finish()
    }
}

/// A compressed body, made plain as it is read.
struct Plain {
    /// Gone when it has ended or failed.
    compressed: Option<Body>,
    gunzip: Gunzip,
}

impl Plain {
    fn plain(&mut self) -> Result<Option<Bytes>, NetworkError> {
        loop {
            if let Some(plain) = self.gunzip.pull()? {
                return Ok(Some(plain));
            }
            let Some(compressed) = &mut self.compressed else { return Ok(None) };
            match compressed.next() {
                Some(bytes) => self.gunzip.push(bytes?),
                None => {
                    self.compressed = None;
                    self.gunzip.finish()?;
                }
            }
        }
    }
}

impl Iterator for Plain {
    type Item = Result<Bytes, NetworkError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.plain().transpose();
        if let Some(Err(_)) = next {
            self.compressed = None;
            self.gunzip = Gunzip::new();
        }
        next
    }
}

/// What is in there is whole, whoever has panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
