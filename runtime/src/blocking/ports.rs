//! What an adapter supplies.

use bytes::Bytes;
use cloudcoil_core::NetworkError;
use http::{Request, Response};

use super::Cancel;

/// Carries requests to one API server.
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
