//! The logs of containers: which part is asked for, how it comes in, and where its lines end.

mod lines;
mod params;
#[cfg(test)]
mod tests;

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use crate::drive::{HttpMachine, Said};
use crate::error::{BodyProblem, Error, NetworkError};
use crate::exchange::{Answer, HttpEffect, HttpEvent, HttpRequest};
use crate::machine::{Deadline, Machine, Outbox, Ticket, Tickets};
use crate::response;
use crate::time::{Now, Time};

pub use lines::LogLines;
pub use params::{LogParams, LogSource};

/// Reads a log as it comes in, and ends with exactly one [`Ended`](LogOutput::Ended).
///
/// The first step sends. What the server says in place of a log is an error, and nothing of it is taken for log text.
///
/// ```
/// use cloudcoil_core::{KnownResource, LogOutput, LogParams, LogStream, Machine, Now, Outbox, Requests, Tickets};
/// use cloudcoil_core::k8s_openapi::api::core::v1::Pod;
///
/// let params = LogParams { follow: true, ..LogParams::default() };
/// let request = Requests::new(Pod::resource_type(), Some("default")).log("web-0", &params)?;
/// let mut log = LogStream::new(request.into(), Tickets::new(0)).timeout(None);
/// let mut out = Outbox::new();
/// assert!(log.step(Now::default(), None, &mut out).is_none());
/// assert!(matches!(out.pop(), Some(LogOutput::Http(_))));
/// # Ok::<(), cloudcoil_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct LogStream {
    state: State,
    timeout: Option<Duration>,
    /// How many more bytes may come.
    room: Option<(usize, usize)>,
    tickets: Tickets,
}

impl LogStream {
    /// How long a log may take in all, unless another time is asked for.
    pub const TIMEOUT: Duration = Duration::from_secs(30);

    /// A log that `request` asks for; tickets are taken from `tickets`.
    pub const fn new(request: HttpRequest, tickets: Tickets) -> Self {
        Self { state: State::Sending { request }, timeout: Some(Self::TIMEOUT), room: None, tickets }
    }

    /// The same, with another time limit from the first step to the end; `None`, for a log that is followed, waits for ever:
    /// a container may be silent for days, even before the head of the answer.
    #[must_use]
    pub fn timeout(self, timeout: Option<Duration>) -> Self {
        Self { timeout, ..self }
    }

    /// The same, for at most `limit` bytes: with more it ends with an error.
    #[must_use]
    pub fn limit(self, limit: usize) -> Self {
        Self { room: Some((limit, limit)), ..self }
    }

    fn send(&mut self, now: Now, request: HttpRequest, out: &mut Outbox<LogOutput>) {
        let ticket = self.tickets.issue();
        let give_up = self.timeout.map(|timeout| now.mono + timeout);
        self.state = State::AwaitingHead { ticket, give_up };
        out.push(LogOutput::Http(HttpEffect::Send { ticket, request }));
    }

    fn responded(&mut self, status: StatusCode, headers: HeaderMap) {
        if let State::AwaitingHead { ticket, give_up } = self.state {
            self.state = if status.is_success() {
                State::Receiving { ticket, give_up, status }
            } else {
                let answer = Answer::new(status, headers).limited(REFUSAL_LIMIT);
                State::Refused { ticket, give_up, answer: Box::new(answer) }
            };
        }
    }

    fn received(&mut self, mut bytes: Bytes, out: &mut Outbox<LogOutput>) {
        match &mut self.state {
            State::Refused { answer, .. } => answer.receive(&bytes),
            State::Receiving { status, .. } => {
                let status = *status;
                let over = self.room.filter(|(room, _)| bytes.len() > *room).map(|(room, limit)| {
                    bytes.truncate(room);
                    limit
                });
                if let Some((room, _)) = &mut self.room {
                    *room -= bytes.len();
                }
                if !bytes.is_empty() {
                    out.push(LogOutput::Received(bytes));
                }
                if let Some(limit) = over {
                    let answer = Answer::new(status, HeaderMap::new());
                    self.end(Err(response::body_error(&answer, BodyProblem::TooLarge(limit))), out);
                }
            }
            State::Sending { .. } | State::AwaitingHead { .. } | State::Done => {}
        }
    }

    fn closed(&mut self, result: Result<(), NetworkError>, out: &mut Outbox<LogOutput>) {
        let result = match (result, std::mem::replace(&mut self.state, State::Done)) {
            // A refusal that is cut short has said enough.
            (_, State::Refused { answer, .. }) => response::check(&answer),
            (Err(error), _) => Err(error.into()),
            (Ok(()), State::Receiving { .. }) => Ok(()),
            (Ok(()), _) => Err(NetworkError::no_answer().into()),
        };
        out.push(LogOutput::Ended(result));
    }

    /// Ends from this side.
    fn end(&mut self, result: Result<(), Error>, out: &mut Outbox<LogOutput>) {
        let state = std::mem::replace(&mut self.state, State::Done);
        if let Some(ticket) = state.ticket() {
            out.push(LogOutput::Http(HttpEffect::Cancel { ticket }));
        }
        if !matches!(state, State::Done) {
            out.push(LogOutput::Ended(result));
        }
    }
}

/// What a [`LogStream`] hears.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must know what it may say")]
pub enum LogInput {
    /// Something came of the request.
    Http(HttpEvent),
    /// Nobody reads on: it ends with [`Error::Cancelled`].
    Cancelled,
}

/// What a [`LogStream`] asks for and says.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must do all of them")]
pub enum LogOutput {
    /// Perform an HTTP effect.
    Http(HttpEffect),
    /// More of the log, cut anywhere.
    Received(Bytes),
    /// The log is over; said once, and nothing after it.
    Ended(Result<(), Error>),
}

impl Machine for LogStream {
    type Input = LogInput;
    type Output = LogOutput;

    fn on_input(&mut self, _: Now, input: LogInput, out: &mut Outbox<LogOutput>) {
        match input {
            LogInput::Cancelled => self.end(Err(Error::Cancelled), out),
            LogInput::Http(event) if self.state.ticket() != Some(event.ticket()) => {}
            LogInput::Http(HttpEvent::Responded { status, headers, .. }) => self.responded(status, headers),
            LogInput::Http(HttpEvent::Received { bytes, .. }) => self.received(bytes, out),
            LogInput::Http(HttpEvent::Closed { result, .. }) => self.closed(result, out),
        }
    }

    fn on_timer(&mut self, now: Now, out: &mut Outbox<LogOutput>) {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Sending { request } => self.send(now, request, out),
            awaited => {
                self.state = awaited;
                self.end(Err(Error::TimedOut(self.timeout.unwrap_or_default())), out);
            }
        }
    }

    fn deadline(&self) -> Option<Deadline> {
        match self.state {
            State::Sending { .. } => Some(Deadline::new(Time::ZERO, "send")),
            State::AwaitingHead { give_up, .. } | State::Receiving { give_up, .. } | State::Refused { give_up, .. } => {
                give_up.map(|at| Deadline::new(at, "the log"))
            }
            State::Done => None,
        }
    }
}

/// What a [`LogStream`] says besides effects; see [`LogOutput`].
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must do both")]
pub enum LogEvent {
    /// More of the log, cut anywhere.
    Received(Bytes),
    /// The log is over.
    Ended(Result<(), Error>),
}

impl HttpMachine for LogStream {
    type Event = LogEvent;

    fn hear(event: HttpEvent) -> LogInput {
        LogInput::Http(event)
    }

    fn sort(output: LogOutput) -> Said<LogEvent> {
        match output {
            LogOutput::Http(effect) => Said::Effect(effect),
            LogOutput::Received(bytes) => Said::Event(LogEvent::Received(bytes)),
            LogOutput::Ended(result) => Said::Event(LogEvent::Ended(result)),
        }
    }
}

/// What the log waits for.
#[derive(Clone, Debug, PartialEq)]
enum State {
    /// The first step.
    Sending { request: HttpRequest },
    /// The head of the answer.
    AwaitingHead { ticket: Ticket, give_up: Option<Time> },
    /// More of the log.
    Receiving { ticket: Ticket, give_up: Option<Time>, status: StatusCode },
    /// The rest of what the server says in place of a log.
    Refused { ticket: Ticket, give_up: Option<Time>, answer: Box<Answer> },
    /// Nothing.
    Done,
}

impl State {
    const fn ticket(&self) -> Option<Ticket> {
        match self {
            Self::AwaitingHead { ticket, .. } | Self::Receiving { ticket, .. } | Self::Refused { ticket, .. } => {
                Some(*ticket)
            }
            Self::Sending { .. } | Self::Done => None,
        }
    }
}

/// The longest refusal that is read, in bytes.
const REFUSAL_LIMIT: usize = 1 << 20;
