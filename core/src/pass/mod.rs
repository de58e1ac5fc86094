//! One reconcile of one key.

mod outcome;
#[cfg(test)]
mod tests;
mod update;
mod writing;

use std::sync::Arc;
use std::time::Duration;

use crate::call::{Call, CallInput, CallOutput};
use crate::exchange::{HttpEffect, HttpEvent};
use crate::machine::{Deadline, Machine, Outbox, Ticket, Tickets};
use crate::resource::{ResourceKey, ResourceType};
use crate::time::{Now, Time};

pub use outcome::{Next, Outcome, PassError, PassResult, Verdict};
pub use update::{ObjectVersion, StatusEndpoint, Update};

use writing::Writing;

/// Has the handler run for one key, writes what it changed, and says how that went.
///
/// The first step asks for the run. A change of the object becomes one patch that the API server takes only if the
/// object is still the one, in the version, that the handler was given; where the type has a `status` subresource, a
/// change of the status goes there, after the rest. No change sends nothing. An object that is gone meanwhile ends the
/// pass well, and one that has changed ends it with [`PassResult::Conflict`].
///
/// A pass is never over while its handler may still be running: when the pass takes too long, or is cancelled, it asks
/// for the handler to be stopped and waits for [`Ran`](PassInput::Ran).
#[derive(Clone, Debug)]
pub struct Pass {
    key: ResourceKey,
    config: Arc<PassConfig>,
    tickets: Tickets,
    /// When the pass has taken too long; known from the first step on.
    give_up: Option<Time>,
    state: State,
}

/// How passes over objects of one type are done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made with struct update syntax")]
pub struct PassConfig {
    /// The type of the objects.
    pub resource_type: ResourceType,
    /// How long a pass may take, writing included; `None` lets it take any time.
    pub timeout: Option<Duration>,
    /// How long one request may take.
    pub request_timeout: Duration,
    /// Who is writing, for field ownership; `None` leaves it to the API server.
    pub field_manager: Option<String>,
    /// Where the status is written.
    pub status: StatusEndpoint,
}

impl PassConfig {
    /// Passes over objects of `resource_type` that may take any time.
    pub const fn new(resource_type: ResourceType) -> Self {
        let (request_timeout, status) = (Call::TIMEOUT, StatusEndpoint::Detect);
        Self { resource_type, timeout: None, request_timeout, field_manager: None, status }
    }
}

/// What a [`Pass`] hears.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must know what it may say")]
pub enum PassInput {
    /// The handler has ended, by itself or because it was stopped.
    Ran {
        /// Names the run.
        ticket: Ticket,
        /// What it came to.
        outcome: Outcome,
    },
    /// Something came of a request.
    Http(HttpEvent),
    /// Nobody wants the pass to go on.
    Cancelled,
}

/// What a [`Pass`] asks for and says.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must do all of them")]
pub enum PassOutput {
    /// Run the handler for this key, and answer with one [`Ran`](PassInput::Ran), whatever becomes of it.
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
    /// The pass is over; said once, and nothing after it.
    Finished(Finished),
}

/// The end of a [`Pass`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finished {
    /// The object's key.
    pub key: ResourceKey,
    /// How it ended.
    pub result: PassResult,
    /// The version of the object that its writes have led to, if they changed anything.
    pub written: Option<ObjectVersion>,
}

impl Pass {
    /// A pass over the object of `key` that takes its tickets from `tickets`.
    pub const fn new(key: ResourceKey, config: Arc<PassConfig>, tickets: Tickets) -> Self {
        Self { key, config, tickets, give_up: None, state: State::Starting }
    }

    /// The source of tickets, for the next pass that its parent knows by the same number.
    pub fn into_tickets(self) -> Tickets {
        self.tickets
    }

    fn start(&mut self, now: Now, out: &mut Outbox<PassOutput>) {
        let ticket = self.tickets.issue();
        self.give_up = self.config.timeout.map(|timeout| now.mono + timeout);
        self.state = State::Running { ticket };
        out.push(PassOutput::Run { ticket, key: self.key.clone() });
    }

    fn ran(&mut self, now: Now, outcome: Outcome, out: &mut Outbox<PassOutput>) {
        match Writing::start(outcome, &self.config) {
            Ok(writing) => self.write(now, Box::new(writing), out),
            Err(result) => self.finish(result, None, out),
        }
    }

    /// Sends the next patch, if there is one.
    fn write(&mut self, now: Now, mut writing: Box<Writing>, out: &mut Outbox<PassOutput>) {
        match writing.request(&self.key, &self.config) {
            None => {
                let written = writing.written();
                self.finish(writing.into_result(), written, out);
            }
            Some(Err(error)) => self.finish(PassError::Write(error).into(), writing.written(), out),
            Some(Ok(request)) => {
                let timeout = Some(self.config.request_timeout);
                let call = Call::new(request.into(), self.tickets.clone()).timeout(timeout);
                self.state = State::Writing { writing, call: Box::new(call) };
                self.call(now, None, out);
            }
        }
    }

    /// Steps the request in flight, and goes on when it has its answer.
    fn call(&mut self, now: Now, input: Option<CallInput>, out: &mut Outbox<PassOutput>) {
        let State::Writing { call, .. } = &mut self.state else { return };
        let mut said = Outbox::new();
        let _ = call.step(now, input, &mut said);
        for output in said {
            match output {
                CallOutput::Http(effect) => out.push(PassOutput::Http(effect)),
                // A pass that fails is done anew, from what is stored by then.
                CallOutput::Retrying(_) => {}
                CallOutput::Done(answer) => {
                    let state = std::mem::replace(&mut self.state, State::Ended);
                    let State::Writing { mut writing, call } = state else { return };
                    self.tickets = call.into_tickets();
                    match writing.answered(answer) {
                        Ok(()) => self.write(now, writing, out),
                        Err(result) => self.finish(result, writing.written(), out),
                    }
                    return;
                }
            }
        }
    }

    /// Ends the pass from this side; at once unless a handler has to be stopped first.
    fn stop(&mut self, now: Now, result: PassResult, out: &mut Outbox<PassOutput>) {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Starting => self.finish(result, None, out),
            State::Running { ticket } => {
                self.state = State::Stopping { ticket, result };
                out.push(PassOutput::Cancel { ticket });
            }
            State::Writing { writing, mut call } => {
                let mut said = Outbox::new();
                let _ = call.step(now, Some(CallInput::Cancelled), &mut said);
                out.extend(said.into_iter().filter_map(|output| match output {
                    CallOutput::Http(effect) => Some(PassOutput::Http(effect)),
                    CallOutput::Retrying(_) | CallOutput::Done(_) => None,
                }));
                self.tickets = call.into_tickets();
                self.finish(result, writing.written(), out);
            }
            state @ (State::Stopping { .. } | State::Ended) => self.state = state,
        }
    }

    fn finish(&mut self, result: PassResult, written: Option<ObjectVersion>, out: &mut Outbox<PassOutput>) {
        self.state = State::Ended;
        out.push(PassOutput::Finished(Finished { key: self.key.clone(), result, written }));
    }
}

impl Machine for Pass {
    type Input = PassInput;
    type Output = PassOutput;

    fn on_input(&mut self, now: Now, input: PassInput, out: &mut Outbox<PassOutput>) {
        match (&mut self.state, input) {
            (State::Running { ticket }, PassInput::Ran { ticket: ran, outcome }) if *ticket == ran => {
                self.ran(now, outcome, out);
            }
            (State::Stopping { ticket, result }, PassInput::Ran { ticket: ran, .. }) if *ticket == ran => {
                let result = std::mem::replace(result, PassResult::Cancelled);
                self.finish(result, None, out);
            }
            (State::Writing { .. }, PassInput::Http(event)) => self.call(now, Some(CallInput::Http(event)), out),
            (_, PassInput::Cancelled) => self.stop(now, PassResult::Cancelled, out),
            (_, PassInput::Ran { .. } | PassInput::Http(_)) => {}
        }
    }

    fn on_timer(&mut self, now: Now, out: &mut Outbox<PassOutput>) {
        match &self.state {
            State::Starting => self.start(now, out),
            State::Running { .. } | State::Writing { .. } if self.give_up.is_some_and(|at| at <= now.mono) => {
                let timeout = self.config.timeout.unwrap_or_default();
                self.stop(now, PassError::TimedOut(timeout).into(), out);
            }
            State::Writing { .. } => self.call(now, None, out),
            State::Running { .. } | State::Stopping { .. } | State::Ended => {}
        }
    }

    fn deadline(&self) -> Option<Deadline> {
        let give_up = self.give_up.map(|at| Deadline::new(at, "end of the pass"));
        match &self.state {
            State::Starting => Some(Deadline::new(Time::ZERO, "start of the pass")),
            State::Running { .. } => give_up,
            State::Writing { call, .. } => Deadline::earliest(give_up, call.deadline()),
            State::Stopping { .. } | State::Ended => None,
        }
    }
}

/// What the pass waits for.
#[derive(Clone, Debug)]
enum State {
    /// The first step.
    Starting,
    /// The handler.
    Running { ticket: Ticket },
    /// The handler, which has been told to stop; whatever it says now, the pass ends with `result`.
    Stopping { ticket: Ticket, result: PassResult },
    /// The answer to a patch.
    Writing { writing: Box<Writing>, call: Box<Call> },
    /// Nothing.
    Ended,
}
