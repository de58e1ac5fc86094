//! One request and its answer.

use std::time::Duration;

use http::{HeaderMap, StatusCode};

use crate::error::{Error, NetworkError};
use crate::exchange::{Answer, HttpEffect, HttpEvent, HttpRequest};
use crate::machine::{Deadline, Machine, Outbox, Ticket, Tickets};
use crate::time::{Now, Time};

/// Sends one request, collects its answer, and ends with exactly one [`Done`](CallOutput::Done).
///
/// The first step sends. An answer of any HTTP code is an answer: [`response::decode`](crate::response::decode) tells a
/// success from a refusal. An answer that outgrows the limit is cut and its connection closed.
///
/// ```
/// use cloudcoil_core::{Call, CallOutput, KnownResource, Machine, Now, Outbox, Requests, Tickets};
/// use cloudcoil_core::k8s_openapi::api::core::v1::Pod;
///
/// let request = Requests::new(Pod::resource_type(), Some("default")).get("web-0")?;
/// let mut call = Call::new(request.into(), Tickets::new(0));
/// let mut out = Outbox::new();
/// let deadline = call.step(Now::default(), None, &mut out);
/// assert!(matches!(out.pop(), Some(CallOutput::Http(_))) && deadline.is_some());
/// # Ok::<(), cloudcoil_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    state: State,
    timeout: Option<Duration>,
    limit: usize,
    tickets: Tickets,
}

impl Call {
    /// How long a call may take in all, unless another time is asked for.
    pub const TIMEOUT: Duration = Duration::from_secs(30);

    /// A call of `request` that takes its tickets from `tickets`.
    pub const fn new(request: HttpRequest, tickets: Tickets) -> Self {
        Self { state: State::Sending { request }, timeout: Some(Self::TIMEOUT), limit: Answer::LIMIT, tickets }
    }

    /// The same, with another time limit from the first step to the end of the answer; `None` waits for ever.
    #[must_use]
    pub fn timeout(self, timeout: Option<Duration>) -> Self {
        Self { timeout, ..self }
    }

    /// The same, with another limit of the body in bytes.
    #[must_use]
    pub fn limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Whether the call has said [`Done`](CallOutput::Done).
    pub const fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// The source of tickets, for whatever the same parent asks for next.
    pub fn into_tickets(self) -> Tickets {
        self.tickets
    }

    fn send(&mut self, now: Now, request: HttpRequest, out: &mut Outbox<CallOutput>) {
        let ticket = self.tickets.issue();
        let give_up = self.timeout.map(|timeout| now.mono + timeout);
        self.state = State::AwaitingHead { ticket, give_up };
        out.push(CallOutput::Http(HttpEffect::Send { ticket, request }));
    }

    fn responded(&mut self, status: StatusCode, headers: HeaderMap) {
        if let State::AwaitingHead { ticket, give_up } = self.state {
            let answer = Answer::new(status, headers).limited(self.limit);
            self.state = State::Receiving { ticket, give_up, answer };
        }
    }

    fn received(&mut self, bytes: &[u8], out: &mut Outbox<CallOutput>) {
        let State::Receiving { answer, .. } = &mut self.state else { return };
        answer.receive(bytes);
        if answer.over_limit().is_some() {
            self.cancel(None, out);
        }
    }

    fn closed(&mut self, result: Result<(), NetworkError>, out: &mut Outbox<CallOutput>) {
        let whole = match (result, std::mem::replace(&mut self.state, State::Done)) {
            (Ok(()), State::Receiving { answer, .. }) => Ok(answer),
            (Ok(()), _) => Err(NetworkError::no_answer().into()),
            (Err(error), _) => Err(error.into()),
        };
        out.push(CallOutput::Done(whole));
    }

    /// Ends the exchange from this side, with `error`, or with as much of the answer as has come.
    fn cancel(&mut self, error: Option<Error>, out: &mut Outbox<CallOutput>) {
        let state = std::mem::replace(&mut self.state, State::Done);
        if let Some(ticket) = state.ticket() {
            out.push(CallOutput::Http(HttpEffect::Cancel { ticket }));
        }
        match (state, error) {
            (State::Done, _) => {}
            (State::Receiving { answer, .. }, None) => out.push(CallOutput::Done(Ok(answer))),
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
    /// The call is over; said once, and nothing after it.
    Done(Result<Answer, Error>),
}

impl Machine for Call {
    type Input = CallInput;
    type Output = CallOutput;

    fn on_input(&mut self, _: Now, input: CallInput, out: &mut Outbox<CallOutput>) {
        match input {
            CallInput::Cancelled => self.cancel(Some(Error::Cancelled), out),
            CallInput::Http(event) if self.state.ticket() != Some(event.ticket()) => {}
            CallInput::Http(HttpEvent::Responded { status, headers, .. }) => self.responded(status, headers),
            CallInput::Http(HttpEvent::Received { bytes, .. }) => self.received(&bytes, out),
            CallInput::Http(HttpEvent::Closed { result, .. }) => self.closed(result, out),
        }
    }

    fn on_timer(&mut self, now: Now, out: &mut Outbox<CallOutput>) {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Sending { request } => self.send(now, request, out),
            awaited => {
                self.state = awaited;
                self.cancel(Some(Error::TimedOut(self.timeout.unwrap_or_default())), out);
            }
        }
    }

    fn deadline(&self) -> Option<Deadline> {
        match self.state {
            State::Sending { .. } => Some(Deadline::new(Time::ZERO, "send")),
            State::AwaitingHead { give_up, .. } | State::Receiving { give_up, .. } => {
                give_up.map(|at| Deadline::new(at, "answer"))
            }
            State::Done => None,
        }
    }
}

/// What the call waits for.
#[derive(Clone, Debug, PartialEq)]
enum State {
    /// The first step.
    Sending { request: HttpRequest },
    /// The head of the answer.
    AwaitingHead { ticket: Ticket, give_up: Option<Time> },
    /// The rest of the body.
    Receiving { ticket: Ticket, give_up: Option<Time>, answer: Answer },
    /// Nothing.
    Done,
}

impl State {
    const fn ticket(&self) -> Option<Ticket> {
        match self {
            Self::AwaitingHead { ticket, .. } | Self::Receiving { ticket, .. } => Some(*ticket),
            Self::Sending { .. } | Self::Done => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::Request;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::error::BodyProblem;
    use crate::error::NetworkErrorKind;
    use crate::laws::{self, Move};
    use crate::response;

    fn call() -> Call {
        Call::new(request(), Tickets::new(7)).limit(8)
    }

    fn request() -> HttpRequest {
        Request::get("/x").body(Bytes::new()).unwrap().into()
    }

    fn ticket() -> Ticket {
        Tickets::new(7).issue()
    }

    fn send() -> CallOutput {
        CallOutput::Http(HttpEffect::Send { ticket: ticket(), request: request() })
    }

    fn cancel() -> CallOutput {
        CallOutput::Http(HttpEffect::Cancel { ticket: ticket() })
    }

    fn responded(ticket: Ticket) -> CallInput {
        CallInput::Http(HttpEvent::Responded { ticket, status: StatusCode::OK, headers: HeaderMap::new() })
    }

    fn received(ticket: Ticket, bytes: &'static [u8]) -> CallInput {
        CallInput::Http(HttpEvent::Received { ticket, bytes: Bytes::from_static(bytes) })
    }

    fn closed(ticket: Ticket, result: Result<(), NetworkError>) -> CallInput {
        CallInput::Http(HttpEvent::Closed { ticket, result })
    }

    fn lost() -> NetworkError {
        NetworkError::new(NetworkErrorKind::Lost, "reset")
    }

    fn answer(body: &[u8]) -> Answer {
        let mut answer = Answer::new(StatusCode::OK, HeaderMap::new()).limited(8);
        answer.receive(body);
        answer
    }

    /// At so many seconds an input gives outputs, and a deadline in seconds.
    type Row<'a> = (u64, Option<CallInput>, &'a [CallOutput], Option<u64>);

    fn check(mut call: Call, rows: &[Row<'_>]) {
        for (row, (seconds, input, outputs, deadline)) in rows.iter().enumerate() {
            let mut out = Outbox::new();
            let due = call.step(Now::default().after(Duration::from_secs(*seconds)), input.clone(), &mut out);
            assert_eq!(out.into_iter().collect::<Vec<_>>(), *outputs, "outputs of row {row}");
            assert_eq!(due.map(|due| due.at), deadline.map(Time::from_secs), "deadline of row {row}");
        }
        assert!(call.is_done());
    }

    #[test]
    fn the_answer_is_collected_and_said_once() {
        let ticket = ticket();
        let done = CallOutput::Done(Ok(answer(b"{\"a\":1}")));
        check(
            call(),
            &[
                (5, None, &[send()], Some(35)),
                (6, Some(responded(ticket)), &[], Some(35)),
                (7, Some(received(ticket, b"{\"a\"")), &[], Some(35)),
                (8, Some(received(ticket, b":1}")), &[], Some(35)),
                (9, Some(closed(ticket, Ok(()))), &[done], None),
                (9, Some(closed(ticket, Err(lost()))), &[], None),
                (9, Some(CallInput::Cancelled), &[], None),
            ],
        );
    }

    #[test]
    fn a_call_that_takes_too_long_is_given_up_wherever_it_stands() {
        let done = CallOutput::Done(Err(Error::TimedOut(Call::TIMEOUT)));
        check(call(), &[(0, None, &[send()], Some(30)), (30, None, &[cancel(), done.clone()], None)]);
        let (ticket, late) = (ticket(), responded(ticket()));
        check(
            call(),
            &[
                (0, Some(responded(ticket)), &[send()], Some(30)),
                (29, Some(received(ticket, b"{")), &[], Some(30)),
                (30, Some(closed(ticket, Ok(()))), &[cancel(), done], None),
                (31, Some(late), &[], None),
            ],
        );
    }

    #[test]
    fn a_call_may_wait_for_ever_or_not_at_all() {
        let ticket = ticket();
        let done = |error| CallOutput::Done(Err(error));
        let lost = closed(ticket, Err(lost()));
        let gone = done(NetworkError::new(NetworkErrorKind::Lost, "reset").into());
        check(call().timeout(None), &[(0, None, &[send()], None), (1 << 40, Some(lost), &[gone], None)]);
        let never = done(Error::TimedOut(Duration::ZERO));
        check(call().timeout(Some(Duration::ZERO)), &[(0, None, &[send(), cancel(), never], None)]);
    }

    #[test]
    fn a_cancelled_call_closes_its_exchange_and_ends() {
        let done = CallOutput::Done(Err(Error::Cancelled));
        check(
            call(),
            &[
                (0, Some(responded(ticket())), &[send()], Some(30)),
                (1, Some(CallInput::Cancelled), &[cancel(), done], None),
                (2, Some(closed(ticket(), Ok(()))), &[], None),
            ],
        );
    }

    #[test]
    fn an_exchange_that_breaks_or_has_no_head_is_a_network_error() {
        let ticket = ticket();
        let broken = CallOutput::Done(Err(lost().into()));
        check(
            call(),
            &[
                (0, None, &[send()], Some(30)),
                (1, Some(responded(ticket)), &[], Some(30)),
                (2, Some(closed(ticket, Err(lost()))), &[broken], None),
            ],
        );
        let mut out = Outbox::new();
        let mut headless = call();
        for input in [received(ticket, b"x"), closed(ticket, Ok(()))] {
            let _ = headless.step(Now::default(), Some(input), &mut out);
        }
        let said: Vec<_> = out.into_iter().collect();
        assert!(
            matches!(&said[1..], [CallOutput::Done(Err(Error::Network(error)))] if error.kind == NetworkErrorKind::Protocol)
        );
    }

    #[test]
    fn a_body_over_the_limit_ends_the_exchange_early() {
        let (mut call, mut out) = (call(), Outbox::new());
        for input in [responded(ticket()), received(ticket(), b"123456789"), closed(ticket(), Ok(()))] {
            let _ = call.step(Now::default(), Some(input), &mut out);
        }
        let said: Vec<_> = out.into_iter().collect();
        let [first, second, CallOutput::Done(Ok(answer))] = &said[..] else { panic!("{said:?}") };
        assert_eq!((first, second), (&send(), &cancel()));
        let error = response::check(answer).unwrap_err();
        assert!(matches!(error, Error::Body(error) if error.problem == BodyProblem::TooLarge(8)));
    }

    fn inputs() -> impl Strategy<Value = Move<CallInput>> {
        prop_oneof![
            Just(Move::Input(responded(ticket()))),
            Just(Move::Input(received(ticket(), b"{}"))),
            Just(Move::Input(closed(ticket(), Ok(())))),
            Just(Move::Input(closed(ticket(), Err(lost())))),
            Just(Move::Input(CallInput::Cancelled)),
            (0..40_000_u64).prop_map(|millis| Move::Wait(Duration::from_millis(millis))),
        ]
    }

    proptest! {
        #[test]
        fn the_laws_hold(script in vec(inputs(), 0..12)) {
            laws::same_inputs_same_outputs(call, &script);
            let (mut own, mut other) = (Tickets::new(7), Tickets::new(8));
            let _ = own.issue();
            let stale: Vec<_> = [own.issue(), other.issue()]
                .into_iter()
                .flat_map(|ticket| [responded(ticket), received(ticket, b"123456789"), closed(ticket, Ok(()))])
                .collect();
            laws::stale_inputs_change_nothing(call, &script, &stale);
            let ending: Vec<_> = script.iter().cloned().chain([Move::Input(CallInput::Cancelled)]).collect();
            laws::ended_stays_ended(&mut call(), &ending, &script);
            let said = laws::run(&mut call(), ending).into_iter().flat_map(|(_, said, _)| said);
            prop_assert_eq!(said.filter(|output| matches!(output, CallOutput::Done(_))).count(), 1);
        }
    }
}
