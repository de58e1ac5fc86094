//! What an adapter supplies.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use cloudcoil_core::NetworkError;
use cloudcoil_core::config::{ConfigError, ReadError, Tls};
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
    /// As [`Transport::send`], for a request with an absolute address and credentials in it. The connection is made as `tls` says, with
    /// that client certificate and those authorities; one that was made otherwise is not used, and closes when what it carries has
    /// ended.
    ///
    /// # Errors
    /// A [`NetworkError`] whose kind tells whether the request can have been sent.
    fn carry(&self, request: Request<Bytes>, tls: Arc<Tls>, cancel: &Cancel) -> Result<Response<Body>, NetworkError>;

    /// Whether connections can be made as `tls` says: asked before the first that is, when files of certificates have changed.
    ///
    /// # Errors
    /// [`ConfigError::InvalidPem`], naming the certificate or key at fault.
    fn check(&self, tls: &Tls) -> Result<(), ConfigError>;
}

/// The files and programs of the machine: what an adapter supplies to a [`Session`](super::Session). Both are asked for on threads
/// of their own.
pub trait System: Send + Sync + 'static {
    /// Reads a file whole, which has been read before. What is no regular file, such as a pipe that was read to its end, is an error
    /// and not waited for: [`reread_file`](crate::reread_file).
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
