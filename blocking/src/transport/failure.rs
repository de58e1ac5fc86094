//! What the network's failures mean.

use std::io;

use cloudcoil_core::error::chain;
use cloudcoil_core::http1::Flaw;
use cloudcoil_core::{NetworkError, NetworkErrorKind};

/// Why an exchange ended early.
pub(super) fn exchange_failure(error: ureq::Error) -> NetworkError {
    use ureq::Error;

    match &error {
        Error::Other(other) => match other.downcast_ref::<NetworkError>() {
            Some(known) => known.clone(),
            None => NetworkError::new(NetworkErrorKind::Lost, chain(&error)),
        },
        Error::Io(error) => cloudcoil_tls::exchange_failure(error),
        Error::LargeResponseHeader(..) => Flaw::LongHead.into(),
        // Its type has no name here; what it says is all there is to tell a body from a head by.
        Error::Protocol(problem) if problem.to_string().contains("chunk") => Flaw::Chunks.into(),
        Error::Protocol(problem) if problem.to_string().contains("too many headers") => Flaw::LongHead.into(),
        Error::Protocol(_) => Flaw::Head.into(),
        // The connection has ended between two bytes of what separates chunks.
        Error::BodyStalled => Flaw::CutShort.into(),
        Error::Http(_) | Error::BadUri(_) => NetworkError::new(NetworkErrorKind::Request, chain(&error)),
        _ => NetworkError::new(NetworkErrorKind::Lost, chain(&error)),
    }
}

/// Why the reading of a body ended early: ureq hides its own errors in those of I/O.
pub(super) fn body_failure(error: io::Error) -> NetworkError {
    match error.downcast::<ureq::Error>() {
        Ok(error) => exchange_failure(error),
        Err(error) => exchange_failure(ureq::Error::Io(error)),
    }
}
