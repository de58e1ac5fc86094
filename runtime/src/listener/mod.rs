//! Serving HTTP and HTTPS on any executor: what an adapter makes a [`Listener`](crate::Listener) of.
//!
//! An adapter [accepts](Accept) connections and encrypts them; this serves HTTP/1.1 on them, and counts them, and closes them.

mod accept;
mod connection;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cloudcoil_core::config::ConfigError;
use cloudcoil_core::listen::ServerTls;
use futures_util::future::{BoxFuture, select};
use http::{Request, Response};

use crate::Runtime;
use crate::latch::{Latch, Opener};

pub use accept::{Accept, Service, listen};
pub use connection::{Connection, Wire, report};

/// Answers requests. The body is whole, and the [`Peer`](cloudcoil_core::listen::Peer) is among the extensions. It may panic, which
/// is answered 500, and is dropped when its time is up.
///
/// ```
/// use std::sync::Arc;
/// use cloudcoil_runtime::listener::Handler;
/// use cloudcoil_runtime::core::http::Response;
///
/// let handler: Handler = Arc::new(|request| Box::pin(async move {
///     let mut response = Response::new("ok".into());
///     if request.uri().path() != "/healthz" {
///         *response.status_mut() = 404.try_into().expect("it is a code");
///     }
///     response
/// }));
/// # drop(handler);
/// ```
pub type Handler = Arc<dyn Fn(Request<Bytes>) -> BoxFuture<'static, Response<Bytes>> + Send + Sync>;

/// How a listener takes up other certificates.
pub type Reload = Box<dyn Fn(&ServerTls) -> Result<(), ConfigError> + Send + Sync>;

/// Something that listens. Dropping it closes everything at once.
pub struct ListenHandle {
    address: SocketAddr,
    reload: Option<Reload>,
    runtime: Arc<dyn Runtime>,
    stopping: Opener,
    ended: Latch,
    // Whatever is open closes when this is dropped.
    _closing: Opener,
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
    /// off. Ends when all connections are closed.
    pub async fn stop(mut self, grace: Duration) {
        self.stopping.open();
        let until = self.runtime.now().mono + grace;
        select(std::pin::pin!(self.ended.opened()), self.runtime.sleep_until(until)).await;
        let ended = self.ended.clone();
        drop(self);
        ended.opened().await;
    }
}

impl fmt::Debug for ListenHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListenHandle").field("address", &self.address).finish_non_exhaustive()
    }
}
