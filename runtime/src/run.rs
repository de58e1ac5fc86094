//! Running controllers, and their handlers in tasks.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use cloudcoil_core::{Error, Object, Outcome, ReconcilerInput, Resource, ResourceType, Ticket, Verdict};
use futures_util::FutureExt as _;
use futures_util::future::{AbortHandle, Abortable, BoxFuture, Either, select};
use tracing::Instrument as _;

use crate::driver::Commands;
use crate::plain::{message, outcome};
use crate::{Action, Client, Command, Context, Controller, IntoOutcome, Pass, Reader, Readers, Started, Stop};

impl<K: Resource> Controller<K> {
    /// What looks at an object: an `async fn` of the object and a [`Context`].
    ///
    /// It may return nothing, an [`Action`], or the object with changes, which are written as one guarded patch, and
    /// those of its status to the status; or a [`Stop`], into which every error turns by `?`. A panic is a failure like others.
    pub fn reconcile<H, F, R, M>(self, reconcile: H) -> Self
    where
        H: Fn(Arc<K>, Context<K>) -> F + Send + Sync + 'static,
        F: Future<Output = Result<R, Stop>> + Send + 'static,
        R: IntoOutcome<K, M>,
    {
        self.handled(Arc::new(move |object, context| {
            reconcile(object, context).map(|result| result.map(R::into_parts)).boxed()
        }))
    }

    /// Runs until `stop` ends: then what is queued is still worked off, for as long as the shutdown timeout allows. Dropping the
    /// future cancels everything at once.
    ///
    /// # Errors
    /// [`Error::Misuse`] without a handler or workers; [`Error::Stopped`] if the caches do not sync in time, or if a mapper fails.
    pub async fn run(self, client: Client, stop: impl Future<Output = ()>) -> Result<(), Error> {
        let Started { task, commands, .. } = self.begin(client)?;
        match select(pin!(task.run()), pin!(stop)).await {
            Either::Left((result, _)) => result,
            Either::Right(((), running)) => {
                commands.send(Command::Stop);
                running.await
            }
        }
    }
}

/// A handler, whatever its own type.
pub(crate) type Handler<K> =
    Arc<dyn Fn(Arc<K>, Context<K>) -> BoxFuture<'static, Result<(Option<K>, Action), Stop>> + Send + Sync>;

/// The handlers that are running. Dropping it stops them.
pub(crate) struct Runs<K> {
    pub(crate) handler: Handler<K>,
    pub(crate) client: Client,
    pub(crate) resource_type: Arc<ResourceType>,
    pub(crate) primary: Reader<K>,
    pub(crate) readers: Arc<Readers>,
    pub(crate) commands: Commands<Command>,
    pub(crate) running: BTreeMap<Ticket, AbortHandle>,
}

impl<K: Resource> Runs<K> {
    /// Starts the handler for an object, in a task of its own.
    pub(crate) fn start(&mut self, ticket: Ticket, object: Arc<Object>) {
        let (stop, stopped) = AbortHandle::new_pair();
        self.running.insert(ticket, stop);
        let key = object.key();
        let (kind, namespace, name) = (&*self.resource_type.kind, key.namespace().unwrap_or_default(), key.name());
        let span = tracing::info_span!("reconcile", kind, namespace, name);
        let attempt = self.attempt(object);
        let mut report = Report { commands: self.commands.clone(), ticket, outcome: Outcome::new(Verdict::Cancelled) };
        let task = async move {
            if let Ok(ended) = Abortable::new(AssertUnwindSafe(attempt).catch_unwind(), stopped).await {
                report.say(ended.unwrap_or_else(|panic| Outcome::panicked(message(&*panic))));
            }
        };
        self.client.runtime().spawn_handler(&format!("{kind} {key}"), task.instrument(span).boxed());
    }

    /// Stops a handler; its end is reported all the same.
    pub(crate) fn stop(&self, ticket: Ticket) {
        if let Some(stop) = self.running.get(&ticket) {
            stop.abort();
        }
    }

    pub(crate) fn ended(&mut self, ticket: Ticket) {
        self.running.remove(&ticket);
    }

    fn attempt(&self, object: Arc<Object>) -> impl Future<Output = Outcome> + Send + 'static {
        let (handler, primary) = (self.handler.clone(), self.primary.clone());
        let (client, resource_type, readers) = (self.client.clone(), self.resource_type.clone(), self.readers.clone());
        async move {
            let read = match primary.decode(&object) {
                Ok(read) => read,
                Err(error) => return Outcome::terminal(error.to_string()),
            };
            let pass = Pass { client, resource_type, key: object.key(), object: read.clone(), readers };
            outcome(handler(read.clone(), Context::new(pass)).await, &object, &*read)
        }
    }
}

impl<K> Drop for Runs<K> {
    fn drop(&mut self) {
        self.running.values().for_each(AbortHandle::abort);
    }
}

/// Tells the controller how a run ended, also when its task is dropped, or a destructor of the handler panics.
struct Report {
    commands: Commands<Command>,
    ticket: Ticket,
    outcome: Outcome,
}

impl Report {
    fn say(&mut self, outcome: Outcome) {
        self.outcome = outcome;
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        let outcome = std::mem::replace(&mut self.outcome, Outcome::done());
        self.commands.send(Command::Input(ReconcilerInput::Ran { ticket: self.ticket, outcome }));
    }
}
