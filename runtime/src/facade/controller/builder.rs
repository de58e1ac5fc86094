//! What a controller does, before it runs.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use cloudcoil_core::{BackoffPolicy, Error, KnownResource, Reconciler, ReconcilerConfig, Resource, ResourceType};

use super::super::informer::Informer;
use super::context::Readers;
use super::handle::ControllerHandle;
use super::runs::Runs;
use super::source::{Base, Configure, Scope, Source, Watched, primary_handler};
use super::startup::Startup;
use super::task::{Command, Task};
use super::world::driver::{Commands, Driver, Mailbox};
use super::world::dual;
use super::world::latch::{Latch, latch};
use super::world::run::Handler;
use super::{Api, Client};
use crate::plain::{IntoKeys, Mapping, Shared};

/// Has a handler look at every object of a type, whenever something happens to it, to what it owns, or to what it depends on.
///
/// A key is never with two handlers at once, and what happens meanwhile leads to one more pass. A failed pass is
/// repeated, with a delay that grows from 1 s to 60 s. Objects are read from caches, which sync before the first pass; a pass sees
/// at least what the pass before it has written to its object. Passes and caches run by themselves, each in a task or on a thread
/// of its own.
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
/// async fn run(client: Client) -> Result<(), Error> {
///     let controller = Controller::<ConfigMap>::new()
///         .labels("example.com/copy=true")
///         .owns::<ConfigMap>()
///         .watch::<Namespace, _>(|namespace| ResourceKey::new(Some(namespace.name()), "settings"))
///         .workers(4)
///         .reconcile(reconcile)
///         .start(client)?;
///     controller.stopped().await
/// }
/// ```
#[dual]
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

#[dual]
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

    /// How long one pass may take before it is cancelled and retried; any time unless told otherwise. A thread cannot be cut
    /// short: there the handler is asked to end.
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

    /// The same, with this handler.
    pub(crate) fn handled(self, handler: Handler<K>) -> Self {
        Self { handler: Some(handler), ..self }
    }

    /// Starts it, in a task or on a thread of its own.
    ///
    /// # Errors
    /// [`Error::Misuse`] without a handler or workers.
    ///
    /// # Panics
    /// If it needs a thread, and the system refuses one.
    pub fn start(self, client: Client) -> Result<ControllerHandle, Error> {
        let clock = client.clock();
        let Started { task, commands, machine, ready } = self.begin(client)?;
        let ending = Some(clock.spawn("cloudcoil-controller", async move { task.run().await }));
        Ok(ControllerHandle { machine, commands, ready, ending, clock })
    }
}

/// A controller that is about to run.
pub(crate) struct Started<K> {
    pub(crate) task: Task<K>,
    pub(crate) commands: Commands<Command>,
    machine: Shared<Reconciler>,
    ready: Latch,
}

impl<K: Resource> Controller<K> {
    pub(crate) fn begin(mut self, client: Client) -> Result<Started<K>, Error> {
        let missing =
            |what: &str| Error::Misuse(format!("the controller of {} has no {what}", self.resource_type).into());
        let handler = self.handler.take().ok_or_else(|| missing("handler"))?;
        self.config.workers = NonZeroUsize::new(self.workers).ok_or_else(|| missing("workers"))?;
        self.config.seed = client.seed::<Reconciler>();
        let mailbox = Mailbox::new();
        let commands = mailbox.commands();
        let primary = self.scope.apply(Api::new(client.clone(), self.resource_type.clone()));
        let primary = (self.configure)(Informer::new(primary))
            .on_change(primary_handler(commands.clone(), self.ignores_status))
            .start();
        let reader = primary.reader();
        let base = Base {
            scope: if self.resource_type.is_namespaced() { self.scope } else { Scope::All },
            client: client.clone(),
            resource_type: Arc::new(self.resource_type),
            primary: reader.clone(),
            commands: commands.clone(),
        };
        let readers: Readers = [(TypeId::of::<K>(), Arc::new(reader.clone()) as _)].into();
        let runs = Runs {
            handler,
            client: client.clone(),
            resource_type: base.resource_type.clone(),
            primary: reader,
            readers: Arc::new(readers),
            commands: commands.clone(),
            running: BTreeMap::new(),
        };
        let machine = Shared::new(Reconciler::new(self.config));
        let driver = Driver::new(machine.clone(), &client, mailbox);
        let startup = Some(Startup::begin(base, primary, self.sources, self.sync_timeout));
        let (opener, ready) = latch();
        let task = Task { driver, runs, startup, ready: opener, caches: Vec::new(), failure: None };
        Ok(Started { task, commands, machine, ready })
    }
}
