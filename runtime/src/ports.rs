//! What an adapter supplies.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use cloudcoil_core::config::{ConfigError, ReadError, Tls};
use cloudcoil_core::credentials::{Command, Finished, RunError};
use cloudcoil_core::listen::{ListenConfig, ListenError};
use cloudcoil_core::{NetworkError, Now, Time};
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use http::{Request, Response};

use crate::listener::{Handler, ListenHandle};

/// An executor and its clocks.
///
/// ```no_run
/// use std::sync::Arc;
/// use cloudcoil_runtime::{Client, Runtime, Transport};
///
/// fn client(runtime: Arc<dyn Runtime>, transport: Arc<dyn Transport>) -> Client {
///     Client::new(runtime, transport).with_default_namespace("team")
/// }
/// ```
pub trait Runtime: Send + Sync + 'static {
    /// Both clocks. The monotonic one starts anywhere and never goes back.
    fn now(&self) -> Now;

    /// Ends at `at` or later, never before. Must be cheap to drop.
    fn sleep_until(&self, at: Time) -> BoxFuture<'static, ()>;

    /// Runs a task to its end, on whichever thread. A panic in it must not reach the caller.
    fn spawn(&self, task: BoxFuture<'static, ()>);

    /// As [`spawn`](Self::spawn), for the run of a handler that works on `object`, such as `Widget ns/a`: a simulation tells by that
    /// name which handler waits for what never comes.
    fn spawn_handler(&self, object: &str, task: BoxFuture<'static, ()>) {
        let _ = object;
        self.spawn(task);
    }

    /// A number that differs from call to call and from process to process; a simulation draws it from its own seed.
    fn seed(&self) -> u64;
}

/// Carries requests to one API server. [`Session`](crate::Session) does over any [`Carrier`].
pub trait Transport: Send + Sync + 'static {
    /// Sends a request and answers once the head of the answer is there. The URI is a path and query, to be resolved
    /// against the server's address; credentials are added here. Redirects are not followed.
    ///
    /// Sets no time limit to the answer: watches stay open for hours. Dropping the future, or the body, gives up the
    /// exchange and closes its stream or connection at once.
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>, NetworkError>>;
}

/// The body of an answer, in pieces cut anywhere. It is read no faster than it is polled, and ends after an error.
pub type Body = BoxStream<'static, Result<Bytes, NetworkError>>;

/// Carries requests that say all there is to say: what an adapter supplies to a [`Session`](crate::Session).
pub trait Carrier: Send + Sync + 'static {
    /// As [`Transport::send`], for a request with an absolute address and credentials in it. The connection is made as `tls` says, with
    /// that client certificate and those authorities; one that was made otherwise is not used, and closes when what it carries has
    /// ended.
    fn carry(&self, request: Request<Bytes>, tls: Arc<Tls>)
    -> BoxFuture<'static, Result<Response<Body>, NetworkError>>;

    /// Whether connections can be made as `tls` says: asked before the first that is, when files of certificates have changed.
    ///
    /// # Errors
    /// [`ConfigError::InvalidPem`], naming the certificate or key at fault.
    fn check(&self, tls: &Tls) -> Result<(), ConfigError>;
}

/// The files and programs of the machine: what an adapter supplies to a [`Session`](crate::Session).
pub trait System: Send + Sync + 'static {
    /// Reads a file whole, which has been read before. What is no regular file, such as a pipe that was read to its end, is an error
    /// and not waited for: [`reread_file`](crate::reread_file).
    fn read(&self, path: PathBuf) -> BoxFuture<'static, Result<Vec<u8>, ReadError>>;

    /// Runs a program to its end. Dropping the future ends the program.
    fn run(&self, command: Command) -> BoxFuture<'static, Result<Finished, RunError>>;

    /// Whether standard input is a terminal, which a program can be lent.
    fn has_terminal(&self) -> bool;
}

/// Listens for webhooks, metrics and probes: over HTTP/1.1 at least, and HTTP/2 if it can.
pub trait Listener: Send + Sync + 'static {
    /// Listens at an address, and has every request [handled](Handler). Nothing is accepted before this ends, and nothing refused
    /// after.
    ///
    /// # Errors
    /// [`ListenError`] if the address is taken, or the certificate is none.
    fn listen(&self, config: ListenConfig, handler: Handler) -> BoxFuture<'static, Result<ListenHandle, ListenError>>;
}
