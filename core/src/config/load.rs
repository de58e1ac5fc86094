//! Finding the configuration, file by file.

use std::path::PathBuf;

use super::gather::Gather;
use super::resolve::{Draft, Wanted, What};
use super::{Config, ConfigError, ConfigSource, ConfigWarning, Environment, ReadError};
use crate::machine::{Deadline, Machine, Outbox, Ticket, Tickets};
use crate::time::{Now, Time};

/// Loads a [`Config`] from the first source that has one: the file asked for, the files in `KUBECONFIG`,
/// `~/.kube/config`, the pod's service account.
///
/// `KUBECONFIG`, when it is set, stands in for `~/.kube/config`, even if none of its files exists. Files that do not exist
/// are passed over; one that cannot be read or decoded is an error. A server that is asked for needs no source.
/// Ends with one [`ConfigOutput::Loaded`].
#[derive(Clone)]
pub struct ConfigLoad {
    source: ConfigSource,
    environment: Environment,
    tickets: Tickets,
    state: State,
}

#[derive(Clone)]
enum State {
    Starting,
    ReadingKubeconfig { ticket: Ticket, path: PathBuf, gather: Box<Gather> },
    ReadingNamed { ticket: Ticket, wanted: Wanted, draft: Box<Draft> },
    Ended,
}

/// What a [`ConfigLoad`] and a [`ConfigView`](super::ConfigView) hear.
#[derive(Clone)]
#[expect(clippy::exhaustive_enums, reason = "this is all that they hear")]
pub enum ConfigInput {
    /// A file was read, or could not be.
    Read {
        /// The ticket it was asked for with.
        ticket: Ticket,
        /// The content.
        result: Result<Vec<u8>, ReadError>,
    },
}

/// What a [`ConfigLoad`] and a [`ConfigView`](super::ConfigView) say.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must do all of these")]
pub enum ConfigOutput<T = Config> {
    /// Read a file whole; the answer is [`ConfigInput::Read`].
    Read {
        /// Names the answer.
        ticket: Ticket,
        /// The file.
        path: PathBuf,
    },
    /// Tell the user.
    Warn(ConfigWarning),
    /// The end.
    Loaded(Result<Box<T>, ConfigError>),
}

impl ConfigLoad {
    /// A load that has not begun.
    pub const fn new(source: ConfigSource, environment: Environment) -> Self {
        Self { source, environment, tickets: Tickets::new(0), state: State::Starting }
    }

    fn gather(&mut self, mut gather: Box<Gather>, out: &mut Outbox<ConfigOutput>) {
        let Some(path) = gather.next() else {
            return self.resolve(&gather, out);
        };
        let ticket = self.tickets.issue();
        out.push(ConfigOutput::Read { ticket, path: path.clone() });
        self.state = State::ReadingKubeconfig { ticket, path, gather };
    }

    fn resolve(&mut self, gather: &Gather, out: &mut Outbox<ConfigOutput>) {
        out.extend(gather.warning().map(ConfigOutput::Warn));
        match Draft::new(gather, &self.source, &self.environment) {
            Ok(mut draft) => {
                out.extend(draft.warnings.drain(..).map(ConfigOutput::Warn));
                self.read_named(Box::new(draft), out);
            }
            Err(error) => self.end(Err(error), out),
        }
    }

    fn read_named(&mut self, mut draft: Box<Draft>, out: &mut Outbox<ConfigOutput>) {
        let Some(wanted) = draft.wanted.pop() else {
            return self.end(Ok(Box::new(draft.finish())), out);
        };
        let ticket = self.tickets.issue();
        out.push(ConfigOutput::Read { ticket, path: wanted.path.clone() });
        self.state = State::ReadingNamed { ticket, wanted, draft };
    }

    fn end(&mut self, result: Result<Box<Config>, ConfigError>, out: &mut Outbox<ConfigOutput>) {
        self.state = State::Ended;
        out.push(ConfigOutput::Loaded(result));
    }

    fn named_read(
        &mut self,
        wanted: Wanted,
        mut draft: Box<Draft>,
        result: Result<Vec<u8>, ReadError>,
        out: &mut Outbox<ConfigOutput>,
    ) {
        let supplied = match result {
            Ok(bytes) => draft.supply(wanted, bytes),
            Err(error) if wanted.optional => {
                if wanted.what == What::Ca {
                    let path = wanted.path.clone();
                    out.push(ConfigOutput::Warn(ConfigWarning::NoCa { path, error }));
                }
                draft.go_without(wanted);
                Ok(())
            }
            Err(error) => Err(ConfigError::Unreadable { path: wanted.path, origin: wanted.origin, error }),
        };
        match supplied {
            Ok(()) => self.read_named(draft, out),
            Err(error) => self.end(Err(error), out),
        }
    }
}

impl Machine for ConfigLoad {
    type Input = ConfigInput;
    type Output = ConfigOutput;

    fn on_input(&mut self, _: Now, input: ConfigInput, out: &mut Outbox<ConfigOutput>) {
        let ConfigInput::Read { ticket: answered, result } = input;
        match std::mem::replace(&mut self.state, State::Ended) {
            State::ReadingKubeconfig { ticket, path, mut gather } if ticket == answered => {
                match gather.read(path, result) {
                    Ok(()) => self.gather(gather, out),
                    Err(error) => self.end(Err(error), out),
                }
            }
            State::ReadingNamed { ticket, wanted, draft } if ticket == answered => {
                self.named_read(wanted, draft, result, out);
            }
            state => self.state = state,
        }
    }

    fn on_timer(&mut self, _: Now, out: &mut Outbox<ConfigOutput>) {
        if matches!(self.state, State::Starting) {
            self.gather(Box::new(Gather::new(&self.source, &self.environment)), out);
        }
    }

    fn deadline(&self) -> Option<Deadline> {
        matches!(self.state, State::Starting).then_some(Deadline::new(Time::ZERO, "start"))
    }
}

#[cfg(test)]
#[path = "load_tests.rs"]
pub(super) mod tests;
