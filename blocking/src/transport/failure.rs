//! What the network's failures mean.

use std::error::Error as StdError;
use std::io;

use cloudcoil_core::error::chain;
use cloudcoil_core::{NetworkError, NetworkErrorKind};

/// Why there is no connection.
pub(super) fn connect_failure(error: &(dyn StdError + 'static)) -> NetworkError {
    NetworkError::new(NetworkErrorKind::Connect, chain(error))
}

/// Why an exchange ended early.
pub(super) fn exchange_failure(error: ureq::Error) -> NetworkError {
    use ureq::Error;

    let kind = match &error {
        Error::Other(other) => match other.downcast_ref::<NetworkError>() {
            Some(known) => return known.clone(),
            None => NetworkErrorKind::Lost,
        },
        Error::Io(error) => match (cloudcoil_tls::refusal(error), error.kind()) {
            (Some(refused), _) => return refused,
            (None, io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) => NetworkErrorKind::Protocol,
            _ => NetworkErrorKind::Lost,
        },
        Error::Protocol(_) | Error::LargeResponseHeader(..) => NetworkErrorKind::Protocol,
        // The connection has ended between two bytes of what separates chunks.
        Error::BodyStalled => NetworkErrorKind::Lost,
        Error::Http(_) | Error::BadUri(_) => NetworkErrorKind::Request,
        _ => NetworkErrorKind::Lost,
    };
    NetworkError::new(kind, chain(&error))
}

/// Why the reading of a body ended early: ureq hides its own errors in those of I/O.
pub(super) fn body_failure(error: io::Error) -> NetworkError {
    match error.downcast::<ureq::Error>() {
        Ok(error) => exchange_failure(error),
        Err(error) => exchange_failure(ureq::Error::Io(error)),
    }
}
