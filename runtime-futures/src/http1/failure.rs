//! What the failures of streams mean.

use std::io;

use cloudcoil_core::{NetworkError, NetworkErrorKind};

/// Why there is no connection.
pub(crate) fn connect_failure(error: &io::Error) -> NetworkError {
    NetworkError::new(NetworkErrorKind::Connect, error.to_string())
}

/// Why an exchange ended early.
pub(crate) fn exchange_failure(error: &io::Error) -> NetworkError {
    let kind = match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => NetworkErrorKind::Protocol,
        _ => NetworkErrorKind::Lost,
    };
    cloudcoil_tls::refusal(error).unwrap_or_else(|| NetworkError::new(kind, error.to_string()))
}
