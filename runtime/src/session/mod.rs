//! From the requests of machines to answers of one server, as one client.

mod keeper;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use cloudcoil_core::config::{Config, ConfigError, Tls};
use cloudcoil_core::credentials::{CredentialsInput, Grant};
use cloudcoil_core::{NetworkError, Target, Ticket};
pub(crate) use futures_util::StreamExt as Pieces;
use futures_util::future::BoxFuture;
use futures_util::stream;
use http::{Request, Response};

use self::keeper::Keeper;
use crate::{Body, Carrier, Plain, Runtime, System, Transport, exchange};

/// The [`Transport`] of one [`Config`], over what an adapter supplies: addresses, `User-Agent`, impersonation and credentials
/// go into requests, rejected credentials are fetched anew, and compressed answers become plain.
///
/// A request that is answered 401 is sent once more when there are other credentials to send, and one whose connection fails in the
/// TLS handshake when files of certificates have changed; see
/// [`Credentials`](cloudcoil_core::credentials::Credentials), which all requests of a session share. Whoever drops a request
/// while it waits for them does not disturb the others; the last one ends the program that fetches them.
///
/// A request that the server has not taken up is sent once more at once; see
/// [`Outgoing::is_unprocessed`](cloudcoil_core::Outgoing::is_unprocessed).
///
/// ```no_run
/// use std::sync::Arc;
/// use cloudcoil_core::config::{Config, ConfigError, Identity};
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
    courier: Courier,
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
        let keeper = Arc::new(Keeper::new(config, runtime, carrier.clone(), system));
        Ok(Self { target, courier: Courier { carrier, keeper } })
    }
}

impl Transport for Session {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>, NetworkError>> {
        let Self { target, courier } = self.clone();
        Box::pin(async move { exchange(&target, &courier, request).await })
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("target", &self.target).finish_non_exhaustive()
    }
}

/// What an exchange goes through.
#[derive(Clone)]
pub(crate) struct Courier {
    carrier: Arc<dyn Carrier>,
    keeper: Arc<Keeper>,
}

impl Courier {
    /// Credentials, or better ones than those that were of no use; `None` if there are none better.
    pub(crate) async fn ask(
        &self,
        question: impl FnOnce(Ticket) -> CredentialsInput,
    ) -> Result<Option<Grant>, NetworkError> {
        Ok(Keeper::ask(self.keeper.clone(), question).await?)
    }

    pub(crate) async fn carry(&self, request: Request<Bytes>, tls: Arc<Tls>) -> Result<Response<Body>, NetworkError> {
        self.carrier.carry(request, tls).await
    }
}

/// A body that is read as it is polled.
pub(crate) fn body(plain: Plain) -> Body {
    stream::unfold(plain, async |mut plain: Plain| plain.next().await.map(|piece| (piece, plain))).boxed()
}
