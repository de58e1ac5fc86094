//! The caches of a controller, until all have synced.

use std::any::TypeId;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cloudcoil_core::{Error, Resource, Time};

use super::super::informer::InformerHandle;
use super::source::{Base, Source};
use super::task::{Cache, Command, halt};
use super::world::clock::{Clock, Ending};
use super::world::driver::Commands;
use super::world::dual;

/// Starts the other caches when that of the reconciled type has synced, as they look up owners in it; tells the controller when
/// it has [ended](Command::Started). When it is dropped, its caches stop.
pub(super) struct Startup {
    caches: Begun,
    ending: Ending<Result<(), Error>>,
}

#[dual]
impl Startup {
    pub(super) fn begin<K: Resource>(
        base: Base<K>,
        primary: InformerHandle<K>,
        sources: Vec<Box<dyn Source<K>>>,
        timeout: Duration,
    ) -> Self {
        let clock = base.client.clock();
        let reader = Arc::new(primary.reader());
        let caches = Caches::default();
        caches.add(Cache { type_id: TypeId::of::<K>(), reader, informer: Box::new(primary) });
        let (begun, ended) = (caches.clone(), Ended(base.commands.clone()));
        let ending = clock.spawn("cloudcoil-startup", async move {
            let _ended = ended;
            start_up(base, &begun, sources, timeout).await
        });
        Self { caches: Begun(caches), ending }
    }

    /// Waits for its end; answers with the caches, or why there are none.
    pub(super) async fn end(self) -> Result<Vec<Cache>, Error> {
        let Self { caches, ending } = self;
        match ending.ended().await {
            Ok(result) => result.map(|()| caches.0.take()),
            Err(error) => {
                halt(&caches.0.take()).await;
                Err(Error::Stopped(format!("a cache cannot be set up: {error}").into()))
            }
        }
    }

    /// Cuts it short; answers with the caches that there are, which stop.
    pub(super) async fn abandon(self) -> Vec<Cache> {
        let Self { caches, ending } = self;
        let begun = caches.0.clone();
        drop(caches);
        // Whatever it has come to, nobody wants it any more.
        let _ = ending.ended().await;
        begun.take()
    }
}

/// The caches that have been started.
#[derive(Clone, Default)]
struct Caches(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    caches: Vec<Cache>,
    is_abandoned: bool,
}

impl Caches {
    fn add(&self, cache: Cache) {
        let mut state = self.state();
        if state.is_abandoned {
            cache.informer.stop();
        }
        state.caches.push(cache);
    }

    fn take(&self) -> Vec<Cache> {
        mem::take(&mut self.state().caches)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[dual]
impl Caches {
    /// Waits until all have synced, or ended, or the time is up.
    async fn synced(&self, clock: &Clock, until: Time) {
        let latches: Vec<_> = self.state().caches.iter().map(|cache| cache.informer.synced()).collect();
        for latch in latches {
            latch.opened_until(clock, until).await;
        }
    }

    fn unsynced(&self) -> Vec<String> {
        self.state().caches.iter().filter_map(|cache| cache.informer.unsynced()).collect()
    }
}

/// The caches, as the controller holds them.
struct Begun(Caches);

impl Drop for Begun {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.is_abandoned = true;
        state.caches.iter().for_each(|cache| cache.informer.stop());
    }
}

/// Says that the startup has ended, however that was.
struct Ended(Commands<Command>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.send(Command::Started);
    }
}

#[dual]
async fn start_up<K: Resource>(
    base: Base<K>,
    begun: &Caches,
    sources: Vec<Box<dyn Source<K>>>,
    timeout: Duration,
) -> Result<(), Error> {
    let clock = base.client.clock();
    let until = clock.now().mono + timeout;
    begun.synced(&clock, until).await;
    if begun.unsynced().is_empty() {
        for source in sources {
            begun.add(source.start(&base));
        }
        begun.synced(&clock, until).await;
    }
    let unsynced = begun.unsynced();
    if unsynced.is_empty() {
        return Ok(());
    }
    halt(&begun.take()).await;
    let text = format!(
        "the controller of {} did not get ready within {timeout:?}: no cache of {}",
        base.resource_type,
        unsynced.join(", ")
    );
    Err(Error::Stopped(text.into()))
}
