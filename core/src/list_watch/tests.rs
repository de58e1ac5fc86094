mod endings;
mod properties;
mod streaming;

use std::collections::VecDeque;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::*;
use crate::error::{BodyProblem, NetworkError, NetworkErrorKind};
use crate::request::Requests;
use crate::resource::KnownResource;

fn config() -> WatchConfig {
    WatchConfig::new(Requests::new(Pod::resource_type(), Some("ns")))
}

fn paged() -> WatchConfig {
    WatchConfig { streaming: false, ..config() }
}

fn pod(name: &str, version: u32) -> Value {
    json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"namespace": "ns", "name": name, "uid": name, "resourceVersion": version.to_string()}})
}

fn event(kind: &str, object: &Value) -> String {
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
