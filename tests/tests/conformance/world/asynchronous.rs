//! Clients whose calls are futures, on the executors that there are.

use std::sync::{Arc, LazyLock, Mutex, PoisonError, mpsc};
use std::time::Duration;

use cloudcoil_dual::asynchronous as dual;
use cloudcoil_runtime as facade;
use cloudcoil_runtime::core::config::Config;
use cloudcoil_runtime::{Change, Client, Error, Unstructured, WatchEvent};
use futures_util::future::{FutureExt as _, abortable, ready};
use futures_util::stream::{self, Stream, StreamExt as _};

use super::op::{Follow, Op, Operator, Part, Reply, Verb};
use super::{Flow, Informing, Operating, Settings, Waits, World};

#[path = "perform.rs"]
mod perform;

pub(super) fn on_tokio(config: &Config, settings: &Settings) -> Result<Box<dyn World>, Error> {
    let _inside = TOKIO.enter();
    let client = <Client as cloudcoil_tokio::Connect>::try_from_config(config)?;
    Ok(Asynchronous::new(client, Waits::Real).with(settings))
}

pub(super) fn on_async_std(config: &Config, settings: &Settings) -> Result<Box<dyn World>, Error> {
    let client = <Client as cloudcoil_async_std::Connect>::try_from_config(config)?;
    Ok(Asynchronous::new(client, Waits::Real).with(settings))
}

pub(super) fn on_smol(config: &Config, settings: &Settings) -> Result<Box<dyn World>, Error> {
    let client = <Client as cloudcoil_smol::Connect>::try_from_config(config)?;
    Ok(Asynchronous::new(client, Waits::Real).with(settings))
}

pub(super) struct Asynchronous {
    client: Client,
    waits: Waits,
}

impl Asynchronous {
    pub(super) const fn new(client: Client, waits: Waits) -> Self {
        Self { client, waits }
    }

    /// What a stream says, which is polled by a task of its own.
    fn flow<T: Send + 'static>(&self, stream: impl Stream<Item = T> + Send + 'static) -> Flow<T> {
        let (tell, items) = mpsc::channel();
        let (task, handle) = abortable(stream.for_each(move |item| {
            // Nobody may be listening any more.
            let _ = tell.send(item);
            ready(())
        }));
        let _inside = TOKIO.enter();
        self.client.runtime().spawn(Box::pin(task.map(drop)));
        Flow::new(items, self.waits.clone(), move || handle.abort())
    }
}

impl World for Asynchronous {
    fn start(&self, op: Op) -> Flow<Result<Reply, Error>> {
        self.flow(stream::once(perform::perform(self.client.clone(), op)))
    }

    fn watch(&self, follow: Follow) -> Flow<Result<WatchEvent<Unstructured>, Error>> {
        self.flow(perform::watch(&self.client, follow).stream())
    }

    fn lines(&self, log: Op) -> Flow<Result<String, Error>> {
        let Verb::Part(Part::Log(name)) = log.verb else { panic!("no log: {log:?}") };
        self.flow(self.client.api_for(log.kind.0).logs(&name).follow().lines())
    }

    fn inform(&self, follow: Follow) -> Informing {
        let (tell, items) = mpsc::channel::<Change>();
        let informer = perform::informer(&self.client, follow).on_change(move |change| {
            let _ = tell.send(change.clone());
        });
        let _inside = TOKIO.enter();
        let running = informer.start();
        let (reader, waiting) = (running.reader(), running.clone());
        let synced = self.flow(stream::once(async move { waiting.wait_synced(SYNC).await }));
        Informing { changes: Flow::new(items, self.waits.clone(), move || running.stop()), synced, reader }
    }

    fn operate(&self, operator: Operator) -> Operating {
        let (stop, stopped) = futures_channel::oneshot::channel::<()>();
        let running = perform::controller(operator).run(self.client.clone(), stopped.map(drop));
        let stop = Mutex::new(Some(stop));
        let stop = move || drop(stop.lock().unwrap_or_else(PoisonError::into_inner).take());
        Operating { ended: self.flow(stream::once(running)), stop: Arc::new(stop) }
    }

    fn with(&self, settings: &Settings) -> Box<dyn World> {
        let client = perform::with(self.client.clone(), settings);
        Box::new(Self { client, waits: self.waits.clone() })
    }
}

const SYNC: Duration = Duration::from_secs(60);

/// The executor that tokio's clients run on. The others bring theirs along.
static TOKIO: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().expect("the system has threads left")
});
