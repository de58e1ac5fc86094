//! Runs of handlers.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

use cloudcoil_core::{Object, Outcome, ReconcilerInput, Resource, ResourceType, Ticket, Verdict};

use super::Client;
use super::context::{Context, Pass, Readers};
use super::task::Command;
use super::world::driver::Commands;
use super::world::dual;
use super::world::run::{Handler, Run};
use crate::plain::{Reader, outcome};

/// The handlers that are running. Dropping it gives them up.
pub(super) struct Runs<K> {
    pub(super) handler: Handler<K>,
    pub(super) client: Client,
    pub(super) resource_type: Arc<ResourceType>,
    pub(super) primary: Reader<K>,
    pub(super) readers: Arc<Readers>,
    pub(super) commands: Commands<Command>,
    pub(super) running: BTreeMap<Ticket, Run>,
}

#[dual]
impl<K: Resource> Runs<K> {
    /// Starts the handler for an object, in a task or on a thread of its own.
    pub(super) fn start(&mut self, ticket: Ticket, object: Arc<Object>) {
        let key = object.key();
        let (kind, namespace, name) = (&*self.resource_type.kind, key.namespace().unwrap_or_default(), key.name());
        let span = tracing::info_span!("reconcile", kind, namespace, name);
        let report = Report { commands: self.commands.clone(), ticket, outcome: Outcome::new(Verdict::Cancelled) };
        let attempt = |client: Client| {
            let (handler, primary) = (self.handler.clone(), self.primary.clone());
            let (resource_type, readers) = (self.resource_type.clone(), self.readers.clone());
            async move {
                let read = match primary.decode(&object) {
                    Ok(read) => read,
                    Err(error) => return Outcome::terminal(error.to_string()),
                };
                let pass = Pass { client, resource_type, key: object.key(), object: read.clone(), readers };
                outcome(handler(read.clone(), Context::new(pass)).await, &object, &*read)
            }
        };
        let run = Run::start(&self.client, &format!("{kind} {key}"), span, report, attempt);
        self.running.insert(ticket, run);
    }

    /// Gives a handler up; its end is reported all the same.
    pub(super) fn stop(&self, ticket: Ticket) {
        if let Some(run) = self.running.get(&ticket) {
            run.give_up();
        }
    }

    pub(super) fn ended(&mut self, ticket: Ticket) {
        if let Some(run) = self.running.remove(&ticket) {
            run.ended();
        }
    }
}

impl<K> Drop for Runs<K> {
    fn drop(&mut self) {
        self.running.values().for_each(Run::give_up);
    }
}

/// Tells the controller how a run ended, also when it never began, or a destructor of the handler panics.
pub(crate) struct Report {
    commands: Commands<Command>,
    ticket: Ticket,
    outcome: Outcome,
}

impl Report {
    /// What is told in the end, unless something else is said.
    pub(crate) fn say(&mut self, outcome: Outcome) {
        self.outcome = outcome;
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        let outcome = mem::replace(&mut self.outcome, Outcome::done());
        self.commands.send(Command::Input(ReconcilerInput::Ran { ticket: self.ticket, outcome }));
    }
}
