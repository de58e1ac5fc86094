//! Runs of handlers.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use cloudcoil_core::{Object, Outcome, ReconcilerInput, Resource, ResourceType, Ticket};
use cloudcoil_runtime::parts::{message, outcome};
use cloudcoil_runtime::{Action, IntoOutcome, Reader, Stop};

use super::context::{Context, Inner, Readers};
use super::task::Command;
use crate::Client;
use crate::driver::Commands;
use crate::group::Group;

/// A handler, whatever its own type.
pub(super) type Handler<K> = Arc<dyn Fn(Arc<K>, Context<K>) -> Result<(Option<K>, Action), Stop> + Send + Sync>;

pub(super) fn handler<K, H, R, M>(handler: H) -> Handler<K>
where
    H: Fn(Arc<K>, Context<K>) -> Result<R, Stop> + Send + Sync + 'static,
    R: IntoOutcome<K, M>,
{
    Arc::new(move |object, context| handler(object, context).map(R::into_parts))
}

/// The handlers that are running.
pub(super) struct Runs<K> {
    pub(super) handler: Handler<K>,
    pub(super) client: Client,
    pub(super) resource_type: Arc<ResourceType>,
    pub(super) primary: Reader<K>,
    pub(super) readers: Arc<Readers>,
    pub(super) commands: Commands<Command>,
    pub(super) running: BTreeMap<Ticket, Run>,
}

/// A handler that is running.
pub(super) struct Run {
    group: Group,
    thread: JoinHandle<()>,
}

impl<K: Resource> Runs<K> {
    /// Starts the handler for an object, on a thread of its own.
    pub(super) fn start(&mut self, ticket: Ticket, object: Arc<Object>) {
        let key = object.key();
        let (kind, namespace, name) = (&*self.resource_type.kind, key.namespace().unwrap_or_default(), key.name());
        let span = tracing::info_span!("reconcile", kind, namespace, name);
        let group = Group::default();
        let attempt = self.attempt(object, group.clone());
        let commands = self.commands.clone();
        let builder = thread::Builder::new().name("cloudcoil-worker".into());
        let spawned = builder.spawn(move || {
            let ended = span.in_scope(|| catch_unwind(AssertUnwindSafe(attempt)));
            let outcome = ended.unwrap_or_else(|panic| Outcome::panicked(message(&*panic)));
            commands.send(Command::Input(ReconcilerInput::Ran { ticket, outcome }));
        });
        match spawned {
            Ok(thread) => drop(self.running.insert(ticket, Run { group, thread })),
            Err(error) => {
                let outcome = Stop::failed(format!("the system refuses a thread: {error}")).into();
                self.commands.send(Command::Input(ReconcilerInput::Ran { ticket, outcome }));
            }
        }
    }

    /// Asks a handler to end; its end is reported all the same.
    pub(super) fn stop(&self, ticket: Ticket) {
        if let Some(run) = self.running.get(&ticket) {
            tracing::debug!("a pass is cancelled, and is over when its handler returns");
            run.group.cancel();
        }
    }

    pub(super) fn ended(&mut self, ticket: Ticket) {
        if let Some(run) = self.running.remove(&ticket) {
            // What the handler leaves behind may panic when it is dropped; the pass is over.
            let _ = run.thread.join();
        }
    }

    fn attempt(&self, object: Arc<Object>, group: Group) -> impl FnOnce() -> Outcome + Send + 'static {
        let (handler, primary) = (self.handler.clone(), self.primary.clone());
        let (resource_type, readers) = (self.resource_type.clone(), self.readers.clone());
        let client = self.client.clone().grouped(group.clone());
        move || {
            let read = match primary.decode(&object) {
                Ok(read) => read,
                Err(error) => return Outcome::terminal(error.to_string()),
            };
            let inner = Inner { client, resource_type, key: object.key(), object: read.clone(), readers, group };
            outcome(handler(read.clone(), Context::new(inner)), &object, &*read)
        }
    }
}
