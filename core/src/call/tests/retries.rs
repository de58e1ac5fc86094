//! What is sent again, when, and how it ends.

use http::{HeaderName, HeaderValue, Method, header};
use serde_json::json;

use super::*;
use crate::error::NetworkErrorKind as Kind;
use crate::time::UnixTime;

/// What came of an attempt.
#[derive(Clone, Debug)]
enum Came {
    Failure(Kind),
    /// A body that breaks in the middle.
    Broken,
    Answer(u16, Vec<(HeaderName, &'static str)>, String),
}

/// A failure as the API server words it, with `Retry-After` if there is any.
fn status(code: u16, reason: &str, causes: &[&str], retry_after: &'static str) -> Came {
    let causes: Vec<_> = causes.iter().map(|reason| json!({"reason": reason})).collect();
    let body = json!({"kind": "Status", "code": code, "reason": reason, "details": {"causes": causes}});
    let mut headers = vec![(header::CONTENT_TYPE, "application/json")];
    if !retry_after.is_empty() {
        headers.push((header::RETRY_AFTER, retry_after));
    }
    Came::Answer(code, headers, body.to_string())
}

fn bare(code: u16) -> Came {
    status(code, "", &[], "")
}

fn asked(code: u16) -> Came {
    status(code, "", &[], "2")
}

/// A web page of a load balancer.
fn page(code: u16) -> Came {
    Came::Answer(code, vec![(header::CONTENT_TYPE, "text/html")], "<html>Service Unavailable".to_owned())
}

fn json_body(code: u16, body: &str) -> Came {
    Came::Answer(code, vec![(header::CONTENT_TYPE, "application/json; charset=utf-8")], body.to_owned())
}

/// What is asked for, as `METHOD path body`.
fn call_of(what: &str) -> Call {
    let mut what = what.splitn(3, ' ');
    let method: Method = what.next().unwrap().parse().unwrap();
    let (path, body) = (what.next().unwrap(), what.next().unwrap_or("{}").to_owned());
    let request = Request::builder().method(method).uri(path).body(Bytes::from(body)).unwrap();
    Call::new(request.into(), Tickets::new(7)).retry(RetryPolicy::default(), 3)
}

/// The time at which the tests begin.
fn begin() -> Now {
    Now { mono: Time::from_secs(1), wall: UnixTime::from_secs(784_111_777) }
}

/// Lets the exchange under way end so.
fn come(call: &mut Call, now: Now, came: &Came) -> Vec<CallOutput> {
    let ticket = call.ticket().expect("an exchange is under way");
    let head = |status: u16, headers: &[(HeaderName, &'static str)]| {
        let headers = headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect();
        CallInput::Http(HttpEvent::Responded { ticket, status: StatusCode::from_u16(status).unwrap(), headers })
    };
    let events = match came {
        Came::Failure(kind) => vec![closed(ticket, Err(NetworkError::new(*kind, "gone")))],
        Came::Broken => vec![head(200, &[]), received(ticket, b"{\"ki"), closed(ticket, Err(lost()))],
        Came::Answer(code, headers, body) => {
            let bytes = Bytes::from(body.clone());
            vec![head(*code, headers), CallInput::Http(HttpEvent::Received { ticket, bytes }), closed(ticket, Ok(()))]
        }
    };
    let mut out = Outbox::new();
    for event in events {
        let _ = call.step(now, Some(event), &mut out);
    }
    out.into_iter().collect()
}

/// Begins a call and lets its first attempt end so; answers with the wait before the next, if there is to be one.
fn first(what: &str, came: &Came) -> (Call, Option<Duration>) {
    let mut call = call_of(what);
    let _ = call.step(begin(), None, &mut Outbox::new());
    let said = come(&mut call, begin(), came);
    let [said] = &said[..] else { panic!("{what}: {came:?} gave {said:?}") };
    let wait = match said {
        CallOutput::Retrying(retry) => Some(retry.after),
        CallOutput::Done(_) => None,
        CallOutput::Http(_) => panic!("{what}: {came:?} gave {said:?}"),
    };
    assert_eq!(call.is_done(), wait.is_none());
    (call, wait)
}

const READS: [&str; 7] = [
    "GET /api/v1/namespaces/ns/pods?limit=500",
    "HEAD /healthz",
    "POST /api/v1/namespaces/ns/pods?fieldManager=a&dryRun=All",
    "DELETE /api/v1/namespaces/ns/pods/a {\"kind\":\"DeleteOptions\",\"dryRun\":[\"All\"]}",
    "DELETE /api/v1/namespaces/ns/pods/a?dryRun=All ",
    "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "POST /apis/authentication.k8s.io/v1/selfsubjectreviews",
];
const WRITES: [&str; 7] = [
    "POST /api/v1/namespaces/ns/pods",
    "PUT /api/v1/namespaces/ns/pods/a",
    "PATCH /api/v1/namespaces/ns/pods/a?fieldManager=a&force=true",
    "DELETE /api/v1/namespaces/ns/pods/a",
    "DELETE /api/v1/namespaces/ns/pods",
    "POST /api/v1/namespaces/ns/pods/a/eviction",
    // The body counts, and what is in the query does not.
    "DELETE /api/v1/namespaces/ns/pods/a?dryRun=All {}",
];

#[test]
fn each_cause_is_retried_for_reads_and_for_writes_as_the_table_says() {
    let server_timeout = || status(500, "ServerTimeout", &[], "");
    let initializing = Came::Answer(429, vec![], "storage is (re)initializing".to_owned());
    let rows: Vec<(Came, bool, bool)> = vec![
        (Came::Failure(Kind::Connect), true, true),
        (Came::Failure(Kind::Tls), false, false),
        (Came::Failure(Kind::Request), false, false),
        (Came::Failure(Kind::Unprocessed), true, true),
        (Came::Failure(Kind::Lost), true, false),
        (Came::Failure(Kind::Protocol), true, false),
        (Came::Broken, true, false),
        (json_body(200, "{\"kind\":\"PodList\",\"ite"), true, false),
        (json_body(200, ""), true, false),
        (json_body(200, "{}\n"), false, false),
        (json_body(204, ""), false, false),
        (page(200), false, false),
        (Came::Answer(200, vec![], "{".to_owned()), false, false),
        (initializing, true, false),
        (bare(503), true, false),
        (page(503), true, false),
        (asked(503), true, true),
        (bare(502), true, false),
        (page(502), true, false),
        (asked(502), true, false),
        (bare(504), true, false),
        (asked(504), true, false),
        (bare(408), true, false),
        (bare(500), false, false),
        (asked(500), true, false),
        (server_timeout(), true, false),
        (asked(501), false, false),
        (asked(409), false, false),
        (bare(410), false, false),
        (asked(404), false, false),
        (bare(422), false, false),
        (bare(401), false, false),
        (asked(301), false, false),
        (bare(304), false, false),
    ];
    for (came, read, write) in &rows {
        for (what, expected) in READS.iter().map(|what| (what, read)).chain(WRITES.iter().map(|what| (what, write))) {
            assert_eq!(first(what, came).1.is_some(), *expected, "{what}: {came:?}");
        }
    }
}

#[test]
fn an_overloaded_server_is_asked_again_by_any_verb_once_it_says_when() {
    for what in READS.iter().chain(&WRITES[..5]) {
        let wait = first(what, &asked(429)).1.unwrap();
        assert!((2.0..=2.2).contains(&wait.as_secs_f64()), "{what}: {wait:?}");
    }
    let details = json!({"kind": "Status", "code": 429, "details": {"retryAfterSeconds": 3}}).to_string();
    let wait = first("POST /x", &json_body(429, &details)).1.unwrap();
    assert!(wait >= Duration::from_secs(3), "a proxy may have dropped the header: {wait:?}");
    assert_eq!(first("POST /x", &bare(429)).1, None);
    assert!(first("GET /x", &bare(429)).1.is_some());
}

#[test]
fn an_evictions_refusal_is_its_answer_but_a_door_that_is_shut_is_not() {
    let eviction = WRITES[5];
    for retry_after in ["", "10"] {
        assert_eq!(first(eviction, &status(429, "TooManyRequests", &["DisruptionBudget"], retry_after)).1, None);
        assert_eq!(first(eviction, &status(429, "TooManyRequests", &[], retry_after)).1, None);
    }
    let shut =
        Came::Answer(429, vec![(header::RETRY_AFTER, "1")], "Too many requests, please try again later.\n".into());
    assert!(first(eviction, &shut).1.is_some());
    assert_eq!(first("PUT /x", &status(429, "TooManyRequests", &["DisruptionBudget"], "1")).1, None);
}

#[test]
fn a_server_may_ask_for_a_wait_in_any_form_and_absurd_ones_are_bounded_or_not_there() {
    let wait = |text| {
        let mut call = call_of("GET /x").timeout(None);
        let _ = call.step(begin(), None, &mut Outbox::new());
        match &come(&mut call, begin(), &status(503, "", &[], text))[..] {
            [CallOutput::Retrying(retry)] => retry.after.as_secs_f64(),
            said => panic!("{text}: {said:?}"),
        }
    };
    assert!((7.0..=7.7).contains(&wait("7")));
    assert!((10.0..=11.0).contains(&wait("Sun, 06 Nov 1994 08:49:47 GMT")));
    for huge in ["61", "4294967296", "99999999999999999999999999", "Sun, 06 Nov 2094 08:49:37 GMT"] {
        assert!((60.0..=66.0).contains(&wait(huge)), "{huge}");
    }
    for none in ["0", "-1", "1.5", "soon", "Sun, 06 Nov 1994 08:49:07 GMT", "9e9"] {
        assert!((0.2..=0.3).contains(&wait(none)), "{none}");
    }
    assert_eq!(first("POST /x", &status(429, "", &[], "-1")).1, None, "what cannot be read asks for nothing");
}

#[test]
fn a_wait_that_would_outlast_the_call_ends_it_at_once_with_what_came() {
    let (_, wait) = first("GET /x", &status(503, "", &[], "3600"));
    assert_eq!(wait, None);
    let mut call = call_of("GET /x").timeout(Some(Duration::from_secs(2)));
    let _ = call.step(begin(), None, &mut Outbox::new());
    let said = come(&mut call, begin().after(Duration::from_millis(1900)), &bare(503));
    assert!(matches!(&said[..], [CallOutput::Done(Ok(answer))] if answer.status == 503));
}

/// Lets every attempt end so, at once, until the call is over.
fn play(mut call: Call, came: &Came) -> (Vec<Retry>, Result<Answer, Error>, Duration) {
    let (mut now, mut retries) = (begin(), Vec::new());
    let _ = call.step(now, None, &mut Outbox::new());
    loop {
        for output in come(&mut call, now, came) {
            match output {
                CallOutput::Retrying(retry) => retries.push(retry),
                CallOutput::Done(result) => return (retries, result, now.mono.since(begin().mono)),
                CallOutput::Http(_) => {}
            }
        }
        let due = call.deadline().unwrap().at;
        now = now.after(due.since(now.mono));
        let mut out = Outbox::new();
        let _ = call.step(now, None, &mut out);
        assert!(matches!(out.pop(), Some(CallOutput::Http(HttpEffect::Send { .. }))));
    }
}

#[test]
fn attempts_are_counted_spaced_out_and_end() {
    let (retries, result, took) = play(call_of("GET /x"), &Came::Failure(Kind::Connect));
    let Err(Error::Network(error)) = result else { panic!("{result:?}") };
    assert_eq!((error.attempts, error.to_string().as_str()), (6, "cannot connect: gone (6 attempts)"));
    assert_eq!(retries.iter().map(|retry| retry.attempt).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert!(retries.windows(2).all(|two| two[0].after < two[1].after), "{retries:?}");
    assert!(took < Duration::from_secs(10) && took == retries.iter().map(|retry| retry.after).sum(), "{took:?}");

    let (retries, result, _) = play(call_of("GET /x"), &page(503));
    assert_eq!((result.unwrap().attempts(), retries.len()), (6, 5));
    assert!(matches!(&retries[0].cause, Error::Body(error) if error.code == 503 && error.problem == BodyProblem::Html));

    let (retries, _, took) = play(call_of("GET /x"), &status(503, "", &[], "9"));
    assert_eq!((retries.len(), took <= Call::TIMEOUT), (3, true), "the time limit is for all attempts: {took:?}");

    let (retries, result, _) = play(call_of("GET /x").retry(RetryPolicy::OFF, 0), &bare(503));
    assert_eq!((retries.len(), result.unwrap().attempts()), (0, 1));
}

#[test]
fn other_seeds_wait_otherwise() {
    let waits = |seed| play(call_of("GET /x").retry(RetryPolicy::default(), seed), &bare(503)).2;
    assert_eq!(waits(1), waits(1));
    assert_ne!(waits(1), waits(2));
    let asked = |seed| play(call_of("PUT /x").retry(RetryPolicy::default(), seed), &asked(429)).2;
    assert_ne!(asked(1), asked(2), "who is told the same does not come back at the same time");
}

#[test]
fn an_attempt_that_is_not_answered_before_the_time_is_up_is_given_up() {
    let (mut call, wait) = first("GET /x", &bare(503));
    let mut out = Outbox::new();
    let _ = call.step(begin().after(wait.unwrap()), None, &mut out);
    let _ = call.step(begin().after(Call::TIMEOUT), None, &mut out);
    let said: Vec<_> = out.into_iter().collect();
    assert!(matches!(
        &said[..],
        [
            CallOutput::Http(HttpEffect::Send { ticket: sent, .. }),
            CallOutput::Http(HttpEffect::Cancel { ticket }),
            CallOutput::Done(Err(Error::TimedOut(Call::TIMEOUT)))
        ] if sent == ticket && ticket.effect() == 2
    ));
}

#[test]
fn a_call_can_be_cancelled_while_it_waits_and_old_answers_change_nothing() {
    let (mut call, _) = first("GET /x", &bare(503));
    let mut out = Outbox::new();
    let old = Tickets::new(7).issue();
    for input in [responded(old), received(old, b"{}"), closed(old, Ok(())), closed(old, Err(lost()))] {
        let _ = call.step(begin(), Some(input), &mut out);
    }
    assert!(out.is_empty() && !call.is_done());
    let _ = call.step(begin(), Some(CallInput::Cancelled), &mut out);
    assert_eq!(out.into_iter().collect::<Vec<_>>(), [CallOutput::Done(Err(Error::Cancelled))]);
    assert!(call.is_done() && call.deadline().is_none());
}

fn moves() -> impl Strategy<Value = Move<CallInput>> {
    let tickets = || {
        (1..4_usize).prop_map(|nth| {
            let mut tickets = Tickets::new(7);
            (0..nth).map(|_| tickets.issue()).last().unwrap()
        })
    };
    let head = (tickets(), prop_oneof![Just(200), Just(429), Just(503)]).prop_map(|(ticket, code)| {
        let headers = [(header::RETRY_AFTER, HeaderValue::from_static("1"))].into_iter().collect();
        let status = StatusCode::from_u16(code).unwrap();
        Move::Input(CallInput::Http(HttpEvent::Responded { ticket, status, headers }))
    });
    prop_oneof![
        head,
        tickets().prop_map(|ticket| Move::Input(received(ticket, b"{}"))),
        tickets().prop_map(|ticket| Move::Input(closed(ticket, Ok(())))),
        tickets().prop_map(|ticket| Move::Input(closed(ticket, Err(lost())))),
        Just(Move::Input(CallInput::Cancelled)),
        (0..20_000_u64).prop_map(|millis| Move::Wait(Duration::from_millis(millis))),
    ]
}

proptest! {
    #[test]
    fn the_laws_hold_over_attempts(script in vec(moves(), 0..24), is_read: bool) {
        let make = || call_of(if is_read { "GET /x" } else { "POST /x" });
        laws::same_inputs_same_outputs(make, &script);
        let mut other = Tickets::new(8);
        let stale: Vec<_> = [other.issue()]
            .into_iter()
            .flat_map(|ticket| [responded(ticket), received(ticket, b"{}"), closed(ticket, Ok(()))])
            .collect();
        laws::stale_inputs_change_nothing(make, &script, &stale);
        let ending: Vec<_> = script.iter().cloned().chain([Move::Wait(Call::TIMEOUT)]).collect();
        laws::ended_stays_ended(&mut make(), &ending, &script);
        let trace = laws::run(&mut make(), ending);
        let (mut open, mut sent, mut done) = (None, 0, 0);
        for output in trace.into_iter().flat_map(|(_, said, _)| said) {
            match output {
                CallOutput::Http(HttpEffect::Send { ticket, .. }) => {
                    sent += 1;
                    open = Some(ticket);
                }
                CallOutput::Http(HttpEffect::Cancel { ticket }) => prop_assert_eq!(open.take(), Some(ticket)),
                CallOutput::Retrying(_) => open = None,
                CallOutput::Done(_) => done += 1,
            }
        }
        prop_assert_eq!(done, 1);
        prop_assert!((1..=6).contains(&sent));
    }
}
