//! A reconciler in a small world of its own: a server, a cache that lags behind it, handlers that do anything.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use http::{Method, Request};
use serde_json::{Value, json};

use super::tests::{answer, config, key};
use super::*;
use crate::error::{NetworkError, NetworkErrorKind};
use crate::pass::Verdict;
use crate::patch::JsonPatch;
use crate::resource::Resource;
use crate::unstructured::Unstructured;

#[test]
fn nothing_runs_twice_at_once_on_old_news_or_is_lost() {
    for seed in 0..SEEDS {
        let once = World::new(seed).live();
        assert_eq!(once, World::new(seed).live(), "seed {seed} gave two different runs");
    }
}

struct World {
    seed: u64,
    random: Random,
    now: Now,
    reconciler: Reconciler,
    versions: u64,
    server: BTreeMap<&'static str, Value>,
    /// What the watch has still to deliver.
    events: VecDeque<(&'static str, Option<Value>)>,
    cache: BTreeMap<&'static str, Value>,
    running: BTreeMap<Ticket, &'static str>,
    requests: BTreeMap<Ticket, Request<Bytes>>,
    tickets: BTreeSet<Ticket>,
    /// What passes know that they have written, and the cache has not been found to lag behind.
    written: BTreeMap<&'static str, ObjectVersion>,
    /// What the cache held when a key was run last.
    seen: BTreeMap<&'static str, Option<Value>>,
    owed: BTreeSet<&'static str>,
    stopped: usize,
    trace: Vec<ReconcilerOutput>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut config = ReconcilerConfig { seed: random.seed(), ..config(1 + random.below(3) as usize) };
        config.pass.timeout = Some(Duration::from_secs(20));
        Self {
            seed,
            random,
            now: Now::default(),
            reconciler: Reconciler::new(config),
            versions: 0,
            server: BTreeMap::new(),
            events: VecDeque::new(),
            cache: BTreeMap::new(),
            running: BTreeMap::new(),
            requests: BTreeMap::new(),
            tickets: BTreeSet::new(),
            written: BTreeMap::new(),
            seen: BTreeMap::new(),
            owed: BTreeSet::new(),
            stopped: 0,
            trace: Vec::new(),
        }
    }

    fn live(mut self) -> Vec<ReconcilerOutput> {
        for step in 0..120 {
            if step == 10 {
                self.step(Some(ReconcilerInput::Synced));
            }
            match self.random.below(16) {
                0..=2 => self.edit(),
                3..=6 => self.deliver(),
                7..=10 => self.handle(true),
                11..=13 => self.serve(true),
                _ => {
                    let longest = if self.random.below(2) == 0 { 1_000 } else { 10_000 };
                    let millis = self.random.below(longest);
                    self.wait(Duration::from_millis(millis));
                }
            }
        }
        self.settle();
        self.step(Some(ReconcilerInput::ShutDown { drain: true }));
        assert_eq!(self.stopped, 1, "seed {}", self.seed);
        self.trace
    }

    /// Lets everything come to rest without faults, and looks whether all is as it should be.
    fn settle(&mut self) {
        for _ in 0..1000 {
            self.deliver();
            self.handle(false);
            self.serve(false);
            self.wait(Duration::from_secs(1));
        }
        let seed = self.seed;
        assert!(self.owed.is_empty(), "seed {seed}: {:?} never ran", self.owed);
        assert!(self.reconciler.is_idle(), "seed {seed}: {:?}", self.reconciler.status());
        for (name, seen) in &self.seen {
            assert_eq!(seen.as_ref(), self.server.get(name), "seed {seed}: the last pass of {name} saw old news");
        }
    }

    /// Somebody else changes, removes or makes an object.
    fn edit(&mut self) {
        let name = NAMES[self.random.below(NAMES.len() as u64) as usize];
        self.versions += 1;
        if self.server.contains_key(name) && self.random.below(5) == 0 {
            self.server.remove(name);
            self.events.push_back((name, None));
            return;
        }
        let uid = self.versions.to_string();
        let object = self.server.entry(name).or_insert_with(|| {
            json!({
                "apiVersion": "example.com/v1", "kind": "Widget", "spec": {"size": 0},
                "metadata": {"name": name, "namespace": "ns", "uid": uid},
            })
        });
        object["spec"]["other"] = self.versions.into();
        object["metadata"]["resourceVersion"] = self.versions.to_string().into();
        self.events.push_back((name, Some(object.clone())));
    }

    /// The watch brings the cache one event further.
    fn deliver(&mut self) {
        let Some((name, object)) = self.events.pop_front() else { return };
        let version = object.as_ref().map(version_of);
        match object {
            Some(object) => self.cache.insert(name, object),
            None => self.cache.remove(name),
        };
        self.step(Some(ReconcilerInput::Observed { key: key(name), version }));
        self.owed.insert(name);
        self.step(Some(ReconcilerInput::Enqueued(key(name))));
    }

    /// A handler ends.
    fn handle(&mut self, freely: bool) {
        let Some((ticket, name)) = pick(&self.running, &mut self.random) else { return };
        self.running.remove(&ticket);
        let read = self.seen[name].clone();
        let outcome = match read {
            None => Outcome::new(Verdict::Gone),
            Some(_) if !freely => Outcome::done(),
            Some(old) => self.outcome(old),
        };
        self.step(Some(ReconcilerInput::Ran { ticket, outcome }));
    }

    fn outcome(&mut self, old: Value) -> Outcome {
        let mut new = old.clone();
        new["spec"]["size"] = (old["spec"]["size"].as_u64().unwrap_or_default() + 1).into();
        let outcome = match self.random.below(8) {
            0 => Outcome::failed("m"),
            1 => Outcome::panicked("m"),
            2 => Outcome::waiting("R", "m").requeue_after(Duration::from_secs(3)),
            3 => Outcome::done().requeue_after(Duration::from_secs(self.random.below(3))),
            4 => Outcome::new(Verdict::Cancelled),
            _ => Outcome::done(),
        };
        if self.random.below(3) == 0 { outcome } else { outcome.with_change(old, new) }
    }

    /// The server answers a request, or the network does not let it.
    fn serve(&mut self, freely: bool) {
        let Some((ticket, request)) = pick(&self.requests, &mut self.random) else { return };
        self.requests.remove(&ticket);
        let fault = if freely { self.random.below(8) } else { 8 };
        let (code, body) = if fault == 0 { refusal(500, "InternalError") } else { self.patch(&request) };
        if fault <= 2 && fault > 0 {
            let result = Err(NetworkError::new(NetworkErrorKind::Lost, "reset"));
            return self.step(Some(ReconcilerInput::Http(HttpEvent::Closed { ticket, result })));
        }
        if code == 200 {
            self.written.insert(name_of(&request), version_of(&body));
        }
        for input in answer(ticket, code, &body) {
            self.step(Some(input));
        }
    }

    fn patch(&mut self, request: &Request<Bytes>) -> (u16, Value) {
        assert_eq!(request.method(), Method::PATCH);
        let name = name_of(request);
        let Some(object) = self.server.get_mut(name) else { return refusal(404, "NotFound") };
        let patch: JsonPatch = serde_json::from_slice(request.body()).unwrap();
        if patch.apply(object).is_err() {
            return refusal(422, "Invalid");
        }
        self.versions += 1;
        object["metadata"]["resourceVersion"] = self.versions.to_string().into();
        self.events.push_back((name, Some(object.clone())));
        (200, object.clone())
    }

    fn wait(&mut self, duration: Duration) {
        let end = self.now.after(duration);
        for _ in 0..10_000 {
            let Some(due) = self.reconciler.deadline().filter(|due| due.at <= end.mono) else { break };
            self.now = self.now.after(due.at.since(self.now.mono));
            self.step(None);
        }
        self.now = end;
    }

    fn step(&mut self, input: Option<ReconcilerInput>) {
        let mut out = Outbox::new();
        let deadline = self.reconciler.step(self.now, input, &mut out);
        assert!(deadline.is_none_or(|due| due.at > self.now.mono));
        for output in out.drain() {
            self.hear(&output);
            self.trace.push(output);
        }
        let busy = self.running.len() + self.requests.len();
        assert!(busy <= self.reconciler.status().processing, "seed {}", self.seed);
    }

    fn hear(&mut self, output: &ReconcilerOutput) {
        let seed = self.seed;
        match output {
            ReconcilerOutput::Run { ticket, key } => {
                let name = known(key.name());
                assert!(self.tickets.insert(*ticket), "seed {seed}: {ticket:?} twice");
                assert!(!self.running.values().any(|other| *other == name), "seed {seed}: {name} runs twice");
                if let (Some(written), Some(cached)) = (self.written.remove(name), self.cache.get(name)) {
                    assert!(written.is_known_from(&version_of(cached)), "seed {seed}: {name} runs on old news");
                }
                self.owed.remove(name);
                self.running.insert(*ticket, name);
                self.seen.insert(name, self.cache.get(name).cloned());
            }
            ReconcilerOutput::Http(HttpEffect::Send { ticket, request }) => {
                assert!(self.tickets.insert(*ticket), "seed {seed}: {ticket:?} twice");
                self.requests.insert(*ticket, request.inner().clone());
            }
            ReconcilerOutput::Http(HttpEffect::Cancel { ticket }) => drop(self.requests.remove(ticket)),
            ReconcilerOutput::CacheLagged { key } => drop(self.written.remove(known(key.name()))),
            ReconcilerOutput::Stopped => self.stopped += 1,
            ReconcilerOutput::Cancel { ticket } => assert!(self.running.contains_key(ticket)),
            ReconcilerOutput::Reconciled(_) | ReconcilerOutput::Resync => {}
        }
    }
}

fn pick<V: Clone>(from: &BTreeMap<Ticket, V>, random: &mut Random) -> Option<(Ticket, V)> {
    let nth = random.below(from.len() as u64) as usize;
    from.iter().nth(nth).map(|(ticket, value)| (*ticket, value.clone()))
}

fn version_of(object: &Value) -> ObjectVersion {
    let object: Unstructured = serde_json::from_value(object.clone()).unwrap();
    let (uid, version) = (object.uid().unwrap(), object.resource_version().unwrap());
    ObjectVersion { uid: uid.into(), resource_version: version.into() }
}

fn name_of(request: &Request<Bytes>) -> &'static str {
    known(request.uri().path().rsplit('/').next().unwrap())
}

fn known(name: &str) -> &'static str {
    NAMES.into_iter().find(|known| *known == name).unwrap()
}

fn refusal(code: u16, reason: &str) -> (u16, Value) {
    (code, json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "details": {}}))
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const SEEDS: u64 = 300;
