//! Running controllers, and their handlers on threads.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use cloudcoil_core::{Error, Object, Outcome, ReconcilerInput, Resource, ResourceType, Ticket};

use super::driver::Commands;
use super::group::Group;
use super::{Client, Command, Context, Controller, Pass, Readers, Started};
use crate::plain::{message, outcome};
use crate::{Action, IntoOutcome, Reader, Stop};

impl<K: Resource> Controller<K> {
    /// What looks at an object: a function of the object and a [`Context`], which runs on a thread of its own.
    ///
    /// It may return nothing, an [`Action`], or the object with changes, which are written as one guarded patch, and
    /// those of its status to the status; or a [`Stop`], into which every error turns by `?`. A panic is a failure like others.
    pub fn reconcile<H, R, M>(self, reconcile: H) -> Self
    where
        H: Fn(Arc<K>, Context<K>) -> Result<R, Stop> + Send + Sync + 'static,
        R: IntoOutcome<K, M>,
    {
        self.handled(Arc::new(move |object, context| reconcile(object, context).map(R::into_parts)))
    }

    /// Runs on this thread until `stop`, which is called on another, returns: then what is queued is still worked off, for as long
    /// as the shutdown timeout allows. When this returns, no handler is running any more.
    ///
    /// # Errors
    /// [`Error::Misuse`] without a handler or workers; [`Error::Stopped`] if the caches do not sync in time, or if a mapper fails.
    ///
    /// # Panics
    /// If the system refuses a thread.
    pub fn run(self, client: Client, stop: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let clock = client.clock();
        let Started { task, commands, .. } = self.begin(client)?;
        drop(clock.spawn("cloudcoil-stop", move || {
            stop();
            commands.send(Command::Stop);
        }));
        task.run()
    }
}

impl<K: Resource> Context<K> {
    /// Whether nobody waits for this pass any more, as its time is up or the controller stops.
    ///
    /// A thread cannot be cut short: the pass is over when the handler returns, and until then no other pass of the same object
    /// begins, and the controller does not end. So a handler that does not end soon anyway should look here from time to
    /// time. Requests through [`client`](Self::client) and all that is made of it end by themselves, with
    /// [`Error::Cancelled`], and so do watches.
    pub fn is_cancelled(&self) -> bool {
        self.client().link.group.as_ref().is_some_and(Group::is_cancelled)
    }

    /// Another client for this pass: what is called through it ends with the pass's time.
    #[must_use]
    pub fn adopt(&self, client: &Client) -> Client {
        client.clone().grouped(self.client().link.group.clone())
    }
}

/// A handler, whatever its own type.
pub(crate) type Handler<K> = Arc<dyn Fn(Arc<K>, Context<K>) -> Result<(Option<K>, Action), Stop> + Send + Sync>;

/// The handlers that are running.
pub(crate) struct Runs<K> {
    pub(crate) handler: Handler<K>,
    pub(crate) client: Client,
    pub(crate) resource_type: Arc<ResourceType>,
    pub(crate) primary: Reader<K>,
    pub(crate) readers: Arc<Readers>,
    pub(crate) commands: Commands<Command>,
    pub(crate) running: BTreeMap<Ticket, Run>,
}

/// A handler that is running.
pub(crate) struct Run {
    group: Group,
    thread: JoinHandle<()>,
}

impl<K: Resource> Runs<K> {
    /// Starts the handler for an object, on a thread of its own.
    pub(crate) fn start(&mut self, ticket: Ticket, object: Arc<Object>) {
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
    pub(crate) fn stop(&self, ticket: Ticket) {
        if let Some(run) = self.running.get(&ticket) {
            tracing::debug!("a pass is cancelled, and is over when its handler returns");
            run.group.cancel();
        }
    }

    pub(crate) fn ended(&mut self, ticket: Ticket) {
        if let Some(run) = self.running.remove(&ticket) {
            // What the handler leaves behind may panic when it is dropped; the pass is over.
            let _ = run.thread.join();
        }
    }

    fn attempt(&self, object: Arc<Object>, group: Group) -> impl FnOnce() -> Outcome + Send + 'static {
        let (handler, primary) = (self.handler.clone(), self.primary.clone());
        let (resource_type, readers) = (self.resource_type.clone(), self.readers.clone());
        let client = self.client.clone().grouped(Some(group));
        move || {
            let read = match primary.decode(&object) {
                Ok(read) => read,
                Err(error) => return Outcome::terminal(error.to_string()),
            };
            let pass = Pass { client, resource_type, key: object.key(), object: read.clone(), readers };
            outcome(handler(read.clone(), Context::new(pass)), &object, &*read)
        }
    }
}
