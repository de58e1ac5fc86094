//! A slow and plain queue to compare the real one with.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::time::Duration;

use super::{QueueConfig, QueueInput, QueueOutput, WorkQueue};
use crate::backoff::BackoffPolicy;
use crate::machine::{Machine, Outbox};
use crate::time::{Now, Time};

/// Does a list of operations to a queue and to its model, four bytes an operation, and compares what they say.
///
/// # Panics
/// If they differ, or if a key is with two workers at once, or if a key that was added is never started.
pub fn queue_ops(data: &[u8]) {
    let (workers, data) = data.split_first().unwrap_or((&0, &[]));
    let workers = usize::from(workers % 4) + 1;
    let mut run = Run::new(workers, data.first().is_some_and(|byte| byte & 1 == 1));
    for chunk in data.chunks_exact(4) {
        let [what, key, amount, unit] = [chunk[0], chunk[1] % 6, chunk[2], chunk[3]];
        let duration = Duration::from_millis(u64::from(amount % 8) << (unit % 16));
        let done = if unit & 16 == 0 { run.busy.iter().nth(usize::from(amount)).copied().unwrap_or(key) } else { key };
        run.play(match what % 32 {
            0..=6 => Op::Input(QueueInput::Added(key)),
            7..=10 => Op::Input(QueueInput::AddedAfter(key, duration)),
            11 => Op::Input(QueueInput::AddedAfter(key, Duration::MAX)),
            12..=15 => Op::Input(QueueInput::Retried { key: done, after: (unit & 32 != 0).then_some(duration) }),
            16..=22 => Op::Input(QueueInput::Done(done)),
            23 => Op::Input(QueueInput::Forgotten(key)),
            26 => Op::Input(QueueInput::Held(done)),
            27 | 28 => Op::Input(QueueInput::Released(key)),
            24 => Op::Input(QueueInput::Opened),
            25 if amount < 32 => Op::Input(QueueInput::ShutDown { drain: unit & 16 == 0 }),
            _ => Op::Wait(duration),
        });
    }
    run.play(Op::Input(QueueInput::Opened));
    run.play(Op::Input(QueueInput::ShutDown { drain: true }));
    for key in 0..6 {
        run.play(Op::Input(QueueInput::Released(key)));
    }
    while let Some(key) = run.busy.first().copied() {
        run.play(Op::Input(QueueInput::Done(key)));
    }
    assert!(run.ended, "nothing is being worked on, and yet the queue is not drained");
}

enum Op {
    Input(QueueInput<u8>),
    Wait(Duration),
}

struct Run {
    queue: WorkQueue<u8>,
    model: Model,
    now: Now,
    busy: BTreeSet<u8>,
    ended: bool,
}

impl Run {
    fn new(workers: usize, closed: bool) -> Self {
        let backoff = BackoffPolicy { jitter: 0, ..BackoffPolicy::RECONCILE };
        let workers = NonZeroUsize::new(workers).unwrap_or(NonZeroUsize::MIN);
        let config = QueueConfig { workers, backoff, seed: 0 };
        let queue = if closed { WorkQueue::closed(config) } else { WorkQueue::new(config) };
        let model = Model { workers: workers.get(), open: !closed, ..Model::default() };
        Self { queue, model, now: Now::default(), busy: BTreeSet::new(), ended: false }
    }

    fn play(&mut self, op: Op) {
        match op {
            Op::Input(input) => {
                if let QueueInput::Done(key) = &input {
                    self.busy.remove(key);
                }
                self.step(Some(input));
            }
            Op::Wait(duration) => {
                let end = self.now.after(duration);
                while let Some(due) = self.queue.deadline().filter(|due| due.at <= end.mono) {
                    self.now = self.now.after(due.at.since(self.now.mono));
                    self.step(None);
                }
                self.now = end;
            }
        }
    }

    fn step(&mut self, input: Option<QueueInput<u8>>) {
        let mut out = Outbox::new();
        let _ = self.queue.step(self.now, input.clone(), &mut out);
        let said: Vec<_> = out.into_iter().collect();
        assert!(said.is_empty() || !self.ended, "{said:?} after the end");
        for output in &said {
            match output {
                QueueOutput::Start(key) => assert!(self.busy.insert(*key), "{key} is with two workers"),
                QueueOutput::Drained => self.ended = true,
                QueueOutput::NotProcessing(_) => {}
            }
        }
        assert_eq!(said, self.model.step(self.now.mono, input));
        let Model { ready, wanted, processing, delayed, .. } = &self.model;
        let counts = (self.queue.depth(), self.queue.processing(), self.queue.delayed());
        assert_eq!(counts, (ready.len() + wanted.len(), processing.len(), delayed.len()));
        assert_eq!(self.queue.deadline().map(|due| due.at), delayed.iter().map(|delay| delay.0).min());
        for key in 0..6 {
            assert_eq!(self.queue.num_retries(&key), self.model.retries.get(&key).copied().unwrap_or_default());
        }
    }
}

#[derive(Default)]
struct Model {
    workers: usize,
    open: bool,
    shut: bool,
    ended: bool,
    ready: Vec<u8>,
    held: BTreeSet<u8>,
    /// Held keys that would be ready.
    wanted: BTreeSet<u8>,
    processing: BTreeSet<u8>,
    /// Keys asked for while they were being worked on.
    again: BTreeSet<u8>,
    /// In the order in which they were asked for.
    delayed: Vec<(Time, u8)>,
    retries: BTreeMap<u8, u32>,
}

impl Model {
    fn step(&mut self, now: Time, input: Option<QueueInput<u8>>) -> Vec<QueueOutput<u8>> {
        let mut said = Vec::new();
        if self.ended {
            return said;
        }
        let mut due: Vec<_> = self.delayed.iter().copied().filter(|(at, _)| *at <= now).collect();
        due.sort_by_key(|(at, _)| *at);
        for (_, key) in due {
            self.add(key);
        }
        self.start(&mut said);
        if let Some(input) = input.filter(|_| !self.ended) {
            self.input(now, input, &mut said);
            self.start(&mut said);
        }
        said
    }

    fn input(&mut self, now: Time, input: QueueInput<u8>, said: &mut Vec<QueueOutput<u8>>) {
        match input {
            QueueInput::Opened => self.open = true,
            QueueInput::Done(key) if self.processing.remove(&key) => {
                if self.again.remove(&key) {
                    self.ready(key);
                }
            }
            QueueInput::Done(key) => said.push(QueueOutput::NotProcessing(key)),
            QueueInput::Forgotten(key) => _ = self.retries.remove(&key),
            QueueInput::Held(key) if self.processing.contains(&key) => _ = self.held.insert(key),
            QueueInput::Held(_) => {}
            QueueInput::Released(key) => {
                self.held.remove(&key);
                if self.wanted.remove(&key) {
                    self.ready.push(key);
                }
            }
            QueueInput::ShutDown { drain } => {
                self.shut = true;
                self.delayed.clear();
                self.retries.clear();
                if !drain || !self.open {
                    self.ready.clear();
                    self.wanted.clear();
                    self.again.clear();
                }
                self.open = true;
            }
            _ if self.shut => {}
            QueueInput::Added(key) | QueueInput::AddedAfter(key, Duration::ZERO) => self.add(key),
            QueueInput::AddedAfter(key, delay) => self.delay(now + delay, key),
            QueueInput::Retried { key, after } => {
                let failures = self.retries.entry(key).or_default();
                let delay = Duration::from_secs(60.min(1 << (*failures).min(10)));
                *failures += 1;
                self.delay(now + delay.max(after.unwrap_or_default()), key);
            }
        }
    }

    fn ready(&mut self, key: u8) {
        if self.held.contains(&key) {
            self.wanted.insert(key);
        } else {
            self.ready.push(key);
        }
    }

    fn comes(&self, key: u8) -> bool {
        self.ready.contains(&key) || self.wanted.contains(&key) || self.again.contains(&key)
    }

    fn add(&mut self, key: u8) {
        self.delayed.retain(|(_, delayed)| *delayed != key);
        if self.comes(key) {
        } else if self.processing.contains(&key) {
            self.again.insert(key);
        } else {
            self.ready(key);
        }
    }

    fn delay(&mut self, at: Time, key: u8) {
        let sooner = self.delayed.iter().any(|(other, delayed)| *delayed == key && *other <= at);
        if !sooner && !self.comes(key) {
            self.delayed.retain(|(_, delayed)| *delayed != key);
            self.delayed.push((at, key));
        }
    }

    fn start(&mut self, said: &mut Vec<QueueOutput<u8>>) {
        while self.open && self.processing.len() < self.workers && !self.ready.is_empty() {
            let key = self.ready.remove(0);
            self.processing.insert(key);
            said.push(QueueOutput::Start(key));
        }
        if self.shut && self.ready.len() + self.wanted.len() == 0 && self.processing.is_empty() {
            self.ended = true;
            said.push(QueueOutput::Drained);
        }
    }
}
