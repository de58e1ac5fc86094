//! What went wrong, and what to do about it, in one line.

use std::fmt::{self, Display};
use std::io;

use cloudcoil_core::Error;
use cloudcoil_core::NetworkErrorKind;
use cloudcoil_core::error::BodyProblem;

/// Why a command ends before its end.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The command line asks for what cannot be.
    Misuse(String),
    /// The API server, the network, a file.
    Failed(String),
    /// Nobody reads what is printed any more.
    Unread,
}

impl Fault {
    pub(crate) fn misuse(message: impl Into<String>) -> Self {
        Self::Misuse(message.into())
    }

    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    /// The same, with what it is about before it.
    pub(crate) fn about(self, what: impl Display) -> Self {
        match self {
            Self::Misuse(message) | Self::Failed(message) => Self::Failed(format!("{what}: {message}")),
            other => other,
        }
    }

    /// The exit code: 1 for what the server or network does, 2 for misuse.
    pub(crate) const fn code(&self) -> u8 {
        match self {
            Self::Misuse(_) => 2,
            Self::Failed(_) => 1,
            Self::Unread => 0,
        }
    }
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misuse(message) | Self::Failed(message) => f.write_str(&one_line(message)),
            Self::Unread => Ok(()),
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        match error {
            Error::Misuse(message) => Self::Misuse(message.into()),
            error => Self::Failed(explain(&error)),
        }
    }
}

/// A failure of writing to standard output.
impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Unread,
            _ => Self::Failed(format!("cannot write the output: {error}")),
        }
    }
}

/// An error, and what to do about it.
pub(crate) fn explain(error: &Error) -> String {
    match advice(error) {
        Some(advice) => format!("{}; {advice}", one_line(&error.to_string())),
        None => one_line(&error.to_string()),
    }
}

/// Whether the API server itself answered with this code: a path that is not served is 404 too, but not by its account.
pub(crate) fn failed_with(error: &Error, code: u16) -> bool {
    error.status().is_some_and(|status| status.code == code)
}

fn is_owned_by_another(error: &Error) -> bool {
    error
        .status()
        .is_some_and(|status| status.details.causes.iter().any(|cause| cause.reason == "FieldManagerConflict"))
}

fn advice(error: &Error) -> Option<&'static str> {
    match error {
        Error::Network(network) => match network.kind {
            NetworkErrorKind::Connect => {
                Some("is the API server running, and its address right? 'coil config view' shows it")
            }
            NetworkErrorKind::Tls => Some("check the authority and the server's name in the kubeconfig"),
            NetworkErrorKind::Lost | NetworkErrorKind::Unprocessed => Some("try again"),
            _ => None,
        },
        Error::TimedOut(_) => Some("try again, or give it more time with --timeout"),
        Error::NotServed(_) => Some("'coil api-resources' lists those that it has"),
        Error::Body(body) if body.problem == BodyProblem::Html => {
            Some("is that the address of an API server? 'coil config view' shows it")
        }
        _ if error.is_expired() => Some("run the command again"),
        _ if is_owned_by_another(error) => {
            Some("leave those fields to their owner, or take them over with --force-conflicts")
        }
        _ if error.is_conflict() => Some("it has changed meanwhile: read it again, and try again"),
        _ => match error.code() {
            Some(401) => Some("check the credentials of this context: 'coil config view' shows which they are"),
            Some(403) => Some("ask for the permission, or use another context: 'coil whoami' shows who you are"),
            Some(429) => Some("try again later"),
            _ => None,
        },
    }
}

/// The text without line breaks and without what a terminal would act on.
pub(crate) fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join("; ").chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloudcoil_core::Status;

    #[test]
    fn an_error_takes_one_line() {
        let fault = Fault::failed("a\n  b\n\n\u{1b}[31mc");
        assert_eq!(fault.to_string(), "a; b;  [31mc");
        assert_eq!(fault.code(), 1);
    }

    #[test]
    fn who_may_not_is_told_what_to_do() {
        let error = Error::from(Status::failure(403, "Forbidden", "pods is forbidden"));
        assert!(Fault::from(error).to_string().ends_with("'coil whoami' shows who you are"));
    }
}
