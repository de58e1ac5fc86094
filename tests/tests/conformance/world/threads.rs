//! A client whose calls block their threads.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use cloudcoil_blocking as facade;
use cloudcoil_blocking::{Client, Connect as _, Error, Unstructured, WatchEvent};
use cloudcoil_dual::blocking as dual;
use cloudcoil_runtime::Change;
use cloudcoil_runtime::core::config::Config;

use super::op::{Follow, Op, Operator, Part, Reply, Verb};
use super::{Flow, Informing, Operating, Settings, Waits, World};

#[path = "perform.rs"]
#[expect(clippy::duplicate_mod, reason = "the same words for both worlds")]
mod perform;

pub(super) fn connect(config: &Config, settings: &Settings) -> Result<Box<dyn World>, Error> {
    Ok(Threads { client: Client::try_from_config(config)? }.with(settings))
}

struct Threads {
    client: Client,
}

/// What a thread says, until it is ended by `end`.
fn flow<T: Send + 'static>(
    say: impl FnOnce(&mpsc::Sender<T>) + Send + 'static,
    end: impl FnOnce() + 'static,
) -> Flow<T> {
    let (tell, items) = mpsc::channel();
    thread::spawn(move || say(&tell));
    Flow::new(items, Waits::Real, end)
}

impl World for Threads {
    fn start(&self, op: Op) -> Flow<Result<Reply, Error>> {
        let client = self.client.clone();
        // Nobody may be listening any more, here and below.
        flow(move |tell| drop(tell.send(perform::perform(client, op))), || {})
    }

    fn watch(&self, follow: Follow) -> Flow<Result<WatchEvent<Unstructured>, Error>> {
        let events = perform::watch(&self.client, follow).iter();
        let stop = events.stop_handle();
        flow(move |tell| events.for_each(|event| drop(tell.send(event))), move || stop.stop())
    }

    fn lines(&self, log: Op) -> Flow<Result<String, Error>> {
        let Verb::Part(Part::Log(name)) = log.verb else { panic!("no log: {log:?}") };
        let lines = self.client.api_for(log.kind.0).logs(&name).follow().lines();
        let stop = lines.stop_handle();
        flow(move |tell| lines.for_each(|line| drop(tell.send(line))), move || stop.stop())
    }

    fn inform(&self, follow: Follow) -> Informing {
        let (tell, items) = mpsc::channel::<Change>();
        let informer = perform::informer(&self.client, follow).on_change(move |change| {
            let _ = tell.send(change.clone());
        });
        let running = informer.start();
        let (reader, waiting) = (running.reader(), running.clone());
        let synced = flow(move |tell| drop(tell.send(waiting.wait_synced(SYNC))), || {});
        Informing { changes: Flow::new(items, Waits::Real, move || running.stop()), synced, reader }
    }

    fn operate(&self, operator: Operator) -> Operating {
        let (stop, stopped) = mpsc::channel::<()>();
        let client = self.client.clone();
        let wait = move || {
            // Nothing comes: the other end is dropped.
            let _ = stopped.recv();
        };
        let run = move || perform::controller(operator).run(client, wait);
        let stop = Mutex::new(Some(stop));
        let stop = Arc::new(move || drop(stop.lock().unwrap_or_else(PoisonError::into_inner).take()));
        let last = stop.clone();
        Operating { ended: flow(move |tell| drop(tell.send(run())), move || last()), stop }
    }

    fn with(&self, settings: &Settings) -> Box<dyn World> {
        Box::new(Self { client: perform::with(self.client.clone(), settings) })
    }
}

const SYNC: Duration = Duration::from_secs(60);
