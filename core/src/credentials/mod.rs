//! Who requests come from, kept current: tokens and certificates in files, and programs that fetch them.
//!
//! [`Credentials`] is the machine; [`Command`] and [`Finished`] are what it asks its driver to run, and hears back.

mod error;
mod expiry;
mod files;
#[doc(hidden)]
pub mod fuzz;
mod plugin;
mod source;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;

pub use error::{CredentialsError, CredentialsProblem, CredentialsWarning};
pub use plugin::{Command, Ending, Finished, RunError};

use self::files::{Files, Part, Round};
use self::plugin::Fetched;
use self::source::{Held, Source, Until};
use crate::backoff::{BackoffPolicy, Random};
use crate::config::{Config, ConfigError, Identity, ReadError, Tls};
use crate::machine::{Deadline, Machine, Outbox, Ticket, Tickets};
use crate::time::{Now, Time};

/// The credentials of one configuration, for any number of callers at once.
///
/// A caller asks before it sends a request, and says so when the server has answered 401, or one side has refused the other in
/// the TLS handshake. Each of its questions gets exactly one answer: [`Grant`](CredentialsOutput::Grant), [`Refuse`](CredentialsOutput::Refuse) or
/// [`Stand`](CredentialsOutput::Stand), unless it [`Left`](CredentialsInput::Left) before. However many callers wait, a file
/// is read or a program run once for all of them.
///
/// - A token's file is read again each minute, and when its token was rejected. While it cannot be read, the last good token
///   stays.
/// - The files of a client certificate, its key and the authority ([`TlsFiles`](crate::config::TlsFiles)) are read again each minute,
///   and when a server did not take the certificate, was not trusted, or was lost before it answered. A certificate and its key are taken up together, if they
///   can be used together; an authority for itself. Until then what was good stays, and that is
///   [told](CredentialsOutput::Warn) once; after 10 seconds the files are looked at again.
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
    files: Files,
    /// How connections are made: as the configuration and its files say, with the certificate that a program has fetched if they
    /// have none.
    tls: Arc<Tls>,
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
    /// How the connection is made that it is sent on: with which client certificate, and trusting which authorities. The same as
    /// long as nothing has changed.
    pub tls: Arc<Tls>,
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant")
            .field("generation", &self.generation)
            .field("authorization", &self.authorization.is_some())
            .field("tls", &self.tls)
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
    /// One side has refused the other in the TLS handshake, or may have, on a connection made as a grant of this generation says.
    Failed {
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
    /// It was looked at how connections would be made.
    Checked {
        /// The ticket it was asked for with.
        ticket: Ticket,
        /// What is wrong with it, if anything.
        result: Result<(), ConfigError>,
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
            Self::Failed { caller, generation } => {
                f.debug_struct("Failed").field("caller", caller).field("generation", generation).finish()
            }
            Self::Left { caller } => f.debug_struct("Left").field("caller", caller).finish(),
            Self::Checked { ticket, result } => {
                f.debug_struct("Checked").field("ticket", ticket).field("result", result).finish()
            }
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
    /// There is nothing better than what was rejected or has failed: the 401, or the failure, is the answer.
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
    /// See whether connections can be made so: whether the certificates and keys are some, and fit together. The answer is
    /// [`CredentialsInput::Checked`].
    Check {
        /// Names the answer.
        ticket: Ticket,
        /// How they would be made.
        tls: Arc<Tls>,
    },
    /// Tell the user.
    Warn(CredentialsWarning),
    /// Run a program to its end; the answer is [`CredentialsInput::Ran`].
    Run {
        /// Names the answer.
        ticket: Ticket,
        /// The program.
        command: Command,
    },
    /// Stop reading, checking, or the program: nobody waits for it any more.
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
        let files = Files::of(config);
        let held = source.until().map(|until| Held::new(Time::ZERO, authorization, None, until));
        Self {
            source,
            tls: files.tls().clone(),
            files,
            generation: u64::from(held.is_some()),
            held,
            state: State::Resting,
            waiting: Vec::new(),
            not_before: Time::ZERO,
            failures: 0,
            rejections: 0,
            tickets,
        }
    }

    /// What can be granted now.
    fn fresh(&mut self, now: Now) -> Option<Grant> {
        let are_files_due = self.files.is_due(now);
        let held = self.held.as_mut().filter(|_| !are_files_due)?;
        held.is_fresh(now).then(|| grant(held, self.generation, &self.tls))
    }

    fn asked(&mut self, now: Now, caller: Ticket, out: &mut Outbox<CredentialsOutput>) {
        match self.fresh(now) {
            Some(grant) => out.push(CredentialsOutput::Grant { caller, grant }),
            None => self.wait(now, Waiting { caller, failed: None }, out),
        }
    }

    fn rejected(&mut self, now: Now, caller: Ticket, generation: u64, out: &mut Outbox<CredentialsOutput>) {
        let is_refreshable = self.source.is_refreshable() || self.files.has_identity();
        if !self.is_to_wait(now, caller, generation, is_refreshable, out) {
            return;
        }
        if generation == self.generation {
            if self.files.has_identity() {
                self.files.suspect();
            }
            if let Some(held) = &mut self.held
                && self.source.is_refreshable()
                && held.is_fresh(now)
            {
                held.is_rejected = true;
                let since = held.since;
                self.rejections = if now.mono.since(since) < CALM { self.rejections + 1 } else { 1 };
                self.not_before = self.not_before.max(since + pause(self.rejections - 1));
            }
        }
        self.wait(now, Waiting { caller, failed: Some(generation) }, out);
    }

    fn failed(&mut self, now: Now, caller: Ticket, generation: u64, out: &mut Outbox<CredentialsOutput>) {
        if self.is_to_wait(now, caller, generation, !self.files.is_empty(), out) {
            if generation == self.generation {
                self.files.suspect();
            }
            self.wait(now, Waiting { caller, failed: Some(generation) }, out);
        }
    }

    /// Whether a caller who has failed has to wait for something better. There may be something already, or never.
    fn is_to_wait(
        &mut self,
        now: Now,
        caller: Ticket,
        generation: u64,
        is_refreshable: bool,
        out: &mut Outbox<CredentialsOutput>,
    ) -> bool {
        match self.fresh(now) {
            Some(grant) if grant.generation != generation => out.push(CredentialsOutput::Grant { caller, grant }),
            _ if !is_refreshable => out.push(CredentialsOutput::Stand { caller }),
            _ => return true,
        }
        false
    }

    /// Adds a caller to those who wait, and sees to it that there is something to wait for.
    fn wait(&mut self, now: Now, waiting: Waiting, out: &mut Outbox<CredentialsOutput>) {
        self.waiting.push(waiting);
        if matches!(self.state, State::Resting) {
            self.proceed(now, out);
        }
    }

    /// Does the next of what those who wait are waiting for, or answers them.
    fn proceed(&mut self, now: Now, out: &mut Outbox<CredentialsOutput>) {
        if self.files.is_due(now) {
            return self.read_on(now, self.files.round(), out);
        }
        if self.held.as_mut().is_some_and(|held| held.is_fresh(now)) {
            self.answer(out);
        } else if self.source.is_paced() && self.not_before > now.mono {
            self.state = State::Pausing;
        } else {
            self.fetch(out);
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
            let ticket = self.state.ticket();
            out.extend(ticket.map(|ticket| CredentialsOutput::Cancel { ticket }));
            self.state = State::Resting;
        }
    }

    /// The next file of a round, or, when all were read, the next part of what they hold that has changed.
    fn read_on(&mut self, now: Now, mut round: Round, out: &mut Outbox<CredentialsOutput>) {
        if let Some(path) = round.next_path() {
            let ticket = self.tickets.issue();
            out.push(CredentialsOutput::Read { ticket, path: path.to_owned() });
            self.state = State::Reading { ticket, round };
            return;
        }
        while let Some(part) = round.next_part() {
            match self.files.candidate(part, &round) {
                Ok(None) => self.files.approve(part),
                Ok(Some(tls)) => {
                    let ticket = self.tickets.issue();
                    out.push(CredentialsOutput::Check { ticket, tls: tls.clone() });
                    self.state = State::Checking { ticket, part, tls, round };
                    return;
                }
                Err(warning) => self.keep(part, warning, &mut round, out),
            }
        }
        self.files.finish(now, &round);
        self.proceed(now, out);
    }

    fn checked(
        &mut self,
        now: Now,
        (part, tls, mut round): (Part, Arc<Tls>, Round),
        result: Result<(), ConfigError>,
        out: &mut Outbox<CredentialsOutput>,
    ) {
        match result {
            Ok(()) => {
                self.files.approve(part);
                self.source.trust(tls.ca.as_ref());
                self.files.adopt(tls);
                self.generation += u64::from(self.connect_otherwise());
            }
            Err(error) => self.keep(part, CredentialsWarning::Unusable(error), &mut round, out),
        }
        self.read_on(now, round, out);
    }

    /// Leaves a part as it is, and says so.
    fn keep(
        &mut self,
        part: Part,
        warning: CredentialsWarning,
        round: &mut Round,
        out: &mut Outbox<CredentialsOutput>,
    ) {
        round.fail();
        out.extend(self.files.keep(part, warning).map(CredentialsOutput::Warn));
    }

    /// Puts together how connections are made, and says whether that is another way: else they are kept.
    fn connect_otherwise(&mut self) -> bool {
        let mut tls = self.files.tls().clone();
        if let Some(fetched) = self.held.as_ref().and_then(|held| held.identity.as_ref())
            && tls.identity.is_none()
        {
            Arc::make_mut(&mut tls).identity = Some(Identity::clone(fetched));
        }
        let is_other = self.tls != tls;
        if is_other {
            self.tls = tls;
        }
        is_other
    }

    fn token_read(&mut self, now: Now, result: Result<Vec<u8>, ReadError>, out: &mut Outbox<CredentialsOutput>) {
        let Some(held) = &mut self.held else { return };
        let token = result.ok().and_then(|content| crate::config::Auth::bearer(&content)?.authorization());
        let next = if token.is_some() { PERIOD } else { RETRY };
        held.until = Until::Due(Some(now.mono + next));
        held.is_rejected = false;
        if token.is_some() && held.authorization != token {
            held.authorization = token;
            held.since = now.mono;
            self.generation += 1;
        }
        self.proceed(now, out);
    }

    fn ran(&mut self, now: Now, result: Result<Finished, RunError>, out: &mut Outbox<CredentialsOutput>) {
        match self.source.fetched(result) {
            Ok(Fetched { authorization, identity, expiry }) => {
                self.failures = 0;
                self.held = Some(Held::new(now.mono, authorization, identity, Until::Expiry(expiry)));
                self.generation += 1;
                self.connect_otherwise();
                self.proceed(now, out);
            }
            Err(error) => {
                self.failures += 1;
                self.not_before = now.mono + pause(self.failures);
                self.refuse(&error, out);
            }
        }
    }

    /// Gives all who wait what is held.
    fn answer(&mut self, out: &mut Outbox<CredentialsOutput>) {
        self.state = State::Resting;
        let Some(held) = &self.held else { return };
        for Waiting { caller, failed } in self.waiting.drain(..) {
            out.push(match failed {
                Some(generation) if generation == self.generation => CredentialsOutput::Stand { caller },
                _ => CredentialsOutput::Grant { caller, grant: grant(held, self.generation, &self.tls) },
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
        match input {
            CredentialsInput::Asked { caller } => self.asked(now, caller, out),
            CredentialsInput::Rejected { caller, generation } => self.rejected(now, caller, generation, out),
            CredentialsInput::Failed { caller, generation } => self.failed(now, caller, generation, out),
            CredentialsInput::Left { caller } => self.left(caller, out),
            CredentialsInput::Read { ticket, result } if self.state.ticket() == Some(ticket) => {
                match std::mem::replace(&mut self.state, State::Resting) {
                    State::Reading { mut round, .. } => {
                        round.read(result);
                        self.read_on(now, round, out);
                    }
                    State::Fetching { .. } if self.source.is_file() => self.token_read(now, result, out),
                    state => self.state = state,
                }
            }
            CredentialsInput::Checked { ticket, result } if self.state.ticket() == Some(ticket) => {
                match std::mem::replace(&mut self.state, State::Resting) {
                    State::Checking { part, tls, round, .. } => self.checked(now, (part, tls, round), result, out),
                    state => self.state = state,
                }
            }
            CredentialsInput::Ran { ticket, result } if self.state.ticket() == Some(ticket) => {
                if matches!(self.state, State::Fetching { .. }) && !self.source.is_file() {
                    self.ran(now, result, out);
                }
            }
            CredentialsInput::Read { .. } | CredentialsInput::Checked { .. } | CredentialsInput::Ran { .. } => {}
        }
    }

    fn on_timer(&mut self, now: Now, out: &mut Outbox<CredentialsOutput>) {
        self.proceed(now, out);
    }

    fn deadline(&self) -> Option<Deadline> {
        matches!(self.state, State::Pausing).then_some(Deadline::new(self.not_before, "run again"))
    }
}

/// What is waited for.
enum State {
    /// Nothing: nobody waits.
    Resting,
    /// The time at which a program that did not help may be run again.
    Pausing,
    /// The content of a certificate's, a key's or an authority's file.
    Reading { ticket: Ticket, round: Round },
    /// What a TLS library says of those that were read.
    Checking { ticket: Ticket, part: Part, tls: Arc<Tls>, round: Round },
    /// A token's file, or a program's end.
    Fetching { ticket: Ticket },
}

impl State {
    /// The effect in flight.
    const fn ticket(&self) -> Option<Ticket> {
        match self {
            Self::Resting | Self::Pausing => None,
            Self::Reading { ticket, .. } | Self::Checking { ticket, .. } | Self::Fetching { ticket } => Some(*ticket),
        }
    }
}

/// A caller whose question is not answered yet.
#[derive(Clone, Copy)]
struct Waiting {
    caller: Ticket,
    /// The generation that was of no use to it.
    failed: Option<u64>,
}

fn grant(held: &Held, generation: u64, tls: &Arc<Tls>) -> Grant {
    Grant { generation, authorization: held.authorization.clone(), tls: tls.clone() }
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

/// How long what a file holds is used before it is read again.
const PERIOD: Duration = crate::config::TokenFile::PERIOD;

/// How long what was good last is used before a file that held nothing good is read again.
const RETRY: Duration = Duration::from_secs(10);

#[cfg(test)]
mod file_tests;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
