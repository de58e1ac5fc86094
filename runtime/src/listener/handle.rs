//! What listens, for tasks and for threads.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use cloudcoil_core::config::ConfigError;
use cloudcoil_core::listen::ServerTls;

use super::accept::Running;
use super::{Reload, dual};

/// Something that listens. Dropping it closes everything at once.
pub struct ListenHandle {
    pub(super) address: SocketAddr,
    pub(super) reload: Option<Reload>,
    pub(super) running: Running,
}

impl ListenHandle {
    /// Where it listens; the port is the one that was chosen if it was to be any.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes up another certificate, and other authorities of clients, for connections that are made from now on. Those that are open
    /// go on. Does nothing where connections are not encrypted.
    ///
    /// # Errors
    /// [`ConfigError::InvalidPem`], naming the certificate or key at fault; the ones before stay in use.
    pub fn reload(&self, tls: &ServerTls) -> Result<(), ConfigError> {
        self.reload.as_ref().map_or(Ok(()), |reload| reload(tls))
    }

    /// Listens no more, answers the requests that have begun, and closes each connection then; what is not over within `grace` is cut
    /// off. Ends when all connections are closed. A handler on a thread that is cut off goes on to its end all the same.
    #[dual]
    pub async fn stop(self, grace: Duration) {
        self.running.stop(grace).await;
    }
}

impl fmt::Debug for ListenHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListenHandle").field("address", &self.address).finish_non_exhaustive()
    }
}
