//! Serving HTTP and HTTPS on threads: what an adapter makes a listener of.
//!
//! An adapter [accepts](Accept) connections and encrypts them; this serves HTTP/1.1 on them, each on a thread of its own, and counts
//! them, and closes them.

mod accept;
mod connection;
#[path = "../../listener/handle.rs"]
mod handle;

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use cloudcoil_core::Time;
use cloudcoil_core::config::Subject;
use http::{Request, Response};

use super::{Clock, dual};
use crate::listener::Reload;

pub use accept::{Service, listen};
pub use handle::ListenHandle;

/// Answers requests, each on a thread of its own. The body is whole, and the [`Peer`](cloudcoil_core::listen::Peer) is among the
/// extensions. It may panic, which is answered 500; when its time is up, what it answers later is not sent. It runs on to its end all the same, and counts
/// until then: while as many run as there may be connections, further requests are answered 503 at once.
pub type RequestHandler = Arc<dyn Fn(Request<Bytes>) -> Response<Bytes> + Send + Sync>;

/// A port: what an adapter supplies to [`listen`].
pub trait Accept: Send + Sync + 'static {
    /// Blocks until there is a connection, and takes it.
    ///
    /// # Errors
    /// Those of the system.
    fn accept(&self) -> io::Result<(Arc<dyn Socket>, SocketAddr)>;

    /// What has a thread that is blocked in [`accept`](Self::accept) go on, if that is possible just now.
    fn waker(&self) -> Wake;
}

/// Has a thread go on.
pub type Wake = Box<dyn Fn() + Send + Sync>;

/// A connection, as other threads see it.
pub trait Socket: Send + Sync + 'static {
    /// Ends what the connection's thread is blocked in, and whatever it will read or write.
    fn shutdown(&self, how: Shutdown);

    /// Encrypts the connection if it is to be, until a time and no longer, and tells whom the client's certificate names.
    ///
    /// # Errors
    /// Why there is nothing to be read and written.
    fn shake(self: Arc<Self>, clock: Clock, until: Time) -> io::Result<(Box<dyn Wire>, Option<Subject>)>;
}

/// How a connection is read and written, until a time and no longer, however little comes each time.
pub trait Wire {
    /// The next bytes, cut anywhere; none at the end.
    ///
    /// # Errors
    /// Those of the system; [`TimedOut`](io::ErrorKind::TimedOut) or [`WouldBlock`](io::ErrorKind::WouldBlock) if it has taken too long.
    fn receive(&mut self, until: Time) -> io::Result<Bytes>;

    /// Sends all of this.
    ///
    /// # Errors
    /// As for [`receive`](Self::receive).
    fn send(&mut self, bytes: &[u8], until: Time) -> io::Result<()>;

    /// Tells the other side that nothing more is sent; what it sends can still be received.
    ///
    /// # Errors
    /// As for [`receive`](Self::receive).
    fn finish(&mut self, until: Time) -> io::Result<()>;
}
