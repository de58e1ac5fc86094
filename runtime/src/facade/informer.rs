//! Caches that follow the API server.

use std::fmt::{self, Display};
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cloudcoil_core::{Decoded, Error, IndexFn, InformerConfig, InformerEvent, Object, Resource, Trim, WatchConfig};

use super::Api;
use super::world::clock::{Clock, Ending};
use super::world::driver::{Commands, Driver, Mailbox, Turn};
use super::world::dual;
use super::world::latch::{Latch, Opener, latch};
use crate::plain::{Change, Handler, Handlers, InformerStatus, Reader, Shared};

/// A cache of the objects of one type, to be set up and then [started](Informer::start).
///
/// Handlers that are added before the start hear of everything that exists as an addition, and of every later change
/// once and in order; whatever a lost connection hid is made up for by comparing. They run in the informer's own task or thread, so
/// they should not take long. One that panics is logged, and hears of the next change all the same.
///
/// ```no_run
/// use std::time::Duration;
/// use cloudcoil_runtime::{Client, Error, Informer, Resource, ResourceKey};
/// use cloudcoil_core::k8s_openapi::api::core::v1::Pod;
///
/// async fn watch(client: Client) -> Result<(), Error> {
///     let pods = Informer::<Pod>::new(client)
///         .all_namespaces()
///         .labels("app=web")
///         .index("node", |pod| pod.field("spec.nodeName").map(|node| node.into_owned()).into_iter().collect())
///         .on_add(|pod| println!("new: {}", pod.name()))
///         .on_update(|old, new| println!("{} -> {}", old.name(), new.name()))
///         .start();
///     pods.wait_synced(Duration::from_secs(30)).await?;
///     let on_node = pods.by_index("node", "n1")?.all()?;
///     let one = pods.get(&ResourceKey::new(Some("default"), "web-0")?)?;
///     println!("{} and {}", on_node.len(), one.is_some());
///     Ok(())
/// }
/// ```
#[dual]
#[must_use = "it does nothing until it is started"]
pub struct Informer<K> {
    api: Api<K>,
    config: InformerConfig,
    decoded: usize,
    eager: bool,
    indexes: Vec<(String, Arc<IndexFn>)>,
    handlers: Vec<Handler<K>>,
}

impl<K> fmt::Debug for Informer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Informer").field("config", &self.config).finish_non_exhaustive()
    }
}

#[dual]
impl<K: Resource> Informer<K> {
    /// An informer of the objects that an [`Api`] is about; a [`Client`](super::Client) stands for those in its default namespace.
    pub fn new(api: impl Into<Api<K>>) -> Self {
        let api = api.into();
        let config = InformerConfig::new(WatchConfig::new(api.requests().clone()));
        let (indexes, handlers) = (Vec::new(), Vec::new());
        Self { api, config, decoded: Decoded::<K>::CAPACITY, eager: false, indexes, handlers }
    }

    /// Only objects in this namespace.
    pub fn namespace(self, namespace: &str) -> Self {
        self.within(|api| api.namespace(namespace))
    }

    /// Objects in all namespaces.
    pub fn all_namespaces(self) -> Self {
        self.within(Api::all_namespaces)
    }

    fn within(mut self, scope: impl FnOnce(Api<K>) -> Api<K>) -> Self {
        self.api = scope(self.api);
        self.config.watch.requests = self.api.requests().clone();
        self
    }

    /// Only objects whose labels match; one that ceases to match is deleted from here.
    pub fn labels(mut self, selector: impl Display) -> Self {
        self.config.watch.label_selector = Some(selector.to_string());
        self
    }

    /// Only objects whose fields match; one that ceases to match is deleted from here.
    pub fn fields(mut self, selector: impl Display) -> Self {
        self.config.watch.field_selector = Some(selector.to_string());
        self
    }

    /// Keeps an index: the values by which an object is to be found, from the object without decoding it. One of the same name
    /// is replaced.
    pub fn index(
        mut self,
        name: impl Into<String>,
        values: impl Fn(&Object) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        let name = name.into();
        self.indexes.retain(|(other, _)| *other != name);
        self.indexes.push((name, Arc::new(values)));
        self
    }

    /// Says every object again each time this period has passed, as an update to itself. Costs the server nothing.
    pub fn resync(mut self, period: Duration) -> Self {
        self.config.resync = Some(period);
        self
    }

    /// How many decoded values are kept: those that were read last. 1024 unless told otherwise.
    pub fn decoded(mut self, capacity: usize) -> Self {
        self.decoded = capacity;
        self
    }

    /// Decodes objects as they arrive, and reports those that do not fit their type right then.
    pub fn eager(mut self) -> Self {
        self.eager = true;
        self
    }

    /// Keeps `metadata.managedFields`, which are cut out otherwise.
    pub fn keep_managed_fields(mut self) -> Self {
        self.config.watch.trim = Trim::Nothing;
        self
    }

    /// Changes any of the finer settings.
    pub fn configure(mut self, change: impl FnOnce(&mut InformerConfig)) -> Self {
        change(&mut self.config);
        self
    }

    /// Hears of each object that comes to be held.
    pub fn on_add(self, handler: impl FnMut(Arc<K>) + Send + 'static) -> Self {
        self.with(Handler::Added(Box::new(handler)))
    }

    /// Hears of each new version of an object, with the old one before it.
    pub fn on_update(self, handler: impl FnMut(Arc<K>, Arc<K>) + Send + 'static) -> Self {
        self.with(Handler::Updated(Box::new(handler)))
    }

    /// Hears of each object that is gone, in its last known state.
    pub fn on_delete(self, handler: impl FnMut(Arc<K>) + Send + 'static) -> Self {
        self.with(Handler::Deleted(Box::new(handler)))
    }

    /// Hears of each change, without any decoding.
    pub fn on_change(self, handler: impl FnMut(&Change) + Send + 'static) -> Self {
        self.with(changed(handler))
    }

    /// Hears that a list is complete, after all changes that came of it: at the beginning, and whenever it had to be listed
    /// anew.
    pub fn on_synced(self, handler: impl FnMut() + Send + 'static) -> Self {
        self.with(Handler::Synced(Box::new(handler)))
    }

    /// Hears of requests that failed, which are retried, and of objects that do not fit their type.
    pub fn on_error(self, handler: impl FnMut(&Error) + Send + 'static) -> Self {
        self.with(Handler::Failed(Box::new(handler)))
    }

    /// As [`on_change`](Self::on_change), with the cache at hand.
    pub(crate) fn on_change_with(self, handler: impl FnMut(&Change, &Reader<K>) + Send + 'static) -> Self {
        self.with(Handler::Changed(Box::new(handler)))
    }

    fn with(mut self, handler: Handler<K>) -> Self {
        self.handlers.push(handler);
        self
    }

    /// Starts it, in a task or on a thread of its own. It stops when the last handle is dropped.
    ///
    /// # Panics
    /// If it needs a thread, and the system refuses one.
    #[must_use = "it stops when the last handle is dropped"]
    pub fn start(self) -> InformerHandle<K> {
        let (client, resource_type) = (self.api.client(), self.api.resource_type().clone());
        let clock = client.clock();
        let mut machine = cloudcoil_core::Informer::new(self.config, 0, client.seed::<cloudcoil_core::Informer>());
        for (name, values) in self.indexes {
            machine.store_mut().add_index(&name, values).expect("the names of indexes differ");
        }
        let machine = Shared::new(machine);
        let reader = Reader::new(machine.clone(), self.decoded, resource_type);
        let mailbox = Mailbox::new();
        let commands = mailbox.commands();
        let ((opener, synced), (ended, stopped)) = (latch(), latch());
        let driver = Driver::new(machine, client, mailbox);
        let handlers = Handlers::new(reader.clone(), self.handlers, self.eager);
        let task = Task { driver, handlers, synced: opener };
        let ending = clock.spawn("cloudcoil-informer", async move {
            let _ended = ended;
            task.run().await;
        });
        let end = End { stopped, ending: Arc::new(Mutex::new(Some(ending))) };
        InformerHandle(Arc::new(Running { reader, commands, synced, end, clock }))
    }
}

fn changed<K>(mut handler: impl FnMut(&Change) + Send + 'static) -> Handler<K> {
    Handler::Changed(Box::new(move |change, _| handler(change)))
}

/// A running [`Informer`], which can be read as a [`Reader`]. Cheap to clone; when the last clone is dropped, it stops and closes its
/// connection.
pub struct InformerHandle<K>(Arc<Running<K>>);

struct Running<K> {
    reader: Reader<K>,
    commands: Commands<Command<K>>,
    synced: Latch,
    end: End,
    clock: Clock,
}

/// What others tell a running informer.
enum Command<K> {
    /// Tell this one too.
    Join(Handler<K>),
    Stop,
}

impl<K> Drop for Running<K> {
    fn drop(&mut self) {
        self.commands.send(Command::Stop);
    }
}

/// The end of an informer of whatever objects.
#[derive(Clone)]
pub(crate) struct End {
    stopped: Latch,
    /// Until somebody waits for it.
    ending: Arc<Mutex<Option<Ending<()>>>>,
}

#[dual]
impl End {
    pub(crate) async fn come(&self) {
        self.stopped.opened().await;
        let ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(ending) = ending {
            // A panic has been reported where it happened.
            let _ = ending.ended().await;
        }
    }
}

impl<K> Clone for InformerHandle<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K> fmt::Debug for InformerHandle<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InformerHandle").field(&self.0.reader).finish()
    }
}

impl<K> Deref for InformerHandle<K> {
    type Target = Reader<K>;

    fn deref(&self) -> &Reader<K> {
        &self.0.reader
    }
}

#[dual]
impl<K: Resource> InformerHandle<K> {
    /// Looks at what it holds, without keeping it running.
    pub fn reader(&self) -> Reader<K> {
        self.0.reader.clone()
    }

    /// Waits until everything is held that existed at the start.
    ///
    /// # Errors
    /// After `timeout` the last failure, or [`Error::TimedOut`] if there was none; [`Error::Cancelled`] if it is stopped first.
    pub async fn wait_synced(&self, timeout: Duration) -> Result<(), Error> {
        let clock = &self.0.clock;
        let is_over = self.0.synced.opened_until(clock, clock.now().mono + timeout).await;
        match self.status() {
            InformerStatus { synced: true, .. } => Ok(()),
            _ if is_over => Err(Error::Cancelled),
            InformerStatus { failure, .. } => Err(failure.unwrap_or(Error::TimedOut(timeout))),
        }
    }

    /// Hears of each object that comes to be held, beginning with those that are.
    pub fn on_add(&self, handler: impl FnMut(Arc<K>) + Send + 'static) {
        self.join(Handler::Added(Box::new(handler)));
    }

    /// Hears of each new version of an object from now on.
    pub fn on_update(&self, handler: impl FnMut(Arc<K>, Arc<K>) + Send + 'static) {
        self.join(Handler::Updated(Box::new(handler)));
    }

    /// Hears of each object that is gone from now on.
    pub fn on_delete(&self, handler: impl FnMut(Arc<K>) + Send + 'static) {
        self.join(Handler::Deleted(Box::new(handler)));
    }

    /// Hears of each change, beginning with the addition of what is held.
    pub fn on_change(&self, handler: impl FnMut(&Change) + Send + 'static) {
        self.join(changed(handler));
    }

    /// Hears of failures from now on.
    pub fn on_error(&self, handler: impl FnMut(&Error) + Send + 'static) {
        self.join(Handler::Failed(Box::new(handler)));
    }

    /// Stops it, and closes its connection; what it holds can still be read.
    pub fn stop(&self) {
        self.0.commands.send(Command::Stop);
    }

    /// Waits until it has stopped, and no handler is running any more. Not to be called by a handler.
    pub async fn stopped(&self) {
        self.0.end.come().await;
    }

    fn join(&self, handler: Handler<K>) {
        // One that has stopped has nothing more to tell.
        self.0.commands.send(Command::Join(handler));
    }
}

/// A running informer, as it sees itself.
struct Task<K> {
    driver: Driver<Shared<cloudcoil_core::Informer>, Command<K>>,
    handlers: Handlers<K>,
    /// Opens also when this ends before.
    synced: Opener,
}

#[dual]
impl<K: Resource> Task<K> {
    async fn run(mut self) {
        loop {
            match self.driver.turn().await {
                Turn::Command(Command::Stop) => return,
                Turn::Event(event) => self.tell(event),
                Turn::Command(Command::Join(handler)) => {
                    // What the store holds already, but nobody has been told, is not told twice.
                    while let Some(event) = self.driver.pending() {
                        self.tell(event);
                    }
                    self.handlers.join(handler);
                }
            }
        }
    }

    fn tell(&mut self, event: InformerEvent) {
        if self.handlers.tell(event) {
            self.synced.open();
        }
    }
}

/// A running informer of objects of any type.
pub(crate) trait AnyInformer: Send + Sync {
    /// Opens when it has synced, or ended.
    fn synced(&self) -> Latch;

    /// What is missing, and why, as far as it has not synced.
    fn unsynced(&self) -> Option<String>;

    fn stop(&self);

    fn end(&self) -> End;
}

impl<K: Resource> AnyInformer for InformerHandle<K> {
    fn synced(&self) -> Latch {
        self.0.synced.clone()
    }

    fn unsynced(&self) -> Option<String> {
        let InformerStatus { synced, failure, .. } = self.status();
        let why = failure.map_or_else(String::new, |failure| format!(" ({failure})"));
        (!synced).then(|| format!("{}{why}", self.resource_type()))
    }

    fn stop(&self) {
        Self::stop(self);
    }

    fn end(&self) -> End {
        self.0.end.clone()
    }
}
