//! From the requests of machines to answers of one server, as one client.

mod keeper;

use std::fmt;
use std::iter;
pub(crate) use std::iter::Iterator as Pieces;
use std::sync::Arc;

use bytes::Bytes;
use cloudcoil_core::config::{Config, ConfigError, Tls};
use cloudcoil_core::credentials::{CredentialsInput, Grant};
use cloudcoil_core::{NetworkError, Target, Ticket};
use http::{Request, Response};

use self::keeper::Keeper;
use super::{Body, Cancel, Carrier, Plain, System, Transport, exchange};

/// The [`Transport`] of one [`Config`], over what an adapter supplies: addresses, `User-Agent`, impersonation and credentials
/// go into requests, rejected credentials are fetched anew, and compressed answers become plain.
///
/// A request that is answered 401 is sent once more when there are other credentials to send, and one whose connection fails in the
/// TLS handshake when files of certificates have changed; see
/// [`Credentials`](cloudcoil_core::credentials::Credentials), which all requests of a session share. Whoever gives up a request
/// while it waits for them does not disturb the others; the last one ends the program that fetches them.
///
/// A request that the server has not taken up is sent once more at once; see
/// [`Outgoing::is_unprocessed`](cloudcoil_core::Outgoing::is_unprocessed).
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
        let keeper = Keeper::new(config, carrier.clone(), system);
        Ok(Self { target, carrier, keeper })
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
    /// Credentials, or better ones than those that were of no use; `None` if there are none better.
    pub(crate) fn ask(&self, question: impl FnOnce(Ticket) -> CredentialsInput) -> Result<Option<Grant>, NetworkError> {
        self.session.keeper.ask(question, &self.cancel)
    }

    pub(crate) fn carry(&self, request: Request<Bytes>, tls: Arc<Tls>) -> Result<Response<Body>, NetworkError> {
        self.session.carrier.carry(request, tls, &self.cancel)
    }
}

/// A body that is read as it is asked for.
pub(crate) fn body(mut plain: Plain) -> Body {
    Box::new(iter::from_fn(move || plain.next()))
}
