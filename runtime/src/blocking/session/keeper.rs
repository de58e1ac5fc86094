//! The credentials that all requests of a transport share.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use cloudcoil_core::config::{Config, Tls};
use cloudcoil_core::credentials::{CredentialsInput, Grant};
use cloudcoil_core::{Deadline, NetworkError, NetworkErrorKind, Ticket};

use crate::blocking::{Cancel, Carrier, Clock, System};
use crate::plain::{Errand, Keeping, Reply};

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

type State = Keeping<Flight>;

/// Reading a file, or running a program; dropping it ends the program.
struct Flight(Cancel);

impl Drop for Flight {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Keeper {
    pub(super) fn new(config: &Config, carrier: Arc<dyn Carrier>, system: Arc<dyn System>) -> Arc<Self> {
        let state = Mutex::new(Keeping::new(config, system.has_terminal()));
        Arc::new(Self { state, changed: Condvar::new(), clock: Clock::new(), carrier, system })
    }

    /// Asks a caller's question, and waits for the reply, or until `cancel` is called for: `None` if there is nothing better than what
    /// was of no use.
    pub(super) fn ask(
        self: &Arc<Self>,
        question: impl FnOnce(Ticket) -> CredentialsInput,
        cancel: &Cancel,
    ) -> Result<Option<Grant>, NetworkError> {
        let mut state = self.state();
        let caller = state.caller();
        self.step(&mut state, Some(question(caller)));
        if let Some(reply) = state.reply(caller) {
            return Ok(reply?);
        }
        drop(state);
        let keeper = self.clone();
        cancel.on_cancel(move || keeper.wake());
        let reply = self.wait(caller, cancel);
        cancel.forget();
        match reply {
            Some(reply) => Ok(reply?),
            None => Err(NetworkError::new(NetworkErrorKind::Connect, "given up while waiting for credentials")),
        }
    }

    /// Waits for a reply, or until that is given up; does what is due meanwhile.
    fn wait(self: &Arc<Self>, caller: Ticket, cancel: &Cancel) -> Option<Reply> {
        let mut state = self.state();
        loop {
            if let Some(reply) = state.reply(caller) {
                return Some(reply);
            }
            if cancel.is_cancelled() {
                self.step(&mut state, Some(CredentialsInput::Left { caller }));
                return None;
            }
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
    }

    fn step(self: &Arc<Self>, state: &mut State, input: Option<CredentialsInput>) {
        let check = |tls: &Tls| self.carrier.check(tls);
        state.step(self.clock.now(), input, check, |ticket, errand| self.fly(ticket, errand));
        self.changed.notify_all();
    }

    /// Works on a thread of its own, and steps with what comes of it.
    fn fly(self: &Arc<Self>, ticket: Ticket, errand: Errand) -> Result<Flight, Box<str>> {
        let (keeper, cancel) = (self.clone(), Cancel::new());
        let flight = Flight(cancel.clone());
        // What is told of the work belongs to the request that wants it.
        let request = tracing::Span::current();
        let fly = move || {
            let _entered = request.enter();
            let input = match errand {
                Errand::Read(path) => CredentialsInput::Read { ticket, result: keeper.system.read(path) },
                Errand::Run(command) => CredentialsInput::Ran { ticket, result: keeper.system.run(command, &cancel) },
            };
            // There is nothing to be ended any more.
            cancel.forget();
            let mut state = keeper.state();
            state.flight.take_if(|(flying, _)| *flying == ticket);
            keeper.step(&mut state, Some(input));
        };
        let started = thread::Builder::new().name("cloudcoil-credentials".into()).spawn(fly);
        started.map(|_| flight).map_err(|error| format!("the system refuses a thread: {error}").into())
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
