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

mod retries;
