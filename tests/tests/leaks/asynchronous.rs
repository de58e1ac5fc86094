//! Clients on executors.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use cloudcoil_runtime::core::config::Config;
use cloudcoil_runtime::core::{Now, Time};
use cloudcoil_runtime::prelude::*;
use cloudcoil_runtime::{RetryPolicy, Runtime};
use futures_executor::block_on;
use futures_util::future::{BoxFuture, FutureExt as _};
use k8s_openapi::api::core::v1::ConfigMap;

use crate::World;

/// Clients of one adapter.
struct Asynchronous {
    connect: fn(&Config) -> Client,
    tasks: fn(&AtomicUsize) -> usize,
    alive: Arc<AtomicUsize>,
}

pub(crate) fn on_tokio() -> Box<dyn World> {
    let connect = |config: &Config| <Client as cloudcoil_tokio::Connect>::try_from_config(config).unwrap();
    // All that there are, not only those that clients spawn through their runtime.
    Box::new(Asynchronous { connect, tasks: |_| TOKIO.metrics().num_alive_tasks(), alive: Arc::default() })
}

pub(crate) fn on_async_std() -> Box<dyn World> {
    let connect = |config: &Config| <Client as cloudcoil_async_std::Connect>::try_from_config(config).unwrap();
    Box::new(Asynchronous { connect, tasks: |alive| alive.load(Ordering::SeqCst), alive: Arc::default() })
}

pub(crate) fn on_smol() -> Box<dyn World> {
    let connect = |config: &Config| <Client as cloudcoil_smol::Connect>::try_from_config(config).unwrap();
    Box::new(Asynchronous { connect, tasks: |alive| alive.load(Ordering::SeqCst), alive: Arc::default() })
}

impl Asynchronous {
    /// A client whose tasks are counted.
    fn client(&self, config: &Config) -> Client {
        let client = (self.connect)(config);
        let counted = Counted { runtime: client.runtime().clone(), alive: self.alive.clone() };
        Client::new(Arc::new(counted), client.transport().clone()).with_retry(RetryPolicy::OFF)
    }
}

impl World for Asynchronous {
    fn tasks(&self) -> usize {
        (self.tasks)(&self.alive)
    }

    fn live(&self, config: &Config, number: usize) {
        let _inside = TOKIO.enter();
        let client = self.client(config);
        let maps = client.api::<ConfigMap>();
        block_on(async {
            maps.get("a").await.unwrap();
            let mut events = maps.watch().stream();
            while events.try_next().await.unwrap().unwrap() != WatchEvent::Synced {}
            match number % 4 {
                // The client keeps a connection for later, and goes with it.
                0 => {
                    drop(events);
                    maps.get("a").await.unwrap();
                }
                // While it waits for more.
                1 => drop(pin!(events.try_next()).now_or_never()),
                // The client goes first.
                2 => {
                    drop((maps, client));
                    drop(events.try_next().now_or_never());
                }
                // A call is given up too, unless it is answered at once.
                _ => drop(maps.get("a").into_future().now_or_never()),
            }
        });
    }

    fn operate(&self, config: &Config) {
        let _inside = TOKIO.enter();
        let client = self.client(config);
        block_on(async {
            let informer = Informer::<ConfigMap>::new(client.clone()).start();
            informer.wait_synced(SOON).await.unwrap();
            let dropped = Informer::<ConfigMap>::new(client.clone()).start();
            let controller = Controller::<ConfigMap>::new().reconcile(async |_, _: Context<_>| Ok::<_, Stop>(()));
            let running = controller.start(client.clone()).unwrap();
            running.wait_ready(SOON).await.unwrap();
            drop(dropped);
            informer.stop();
            informer.stopped().await;
            running.stop();
            running.stopped().await.unwrap();
            // One that nobody waits for.
            drop(
                Controller::<ConfigMap>::new()
                    .reconcile(async |_, _: Context<_>| Ok::<_, Stop>(()))
                    .start(client)
                    .unwrap(),
            );
        });
    }

    fn fail(&self, config: &Config) {
        let _inside = TOKIO.enter();
        let client = self.client(config).with_timeout(Some(SHORT));
        block_on(async {
            let maps = client.api::<ConfigMap>();
            maps.get("a").await.unwrap_err();
            let mut events = maps.watch().stream();
            assert!(events.try_next().now_or_never().is_none_or(|event| event.unwrap().is_some()));
            let informer = Informer::<ConfigMap>::new(client.clone()).start();
            informer.wait_synced(SHORT).await.unwrap_err();
            let controller = Controller::<ConfigMap>::new().reconcile(async |_, _: Context<_>| Ok::<_, Stop>(()));
            let running = controller.start(client.clone()).unwrap();
            running.wait_ready(SHORT).await.unwrap_err();
            running.stop();
            running.stopped().await.unwrap();
        });
    }
}

/// A runtime that counts the tasks which have not ended.
struct Counted {
    runtime: Arc<dyn Runtime>,
    alive: Arc<AtomicUsize>,
}

/// One task, until it is dropped.
struct Alive(Arc<AtomicUsize>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Runtime for Counted {
    fn now(&self) -> Now {
        self.runtime.now()
    }

    fn sleep_until(&self, at: Time) -> BoxFuture<'static, ()> {
        self.runtime.sleep_until(at)
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.alive.fetch_add(1, Ordering::SeqCst);
        let alive = Alive(self.alive.clone());
        self.runtime.spawn(Box::pin(async move {
            let _alive = alive;
            task.await;
        }));
    }

    fn seed(&self) -> u64 {
        self.runtime.seed()
    }
}

/// What does not take so long on any machine.
const SOON: Duration = Duration::from_secs(60);
/// How long a server may say nothing.
const SHORT: Duration = Duration::from_millis(5);

/// The executor that tokio's clients run on. The others bring theirs along.
static TOKIO: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().expect("the system has threads left")
});
