//! The caches of a controller, until all have synced.

use std::any::TypeId;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use cloudcoil_core::{Error, Resource};
use cloudcoil_runtime::Reader;
use cloudcoil_runtime::parts::message;

use super::source::{Base, Source};
use super::task::{Cache, Command};
use crate::driver::Commands;
use crate::informer::{Informer, InformerHandle};

/// Starts the other caches when that of the reconciled type has synced, as they look up owners in it; ends when all have.
pub(super) struct Startup<K> {
    base: Base<K>,
    primary: InformerHandle<K>,
    sources: Vec<Box<dyn Source<K>>>,
    timeout: Duration,
    tell: Sender<Told>,
    told: Receiver<Told>,
}

enum Told {
    /// One more cache has synced, or ended.
    Synced,
    /// The controller stops.
    Abandoned,
}

/// A startup on a thread of its own, which tells the controller when it has [ended](Command::Started).
pub(super) struct Starting {
    tell: Sender<Told>,
    thread: JoinHandle<Result<Vec<Cache>, Error>>,
}

impl Starting {
    /// Cuts it short.
    pub(super) fn abandon(self) -> Result<Vec<Cache>, Error> {
        let _ = self.tell.send(Told::Abandoned);
        self.end()
    }

    /// Waits for its end; answers with the caches, or why there are none.
    pub(super) fn end(self) -> Result<Vec<Cache>, Error> {
        let panicked = |panic: &_| Error::Stopped(format!("a cache cannot be set up: {}", message(panic)).into());
        self.thread.join().unwrap_or_else(|panic| Err(panicked(&*panic)))
    }
}

/// Says that the startup has ended, however that was.
struct Ended(Commands<Command>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.send(Command::Started);
    }
}

impl<K: Resource> Startup<K> {
    /// Starts the cache of the reconciled type.
    pub(super) fn begin(
        primary: Informer<K>,
        base: impl FnOnce(Reader<K>) -> Base<K>,
        sources: Vec<Box<dyn Source<K>>>,
        timeout: Duration,
    ) -> Self {
        let (tell, told) = channel();
        let primary = primary.then(synced(&tell)).start();
        Self { base: base(primary.reader()), primary, sources, timeout, tell, told }
    }

    pub(super) fn primary(&self) -> Reader<K> {
        self.primary.reader()
    }

    pub(super) fn spawn(self) -> Starting {
        let tell = self.tell.clone();
        let builder = thread::Builder::new().name("cloudcoil-startup".into());
        let ended = Ended(self.base.commands.clone());
        let run = move || {
            let _ended = ended;
            self.run()
        };
        let thread = builder.spawn(run).expect("the system has a thread left");
        Starting { tell, thread }
    }

    fn run(self) -> Result<Vec<Cache>, Error> {
        let Self { base, primary, sources, timeout, tell, told } = self;
        let deadline = Instant::now().checked_add(timeout);
        let reader = Arc::new(primary.reader());
        let mut caches = vec![Cache { type_id: TypeId::of::<K>(), reader, informer: Box::new(primary) }];
        let mut is_abandoned = !heard(&told, deadline, 1);
        if !is_abandoned {
            caches.extend(sources.into_iter().map(|source| source.start(&base, synced(&tell))));
            is_abandoned = !heard(&told, deadline, caches.len() - 1);
        }
        let unsynced: Vec<String> = caches.iter().filter_map(|cache| cache.informer.unsynced()).collect();
        if unsynced.is_empty() && !is_abandoned {
            return Ok(caches);
        }
        caches.iter().for_each(|cache| cache.informer.halt());
        let text = format!(
            "the controller of {} did not get ready within {timeout:?}: no cache of {}",
            base.resource_type,
            unsynced.join(", ")
        );
        Err(Error::Stopped(text.into()))
    }
}

fn synced(tell: &Sender<Told>) -> Box<dyn FnOnce() + Send> {
    let tell = tell.clone();
    // The startup may be over.
    Box::new(move || drop(tell.send(Told::Synced)))
}

/// Waits for so many caches; whether they have reported before the time is up, and before the controller stops.
fn heard(told: &Receiver<Told>, deadline: Option<Instant>, count: usize) -> bool {
    (0..count).all(|_| {
        let heard = match deadline {
            Some(deadline) => told.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok(),
            None => told.recv().ok(),
        };
        matches!(heard, Some(Told::Synced))
    })
}
