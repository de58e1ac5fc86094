use std::collections::VecDeque;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use k8s_openapi::api::core::v1::Pod;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::error::{BodyProblem, NetworkError, NetworkErrorKind};
use crate::laws::{self, Move};
use crate::request::Requests;
use crate::resource::KnownResource;

pub(crate) fn config() -> WatchConfig {
    WatchConfig::new(Requests::new(Pod::resource_type(), Some("ns")))
}

fn paged() -> WatchConfig {
    WatchConfig { streaming: false, ..config() }
}

pub(crate) fn pod(name: &str, version: u32) -> Value {
    json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"namespace": "ns", "name": name, "uid": name, "resourceVersion": version.to_string()}})
}

pub(crate) fn event(kind: &str, object: &Value) -> String {
    format!("{}\n", json!({"type": kind, "object": object}))
}

fn initial_end(version: u32) -> String {
    let annotations = json!({"k8s.io/initial-events-end": "true"});
    event("BOOKMARK", &json!({"metadata": {"resourceVersion": version.to_string(), "annotations": annotations}}))
}

fn list(version: &str, token: &str, pods: &[Value]) -> String {
    json!({"kind": "PodList", "metadata": {"resourceVersion": version, "continue": token}, "items": pods}).to_string()
}

fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message})
}

/// Plays the server to a machine, in virtual time.
struct Peer {
    machine: ListWatch,
    now: Now,
    requests: VecDeque<(Time, Ticket, String)>,
    cancelled: Vec<Ticket>,
    said: Vec<String>,
}

impl Peer {
    fn new(config: WatchConfig) -> Self {
        let machine = ListWatch::new(config, 1, 7);
        let (requests, cancelled, said) = (VecDeque::new(), Vec::new(), Vec::new());
        let mut peer = Self { machine, now: Now::default(), requests, cancelled, said };
        peer.step(None);
        peer
    }

    fn step(&mut self, input: Option<WatchInput>) {
        let mut out = Outbox::new();
        let deadline = self.machine.step(self.now, input, &mut out);
        assert!(deadline.is_none_or(|deadline| deadline.at > self.now.mono), "{deadline:?}");
        for output in out {
            match output {
                WatchOutput::Http(HttpEffect::Send { ticket, request }) => {
                    self.requests.push_back((self.now.mono, ticket, request.inner().uri().to_string()));
                }
                WatchOutput::Http(HttpEffect::Cancel { ticket }) => self.cancelled.push(ticket),
                WatchOutput::Event(event) => self.said.push(words(&event)),
            }
        }
    }

    /// Lets time pass up to `duration`, timers firing as they fall due.
    fn wait(&mut self, duration: Duration) {
        let end = self.now.after(duration);
        while let Some(due) = self.machine.deadline().filter(|due| due.at <= end.mono) {
            self.now = self.now.after(due.at.since(self.now.mono));
            self.step(None);
        }
        self.now = end;
    }

    /// Waits for the next request: when it came, its ticket and its query.
    fn request(&mut self) -> (Time, Ticket, String) {
        for _ in 0..100 {
            if let Some(request) = self.requests.pop_front() {
                return request;
            }
            let due = self.machine.deadline().expect("something is waited for");
            self.wait(due.at.since(self.now.mono));
        }
        panic!("no request comes");
    }

    fn tell(&mut self, event: HttpEvent) {
        self.step(Some(WatchInput::Http(event)));
    }

    fn head(&mut self, ticket: Ticket, code: u16, headers: &[(header::HeaderName, &str)]) {
        let headers: HeaderMap =
            headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap())).collect();
        self.tell(HttpEvent::Responded { ticket, status: StatusCode::from_u16(code).unwrap(), headers });
    }

    fn send(&mut self, ticket: Ticket, text: &str) {
        self.tell(HttpEvent::Received { ticket, bytes: Bytes::copy_from_slice(text.as_bytes()) });
    }

    fn close(&mut self, ticket: Ticket) {
        self.tell(HttpEvent::Closed { ticket, result: Ok(()) });
    }

    fn lose(&mut self, ticket: Ticket) {
        let error = NetworkError::new(NetworkErrorKind::Lost, "reset");
        self.tell(HttpEvent::Closed { ticket, result: Err(error) });
    }

    /// Answers the next request whole, and answers what it was.
    fn answer(&mut self, code: u16, body: &str) -> (Time, String) {
        let (at, ticket, uri) = self.request();
        self.head(ticket, code, &[]);
        self.send(ticket, body);
        self.close(ticket);
        (at, uri)
    }

    /// Lets the next request, which must be a watch, begin.
    fn open(&mut self) -> (Ticket, String) {
        let (_, ticket, uri) = self.request();
        assert!(uri.contains("watch=true"), "{uri}");
        self.head(ticket, 200, &[]);
        (ticket, uri)
    }

    fn said(&mut self) -> Vec<String> {
        std::mem::take(&mut self.said)
    }

    /// Whether the server was asked, and when, for what.
    fn at(&self) -> Duration {
        self.now.mono.since(Time::ZERO)
    }
}

fn words(event: &WatchEvent) -> String {
    let of =
        |what: &str, object: &Object| format!("{what} {}@{}", object.name(), object.resource_version().unwrap_or("-"));
    match event {
        WatchEvent::Restarted => "restarted".into(),
        WatchEvent::Listed(object) => of("listed", object),
        WatchEvent::Synced { resource_version } => format!("synced {}", resource_version.as_deref().unwrap_or("-")),
        WatchEvent::Applied(object) => of("applied", object),
        WatchEvent::Deleted(object) => of("deleted", object),
        WatchEvent::Faulty(faulty) => format!("faulty {}", faulty.error.object),
        WatchEvent::Failed { error, .. } => format!("failed {error}"),
        WatchEvent::Warned(warning) => format!("warned {warning}"),
    }
}

/// A peer whose list is done, and its watch open.
fn watching(config: WatchConfig) -> (Peer, Ticket) {
    let mut peer = Peer::new(config);
    peer.answer(200, &list("5", "", &[]));
    let (ticket, _) = peer.open();
    peer.said();
    (peer, ticket)
}

#[test]
fn a_list_in_three_pages_takes_its_version_from_the_first_page_that_has_one() {
    let mut peer = Peer::new(paged());
    let (_, first) = peer.answer(200, &list("", "c1", &[pod("a", 1)]));
    assert_eq!(first, "/api/v1/namespaces/ns/pods?limit=500");
    let (_, second) = peer.answer(200, &list("2", "c2", &[pod("b", 1)]));
    assert_eq!(second, "/api/v1/namespaces/ns/pods?limit=500&continue=c1");
    assert_eq!(peer.said(), ["restarted", "listed a@1", "listed b@1"]);
    peer.answer(200, &list("2", "", &[pod("c", 1)]));
    assert_eq!(peer.said(), ["listed c@1", "synced 2"]);
    let (_, watch) = peer.open();
    assert!(watch.contains("&resourceVersion=2&allowWatchBookmarks=true&timeoutSeconds="), "{watch}");
}

#[test]
fn a_page_that_has_expired_begins_the_list_anew_in_one_piece() {
    let mut peer = Peer::new(paged());
    peer.answer(200, &list("2", "c1", &[pod("a", 1)]));
    let mut expired = status(410, "Expired", "too old");
    expired["metadata"] = json!({"continue": "x"});
    peer.answer(410, &expired.to_string());
    let (_, again) = peer.answer(200, &list("9", "", &[pod("b", 1)]));
    assert_eq!(again, "/api/v1/namespaces/ns/pods");
    let said = peer.said();
    assert_eq!(
        (&said[2][..6], &said[3..]),
        ("failed", &["restarted".into(), "listed b@1".into(), "synced 9".into()][..])
    );
}

#[test]
fn a_page_that_fails_is_asked_for_again() {
    let mut peer = Peer::new(paged());
    peer.answer(200, &list("2", "c1", &[pod("a", 1)]));
    peer.answer(500, "");
    let (_, again) = peer.answer(200, &list("2", "", &[pod("b", 1)]));
    assert!(again.ends_with("&continue=c1"), "{again}");
    assert_eq!(peer.said().iter().filter(|said| *said == "restarted").count(), 1);
}

#[test]
fn a_server_that_repeats_a_token_is_not_asked_for_ever() {
    let mut peer = Peer::new(paged());
    for _ in 0..2 {
        peer.answer(200, &list("2", "c1", &[]));
    }
    let (at, _, again) = peer.request();
    assert!(!again.contains("continue") && at > Time::from_nanos(500_000_000), "{again} {at:?}");
}

#[test]
fn events_arrive_and_a_watch_that_ends_is_resumed_behind_the_last_of_them() {
    let (mut peer, ticket) = watching(paged());
    let [added, modified] = [event("ADDED", &pod("a", 6)), event("MODIFIED", &pod("a", 7))];
    peer.send(ticket, &(added + "\r\n" + &modified + &event("DELETED", &pod("a", 8))));
    assert_eq!(peer.said(), ["applied a@6", "applied a@7", "deleted a@8"]);
    peer.send(ticket, &event("BOOKMARK", &json!({"kind": "Pod", "metadata": {"resourceVersion": "1234", "creationTimestamp": null, "annotations": null}})));
    peer.send(ticket, &event("BOOKMARK", &json!({"metadata": {"resourceVersion": ""}})));
    peer.close(ticket);
    let (_, again) = peer.open();
    assert!(again.contains("resourceVersion=1234"), "{again}");
    assert_eq!(peer.said(), Vec::<String>::new());
}

#[test]
fn an_unknown_type_of_event_is_a_warning() {
    let (mut peer, ticket) = watching(paged());
    peer.send(ticket, &(event("SYNCED", &json!({})) + &event("ADDED", &pod("a", 6))));
    assert_eq!(peer.said(), ["warned the watch has an event of unknown type \"SYNCED\"", "applied a@6"]);
}

#[test]
fn text_split_between_bytes_of_one_character_arrives_whole() {
    let (mut peer, ticket) = watching(paged());
    let mut object = pod("a", 6);
    object["metadata"]["annotations"] = json!({"text": "naïve → 完了"});
    for byte in event("ADDED", &object).as_bytes() {
        peer.tell(HttpEvent::Received { ticket, bytes: Bytes::copy_from_slice(&[*byte]) });
    }
    assert_eq!(peer.said(), ["applied a@6"]);
}

#[test]
fn an_expired_watch_leads_to_a_new_list_in_every_form() {
    let no_code = json!({"kind": "Status", "status": "Failure", "reason": "Gone"});
    for error in [status(410, "Expired", "too old"), status(410, "Gone", ""), json!({"code": 410}), no_code] {
        let (mut peer, ticket) = watching(paged());
        peer.send(ticket, &(event("MODIFIED", &pod("a", 900)) + &event("ERROR", &error)));
        assert_eq!(peer.cancelled, [ticket]);
        let (_, uri) = peer.answer(200, &list("1000", "", &[pod("b", 950)]));
        assert_eq!(uri, "/api/v1/namespaces/ns/pods?limit=500");
        assert_eq!(peer.said(), ["applied a@900", "restarted", "listed b@950", "synced 1000"]);
    }
}

#[test]
fn an_expired_version_at_the_start_of_a_watch_leads_to_a_new_list() {
    let mut peer = Peer::new(paged());
    peer.answer(200, &list("5", "", &[]));
    peer.answer(410, &status(410, "Expired", "too old").to_string());
    let (_, uri) = peer.answer(200, &list("9", "", &[]));
    assert!(!uri.contains("watch"), "{uri}");
}

#[test]
fn a_server_that_expires_every_watch_is_asked_ever_more_seldom() {
    let mut peer = Peer::new(paged());
    for _ in 0..10 {
        peer.answer(200, &list("5", "", &[]));
        peer.answer(410, &status(410, "Expired", "").to_string());
    }
    assert!(peer.at() > Duration::from_secs(120), "{:?}", peer.at());
}

#[test]
fn a_silent_watch_is_given_up_and_resumed_without_a_list() {
    let (mut peer, ticket) = watching(WatchConfig { idle_timeout: Duration::from_secs(3600), ..paged() });
    peer.wait(Duration::from_secs(10));
    peer.send(ticket, &event("ADDED", &pod("a", 6)));
    let (at, _, again) = peer.request();
    assert_eq!(peer.cancelled, [ticket]);
    assert!(again.contains("watch=true") && again.contains("resourceVersion=6"), "{again}");
    assert!((300..=615).contains(&at.since(Time::ZERO).as_secs()), "{at:?}");
    assert_eq!(peer.said(), ["applied a@6"]);
    // What comes of the old one later is not heard.
    peer.send(ticket, &event("ADDED", &pod("b", 7)));
    assert_eq!(peer.said(), Vec::<String>::new());
}

#[test]
fn a_watch_may_be_silent_for_the_idle_time_after_each_word() {
    let (mut peer, ticket) = watching(paged());
    for version in 6..12 {
        peer.wait(Duration::from_secs(40));
        peer.send(ticket, &event("ADDED", &pod("a", version)));
    }
    assert!(peer.cancelled.is_empty());
    let (at, ..) = peer.request();
    assert_eq!(at.since(Time::ZERO), Duration::from_secs(240 + 90));
}

#[test]
fn how_long_a_watch_is_asked_for_differs_from_watch_to_watch() {
    let (mut peer, mut ticket) = watching(paged());
    let mut asked = std::collections::BTreeSet::new();
    for _ in 0..5 {
        peer.wait(Duration::from_secs(60));
        peer.close(ticket);
        let (next, uri) = peer.open();
        let seconds: u64 = uri.rsplit_once("timeoutSeconds=").unwrap().1.parse().unwrap();
        assert!((300..600).contains(&seconds));
        asked.insert(seconds);
        ticket = next;
    }
    assert!(asked.len() > 2, "{asked:?}");
}

#[test]
fn a_version_that_is_too_new_is_asked_for_once_and_then_dropped() {
    let too_large = |rest: Value| {
        let mut body = status(504, "Timeout", "slow");
        body["details"] = rest;
        body.to_string()
    };
    let bodies = [
        too_large(json!({"causes": [{"reason": "ResourceVersionTooLarge"}], "retryAfterSeconds": 1})),
        too_large(json!({"causes": [{"message": "Too large resource version"}]})),
        status(504, "Timeout", "Too large resource version: 5000, current: 12").to_string(),
    ];
    for body in bodies {
        let mut peer = Peer::new(WatchConfig { version: ListVersion::NotOlderThan("5000".into()), ..paged() });
        let (_, first) = peer.answer(504, &body);
        assert!(first.contains("resourceVersion=5000"), "{first}");
        let (at, second) = peer.answer(200, &list("12", "", &[]));
        assert!(!second.contains("resourceVersion"), "{second}");
        assert!(at.since(Time::ZERO) >= Duration::from_secs(1), "at most one retry a second: {at:?}");
    }
}

#[test]
fn a_watch_of_a_version_that_is_too_new_waits_a_second_each_time_and_ends_in_a_list() {
    let mut peer = Peer::new(paged());
    peer.answer(200, &list("5", "", &[]));
    let body = status(504, "Timeout", "Too large resource version: 5, current: 3").to_string();
    let times: Vec<_> = (0..3).map(|_| peer.answer(504, &body).0).collect();
    assert!(times.windows(2).all(|pair| pair[1].since(pair[0]) >= Duration::from_secs(1)), "{times:?}");
    let (_, uri) = peer.answer(200, &list("3", "", &[]));
    assert!(!uri.contains("watch"), "{uri}");
}

#[test]
fn the_servers_wish_to_wait_is_granted() {
    let mut peer = Peer::new(paged());
    let (_, ticket, _) = peer.request();
    peer.head(ticket, 429, &[(header::RETRY_AFTER, "7")]);
    peer.send(ticket, &status(429, "TooManyRequests", "slow down").to_string());
    peer.close(ticket);
    let (at, ..) = peer.request();
    assert_eq!(at, Time::from_secs(7));
}

#[test]
fn a_failure_on_the_stream_resumes_first_and_lists_when_it_comes_again() {
    let (mut peer, mut ticket) = watching(paged());
    for _ in 0..2 {
        peer.send(ticket, &event("ERROR", &status(500, "InternalError", "etcd")));
        let (next, uri) = peer.open();
        assert!(uri.contains("resourceVersion=5"), "{uri}");
        ticket = next;
    }
    peer.send(ticket, &event("ERROR", &status(500, "InternalError", "etcd")));
    let (_, _, uri) = peer.request();
    assert!(!uri.contains("watch"), "{uri}");
}

#[test]
fn permanent_failures_are_said_and_tried_again_ever_more_seldom() {
    for (code, reason) in [(403, "Forbidden"), (404, "NotFound"), (401, "Unauthorized")] {
        let mut peer = Peer::new(paged());
        for _ in 0..10 {
            peer.answer(code, &status(code, reason, "no").to_string());
        }
        assert_eq!(peer.said().iter().filter(|said| said.starts_with("failed no")).count(), 10);
        let (at, ..) = peer.request();
        assert!(at.since(Time::ZERO) > Duration::from_secs(150));
    }
}

#[test]
fn bodies_that_are_not_the_api_servers_are_typed_errors() {
    let cases = [
        (503, "<html>Service Unavailable</html>", "HTTP 503 with an HTML page"),
        (503, "", "HTTP 503 with an empty body"),
        (200, "<html>hello</html>", "HTTP 200 with an HTML page"),
        (200, "", "HTTP 200 with an empty body"),
        (200, "{\"kind\":\"PodList\",\"items\":[{\"metadata\":", "HTTP 200 with a truncated body"),
    ];
    for (code, body, expected) in cases {
        let mut peer = Peer::new(paged());
        peer.answer(code, body);
        let said = peer.said();
        assert!(said.last().unwrap().starts_with(&format!("failed {expected}")), "{said:?}");
        peer.answer(200, &list("5", "", &[pod("a", 1)]));
        assert_eq!(peer.said(), ["restarted", "listed a@1", "synced 5"]);
    }
}

#[test]
fn a_watch_that_is_a_web_page_is_an_error_and_resumed() {
    let (mut peer, ticket) = watching(paged());
    peer.send(ticket, "<html>\n<body>hello</body>\n</html>\n");
    let said = peer.said();
    assert!(said[0].starts_with("failed HTTP 200 with an HTML page"), "{said:?}");
    let (_, uri) = peer.open();
    assert!(uri.contains("resourceVersion=5"), "{uri}");
}

#[test]
fn the_first_retry_comes_within_a_second_and_none_later_than_a_minute() {
    let mut peer = Peer::new(paged());
    let mut last = Time::ZERO;
    for attempt in 0..20 {
        let (at, ticket, _) = peer.request();
        let waited = at.since(last);
        assert!(waited <= Duration::from_secs(if attempt < 2 { 1 } else { 60 }), "{attempt}: {waited:?}");
        last = at;
        peer.lose(ticket);
    }
}

#[test]
fn a_watch_that_works_forgets_the_failures_before_it() {
    let (mut peer, ticket) = watching(paged());
    peer.lose(ticket);
    for _ in 0..6 {
        let (_, ticket, _) = peer.request();
        peer.lose(ticket);
    }
    let (ticket, _) = peer.open();
    peer.send(ticket, &event("ADDED", &pod("a", 6)));
    let before = peer.now.mono;
    peer.lose(ticket);
    let (at, ..) = peer.request();
    assert!(at.since(before) <= Duration::from_secs(1));
}

#[test]
fn streams_that_close_at_once_are_not_opened_in_a_hot_loop() {
    for first_word in ["", "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"6\"}}}\n"] {
        let (mut peer, mut ticket) = watching(paged());
        for _ in 0..20 {
            peer.send(ticket, first_word);
            peer.close(ticket);
            ticket = peer.open().0;
        }
        assert!(peer.at() >= Duration::from_secs(19), "{:?}", peer.at());
    }
}

#[test]
fn a_poisonous_object_is_one_error_and_the_rest_goes_on() {
    let mut peer = Peer::new(paged());
    peer.answer(200, &list("5", "", &[pod("a", 1), json!({"metadata": {"namespace": "ns"}}), pod("c", 1)]));
    assert_eq!(peer.said(), ["restarted", "listed a@1", "faulty Pod", "listed c@1", "synced 5"]);
}

#[test]
fn an_event_over_the_limit_is_one_error_and_the_rest_goes_on() {
    let (mut peer, ticket) = watching(WatchConfig { max_object_bytes: 300, ..paged() });
    let mut large = pod("large", 6);
    large["spec"] = json!("x".repeat(1000));
    peer.send(ticket, &(event("ADDED", &large) + &event("ADDED", &pod("a", 7))));
    assert_eq!(peer.said(), ["faulty Pod ns/large", "applied a@7"]);
}

#[test]
fn a_streaming_list_is_complete_at_its_bookmark_and_goes_on_as_a_watch() {
    let mut peer = Peer::new(config());
    let (ticket, uri) = peer.open();
    assert!(
        uri.contains("sendInitialEvents=true&resourceVersionMatch=NotOlderThan") && !uri.contains("resourceVersion=")
    );
    peer.send(ticket, &(event("ADDED", &pod("a", 3)) + &event("ADDED", &pod("b", 2))));
    peer.send(ticket, &event("BOOKMARK", &json!({"metadata": {"resourceVersion": "4"}})));
    assert_eq!(peer.said(), ["restarted", "listed a@3", "listed b@2"]);
    peer.send(ticket, &(initial_end(9) + &event("ADDED", &pod("c", 10))));
    assert_eq!(peer.said(), ["synced 9", "applied c@10"]);
    peer.close(ticket);
    let (_, again) = peer.open();
    assert!(again.contains("resourceVersion=10") && !again.contains("sendInitialEvents"), "{again}");
}

#[test]
fn a_server_without_streaming_lists_is_asked_for_pages_from_then_on() {
    let mut peer = Peer::new(config());
    peer.answer(422, &status(422, "Invalid", "sendInitialEvents: Forbidden").to_string());
    peer.answer(200, &list("5", "", &[]));
    assert_eq!(peer.said(), ["restarted", "restarted", "synced 5"]);
    let (ticket, _) = peer.open();
    peer.send(ticket, &event("ERROR", &status(410, "Expired", "")));
    let (_, _, again) = peer.request();
    assert_eq!(again, "/api/v1/namespaces/ns/pods?limit=500");
}

#[test]
fn a_streaming_list_that_never_ends_gives_way_to_pages_that_are_remembered() {
    let mut peer = Peer::new(config());
    for _ in 0..2 {
        let (ticket, uri) = peer.open();
        assert!(uri.contains("sendInitialEvents"), "{uri}");
        peer.send(ticket, &event("ADDED", &pod("a", 3)));
    }
    let (at, uri) = peer.answer(200, &list("5", "", &[pod("a", 3)]));
    assert_eq!(uri, "/api/v1/namespaces/ns/pods?limit=500");
    assert!(at < Time::from_secs(60), "{at:?}");
    assert_eq!(peer.cancelled.len(), 2);
}

#[test]
fn a_streaming_list_that_sends_changes_for_ever_and_no_end_is_given_up_too() {
    let mut peer = Peer::new(config());
    for _ in 0..2 {
        let (ticket, _) = peer.open();
        for version in 0.. {
            peer.wait(Duration::from_secs(5));
            if peer.cancelled.last() == Some(&ticket) {
                break;
            }
            assert!(version < 100, "it is never given up");
            peer.send(ticket, &event("ADDED", &pod("a", version)));
        }
    }
    let (.., uri) = peer.request();
    assert!(!uri.contains("watch"), "{uri}");
}

#[test]
fn a_streaming_list_that_breaks_off_starts_over() {
    let mut peer = Peer::new(config());
    let (ticket, _) = peer.open();
    peer.send(ticket, &event("ADDED", &pod("a", 3)));
    peer.lose(ticket);
    let (ticket, uri) = peer.open();
    assert!(uri.contains("sendInitialEvents"), "{uri}");
    peer.send(ticket, &(event("ADDED", &pod("b", 3)) + &initial_end(9)));
    assert_eq!(
        peer.said(),
        ["restarted", "listed a@3", "failed connection lost: reset", "restarted", "listed b@3", "synced 9"]
    );
}

#[test]
fn streaming_lists_that_break_off_again_and_again_give_way_to_pages() {
    let mut peer = Peer::new(config());
    for word in ["", "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"items\":[]}\n"] {
        let (ticket, _) = peer.open();
        peer.send(ticket, word);
        if word.is_empty() {
            peer.lose(ticket);
        }
    }
    let (.., uri) = peer.request();
    assert!(!uri.contains("watch"), "{uri}");
    let mut peer = Peer::new(config());
    let (ticket, _) = peer.open();
    peer.send(ticket, &event("ERROR", &json!({"kind": "Status", "reason": "Invalid", "message": "no"})));
    let (.., uri) = peer.request();
    assert!(!uri.contains("watch"), "{uri}");
}

#[test]
fn metadata_alone_is_asked_for_by_the_accept_header() {
    let config = WatchConfig { metadata_only: true, ..paged() };
    let mut out = Outbox::new();
    let _ = ListWatch::new(config, 1, 1).step(Now::default(), None, &mut out);
    let accept = out.into_iter().find_map(|output| match output {
        WatchOutput::Http(HttpEffect::Send { request, .. }) => request.inner().headers().get(header::ACCEPT).cloned(),
        _ => None,
    });
    assert_eq!(accept.unwrap(), "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
}

#[test]
fn what_is_in_flight_is_cancelled_when_no_more_is_wanted() {
    let (mut peer, ticket) = watching(paged());
    peer.step(Some(WatchInput::Stopped));
    assert_eq!((peer.cancelled, peer.machine.deadline()), (vec![ticket], None));
}

#[test]
fn a_broken_event_says_what_is_wrong() {
    let (mut peer, ticket) = watching(paged());
    peer.send(ticket, "{\"type\":\"ADDED\",\"object\":{\"meta");
    peer.close(ticket);
    assert!(peer.said()[0].contains(&BodyProblem::Truncated.to_string()));
    let (_, uri) = peer.open();
    assert!(uri.contains("resourceVersion=5"));
}

/// The times between the next `count` requests, all of which are watches that `answer` deals with.
fn gaps(peer: &mut Peer, count: usize, mut answer: impl FnMut(&mut Peer, Ticket)) -> Vec<Duration> {
    let mut gaps = Vec::new();
    for _ in 0..count {
        let before = peer.now.mono;
        let (at, ticket, uri) = peer.request();
        assert!(uri.contains("watch=true"), "{uri}");
        gaps.push(at.since(before));
        answer(peer, ticket);
    }
    gaps
}

#[test]
fn a_bookmark_that_gets_no_further_is_no_progress() {
    let (mut peer, ticket) = watching(paged());
    let stuck =
        event("BOOKMARK", &json!({"metadata": {"resourceVersion": "5"}})) + &event("ERROR", &status(500, "", "x"));
    peer.send(ticket, &stuck);
    gaps(&mut peer, 2, |peer, ticket| {
        peer.head(ticket, 200, &[]);
        peer.send(ticket, &stuck);
    });
    let (.., uri) = peer.request();
    assert!(!uri.contains("watch"), "the same place is asked for without end: {uri}");
    let (mut peer, ticket) = watching(paged());
    peer.close(ticket);
    let gaps = gaps(&mut peer, 8, |peer, ticket| {
        peer.head(ticket, 200, &[]);
        peer.send(ticket, &event("ADDED", &pod("a", 5)));
        peer.lose(ticket);
    });
    assert!(gaps.last() > Some(&Duration::from_secs(30)), "{gaps:?}");
}

#[test]
fn an_overloaded_server_is_not_asked_for_a_list_on_top() {
    let (mut peer, ticket) = watching(paged());
    peer.lose(ticket);
    for code in [503, 429, 500, 403, 401, 503, 502, 504] {
        gaps(&mut peer, 1, |peer, ticket| {
            peer.head(ticket, code, &[]);
            peer.close(ticket);
        });
    }
    let (.., uri) = peer.request();
    assert!(uri.contains("resourceVersion=5"), "{uri}");
}

#[test]
fn a_watch_of_a_type_that_is_gone_leads_to_a_list() {
    let (mut peer, ticket) = watching(paged());
    peer.close(ticket);
    let (_, uri) = peer.answer(404, &status(404, "NotFound", "no").to_string());
    assert!(uri.contains("watch"), "{uri}");
    let (.., uri) = peer.request();
    assert!(!uri.contains("watch"), "{uri}");
}

#[test]
fn quiet_watches_that_end_in_order_are_resumed_at_once() {
    let (mut peer, ticket) = watching(paged());
    peer.wait(Duration::from_secs(3));
    peer.close(ticket);
    let gaps = gaps(&mut peer, 10, |peer, ticket| {
        peer.head(ticket, 200, &[]);
        peer.wait(Duration::from_secs(3));
        peer.close(ticket);
    });
    assert_eq!(gaps, [Duration::ZERO; 10]);
    assert_eq!(peer.said(), Vec::<String>::new());
}

#[test]
fn quiet_watches_that_something_between_resets_are_resumed_within_a_second() {
    let (mut peer, ticket) = watching(paged());
    peer.wait(Duration::from_secs(15));
    peer.lose(ticket);
    let gaps = gaps(&mut peer, 10, |peer, ticket| {
        peer.head(ticket, 200, &[]);
        peer.wait(Duration::from_secs(15));
        peer.lose(ticket);
    });
    assert!(gaps.iter().all(|gap| *gap <= Duration::from_secs(1)), "{gaps:?}");
}

#[test]
fn a_line_that_is_no_event_is_passed_by_a_list_when_it_comes_again() {
    let (mut peer, ticket) = watching(paged());
    let broken = "{\"type\":\"ADDED\",\"object\":{\"metadata\":{,}}}\n";
    peer.send(ticket, broken);
    gaps(&mut peer, 2, |peer, ticket| {
        peer.head(ticket, 200, &[]);
        peer.send(ticket, broken);
    });
    let (.., uri) = peer.request();
    assert!(!uri.contains("watch"), "{uri}");
}

#[test]
fn a_connection_that_breaks_in_the_middle_of_an_event_is_only_lost() {
    let (mut peer, ticket) = watching(paged());
    peer.close(ticket);
    gaps(&mut peer, 10, |peer, ticket| {
        peer.head(ticket, 200, &[]);
        peer.send(ticket, "{\"type\":\"ADDED\",\"object\":{\"meta");
        peer.close(ticket);
    });
    let (.., uri) = peer.request();
    assert!(uri.contains("resourceVersion=5"), "{uri}");
}

#[test]
fn a_server_cannot_put_off_a_request_for_ever() {
    let mut peer = Peer::new(paged());
    let (_, ticket, _) = peer.request();
    peer.head(ticket, 503, &[(header::RETRY_AFTER, "4000000000")]);
    peer.close(ticket);
    let (at, ..) = peer.request();
    assert_eq!(at, Time::from_secs(600));
}

#[test]
fn a_failure_says_when_it_is_tried_again() {
    let too_large = status(504, "Timeout", "Too large resource version: 5, current: 3").to_string();
    let mut machine = ListWatch::new(paged(), 1, 7);
    let mut out = Outbox::new();
    let _ = machine.step(Now::default(), None, &mut out);
    let ticket = machine.ticket().unwrap();
    for event in [
        HttpEvent::Responded { ticket, status: StatusCode::GATEWAY_TIMEOUT, headers: HeaderMap::new() },
        HttpEvent::Received { ticket, bytes: too_large.into() },
        HttpEvent::Closed { ticket, result: Ok(()) },
    ] {
        let _ = machine.step(Now::default(), Some(WatchInput::Http(event)), &mut out);
    }
    let said = out.into_iter().find_map(|output| match output {
        WatchOutput::Event(WatchEvent::Failed { retry_in, .. }) => Some(retry_in),
        _ => None,
    });
    let until = machine.deadline().unwrap().at.since(Time::ZERO);
    assert_eq!(said, Some(until));
    assert!(until >= Duration::from_secs(1), "a version that is not there yet is asked for too soon: {until:?}");
}

#[test]
fn watches_that_expire_again_and_again_are_a_failure() {
    let mut peer = Peer::new(paged());
    for _ in 0..3 {
        peer.answer(200, &list("5", "", &[]));
        peer.answer(410, &status(410, "Expired", "too old").to_string());
    }
    assert!(peer.said().iter().any(|said| said.starts_with("failed too old")));
}

#[test]
fn a_refusal_that_stops_half_way_keeps_its_code() {
    let mut peer = Peer::new(paged());
    let (_, ticket, _) = peer.request();
    peer.head(ticket, 403, &[]);
    peer.send(ticket, "{\"kind\":");
    peer.request();
    assert!(peer.said()[1].starts_with("failed HTTP 403 with a truncated body"));
    assert_eq!(peer.cancelled, [ticket]);
}

#[test]
fn events_in_no_order_do_not_say_where_to_go_on() {
    for version in ["", "0"] {
        let mut peer = Peer::new(paged());
        peer.answer(200, &list(version, "", &[]));
        let (ticket, uri) = peer.open();
        assert!(!uri.contains("resourceVersion"), "{uri}");
        peer.send(ticket, &(event("ADDED", &pod("a", 9)) + &event("ADDED", &pod("b", 3))));
        peer.wait(Duration::from_secs(5));
        peer.close(ticket);
        let (.., uri) = peer.request();
        assert!(!uri.contains("watch"), "what came between 3 and 9 would be missed: {uri}");
        let (mut peer, bookmark) = (Peer::new(paged()), json!({"metadata": {"resourceVersion": "12"}}));
        peer.answer(200, &list(version, "", &[]));
        let (ticket, _) = peer.open();
        peer.send(ticket, &(event("ADDED", &pod("a", 9)) + &event("BOOKMARK", &bookmark)));
        peer.wait(Duration::from_secs(5));
        peer.close(ticket);
        assert!(peer.open().1.contains("resourceVersion=12"));
    }
}

/// What a server may do next to whatever is asked.
#[derive(Clone, Debug)]
enum Turn {
    Head(u16),
    Send(Vec<u8>),
    Close(bool),
    Wait(u64),
}

fn turn() -> impl Strategy<Value = Turn> {
    let texts = prop_oneof![
        Just(event("ADDED", &pod("a", 6))),
        Just(event("DELETED", &pod("a", 7))),
        Just(initial_end(9)),
        Just(event("ERROR", &status(410, "Expired", ""))),
        Just(event("ERROR", &status(500, "InternalError", ""))),
        Just(list("5", "", &[pod("a", 1)])),
        Just(list("5", "c1", &[pod("b", 1)])),
        Just(status(429, "TooManyRequests", "").to_string()),
        Just("<html>".to_owned()),
    ];
    prop_oneof![
        2 => prop::sample::select(vec![200, 200, 200, 410, 429, 503, 404, 422]).prop_map(Turn::Head),
        4 => texts.prop_map(|text| Turn::Send(text.into_bytes())),
        2 => any::<bool>().prop_map(Turn::Close),
        2 => prop::sample::select(vec![1, 500, 20_000, 120_000, 700_000]).prop_map(Turn::Wait),
    ]
}

/// The turns as inputs that answer the request which is open at that point.
fn script(make: impl Fn() -> ListWatch, turns: &[Turn]) -> Vec<Move<WatchInput>> {
    let mut script = Vec::new();
    let mut ticket = None;
    for turn in turns {
        let trace = laws::run(&mut make(), script.iter().cloned());
        for output in trace.into_iter().flat_map(|(_, outputs, _)| outputs) {
            if let WatchOutput::Http(HttpEffect::Send { ticket: sent, .. }) = output {
                ticket = Some(sent);
            }
        }
        let Some(ticket) = ticket else { continue };
        let error = NetworkError::new(NetworkErrorKind::Lost, "reset");
        script.push(match turn {
            Turn::Wait(millis) => Move::Wait(Duration::from_millis(*millis)),
            Turn::Head(code) => {
                let status = StatusCode::from_u16(*code).unwrap();
                Move::Input(WatchInput::Http(HttpEvent::Responded { ticket, status, headers: HeaderMap::new() }))
            }
            Turn::Send(bytes) => {
                Move::Input(WatchInput::Http(HttpEvent::Received { ticket, bytes: bytes.clone().into() }))
            }
            Turn::Close(ok) => {
                let result = if *ok { Ok(()) } else { Err(error) };
                Move::Input(WatchInput::Http(HttpEvent::Closed { ticket, result }))
            }
        });
    }
    script
}

fn stale() -> Vec<WatchInput> {
    let ticket = Tickets::new(99).issue();
    let bytes = Bytes::from(event("ADDED", &pod("stale", 1)));
    [
        HttpEvent::Responded { ticket, status: StatusCode::OK, headers: HeaderMap::new() },
        HttpEvent::Received { ticket, bytes },
        HttpEvent::Closed { ticket, result: Ok(()) },
    ]
    .map(WatchInput::Http)
    .to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_laws_of_machines_hold(turns in prop::collection::vec(turn(), 0..25), streaming: bool, seed: u64) {
        let make = || ListWatch::new(WatchConfig { streaming, ..config() }, 1, seed);
        let script = script(make, &turns);
        laws::same_inputs_same_outputs(make, &script);
        laws::stale_inputs_change_nothing(make, &script, &stale());
        let stopped: Vec<_> = script.iter().cloned().chain([Move::Input(WatchInput::Stopped)]).collect();
        laws::ended_stays_ended(&mut make(), &stopped, &script);
    }

    #[test]
    fn how_the_bytes_are_cut_changes_nothing(turns in prop::collection::vec(turn(), 0..25), streaming: bool, size in 1..40_usize) {
        let make = || ListWatch::new(WatchConfig { streaming, ..config() }, 1, 3);
        let whole = script(make, &turns);
        let mut cut = Vec::new();
        for step in &whole {
            match step {
                Move::Input(WatchInput::Http(HttpEvent::Received { ticket, bytes })) => cut.extend(
                    bytes.chunks(size).map(|piece| {
                        let bytes = Bytes::copy_from_slice(piece);
                        Move::Input(WatchInput::Http(HttpEvent::Received { ticket: *ticket, bytes }))
                    }),
                ),
                step => cut.push(step.clone()),
            }
        }
        let said = |script: Vec<Move<WatchInput>>| -> Vec<_> {
            laws::run(&mut make(), script).into_iter().flat_map(|(at, said, _)| said.into_iter().map(move |said| (at, said))).collect()
        };
        prop_assert_eq!(said(whole), said(cut));
    }
}
