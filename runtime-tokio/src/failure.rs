//! What the network's failures mean.

use std::error::Error as StdError;
use std::io;

use cloudcoil_runtime::core::error::{chain, root};
use cloudcoil_runtime::core::http1::Flaw;
use cloudcoil_runtime::core::{NetworkError, NetworkErrorKind};

/// Why there is no connection.
pub(crate) fn connect_failure(error: &(dyn StdError + 'static)) -> NetworkError {
    NetworkError::new(NetworkErrorKind::Connect, root(error).to_string())
}

/// Why an exchange ended early.
pub(crate) fn exchange_failure(error: &hyper::Error) -> NetworkError {
    match source::<io::Error>(error) {
        _ if error.is_user() => NetworkError::new(NetworkErrorKind::Request, chain(error)),
        _ if error.is_parse_too_large() => Flaw::LongHead.into(),
        _ if error.is_parse() => Flaw::Head.into(),
        _ if error.is_incomplete_message() || error.is_canceled() => Flaw::CutShort.into(),
        Some(error) => broken(error),
        None => NetworkError::new(NetworkErrorKind::Lost, chain(error)),
    }
}

fn broken(error: &io::Error) -> NetworkError {
    match (cloudcoil_tls::refusal(error), error.kind()) {
        (Some(refused), _) => refused,
        (None, io::ErrorKind::UnexpectedEof) => Flaw::CutShort.into(),
        // What TLS has to say of bytes is said already: the others are sizes of chunks.
        (None, io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) => Flaw::Chunks.into(),
        _ => NetworkError::new(NetworkErrorKind::Lost, error.to_string()),
    }
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
