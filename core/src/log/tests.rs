use http::Request;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::error::{BodyError, NetworkErrorKind};
use crate::laws::{self, Move};

fn request() -> HttpRequest {
    Request::get("/x").body(Bytes::new()).unwrap().into()
}

fn log() -> LogStream {
    LogStream::new(request(), Tickets::new(7))
}

fn ticket() -> Ticket {
    Tickets::new(7).issue()
}

fn responded(ticket: Ticket, code: u16) -> LogInput {
    let status = StatusCode::from_u16(code).unwrap();
    LogInput::Http(HttpEvent::Responded { ticket, status, headers: HeaderMap::new() })
}

fn received(ticket: Ticket, bytes: &'static [u8]) -> LogInput {
    LogInput::Http(HttpEvent::Received { ticket, bytes: Bytes::from_static(bytes) })
}

fn closed(ticket: Ticket, result: Result<(), NetworkError>) -> LogInput {
    LogInput::Http(HttpEvent::Closed { ticket, result })
}

fn lost() -> NetworkError {
    NetworkError::new(NetworkErrorKind::Lost, "reset")
}

/// What is said after the request, when these come in at once.
fn said(mut log: LogStream, inputs: impl IntoIterator<Item = LogInput>) -> Vec<LogOutput> {
    let mut out = Outbox::new();
    for input in inputs {
        let _ = log.step(Now::default(), Some(input), &mut out);
    }
    out.into_iter().skip(1).collect()
}

#[test]
fn bytes_are_handed_on_as_they_come_and_a_broken_log_is_an_error() {
    let bytes = |bytes: &'static [u8]| LogOutput::Received(Bytes::from_static(bytes));
    let begin = || vec![responded(ticket(), 200), received(ticket(), b"a\nb"), received(ticket(), b"c")];
    let end = |result| begin().into_iter().chain([closed(ticket(), result), received(ticket(), b"late")]);
    assert_eq!(said(log(), end(Ok(()))), [bytes(b"a\nb"), bytes(b"c"), LogOutput::Ended(Ok(()))]);
    assert_eq!(said(log(), end(Err(lost())))[2], LogOutput::Ended(Err(lost().into())));
}

#[test]
fn a_refusal_is_an_error_before_any_text() {
    let body = br#"{"kind":"Status","code":400,"reason":"BadRequest","message":"a container name must be specified"}"#;
    let inputs = [responded(ticket(), 400), received(ticket(), body), closed(ticket(), Ok(()))];
    let said = said(log(), inputs);
    assert!(matches!(&said[..], [LogOutput::Ended(Err(Error::Api(status)))] if status.reason == "BadRequest"));
}

#[test]
fn a_followed_log_may_be_silent_for_ever_and_another_may_not() {
    let (mut followed, mut short, mut out) = (log().timeout(None), log(), Outbox::new());
    assert_eq!(followed.step(Now::default(), None, &mut out), None);
    assert_eq!(followed.step(Now::default(), Some(responded(ticket(), 200)), &mut out), None);
    let mut out = Outbox::new();
    assert_eq!(short.step(Now::default(), None, &mut out).unwrap().at, Time::from_secs(30));
    let _ = short.step(Now::default().after(LogStream::TIMEOUT), None, &mut out);
    let ended = LogOutput::Ended(Err(Error::TimedOut(LogStream::TIMEOUT)));
    let cancel = LogOutput::Http(HttpEffect::Cancel { ticket: ticket() });
    assert_eq!(out.into_iter().skip(1).collect::<Vec<_>>(), [cancel, ended]);
}

#[test]
fn more_than_the_limit_closes_the_exchange() {
    let inputs = [responded(ticket(), 200), received(ticket(), b"123"), received(ticket(), b"4567")];
    let said = said(log().limit(5), inputs);
    let [LogOutput::Received(one), LogOutput::Received(two), LogOutput::Http(HttpEffect::Cancel { .. }), end] =
        &said[..]
    else {
        panic!("{said:?}")
    };
    assert_eq!((&one[..], &two[..]), (&b"123"[..], &b"45"[..]));
    assert!(
        matches!(end, LogOutput::Ended(Err(Error::Body(BodyError { problem: BodyProblem::TooLarge(5), .. })))),
        "{end:?}"
    );
}

fn inputs() -> impl Strategy<Value = Move<LogInput>> {
    prop_oneof![
        prop_oneof![Just(200_u16), Just(404)].prop_map(|code| Move::Input(responded(ticket(), code))),
        Just(Move::Input(received(ticket(), b"a\n"))),
        Just(Move::Input(closed(ticket(), Ok(())))),
        Just(Move::Input(closed(ticket(), Err(lost())))),
        Just(Move::Input(LogInput::Cancelled)),
        (0..40_000_u64).prop_map(|millis| Move::Wait(Duration::from_millis(millis))),
    ]
}

proptest! {
    #[test]
    fn the_laws_hold(script in vec(inputs(), 0..12)) {
        let make = || log().limit(5);
        laws::same_inputs_same_outputs(make, &script);
        let (mut own, mut other) = (Tickets::new(7), Tickets::new(8));
        let _ = own.issue();
        let stale: Vec<_> = [own.issue(), other.issue()]
            .into_iter()
            .flat_map(|ticket| [responded(ticket, 200), received(ticket, b"123456789"), closed(ticket, Ok(()))])
            .collect();
        laws::stale_inputs_change_nothing(make, &script, &stale);
        let ending: Vec<_> = script.iter().cloned().chain([Move::Input(LogInput::Cancelled)]).collect();
        laws::ended_stays_ended(&mut make(), &ending, &script);
        let said = laws::run(&mut make(), ending).into_iter().flat_map(|(_, said, _)| said);
        prop_assert_eq!(said.filter(|output| matches!(output, LogOutput::Ended(_))).count(), 1);
    }
}
