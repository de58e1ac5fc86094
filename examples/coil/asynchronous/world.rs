//! What the commands are made of where they are futures.

use std::pin::{Pin, pin};
use std::time::Instant;

use cloudcoil_core::config::{Config, ConfigSource, Kubeconfig, ViewOptions};
use cloudcoil_core::{Error, Resource};
use futures_channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures_util::future::{BoxFuture, Either, FutureExt as _, Shared, select};
use futures_util::poll;
use futures_util::stream::Stream;

use super::executor::Executor;

/// On what is written once for futures and for threads: stays as it is here.
pub(crate) use cloudcoil_dual::asynchronous as dual;
pub(crate) use cloudcoil_runtime::{Api, Client, Informer, ManifestRequest, Watch, WatchStream};
pub(crate) use futures_util::StreamExt;

/// Where a command runs.
#[derive(Clone, Copy)]
pub(crate) struct World(pub(super) Executor);

impl World {
    pub(crate) async fn load_config(self, source: ConfigSource) -> Result<Config, Error> {
        self.0.load_config(source).await
    }

    pub(crate) async fn view_config(self, source: ConfigSource, options: ViewOptions) -> Result<Kubeconfig, Error> {
        self.0.view_config(source, options).await
    }

    pub(crate) fn client(self, config: &Config) -> Result<Client, Error> {
        self.0.client(config)
    }

    /// From now on the process is not ended by the signals that ask it to end.
    pub(crate) async fn listen_for_shutdown(self) -> Shutdown {
        let asked = self.0.shutdown_signal().boxed().shared();
        // What nobody polls does not listen.
        let _ = poll!(asked.clone());
        Shutdown(asked)
    }
}

/// The wish that the process end.
pub(crate) struct Shutdown(Shared<BoxFuture<'static, ()>>);

impl Shutdown {
    /// The next letter, or none when the process is asked to end.
    pub(crate) async fn or_next<T: Send + 'static>(self, mut letters: Letters<T>) -> Option<T> {
        match select(pin!(letters.next()), self.0).await {
            Either::Left((letter, _)) => letter,
            Either::Right(((), _)) => None,
        }
    }
}

/// Where handlers drop letters for the command that waits for them.
pub(crate) struct Sender<T>(UnboundedSender<T>);

/// The letters that handlers have dropped.
pub(crate) struct Letters<T>(UnboundedReceiver<T>);

pub(crate) fn mailbox<T>() -> (Sender<T>, Letters<T>) {
    let (sender, letters) = unbounded();
    (Sender(sender), Letters(letters))
}

impl<T> Sender<T> {
    /// When nobody listens the command has ended.
    pub(crate) fn send(&self, letter: T) {
        let _ = self.0.unbounded_send(letter);
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Letters<T> {
    pub(crate) async fn next(&mut self) -> Option<T> {
        self.0.next().await
    }
}

/// A watch that ends at a time.
pub(crate) struct WatchUntil<K> {
    events: Pin<Box<WatchStream<K>>>,
    end: BoxFuture<'static, ()>,
}

impl<K: Resource> WatchUntil<K> {
    pub(crate) fn new(watch: Watch<K>, client: &Client, end: Instant) -> Self {
        Self { events: Box::pin(watch.stream()), end: Box::pin(sleep_until(client, end)) }
    }

    /// The next event, or none when it has ended.
    pub(crate) async fn next(&mut self) -> Option<<WatchStream<K> as Stream>::Item> {
        match select(&mut self.end, self.events.next()).await {
            Either::Left(_) => None,
            Either::Right((event, _)) => event,
        }
    }
}

/// Sleeps until a time has come.
pub(crate) fn sleep_until(client: &Client, time: Instant) -> impl Future<Output = ()> + Send + 'static {
    let runtime = client.runtime().clone();
    async move {
        let left = time.saturating_duration_since(Instant::now());
        runtime.sleep_until(runtime.now().mono + left).await;
    }
}
