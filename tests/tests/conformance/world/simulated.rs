//! A client in virtual time.

use std::cell::RefCell;
use std::path::PathBuf;
use std::process::Stdio;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cloudcoil_apiserver::ServerInput;
use cloudcoil_runtime::core::config::{Config, ReadError, Secret};
use cloudcoil_runtime::core::credentials::{Command, Finished, RunError};
use cloudcoil_runtime::core::{HttpEvent, Machine, Now, Time, UnixTime};
use cloudcoil_runtime::{Client, System};
use cloudcoil_testing::simulation::{Faults, Host, World as Simulation};
use futures_util::future::{BoxFuture, ready};

use super::asynchronous::Asynchronous;
use super::{Settings, Waits, World};

/// A world whose time passes as it is turned.
pub(crate) trait Turn {
    /// Lets time pass until `done`, or for as long as `limit`.
    fn turn(&mut self, limit: Duration, done: &mut dyn FnMut() -> bool);

    /// How much time has passed.
    fn elapsed(&self) -> Duration;
}

/// One process and a server, in virtual time.
pub(crate) struct Simulated<S>(Rc<RefCell<Inner<S>>>, Client);

struct Inner<S>(Simulation<Host, S>);

impl<S> Simulated<S>
where
    S: Machine<Input = ServerInput, Output = HttpEvent> + 'static,
{
    /// A process beside a server that begins at the time given to it.
    pub(crate) fn new(config: &Config, server: impl FnOnce(Now) -> S) -> Self {
        let now = Now { wall: UnixTime::from_secs(EPOCH), ..Now::default() };
        let mut client = None;
        let host = Host::configured(SEED, config, Arc::new(Here), |own| {
            client = Some(own);
            std::future::pending()
        });
        let host = host.expect("the configuration is good");
        let mut world = Simulation::new(server(now), now, Faults::none(), SEED);
        assert_eq!(world.start(host, 0), PROCESS);
        let client = client.expect("a process is given its client at once");
        Self(Rc::new(RefCell::new(Inner(world))), client)
    }

    /// Its client.
    pub(crate) fn world(&self, settings: &Settings) -> Box<dyn World> {
        Asynchronous::new(self.1.clone(), self.waits()).with(settings)
    }

    /// Its time.
    pub(crate) fn waits(&self) -> Waits {
        Waits::Virtual(self.0.clone())
    }

    /// Does something to the server.
    pub(crate) fn with_server<T>(
        &self,
        act: impl FnOnce(&mut S, Now, &mut cloudcoil_runtime::core::Outbox<HttpEvent>) -> T,
    ) -> T {
        let mut done = None;
        self.0.borrow_mut().0.with_server(|server, now, out| done = Some(act(server, now, out)));
        done.expect("it acts at once")
    }
}

impl<S> Turn for Inner<S>
where
    S: Machine<Input = ServerInput, Output = HttpEvent>,
{
    fn turn(&mut self, limit: Duration, done: &mut dyn FnMut() -> bool) {
        self.0.nudge(PROCESS);
        self.0.run_until(limit, |_| done());
    }

    fn elapsed(&self) -> Duration {
        self.0.now().mono.since(Time::ZERO)
    }
}

/// The files and programs of this machine. A program has run when it is started: virtual time stands still for it.
struct Here;

impl System for Here {
    fn read(&self, path: PathBuf) -> BoxFuture<'static, Result<Vec<u8>, ReadError>> {
        Box::pin(ready(cloudcoil_runtime::read_file(path)))
    }

    fn run(&self, command: Command) -> BoxFuture<'static, Result<Finished, RunError>> {
        let Command { program, args, env, .. } = command;
        let output = std::process::Command::new(program).args(args).envs(env).stdin(Stdio::null()).output();
        Box::pin(ready(output.map_err(RunError::from).map(|output| Finished {
            ending: output.status.into(),
            stdout: Secret::new(output.stdout),
            stderr: output.stderr,
        })))
    }

    fn has_terminal(&self) -> bool {
        false
    }
}

const PROCESS: usize = 0;
const SEED: u64 = 1;
/// The wall clock at the beginning: in the middle of 2026.
const EPOCH: i64 = 1_782_000_000;
