use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use k8s_openapi::api::core::v1::Pod;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::error::{NetworkError, NetworkErrorKind};
use crate::laws::{self, Move};
use crate::machine::Ticket;
use crate::request::Requests;
use crate::resource::KnownResource;

fn config() -> InformerConfig {
    let requests = Requests::new(Pod::resource_type(), Some("ns"));
    InformerConfig::new(WatchConfig { streaming: false, ..WatchConfig::new(requests) })
}

fn pod(name: &str, uid: u32, version: u32) -> Value {
    let (uid, version) = (uid.to_string(), version.to_string());
    json!({"metadata": {"namespace": "ns", "name": name, "uid": uid, "resourceVersion": version}})
}

struct Peer {
    informer: Informer,
    now: Now,
    open: Option<Ticket>,
    said: Vec<String>,
}

impl Peer {
    fn new(config: InformerConfig) -> Self {
        let mut peer =
            Self { informer: Informer::new(config, 1, 1), now: Now::default(), open: None, said: Vec::new() };
        peer.step(None);
        peer
    }

    fn step(&mut self, input: Option<InformerInput>) {
        let mut out = Outbox::new();
        let _ = self.informer.step(self.now, input, &mut out);
        for output in out {
            match output {
                InformerOutput::Http(HttpEffect::Send { ticket, .. }) => self.open = Some(ticket),
                InformerOutput::Http(HttpEffect::Cancel { .. }) => self.open = None,
                InformerOutput::Event(event) => self.said.push(words(&event)),
            }
        }
    }

    fn wait(&mut self, duration: Duration) {
        let end = self.now.after(duration);
        while let Some(due) = self.informer.deadline().filter(|due| due.at <= end.mono) {
            self.now = self.now.after(due.at.since(self.now.mono));
            self.step(None);
        }
        self.now = end;
    }

    fn ticket(&mut self) -> Ticket {
        while self.open.is_none() {
            self.wait(Duration::from_secs(1));
        }
        self.open.expect("waited for")
    }

    fn head(&mut self) {
        let (ticket, headers) = (self.ticket(), HeaderMap::new());
        self.step(Some(InformerInput::Http(HttpEvent::Responded { ticket, status: StatusCode::OK, headers })));
    }

    fn send(&mut self, text: &str) {
        let ticket = self.ticket();
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        self.step(Some(InformerInput::Http(HttpEvent::Received { ticket, bytes })));
    }

    fn close(&mut self) {
        let ticket = self.ticket();
        self.open = None;
        self.step(Some(InformerInput::Http(HttpEvent::Closed { ticket, result: Ok(()) })));
    }

    /// Answers a list, and opens the watch behind it.
    fn list(&mut self, pods: &[Value]) {
        self.head();
        self.send(&json!({"kind": "PodList", "metadata": {"resourceVersion": "100"}, "items": pods}).to_string());
        self.close();
        self.head();
    }

    fn event(&mut self, kind: &str, object: &Value) {
        self.send(&format!("{}\n", json!({"type": kind, "object": object})));
    }

    /// Has the watch expire, and answers the list that comes of it.
    fn relist(&mut self, pods: &[Value]) {
        self.event("ERROR", &json!({"code": 410}));
        self.list(pods);
    }

    fn said(&mut self) -> Vec<String> {
        std::mem::take(&mut self.said)
    }
}

fn words(event: &InformerEvent) -> String {
    let of = |object: &Object| {
        format!("{}:{}@{}", object.name(), object.uid().unwrap_or("-"), object.resource_version().unwrap_or("-"))
    };
    match event {
        InformerEvent::Added(object) => format!("added {}", of(object)),
        InformerEvent::Updated { old, new } => format!("updated {} {}", of(old), of(new)),
        InformerEvent::Deleted(object) => format!("deleted {}", of(object)),
        InformerEvent::Synced => "synced".into(),
        InformerEvent::Resynced(object) => format!("resynced {}", of(object)),
        InformerEvent::Faulty(faulty) => format!("faulty {}", faulty.error.object),
        InformerEvent::Failed { error, .. } => format!("failed {error}"),
        InformerEvent::Warned(warning) => format!("warned {warning}"),
    }
}

#[test]
fn nothing_is_known_before_the_first_list_is_complete() {
    let mut peer = Peer::new(config());
    peer.head();
    peer.send(
        r#"{"kind":"PodList","metadata":{"resourceVersion":"5"},"items":[{"metadata":{"namespace":"ns","name":"a"}},"#,
    );
    assert!(peer.informer.store().is_empty() && !peer.informer.has_synced() && peer.said().is_empty());
    peer.send(r#"{"metadata":{"namespace":"ns","name":"b"}}]}"#);
    peer.close();
    assert_eq!(peer.said(), ["added a:-@-", "added b:-@-", "synced"]);
    assert_eq!(peer.informer.status(), InformerStatus { synced: true, objects: 2, failure: None });
}

#[test]
fn relist_reports_what_changed_during_the_gap_and_nothing_else() {
    let mut peer = Peer::new(config());
    peer.list(&[pod("gone", 1, 1), pod("other", 2, 1), pod("same", 3, 1), pod("newer", 4, 1)]);
    peer.said();
    let same = peer.informer.store().get(Some("ns"), "same").cloned();
    peer.relist(&[pod("fresh", 5, 7), pod("newer", 4, 8), pod("other", 6, 9), pod("same", 3, 1)]);
    assert_eq!(
        peer.said(),
        [
            "deleted gone:1@1",
            "added fresh:5@7",
            "updated newer:4@1 newer:4@8",
            "deleted other:2@1",
            "added other:6@9",
            "synced"
        ]
    );
    let still = peer.informer.store().get(Some("ns"), "same").cloned();
    assert!(Arc::ptr_eq(&same.unwrap(), &still.unwrap()));
}

#[test]
fn readers_see_the_old_objects_while_a_new_list_comes_in() {
    let mut peer = Peer::new(config());
    peer.list(&[pod("a", 1, 1)]);
    peer.event("ERROR", &json!({"code": 410}));
    peer.head();
    peer.send(r#"{"kind":"PodList","metadata":{"resourceVersion":"5"},"items":["#);
    assert_eq!((peer.informer.store().len(), peer.informer.has_synced()), (1, true));
}

#[test]
fn changes_are_told_by_what_was_known_not_by_what_the_event_is_called() {
    let mut peer = Peer::new(config());
    peer.list(&[]);
    peer.said();
    peer.event("MODIFIED", &pod("a", 1, 1));
    peer.event("ADDED", &pod("a", 1, 2));
    peer.event("ADDED", &pod("a", 1, 2));
    peer.event("ADDED", &pod("a", 2, 3));
    peer.event("DELETED", &pod("a", 1, 4));
    peer.event("DELETED", &pod("a", 2, 5));
    peer.event("DELETED", &pod("a", 2, 6));
    assert_eq!(peer.said(), ["added a:1@1", "updated a:1@1 a:1@2", "deleted a:1@2", "added a:2@3", "deleted a:2@5"]);
}

#[test]
fn an_object_that_cannot_be_read_is_not_taken_for_gone() {
    let mut peer = Peer::new(config());
    peer.list(&[pod("a", 1, 1)]);
    peer.said();
    let mut deep = json!(1);
    for _ in 0..200 {
        deep = json!([deep]);
    }
    let mut odd = pod("a", 1, 2);
    odd["spec"] = deep;
    peer.relist(&[odd, pod("b", 2, 2)]);
    assert_eq!(peer.said(), ["faulty Pod ns/a", "added b:2@2", "synced"]);
    peer.event("MODIFIED", &pod("a", 1, 3));
    assert_eq!(peer.said(), ["updated a:1@1 a:1@3"]);
}

#[test]
fn a_misfit_is_known_and_says_so_when_it_is_read() {
    let mut peer = Peer::new(config());
    let mut odd = pod("odd", 1, 1);
    odd["spec"] = json!({"containers": -5});
    peer.list(&[pod("a", 2, 1), odd, pod("b", 3, 1)]);
    assert_eq!(peer.said(), ["added a:2@1", "added b:3@1", "added odd:1@1", "synced"]);
    let store = peer.informer.store();
    let fits: Vec<bool> = store.iter().map(|object| object.decode::<Pod>().is_ok()).collect();
    assert_eq!(fits, [true, true, false]);
    let error = store.get(Some("ns"), "odd").unwrap().decode::<Pod>().unwrap_err();
    assert_eq!((&*error.object, &*error.path), ("Pod ns/odd", "spec.containers"));
    peer.event("MODIFIED", &pod("odd", 1, 2));
    assert!(peer.informer.store().get(Some("ns"), "odd").unwrap().decode::<Pod>().is_ok());
}

#[test]
fn a_failure_shows_until_something_works() {
    let mut peer = Peer::new(config());
    peer.head();
    peer.send("<html>");
    peer.close();
    assert!(peer.informer.status().failure.is_some() && peer.said()[0].starts_with("failed HTTP 200"));
    peer.list(&[]);
    assert_eq!(peer.informer.status().failure, None);
}

#[test]
fn a_failure_shows_no_more_when_a_quiet_watch_goes_on() {
    let mut peer = Peer::new(config());
    peer.list(&[]);
    let ticket = peer.open.take().unwrap();
    let error = NetworkError::new(NetworkErrorKind::Lost, "reset");
    peer.step(Some(InformerInput::Http(HttpEvent::Closed { ticket, result: Err(error) })));
    assert!(peer.informer.status().failure.is_some());
    peer.head();
    assert_eq!(peer.informer.status().failure, None);
}

#[test]
fn a_full_store_tells_deletions_of_what_it_had_to_forget() {
    let mut peer = Peer::new(InformerConfig { capacity: 1, ..config() });
    peer.list(&[pod("a", 1, 1), pod("b", 2, 1)]);
    peer.said();
    peer.event("DELETED", &pod("a", 1, 2));
    assert_eq!(peer.said(), ["deleted a:1@2"]);
}

#[test]
fn a_full_store_says_of_a_new_list_only_what_it_had_forgotten() {
    let mut peer = Peer::new(InformerConfig { capacity: 2, ..config() });
    let pods = [pod("a", 1, 1), pod("b", 2, 1), pod("c", 3, 1)];
    peer.list(&pods);
    peer.said();
    peer.relist(&pods);
    assert_eq!(peer.said(), ["added a:1@1", "synced"]);
}

#[test]
fn a_new_list_holds_what_is_unchanged_only_once() {
    let mut peer = Peer::new(config());
    peer.list(&[pod("a", 1, 1)]);
    let known = Arc::clone(peer.informer.store().get(Some("ns"), "a").unwrap());
    peer.event("ERROR", &json!({"code": 410}));
    peer.head();
    peer.send(&json!({"kind": "PodList", "metadata": {"resourceVersion": "9"}, "items": [pod("a", 1, 1)]}).to_string());
    assert_eq!(Arc::strong_count(&known), 3, "here, in the store and in the new list");
    peer.close();
    assert!(Arc::ptr_eq(&known, peer.informer.store().get(Some("ns"), "a").unwrap()));
}

#[test]
fn a_fault_does_not_undo_what_the_list_has_said() {
    let mut peer = Peer::new(config());
    peer.list(&[pod("a", 1, 1)]);
    peer.relist(&[pod("a", 1, 2), json!({"metadata": {"namespace": "ns", "name": "a"}, "spec": nested(200)})]);
    let known = peer.informer.store().get(Some("ns"), "a").unwrap();
    assert_eq!(known.resource_version(), Some("2"));
}

/// An array in an array, and so on.
fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, _| json!([inner]))
}

#[test]
fn everything_is_said_again_after_each_period_and_the_server_hears_nothing_of_it() {
    let mut peer = Peer::new(InformerConfig { resync: Some(Duration::from_secs(30)), ..config() });
    peer.list(&[pod("a", 1, 1)]);
    peer.said();
    let watch = peer.open;
    peer.wait(Duration::from_secs(61));
    assert_eq!(peer.said(), ["resynced a:1@1", "resynced a:1@1"]);
    assert_eq!(peer.open, watch);
}

#[test]
fn an_object_that_had_to_make_room_comes_back_as_an_addition() {
    let mut peer = Peer::new(InformerConfig { capacity: 1, ..config() });
    peer.list(&[pod("a", 1, 1), pod("b", 2, 1)]);
    assert_eq!(peer.informer.store().len(), 1);
    peer.said();
    peer.event("MODIFIED", &pod("a", 1, 2));
    assert_eq!((peer.said(), peer.informer.store().len()), (vec!["added a:1@2".to_owned()], 1));
}

#[derive(Clone, Debug)]
enum Step {
    Change(&'static str, u32, bool),
    Relist,
}

fn step() -> impl Strategy<Value = Step> {
    let names = prop::sample::select(vec!["a", "b", "c"]);
    prop_oneof![
        6 => (names, 1..3_u32, any::<bool>()).prop_map(|(name, uid, there)| Step::Change(name, uid, there)),
        1 => Just(Step::Relist),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_store_is_the_server_whatever_the_watch_misses(steps in prop::collection::vec((step(), any::<bool>()), 0..40)) {
        let mut peer = Peer::new(config());
        peer.list(&[]);
        let mut server: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
        let mut missed = false;
        for (version, (step, heard)) in (1..).zip(steps) {
            match step {
                Step::Relist => {
                    let pods: Vec<_> = server.iter().map(|(name, (uid, version))| pod(name, *uid, *version)).collect();
                    peer.relist(&pods);
                    missed = false;
                }
                Step::Change(name, uid, there) => {
                    let known = server.get(name).copied();
                    let kind = match (known, there) {
                        (None, true) => "ADDED",
                        (Some((same, _)), true) if same == uid => "MODIFIED",
                        // Another object of a name that is taken: what was there must go first.
                        (Some(_), _) => "DELETED",
                        (None, false) => continue,
                    };
                    let uid = known.map_or(uid, |(uid, _)| uid);
                    if kind == "DELETED" { server.remove(name); } else { server.insert(name, (uid, version)); }
                    missed |= !heard;
                    if !missed {
                        peer.event(kind, &pod(name, uid, version));
                    }
                }
            }
            if !missed {
                let known: Vec<_> = peer.informer.store().iter().map(|object| (object.name().to_owned(), object.uid().unwrap().to_owned(), object.resource_version().unwrap().to_owned())).collect();
                let there: Vec<_> = server.iter().map(|(name, (uid, version))| ((*name).to_owned(), uid.to_string(), version.to_string())).collect();
                prop_assert_eq!(known, there);
            }
        }
    }

    #[test]
    fn the_laws_of_machines_hold(waits in prop::collection::vec(1..100_000_u64, 0..10), seed: u64) {
        let make = || Informer::new(InformerConfig { resync: Some(Duration::from_secs(7)), ..config() }, 1, seed);
        let mut script: Vec<Move<InformerInput>> = Vec::new();
        for wait in waits {
            let sent = laws::run(&mut make(), script.iter().cloned()).into_iter().flat_map(|(_, said, _)| said).filter_map(|said| match said {
                InformerOutput::Http(HttpEffect::Send { ticket, .. }) => Some(ticket),
                _ => None,
            });
            if let Some(ticket) = sent.last() {
                let body = json!({"kind": "PodList", "metadata": {"resourceVersion": "9"}, "items": [pod("a", 1, 1)]}).to_string();
                script.extend([
                    HttpEvent::Responded { ticket, status: StatusCode::OK, headers: HeaderMap::new() },
                    HttpEvent::Received { ticket, bytes: body.into() },
                    HttpEvent::Closed { ticket, result: Ok(()) },
                ].map(|event| Move::Input(InformerInput::Http(event))));
            }
            script.push(Move::Wait(Duration::from_millis(wait)));
        }
        let stale = [InformerInput::Http(HttpEvent::Closed { ticket: crate::machine::Tickets::new(9).issue(), result: Ok(()) })];
        laws::same_inputs_same_outputs(make, &script);
        laws::stale_inputs_change_nothing(make, &script, &stale);
        let stopped: Vec<_> = script.iter().cloned().chain([Move::Input(InformerInput::Stopped)]).collect();
        laws::ended_stays_ended(&mut make(), &stopped, &script);
    }
}
