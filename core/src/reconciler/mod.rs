//! A queue of keys, and the passes over them.

mod own_writes;
mod status;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod world;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use crate::backoff::{BackoffPolicy, Random};
use crate::exchange::{HttpEffect, HttpEvent};
use crate::machine::{Deadline, Machine, Outbox, Ticket, Tickets};
use crate::pass::{Finished, Next, ObjectVersion, Outcome, Pass, PassConfig, PassInput, PassOutput, PassResult};
use crate::queue::{QueueConfig, QueueInput, QueueOutput, WorkQueue};
use crate::resource::{ResourceKey, ResourceType};
use crate::time::{Now, Time};

pub use status::ReconcilerStatus;

use own_writes::OwnWrites;

/// Reconciles the objects of one type: a [`WorkQueue`] of their keys, and a [`Pass`] for each key that a worker has.
///
/// Keys are taken from the start, and the first pass begins when the caches have [synced](ReconcilerInput::Synced). A
/// key is never with two workers at once. After a pass that has written its object, the next pass of the same key waits
/// until the cache holds what was written, so that no pass works on what an earlier one has overtaken: a driver
/// reports what the cache holds by [`Observed`](ReconcilerInput::Observed).
///
/// On a shutdown that drains, keys that are ready are still worked off; what is delayed is dropped, as a restart lists
/// everything anyway. When the time for that is over, the passes under way are cancelled.
/// [`Stopped`](ReconcilerOutput::Stopped) comes when no handler is running any more.
#[derive(Clone, Debug)]
pub struct Reconciler {
    state: State,
    pass: Arc<PassConfig>,
    first_machine: u32,
    shutdown_timeout: Duration,
    resync_period: Option<Duration>,
    random: Random,
    queue: WorkQueue<ResourceKey>,
    /// A pass of machine number `first_machine + n` is in lane `n`.
    lanes: Vec<Lane>,
    idle: Vec<usize>,
    /// When which lane is due.
    deadlines: BTreeSet<(Time, usize)>,
    own_writes: OwnWrites,
    counts: ReconcilerStatus,
}

/// How a [`Reconciler`] works.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made with struct update syntax")]
pub struct ReconcilerConfig {
    /// How each pass is done, and over which type.
    pub pass: PassConfig,
    /// How many keys are worked on at the same time, at the most.
    pub workers: NonZeroUsize,
    /// How long a key waits after a failure.
    pub backoff: BackoffPolicy,
    /// How long keys are still worked off after a shutdown that drains, before passes under way are cancelled.
    pub shutdown_timeout: Duration,
    /// How often every key is looked at without an event, give or take a tenth; `None` or zero for never.
    pub resync_period: Option<Duration>,
    /// How long a pass waits for the cache to hold what the pass before it has written.
    pub cache_timeout: Duration,
    /// Where the jitter comes from.
    pub seed: u64,
    /// The number of the first lane of passes: tickets carry numbers from this one up, as many as there are workers.
    pub first_machine: u32,
}

impl ReconcilerConfig {
    /// One worker over objects of `resource_type`; passes may take any time, a shutdown 10 s, and every key is looked
    /// at every 5 minutes.
    pub const fn new(resource_type: ResourceType) -> Self {
        Self {
            pass: PassConfig::new(resource_type),
            workers: NonZeroUsize::MIN,
            backoff: BackoffPolicy::RECONCILE,
            shutdown_timeout: Duration::from_secs(10),
            resync_period: Some(Duration::from_secs(300)),
            cache_timeout: Duration::from_secs(5),
            seed: 0,
            first_machine: 0,
        }
    }
}

/// What a [`Reconciler`] hears.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must know what it may say")]
pub enum ReconcilerInput {
    /// The caches hold what the handlers read: passes may begin.
    Synced,
    /// Something happened to a key: a pass is to look at it.
    Enqueued(ResourceKey),
    /// A pass is to look at a key after a while, unless one does so sooner.
    EnqueuedAfter(ResourceKey, Duration),
    /// The cache holds an object in this version, or, with `None`, no object of this key any more. To be said of every
    /// event of the reconciled type, after the cache has taken it.
    Observed {
        /// The object's key.
        key: ResourceKey,
        /// What the cache holds now.
        version: Option<ObjectVersion>,
    },
    /// A handler has ended, by itself or because it was stopped.
    Ran {
        /// Names the run.
        ticket: Ticket,
        /// What it came to.
        outcome: Outcome,
    },
    /// Something came of a request.
    Http(HttpEvent),
    /// No more keys are taken. Said again, a shutdown that does not drain cuts one short that does.
    ShutDown {
        /// Whether keys that are ready are still worked off, within the time for that; else passes under way are
        /// cancelled at once. Before the caches have synced there is nothing to drain.
        drain: bool,
    },
}

/// What a [`Reconciler`] asks for and says.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must do all of them")]
pub enum ReconcilerOutput {
    /// Run the handler for this key, and answer with one [`Ran`](ReconcilerInput::Ran), whatever becomes of it.
    Run {
        /// Names the run.
        ticket: Ticket,
        /// The object's key.
        key: ResourceKey,
    },
    /// Stop the handler. Its `Ran` is still waited for, and may say anything.
    Cancel {
        /// Names the run.
        ticket: Ticket,
    },
    /// Perform an HTTP effect.
    Http(HttpEffect),
    /// A pass is over.
    Reconciled(Reconciled),
    /// The cache did not hold in time what a pass has written; the next pass of this key waits no longer.
    CacheLagged {
        /// The object's key.
        key: ResourceKey,
    },
    /// Enqueue every key that the cache holds.
    Resync,
    /// Nothing runs any more; said once after a shutdown, and nothing after it.
    Stopped,
}

/// A pass that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reconciled {
    /// The object's key.
    pub key: ResourceKey,
    /// How the pass ended.
    pub result: PassResult,
    /// After how long the key comes again, without an event.
    pub again: Option<Duration>,
    /// How many passes of this key in a row have not ended well, this one included.
    pub failures: u32,
    /// How long the pass took, from the start of the handler to the answer of its last write.
    pub took: Duration,
}

impl Reconciler {
    /// A reconciler that waits for the caches to sync.
    pub fn new(config: ReconcilerConfig) -> Self {
        let mut random = Random::new(config.seed);
        let queue = QueueConfig { workers: config.workers, backoff: config.backoff, seed: random.seed() };
        Self {
            state: State::Syncing,
            pass: Arc::new(config.pass),
            first_machine: config.first_machine,
            shutdown_timeout: config.shutdown_timeout,
            resync_period: config.resync_period.filter(|period| !period.is_zero()),
            random,
            queue: WorkQueue::closed(queue),
            lanes: Vec::new(),
            idle: Vec::new(),
            deadlines: BTreeSet::new(),
            own_writes: OwnWrites::new(config.cache_timeout),
            counts: ReconcilerStatus::default(),
        }
    }

    /// What it is doing, and what it has done.
    pub fn status(&self) -> ReconcilerStatus {
        ReconcilerStatus {
            ready: matches!(self.state, State::Reconciling { .. }),
            queued: self.queue.depth(),
            processing: self.queue.processing(),
            delayed: self.queue.delayed(),
            ..self.counts.clone()
        }
    }

    /// Whether nothing waits, runs or comes later.
    pub fn is_idle(&self) -> bool {
        self.queue.is_idle()
    }

    fn synced(&mut self, now: Now, out: &mut Outbox<ReconcilerOutput>) {
        if matches!(self.state, State::Syncing) {
            self.state = State::Reconciling { resync: self.next_resync(now) };
            self.queue(now, Some(QueueInput::Opened), out);
        }
    }

    fn next_resync(&mut self, now: Now) -> Option<Time> {
        let period = self.random.jitter(self.resync_period?, RESYNC_JITTER);
        Some(now.mono + period.max(Duration::from_nanos(1)))
    }

    fn observed(
        &mut self,
        now: Now,
        key: ResourceKey,
        version: Option<ObjectVersion>,
        out: &mut Outbox<ReconcilerOutput>,
    ) {
        if self.own_writes.observed(&key, version) {
            self.queue(now, Some(QueueInput::Released(key)), out);
        }
    }

    fn shut_down(&mut self, now: Now, drain: bool, out: &mut Outbox<ReconcilerOutput>) {
        match (&self.state, drain) {
            (State::Reconciling { .. }, true) => {
                self.state = State::Draining { until: now.mono + self.shutdown_timeout };
                self.queue(now, Some(QueueInput::ShutDown { drain: true }), out);
            }
            (State::Syncing | State::Reconciling { .. } | State::Draining { .. }, _) if !drain => self.cancel(now, out),
            (State::Syncing, _) => self.cancel(now, out),
            _ => {}
        }
    }

    /// Drops what waits, and stops what runs.
    fn cancel(&mut self, now: Now, out: &mut Outbox<ReconcilerOutput>) {
        self.state = State::Cancelling;
        self.own_writes.clear();
        self.queue(now, Some(QueueInput::ShutDown { drain: false }), out);
        for lane in 0..self.lanes.len() {
            self.pass(now, lane, Some(PassInput::Cancelled), out);
        }
    }

    /// Steps the queue, and does what it says.
    fn queue(&mut self, now: Now, input: Option<QueueInput<ResourceKey>>, out: &mut Outbox<ReconcilerOutput>) {
        let mut said = Outbox::new();
        let _ = self.queue.step(now, input, &mut said);
        for output in said {
            match output {
                QueueOutput::Start(key) => self.start(now, key, out),
                QueueOutput::Drained => {
                    self.state = State::Stopped;
                    self.own_writes.clear();
                    out.push(ReconcilerOutput::Stopped);
                }
                // Each key that was started is done once, when its pass has finished.
                QueueOutput::NotProcessing(_) => {}
            }
        }
    }

    fn start(&mut self, now: Now, key: ResourceKey, out: &mut Outbox<ReconcilerOutput>) {
        let lane = self.idle.pop().unwrap_or(self.lanes.len());
        if lane == self.lanes.len() {
            self.lanes.push(Lane::Idle(Tickets::new(self.first_machine.wrapping_add(lane as u32))));
        }
        if let Lane::Idle(tickets) = &self.lanes[lane] {
            self.own_writes.started(key.clone());
            let pass = Pass::new(key, Arc::clone(&self.pass), tickets.clone());
            self.lanes[lane] = Lane::Busy(Box::new(Busy { pass, started: now.mono, due: None }));
            self.pass(now, lane, None, out);
        }
    }

    /// Steps the pass of a lane, if it has one, and does what it says.
    fn pass(&mut self, now: Now, lane: usize, input: Option<PassInput>, out: &mut Outbox<ReconcilerOutput>) {
        let Some(Lane::Busy(busy)) = self.lanes.get_mut(lane) else { return };
        let mut said = Outbox::new();
        let due = busy.pass.step(now, input, &mut said).map(|due| due.at);
        if due != busy.due {
            let before = std::mem::replace(&mut busy.due, due);
            before.map(|at| self.deadlines.remove(&(at, lane)));
            due.map(|at| self.deadlines.insert((at, lane)));
        }
        for output in said {
            match output {
                PassOutput::Run { ticket, key } => out.push(ReconcilerOutput::Run { ticket, key }),
                PassOutput::Cancel { ticket } => out.push(ReconcilerOutput::Cancel { ticket }),
                PassOutput::Http(effect) => out.push(ReconcilerOutput::Http(effect)),
                PassOutput::Finished(finished) => self.finish(now, lane, finished, out),
            }
        }
    }

    fn finish(&mut self, now: Now, lane: usize, finished: Finished, out: &mut Outbox<ReconcilerOutput>) {
        let idle = Lane::Idle(Tickets::new(0));
        let Lane::Busy(busy) = std::mem::replace(&mut self.lanes[lane], idle) else { return };
        self.lanes[lane] = Lane::Idle(busy.pass.into_tickets());
        self.idle.push(lane);

        let Finished { key, result, written } = finished;
        if self.own_writes.ended(now, &key, written) {
            self.queue(now, Some(QueueInput::Held(key.clone())), out);
        }
        let again = self.requeue(now, &key, result.next(), out);
        let (failures, took) = (self.queue.num_retries(&key), now.mono.since(busy.started));
        self.counts.count(&result, took);
        out.push(ReconcilerOutput::Reconciled(Reconciled { key: key.clone(), result, again, failures, took }));
        self.queue(now, Some(QueueInput::Done(key)), out);
    }

    /// Does to a key what its pass asks for; tells after how long it comes again.
    fn requeue(
        &mut self,
        now: Now,
        key: &ResourceKey,
        next: Next,
        out: &mut Outbox<ReconcilerOutput>,
    ) -> Option<Duration> {
        match next {
            Next::Retry(after) => return self.queue.retry(now, key, after),
            Next::Forget | Next::Requeue(_) if self.queue.num_retries(key) == 0 => {}
            Next::Forget | Next::Requeue(_) => self.queue(now, Some(QueueInput::Forgotten(key.clone())), out),
        }
        match next {
            Next::Requeue(after) if matches!(self.state, State::Reconciling { .. }) => {
                self.queue(now, Some(QueueInput::AddedAfter(key.clone(), after)), out);
                Some(after)
            }
            _ => None,
        }
    }

    fn lane(&self, ticket: Ticket) -> usize {
        ticket.machine().wrapping_sub(self.first_machine) as usize
    }
}

impl Machine for Reconciler {
    type Input = ReconcilerInput;
    type Output = ReconcilerOutput;

    fn on_input(&mut self, now: Now, input: ReconcilerInput, out: &mut Outbox<ReconcilerOutput>) {
        match input {
            ReconcilerInput::Synced => self.synced(now, out),
            ReconcilerInput::Enqueued(key) => self.queue(now, Some(QueueInput::Added(key)), out),
            ReconcilerInput::EnqueuedAfter(key, after) => {
                self.queue(now, Some(QueueInput::AddedAfter(key, after)), out);
            }
            ReconcilerInput::Observed { key, version } => self.observed(now, key, version, out),
            ReconcilerInput::Ran { ticket, outcome } => {
                self.pass(now, self.lane(ticket), Some(PassInput::Ran { ticket, outcome }), out);
            }
            ReconcilerInput::Http(event) => {
                self.pass(now, self.lane(event.ticket()), Some(PassInput::Http(event)), out)
            }
            ReconcilerInput::ShutDown { drain } => self.shut_down(now, drain, out),
        }
    }

    fn on_timer(&mut self, now: Now, out: &mut Outbox<ReconcilerOutput>) {
        if self.queue.deadline().is_some_and(|due| due.at <= now.mono) {
            self.queue(now, None, out);
        }
        while let Some((at, lane)) = self.deadlines.first().copied()
            && at <= now.mono
        {
            self.pass(now, lane, None, out);
        }
        while let Some(key) = self.own_writes.expired(now) {
            out.push(ReconcilerOutput::CacheLagged { key: key.clone() });
            self.queue(now, Some(QueueInput::Released(key)), out);
        }
        match self.state {
            State::Reconciling { resync: Some(at) } if at <= now.mono => {
                self.state = State::Reconciling { resync: self.next_resync(now) };
                out.push(ReconcilerOutput::Resync);
            }
            State::Draining { until } if until <= now.mono => self.cancel(now, out),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Deadline> {
        let own = match self.state {
            State::Reconciling { resync } => resync.map(|at| Deadline::new(at, "resync")),
            State::Draining { until } => Some(Deadline::new(until, "end of the drain")),
            State::Syncing | State::Cancelling => None,
            State::Stopped => return None,
        };
        let pass = self.deadlines.first().map(|(at, _)| Deadline::new(*at, "pass"));
        [self.queue.deadline(), pass, self.own_writes.deadline()].into_iter().fold(own, Deadline::earliest)
    }
}

/// What the reconciler as a whole waits for.
#[derive(Clone, Copy, Debug)]
enum State {
    /// The caches.
    Syncing,
    /// Keys.
    Reconciling { resync: Option<Time> },
    /// The end of what was ready when the shutdown came.
    Draining { until: Time },
    /// The end of passes that were told to stop.
    Cancelling,
    /// Nothing.
    Stopped,
}

/// A place for one pass at a time. Its tickets go on from pass to pass, so that none is used twice.
#[derive(Clone, Debug)]
enum Lane {
    Idle(Tickets),
    Busy(Box<Busy>),
}

#[derive(Clone, Debug)]
struct Busy {
    pass: Pass,
    started: Time,
    due: Option<Time>,
}

/// By how many percent a resync comes sooner or later, so that controllers started together do not stay together.
const RESYNC_JITTER: u32 = 10;
