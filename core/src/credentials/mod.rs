//! Who requests come from, kept current: tokens in files, and programs that fetch tokens and client certificates.
//!
//! [`Credentials`] is the machine; [`Command`] and [`Finished`] are what it asks its driver to run, and hears back.

mod error;
mod expiry;
#[doc(hidden)]
pub mod fuzz;
mod plugin;
mod source;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;

pub use error::{CredentialsError, CredentialsProblem};
pub use plugin::{Command, Ending, Finished, RunError};

use self::plugin::Fetched;
use self::source::{Held, Source, Until};
use crate::backoff::{BackoffPolicy, Random};
use crate::config::{Config, Identity, ReadError};
use crate::machine::{Deadline, Machine, Outbox, Ticket, Tickets};
use crate::time::{Now, Time};

/// The credentials of one configuration, for any number of callers at once.
///
/// A caller asks before it sends a request, and says so when the server has answered 401. Each of its questions gets exactly
/// one answer: [`Grant`](CredentialsOutput::Grant), [`Refuse`](CredentialsOutput::Refuse) or
/// [`Stand`](CredentialsOutput::Stand), unless it [`Left`](CredentialsInput::Left) before. However many callers wait, a file
/// is read or a program run once for all of them.
///
/// - A token's file is read again each minute, and when its token was rejected. While it cannot be read, the last good token
///   stays.
/// - A program is run when it is first needed, when what it fetched has expired by the wall clock, and when that was
///   rejected. If it fails, all who wait are told; the next who asks has it run again, after a pause that grows from 0.1 to
///   5 seconds. What has expired before it came is used for a second, for clocks may disagree.
///
/// Over plain `http` there are no credentials, as with `kubectl`.
///
/// ```
/// use cloudcoil_core::config::{Auth, Config};
/// use cloudcoil_core::credentials::{Credentials, CredentialsInput, CredentialsOutput};
/// use cloudcoil_core::{Machine, Now, Outbox, Tickets};
///
/// let mut config = Config::new("https://10.0.0.1:6443")?;
/// config.auth = Auth::bearer(b"token").unwrap();
/// let mut credentials = Credentials::new(&config, false, Tickets::new(0));
/// let (caller, mut out) = (Tickets::new(1).issue(), Outbox::new());
/// let _ = credentials.step(Now::default(), Some(CredentialsInput::Asked { caller }), &mut out);
/// let Some(CredentialsOutput::Grant { grant, .. }) = out.pop() else { panic!() };
/// assert_eq!(grant.authorization.unwrap(), "Bearer token");
/// # Ok::<(), cloudcoil_core::config::ConfigError>(())
/// ```
pub struct Credentials {
    source: Source,
    /// The configuration's own client certificate, which goes before one that is fetched.
    identity: Option<Arc<Identity>>,
    /// Counts what has been granted; 0 before the first.
    generation: u64,
    held: Option<Held>,
    state: State,
    waiting: Vec<Waiting>,
    /// When a program may be run again.
    not_before: Time,
    /// Runs that failed, one after the other.
    failures: u32,
    /// Credentials that were rejected soon after they came, one after the other.
    rejections: u32,
    tickets: Tickets,
}

/// What a request is to be sent with.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grant {
    /// Grows whenever the credentials change; names them when they are rejected.
    pub generation: u64,
    /// The `Authorization` header, marked as sensitive.
    pub authorization: Option<HeaderValue>,
    /// The client certificate to connect with.
    pub identity: Option<Arc<Identity>>,
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant")
            .field("generation", &self.generation)
            .field("authorization", &self.authorization.is_some())
            .field("identity", &self.identity.is_some())
            .finish()
    }
}

/// What [`Credentials`] hear.
#[derive(Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must know what it may say")]
pub enum CredentialsInput {
    /// A caller is about to send a request.
    Asked {
        /// Names the caller; not used for another question before this one is answered.
        caller: Ticket,
    },
    /// The server has answered 401 to a request sent with credentials of this generation.
    Rejected {
        /// Names the caller.
        caller: Ticket,
        /// The generation.
        generation: u64,
    },
    /// A caller does not wait any longer.
    Left {
        /// Names the caller.
        caller: Ticket,
    },
    /// A file was read, or could not be.
    Read {
        /// The ticket it was asked for with.
        ticket: Ticket,
        /// The content.
        result: Result<Vec<u8>, ReadError>,
    },
    /// A program has ended, or could not be run.
    Ran {
        /// The ticket it was asked for with.
        ticket: Ticket,
        /// What became of it.
        result: Result<Finished, RunError>,
    },
}

/// What was read or printed is left out.
impl fmt::Debug for CredentialsInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked { caller } => f.debug_struct("Asked").field("caller", caller).finish(),
            Self::Rejected { caller, generation } => {
                f.debug_struct("Rejected").field("caller", caller).field("generation", generation).finish()
            }
            Self::Left { caller } => f.debug_struct("Left").field("caller", caller).finish(),
            Self::Read { ticket, result } => {
                let result = result.as_ref().map(drop);
                f.debug_struct("Read").field("ticket", ticket).field("result", &result).finish()
            }
            Self::Ran { ticket, result } => {
                f.debug_struct("Ran").field("ticket", ticket).field("result", result).finish()
            }
        }
    }
}

/// What [`Credentials`] ask for and say.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must do all of them")]
pub enum CredentialsOutput {
    /// Send the request with these; after a rejection: once more.
    Grant {
        /// Names the caller.
        caller: Ticket,
        /// The credentials.
        grant: Grant,
    },
    /// There are no credentials to send the request with.
    Refuse {
        /// Names the caller.
        caller: Ticket,
        /// Why.
        error: CredentialsError,
    },
    /// There is nothing better than what was rejected: the 401 is the answer.
    Stand {
        /// Names the caller.
        caller: Ticket,
    },
    /// Read a file whole; the answer is [`CredentialsInput::Read`].
    Read {
        /// Names the answer.
        ticket: Ticket,
        /// The file.
        path: PathBuf,
    },
    /// Run a program to its end; the answer is [`CredentialsInput::Ran`].
    Run {
        /// Names the answer.
        ticket: Ticket,
        /// The program.
        command: Command,
    },
    /// Stop reading, or the program: nobody waits for it any more.
    Cancel {
        /// Names what to stop.
        ticket: Ticket,
    },
}

impl Credentials {
    /// The credentials of `config`. `has_terminal` says whether standard input is a terminal, on which a program may ask its
    /// user.
    pub fn new(config: &Config, has_terminal: bool, tickets: Tickets) -> Self {
        let (source, authorization) = Source::of(config, has_terminal);
        let identity = config.tls.identity.clone().filter(|_| config.is_tls()).map(Arc::new);
        let until = source.until();
        let mut credentials = Self {
            source,
            identity,
            generation: 0,
            held: None,
            state: State::Resting,
            waiting: Vec::new(),
            not_before: Time::ZERO,
            failures: 0,
            rejections: 0,
            tickets,
        };
        if let Some(until) = until {
            credentials.hold(Time::ZERO, authorization, credentials.identity.clone(), until);
        }
        credentials
    }

    /// What is held, if it can be granted now.
    fn fresh(&mut self, now: Now) -> Option<&mut Held> {
        self.held.as_mut().and_then(|held| held.is_fresh(now).then_some(held))
    }

    fn asked(&mut self, now: Now, caller: Ticket, out: &mut Outbox<CredentialsOutput>) {
        match self.fresh(now) {
            Some(held) => out.push(CredentialsOutput::Grant { caller, grant: held.grant.clone() }),
            None => self.wait(now, Waiting { caller, rejected: None }, out),
        }
    }

    fn rejected(&mut self, now: Now, caller: Ticket, generation: u64, out: &mut Outbox<CredentialsOutput>) {
        if !self.source.is_refreshable() {
            return out.push(CredentialsOutput::Stand { caller });
        }
        match self.fresh(now) {
            Some(held) if held.grant.generation != generation => {
                return out.push(CredentialsOutput::Grant { caller, grant: held.grant.clone() });
            }
            Some(held) => {
                held.is_rejected = true;
                let since = held.since;
                self.rejections = if now.mono.since(since) < CALM { self.rejections + 1 } else { 1 };
                self.not_before = self.not_before.max(since + pause(self.rejections - 1));
            }
            None => {}
        }
        self.wait(now, Waiting { caller, rejected: Some(generation) }, out);
    }

    /// Adds a caller to those who wait, and sees to it that there is something to wait for.
    fn wait(&mut self, now: Now, waiting: Waiting, out: &mut Outbox<CredentialsOutput>) {
        self.waiting.push(waiting);
        if matches!(self.state, State::Resting) {
            if self.source.is_paced() && self.not_before > now.mono {
                self.state = State::Pausing;
            } else {
                self.fetch(out);
            }
        }
    }

    fn fetch(&mut self, out: &mut Outbox<CredentialsOutput>) {
        let ticket = self.tickets.issue();
        self.state = State::Fetching { ticket };
        match self.source.fetch(ticket) {
            Ok(effect) => out.push(effect),
            Err(error) => self.refuse(&error, out),
        }
    }

    fn left(&mut self, caller: Ticket, out: &mut Outbox<CredentialsOutput>) {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| waiting.caller != caller);
        if self.waiting.is_empty() && before > 0 {
            if let State::Fetching { ticket } = self.state {
                out.push(CredentialsOutput::Cancel { ticket });
            }
            self.state = State::Resting;
        }
    }

    fn read(&mut self, now: Now, result: Result<Vec<u8>, ReadError>, out: &mut Outbox<CredentialsOutput>) {
        let Some(held) = &mut self.held else { return };
        let token = result.ok().and_then(|content| crate::config::Auth::bearer(&content)?.authorization());
        let next = if token.is_some() { PERIOD } else { RETRY };
        held.until = Until::Due(Some(now.mono + next));
        held.is_rejected = false;
        if let Some(token) = token.filter(|token| held.grant.authorization.as_ref() != Some(token)) {
            let (identity, until) = (held.grant.identity.clone(), held.until);
            self.hold(now.mono, Some(token), identity, until);
        }
        self.answer(out);
    }

    fn ran(&mut self, now: Now, result: Result<Finished, RunError>, out: &mut Outbox<CredentialsOutput>) {
        match self.source.fetched(result) {
            Ok(Fetched { authorization, identity, expiry }) => {
                self.failures = 0;
                // The same certificate is the same identity, whose connections are kept.
                let before = self.held.take().and_then(|held| held.grant.identity);
                let fetched = if before == identity { before } else { identity };
                let identity = self.identity.clone().or(fetched);
                self.hold(now.mono, authorization, identity, Until::Expiry(expiry));
                self.answer(out);
            }
            Err(error) => {
                self.failures += 1;
                self.not_before = now.mono + pause(self.failures);
                self.refuse(&error, out);
            }
        }
    }

    fn hold(&mut self, since: Time, authorization: Option<HeaderValue>, identity: Option<Arc<Identity>>, until: Until) {
        self.generation += 1;
        let grant = Grant { generation: self.generation, authorization, identity };
        self.held = Some(Held { grant, since, until, is_rejected: false });
    }

    /// Gives all who wait what is held.
    fn answer(&mut self, out: &mut Outbox<CredentialsOutput>) {
        self.state = State::Resting;
        let Some(held) = &self.held else { return };
        for Waiting { caller, rejected } in self.waiting.drain(..) {
            out.push(match rejected {
                Some(generation) if generation == held.grant.generation => CredentialsOutput::Stand { caller },
                _ => CredentialsOutput::Grant { caller, grant: held.grant.clone() },
            });
        }
    }

    fn refuse(&mut self, error: &CredentialsError, out: &mut Outbox<CredentialsOutput>) {
        self.state = State::Resting;
        for Waiting { caller, .. } in self.waiting.drain(..) {
            out.push(CredentialsOutput::Refuse { caller, error: error.clone() });
        }
    }
}

impl Machine for Credentials {
    type Input = CredentialsInput;
    type Output = CredentialsOutput;

    fn on_input(&mut self, now: Now, input: CredentialsInput, out: &mut Outbox<CredentialsOutput>) {
        match (input, &self.state) {
            (CredentialsInput::Asked { caller }, _) => self.asked(now, caller, out),
            (CredentialsInput::Rejected { caller, generation }, _) => self.rejected(now, caller, generation, out),
            (CredentialsInput::Left { caller }, _) => self.left(caller, out),
            (CredentialsInput::Read { ticket: answered, result }, State::Fetching { ticket })
                if *ticket == answered && self.source.is_file() =>
            {
                self.read(now, result, out);
            }
            (CredentialsInput::Ran { ticket: answered, result }, State::Fetching { ticket })
                if *ticket == answered && !self.source.is_file() =>
            {
                self.ran(now, result, out);
            }
            (CredentialsInput::Read { .. } | CredentialsInput::Ran { .. }, _) => {}
        }
    }

    fn on_timer(&mut self, _: Now, out: &mut Outbox<CredentialsOutput>) {
        self.fetch(out);
    }

    fn deadline(&self) -> Option<Deadline> {
        matches!(self.state, State::Pausing).then_some(Deadline::new(self.not_before, "run again"))
    }
}

/// What is waited for.
#[derive(Clone, Copy)]
enum State {
    /// Nothing: nobody waits.
    Resting,
    /// The time at which a program that did not help may be run again.
    Pausing,
    /// A file's content, or a program's end.
    Fetching { ticket: Ticket },
}

/// A caller whose question is not answered yet.
#[derive(Clone, Copy)]
struct Waiting {
    caller: Ticket,
    /// The generation that the server did not take.
    rejected: Option<u64>,
}

/// The pause after so many fruitless runs of a program.
fn pause(fruitless: u32) -> Duration {
    match fruitless {
        0 => Duration::ZERO,
        _ => PAUSE.delay(fruitless, &mut Random::new(0)),
    }
}

const PAUSE: BackoffPolicy =
    BackoffPolicy { first: Duration::from_millis(100), cap: Duration::from_secs(5), jitter: 0 };

/// How long credentials must have been good for, so that their rejection is nothing to be careful about.
const CALM: Duration = Duration::from_secs(60);

/// How long a file's token is used before the file is read again.
const PERIOD: Duration = crate::config::TokenFile::PERIOD;

/// How long the last good token is used before a file that could not be read is tried again.
const RETRY: Duration = Duration::from_secs(10);

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
