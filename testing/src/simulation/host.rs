//! A process that runs asynchronous code in virtual time: an executor, its clocks and its way to the server.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bytes::Bytes;
use cloudcoil_core::config::{Config, ConfigError, ReadError, Tls};
use cloudcoil_core::credentials::{Command, Finished, RunError};
use cloudcoil_core::{
    Deadline, HttpEffect, HttpEvent, NetworkError, NetworkErrorKind, Now, Outbox, Random, Ticket, Tickets, Time,
};
use cloudcoil_runtime::{Body, Carrier, Client, Runtime, Session, System};
use futures_util::Stream;
use futures_util::future::{BoxFuture, ready};
use http::{Request, Response};

use super::Process;

/// A process whose program is an `async` function of a [`Client`].
///
/// Everything in it happens on one thread, in an order that depends on nothing but what it hears and the seed. What it awaits
/// must come from its client: a timer or a socket of another executor never fires here, and a handler that waits for one is
/// [stuck](Host::stuck).
pub struct Host {
    inside: Inside,
    tasks: BTreeMap<u64, Task>,
    next_task: u64,
    ready: Arc<Ready>,
}

/// A handler that waits for something that the simulation knows nothing of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stuck {
    /// The kind, namespace and name of the object that the handler works on.
    pub handler: Box<str>,
    /// How long it has waited.
    pub waited: Duration,
}

impl std::fmt::Display for Stuck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { handler, waited } = self;
        write!(f, "the handler of {handler} has waited {waited:?} for something outside of the simulation")
    }
}

impl Host {
    /// A process that has not begun yet; its numbers are drawn from `seed`. It is nobody in particular to the server, and has
    /// no files and no programs.
    pub fn new<F>(seed: u64, program: impl FnOnce(Client) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Config::new("https://simulated")
            .and_then(|config| Self::configured(seed, &config, Arc::new(Bare), program))
            .expect("the address is a good one, and nobody is impersonated")
    }

    /// As [`new`](Self::new), for a process that reaches the server as `config` says: with its credentials, as its user, and
    /// asking for compressed answers or not. Addresses, certificates and proxies mean nothing here.
    ///
    /// `system` has the files and programs that credentials come from. What it answers must not depend on anything outside of
    /// the simulation, or two runs of a seed differ.
    ///
    /// # Errors
    /// Those of [`Session::new`].
    pub fn configured<F>(
        seed: u64,
        config: &Config,
        system: Arc<dyn System>,
        program: impl FnOnce(Client) -> F,
    ) -> Result<Self, ConfigError>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let inside = Inside(Arc::new(Mutex::new(State {
            now: Now::default(),
            random: Random::new(seed),
            tickets: Tickets::new(0),
            sequence: 0,
            sleeps: BTreeMap::new(),
            spawned: VecDeque::new(),
            effects: VecDeque::new(),
            exchanges: BTreeMap::new(),
            waits_inside: false,
        })));
        let runtime = Arc::new(inside.clone());
        let session = Session::new(config, runtime.clone(), runtime.clone(), system)?;
        let client = Client::new(runtime, Arc::new(session)).with_default_namespace(&config.namespace);
        inside.spawn(Box::pin(program(client)));
        Ok(Self { inside, tasks: BTreeMap::new(), next_task: 0, ready: Arc::new(Ready::default()) })
    }

    /// The handlers that wait for something outside, those that have waited longest first.
    pub fn stuck(&self) -> Vec<Stuck> {
        let now = self.inside.state().now.mono;
        let mut stuck: Vec<_> = self
            .tasks
            .values()
            .filter_map(|task| {
                let (handler, since) = (task.handler.clone()?, task.outside?);
                Some(Stuck { handler, waited: now.since(since) })
            })
            .collect();
        stuck.sort_by(|a, b| b.waited.cmp(&a.waited).then_with(|| a.handler.cmp(&b.handler)));
        stuck
    }

    /// Whether the program has ended, and everything that it has started.
    pub fn has_ended(&self) -> bool {
        self.tasks.is_empty() && self.inside.state().spawned.is_empty()
    }

    fn run(&mut self) {
        for _ in 0..MAX_POLLS {
            self.adopt();
            let Some(id) = self.ready.next() else { return };
            self.poll(id);
        }
        panic!("{MAX_POLLS} polls at one instant: a task wakes itself for ever");
    }

    /// Takes up what was spawned, in its order.
    fn adopt(&mut self) {
        let spawned = std::mem::take(&mut self.inside.state().spawned);
        for Spawned { future, handler } in spawned {
            let (id, ready) = (self.next_task, self.ready.clone());
            self.next_task += 1;
            let waker = Arc::new(TaskWaker { id, ready, queued: AtomicBool::new(false) });
            waker.wake_by_ref();
            self.tasks.insert(id, Task { future, waker, handler, outside: None });
        }
    }

    fn poll(&mut self, id: u64) {
        // It may have ended before it was woken a last time.
        let Some(task) = self.tasks.get_mut(&id) else { return };
        task.waker.queued.store(false, Ordering::SeqCst);
        self.inside.state().waits_inside = false;
        let waker = Waker::from(task.waker.clone());
        let polled = catch_unwind(AssertUnwindSafe(|| task.future.as_mut().poll(&mut Context::from_waker(&waker))));
        match polled {
            Ok(Poll::Pending) => {
                let state = self.inside.state();
                task.outside = (!state.waits_inside).then_some(state.now.mono);
            }
            Ok(Poll::Ready(())) => drop(self.tasks.remove(&id)),
            Err(panic) if id == PROGRAM => std::panic::resume_unwind(panic),
            // As on a real executor: the panic ends its task and no other.
            Err(_) => drop(self.tasks.remove(&id)),
        }
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").field("tasks", &self.tasks.len()).field("stuck", &self.stuck()).finish_non_exhaustive()
    }
}

impl Process for Host {
    fn step(&mut self, now: Now, heard: Option<HttpEvent>, out: &mut Outbox<HttpEffect>) -> Option<Deadline> {
        for waker in self.inside.advance(now, heard) {
            waker.wake();
        }
        self.run();
        let mut state = self.inside.state();
        state.effects.drain(..).for_each(|effect| out.push(effect));
        state.sleeps.keys().next().map(|(at, _)| Deadline::new(*at, "sleep"))
    }
}

struct Task {
    future: BoxFuture<'static, ()>,
    waker: Arc<TaskWaker>,
    /// What it handles, if it is the run of a handler.
    handler: Option<Box<str>>,
    /// Since when it waits for nothing that the simulation knows.
    outside: Option<Time>,
}

struct TaskWaker {
    id: u64,
    ready: Arc<Ready>,
    queued: AtomicBool,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::SeqCst) {
            lock(&self.ready.0).push_back(self.id);
        }
    }
}

/// The tasks to be polled, in the order in which they were woken.
#[derive(Default)]
struct Ready(Mutex<VecDeque<u64>>);

impl Ready {
    fn next(&self) -> Option<u64> {
        lock(&self.0).pop_front()
    }
}

/// What the code inside of a process sees of the world.
#[derive(Clone)]
struct Inside(Arc<Mutex<State>>);

struct State {
    now: Now,
    random: Random,
    tickets: Tickets,
    sequence: u64,
    sleeps: BTreeMap<(Time, u64), Waker>,
    spawned: VecDeque<Spawned>,
    effects: VecDeque<HttpEffect>,
    exchanges: BTreeMap<Ticket, Heard>,
    /// Whether the task being polled waits for time or for the network.
    waits_inside: bool,
}

struct Spawned {
    future: BoxFuture<'static, ()>,
    handler: Option<Box<str>>,
}

/// What came of an exchange and was not taken yet.
#[derive(Default)]
struct Heard {
    events: VecDeque<HttpEvent>,
    waker: Option<Waker>,
}

impl Inside {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }

    /// Takes in the time and what was heard, and answers whom that wakes.
    fn advance(&self, now: Now, heard: Option<HttpEvent>) -> Vec<Waker> {
        let mut state = self.state();
        state.now = now;
        let mut woken = Vec::new();
        if let Some(event) = heard
            && let Some(exchange) = state.exchanges.get_mut(&event.ticket())
        {
            exchange.events.push_back(event);
            woken.extend(exchange.waker.take());
        }
        while let Some(entry) = state.sleeps.first_entry().filter(|entry| entry.key().0 <= now.mono) {
            woken.push(entry.remove());
        }
        woken
    }

    fn adopt(&self, future: BoxFuture<'static, ()>, handler: Option<Box<str>>) {
        self.state().spawned.push_back(Spawned { future, handler });
    }
}

impl Runtime for Inside {
    fn now(&self) -> Now {
        self.state().now
    }

    fn sleep_until(&self, at: Time) -> BoxFuture<'static, ()> {
        let mut state = self.state();
        state.sequence += 1;
        Box::pin(Sleep { inside: self.clone(), key: (at, state.sequence) })
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.adopt(task, None);
    }

    fn spawn_handler(&self, name: &str, task: BoxFuture<'static, ()>) {
        self.adopt(task, Some(name.into()));
    }

    fn seed(&self) -> u64 {
        self.state().random.seed()
    }
}

struct Sleep {
    inside: Inside,
    key: (Time, u64),
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.inside.state();
        if state.now.mono >= self.key.0 {
            return Poll::Ready(());
        }
        state.waits_inside = true;
        state.sleeps.insert(self.key, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.inside.state().sleeps.remove(&self.key);
    }
}

impl Carrier for Inside {
    fn carry(&self, request: Request<Bytes>, _: Arc<Tls>) -> BoxFuture<'static, Result<Response<Body>, NetworkError>> {
        let mut state = self.state();
        let ticket = state.tickets.issue();
        state.exchanges.insert(ticket, Heard::default());
        state.effects.push_back(HttpEffect::Send { ticket, request: request.into() });
        let exchange = Exchange { inside: self.clone(), ticket, open: true };
        Box::pin(exchange.head())
    }

    fn check(&self, _: &Tls) -> Result<(), ConfigError> {
        Ok(())
    }
}

/// One exchange; dropped before its end, it is given up.
struct Exchange {
    inside: Inside,
    ticket: Ticket,
    open: bool,
}

impl Exchange {
    async fn head(mut self) -> Result<Response<Body>, NetworkError> {
        match std::future::poll_fn(|context| self.poll_event(context)).await {
            HttpEvent::Responded { status, headers, .. } => {
                let mut response = Response::new(Box::pin(self) as Body);
                *response.status_mut() = status;
                *response.headers_mut() = headers;
                Ok(response)
            }
            HttpEvent::Closed { result: Err(error), .. } => Err(error),
            _ => Err(NetworkError::new(NetworkErrorKind::Protocol, "a body without a head")),
        }
    }

    fn poll_event(&mut self, context: &Context<'_>) -> Poll<HttpEvent> {
        let mut state = self.inside.state();
        let Some(heard) = state.exchanges.get_mut(&self.ticket) else { return Poll::Pending };
        let Some(event) = heard.events.pop_front() else {
            heard.waker = Some(context.waker().clone());
            state.waits_inside = true;
            return Poll::Pending;
        };
        self.open = !matches!(event, HttpEvent::Closed { .. });
        Poll::Ready(event)
    }
}

impl Stream for Exchange {
    type Item = Result<Bytes, NetworkError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if !self.open {
            return Poll::Ready(None);
        }
        self.poll_event(context).map(|event| match event {
            HttpEvent::Received { bytes, .. } => Some(Ok(bytes)),
            HttpEvent::Closed { result: Ok(()), .. } => None,
            HttpEvent::Closed { result: Err(error), .. } => Some(Err(error)),
            HttpEvent::Responded { .. } => {
                self.open = false;
                Some(Err(NetworkError::new(NetworkErrorKind::Protocol, "a second head")))
            }
        })
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let mut state = self.inside.state();
        state.exchanges.remove(&self.ticket);
        if self.open {
            state.effects.push_back(HttpEffect::Cancel { ticket: self.ticket });
        }
    }
}

/// A machine without files and programs.
struct Bare;

impl System for Bare {
    fn read(&self, _: PathBuf) -> BoxFuture<'static, Result<Vec<u8>, ReadError>> {
        Box::pin(ready(Err(ReadError::NotFound)))
    }

    fn run(&self, _: Command) -> BoxFuture<'static, Result<Finished, RunError>> {
        Box::pin(ready(Err(RunError::NotFound)))
    }

    fn has_terminal(&self) -> bool {
        false
    }
}

/// What a panic leaves behind is whole: nothing panics while it holds one of these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The program is the first task.
const PROGRAM: u64 = 0;
const MAX_POLLS: u32 = 1_000_000;
