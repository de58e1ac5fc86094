//! Runs of handlers.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use cloudcoil_core::{Object, Outcome, ReconcilerInput, Resource, ResourceType, Ticket, Update, Verdict};
use futures_channel::mpsc::UnboundedSender;
use futures_util::FutureExt as _;
use futures_util::future::{AbortHandle, Abortable, BoxFuture};
use serde_json::Value;
use tracing::Instrument as _;

use super::context::{Context, Inner, Readers};
use super::task::Command;
use super::{Action, IntoOutcome, Stop};
use crate::informer::Reader;
use crate::{Client, panics};

/// A handler, whatever its own type.
pub(super) type Handler<K> =
    Arc<dyn Fn(Arc<K>, Context<K>) -> BoxFuture<'static, Result<(Option<K>, Action), Stop>> + Send + Sync>;

pub(super) fn handler<K, H, F, R, M>(handler: H) -> Handler<K>
where
    K: Resource,
    H: Fn(Arc<K>, Context<K>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<R, Stop>> + Send + 'static,
    R: IntoOutcome<K, M>,
{
    Arc::new(move |object, context| handler(object, context).map(|result| result.map(R::into_parts)).boxed())
}

/// The handlers that are running. Dropping it stops them.
pub(super) struct Runs<K> {
    pub(super) handler: Handler<K>,
    pub(super) client: Client,
    pub(super) resource_type: Arc<ResourceType>,
    pub(super) primary: Reader<K>,
    pub(super) readers: Arc<Readers>,
    pub(super) commands: UnboundedSender<Command>,
    pub(super) running: BTreeMap<Ticket, AbortHandle>,
}

impl<K: Resource> Runs<K> {
    /// Starts the handler for an object, in a task of its own.
    pub(super) fn start(&mut self, ticket: Ticket, object: Arc<Object>) {
        let (stop, stopped) = AbortHandle::new_pair();
        self.running.insert(ticket, stop);
        let key = object.key();
        let (kind, namespace, name) = (&*self.resource_type.kind, key.namespace().unwrap_or_default(), key.name());
        let span = tracing::info_span!("reconcile", kind, namespace, name);
        let attempt = self.attempt(object);
        let mut report = Report { commands: self.commands.clone(), ticket, outcome: Outcome::new(Verdict::Cancelled) };
        let task = async move {
            if let Ok(ended) = Abortable::new(AssertUnwindSafe(attempt).catch_unwind(), stopped).await {
                report.say(ended.unwrap_or_else(|panic| Outcome::panicked(panics::message(&*panic))));
            }
        };
        self.client.runtime().spawn_handler(&format!("{kind} {key}"), task.instrument(span).boxed());
    }

    /// Stops a handler; its end is reported all the same.
    pub(super) fn stop(&self, ticket: Ticket) {
        if let Some(stop) = self.running.get(&ticket) {
            stop.abort();
        }
    }

    pub(super) fn ended(&mut self, ticket: Ticket) {
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
            let inner = Inner { client, resource_type, key: object.key(), object: read.clone(), readers };
            outcome(handler(read.clone(), Context::new(inner)).await, &object, &*read)
        }
    }
}

impl<K> Drop for Runs<K> {
    fn drop(&mut self) {
        self.running.values().for_each(AbortHandle::abort);
    }
}

/// What it comes to when a handler has returned that saw `object` as `read`.
pub fn outcome<K: Resource>(returned: Result<(Option<K>, Action), Stop>, object: &Object, read: &K) -> Outcome {
    match returned {
        Err(stop) => stop.into(),
        Ok((None, action)) => action.into(),
        Ok((Some(edited), action)) => match change(object, read, &edited) {
            Ok(update) => Outcome::from(action).with_update(update),
            Err(error) => Outcome::terminal(format!("the changed object is no JSON: {error}")),
        },
    }
}

/// The change of an object that the handler saw through its type.
fn change<K: Resource>(object: &Object, read: &K, edited: &K) -> serde_json::Result<Update> {
    let stored: Value = serde_json::from_str(object.json())?;
    Ok(Update::typed(stored, &serde_json::to_value(read)?, serde_json::to_value(edited)?))
}

/// Tells the controller how a run ended, also when its task is dropped, or a destructor of the handler panics.
struct Report {
    commands: UnboundedSender<Command>,
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
        // The controller may be gone.
        let _ = self.commands.unbounded_send(Command::Input(ReconcilerInput::Ran { ticket: self.ticket, outcome }));
    }
}
