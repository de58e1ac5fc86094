//! Why there are no credentials. No message holds what a program has printed on its standard output.

use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

use super::plugin::Ending;
use crate::config::{ConfigError, ExecVersion, ReadError};

/// A program that should have fetched credentials, and has not.
///
/// ```
/// use cloudcoil_core::credentials::{CredentialsError, CredentialsProblem};
///
/// let problem = CredentialsProblem::NotFound { hint: "install it from example.com".into() };
/// let error = CredentialsError::new("users[dev].user.exec in /k/config", "cloudctl", problem);
/// let text = "users[dev].user.exec in /k/config: cloudctl: no such program; install it from example.com";
/// assert_eq!(error.to_string(), text);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{origin}: {command}: {problem}")]
#[non_exhaustive]
pub struct CredentialsError {
    /// The field that names the program, and its file.
    pub origin: Box<str>,
    /// The program.
    pub command: Box<str>,
    /// What is wrong.
    pub problem: CredentialsProblem,
}

impl CredentialsError {
    /// What is wrong with the program that `origin` names.
    pub fn new(origin: impl Into<Box<str>>, command: impl Into<Box<str>>, problem: CredentialsProblem) -> Self {
        Self { origin: origin.into(), command: command.into(), problem }
    }
}

/// What is wrong with a program that should have fetched credentials.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CredentialsProblem {
    /// There is none of that name.
    #[error("no such program{}", After("; ", hint))]
    NotFound {
        /// What the kubeconfig says about getting it; empty if nothing.
        hint: Box<str>,
    },
    /// The system does not allow it to be run.
    #[error("not a program that may be run")]
    NotExecutable,
    /// The system could not start it, or not listen to it.
    #[error("cannot be run: {0}")]
    NotRun(Box<str>),
    /// It insists on asking its user, and standard input is no terminal.
    #[error("interactiveMode is Always, and standard input is not a terminal")]
    NoTerminal,
    /// It failed.
    #[error("{ending}{}", After(": ", stderr))]
    Failed {
        /// How it ended.
        ending: Ending,
        /// The end of what it wrote to standard error, on one line.
        stderr: Box<str>,
    },
    /// It printed more than anyone's credentials.
    #[error("printed more than {0} bytes")]
    TooLong(usize),
    /// It printed nothing.
    #[error("printed nothing")]
    Silent,
    /// What it printed is no YAML and no JSON, or a field is of another type.
    #[error("printed no ExecCredential in JSON or YAML{}", Place(*line, field))]
    Undecodable {
        /// The field that does not fit; empty when it is not known.
        field: Box<str>,
        /// The line, counted from 1; 0 when it is not known.
        line: u64,
    },
    /// It printed an object of another kind.
    #[error("printed an object whose kind is not ExecCredential")]
    WrongKind,
    /// It does not speak the version that the kubeconfig says.
    #[error("configured to speak {}, and answered in {}", .expected.as_str(), found.as_deref().unwrap_or("another version"))]
    WrongVersion {
        /// The version of the kubeconfig.
        expected: ExecVersion,
        /// The version of the answer, if it is one of Kubernetes'.
        found: Option<Box<str>>,
    },
    /// There is no status.
    #[error("printed an ExecCredential without status")]
    NoStatus,
    /// The status has neither a token nor a certificate.
    #[error("printed neither a token nor a client certificate")]
    NoCredentials,
    /// There is a certificate, and no key to it.
    #[error("printed clientCertificateData without clientKeyData")]
    CertificateWithoutKey,
    /// There is a key, and no certificate.
    #[error("printed clientKeyData without clientCertificateData")]
    KeyWithoutCertificate,
    /// The token has characters that cannot stand in a header.
    #[error("printed a token with characters that cannot be sent")]
    InvalidToken,
    /// The time of expiry is not written as RFC 3339 has it.
    #[error("printed an expirationTimestamp that is no time of RFC 3339")]
    InvalidExpiry,
}

/// Why a client certificate or an authority has not been renewed from its files: what was read before stays in use.
///
/// ```
/// use cloudcoil_core::config::ReadError;
/// use cloudcoil_core::credentials::CredentialsWarning;
///
/// let warning = CredentialsWarning::Unreadable { path: "/pki/client.crt".into(), error: ReadError::NotFound };
/// assert_eq!(warning.to_string(), "cannot read /pki/client.crt: no such file; what it held before stays in use");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CredentialsWarning {
    /// A file cannot be read.
    #[error("cannot read {}: {error}; what it held before stays in use", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: ReadError,
    },
    /// What was read is no certificate, authority or key, or only the beginning of one; or a key is that of another certificate.
    #[error("{0}; what was there before stays in use")]
    Unusable(ConfigError),
}

struct After<'a>(&'static str, &'a str);

impl fmt::Display for After<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.1.is_empty() { Ok(()) } else { write!(f, "{}{}", self.0, self.1) }
    }
}

struct Place<'a>(u64, &'a str);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self(0, "") => Ok(()),
            Self(line, "") => write!(f, ": see line {line}"),
            Self(_, field) => write!(f, ": {field} is not of the right type"),
        }
    }
}
