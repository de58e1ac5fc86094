//! One request and its answer.

mod retry;
mod retry_after;
#[cfg(test)]
mod tests;

use std::time::Duration;

use http::{HeaderMap, StatusCode};

use crate::backoff::Backoff;
use crate::error::{Error, NetworkError};
use crate::exchange::{Answer, HttpEffect, HttpEvent, HttpRequest};
use crate::machine::{Deadline, Machine, Outbox, Ticket, Tickets};
use crate::time::{Now, Time};

pub use retry::{Retry, RetryPolicy};
pub(crate) use retry_after::retry_after;

/// Sends one request, again where that is safe and of use, and ends with exactly one [`Done`](CallOutput::Done).
///
/// The first step sends. An answer of any HTTP code is an answer: [`response::decode`](crate::response::decode) tells a
/// success from a refusal. An answer that outgrows the limit is cut and its connection closed. What is sent again, and
/// when, is said with [`RetryPolicy`]; nothing is, unless a policy is [given](Self::retry).
///
/// ```
/// use cloudcoil_core::{Call, CallOutput, KnownResource, Machine, Now, Outbox, Requests, RetryPolicy, Tickets};
/// use cloudcoil_core::k8s_openapi::api::core::v1::Pod;
///
/// let request = Requests::new(Pod::resource_type(), Some("default")).get("web-0")?;
/// let mut call = Call::new(request.into(), Tickets::new(0)).retry(RetryPolicy::default(), 7);
/// let mut out = Outbox::new();
/// let deadline = call.step(Now::default(), None, &mut out);
/// assert!(matches!(out.pop(), Some(CallOutput::Http(_))) && deadline.is_some());
/// # Ok::<(), cloudcoil_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    state: State,
    timeout: Option<Duration>,
    /// When the time is up; known from the first step on.
    give_up: Option<Time>,
    limit: usize,
    tickets: Tickets,
    policy: RetryPolicy,
    backoff: Backoff,
}

impl Call {
    /// How long a call may take in all, unless another time is asked for.
    pub const TIMEOUT: Duration = Duration::from_secs(30);

    /// A call of `request` that takes its tickets from `tickets`.
    pub const fn new(request: HttpRequest, tickets: Tickets) -> Self {
        Self {
            state: State::Sending { request },
            timeout: Some(Self::TIMEOUT),
            give_up: None,
            limit: Answer::LIMIT,
            tickets,
            policy: RetryPolicy::OFF,
            backoff: Backoff::new(RetryPolicy::OFF.backoff, 0),
        }
    }

    /// The same, with another time limit from the first step to the end of the answer, all attempts and the waits between
    /// them included; `None` waits for ever.
    #[must_use]
    pub fn timeout(self, timeout: Option<Duration>) -> Self {
        Self { timeout, ..self }
    }

    /// The same, with another limit of the body in bytes.
    #[must_use]
    pub fn limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// The same, sent again as `policy` says; `seed` decides by how much waits are moved, so that callers that failed
    /// together do not come back together.
    #[must_use]
    pub fn retry(self, policy: RetryPolicy, seed: u64) -> Self {
        Self { policy, backoff: Backoff::new(policy.backoff, seed), ..self }
    }

    /// Whether the call has said [`Done`](CallOutput::Done).
    pub const fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// The source of tickets, for whatever the same parent asks for next.
    pub fn into_tickets(self) -> Tickets {
        self.tickets
    }

    /// The exchange under way, if there is one.
    pub(crate) const fn ticket(&self) -> Option<Ticket> {
        self.state.ticket()
    }

    /// How many attempts have been begun.
    const fn attempts(&self) -> u32 {
        self.backoff.failures().saturating_add(1)
    }

    fn send(&mut self, request: HttpRequest, out: &mut Outbox<CallOutput>) {
        let ticket = self.tickets.issue();
        // Kept only while there may be another attempt.
        let again = (self.backoff.failures() < self.policy.retries).then(|| request.clone());
        self.state = State::AwaitingHead { ticket, again };
        out.push(CallOutput::Http(HttpEffect::Send { ticket, request }));
    }

    fn responded(&mut self, status: StatusCode, headers: HeaderMap) {
        if let State::AwaitingHead { ticket, again } = &mut self.state {
            let answer = Answer::new(status, headers).limited(self.limit);
            self.state = State::Receiving { ticket: *ticket, again: again.take(), answer };
        }
    }

    fn received(&mut self, bytes: &[u8], out: &mut Outbox<CallOutput>) {
        let State::Receiving { answer, .. } = &mut self.state else { return };
        answer.receive(bytes);
        if answer.over_limit().is_some() {
            self.cancel(None, out);
        }
    }

    fn closed(&mut self, now: Now, result: Result<(), NetworkError>, out: &mut Outbox<CallOutput>) {
        let (again, ended) = match (result, std::mem::replace(&mut self.state, State::Done)) {
            (Ok(()), State::Receiving { answer, again, .. }) => (again, Ok(answer)),
            (Err(error), State::Receiving { again, .. } | State::AwaitingHead { again, .. }) => (again, Err(error)),
            (Ok(()), State::AwaitingHead { again, .. }) => (again, Err(NetworkError::no_answer())),
            (_, State::Sending { .. } | State::Waiting { .. } | State::Done) => return,
        };
        let retry = again.and_then(|request| {
            let (cause, asked) = retry::reason(&request, ended.as_ref(), now.wall)?;
            Some((request, cause, asked))
        });
        match retry {
            Some((request, cause, asked)) => self.wait(now, request, ended, cause, asked, out),
            None => self.finish(ended, out),
        }
    }

    /// Waits for the next attempt, if that comes before the time is up: what went wrong says more than that it was.
    fn wait(
        &mut self,
        now: Now,
        request: HttpRequest,
        ended: Result<Answer, NetworkError>,
        cause: Error,
        asked: Option<Duration>,
        out: &mut Outbox<CallOutput>,
    ) {
        let attempt = self.attempts();
        let after = self.policy.wait(asked, &mut self.backoff);
        let until = now.mono + after;
        if self.give_up.is_some_and(|give_up| give_up <= until) {
            return self.finish_after(attempt, ended, out);
        }
        self.state = State::Waiting { until, request };
        out.push(CallOutput::Retrying(Retry { attempt, cause, after }));
    }

    fn finish(&mut self, ended: Result<Answer, NetworkError>, out: &mut Outbox<CallOutput>) {
        self.finish_after(self.attempts(), ended, out);
    }

    fn finish_after(&mut self, attempts: u32, ended: Result<Answer, NetworkError>, out: &mut Outbox<CallOutput>) {
        self.state = State::Done;
        out.push(CallOutput::Done(match ended {
            Ok(answer) => Ok(answer.after(attempts)),
            Err(error) => Err(error.after(attempts).into()),
        }));
    }

    /// Ends the call from this side, with `error`, or with as much of the answer as has come.
    fn cancel(&mut self, error: Option<Error>, out: &mut Outbox<CallOutput>) {
        let state = std::mem::replace(&mut self.state, State::Done);
        if let Some(ticket) = state.ticket() {
            out.push(CallOutput::Http(HttpEffect::Cancel { ticket }));
        }
        match (state, error) {
            (State::Done, _) => {}
            (State::Receiving { answer, .. }, None) => self.finish(Ok(answer), out),
            (_, error) => out.push(CallOutput::Done(Err(error.unwrap_or(Error::Cancelled)))),
        }
    }
}

/// What a [`Call`] hears.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must know what it may say")]
pub enum CallInput {
    /// Something came of the request.
    Http(HttpEvent),
    /// Nobody waits for the answer any more: the call ends with [`Error::Cancelled`].
    Cancelled,
}

/// What a [`Call`] asks for and says.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must do all of them")]
pub enum CallOutput {
    /// Perform an HTTP effect.
    Http(HttpEffect),
    /// An attempt failed, and there will be another. For whoever looks on; nothing has to be done.
    Retrying(Retry),
    /// The call is over; said once, and nothing after it.
    Done(Result<Answer, Error>),
}

impl Machine for Call {
    type Input = CallInput;
    type Output = CallOutput;

    fn on_input(&mut self, now: Now, input: CallInput, out: &mut Outbox<CallOutput>) {
        match input {
            CallInput::Cancelled => self.cancel(Some(Error::Cancelled), out),
            CallInput::Http(event) if self.state.ticket() != Some(event.ticket()) => {}
            CallInput::Http(HttpEvent::Responded { status, headers, .. }) => self.responded(status, headers),
            CallInput::Http(HttpEvent::Received { bytes, .. }) => self.received(&bytes, out),
            CallInput::Http(HttpEvent::Closed { result, .. }) => self.closed(now, result, out),
        }
    }

    fn on_timer(&mut self, now: Now, out: &mut Outbox<CallOutput>) {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Sending { request } => {
                self.give_up = self.timeout.map(|timeout| now.mono + timeout);
                self.send(request, out);
            }
            State::Waiting { request, .. } if self.give_up.is_none_or(|give_up| now.mono < give_up) => {
                self.send(request, out);
            }
            awaited => {
                self.state = awaited;
                self.cancel(Some(Error::TimedOut(self.timeout.unwrap_or_default())), out);
            }
        }
    }

    fn deadline(&self) -> Option<Deadline> {
        match self.state {
            State::Sending { .. } => Some(Deadline::new(Time::ZERO, "send")),
            State::AwaitingHead { .. } | State::Receiving { .. } => self.give_up.map(|at| Deadline::new(at, "answer")),
            State::Waiting { until, .. } => Some(Deadline::new(until, "retry")),
            State::Done => None,
        }
    }
}

/// What the call waits for.
#[derive(Clone, Debug, PartialEq)]
enum State {
    /// The first step.
    Sending { request: HttpRequest },
    /// The head of the answer; `again` is the request, if it may be sent once more.
    AwaitingHead { ticket: Ticket, again: Option<HttpRequest> },
    /// The rest of the body.
    Receiving { ticket: Ticket, again: Option<HttpRequest>, answer: Answer },
    /// The time of the next attempt.
    Waiting { until: Time, request: HttpRequest },
    /// Nothing.
    Done,
}

impl State {
    const fn ticket(&self) -> Option<Ticket> {
        match self {
            Self::AwaitingHead { ticket, .. } | Self::Receiving { ticket, .. } => Some(*ticket),
            Self::Sending { .. } | Self::Waiting { .. } | Self::Done => None,
        }
    }
}
