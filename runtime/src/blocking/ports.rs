//! What an adapter supplies.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use cloudcoil_core::NetworkError;
use cloudcoil_core::config::{Identity, ReadError};
use cloudcoil_core::credentials::{Command, Finished, RunError};
use http::{Request, Response};

use super::Cancel;

/// Carries requests to one API server. [`Session`](super::Session) does over any [`Carrier`].
pub trait Transport: Send + Sync + 'static {
    /// Sends a request, and answers once the head of the answer is there. The URI is a path and query, to be resolved
    /// against the server's address; credentials are added here. Redirects are not followed.
    ///
    /// Sets no time limit to the answer: watches stay open for hours. Once `cancel` is called for, this call and the reading of the
    /// body fail promptly, and the connection is closed.
    ///
    /// # Errors
    /// A [`NetworkError`] whose kind tells whether the request can have been sent.
    fn send(&self, request: Request<Bytes>, cancel: &Cancel) -> Result<Response<Body>, NetworkError>;
}

/// The body of an answer, in pieces cut anywhere. It is read no faster than it is asked for, and ends after an error.
pub type Body = Box<dyn Iterator<Item = Result<Bytes, NetworkError>> + Send>;

/// Carries requests that say all there is to say: what an adapter supplies to a [`Session`](super::Session).
pub trait Carrier: Send + Sync + 'static {
    /// As [`Transport::send`], for a request with an absolute address and credentials in it. The connection is made with that
    /// client certificate; one that was made with another is not used.
    ///
    /// # Errors
    /// A [`NetworkError`] whose kind tells whether the request can have been sent.
    fn carry(
        &self,
        request: Request<Bytes>,
        identity: Option<Arc<Identity>>,
        cancel: &Cancel,
    ) -> Result<Response<Body>, NetworkError>;
}

/// The files and programs of the machine: what an adapter supplies to a [`Session`](super::Session). Both are asked for on threads
/// of their own.
pub trait System: Send + Sync + 'static {
    /// Reads a file whole.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read(&self, path: PathBuf) -> Result<Vec<u8>, ReadError>;

    /// Runs a program to its end, or until `cancel` is called for: then the program is ended.
    ///
    /// # Errors
    /// Why it cannot be run to its end.
    fn run(&self, command: Command, cancel: &Cancel) -> Result<Finished, RunError>;

    /// Whether standard input is a terminal, which a program can be lent.
    fn has_terminal(&self) -> bool;
}
