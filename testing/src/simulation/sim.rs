//! Operators under test: seeds, processes, and a hand on the server.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cloudcoil_apiserver::kinds::Kinds;
use cloudcoil_apiserver::{ApiServer, ServerConfig};
use cloudcoil_core::{
    Answer, DeleteParams, Error, HttpEvent, KnownResource, ListParams, Now, Outbox, Patch, PatchParams, Random,
    Requests, Resource, ResourceList, UnixTime, WriteParams, response,
};
use cloudcoil_runtime::{Client, Controller};
use http::Request;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::host::{Host, Stuck};
use super::network::Faults;
use super::world::{Trace, World};

/// A test of operators that is run once for each of many seeds, each time with other bad luck.
///
/// Everything runs on one thread in virtual time: hours pass in milliseconds. Each seed runs twice, and both runs must be the
/// same; a run that fails says its seed, and [`Simulation::seeds`] of that seed alone repeats it.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use cloudcoil_core::k8s_openapi::api::core::v1::ConfigMap;
/// use cloudcoil_runtime::{Context, Controller, Stop};
/// use cloudcoil_testing::simulation::{Faults, Simulation};
///
/// async fn reconcile(map: Arc<ConfigMap>, _: Context<ConfigMap>) -> Result<ConfigMap, Stop> {
///     let mut map = (*map).clone();
///     map.metadata.labels.get_or_insert_default().insert("seen".into(), "yes".into());
///     Ok(map)
/// }
///
/// Simulation::seeds(0..3).faults(Faults::all()).run(|sim| {
///     sim.install(|| Controller::<ConfigMap>::new().reconcile(reconcile));
///     let mut map = ConfigMap::default();
///     map.metadata.name = Some("settings".into());
///     sim.create(&map);
///     sim.run_until(Duration::from_secs(600), |sim| {
///         let map: ConfigMap = sim.get("settings").unwrap();
///         map.metadata.labels.is_some_and(|labels| labels.contains_key("seen"))
///     });
/// });
/// ```
#[derive(Clone, Debug)]
#[must_use = "it does nothing until it is run"]
pub struct Simulation {
    seeds: Vec<u64>,
    faults: Faults,
    kinds: Arc<Kinds>,
    stuck_after: Duration,
}

impl Simulation {
    /// A test to be run with these seeds, and without faults.
    pub fn seeds(seeds: impl IntoIterator<Item = u64>) -> Self {
        Self {
            seeds: seeds.into_iter().collect(),
            faults: Faults::none(),
            kinds: Arc::new(Kinds::builtin()),
            stuck_after: Duration::from_secs(600),
        }
    }

    /// The same, with things going wrong between the processes and the server.
    pub const fn faults(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }

    /// The same, with another patience for a handler that waits for something outside of the simulation; 10 minutes of virtual
    /// time unless told otherwise.
    pub const fn stuck_after(mut self, patience: Duration) -> Self {
        self.stuck_after = patience;
        self
    }

    /// Runs the test with each seed, twice.
    ///
    /// # Panics
    /// If `test` does, or does not do the same twice with a seed.
    pub fn run(&self, test: impl Fn(&mut Sim)) {
        for &seed in &self.seeds {
            let _told = Told(seed);
            let run = || {
                let mut sim = Sim::new(seed, self);
                test(&mut sim);
                sim.world.trace()
            };
            let (one, other): (Trace, Trace) = (run(), run());
            assert_eq!(
                one, other,
                "the two runs of a seed are not the same: something in it does not come from the seed"
            );
        }
    }
}

/// Says which seed it was when a test panics.
struct Told(u64);

impl Drop for Told {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed with seed {0}; Simulation::seeds([{0}]) repeats it", self.0);
        }
    }
}

/// One run of a [`Simulation`]: processes, the network between them and an API server, and that server.
///
/// What a test does through it happens at once and without faults, and in the namespace `default` unless it says otherwise.
pub struct Sim {
    world: World<Host>,
    programs: Vec<Box<dyn Fn(u64) -> Host>>,
    random: Random,
    stuck_after: Duration,
    namespace: String,
}

/// A process of a [`Sim`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessId(usize);

impl Sim {
    fn new(seed: u64, simulation: &Simulation) -> Self {
        let now = Now { wall: UnixTime::from_secs(EPOCH), ..Now::default() };
        let mut random = Random::new(seed);
        let config = ServerConfig { kinds: simulation.kinds.clone(), seed: random.seed(), ..ServerConfig::default() };
        let world = World::new(ApiServer::new(config, now), now, simulation.faults, random.seed());
        let namespace = "default".to_owned();
        Self { world, programs: Vec::new(), random, stuck_after: simulation.stuck_after, namespace }
    }

    /// Starts a process that runs `program`, and again after each [`restart`](Self::restart).
    pub fn start<F>(&mut self, program: impl Fn(Client) -> F + 'static) -> ProcessId
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.programs.push(Box::new(move |seed| Host::new(seed, &program)));
        let host = self.programs[self.programs.len() - 1](self.random.seed());
        ProcessId(self.world.start(host, 0))
    }

    /// Starts a process that runs the controller which `make` makes.
    pub fn install<K: Resource>(&mut self, make: impl Fn() -> Controller<K> + 'static) -> ProcessId {
        self.start(move |client| {
            let running = make().run(client, std::future::pending());
            async move {
                if let Err(error) = running.await {
                    panic!("the controller stopped: {error}");
                }
            }
        })
    }

    /// Kills a process in the middle of whatever it does, and starts it anew.
    pub fn restart(&mut self, process: ProcessId) {
        let host = self.programs[process.0](self.random.seed());
        self.world.replace(process.0, host);
    }

    /// Kills a process in the middle of whatever it does.
    pub fn kill(&mut self, process: ProcessId) {
        self.world.replace(process.0, Host::new(0, |_| std::future::ready(())));
    }

    /// Lets a process stand still for a while: it hears nothing, and its timers fire late.
    pub fn pause(&mut self, process: ProcessId, duration: Duration) {
        self.world.pause(process.0, duration);
    }

    /// Another weather from now on.
    pub const fn set_faults(&mut self, faults: Faults) {
        self.world.set_faults(faults);
    }

    /// Does something to the server behind everybody's back, such as compacting its history.
    pub fn with_server(&mut self, act: impl FnOnce(&mut ApiServer, Now, &mut Outbox<HttpEvent>)) {
        self.world.with_server(act);
    }

    /// The time.
    pub const fn now(&self) -> Now {
        self.world.now()
    }

    /// Numbers for the test itself, drawn from the seed.
    pub const fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// The handlers of all processes that wait for something outside of the simulation, which never comes.
    pub fn stuck(&self) -> Vec<Stuck> {
        (0..self.programs.len()).flat_map(|number| self.world.process(number).stuck()).collect()
    }

    /// Lets `duration` pass.
    ///
    /// # Panics
    /// If a handler is [stuck](Self::stuck) for longer than the simulation's patience.
    pub fn run_for(&mut self, duration: Duration) {
        self.watched(duration, |_| false);
    }

    /// Lets time pass until `done`.
    ///
    /// # Panics
    /// If that is not within `limit`, with what there is to say about why; or if a handler is [stuck](Self::stuck).
    pub fn run_until(&mut self, limit: Duration, mut done: impl FnMut(&mut Self) -> bool) {
        let reached = self.watched(limit, &mut done);
        assert!(reached, "not done after {limit:?} of virtual time{}", Reasons(&self.stuck()));
    }

    /// Lets time pass until `done`, which is asked each second, or until `limit`.
    fn watched(&mut self, limit: Duration, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let end = self.now().mono + limit;
        loop {
            if done(self) {
                return true;
            }
            let left = end.since(self.now().mono);
            if left.is_zero() {
                return false;
            }
            self.world.run_for(left.min(GLANCE));
            let stuck = self.stuck();
            let patience = stuck.first().is_none_or(|stuck| stuck.waited < self.stuck_after);
            assert!(patience, "stuck{}", Reasons(&stuck));
        }
    }
}

/// What a test does to the server.
impl Sim {
    /// The namespace of what follows.
    pub fn namespace(&mut self, namespace: impl Into<String>) -> &mut Self {
        self.namespace = namespace.into();
        self
    }

    /// Creates an object, and answers with it as stored.
    ///
    /// # Panics
    /// If the server refuses.
    #[track_caller]
    pub fn create<K: KnownResource>(&mut self, object: &K) -> K {
        let request = self.requests::<K>().create(object, &WriteParams::default());
        self.must(request)
    }

    /// Replaces an object, and answers with it as stored.
    ///
    /// # Panics
    /// If the server refuses, as when the object has changed meanwhile.
    #[track_caller]
    pub fn replace<K: KnownResource>(&mut self, object: &K) -> K {
        let request = self.requests::<K>().replace(object.name(), None, object, &WriteParams::default());
        self.must(request)
    }

    /// Patches an object, or with `subresource` that of it, and answers with the object as stored.
    ///
    /// # Panics
    /// If the server refuses.
    #[track_caller]
    pub fn patch<K: KnownResource>(&mut self, name: &str, subresource: Option<&str>, patch: &Patch) -> K {
        let request = self.requests::<K>().patch(name, subresource, patch, &PatchParams::default());
        self.must(request)
    }

    /// Deletes an object.
    ///
    /// # Panics
    /// If the server refuses.
    #[track_caller]
    pub fn delete<K: KnownResource>(&mut self, name: &str) {
        let request = self.requests::<K>().delete(name, &DeleteParams::default());
        let _: Value = self.must(request);
    }

    /// An object as the server has it.
    ///
    /// # Errors
    /// The API server's.
    pub fn get<K: KnownResource>(&mut self, name: &str) -> Result<K, Error> {
        let request = self.requests::<K>().get(name);
        self.ask(request)
    }

    /// The objects of a type, in the namespace.
    ///
    /// # Panics
    /// If the server refuses.
    #[track_caller]
    pub fn list<K: KnownResource>(&mut self) -> Vec<K> {
        let request = self.requests::<K>().list(&ListParams::default());
        let listed = self.answer(request).and_then(|answer| ResourceList::decode(&answer)?.all().map_err(Error::from));
        accepted(listed)
    }

    /// Whether a condition of an object is `True` or `False`; `None` while it is unknown, or the object is not there.
    pub fn condition<K: KnownResource>(&mut self, name: &str, condition: &str) -> Option<bool> {
        let request = self.requests::<K>().get(name);
        let object: Value = self.ask(request).ok()?;
        let conditions = object.pointer("/status/conditions")?.as_array()?;
        let status = conditions.iter().find(|entry| entry["type"] == condition)?["status"].as_str()?;
        match status {
            "True" => Some(true),
            "False" => Some(false),
            _ => None,
        }
    }

    fn requests<K: KnownResource>(&self) -> Requests {
        Requests::new(K::resource_type(), Some(&self.namespace))
    }

    #[track_caller]
    fn must<T: DeserializeOwned>(&mut self, request: Result<Request<Bytes>, Error>) -> T {
        accepted(self.ask(request))
    }

    fn ask<T: DeserializeOwned>(&mut self, request: Result<Request<Bytes>, Error>) -> Result<T, Error> {
        response::decode(&self.answer(request)?)
    }

    fn answer(&mut self, request: Result<Request<Bytes>, Error>) -> Result<Answer, Error> {
        self.world.answer(request?.into()).ok_or(Error::Cancelled)
    }
}

#[track_caller]
fn accepted<T>(result: Result<T, Error>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("the server refused what the test asked for: {error}"),
    }
}

impl Debug for Sim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sim").field("now", &self.now()).field("stuck", &self.stuck()).finish_non_exhaustive()
    }
}

/// Why something takes so long, as far as can be told.
struct Reasons<'a>(&'a [Stuck]);

impl std::fmt::Display for Reasons<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|stuck| write!(f, "; {stuck}"))
    }
}

/// The wall clock at the beginning: in the middle of 2026.
const EPOCH: i64 = 1_782_000_000;
/// How often a test looks whether it is done.
const GLANCE: Duration = Duration::from_secs(1);
