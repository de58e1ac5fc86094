//! What the network's failures mean.

use std::error::Error as StdError;
use std::io;

use cloudcoil_runtime::core::error::chain;
use cloudcoil_runtime::core::http1::Flaw;
use cloudcoil_runtime::core::{NetworkError, NetworkErrorKind};
use h2::Reason;

/// Why a request has no answer. `is_unsent` says that it did not leave this process.
pub(crate) fn request_failure(error: &hyper::Error, is_unsent: bool) -> NetworkError {
    let refusal = source::<io::Error>(error).and_then(cloudcoil_tls::refusal);
    let passed_over = match source::<h2::Error>(error) {
        _ if is_unsent => Some("the connection closed before it was sent".to_owned()),
        Some(error) => passed_over(error),
        None => None,
    };
    let unprocessed = passed_over.map(|why| NetworkError::new(NetworkErrorKind::Unprocessed, why));
    refusal.or(unprocessed).unwrap_or_else(|| exchange_failure(error))
}

/// Why an exchange ended early.
pub(crate) fn exchange_failure(error: &hyper::Error) -> NetworkError {
    if let Some(error) = source::<h2::Error>(error).filter(|error| error.is_library()) {
        return NetworkError::new(NetworkErrorKind::Protocol, error.to_string());
    }
    match source::<io::Error>(error) {
        _ if error.is_user() && !is_gone(error) => NetworkError::new(NetworkErrorKind::Request, chain(error)),
        _ if error.is_parse_too_large() => Flaw::LongHead.into(),
        _ if error.is_parse() => Flaw::Head.into(),
        _ if error.is_incomplete_message() || error.is_canceled() => Flaw::CutShort.into(),
        Some(error) => broken(error),
        None => NetworkError::new(NetworkErrorKind::Lost, chain(error)),
    }
}

/// Why the server has not looked at a request, if it has not (RFC 9113, sections 6.8 and 8.7). On a stream of this side, GOAWAY is
/// an error only if it leaves that stream out; one that takes it in lets it go on, whatever the reason.
///
/// What this side finds wrong with the server ends streams in the same way, so it counts who said it.
fn passed_over(error: &h2::Error) -> Option<String> {
    match error.reason().filter(|_| error.is_remote())? {
        Reason::NO_ERROR if error.is_go_away() => Some("the server is closing its connection".to_owned()),
        _ if error.is_go_away() => Some(format!("the server is closing its connection: {error}")),
        Reason::REFUSED_STREAM => Some("the server refuses it before it has looked at it".to_owned()),
        _ => None,
    }
}

/// Whether the runtime that the connection is on has ended under the exchange: hyper takes that for the user's doing.
fn is_gone(error: &hyper::Error) -> bool {
    error.to_string() == "dispatch task is gone"
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
