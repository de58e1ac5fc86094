//! What the network's failures mean.

use std::error::Error as StdError;
use std::io;

use cloudcoil_runtime::core::error::chain;
use cloudcoil_runtime::core::{NetworkError, NetworkErrorKind};

/// Why there is no connection.
pub(crate) fn connect_failure(error: &(dyn StdError + 'static)) -> NetworkError {
    NetworkError::new(NetworkErrorKind::Connect, chain(error))
}

/// Why an exchange ended early.
pub(crate) fn exchange_failure(error: &hyper::Error) -> NetworkError {
    let malformed =
        |error: &io::Error| matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput);
    if let Some(refused) = source::<io::Error>(error).and_then(cloudcoil_tls::refusal) {
        return refused;
    }
    let kind = match source::<io::Error>(error) {
        _ if error.is_parse() => NetworkErrorKind::Protocol,
        _ if error.is_user() => NetworkErrorKind::Request,
        Some(error) if malformed(error) => NetworkErrorKind::Protocol,
        _ => NetworkErrorKind::Lost,
    };
    NetworkError::new(kind, chain(error))
}

/// The first error of a type behind an error.
fn source<E: StdError + 'static>(error: &dyn StdError) -> Option<&E> {
    let mut next = error.source();
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}
