//! Where a scenario takes place.

use std::cell::OnceCell;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cloudcoil_apiserver::ApiServer;
use cloudcoil_runtime::core::config::Config;
use cloudcoil_runtime::core::{HttpEvent, Now, Outbox};
use serde_json::json;

use crate::scripted::{Play, Script};
use crate::servers::{Cluster, config_of, in_memory, real};
use crate::world::op::namespaces;
use crate::world::{Executor, Settings, Simulated, World};

/// What happens, and where it is to happen.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) on: On,
    pub(crate) run: fn(&Stage),
}

/// Lists scenarios by where they are to happen; each is a function of that name.
macro_rules! scenarios {
    ($($on:ident { $($name:ident),* $(,)? })*) => {
        pub(crate) const SCENARIOS: &[crate::stage::Scenario] = &[$($(crate::stage::Scenario {
            name: stringify!($name),
            on: crate::stage::On::$on,
            run: $name,
        },)*)*];
    };
}
pub(crate) use scenarios;

/// The servers that a scenario is for. It chooses between an API server ([`Stage::api`]) and a script ([`Stage::play`]) itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct On {
    places: &'static [Place],
    /// What clients over sockets run on.
    executors: &'static [Executor],
}

impl On {
    /// Any API server.
    pub(crate) const ANY: Self = Self::at(&[Place::Tcp, Place::Tls, Place::Real, Place::Simulated]);
    /// The API server in memory, to which the scenario does something; or a script.
    pub(crate) const MEMORY: Self = Self::at(&[Place::Tcp, Place::Tls, Place::Simulated]);
    /// The API server in memory or a script, for what is much work or chooses itself whether there is TLS.
    pub(crate) const PLAIN: Self = Self::at(&[Place::Tcp, Place::Simulated]);
    /// A script.
    pub(crate) const SCRIPT: Self = Self::MEMORY;
    /// What cannot be in virtual time, as it has to do with connections, and is the same with TLS.
    pub(crate) const SOCKETS: Self = Self::at(&[Place::Tcp]);
    /// What has to do with connections, with TLS and without.
    pub(crate) const CONNECTIONS: Self = Self::at(&[Place::Tcp, Place::Tls]);
    /// A script, and a call that is given up: whoever blocks in a call cannot.
    pub(crate) const FUTURES: Self =
        Self { executors: &[Executor::Tokio, Executor::AsyncStd, Executor::Smol], ..Self::SCRIPT };
    /// A real API server, of what is its own.
    pub(crate) const REAL: Self = Self::at(&[Place::Real]);
    /// As [`SOCKETS`](Self::SOCKETS), for what is read while something is written: whoever blocks in one cannot do the other.
    pub(crate) const DUPLEX: Self = Self { places: Self::SOCKETS.places, ..Self::FUTURES };
    /// What takes long.
    pub(crate) const VIRTUAL: Self = Self::at(&[Place::Simulated]);

    const fn at(places: &'static [Place]) -> Self {
        Self { places, executors: &Executor::ALL }
    }

    /// The stages of a scenario.
    pub(crate) fn stages(self) -> Vec<(Option<Executor>, Place)> {
        let stages = |place: &Place| match place {
            Place::Simulated => vec![(None, *place)],
            place => self.executors.iter().map(|executor| (Some(*executor), *place)).collect(),
        };
        self.places.iter().flat_map(stages).collect()
    }
}

/// What kind of server a client talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Tcp,
    Tls,
    Real,
    Simulated,
}

impl Place {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Tls => "tls",
            Self::Real => "real",
            Self::Simulated => "memory",
        }
    }
}

/// A client and its server, which are made when they are asked for.
pub(crate) struct Stage {
    /// `None` in virtual time.
    executor: Option<Executor>,
    pub(crate) place: Place,
    pub(crate) namespace: String,
    // Goes before its server.
    world: OnceCell<Box<dyn World>>,
    server: OnceCell<Server>,
}

enum Server {
    Cluster(Cluster),
    Real,
    Simulated(Simulated<ApiServer>),
}

impl Stage {
    pub(crate) fn new(executor: Option<Executor>, place: Place) -> Self {
        static STAGES: AtomicUsize = AtomicUsize::new(0);
        let namespace = format!("stage-{}", STAGES.fetch_add(1, Ordering::Relaxed));
        Self { executor, place, namespace, server: OnceCell::new(), world: OnceCell::new() }
    }

    /// What the client runs on.
    ///
    /// # Panics
    /// In virtual time.
    pub(crate) fn executor(&self) -> Executor {
        self.executor.expect("the scenario is for sockets alone")
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings::within(&self.namespace)
    }

    /// A client of an API server, in a namespace of its own.
    pub(crate) fn api(&self) -> &dyn World {
        &**self.world.get_or_init(|| {
            let world = self.client(&self.settings());
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
            world.must(namespaces().create(namespace));
            world
        })
    }

    /// Another client of the same API server.
    pub(crate) fn client(&self, settings: &Settings) -> Box<dyn World> {
        match self.server() {
            Server::Simulated(simulated) => simulated.world(settings),
            _ => self.executor().connect(&self.config(), settings).expect("the configuration is good"),
        }
    }

    /// How the API server is reached.
    ///
    /// # Panics
    /// In virtual time.
    pub(crate) fn config(&self) -> Config {
        match self.server() {
            Server::Cluster(cluster) => cluster.config(),
            Server::Real => real(),
            Server::Simulated(_) => panic!("there are no addresses in virtual time"),
        }
    }

    /// Does something to the API server in memory.
    pub(crate) fn with_server<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut ApiServer, Now, &mut Outbox<HttpEvent>) -> T + Send + 'static,
    ) -> T {
        match self.server() {
            Server::Cluster(cluster) => cluster.with(act),
            Server::Simulated(simulated) => simulated.with_server(act),
            Server::Real => panic!("nothing is done to the real control plane, which others use too"),
        }
    }

    fn server(&self) -> &Server {
        self.server.get_or_init(|| match self.place {
            Place::Tcp => Server::Cluster(Cluster::start(false, in_memory())),
            Place::Tls => Server::Cluster(Cluster::start(true, in_memory())),
            Place::Real => Server::Real,
            Place::Simulated => {
                let config = config_of("https://simulated", None);
                Server::Simulated(Simulated::new(&config, |now| ApiServer::new(in_memory(), now)))
            }
        })
    }

    /// A client of a server that answers by a script; it sends each request once, and has time even on a busy machine.
    pub(crate) fn play(&self, script: Script) -> Play {
        self.play_with(script, &self.settings().once().timeout(Duration::from_secs(150)))
    }

    /// A client with those settings of a server that answers by a script.
    pub(crate) fn play_with(&self, script: Script, settings: &Settings) -> Play {
        match self.executor {
            Some(executor) => Play::over_sockets(executor, self.place == Place::Tls, script, settings, |_| {}),
            None => Play::in_virtual_time(script, settings, |_| {}),
        }
    }

    /// A client of a server over TLS that answers by a script; what the client knows of the server is adjusted. It sends each
    /// request once.
    pub(crate) fn play_as(&self, script: Script, adjust: impl FnOnce(&mut Config)) -> Play {
        let settings = self.settings().once();
        match self.executor {
            Some(executor) => Play::over_sockets(executor, true, script, &settings, adjust),
            None => Play::in_virtual_time(script, &settings, adjust),
        }
    }

    /// A client of something else that listens at an address, without TLS; it sends each request once.
    pub(crate) fn client_of(&self, address: SocketAddr) -> Box<dyn World> {
        self.connect(&config_of(&format!("http://{address}"), None))
    }

    /// A client with a configuration of its own; it sends each request once.
    pub(crate) fn connect(&self, config: &Config) -> Box<dyn World> {
        self.executor().connect(config, &self.settings().once()).expect("the configuration is good")
    }
}
