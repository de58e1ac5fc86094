//! The credentials that all requests of a session share, and who has asked for them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cloudcoil_core::config::{Config, ConfigError, ReadError, Tls};
use cloudcoil_core::credentials::{
    Command, Credentials, CredentialsError, CredentialsInput as Input, CredentialsOutput as Output, Grant, RunError,
};
use cloudcoil_core::{Deadline, Machine as _, Now, Outbox, Ticket, Tickets};

/// `None` where there is nothing better than what was of no use.
pub(crate) type Reply = Result<Option<Grant>, CredentialsError>;

/// Credentials, the replies that nobody has taken yet, and the errand that is under way: an `F`.
pub(crate) struct Keeping<F> {
    credentials: Credentials,
    pub(crate) deadline: Option<Deadline>,
    /// Dropping it ends the errand.
    pub(crate) flight: Option<(Ticket, F)>,
    replies: BTreeMap<Ticket, Reply>,
    callers: Tickets,
}

/// What is to be done for credentials.
pub(crate) enum Errand {
    Read(PathBuf),
    Run(Command),
}

impl<F> Keeping<F> {
    pub(crate) fn new(config: &Config, has_terminal: bool) -> Self {
        Self {
            credentials: Credentials::new(config, has_terminal, Tickets::new(0)),
            deadline: None,
            flight: None,
            replies: BTreeMap::new(),
            callers: Tickets::new(1),
        }
    }

    pub(crate) fn caller(&mut self) -> Ticket {
        self.callers.issue()
    }

    /// The reply to a caller, once.
    pub(crate) fn reply(&mut self, caller: Ticket) -> Option<Reply> {
        self.replies.remove(&caller)
    }

    /// Steps, and looks whether connections can be made if that is asked, or sets out on an errand; `fly` says why that cannot be.
    pub(crate) fn step(
        &mut self,
        now: Now,
        input: Option<Input>,
        check: impl Fn(&Tls) -> Result<(), ConfigError>,
        fly: impl Fn(Ticket, Errand) -> Result<F, Box<str>>,
    ) {
        let (mut out, mut next) = (Outbox::new(), None);
        if let Some(Input::Ran { result, .. }) = &input {
            tracing::debug!(?result, "the credential program has ended");
        }
        self.deadline = self.credentials.step(now, input, &mut out);
        for output in out {
            match output {
                Output::Grant { caller, grant } => drop(self.replies.insert(caller, Ok(Some(grant)))),
                Output::Stand { caller } => drop(self.replies.insert(caller, Ok(None))),
                Output::Refuse { caller, error } => {
                    tracing::debug!(%error, "no credentials");
                    self.replies.insert(caller, Err(error));
                }
                Output::Read { ticket, path } => match fly(ticket, Errand::Read(path)) {
                    Ok(flight) => self.flight = Some((ticket, flight)),
                    Err(why) => next = Some(Input::Read { ticket, result: Err(ReadError::Failed(why)) }),
                },
                Output::Run { ticket, command } => {
                    tracing::debug!(program = %command.program.display(), "fetching credentials");
                    match fly(ticket, Errand::Run(command)) {
                        Ok(flight) => self.flight = Some((ticket, flight)),
                        Err(why) => next = Some(Input::Ran { ticket, result: Err(RunError::Failed(why)) }),
                    }
                }
                Output::Check { ticket, tls } => next = Some(Input::Checked { ticket, result: check(&tls) }),
                Output::Warn(warning) => tracing::warn!("{warning}"),
                Output::Cancel { ticket } => drop(self.flight.take_if(|(flying, _)| *flying == ticket)),
            }
        }
        if next.is_some() {
            self.step(now, next, check, fly);
        }
    }
}
