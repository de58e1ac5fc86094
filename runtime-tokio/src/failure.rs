//! What the network's failures mean.

use std::error::Error as StdError;
use std::io;

use cloudcoil_runtime::core::error::chain;
use cloudcoil_runtime::core::{NetworkError, NetworkErrorKind};

/// Why there is no connection.
pub(crate) fn connect_failure(error: &(dyn StdError + 'static)) -> NetworkError {
    NetworkError::new(NetworkErrorKind::Connect, chain(error))
}

/// Why there is no encryption: one side has said no, which it will say again; or the connection did not last until then, as
/// while a load balancer restarts.
pub(crate) fn tls_failure(error: &(dyn StdError + 'static)) -> NetworkError {
    if error.downcast_ref::<io::Error>().is_some_and(is_refusal) {
        let advice = cloudcoil_tls::advice(error).map_or_else(String::new, |advice| format!(" ({advice})"));
        NetworkError::new(NetworkErrorKind::Tls, chain(error) + &advice)
    } else {
        NetworkError::new(NetworkErrorKind::Connect, format!("TLS handshake: {}", chain(error)))
    }
}

/// Whether an error is about TLS itself, such as a certificate.
fn is_refusal(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<tokio_rustls::rustls::Error>())
}

/// Why an exchange ended early.
pub(crate) fn exchange_failure(error: &hyper::Error) -> NetworkError {
    let malformed =
        |error: &io::Error| matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput);
    let kind = match source::<io::Error>(error) {
        _ if error.is_parse() => NetworkErrorKind::Protocol,
        _ if error.is_user() => NetworkErrorKind::Request,
        // A certificate of ours that is not accepted is heard of only when the request is sent.
        Some(error) if is_refusal(error) => NetworkErrorKind::Tls,
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
