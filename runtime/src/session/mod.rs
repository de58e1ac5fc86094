//! From the requests of machines to answers of one server, as one client.

mod keeper;
mod plain;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use cloudcoil_core::config::{Config, ConfigError};
use cloudcoil_core::credentials::Grant;
use cloudcoil_core::{NetworkError, Target};
use futures_util::future::BoxFuture;
use http::{Request, Response};

use self::keeper::{Keeper, Question, Reply};
use crate::{Body, Carrier, Runtime, System, Transport};

/// The [`Transport`] of one [`Config`], over what an adapter supplies: addresses, `User-Agent`, impersonation and credentials
/// go into requests, rejected credentials are fetched anew, and compressed answers become plain.
///
/// A request that is answered 401 is sent once more when there are other credentials to send; see
/// [`Credentials`](cloudcoil_core::credentials::Credentials), which all requests of a session share. Whoever drops a request
/// while it waits for them does not disturb the others; the last one ends the program that fetches them.
///
/// ```no_run
/// use std::sync::Arc;
/// use cloudcoil_core::config::{Config, ConfigError};
/// use cloudcoil_runtime::{Carrier, Client, Runtime, Session, System};
///
/// fn client(
///     config: &Config,
///     runtime: Arc<dyn Runtime>,
///     carrier: Arc<dyn Carrier>,
///     system: Arc<dyn System>,
/// ) -> Result<Client, ConfigError> {
///     let session = Session::new(config, runtime.clone(), carrier, system)?;
///     Ok(Client::new(runtime, Arc::new(session)).with_default_namespace(&config.namespace))
/// }
/// ```
#[derive(Clone)]
pub struct Session {
    target: Arc<Target>,
    carrier: Arc<dyn Carrier>,
    keeper: Arc<Keeper>,
}

impl Session {
    /// A session that has not sent anything yet.
    ///
    /// # Errors
    /// [`ConfigError::InvalidImpersonation`], if what is said about the impersonated user cannot be sent.
    pub fn new(
        config: &Config,
        runtime: Arc<dyn Runtime>,
        carrier: Arc<dyn Carrier>,
        system: Arc<dyn System>,
    ) -> Result<Self, ConfigError> {
        let target = Arc::new(Target::new(config)?);
        Ok(Self { target, carrier, keeper: Arc::new(Keeper::new(config, runtime, system)) })
    }

    async fn exchange(self, request: Request<Bytes>) -> Result<Response<Body>, NetworkError> {
        let mut outgoing = self.target.outgoing(request)?;
        let mut grant = self.ask(Question::Credentials).await?.expect("only a rejection can stand");
        loop {
            let response = self.carrier.carry(outgoing.with(&grant), grant.identity.clone()).await?;
            if outgoing.is_rejected(response.status())
                && let Some(better) = self.ask(Question::Better { than: grant.generation }).await?
            {
                tracing::debug!(generation = better.generation, "sending once more with other credentials");
                grant = better;
                continue;
            }
            let (mut head, body) = response.into_parts();
            let body = match outgoing.decompression(&mut head.headers) {
                Some(gunzip) => plain::body(body, gunzip),
                None => body,
            };
            return Ok(Response::from_parts(head, body));
        }
    }

    /// Credentials; `None` if there are none better than those that were rejected.
    async fn ask(&self, question: Question) -> Result<Option<Grant>, NetworkError> {
        match Keeper::ask(self.keeper.clone(), question).await {
            Reply::Grant(grant) => Ok(Some(grant)),
            Reply::Stand => Ok(None),
            Reply::Refuse(error) => Err(error.into()),
        }
    }
}

impl Transport for Session {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>, NetworkError>> {
        Box::pin(self.clone().exchange(request))
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("target", &self.target).finish_non_exhaustive()
    }
}
