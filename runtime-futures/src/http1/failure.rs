//! What the failures of streams mean.

use std::io;

use cloudcoil_core::error::root;
use cloudcoil_core::http1::Flaw;
use cloudcoil_core::{NetworkError, NetworkErrorKind};

/// Why there is no connection.
pub(crate) fn connect_failure(error: &io::Error) -> NetworkError {
    NetworkError::new(NetworkErrorKind::Connect, root(error).to_string())
}

/// Why an exchange ended early.
pub(crate) fn exchange_failure(error: &io::Error) -> NetworkError {
    let lost = || NetworkError::new(NetworkErrorKind::Lost, root(error).to_string());
    let by_kind = || if error.kind() == io::ErrorKind::UnexpectedEof { Flaw::CutShort.into() } else { lost() };
    cloudcoil_tls::refusal(error).unwrap_or_else(by_kind)
}
