//! Clients on threads.

use std::thread;
use std::time::Duration;

use cloudcoil_blocking::{Client, Connect as _, Controller, Informer, RetryPolicy, WatchEvent};
use cloudcoil_runtime::core::config::Config;
use k8s_openapi::api::core::v1::ConfigMap;

use crate::World;

struct Threads;

pub(crate) fn on_threads() -> Box<dyn World> {
    Box::new(Threads)
}

fn client(config: &Config) -> Client {
    Client::try_from_config(config).unwrap().with_retry(RetryPolicy::OFF)
}

impl World for Threads {
    /// There are none: whatever runs has a thread.
    fn tasks(&self) -> usize {
        0
    }

    fn live(&self, config: &Config, number: usize) {
        let client = client(config);
        let maps = client.api::<ConfigMap>();
        maps.get("a").send().unwrap();
        let mut events = maps.watch().iter();
        while events.next().unwrap().unwrap() != WatchEvent::Synced {}
        match number % 4 {
            // The client keeps a connection for later, and goes with it.
            0 => {
                drop(events);
                maps.get("a").send().unwrap();
            }
            // The client goes first.
            1 => drop((maps, client)),
            2 => {
                events.stop_handle().stop();
                assert!(events.next().is_none());
            }
            // While another thread waits for more.
            _ => {
                let stop = events.stop_handle();
                thread::scope(|scope| {
                    scope.spawn(move || assert!(events.next().is_none()));
                    stop.stop();
                });
            }
        }
    }

    fn operate(&self, config: &Config) {
        let client = client(config);
        let informer = Informer::<ConfigMap>::new(&client).start();
        informer.wait_synced(SOON).unwrap();
        let dropped = Informer::<ConfigMap>::new(&client).start();
        let running = Controller::<ConfigMap>::new().reconcile(|_, _| Ok(())).start(client.clone()).unwrap();
        running.wait_ready(SOON).unwrap();
        drop(dropped);
        informer.stop();
        informer.stopped();
        running.stop();
        running.stopped().unwrap();
        // One that nobody waits for.
        drop(Controller::<ConfigMap>::new().reconcile(|_, _| Ok(())).start(client).unwrap());
    }

    fn fail(&self, config: &Config) {
        let client = client(config).with_timeout(Some(SHORT));
        let maps = client.api::<ConfigMap>();
        maps.get("a").send().unwrap_err();
        let mut events = maps.watch().iter();
        let stop = events.stop_handle();
        thread::scope(|scope| {
            scope.spawn(move || while events.next().is_some() {});
            stop.stop();
        });
        let informer = Informer::<ConfigMap>::new(&client).start();
        informer.wait_synced(SHORT).unwrap_err();
        let running = Controller::<ConfigMap>::new().reconcile(|_, _| Ok(())).start(client).unwrap();
        running.wait_ready(SHORT).unwrap_err();
        running.stop();
        running.stopped().unwrap();
    }
}

/// What does not take so long on any machine.
const SOON: Duration = Duration::from_secs(60);
/// How long a server may say nothing.
const SHORT: Duration = Duration::from_millis(5);
