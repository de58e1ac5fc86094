//! A server that answers by a script, over sockets or in virtual time.

mod answer;
mod socket;
mod virtual_time;
mod wire;

use std::cell::RefCell;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use bytes::Bytes;
use cloudcoil_apiserver::Tls;
use cloudcoil_runtime::core::config::Config;

pub(crate) use answer::{Answer, Framing, Then, refusal};
pub(crate) use socket::{Listening, request, server_config};
pub(crate) use wire::{head, listen, tunnel};

use crate::servers::config_of;
use crate::world::{Executor, Settings, Simulated, Waits, World};
use virtual_time::Scripted;

/// A request as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Which connection it came over, from 0. In virtual time each exchange has one of its own.
    pub(crate) connection: usize,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    /// With names in small letters.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
}

impl Seen {
    /// A parameter of the query, as it is written.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    /// The resource version that is asked for.
    pub(crate) fn version(&self) -> Option<&str> {
        self.parameter("resourceVersion")
    }

    pub(crate) fn is_watch(&self) -> bool {
        matches!(self.parameter("watch"), Some("true" | "1"))
    }
}

/// What a scripted server tells the test.
#[derive(Debug)]
pub(crate) enum Told {
    Requested(Seen),
    /// The client has ended a connection, or given up its answer.
    Left(usize),
}

/// What answers the requests, one after the other.
pub(crate) type Script = Box<dyn FnMut(&Seen) -> Answer + Send>;

/// These answers, one for each request; then silence.
pub(crate) fn in_order(answers: impl IntoIterator<Item = Answer>) -> Script {
    let mut answers = answers.into_iter().collect::<Vec<_>>().into_iter();
    Box::new(move |_| answers.next().unwrap_or_else(Answer::silence))
}

/// A scripted server and a client of it.
pub(crate) struct Play {
    world: Box<dyn World>,
    waits: Waits,
    told: Receiver<Told>,
    seen: RefCell<Vec<Seen>>,
    left: RefCell<Vec<usize>>,
    _server: Option<Listening>,
}

impl Play {
    /// `adjust` changes what the client knows of the server.
    pub(crate) fn over_sockets(
        executor: Executor,
        tls: bool,
        script: Script,
        settings: &Settings,
        adjust: impl FnOnce(&mut Config),
    ) -> Self {
        let tls = tls.then(|| Tls::generate(&[]).expect("keys can be made"));
        let (server, told) = Listening::start(tls.as_ref().map(server_config), script);
        let mut config = config_of(&server.url(), tls.as_ref().map(Tls::ca_pem));
        adjust(&mut config);
        let world = executor.connect(&config, settings).expect("the configuration is good");
        Self::new(world, Waits::Real, told, Some(server))
    }

    /// The same in virtual time, where no server shows a certificate.
    pub(crate) fn in_virtual_time(script: Script, settings: &Settings, adjust: impl FnOnce(&mut Config)) -> Self {
        let (server, told) = Scripted::new(script);
        let mut config = config_of("https://simulated", None);
        adjust(&mut config);
        let simulated = Simulated::new(&config, |_| server);
        Self::new(simulated.world(settings), simulated.waits(), told, None)
    }

    fn new(world: Box<dyn World>, waits: Waits, told: Receiver<Told>, server: Option<Listening>) -> Self {
        let (seen, left) = (RefCell::default(), RefCell::default());
        Self { world, waits, told, seen, left, _server: server }
    }

    /// All requests so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.told.try_iter().for_each(|told| self.take(told));
        self.seen.borrow().clone()
    }

    /// The requests so far, when there are so many at the least.
    #[track_caller]
    pub(crate) fn wait_for(&self, requests: usize) -> Vec<Seen> {
        self.wait_until(|play| play.seen.borrow().len() >= requests);
        self.seen.borrow().clone()
    }

    /// The connections that the client has ended, when there are so many at the least.
    #[track_caller]
    pub(crate) fn wait_for_left(&self, connections: usize) -> Vec<usize> {
        self.wait_until(|play| play.left.borrow().len() >= connections);
        self.left.borrow().clone()
    }

    /// How to wait for what the client does.
    pub(crate) const fn waits(&self) -> &Waits {
        &self.waits
    }

    /// How much virtual time has passed.
    pub(crate) fn elapsed(&self) -> Duration {
        self.waits.elapsed()
    }

    #[track_caller]
    fn wait_until(&self, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            let told = self.waits.next(&self.told).expect("the server runs");
            self.take(told);
        }
    }

    fn take(&self, told: Told) {
        match told {
            Told::Requested(seen) => self.seen.borrow_mut().push(seen),
            Told::Left(connection) => self.left.borrow_mut().push(connection),
        }
    }
}

impl std::ops::Deref for Play {
    type Target = dyn World;

    fn deref(&self) -> &Self::Target {
        &*self.world
    }
}
