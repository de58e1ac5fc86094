//! Where credentials come from, and how long they are good.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;

use super::error::{CredentialsError, CredentialsProblem};
use super::plugin::{self, Fetched};
use super::{CredentialsOutput, Finished, RunError};
use crate::config::{Auth, Config, ExecConfig, Identity, Pem};
use crate::machine::Ticket;
use crate::time::{Now, Time, UnixTime};

/// Where credentials come from.
pub(super) enum Source {
    /// The configuration, which has them already, or has none.
    Fixed,
    /// A file.
    File { path: PathBuf },
    /// A program.
    Program { config: Box<ExecConfig>, has_terminal: bool },
}

/// What is granted for now.
pub(super) struct Held {
    pub(super) authorization: Option<HeaderValue>,
    /// The client certificate that a program has fetched; one that the configuration has goes before it.
    pub(super) identity: Option<Arc<Identity>>,
    pub(super) since: Time,
    pub(super) until: Until,
    pub(super) is_rejected: bool,
}

/// How long credentials are good.
#[derive(Clone, Copy)]
pub(super) enum Until {
    /// As long as the server takes them.
    Rejected,
    /// Until this time, at which their file is due to be read; without one, a period from the first use on.
    Due(Option<Time>),
    /// Until they expire, if ever.
    Expiry(Option<UnixTime>),
}

impl Source {
    /// The source of a configuration, and the header that it has already.
    pub(super) fn of(config: &Config, has_terminal: bool) -> (Self, Option<HeaderValue>) {
        match &config.auth {
            _ if !config.is_tls() => (Self::Fixed, None),
            Auth::TokenFile(file) => (Self::File { path: file.path().to_owned() }, config.auth.authorization()),
            Auth::Exec(exec) => (Self::Program { config: exec.clone(), has_terminal }, None),
            Auth::Anonymous | Auth::Header(_) => (Self::Fixed, config.auth.authorization()),
        }
    }

    /// How long that header is good; `None` if there is something to be fetched first.
    pub(super) const fn until(&self) -> Option<Until> {
        match self {
            Self::Fixed => Some(Until::Rejected),
            Self::File { .. } => Some(Until::Due(None)),
            Self::Program { .. } => None,
        }
    }

    pub(super) const fn is_refreshable(&self) -> bool {
        !matches!(self, Self::Fixed)
    }

    pub(super) const fn is_file(&self) -> bool {
        matches!(self, Self::File { .. })
    }

    /// Whether fetching costs enough to wait between two tries.
    pub(super) const fn is_paced(&self) -> bool {
        matches!(self, Self::Program { .. })
    }

    /// The effect that fetches credentials.
    pub(super) fn fetch(&self, ticket: Ticket) -> Result<CredentialsOutput, CredentialsError> {
        match self {
            Self::File { path } => Ok(CredentialsOutput::Read { ticket, path: path.clone() }),
            Self::Program { config, has_terminal } => match plugin::command(config, *has_terminal) {
                Some(command) => Ok(CredentialsOutput::Run { ticket, command }),
                None => Err(plugin::failure(config, CredentialsProblem::NoTerminal)),
            },
            Self::Fixed => unreachable!("what a configuration holds is always fresh, and stands when it is rejected"),
        }
    }

    /// Another authority vouches for the server: a program that is told about the cluster is told so too.
    pub(super) fn trust(&mut self, ca: Option<&Pem>) {
        if let Self::Program { config, .. } = self
            && let Some(cluster) = &mut config.cluster
        {
            cluster.certificate_authority = ca.cloned();
        }
    }

    /// What came of running the program.
    pub(super) fn fetched(&self, result: Result<Finished, RunError>) -> Result<Fetched, CredentialsError> {
        match self {
            Self::Program { config, .. } => plugin::fetched(config, result),
            Self::Fixed | Self::File { .. } => unreachable!("no program was asked for"),
        }
    }
}

impl Held {
    pub(super) const fn new(
        since: Time,
        authorization: Option<HeaderValue>,
        identity: Option<Arc<Identity>>,
        until: Until,
    ) -> Self {
        Self { authorization, identity, since, until, is_rejected: false }
    }

    /// Whether it can be granted now. The first use starts the period of a file.
    pub(super) fn is_fresh(&mut self, now: Now) -> bool {
        let is_current = match &mut self.until {
            Until::Rejected | Until::Expiry(None) => true,
            Until::Due(due) => now.mono < *due.get_or_insert(now.mono + super::PERIOD),
            Until::Expiry(Some(expiry)) => now.wall < *expiry || now.mono.since(self.since) < LEAST_USE,
        };
        is_current && !self.is_rejected
    }
}

/// How long credentials are used that have expired before they came: clocks may disagree, and a program that knows no better
/// is not to be run for every single request.
const LEAST_USE: Duration = Duration::from_secs(1);
