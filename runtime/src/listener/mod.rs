//! Serving HTTP and HTTPS on any executor: what an adapter makes a [`Listener`](crate::Listener) of.
//!
//! An adapter [accepts](Accept) connections and encrypts them; this serves HTTP/1.1 on them, and counts them, and closes them.

mod accept;
mod connection;
mod handle;

use std::sync::Arc;

use bytes::Bytes;
use cloudcoil_core::config::ConfigError;
use cloudcoil_core::listen::ServerTls;
use futures_util::future::BoxFuture;
use http::{Request, Response};

use crate::dual;

pub use accept::{Accept, Service, listen};
pub(crate) use connection::broke;
pub use connection::{Connection, Wire, report};
pub use handle::ListenHandle;

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
