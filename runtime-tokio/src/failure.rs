//! What the network's failures mean.

use std::error::Error as StdError;
use std::io;

use cloudcoil_runtime::core::error::chain;
use cloudcoil_runtime::core::http1::Flaw;
use cloudcoil_runtime::core::{NetworkError, NetworkErrorKind};

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
    match error.kind() {
        // But for what TLS has to say of bytes, these are sizes of chunks.
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput if cloudcoil_tls::refusal(error).is_none() => {
            Flaw::Chunks.into()
        }
        _ => cloudcoil_tls::exchange_failure(error),
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
