//! What a controller does, before it runs.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use cloudcoil_core::{BackoffPolicy, Error, KnownResource, Reconciler, ReconcilerConfig, Resource, ResourceType};
use futures_channel::mpsc::{UnboundedSender, unbounded};
use futures_channel::oneshot;
use futures_util::FutureExt as _;
use futures_util::future::{Either, join_all, select};

use super::context::{Context, Readers};
use super::handle::ControllerHandle;
use super::outcome::{IntoOutcome, Stop};
use super::run::{Handler, Runs, handler};
use super::source::{Base, Configure, IntoKeys, Mapping, Scope, Source, Watched, primary_handler};
use super::task::{Cache, Command, Task};
use crate::driver::Driver;
use crate::informer::{Informer, InformerHandle};
use crate::latch::{Latch, latch};
use crate::shared::Shared;
use crate::{Api, Client};

/// Has a handler look at every object of a type, whenever something happens to it, to what it owns, or to what it depends on.
///
/// A key is never with two handlers at once, and what happens meanwhile leads to one more pass. A failed pass is
/// repeated, with a delay that grows from 1 s to 60 s. Objects are read from caches, which sync before the first pass; a pass sees
/// at least what the pass before it has written to its object.
///
/// ```no_run
/// use std::sync::Arc;
/// use cloudcoil_core::k8s_openapi::api::core::v1::{ConfigMap, Namespace};
/// use cloudcoil_runtime::{Client, Context, Controller, Error, Resource, ResourceKey, Stop};
///
/// async fn reconcile(map: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<(), Stop> {
///     let mut copy = ConfigMap { data: map.data.clone(), ..Default::default() };
///     copy.metadata.name = Some(format!("{}-copy", map.name()));
///     ctx.ensure(copy).await?;
///     Ok(())
/// }
///
/// async fn run(client: Client, stop: impl Future<Output = ()>) -> Result<(), Error> {
///     Controller::<ConfigMap>::new()
///         .labels("example.com/copy=true")
///         .owns::<ConfigMap>()
///         .watch::<Namespace, _>(|namespace| ResourceKey::new(Some(namespace.name()), "settings"))
///         .workers(4)
///         .reconcile(reconcile)
///         .run(client, stop)
///         .await
/// }
/// ```
#[must_use = "it does nothing until it is run or started"]
pub struct Controller<K> {
    resource_type: ResourceType,
    scope: Scope,
    configure: Configure<K>,
    sources: Vec<Box<dyn Source<K>>>,
    handler: Option<Handler<K>>,
    config: ReconcilerConfig,
    workers: usize,
    sync_timeout: Duration,
    ignores_status: bool,
}

impl<K> fmt::Debug for Controller<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller").field("resource_type", &self.resource_type).finish_non_exhaustive()
    }
}

impl<K: KnownResource> Controller<K> {
    /// A controller of the objects of a type in the client's default namespace.
    #[expect(clippy::new_without_default, reason = "a controller that does nothing is no default")]
    pub fn new() -> Self {
        Self::of(K::resource_type())
    }
}

impl<K: Resource> Controller<K> {
    /// A controller of objects of a type that only the caller knows.
    pub fn of(resource_type: ResourceType) -> Self {
        Self {
            config: ReconcilerConfig::new(resource_type.clone()),
            resource_type,
            scope: Scope::Default,
            configure: Box::new(|informer| informer),
            sources: Vec::new(),
            handler: None,
            workers: 1,
            sync_timeout: Duration::from_secs(120),
            ignores_status: false,
        }
    }

    /// Only objects in this namespace, of all types concerned.
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        Self { scope: Scope::Namespace(namespace.into()), ..self }
    }

    /// Objects in all namespaces, of all types concerned.
    pub fn all_namespaces(self) -> Self {
        Self { scope: Scope::All, ..self }
    }

    /// Only objects of the reconciled type whose labels match.
    pub fn labels(self, selector: impl Display) -> Self {
        let selector = selector.to_string();
        self.configure(move |informer| informer.labels(selector))
    }

    /// Only objects of the reconciled type whose fields match.
    pub fn fields(self, selector: impl Display) -> Self {
        let selector = selector.to_string();
        self.configure(move |informer| informer.fields(selector))
    }

    /// Changes the cache of the reconciled type.
    pub fn configure(self, change: impl FnOnce(Informer<K>) -> Informer<K> + Send + 'static) -> Self {
        let before = self.configure;
        Self { configure: Box::new(move |informer| change(before(informer))), ..self }
    }

    /// Looks at an object also when something happens to an object of type `C` that it owns and controls.
    pub fn owns<C: KnownResource>(self) -> Self {
        self.source(Mapping::<C>::Owner, None)
    }

    /// As [`owns`](Self::owns), with a cache of `C` of its own that is set up by a function.
    pub fn owns_with<C: KnownResource>(
        self,
        configure: impl FnOnce(Informer<C>) -> Informer<C> + Send + 'static,
    ) -> Self {
        self.source(Mapping::<C>::Owner, Some(Box::new(configure)))
    }

    /// Looks at the objects whose keys `mapper` gives when something happens to an object of type `C`: keys in a [`Vec`] or an
    /// [`Option`], or a [`Result`] of them. Of an update both states are mapped.
    ///
    /// A mapper must not fail or panic: keys that are not known are lost, so the controller stops.
    pub fn watch<C: KnownResource, R: IntoKeys>(self, mapper: impl Fn(&C) -> R + Send + 'static) -> Self {
        self.source(Mapping::Mapper(Box::new(move |object: &C| mapper(object).into_keys())), None)
    }

    /// As [`watch`](Self::watch), with a cache of `C` of its own that is set up by a function.
    pub fn watch_with<C: KnownResource, R: IntoKeys>(
        self,
        configure: impl FnOnce(Informer<C>) -> Informer<C> + Send + 'static,
        mapper: impl Fn(&C) -> R + Send + 'static,
    ) -> Self {
        let mapping = Mapping::Mapper(Box::new(move |object: &C| mapper(object).into_keys()));
        self.source(mapping, Some(Box::new(configure)))
    }

    /// The same objects of a type are watched once, whatever they are watched for.
    fn source<C: KnownResource>(mut self, mut mapping: Mapping<C>, configure: Option<Configure<C>>) -> Self {
        if configure.is_none() {
            for source in &mut self.sources {
                let Some(watched) = source.as_any().downcast_mut::<Watched<C>>() else { continue };
                match watched.join(mapping) {
                    Ok(()) => return self,
                    Err(refused) => mapping = refused,
                }
            }
        }
        self.sources.push(Box::new(Watched::new(mapping, configure)));
        self
    }

    /// How many objects are worked on at the same time; 1 unless told otherwise.
    pub fn workers(self, workers: usize) -> Self {
        Self { workers, ..self }
    }

    /// How long the caches may take to sync, before the controller gives up; 2 minutes unless told otherwise.
    pub fn sync_timeout(self, timeout: Duration) -> Self {
        Self { sync_timeout: timeout, ..self }
    }

    /// How long a stop waits for what is queued and running; 10 s unless told otherwise.
    pub fn shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.config.shutdown_timeout = timeout;
        self
    }

    /// How long one pass may take before it is cancelled and retried; any time unless told otherwise.
    pub fn reconcile_timeout(mut self, timeout: Duration) -> Self {
        self.config.pass.timeout = Some(timeout);
        self
    }

    /// How often every object is looked at without an event, give or take a tenth; every 5 minutes unless told otherwise, and with
    /// `None` never.
    pub fn resync_period(mut self, period: Option<Duration>) -> Self {
        self.config.resync_period = period;
        self
    }

    /// How the delays of failed passes grow.
    pub fn backoff(mut self, policy: BackoffPolicy) -> Self {
        self.config.backoff = policy;
        self
    }

    /// Who is writing when a handler returns a changed object, for field ownership.
    pub fn field_manager(mut self, name: impl Into<String>) -> Self {
        self.config.pass.field_manager = Some(name.into());
        self
    }

    /// Does not look at an object of the reconciled type when nothing but its status has changed. Only for types that count
    /// generations.
    pub fn ignore_status_updates(self) -> Self {
        Self { ignores_status: true, ..self }
    }

    /// Changes any of the finer settings of queue and passes.
    pub fn configure_reconciler(mut self, change: impl FnOnce(&mut ReconcilerConfig)) -> Self {
        change(&mut self.config);
        self
    }

    /// What looks at an object: an `async fn` of the object and a [`Context`].
    ///
    /// It may return nothing, an [`Action`](super::Action), or the object with changes, which are written as one guarded patch, and
    /// those of its status to the status; or a [`Stop`], into which every error turns by `?`. A panic is a failure like others.
    pub fn reconcile<H, F, R, M>(self, reconcile: H) -> Self
    where
        H: Fn(Arc<K>, Context<K>) -> F + Send + Sync + 'static,
        F: Future<Output = Result<R, Stop>> + Send + 'static,
        R: IntoOutcome<K, M>,
    {
        Self { handler: Some(handler(reconcile)), ..self }
    }

    /// Runs until `stop` ends: then what is queued is still worked off, for as long as the shutdown timeout allows. Dropping the
    /// future cancels everything at once.
    ///
    /// # Errors
    /// [`Error::Misuse`] without a handler or workers; [`Error::Stopped`] if the caches do not sync in time, or if a mapper fails.
    pub async fn run(self, client: Client, stop: impl Future<Output = ()>) -> Result<(), Error> {
        let Started { task, commands, .. } = self.begin(client)?;
        let running = pin!(task.run());
        match select(running, pin!(stop)).await {
            Either::Left((result, _)) => result,
            Either::Right(((), running)) => {
                // The task is still there, as it has not ended.
                let _ = commands.unbounded_send(Command::Stop);
                running.await
            }
        }
    }

    /// Starts it, in a task of its own.
    ///
    /// # Errors
    /// [`Error::Misuse`] without a handler or workers.
    pub fn start(self, client: Client) -> Result<ControllerHandle, Error> {
        let runtime = client.runtime().clone();
        let Started { task, commands, machine, ready } = self.begin(client)?;
        let (tell, result) = oneshot::channel();
        runtime.spawn(Box::pin(async move {
            // Nobody may want to know.
            let _ = tell.send(task.run().await);
        }));
        Ok(ControllerHandle { machine, commands, ready, result, runtime })
    }
}

/// A controller that is about to run.
struct Started<K> {
    task: Task<K>,
    commands: UnboundedSender<Command>,
    machine: Shared<Reconciler>,
    ready: Latch,
}

impl<K: Resource> Controller<K> {
    fn begin(mut self, client: Client) -> Result<Started<K>, Error> {
        let missing =
            |what: &str| Error::Misuse(format!("the controller of {} has no {what}", self.resource_type).into());
        let handler = self.handler.take().ok_or_else(|| missing("handler"))?;
        self.config.workers = NonZeroUsize::new(self.workers).ok_or_else(|| missing("workers"))?;
        self.config.seed = client.seed::<Reconciler>();
        let (commands, received) = unbounded();
        let primary = self.scope.apply(Api::new(client.clone(), self.resource_type.clone()));
        let primary = (self.configure)(Informer::new(primary))
            .on_change(primary_handler(commands.clone(), self.ignores_status))
            .start();
        let base = Base {
            scope: if self.resource_type.is_namespaced() { self.scope } else { Scope::All },
            client: client.clone(),
            resource_type: Arc::new(self.resource_type),
            primary: primary.reader(),
            commands: commands.clone(),
        };
        let readers: Readers = [(TypeId::of::<K>(), Arc::new(primary.reader()) as _)].into();
        let runs = Runs {
            handler,
            client: client.clone(),
            resource_type: base.resource_type.clone(),
            primary: primary.reader(),
            readers: Arc::new(readers),
            commands: commands.clone(),
            running: BTreeMap::new(),
        };
        let machine = Shared::new(Reconciler::new(self.config));
        let driver = Driver::new(machine.clone(), client.port());
        let startup = Some(start_up(base, primary, self.sources, self.sync_timeout).boxed());
        let (opener, ready) = latch();
        let task = Task { driver, commands: received, runs, startup, ready: opener, caches: Vec::new(), failure: None };
        Ok(Started { task, commands, machine, ready })
    }
}

/// Starts the other caches when that of the reconciled type has synced, as they look up owners in it; ends when all have.
async fn start_up<K: Resource>(
    base: Base<K>,
    primary: InformerHandle<K>,
    sources: Vec<Box<dyn Source<K>>>,
    timeout: Duration,
) -> Result<Vec<Cache>, Error> {
    let runtime = base.client.runtime().clone();
    let mut sleep = runtime.sleep_until(runtime.now().mono + timeout);
    let reader = Arc::new(primary.reader());
    let mut caches = vec![Cache { type_id: TypeId::of::<K>(), reader, informer: Box::new(primary) }];
    let synced = |caches: &[Cache]| join_all(caches.iter().map(|cache| cache.informer.synced()).collect::<Vec<_>>());
    if let Either::Left(_) = select(synced(&caches), &mut sleep).await {
        caches.extend(sources.into_iter().map(|source| source.start(&base)));
        select(synced(&caches), &mut sleep).await;
    }
    let unsynced: Vec<String> = caches.iter().filter_map(|cache| cache.informer.unsynced()).collect();
    if unsynced.is_empty() {
        return Ok(caches);
    }
    join_all(caches.into_iter().map(|cache| cache.informer.halt())).await;
    let text = format!(
        "the controller of {} did not get ready within {timeout:?}: no cache of {}",
        base.resource_type,
        unsynced.join(", ")
    );
    Err(Error::Stopped(text.into()))
}
