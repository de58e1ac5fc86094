//! The credentials that all requests of a transport share.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use cloudcoil_core::config::{Config, ReadError};
use cloudcoil_core::credentials::{
    Credentials, CredentialsError, CredentialsInput, CredentialsOutput, Grant, RunError,
};
use cloudcoil_core::{Deadline, Machine as _, NetworkError, NetworkErrorKind, Outbox, Ticket, Tickets};

use crate::blocking::{Cancel, Carrier, Clock, System};

/// Credentials, and what they have asked for. A file is read and a program run on a thread of its own, so that whoever waits
/// can leave, and nobody else is held up.
pub(super) struct Keeper {
    state: Mutex<State>,
    /// There are replies, somebody has given up, or there is another deadline.
    changed: Condvar,
    clock: Clock,
    carrier: Arc<dyn Carrier>,
    system: Arc<dyn System>,
}

struct State {
    credentials: Credentials,
    deadline: Option<Deadline>,
    /// What ends the program that runs.
    flight: Option<(Ticket, Cancel)>,
    replies: BTreeMap<Ticket, Reply>,
    callers: Tickets,
}

/// `None` where there is nothing better than what was rejected.
type Reply = Result<Option<Grant>, CredentialsError>;

impl Keeper {
    pub(super) fn new(config: &Config, carrier: Arc<dyn Carrier>, system: Arc<dyn System>) -> Arc<Self> {
        let state = State {
            credentials: Credentials::new(config, system.has_terminal(), Tickets::new(0)),
            deadline: None,
            flight: None,
            replies: BTreeMap::new(),
            callers: Tickets::new(1),
        };
        Arc::new(Self { state: Mutex::new(state), changed: Condvar::new(), clock: Clock::new(), carrier, system })
    }

    /// Asks a caller's question, and waits for the reply, or until `cancel` is called for: `None` if there is nothing better than what
    /// was of no use.
    pub(super) fn ask(
        self: &Arc<Self>,
        question: impl FnOnce(Ticket) -> CredentialsInput,
        cancel: &Cancel,
    ) -> Result<Option<Grant>, NetworkError> {
        let mut state = self.state();
        let caller = state.callers.issue();
        self.step(&mut state, Some(question(caller)));
        if !state.replies.contains_key(&caller) {
            drop(state);
            let keeper = self.clone();
            cancel.on_cancel(move || keeper.wake());
            state = self.wait(self.state(), caller, cancel);
            cancel.forget();
        }
        match state.replies.remove(&caller) {
            Some(reply) => Ok(reply?),
            None => {
                self.step(&mut state, Some(CredentialsInput::Left { caller }));
                Err(NetworkError::new(NetworkErrorKind::Connect, "given up while waiting for credentials"))
            }
        }
    }

    /// Waits for a reply; does what is due meanwhile.
    fn wait<'a>(
        self: &'a Arc<Self>,
        mut state: MutexGuard<'a, State>,
        caller: Ticket,
        cancel: &Cancel,
    ) -> MutexGuard<'a, State> {
        while !state.replies.contains_key(&caller) && !cancel.is_cancelled() {
            let now = self.clock.now().mono;
            state = match state.deadline {
                Some(Deadline { at, .. }) if at <= now => {
                    self.step(&mut state, None);
                    state
                }
                Some(Deadline { at, .. }) => {
                    let waited = self.changed.wait_timeout(state, at.since(now));
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
        state
    }

    fn step(self: &Arc<Self>, state: &mut State, input: Option<CredentialsInput>) {
        let mut out = Outbox::new();
        if let Some(CredentialsInput::Ran { result, .. }) = &input {
            tracing::debug!(?result, "the credential program has ended");
        }
        state.deadline = state.credentials.step(self.clock.now(), input, &mut out);
        for output in out {
            match output {
                CredentialsOutput::Grant { caller, grant } => drop(state.replies.insert(caller, Ok(Some(grant)))),
                CredentialsOutput::Stand { caller } => drop(state.replies.insert(caller, Ok(None))),
                CredentialsOutput::Refuse { caller, error } => {
                    tracing::debug!(%error, "no credentials");
                    state.replies.insert(caller, Err(error));
                }
                CredentialsOutput::Read { ticket, path } => {
                    let system = self.system.clone();
                    let read = move |_: &Cancel| CredentialsInput::Read { ticket, result: system.read(path) };
                    let refused = |why| CredentialsInput::Read { ticket, result: Err(ReadError::Failed(why)) };
                    self.start(state, ticket, read, refused);
                }
                CredentialsOutput::Run { ticket, command } => {
                    tracing::debug!(program = %command.program.display(), "fetching credentials");
                    let system = self.system.clone();
                    let run =
                        move |cancel: &Cancel| CredentialsInput::Ran { ticket, result: system.run(command, cancel) };
                    let refused = |why| CredentialsInput::Ran { ticket, result: Err(RunError::Failed(why)) };
                    self.start(state, ticket, run, refused);
                }
                CredentialsOutput::Check { ticket, tls } => {
                    let result = self.carrier.check(&tls);
                    self.step(state, Some(CredentialsInput::Checked { ticket, result }));
                }
                CredentialsOutput::Warn(warning) => tracing::warn!("{warning}"),
                CredentialsOutput::Cancel { ticket } => {
                    if let Some((_, cancel)) = state.flight.take_if(|(flying, _)| *flying == ticket) {
                        cancel.cancel();
                    }
                }
            }
        }
        self.changed.notify_all();
    }

    /// Works on a thread of its own, and steps with what comes of it.
    fn start(
        self: &Arc<Self>,
        state: &mut State,
        ticket: Ticket,
        work: impl FnOnce(&Cancel) -> CredentialsInput + Send + 'static,
        refused: impl FnOnce(Box<str>) -> CredentialsInput,
    ) {
        let (keeper, cancel) = (self.clone(), Cancel::new());
        state.flight = Some((ticket, cancel.clone()));
        // What is told of the work belongs to the request that wants it.
        let request = tracing::Span::current();
        let fly = move || {
            let _entered = request.enter();
            let input = work(&cancel);
            let mut state = keeper.state();
            state.flight.take_if(|(flying, _)| *flying == ticket);
            keeper.step(&mut state, Some(input));
        };
        if let Err(error) = thread::Builder::new().name("cloudcoil-credentials".into()).spawn(fly) {
            state.flight = None;
            self.step(state, Some(refused(format!("the system refuses a thread: {error}").into())));
        }
    }

    fn wake(&self) {
        // Whoever is about to wait has the lock until it does.
        drop(self.state());
        self.changed.notify_all();
    }

    /// A machine that has panicked in a step is a bug; the others go on with what there is.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
