//! Drives the credentials that all requests of a session share.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker, ready};

use cloudcoil_core::config::{Config, Tls};
use cloudcoil_core::credentials::CredentialsInput;
use cloudcoil_core::{Deadline, Ticket, Time};
use futures_util::future::BoxFuture;

use crate::plain::{Errand, Keeping, Reply};
use crate::{Carrier, Runtime, System};

/// Credentials, and what they have asked for. There is no task of their own: whoever waits for them does the work, and when
/// one goes, another goes on with it.
pub(super) struct Keeper {
    state: Mutex<State>,
    waiting: Arc<Wakers>,
    runtime: Arc<dyn Runtime>,
    carrier: Arc<dyn Carrier>,
    system: Arc<dyn System>,
}

struct State {
    keeping: Keeping<Flight>,
    sleep: Option<(Time, BoxFuture<'static, ()>)>,
}

type Flight = BoxFuture<'static, CredentialsInput>;

impl Keeper {
    pub(super) fn new(
        config: &Config,
        runtime: Arc<dyn Runtime>,
        carrier: Arc<dyn Carrier>,
        system: Arc<dyn System>,
    ) -> Self {
        let state = State { keeping: Keeping::new(config, system.has_terminal()), sleep: None };
        Self { state: Mutex::new(state), waiting: Arc::default(), runtime, carrier, system }
    }

    /// Asks a caller's question, and waits for the reply. Dropping the future takes it back.
    pub(super) async fn ask(self: Arc<Self>, question: impl FnOnce(Ticket) -> CredentialsInput) -> Reply {
        let caller = self.state().keeping.caller();
        let mut asked = Some(question(caller));
        let guard = Asking { keeper: self, caller };
        std::future::poll_fn(|context| guard.keeper.poll_reply(caller, asked.take(), context)).await
    }

    fn poll_reply(&self, caller: Ticket, input: Option<CredentialsInput>, context: &Context<'_>) -> Poll<Reply> {
        self.waiting.insert(caller, context.waker());
        let all = Waker::from(self.waiting.clone());
        let mut state = self.state();
        if input.is_some() {
            self.step(&mut state, input);
        }
        loop {
            if let Some(reply) = state.keeping.reply(caller) {
                return Poll::Ready(reply);
            }
            let input = ready!(self.poll_input(&mut state, &mut Context::from_waker(&all)));
            self.step(&mut state, input);
            self.waiting.wake_by_ref();
        }
    }

    /// What has come of the effect in flight, or `None` when it is time to look at the clock.
    fn poll_input(&self, state: &mut State, context: &mut Context<'_>) -> Poll<Option<CredentialsInput>> {
        if let Some((_, flight)) = &mut state.keeping.flight
            && let Poll::Ready(input) = flight.as_mut().poll(context)
        {
            state.keeping.flight = None;
            return Poll::Ready(Some(input));
        }
        let Some(Deadline { at, .. }) = state.keeping.deadline else {
            state.sleep = None;
            return Poll::Pending;
        };
        if at <= self.runtime.now().mono {
            return Poll::Ready(None);
        }
        if state.sleep.as_ref().is_none_or(|(until, _)| *until != at) {
            state.sleep = Some((at, self.runtime.sleep_until(at)));
        }
        let (_, sleep) = state.sleep.as_mut().expect("set above");
        ready!(Pin::new(sleep).poll(context));
        state.sleep = None;
        Poll::Ready(None)
    }

    fn step(&self, state: &mut State, input: Option<CredentialsInput>) {
        let check = |tls: &Tls| self.carrier.check(tls);
        state.keeping.step(self.runtime.now(), input, check, |ticket, errand| Ok(self.fly(ticket, errand)));
    }

    fn fly(&self, ticket: Ticket, errand: Errand) -> Flight {
        match errand {
            Errand::Read(path) => {
                let reading = self.system.read(path);
                Box::pin(async move { CredentialsInput::Read { ticket, result: reading.await } })
            }
            Errand::Run(command) => {
                let running = self.system.run(command);
                Box::pin(async move { CredentialsInput::Ran { ticket, result: running.await } })
            }
        }
    }

    /// A machine that has panicked in a step, or an effect that has panicked, is a bug; the others go on with what there is.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A caller who waits, until it is dropped.
struct Asking {
    keeper: Arc<Keeper>,
    caller: Ticket,
}

impl Drop for Asking {
    fn drop(&mut self) {
        let Self { keeper, caller } = self;
        keeper.waiting.remove(*caller);
        let mut state = keeper.state();
        // One that has its reply is nobody the machine knows.
        let _ = state.keeping.reply(*caller);
        keeper.step(&mut state, Some(CredentialsInput::Left { caller: *caller }));
    }
}

/// All who wait: each could go on with the work, and nobody knows who of them is polled next.
#[derive(Default)]
struct Wakers(Mutex<BTreeMap<Ticket, Waker>>);

impl Wakers {
    fn insert(&self, caller: Ticket, waker: &Waker) {
        self.lock().insert(caller, waker.clone());
    }

    fn remove(&self, caller: Ticket) {
        self.lock().remove(&caller);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Ticket, Waker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Wakers {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let wakers: Vec<_> = self.lock().values().cloned().collect();
        wakers.iter().for_each(Waker::wake_by_ref);
    }
}
