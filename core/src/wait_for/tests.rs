use std::collections::VecDeque;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use k8s_openapi::api::core::v1::Pod;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::error::{NetworkError, NetworkErrorKind};
use crate::laws::{self, Move};
use crate::machine::Tickets;
use crate::resource::KnownResource;

fn wait() -> WaitFor {
    WaitFor::new(Requests::new(Pod::resource_type(), Some("ns")), "a", 7, 1).unwrap()
}

fn pod(name: &str, uid: &str, phase: &str) -> Value {
    json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": "5"},
        "status": {"phase": phase}})
}

fn running() -> Predicate {
    "jsonpath={.status.phase}=Running".parse().unwrap()
}

/// A server that hears what the machine asks for, and says what the test wants.
struct Peer {
    machine: WaitFor,
    now: Now,
    open: VecDeque<(Ticket, String)>,
    cancelled: Vec<Ticket>,
    answer: Option<Result<Awaited, Error>>,
}

impl Peer {
    fn new(machine: WaitFor) -> Self {
        let (open, cancelled) = Default::default();
        let mut peer = Self { machine, now: Now::default(), open, cancelled, answer: None };
        peer.step(None);
        peer
    }

    fn step(&mut self, input: Option<WaitInput>) {
        let mut out = Outbox::new();
        let deadline = self.machine.step(self.now, input, &mut out);
        assert!(deadline.is_none_or(|deadline| deadline.at > self.now.mono), "{deadline:?}");
        for output in out {
            match output {
                WaitOutput::Http(HttpEffect::Send { ticket, request }) => {
                    self.open.push_back((ticket, request.inner().uri().to_string()));
                }
                WaitOutput::Http(HttpEffect::Cancel { ticket }) => self.cancelled.push(ticket),
                WaitOutput::Done(answer) => assert!(self.answer.replace(answer).is_none(), "two answers"),
            }
        }
    }

    fn wait(&mut self, duration: Duration) {
        let end = self.now.after(duration);
        while let Some(due) = self.machine.deadline().filter(|due| due.at <= end.mono) {
            self.now = self.now.after(due.at.since(self.now.mono));
            self.step(None);
        }
        self.now = end;
    }

    fn head(&mut self, code: u16) -> Ticket {
        let (ticket, _) = self.open.pop_front().expect("something is asked for");
        let status = StatusCode::from_u16(code).unwrap();
        self.step(Some(WaitInput::Http(HttpEvent::Responded { ticket, status, headers: HeaderMap::new() })));
        ticket
    }

    fn send(&mut self, ticket: Ticket, text: &Value) {
        let bytes = Bytes::from(format!("{text}\n"));
        self.step(Some(WaitInput::Http(HttpEvent::Received { ticket, bytes })));
    }

    fn close(&mut self, ticket: Ticket, result: Result<(), NetworkError>) {
        self.step(Some(WaitInput::Http(HttpEvent::Closed { ticket, result })));
    }

    /// Answers the next request whole.
    fn answer(&mut self, code: u16, body: &Value) {
        let ticket = self.head(code);
        self.send(ticket, body);
        self.close(ticket, Ok(()));
    }

    /// Refuses streaming lists, and answers the list with these objects.
    fn list(&mut self, objects: &[Value]) {
        if self.open.front().unwrap().1.contains("sendInitialEvents") {
            self.answer(400, &json!({"kind": "Status", "code": 400, "reason": "BadRequest"}));
            self.wait(Duration::from_secs(1));
        }
        self.answer(200, &json!({"kind": "PodList", "metadata": {"resourceVersion": "9"}, "items": objects}));
    }

    fn event(&mut self, ticket: Ticket, kind: &str, object: &Value) {
        self.send(ticket, &json!({"type": kind, "object": object}));
    }

    fn awaited(&mut self) -> (String, Option<String>) {
        let awaited = self.answer.take().expect("there is an answer").unwrap();
        let uid = awaited.object.map(|object| object.uid().unwrap().to_owned());
        (awaited.predicate, uid)
    }
}

#[test]
fn an_object_that_is_so_already_is_the_answer_and_nothing_is_watched() {
    let mut peer = Peer::new(wait().when("runs", running()));
    assert!(peer.open[0].1.contains("fieldSelector=metadata.name%3Da"), "{:?}", peer.open);
    peer.list(&[pod("b", "0", "Running"), pod("a", "1", "Running")]);
    assert_eq!(peer.awaited(), ("runs".into(), Some("1".into())));
    assert!(peer.open.is_empty() && peer.machine.deadline().is_none(), "{:?}", peer.open);
}

#[test]
fn the_first_predicate_that_holds_is_named_and_the_watch_closes() {
    let mut peer =
        Peer::new(wait().when("gone", Predicate::Deleted).when("runs", running()).when("any", Predicate::Exists));
    peer.list(&[pod("b", "0", "Running")]);
    assert_eq!(peer.awaited(), ("gone".into(), None), "it does not exist, which is to be deleted");

    let mut peer =
        Peer::new(wait().when("failed", "jsonpath={.status.phase}=Failed".parse().unwrap()).when("runs", running()));
    peer.list(&[]);
    let ticket = peer.head(200);
    peer.event(ticket, "ADDED", &pod("a", "1", "Pending"));
    assert_eq!(peer.answer, None);
    peer.event(ticket, "MODIFIED", &pod("a", "1", "Failed"));
    assert_eq!(peer.awaited(), ("failed".into(), Some("1".into())));
    assert_eq!(peer.cancelled, [ticket]);
    peer.event(ticket, "MODIFIED", &pod("a", "1", "Running"));
    assert_eq!(peer.answer, None, "an end is an end");
}

#[test]
fn a_deletion_shows_as_an_event_a_gap_or_another_object() {
    let begin = |wait: WaitFor| {
        let mut peer = Peer::new(wait.when("gone", Predicate::Deleted));
        peer.list(&[pod("a", "1", "Running")]);
        assert_eq!(peer.answer, None);
        let ticket = peer.head(200);
        (peer, ticket)
    };
    let (mut peer, ticket) = begin(wait());
    peer.event(ticket, "DELETED", &pod("a", "1", "Failed"));
    assert_eq!(peer.awaited(), ("gone".into(), Some("1".into())));

    let (mut peer, ticket) = begin(wait());
    peer.event(ticket, "MODIFIED", &pod("a", "2", "Running"));
    assert_eq!(peer.awaited(), ("gone".into(), Some("2".into())));

    let (mut peer, ticket) = begin(wait());
    let expired = json!({"kind": "Status", "code": 410, "reason": "Expired"});
    peer.event(ticket, "ERROR", &expired);
    peer.wait(Duration::from_secs(2));
    peer.list(&[]);
    assert_eq!(peer.awaited(), ("gone".into(), Some("1".into())), "its last state is told");

    let mut peer = Peer::new(wait().uid("0").when("gone", Predicate::Deleted));
    peer.list(&[pod("a", "1", "Running")]);
    assert_eq!(peer.awaited(), ("gone".into(), Some("1".into())), "another object was meant");
}

#[test]
fn failures_that_pass_are_tried_again_and_others_end_the_wait() {
    let lost = || Err(NetworkError::new(NetworkErrorKind::Lost, "reset"));
    let mut peer = Peer::new(wait().when("runs", running()));
    peer.list(&[]);
    let ticket = peer.head(200);
    peer.close(ticket, lost());
    peer.wait(Duration::from_secs(2));
    let ticket = peer.head(200);
    peer.event(ticket, "ADDED", &pod("a", "1", "Running"));
    assert_eq!(peer.awaited().0, "runs");

    for code in [403, 404, 422] {
        let mut peer = Peer::new(wait().when("runs", running()));
        for _ in 0..2 {
            if peer.answer.is_none() {
                peer.answer(code, &json!({"kind": "Status", "code": code, "reason": "No"}));
                peer.wait(Duration::from_secs(2));
            }
        }
        let error = peer.answer.take().unwrap().unwrap_err();
        assert_eq!((error.code(), peer.machine.deadline()), (Some(code), None));
    }
}

#[test]
fn a_wait_is_given_up_when_its_time_is_over_wherever_it_stands() {
    let limit = Duration::from_secs(10);
    let mut peer = Peer::new(wait().timeout(Some(limit)).when("runs", running()));
    peer.list(&[pod("a", "1", "Pending")]);
    let ticket = peer.head(200);
    peer.wait(Duration::from_secs(60));
    assert_eq!(peer.answer, Some(Err(Error::TimedOut(limit))));
    assert_eq!(peer.cancelled, [ticket]);
    let mut peer = Peer::new(wait().when("runs", running()));
    peer.list(&[pod("a", "1", "Pending")]);
    peer.head(200);
    peer.wait(Duration::from_secs(100_000));
    assert_eq!(peer.answer, None, "without a limit it waits on");
}

#[test]
fn a_wait_of_no_time_looks_once() {
    let once = || wait().timeout(Some(Duration::ZERO)).when("runs", running());
    let mut peer = Peer::new(once());
    peer.answer = None;
    while peer.answer.is_none() {
        if peer.open.front().unwrap().1.contains("sendInitialEvents") {
            let ticket = peer.head(200);
            peer.event(ticket, "ADDED", &pod("a", "1", "Pending"));
            let end = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": "9",
                "annotations": {"k8s.io/initial-events-end": "true"}}});
            peer.event(ticket, "BOOKMARK", &end);
        }
    }
    assert_eq!(peer.answer, Some(Err(Error::TimedOut(Duration::ZERO))));
    let mut peer = Peer::new(once());
    peer.answer(503, &json!({"kind": "Status", "code": 503}));
    assert_eq!(peer.answer.unwrap().unwrap_err().code(), Some(503));
}

#[test]
fn what_cannot_be_waited_for_is_misuse() {
    let pods = |namespace| Requests::new(Pod::resource_type(), namespace);
    assert!(matches!(WaitFor::new(pods(None), "a", 0, 0), Err(Error::Misuse(_))));
    assert!(matches!(WaitFor::new(pods(Some("ns")), "a/b", 0, 0), Err(Error::Misuse(_))));
    assert!(matches!(Peer::new(wait()).answer, Some(Err(Error::Misuse(_)))), "no predicate");
}

#[test]
fn a_predicate_that_fails_ends_the_wait() {
    let fails = Predicate::Holds(Arc::new(|_| Err(Error::Stopped("no".into()))));
    let mut peer = Peer::new(wait().when("odd", fails));
    peer.list(&[pod("a", "1", "Running")]);
    assert_eq!(peer.answer, Some(Err(Error::Stopped("no".into()))));
}

fn inputs() -> impl Strategy<Value = Move<WaitInput>> {
    let ticket = |effects: u64| {
        let mut tickets = Tickets::new(7);
        for _ in 1..effects {
            let _ = tickets.issue();
        }
        tickets.issue()
    };
    let received = |text: Value| {
        move |ticket| Move::Input(WaitInput::Http(HttpEvent::Received { ticket, bytes: format!("{text}\n").into() }))
    };
    let tickets = (1..6_u64).prop_map(ticket);
    let event = |kind: &str, uid: &str, phase: &str| json!({"type": kind, "object": pod("a", uid, phase)});
    prop_oneof![
        (tickets.clone(), prop_oneof![Just(200_u16), Just(403), Just(410), Just(503)]).prop_map(|(ticket, code)| {
            let status = StatusCode::from_u16(code).unwrap();
            Move::Input(WaitInput::Http(HttpEvent::Responded { ticket, status, headers: HeaderMap::new() }))
        }),
        tickets.clone().prop_map(received(event("ADDED", "1", "Pending"))),
        tickets.clone().prop_map(received(event("MODIFIED", "1", "Running"))),
        tickets.clone().prop_map(received(event("DELETED", "2", "Running"))),
        tickets
            .clone()
            .prop_map(received(json!({"kind": "PodList", "metadata": {"resourceVersion": "9"}, "items": []}))),
        tickets.prop_map(|ticket| Move::Input(WaitInput::Http(HttpEvent::Closed { ticket, result: Ok(()) }))),
        (0..120_000_u64).prop_map(|millis| Move::Wait(Duration::from_millis(millis))),
    ]
}

proptest! {
    #[test]
    fn the_laws_hold(script in vec(inputs(), 0..24)) {
        let make = || wait().timeout(Some(Duration::from_secs(300))).when("runs", running());
        laws::same_inputs_same_outputs(make, &script);
        let stale: Vec<_> = [Tickets::new(8).issue(), Tickets::new(9).issue()]
            .map(|ticket| WaitInput::Http(HttpEvent::Closed { ticket, result: Ok(()) })).into();
        laws::stale_inputs_change_nothing(make, &script, &stale);
        let ending: Vec<_> = script.iter().cloned().chain([Move::Input(WaitInput::Cancelled)]).collect();
        laws::ended_stays_ended(&mut make(), &ending, &script);
        let said: Vec<_> = laws::run(&mut make(), ending).into_iter().flat_map(|(_, said, _)| said).collect();
        prop_assert_eq!(said.iter().filter(|output| matches!(output, WaitOutput::Done(_))).count(), 1);
        let mut open = std::collections::BTreeSet::new();
        for output in &said {
            match output {
                WaitOutput::Http(HttpEffect::Send { ticket, .. }) => prop_assert!(open.insert(*ticket)),
                WaitOutput::Http(HttpEffect::Cancel { ticket }) => prop_assert!(open.contains(ticket), "never sent"),
                WaitOutput::Done(_) => {}
            }
        }
    }
}
