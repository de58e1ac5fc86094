//! Which key waits for a worker, which is being worked on, and which comes later.

mod index;
pub(crate) mod model;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::hash::Hash;
use std::num::NonZeroUsize;
use std::time::Duration;

use crate::backoff::{BackoffPolicy, Random};
use crate::machine::{Deadline, Machine, Outbox};
use crate::time::Now;

use index::{Again, At, Index, Place, SlotId};

/// Hands keys to a limited number of workers, each key to one worker at a time, in the order in which they became ready.
///
/// Adding a key that is ready changes nothing; adding one that is being worked on gives exactly one more pass after
/// it. A key added now does not wait for its retry. Of several delays of a key the shortest counts. A delay may be
/// of any length: time saturates. No operation looks at more than the keys it names.
///
/// The queue is memory only: after a restart the keys come from a list of what exists.
///
/// ```
/// use cloudcoil_core::{Machine, Now, Outbox, QueueConfig, QueueInput, QueueOutput, WorkQueue};
///
/// let mut queue = WorkQueue::new(QueueConfig::default());
/// let mut out = Outbox::new();
/// for input in [QueueInput::Added("a"), QueueInput::Added("b"), QueueInput::Added("b"), QueueInput::Done("a")] {
///     let _ = queue.step(Now::default(), Some(input), &mut out);
/// }
/// assert!(out.into_iter().eq([QueueOutput::Start("a"), QueueOutput::Start("b")]));
/// assert_eq!((queue.depth(), queue.processing()), (0, 1));
/// ```
#[derive(Clone, Debug)]
pub struct WorkQueue<K> {
    phase: Phase,
    workers: usize,
    backoff: BackoffPolicy,
    random: Random,
    index: Index<K>,
    ready: VecDeque<SlotId>,
    later: BTreeMap<At, SlotId>,
    /// Numbers the delays, so that two that end at one instant end in the order they were asked for.
    delays: u64,
    processing: usize,
    /// Keys that would be ready if they were not held.
    wanted: usize,
}

/// How a [`WorkQueue`] works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// How many keys are worked on at the same time, at the most.
    pub workers: NonZeroUsize,
    /// How long a retry waits.
    pub backoff: BackoffPolicy,
    /// Where the jitter of retries comes from.
    pub seed: u64,
}

/// One worker, and the delays of [`BackoffPolicy::RECONCILE`].
impl Default for QueueConfig {
    fn default() -> Self {
        Self { workers: NonZeroUsize::MIN, backoff: BackoffPolicy::RECONCILE, seed: 0 }
    }
}

/// What happens to a [`WorkQueue`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must know what it may say")]
pub enum QueueInput<K> {
    /// A queue made with [`closed`](WorkQueue::closed) may start what it has.
    Opened,
    /// A key is to be worked on as soon as a worker is free; a delay it has is forgotten.
    Added(K),
    /// A key is to be worked on after a while, unless it is ready now or comes sooner anyway.
    AddedAfter(K, Duration),
    /// Work on a key failed: it comes again after a delay that grows with each failure.
    Retried {
        /// The key.
        key: K,
        /// It comes no sooner than this, as a server may ask for.
        after: Option<Duration>,
    },
    /// The worker has ended its work on a key that it was told to start.
    Done(K),
    /// The failures of a key count no more.
    Forgotten(K),
    /// A key that is being worked on is not to be started again before it is released; of any other key this changes
    /// nothing.
    Held(K),
    /// A held key may be started again.
    Released(K),
    /// No more keys are taken, and delayed ones are dropped.
    ShutDown {
        /// Whether keys that are ready are still worked on; else they are dropped too. What has been started must end
        /// in any case. A queue that was never opened drops everything.
        drain: bool,
    },
}

/// What a [`WorkQueue`] asks for and says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must do all of them")]
pub enum QueueOutput<K> {
    /// Work on this key, and say [`Done`](QueueInput::Done) when that has ended, however it did.
    Start(K),
    /// `Done` was said of a key that nobody works on: a mistake of the driver, which changed nothing.
    NotProcessing(K),
    /// After a shutdown nothing is left; said once, and nothing after it.
    Drained,
}

impl<K: Hash + Eq + Clone> WorkQueue<K> {
    /// An empty queue that starts keys as they come.
    pub const fn new(config: QueueConfig) -> Self {
        Self {
            phase: Phase::Open,
            workers: config.workers.get(),
            backoff: config.backoff,
            random: Random::new(config.seed),
            index: Index::new(config.seed),
            ready: VecDeque::new(),
            later: BTreeMap::new(),
            delays: 0,
            processing: 0,
            wanted: 0,
        }
    }

    /// An empty queue that takes keys but starts none before [`Opened`](QueueInput::Opened).
    pub const fn closed(config: QueueConfig) -> Self {
        let mut queue = Self::new(config);
        queue.phase = Phase::Closed;
        queue
    }

    /// How many keys wait for a worker, or to be released. Those being worked on, and those that come later, are not
    /// among them.
    pub fn depth(&self) -> usize {
        self.ready.len() + self.wanted
    }

    /// How many keys are being worked on.
    pub const fn processing(&self) -> usize {
        self.processing
    }

    /// How many keys have a delay; some of them may be being worked on.
    pub fn delayed(&self) -> usize {
        self.later.len()
    }

    /// Whether nothing waits, runs or comes later.
    pub fn is_idle(&self) -> bool {
        self.depth() + self.processing + self.delayed() == 0
    }

    /// How often work on a key has failed since it was last forgotten.
    pub fn num_retries(&self, key: &K) -> u32 {
        self.index.find(key).map_or(0, |id| self.index[id].failures)
    }

    /// As [`Retried`](QueueInput::Retried), and tells the delay; `None` when the queue takes no more keys.
    ///
    /// The delay counts even if the key comes sooner for another reason.
    pub(crate) fn retry(&mut self, now: Now, key: &K, after: Option<Duration>) -> Option<Duration> {
        if !self.takes_keys() {
            return None;
        }
        let id = self.index.find(key).unwrap_or_else(|| self.index.enter(key.clone()));
        let slot = &mut self.index[id];
        slot.failures = slot.failures.saturating_add(1);
        let delay = self.backoff.delay(slot.failures, &mut self.random).max(after.unwrap_or_default());
        self.schedule(now, id, delay);
        Some(delay)
    }

    const fn takes_keys(&self) -> bool {
        matches!(self.phase, Phase::Closed | Phase::Open)
    }

    fn add(&mut self, key: K) {
        if !self.takes_keys() {
            return;
        }
        let id = self.index.enter(key);
        match self.index[id].place {
            Place::Idle => self.ready(id),
            Place::Later(at) => {
                self.later.remove(&at);
                self.ready(id);
            }
            Place::Processing(again) => {
                if let Again::Later(at) = again {
                    self.later.remove(&at);
                }
                self.index[id].place = Place::Processing(Again::Now);
            }
            Place::Ready | Place::Wanted => {}
        }
    }

    fn add_after(&mut self, now: Now, key: K, delay: Duration) {
        if self.takes_keys() {
            let id = self.index.enter(key);
            self.schedule(now, id, delay);
        }
    }

    /// Puts a key behind a delay, unless it comes sooner.
    fn schedule(&mut self, now: Now, id: SlotId, delay: Duration) {
        let (due, place) = (now.mono + delay, self.index[id].place);
        match place {
            Place::Ready | Place::Wanted | Place::Processing(Again::Now) => return,
            Place::Later(at) | Place::Processing(Again::Later(at)) if at.time <= due => return,
            Place::Later(at) | Place::Processing(Again::Later(at)) => drop(self.later.remove(&at)),
            Place::Idle | Place::Processing(Again::No) => {}
        }
        self.delays += 1;
        let at = At { time: due, delay: self.delays };
        self.later.insert(at, id);
        self.index[id].place =
            if place.is_processing() { Place::Processing(Again::Later(at)) } else { Place::Later(at) };
    }

    /// A key whose delay, or whose worker, no longer stands in the way.
    fn ready(&mut self, id: SlotId) {
        if self.index[id].held {
            self.index[id].place = Place::Wanted;
            self.wanted += 1;
        } else {
            self.index[id].place = Place::Ready;
            self.ready.push_back(id);
        }
    }

    fn done(&mut self, key: K, out: &mut Outbox<QueueOutput<K>>) {
        let found = self.index.find(&key);
        let Some((id, Place::Processing(again))) = found.map(|id| (id, self.index[id].place)) else {
            out.push(QueueOutput::NotProcessing(key));
            return;
        };
        self.processing -= 1;
        match again {
            Again::Now => self.ready(id),
            Again::Later(at) => self.index[id].place = Place::Later(at),
            Again::No => {
                self.index[id].place = Place::Idle;
                self.index.leave(id);
            }
        }
    }

    fn forget(&mut self, key: &K) {
        if let Some(id) = self.index.find(key) {
            self.index[id].failures = 0;
            self.index.leave(id);
        }
    }

    fn hold(&mut self, key: &K) {
        if let Some(id) = self.index.find(key).filter(|id| self.index[*id].place.is_processing()) {
            self.index[id].held = true;
        }
    }

    fn release(&mut self, key: &K) {
        let Some(id) = self.index.find(key).filter(|id| self.index[*id].held) else { return };
        self.index[id].held = false;
        if self.index[id].place == Place::Wanted {
            self.wanted -= 1;
            self.ready(id);
        }
        self.index.leave(id);
    }

    fn shut_down(&mut self, drain: bool) {
        let drain = drain && matches!(self.phase, Phase::Open | Phase::Draining);
        self.phase = Phase::Draining;
        self.later.clear();
        if !drain {
            self.ready.clear();
            self.wanted = 0;
        }
        self.index.shut_down(drain);
    }

    /// Gives ready keys to free workers, and notices the end.
    fn start(&mut self, out: &mut Outbox<QueueOutput<K>>) {
        while self.phase != Phase::Closed
            && self.processing < self.workers
            && let Some(id) = self.ready.pop_front()
        {
            self.index[id].place = Place::Processing(Again::No);
            self.processing += 1;
            out.extend(self.index.key(id).cloned().map(QueueOutput::Start));
        }
        if self.phase == Phase::Draining && self.processing + self.depth() == 0 {
            self.phase = Phase::Drained;
            out.push(QueueOutput::Drained);
        }
    }
}

impl<K: Hash + Eq + Clone> Machine for WorkQueue<K> {
    type Input = QueueInput<K>;
    type Output = QueueOutput<K>;

    fn on_input(&mut self, now: Now, input: QueueInput<K>, out: &mut Outbox<QueueOutput<K>>) {
        match (self.phase, input) {
            (Phase::Drained, _) => return,
            (Phase::Closed, QueueInput::Opened) => self.phase = Phase::Open,
            (_, QueueInput::Opened) => {}
            (_, QueueInput::Added(key)) => self.add(key),
            (_, QueueInput::AddedAfter(key, Duration::ZERO)) => self.add(key),
            (_, QueueInput::AddedAfter(key, delay)) => self.add_after(now, key, delay),
            (_, QueueInput::Retried { key, after }) => {
                self.retry(now, &key, after);
            }
            (_, QueueInput::Done(key)) => self.done(key, out),
            (_, QueueInput::Forgotten(key)) => self.forget(&key),
            (_, QueueInput::Held(key)) => self.hold(&key),
            (_, QueueInput::Released(key)) => self.release(&key),
            (_, QueueInput::ShutDown { drain }) => self.shut_down(drain),
        }
        self.start(out);
    }

    fn on_timer(&mut self, now: Now, out: &mut Outbox<QueueOutput<K>>) {
        while let Some(first) = self.later.first_entry().filter(|first| first.key().time <= now.mono) {
            let id = first.remove();
            if self.index[id].place.is_processing() {
                self.index[id].place = Place::Processing(Again::Now);
            } else {
                self.ready(id);
            }
        }
        self.start(out);
    }

    fn deadline(&self) -> Option<Deadline> {
        self.later.first_key_value().map(|(at, _)| Deadline::new(at.time, "delayed key"))
    }
}

/// What the queue as a whole is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// To be opened.
    Closed,
    /// Keys.
    Open,
    /// The end of what is left.
    Draining,
    /// Nothing.
    Drained,
}
