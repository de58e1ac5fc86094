//! The one trait that every machine implements, and what passes through it.

use std::collections::VecDeque;
use std::collections::vec_deque::Drain;

use crate::time::{Now, Time};

/// Names one effect in flight: which machine asked for it, and which of its effects it is.
///
/// Never reused by the machine that issued it, so an answer that comes late names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    machine: u32,
    effect: u64,
}

impl Ticket {
    /// The machine that issued the ticket, as its parent numbered it: what a parent routes an answer by.
    pub const fn machine(self) -> u32 {
        self.machine
    }

    /// The number of the effect within its machine, counting from 1.
    pub const fn effect(self) -> u64 {
        self.effect
    }
}

/// Issues the tickets of one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tickets {
    machine: u32,
    issued: u64,
}

impl Tickets {
    /// Tickets for the machine that its parent knows as `machine`.
    pub const fn new(machine: u32) -> Self {
        Self { machine, issued: 0 }
    }

    /// The next ticket; never one that was issued before.
    pub fn issue(&mut self) -> Ticket {
        self.issued += 1;
        Ticket { machine: self.machine, effect: self.issued }
    }
}

/// When a machine wants to be stepped next, and why: the reason shows in traces of a loop that will not rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline {
    /// The instant at which the timer is due.
    pub at: Time,
    /// What is waited for, in a word or two.
    pub why: &'static str,
}

impl Deadline {
    /// A deadline at `at`, because of `why`.
    pub const fn new(at: Time, why: &'static str) -> Self {
        Self { at, why }
    }

    /// The earlier of two deadlines, either of which may be absent.
    pub fn earliest(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }
}

/// Where a machine puts its outputs. The caller owns it, drains it, and reuses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outbox<O>(VecDeque<O>);

impl<O> Outbox<O> {
    /// An empty outbox.
    pub const fn new() -> Self {
        Self(VecDeque::new())
    }

    /// Adds an output behind those already there.
    pub fn push(&mut self, output: O) {
        self.0.push_back(output);
    }

    /// Takes the oldest output.
    pub fn pop(&mut self) -> Option<O> {
        self.0.pop_front()
    }

    /// Takes all outputs, oldest first.
    pub fn drain(&mut self) -> Drain<'_, O> {
        self.0.drain(..)
    }

    /// The outputs, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &O> + DoubleEndedIterator {
        self.0.iter()
    }

    /// Whether there is nothing to perform.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many outputs wait to be performed.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl<O> Default for Outbox<O> {
    fn default() -> Self {
        Self::new()
    }
}

impl<O> Extend<O> for Outbox<O> {
    fn extend<I: IntoIterator<Item = O>>(&mut self, outputs: I) {
        self.0.extend(outputs);
    }
}

impl<O> IntoIterator for Outbox<O> {
    type Item = O;
    type IntoIter = std::collections::vec_deque::IntoIter<O>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// A pure state machine: no clock, socket, thread, lock, global or random source of its own.
///
/// A driver calls [`step`](Machine::step) and nothing else: with an input that has come, or with `None` when
/// the deadline of the step before has passed. It then performs every output and waits for the next input or
/// the returned deadline, whichever is first.
///
/// # Laws
/// Each holds for every machine of this crate and is checked by [`laws`](crate::laws):
/// 1. Timers due at an instant fire before an input of that instant.
/// 2. The returned deadline lies after `now`.
/// 3. Every input is legal in every state; one that names an old ticket changes nothing.
/// 4. Nothing is held back: after `step` all outputs are in the outbox.
/// 5. The same seed, inputs and times give the same outputs.
/// 6. A machine that has ended stays ended, with the same answer.
///
/// The driver's part: `now` never goes back for one machine.
pub trait Machine {
    /// A finished effect, or a command.
    type Input;
    /// An effect to perform, or an event.
    type Output;

    /// Takes one input. Total: every input is legal in every state.
    fn on_input(&mut self, now: Now, input: Self::Input, out: &mut Outbox<Self::Output>);

    /// Fires the timers due at `now`. Called only when the deadline has passed.
    fn on_timer(&mut self, now: Now, out: &mut Outbox<Self::Output>);

    /// When the next timer is due; `None` if only an input can move the machine.
    fn deadline(&self) -> Option<Deadline>;

    /// The only call a driver makes. Due timers fire before the input; when it returns, every output is in
    /// `out` and the deadline lies after `now`.
    ///
    /// # Panics
    /// If the machine stays due however often its timer fires, which is a bug in the machine and no input can cause.
    #[must_use = "wait until this deadline, or for the next input"]
    fn step(&mut self, now: Now, input: Option<Self::Input>, out: &mut Outbox<Self::Output>) -> Option<Deadline> {
        fire(self, now, out);
        if let Some(input) = input {
            self.on_input(now, input, out);
            fire(self, now, out);
        }
        self.deadline()
    }
}

/// Fires until nothing is due.
fn fire<M: Machine + ?Sized>(machine: &mut M, now: Now, out: &mut Outbox<M::Output>) {
    for _ in 0..MAX_FIRES {
        match machine.deadline() {
            Some(deadline) if deadline.at <= now.mono => machine.on_timer(now, out),
            _ => return,
        }
    }
    panic!("timer {:?} still due at {:?} after {MAX_FIRES} fires", machine.deadline(), now.mono);
}

/// A parent with many children fires one of them at a time, so this bounds a loop, not a crowd.
const MAX_FIRES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Says `tick` at its time, then echoes what it is told.
    struct Echo(Option<Time>);

    impl Machine for Echo {
        type Input = &'static str;
        type Output = &'static str;

        fn on_input(&mut self, _: Now, input: &'static str, out: &mut Outbox<&'static str>) {
            out.push(input);
        }

        fn on_timer(&mut self, _: Now, out: &mut Outbox<&'static str>) {
            self.0 = None;
            out.push("tick");
        }

        fn deadline(&self) -> Option<Deadline> {
            self.0.map(|at| Deadline::new(at, "tick"))
        }
    }

    #[test]
    fn due_timers_fire_before_the_input_of_the_same_instant() {
        let mut out = Outbox::new();
        let now = Now::default().after(Duration::from_secs(1));
        let deadline = Echo(Some(now.mono)).step(now, Some("input"), &mut out);
        assert_eq!(out.into_iter().collect::<Vec<_>>(), ["tick", "input"]);
        assert_eq!(deadline, None);
    }

    #[test]
    fn tickets_are_never_reused() {
        let mut tickets = Tickets::new(7);
        let (one, two) = (tickets.issue(), tickets.issue());
        assert_ne!(one, two);
        assert_eq!((one.machine(), one.effect(), two.effect()), (7, 1, 2));
    }

    #[test]
    fn the_earlier_deadline_wins() {
        let (early, late) = (Deadline::new(Time::from_secs(1), "a"), Deadline::new(Time::from_secs(2), "b"));
        assert_eq!(Deadline::earliest(Some(late), Some(early)), Some(early));
        assert_eq!(Deadline::earliest(None, Some(late)), Some(late));
        assert_eq!(Deadline::earliest(None, None), None);
    }
}
