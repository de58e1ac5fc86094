//! An operator, a faulty network and an API server in virtual time: whatever happens on the way, in the end the
//! operator knows what is there and has done what it is for.

#![expect(clippy::unwrap_used, reason = "helpers of tests may unwrap where tests may")]

mod operator;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cloudcoil_apiserver::kinds::Kinds;
use cloudcoil_apiserver::{ApiServer, ServerConfig};
use cloudcoil_core::k8s_openapi::api::core::v1::ConfigMap;
use cloudcoil_core::{
    DeleteParams, KnownResource, Now, Patch, PatchParams, Random, Requests, Resource, UnixTime, WriteParams,
};
use cloudcoil_testing::simulation::{Faults, Trace, World};
use serde_json::{Value, json};

use operator::{LABEL, MARK, Operator, child_name};

/// How many seeds a run takes, as tests are built without optimization; `SIMULATION_SEEDS` says otherwise, as CI does in
/// release mode, and `SIMULATION_FIRST` where to begin.
const SEEDS: u64 = 100;

#[test]
fn an_operator_misses_nothing_in_spite_of_faults() {
    let kinds = Arc::new(Kinds::builtin());
    let number = |name: &str, default| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (first, seeds) = (number("SIMULATION_FIRST", 0), number("SIMULATION_SEEDS", SEEDS));
    let (next, steps) = (AtomicU64::new(first), AtomicU64::new(0));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + seeds {
                        return;
                    }
                    steps.fetch_add(tried_twice(seed, &kinds).steps(), Ordering::Relaxed);
                }
            });
        }
    });
    println!("{seeds} seeds, twice each; {} steps", steps.into_inner());
}

/// Runs a seed twice, which must do the same both times.
fn tried_twice(seed: u64, kinds: &Arc<Kinds>) -> Trace {
    let run = || std::panic::catch_unwind(|| Story::new(seed, kinds).run());
    let (Ok(one), Ok(other)) = (run(), run()) else {
        panic!("seed {seed} failed; SIMULATION_FIRST={seed} SIMULATION_SEEDS=1 repeats it")
    };
    assert_eq!(one, other, "seed {seed} did not do the same twice");
    one
}

/// One run.
struct Story {
    world: World<Operator>,
    random: Random,
    seed: u64,
    incarnation: u64,
}

const OPERATOR: usize = 0;
/// A source that nobody changes.
const CONSTANT: &str = "constant";

impl Story {
    fn new(seed: u64, kinds: &Arc<Kinds>) -> Self {
        let mut random = Random::new(seed);
        let now = Now { wall: UnixTime::from_secs(1_800_000_000), ..Now::default() };
        let history = 10 + usize::try_from(random.below(200)).unwrap_or(0);
        let config = ServerConfig { kinds: kinds.clone(), seed: random.seed(), history, ..ServerConfig::default() };
        let server = ApiServer::new(config, now);
        let mut world = World::new(server, now, Faults::all(), random.seed());
        let created = world.request(create(CONSTANT, "x"));
        assert_eq!(created, 201);
        let mut story = Self { world, random, seed, incarnation: 0 };
        let operator = story.operator();
        let skew = i64::try_from(story.random.below(1200)).unwrap_or(0) - 600;
        story.world.start(operator, skew);
        story
    }

    fn operator(&mut self) -> Operator {
        self.incarnation += 1;
        let streaming = self.random.below(2) == 0;
        let page_size = [0, 1, 3, 500][usize::try_from(self.random.below(4)).unwrap_or(0)];
        Operator::new(streaming, page_size, self.seed ^ self.incarnation << 32)
    }

    fn run(mut self) -> Trace {
        for _ in 0..self.random.below(60) {
            self.act();
            let pause = Duration::from_millis(self.random.below(20_000));
            self.world.run_for(pause);
            self.constant_is_known();
        }
        self.world.set_faults(Faults::none());
        self.world.with_server(|server, now, out| server.thaw(now, out));
        self.world.run_for(SETTLE);
        self.everything_is_known();
        self.everything_is_done();
        self.world.trace()
    }

    /// Something happens.
    fn act(&mut self) {
        let name = format!("source-{}", self.random.below(4));
        let text = self.random.below(1000).to_string();
        match self.random.below(16) {
            0..=3 => drop(self.world.request(create(&name, &text))),
            4..=6 => drop(self.world.request(patch(&name, &json!({"data": {"key": text}})))),
            7 => drop(self.world.request(patch(&name, &json!({"metadata": {"labels": {LABEL: null}}})))),
            8 => drop(self.world.request(patch(&child_name(&name), &json!({"data": {"key": "spoiled"}})))),
            9 => drop(self.world.request(delete(&child_name(&name)))),
            10 => drop(self.world.request(delete(&name))),
            11 => {
                // Gone, and there again under the same name before anybody looks.
                self.world.request(delete(&name));
                self.world.request(create(&name, &text));
            }
            12 => self.world.with_server(|server, _, _| {
                let revision = server.revision();
                server.compact(revision);
            }),
            13 => {
                let frozen = self.random.below(2) == 0;
                self.world.with_server(|server, now, out| if frozen { server.freeze() } else { server.thaw(now, out) });
            }
            14 => {
                let pause = Duration::from_secs(self.random.below(90));
                self.world.pause(OPERATOR, pause);
            }
            _ if self.random.below(2) == 0 => self.world.with_server(|server, _, out| server.close_watches(out)),
            _ => {
                let operator = self.operator();
                self.world.replace(OPERATOR, operator);
            }
        }
    }

    /// Once the operator knows what is there, it knows of what is always there.
    fn constant_is_known(&self) {
        let informer = &self.world.process(OPERATOR).sources().informer;
        if informer.has_synced() {
            assert!(informer.store().get(Some("default"), CONSTANT).is_some(), "seed {}", self.seed);
        }
    }

    /// The stores hold what the server holds, in the same versions.
    fn everything_is_known(&self) {
        let operator = self.world.process(OPERATOR);
        let there = self.world.server().objects(&ConfigMap::resource_type());
        let version =
            |object: &Value| (object["metadata"]["uid"].clone(), object["metadata"]["resourceVersion"].clone());
        let labelled = |object: &cloudcoil_core::Unstructured| object.label(LABEL).is_some();
        for (followed, all) in [(operator.sources(), false), (operator.children(), true)] {
            let expected: Vec<_> = there
                .iter()
                .filter(|object| all || labelled(object))
                .map(|object| version(&object.clone().into_value()))
                .collect();
            let known: Vec<_> =
                followed.informer.store().iter().map(|object| version(&object.decode().unwrap())).collect();
            assert_eq!(known, expected, "seed {}: what is known is not what is there", self.seed);
        }
    }

    /// Each source has its child, in step, and its mark.
    fn everything_is_done(&self) {
        for source in self.world.process(OPERATOR).sources().informer.store().iter() {
            let expected = operator::derived(source);
            let child = self.world.server().object(&ConfigMap::resource_type(), "default", &child_name(source.name()));
            let child = child.map_or(Value::Null, cloudcoil_core::Unstructured::into_value);
            assert_eq!(child["data"], expected["data"], "seed {}: {source:?} has no child in step", self.seed);
            assert_eq!(child["metadata"]["ownerReferences"][0]["uid"].as_str(), source.uid(), "seed {}", self.seed);
            assert!(source.annotations().contains_key(MARK), "seed {}: {source:?} has no mark", self.seed);
        }
    }
}

fn maps() -> Requests {
    Requests::new(ConfigMap::resource_type(), Some("default"))
}

fn create(name: &str, text: &str) -> cloudcoil_core::HttpRequest {
    let map = json!({"metadata": {"name": name, "labels": {LABEL: "true"}}, "data": {"key": text}});
    maps().create(&map, &WriteParams::default()).unwrap().into()
}

fn patch(name: &str, change: &Value) -> cloudcoil_core::HttpRequest {
    maps().patch(name, None, &Patch::Merge(change.clone()), &PatchParams::default()).unwrap().into()
}

fn delete(name: &str) -> cloudcoil_core::HttpRequest {
    maps().delete(name, &DeleteParams::default()).unwrap().into()
}

/// Longer than the longest silence that a watch puts up with, and than the longest delay of a retry.
const SETTLE: Duration = Duration::from_secs(1800);
