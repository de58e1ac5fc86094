//! Where the keys come from.

use std::any::{Any, TypeId};
use std::sync::Arc;

use cloudcoil_core::{KnownResource, ReconcilerInput, Resource, ResourceType};

use super::super::informer::Informer;
use super::task::{Cache, Command};
use super::world::driver::Commands;
use super::{Api, Client};
use crate::plain::{Change, ChangedKeys, Mapping, Reader, primary_inputs};

/// How the caches of a controller are limited.
#[derive(Clone, Debug)]
pub(super) enum Scope {
    Default,
    Namespace(String),
    All,
}

impl Scope {
    pub(super) fn apply<C: Resource>(&self, api: Api<C>) -> Api<C> {
        match self {
            Self::Default => api,
            Self::Namespace(namespace) => api.namespace(namespace),
            Self::All => api.all_namespaces(),
        }
    }
}

/// What sources need of the controller they serve.
pub(super) struct Base<K> {
    pub(super) client: Client,
    pub(super) scope: Scope,
    pub(super) resource_type: Arc<ResourceType>,
    pub(super) primary: Reader<K>,
    pub(super) commands: Commands<Command>,
}

/// A type of object besides the reconciled one that is watched.
pub(super) trait Source<K>: Send {
    fn as_any(&mut self) -> &mut dyn Any;

    fn start(self: Box<Self>, base: &Base<K>) -> Cache;
}

pub(super) type Configure<C> = Box<dyn FnOnce(Informer<C>) -> Informer<C> + Send>;

pub(super) struct Watched<C> {
    configure: Option<Configure<C>>,
    mappings: Vec<Mapping<C>>,
}

impl<C> Watched<C> {
    pub(super) fn new(mapping: Mapping<C>, configure: Option<Configure<C>>) -> Self {
        Self { configure, mappings: vec![mapping] }
    }

    /// Takes a mapping in, if both watch the same objects.
    pub(super) fn join(&mut self, mapping: Mapping<C>) -> Result<(), Mapping<C>> {
        if self.configure.is_some() {
            return Err(mapping);
        }
        self.mappings.push(mapping);
        Ok(())
    }
}

impl<K: Resource, C: KnownResource> Source<K> for Watched<C> {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn start(self: Box<Self>, base: &Base<K>) -> Cache {
        let Self { configure, mappings } = *self;
        let mut informer = Informer::new(base.scope.apply(base.client.api::<C>()));
        if let Some(configure) = configure {
            informer = configure(informer);
        }
        let keys = ChangedKeys::new(base.primary.clone(), base.resource_type.clone(), mappings);
        let commands = base.commands.clone();
        let informer = informer.on_change_with(move |change, reader| {
            let told: Vec<_> = match keys.of(change, reader) {
                Ok(keys) => keys.into_iter().map(|key| Command::Input(ReconcilerInput::Enqueued(key))).collect(),
                Err(error) => vec![Command::Failed(error)],
            };
            told.into_iter().for_each(|command| commands.send(command));
        });
        let informer = informer.start();
        Cache { type_id: TypeId::of::<C>(), reader: Arc::new(informer.reader()), informer: Box::new(informer) }
    }
}

/// Tells the reconciler of changes of its own type.
pub(super) fn primary_handler(
    commands: Commands<Command>,
    ignores_status: bool,
) -> impl FnMut(&Change) + Send + 'static {
    move |change| {
        for input in primary_inputs(change, ignores_status) {
            commands.send(Command::Input(input));
        }
    }
}
