use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use serde_json::json;

use super::*;
use crate::call::{Call, CallInput, RetryPolicy};
use crate::credentials::{CredentialsError, CredentialsProblem};
use crate::error::{Error, NetworkError, NetworkErrorKind};
use crate::exchange::{HttpEffect, HttpEvent};
use crate::list_watch::{ListWatch, WatchConfig, WatchInput, WatchOutput};
use crate::machine::Tickets;
use crate::pass::Outcome;
use crate::reconciler::{Reconciler, ReconcilerInput};
use crate::request::Requests;
use crate::resource::{ResourceKey, ResourceType, Scope};

const HIDDEN: &str = "hunter2";

/// A machine, and what is put down of it.
struct Subject<M: Recorded> {
    machine: M,
    now: Now,
    trace: Trace,
    out: Outbox<M::Output>,
}

impl<M: Recorded> Subject<M> {
    fn new(machine: M) -> Self {
        let mut subject = Self { machine, now: Now::default(), trace: Trace::new(), out: Outbox::new() };
        subject.step(None);
        subject
    }

    fn step(&mut self, input: Option<M::Input>) -> Option<Deadline> {
        let name = Instance { kind: M::NAME, number: 1 };
        let trace = &mut self.trace;
        step(&mut self.machine, name, self.now, input, &mut self.out, |step| trace.record(&step))
    }

    fn wait(&mut self, time: Duration) {
        self.now = self.now.after(time);
    }
}

fn call(request: Request<Bytes>) -> Subject<Call> {
    Subject::new(Call::new(request.into(), Tickets::new(3)).retry(RetryPolicy::DEFAULT, 1))
}

fn get(path: &str) -> Request<Bytes> {
    Request::get(path).body(Bytes::new()).unwrap()
}

/// The ticket of the newest request that a call has asked for.
fn ticket<M: Recorded>(subject: &Subject<M>) -> Ticket {
    let is_send = |entry: &&Entry| entry.name() == "Send";
    let said: Vec<_> = subject.out.iter().map(M::said).collect();
    said.iter().rev().find(is_send).and_then(Entry::about).unwrap()
}

fn responded(ticket: Ticket, code: u16, headers: &[(&'static str, &str)]) -> HttpEvent {
    let headers: HeaderMap =
        headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
    HttpEvent::Responded { ticket, status: StatusCode::from_u16(code).unwrap(), headers }
}

fn received(ticket: Ticket, text: &str) -> HttpEvent {
    HttpEvent::Received { ticket, bytes: Bytes::copy_from_slice(text.as_bytes()) }
}

fn lost(message: &str) -> Result<(), NetworkError> {
    Err(NetworkError::new(NetworkErrorKind::Lost, message))
}

/// A call that fails, is repeated, and is answered in pieces of this length.
fn retried(message: &str, piece: usize, pause: Duration) -> Trace {
    let mut subject = call(get("/api/v1/namespaces/default/secrets/a?resourceVersion=0"));
    let first = ticket(&subject);
    subject.step(Some(CallInput::Http(HttpEvent::Closed { ticket: first, result: lost(message) })));
    subject.wait(pause);
    subject.step(None);
    let second = ticket(&subject);
    assert_ne!(first, second, "it has waited long enough");
    subject.step(Some(CallInput::Http(responded(second, 200, &[("content-type", "application/json")]))));
    let body = json!({"kind": "Secret", "data": {"password": HIDDEN}}).to_string();
    for piece in body.as_bytes().chunks(piece) {
        subject.step(Some(CallInput::Http(received(second, std::str::from_utf8(piece).unwrap()))));
        subject.wait(pause / 100);
        subject.step(None);
    }
    subject.step(Some(CallInput::Http(HttpEvent::Closed { ticket: second, result: Ok(()) })));
    subject.trace
}

#[test]
fn a_trace_tells_what_was_heard_and_said() {
    let trace = retried("reset by peer", 1000, Duration::from_secs(5));
    let fingerprint = trace.lines()[10].rsplit_once(' ').unwrap().1.to_owned();
    let expected = [
        "Call 1 < clock",
        "Call 1 > Send #1 GET /api/v1/namespaces/default/secrets/a?resourceVersion=0",
        "Call 1 . answer",
        "Call 1 < Closed #1 connection lost after 1 attempts",
        "Call 1 > Retrying connection lost after 1 attempts",
        "Call 1 . retry",
    ];
    assert_eq!(trace.lines()[..6], expected, "{:#?}", trace.lines());
    let rest = [
        "Call 1 < clock".to_owned(),
        "Call 1 > Send #2 GET /api/v1/namespaces/default/secrets/a?resourceVersion=0".to_owned(),
        "Call 1 . answer".to_owned(),
        "Call 1 < Responded #2 200 content-type: application/json".to_owned(),
        format!("Call 1 < Received #2, 47 bytes {fingerprint}"),
        "Call 1 < Closed #2".to_owned(),
        "Call 1 > Done 200 after 2 attempts".to_owned(),
        "Call 1 . nothing".to_owned(),
    ];
    assert_eq!(trace.lines()[6..], rest, "{:#?}", trace.lines());
}

#[test]
fn times_wording_and_cuts_make_no_difference() {
    let one = retried("reset by peer", 1000, Duration::from_secs(5));
    let other = retried("os error 104", 1, Duration::from_secs(9));
    assert_eq!(one.difference(&other), None);
    assert_ne!(one.to_string(), other.to_string(), "what is printed tells them apart");
}

#[test]
fn the_first_difference_is_shown_with_what_comes_before_it() {
    let one = retried("", 1000, Duration::from_secs(5));
    let mut call = call(get("/api/v1/namespaces/default/secrets/a?resourceVersion=0"));
    let ticket = ticket(&call);
    call.step(Some(CallInput::Http(responded(ticket, 404, &[]))));
    let difference = one.difference(&call.trace).unwrap();
    assert_eq!(difference.line, 4);
    assert_eq!(difference.before.len(), 3);
    let text = difference.to_string();
    assert!(
        text.contains("\n- Call 1 < Closed #1 connection lost") && text.ends_with("\n+ Call 1 < Responded #1 404"),
        "{text}"
    );
    let shorter = one.clone().limited(2);
    assert_eq!(one.difference(&one), None);
    assert!(one.difference(&shorter).is_some());
}

#[test]
fn another_body_is_another_line() {
    let answered = |bodies: &[&str]| {
        let mut call = call(get("/a"));
        let ticket = ticket(&call);
        for body in bodies {
            call.step(Some(CallInput::Http(received(ticket, body))));
        }
        call.trace
    };
    assert_eq!(answered(&["ab", "", "c"]).difference(&answered(&["a", "bc"])), None);
    assert!(answered(&["abc"]).difference(&answered(&["abd"])).is_some());
    let times = ["2026-01-02T03:04:05Z", "2027-11-12T13:14:15Z"].map(|time| answered(&[time]));
    assert_eq!(times[0].difference(&times[1]), None);
}

#[test]
fn no_secret_is_shown() {
    let mut request = Request::post(format!("/api/v1/secrets?fieldManager=me&token={HIDDEN}"))
        .header("authorization", format!("Bearer {HIDDEN}"))
        .header("cookie", HIDDEN);
    request = request.header("content-type", "application/json");
    let mut call = call(request.body(Bytes::from(HIDDEN)).unwrap());
    let ticket = ticket(&call);
    let headers = [("set-cookie", HIDDEN), ("www-authenticate", HIDDEN), ("content-type", "application/json")];
    call.step(Some(CallInput::Http(responded(ticket, 200, &headers))));
    call.step(Some(CallInput::Http(received(ticket, HIDDEN))));
    call.step(Some(CallInput::Http(HttpEvent::Closed { ticket, result: Ok(()) })));
    let shown = format!("{}{:?}{:?}", call.trace, call.trace, call.trace.lines());
    assert!(!shown.contains(HIDDEN), "{shown}");
    assert!(
        shown.contains("POST /api/v1/secrets?fieldManager=me&token=... content-type: application/json, 7 bytes"),
        "{shown}"
    );
}

#[test]
fn what_a_credential_program_says_is_not_shown() {
    let problem = CredentialsProblem::NotFound { hint: format!("token={HIDDEN}").into() };
    let failed = NetworkError::from(CredentialsError::new("users[a].user.exec in /k", "ctl", problem));
    let mut call = call(get("/api/v1/pods"));
    let ticket = ticket(&call);
    call.step(Some(CallInput::Http(HttpEvent::Closed { ticket, result: Err(failed) })));
    let shown = format!("{}{:#?}", call.trace, call.trace.lines());
    assert!(shown.contains("Closed #1") && !shown.contains(HIDDEN), "{shown}");
}

#[test]
fn no_object_is_shown_but_its_name_and_version() {
    let secrets = ResourceType::new("", "v1", "Secret", "secrets", Scope::Namespaced);
    let config = WatchConfig { streaming: false, ..WatchConfig::new(Requests::new(secrets, Some("default"))) };
    let mut watch = Subject::new(ListWatch::new(config, 0, 1));
    let ticket = ticket(&watch);
    let good =
        json!({"metadata": {"name": "a", "namespace": "default", "resourceVersion": "5"}, "data": {"x": HIDDEN}});
    let faulty = json!({"metadata": HIDDEN, "data": {"x": HIDDEN}});
    let list = json!({"metadata": {"resourceVersion": "9"}, "items": [good, faulty]}).to_string();
    let cut = HttpEvent::Received { ticket, bytes: Bytes::from(list) };
    for event in [responded(ticket, 200, &[]), cut, HttpEvent::Closed { ticket, result: Ok(()) }] {
        watch.step(Some(WatchInput::Http(event)));
    }
    let shown = format!("{}{:?}{:?}", watch.trace, watch.trace, watch.trace.lines());
    assert!(!shown.contains(HIDDEN), "{shown}");
    assert!(
        shown.contains("Listed Secret default/a version 5") && shown.contains("> Faulty an object without a name"),
        "{shown}"
    );
    assert!(watch.out.iter().any(|said| matches!(said, WatchOutput::Http(HttpEffect::Send { .. }))));
}

#[test]
fn a_body_that_is_no_answer_is_not_quoted() {
    let mut call = call(get("/a"));
    let ticket = ticket(&call);
    let status = StatusCode::OK.as_u16();
    let error = crate::error::BodyError::new(status, crate::error::BodyProblem::NotJson, HIDDEN.as_bytes(), None);
    let shown = format!("{:?}", described::failure(Entry::new("Done"), &Error::Body(error)));
    assert_eq!(shown, "Done 200 with a body that is not a Kubernetes object");
    call.step(Some(CallInput::Http(HttpEvent::Closed { ticket, result: lost("x") })));
}

#[test]
fn a_late_timer_fires_alone_and_not_with_an_input() {
    let widgets = ResourceType::new("example.com", "v1", "Widget", "widgets", Scope::Namespaced);
    let run = |is_late: bool| {
        let config = crate::reconciler::ReconcilerConfig {
            seed: 1,
            ..crate::reconciler::ReconcilerConfig::new(widgets.clone())
        };
        let mut subject = Subject::new(Reconciler::new(config));
        let key = ResourceKey::new(Some("default"), "w").unwrap();
        subject.step(Some(ReconcilerInput::Synced));
        subject.step(Some(ReconcilerInput::EnqueuedAfter(key, Duration::from_secs(1))));
        subject.wait(Duration::from_secs(2));
        if !is_late {
            subject.step(None);
        }
        subject.step(Some(ReconcilerInput::Enqueued(ResourceKey::new(Some("default"), "other").unwrap())));
        subject.trace
    };
    let (late, prompt) = (run(true), run(false));
    assert_eq!(late.difference(&prompt), None);
    assert!(late.lines().iter().any(|line| line.starts_with("Reconciler 1 > Run #1 default/w")), "{:?}", late.lines());
}

#[test]
fn a_limited_trace_keeps_the_last_steps_and_no_more() {
    let mut trace = Trace::new().limited(10);
    let piece = |number: u32| {
        let ticket = Tickets::new(0).issue();
        let input = Some(Entry::new(PIECE).ticket(ticket).body(Bytes::from_static(b"x")));
        Step {
            machine: Instance { kind: "Call", number },
            now: Now::default(),
            input,
            outputs: Vec::new(),
            deadline: None,
        }
    };
    (0..1000).for_each(|number| trace.record(&piece(number)));
    assert_eq!((trace.len(), trace.lines().len()), (10, 20));
    assert!(trace.to_string().contains("990 earlier steps are left out"));
    assert!(trace.has_forgotten_all_but(10));
    assert_eq!(trace.only(|machine| machine.number == 999).len(), 1);
    assert!(Trace::new().is_empty() && Trace::new().to_string().is_empty());
}

#[test]
fn outcomes_say_what_kind_they_are() {
    let ticket = Tickets::new(0).issue();
    let heard = |outcome| Reconciler::heard(&ReconcilerInput::Ran { ticket, outcome }).to_string();
    assert_eq!(heard(Outcome::done()), "Ran #0.1 done");
    assert_eq!(heard(Outcome::failed("no disk")), "Ran #0.1 failed (no disk)");
    assert_eq!(heard(Outcome::waiting("Rolling", "2 of 3")), "Ran #0.1 waiting: Rolling (2 of 3)");
    let changed = Outcome::done().with_change(json!({"a": HIDDEN}), json!({"a": 2}));
    assert_eq!(heard(changed), "Ran #0.1 done, with a change");
}
