//! An operator made of the core's machines alone: two informers, a reconciler, and calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use cloudcoil_core::k8s_openapi::api::core::v1::ConfigMap;
use cloudcoil_core::{
    Call, CallInput, CallOutput, Deadline, Error, HttpEffect, HttpEvent, HttpRequest, Informer, InformerConfig,
    InformerEvent, InformerInput, InformerOutput, KnownResource, Machine, Now, Object, ObjectVersion, Outbox, Outcome,
    Patch, PatchParams, Reconciler, ReconcilerConfig, ReconcilerInput, ReconcilerOutput, Requests, ResourceKey,
    ResourceType, Ticket, Tickets, WatchConfig, WriteParams, owner_key, response,
};
use cloudcoil_testing::simulation::Process;
use serde_json::{Value, json};

/// ConfigMaps with this label get a derived one.
pub(crate) const LABEL: &str = "simulation.example/derive";

/// Follows ConfigMaps with the label, keeps a derived ConfigMap in step with each, and marks the ones it has seen to.
pub(crate) struct Operator {
    sources: Followed,
    children: Followed,
    reconciler: Reconciler,
    calls: BTreeMap<u32, Running>,
    next_call: u32,
}

/// A call that a handler has made.
struct Running {
    call: Call,
    run: Ticket,
    source: Arc<Object>,
    write: Write,
}

#[derive(Clone, Copy, PartialEq)]
enum Write {
    Create,
    Patch,
}

/// An informer, and what its events say the world is.
pub(crate) struct Followed {
    pub(crate) informer: Informer,
    pub(crate) told: BTreeMap<ResourceKey, Arc<Object>>,
    pub(crate) failures: u32,
}

impl Followed {
    fn new(machine: u32, labels: Option<&str>, streaming: bool, page_size: u32, seed: u64) -> Self {
        let watch = WatchConfig {
            label_selector: labels.map(ToOwned::to_owned),
            streaming,
            page_size,
            ..WatchConfig::new(Requests::new(maps(), None))
        };
        let informer = Informer::new(InformerConfig::new(watch), machine, seed);
        Self { informer, told: BTreeMap::new(), failures: 0 }
    }

    /// Checks that an event makes sense after those before it, and takes it in.
    fn tell(&mut self, event: &InformerEvent) {
        match event {
            InformerEvent::Added(new) => {
                assert_eq!(self.told.insert(new.key(), new.clone()), None, "{new:?} was added twice");
            }
            InformerEvent::Updated { old, new } => {
                assert_eq!(old.uid(), new.uid(), "another object is no update");
                let known = self.told.insert(new.key(), new.clone());
                assert!(known.is_some_and(|known| Arc::ptr_eq(&known, old)), "{old:?} is not what was known");
                assert_ne!(old.resource_version(), new.resource_version(), "an update without a change");
            }
            InformerEvent::Deleted(old) => {
                let known = self.told.remove(&old.key());
                assert_eq!(known.and_then(|known| known.uid().map(str::to_owned)).as_deref(), old.uid());
            }
            InformerEvent::Failed { .. } => self.failures += 1,
            InformerEvent::Faulty(faulty) => panic!("{faulty:?}"),
            InformerEvent::Synced | InformerEvent::Resynced(_) | InformerEvent::Warned(_) => {}
        }
        assert!(self.informer.store().iter().eq(self.told.values()) || !matches!(event, InformerEvent::Synced));
    }
}

fn maps() -> ResourceType {
    ConfigMap::resource_type()
}

const SOURCES: u32 = 1;
const CHILDREN: u32 = 2;
const PASSES: u32 = 10;
const CALLS: u32 = 1000;

impl Operator {
    pub(crate) fn new(streaming: bool, page_size: u32, seed: u64) -> Self {
        let workers = 2.try_into().expect("not zero");
        let config = ReconcilerConfig { workers, seed, first_machine: PASSES, ..ReconcilerConfig::new(maps()) };
        Self {
            sources: Followed::new(SOURCES, Some(LABEL), streaming, page_size, seed),
            children: Followed::new(CHILDREN, None, streaming, page_size, seed ^ 1),
            reconciler: Reconciler::new(config),
            calls: BTreeMap::new(),
            next_call: CALLS,
        }
    }

    pub(crate) const fn sources(&self) -> &Followed {
        &self.sources
    }

    pub(crate) const fn children(&self) -> &Followed {
        &self.children
    }

    /// Steps one informer, and takes its events to the reconciler.
    fn follow(&mut self, now: Now, which: u32, input: Option<InformerInput>, out: &mut Outbox<HttpEffect>) {
        let followed = if which == SOURCES { &mut self.sources } else { &mut self.children };
        let mut said = Outbox::new();
        let _ = followed.informer.step(now, input, &mut said);
        let mut events = Vec::new();
        for output in said {
            match output {
                InformerOutput::Http(effect) => out.push(effect),
                InformerOutput::Event(event) => {
                    followed.tell(&event);
                    events.push(event);
                }
            }
        }
        let store = followed.informer.store();
        assert!(store.iter().eq(followed.told.values()), "the events do not add up to the store");
        for event in events {
            self.enqueue(now, which, event, out);
        }
        if self.sources.informer.has_synced() && self.children.informer.has_synced() {
            self.reconcile(now, Some(ReconcilerInput::Synced), out);
        }
    }

    fn enqueue(&mut self, now: Now, which: u32, event: InformerEvent, out: &mut Outbox<HttpEffect>) {
        let objects = match event {
            InformerEvent::Added(object) => vec![(object, true)],
            InformerEvent::Deleted(object) => vec![(object, false)],
            InformerEvent::Updated { old, new } if which == CHILDREN => vec![(old, true), (new, true)],
            InformerEvent::Updated { new, .. } => vec![(new, true)],
            _ => return,
        };
        for (object, there) in objects {
            if which == SOURCES {
                let version = if there { version(&object) } else { None };
                self.reconcile(now, Some(ReconcilerInput::Observed { key: object.key(), version }), out);
                self.reconcile(now, Some(ReconcilerInput::Enqueued(object.key())), out);
            } else if let Some((key, _)) = owner_key(&object.owner_references(), object.namespace(), &maps()) {
                self.reconcile(now, Some(ReconcilerInput::Enqueued(key)), out);
            }
        }
    }

    fn reconcile(&mut self, now: Now, input: Option<ReconcilerInput>, out: &mut Outbox<HttpEffect>) {
        let mut said = Outbox::new();
        let _ = self.reconciler.step(now, input, &mut said);
        for output in said {
            match output {
                ReconcilerOutput::Http(effect) => out.push(effect),
                ReconcilerOutput::Run { ticket, key } => self.run(now, ticket, &key, out),
                ReconcilerOutput::Resync => {
                    let keys: Vec<_> = self.sources.informer.store().iter().map(|object| object.key()).collect();
                    for key in keys {
                        self.reconcile(now, Some(ReconcilerInput::Enqueued(key)), out);
                    }
                }
                ReconcilerOutput::Cancel { .. }
                | ReconcilerOutput::Reconciled(_)
                | ReconcilerOutput::CacheLagged { .. }
                | ReconcilerOutput::Stopped => {}
            }
        }
    }

    /// The handler: one write of the child, if it is not what it should be.
    fn run(&mut self, now: Now, run: Ticket, key: &ResourceKey, out: &mut Outbox<HttpEffect>) {
        let store = self.sources.informer.store();
        let Some(source) = store.get(key.namespace(), key.name()).cloned() else {
            return self.ran(now, run, Outcome::new(cloudcoil_core::Verdict::Gone), out);
        };
        match self.write(&source) {
            None => self.ran(now, run, done(&source), out),
            Some((request, write)) => {
                let machine = self.next_call;
                self.next_call += 1;
                let call = Call::new(request, Tickets::new(machine));
                self.calls.insert(machine, Running { call, run, source, write });
                self.call(now, machine, None, out);
            }
        }
    }

    fn write(&self, source: &Object) -> Option<(HttpRequest, Write)> {
        let child = derived(source);
        let requests = Requests::new(maps(), source.namespace());
        let name = child_name(source.name());
        let request = match self.children.informer.store().get(source.namespace(), &name) {
            None => (requests.create(&child, &WriteParams::default()), Write::Create),
            Some(known) => {
                let known: Value = known.decode().expect("an object");
                if known["data"] == child["data"]
                    && known["metadata"]["ownerReferences"] == child["metadata"]["ownerReferences"]
                {
                    return None;
                }
                let metadata = json!({"ownerReferences": child["metadata"]["ownerReferences"]});
                let patch = Patch::Merge(json!({"metadata": metadata, "data": child["data"]}));
                (requests.patch(&name, None, &patch, &PatchParams::default()), Write::Patch)
            }
        };
        Some((request.0.expect("a request that can be sent").into(), request.1))
    }

    fn call(&mut self, now: Now, machine: u32, input: Option<CallInput>, out: &mut Outbox<HttpEffect>) {
        let Some(running) = self.calls.get_mut(&machine) else { return };
        let mut said = Outbox::new();
        let _ = running.call.step(now, input, &mut said);
        for output in said {
            match output {
                CallOutput::Http(effect) => out.push(effect),
                CallOutput::Retrying(_) => {}
                CallOutput::Done(result) => {
                    let Some(Running { run, source, write, .. }) = self.calls.remove(&machine) else { return };
                    let outcome = match result.and_then(|answer| response::decode::<Value>(&answer)) {
                        Ok(_) => done(&source),
                        Err(error) => failed(&error, write),
                    };
                    self.ran(now, run, outcome, out);
                }
            }
        }
    }

    fn ran(&mut self, now: Now, ticket: Ticket, outcome: Outcome, out: &mut Outbox<HttpEffect>) {
        self.reconcile(now, Some(ReconcilerInput::Ran { ticket, outcome }), out);
    }

    fn hear(&mut self, now: Now, event: HttpEvent, out: &mut Outbox<HttpEffect>) {
        match event.ticket().machine() {
            which @ (SOURCES | CHILDREN) => self.follow(now, which, Some(InformerInput::Http(event)), out),
            PASSES..CALLS => self.reconcile(now, Some(ReconcilerInput::Http(event)), out),
            machine => self.call(now, machine, Some(CallInput::Http(event)), out),
        }
    }

    fn look(&mut self, now: Now, out: &mut Outbox<HttpEffect>) {
        let due = |deadline: Option<Deadline>| deadline.is_none_or(|deadline| deadline.at <= now.mono);
        for which in [SOURCES, CHILDREN] {
            let followed = if which == SOURCES { &self.sources } else { &self.children };
            if due(followed.informer.deadline()) {
                self.follow(now, which, None, out);
            }
        }
        if due(self.reconciler.deadline()) {
            self.reconcile(now, None, out);
        }
        let calls: Vec<_> = self
            .calls
            .iter()
            .filter(|(_, running)| due(running.call.deadline()))
            .map(|(machine, _)| *machine)
            .collect();
        for machine in calls {
            self.call(now, machine, None, out);
        }
    }
}

impl Process for Operator {
    fn step(&mut self, now: Now, heard: Option<HttpEvent>, out: &mut Outbox<HttpEffect>) -> Option<Deadline> {
        match heard {
            Some(event) => self.hear(now, event, out),
            None => self.look(now, out),
        }
        let own = [self.sources.informer.deadline(), self.children.informer.deadline(), self.reconciler.deadline()];
        let calls = self.calls.values().map(|running| running.call.deadline());
        own.into_iter().chain(calls).flatten().min()
    }
}

/// What the operator makes of a source.
pub(crate) fn derived(source: &Object) -> Value {
    let value: Value = source.decode().expect("an object");
    let data = value["data"].as_object().cloned().unwrap_or_default();
    let shouted: BTreeMap<_, _> =
        data.into_iter().map(|(key, value)| (key, value.as_str().unwrap_or_default().to_uppercase())).collect();
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": source.name(), "uid": source.uid(), "controller": true});
    json!({"metadata": {"name": child_name(source.name()), "namespace": source.namespace(), "ownerReferences": [owner]},
        "data": shouted})
}

pub(crate) fn child_name(source: &str) -> String {
    format!("{source}-derived")
}

/// The mark that the operator leaves on a source it has seen to.
pub(crate) const MARK: &str = "simulation.example/seen";

/// All is well; the source gets its mark, which is how many keys it has.
fn done(source: &Object) -> Outcome {
    let old: Value = source.decode().expect("an object");
    let mut new = old.clone();
    let keys = old["data"].as_object().map_or(0, serde_json::Map::len);
    new["metadata"]["annotations"][MARK] = json!(keys.to_string());
    Outcome::done().with_change(old, new)
}

fn failed(error: &Error, write: Write) -> Outcome {
    if write == Write::Patch && error.is_conflict() {
        return Outcome::new(cloudcoil_core::Verdict::Conflict);
    }
    Outcome::failed(error.to_string())
}

fn version(object: &Object) -> Option<ObjectVersion> {
    Some(ObjectVersion { uid: object.uid()?.into(), resource_version: object.resource_version()?.into() })
}
