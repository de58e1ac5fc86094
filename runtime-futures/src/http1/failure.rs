//! What the failures of streams mean.

use std::io;

use cloudcoil_core::{NetworkError, NetworkErrorKind};

/// Why there is no connection.
pub(crate) fn connect_failure(error: &io::Error) -> NetworkError {
    NetworkError::new(NetworkErrorKind::Connect, error.to_string())
}

/// Why there is no encryption: one side has said no, which it will say again; or the connection did not last until then, as
/// while a load balancer restarts.
pub(crate) fn tls_failure(error: &io::Error) -> NetworkError {
    if is_refusal(error) {
        let advice = cloudcoil_tls::advice(error).map_or_else(String::new, |advice| format!(" ({advice})"));
        NetworkError::new(NetworkErrorKind::Tls, format!("{error}{advice}"))
    } else {
        NetworkError::new(NetworkErrorKind::Connect, format!("TLS handshake: {error}"))
    }
}

/// Whether an error is about TLS itself, such as a certificate.
fn is_refusal(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<futures_rustls::rustls::Error>())
}

/// Why an exchange ended early.
pub(crate) fn exchange_failure(error: &io::Error) -> NetworkError {
    let kind = match error.kind() {
        // A certificate of ours that is not accepted is heard of only when the request is sent.
        _ if is_refusal(error) => NetworkErrorKind::Tls,
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => NetworkErrorKind::Protocol,
        _ => NetworkErrorKind::Lost,
    };
    NetworkError::new(kind, error.to_string())
}
