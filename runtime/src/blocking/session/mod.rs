//! From the requests of machines to answers of one server, as one client.

mod keeper;
pub(crate) mod plain;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use cloudcoil_core::config::{Config, ConfigError, Identity};
use cloudcoil_core::credentials::Grant;
use cloudcoil_core::{NetworkError, Target};
use http::{Request, Response};

use self::keeper::Keeper;
use super::{Body, Cancel, Carrier, System, Transport, exchange};

/// The [`Transport`] of one [`Config`], over what an adapter supplies: addresses, `User-Agent`, impersonation and credentials
/// go into requests, rejected credentials are fetched anew, and compressed answers become plain.
///
/// A request that is answered 401 is sent once more when there are other credentials to send; see
/// [`Credentials`](cloudcoil_core::credentials::Credentials), which all requests of a session share. Whoever gives up a request
/// while it waits for them does not disturb the others; the last one ends the program that fetches them.
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
    pub fn new(config: &Config, carrier: Arc<dyn Carrier>, system: Arc<dyn System>) -> Result<Self, ConfigError> {
        let target = Arc::new(Target::new(config)?);
        Ok(Self { target, carrier, keeper: Keeper::new(config, system) })
    }
}

impl Transport for Session {
    fn send(&self, request: Request<Bytes>, cancel: &Cancel) -> Result<Response<Body>, NetworkError> {
        exchange(&self.target, &Courier { session: self.clone(), cancel: cancel.clone() }, request)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("target", &self.target).finish_non_exhaustive()
    }
}

/// What an exchange goes through, until it is given up.
pub(crate) struct Courier {
    session: Session,
    cancel: Cancel,
}

impl Courier {
    /// Credentials, or better ones than those of the generation that was rejected; `None` if there are none better.
    pub(crate) fn ask(&self, rejected: Option<u64>) -> Result<Option<Grant>, NetworkError> {
        self.session.keeper.ask(rejected, &self.cancel)
    }

    pub(crate) fn carry(
        &self,
        request: Request<Bytes>,
        identity: Option<Arc<Identity>>,
    ) -> Result<Response<Body>, NetworkError> {
        self.session.carrier.carry(request, identity, &self.cancel)
    }
}
