//! Bringing the objects of manifests to a cluster, one after the other.

mod config;
mod definitions;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use serde_json::Value;

use super::{ManifestObject, deletion_order, installation_order};
use crate::error::{BodyProblem, Error};
use crate::exchange::{Answer, HttpRequest};
use crate::list::Deleted;
use crate::machine::{Deadline, Machine, Outbox, Ticket, Tickets};
use crate::request::{DeleteParams, Patch, PatchParams, Requests, WriteParams, without_managed_fields};
use crate::resource::{Resource as _, ResourceType};
use crate::response;
use crate::time::{Now, Time};
use crate::unstructured::Unstructured;

pub use config::{Done, ManifestOutcome, ManifestReport, ManifestRunConfig, ManifestVerb};

use definitions::{Definitions, definitions, is_established};

/// Applies, creates, replaces or deletes objects in the order in which a cluster takes them, or lets them go, one after the
/// other. Each is [reported](ManifestOutput::Report) once; one that fails does not keep the others back.
///
/// Types are asked of whoever knows what the server serves, but for those that objects of the same run define: for these
/// it is waited until the server serves them.
#[derive(Clone, Debug, PartialEq)]
pub struct ManifestRun {
    config: ManifestRunConfig,
    tickets: Tickets,
    waiting: VecDeque<ManifestObject>,
    state: State,
    definitions: Definitions,
}

/// What is waited for.
#[derive(Clone, Debug, PartialEq)]
enum State {
    /// The first step.
    Starting,
    /// The type of an object.
    Resolving { ticket: Ticket, item: Box<ManifestObject> },
    /// A definition, to see whether its types are served.
    Establishing { ticket: Ticket, task: Box<Task>, definition: String, give_up: Time },
    /// The time to look again.
    Pausing { until: Time, task: Box<Task>, next: Next, give_up: Time },
    /// The object as it is.
    Reading { ticket: Ticket, task: Box<Task>, give_up: Time },
    /// The object as it is then.
    Writing { ticket: Ticket, task: Box<Task>, before: Option<Box<Unstructured>>, give_up: Time },
    /// Nothing.
    Done,
}

/// What follows a pause.
#[derive(Clone, Debug, PartialEq)]
enum Next {
    Establish(String),
    Act,
}

/// An object on its way.
#[derive(Clone, Debug, PartialEq)]
struct Task {
    item: ManifestObject,
    requests: Requests,
    /// Whether its type was defined in this run, so that the server may not know it yet.
    is_new: bool,
}

/// What a [`ManifestRun`] hears.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must know what it may say")]
pub enum ManifestInput {
    /// A type was found out, or not.
    Resolved {
        /// Names the question.
        ticket: Ticket,
        /// The type.
        result: Result<ResourceType, Error>,
    },
    /// A request was answered, or failed for good.
    Answered {
        /// Names the request.
        ticket: Ticket,
        /// The answer, whatever its code.
        result: Result<Answer, Error>,
    },
}

/// What a [`ManifestRun`] asks for and says.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must do all of them")]
pub enum ManifestOutput {
    /// Find out the type of objects with this `apiVersion` and kind.
    Resolve {
        /// Names the question.
        ticket: Ticket,
        /// The `apiVersion`.
        api_version: String,
        /// The kind.
        kind: String,
    },
    /// Send a request, again where that is safe, as a [`Call`](crate::Call) does.
    Send {
        /// Names the request.
        ticket: Ticket,
        /// What to send.
        request: HttpRequest,
    },
    /// This came of an object.
    Report(Box<ManifestOutcome>),
    /// All objects are reported; said once, and nothing after it.
    Finished,
}

impl ManifestRun {
    /// A run over these objects, whose order does not matter. `machine` is the number in its tickets.
    pub fn new(mut objects: Vec<ManifestObject>, config: ManifestRunConfig, machine: u32) -> Self {
        match config.verb {
            ManifestVerb::Delete { .. } => deletion_order(&mut objects),
            _ => installation_order(&mut objects),
        }
        let (waiting, tickets) = (objects.into(), Tickets::new(machine));
        Self { config, tickets, waiting, state: State::Starting, definitions: Definitions::default() }
    }

    /// Begins with the next object.
    fn proceed(&mut self, now: Now, out: &mut Outbox<ManifestOutput>) {
        let Some(item) = self.waiting.pop_front() else {
            self.state = State::Done;
            out.push(ManifestOutput::Finished);
            return;
        };
        let (api_version, kind) = (item.object.api_version().to_owned(), item.object.kind().to_owned());
        if let Some((resource_type, unserved)) = self.definitions.find(&api_version, &kind) {
            self.resolved(now, item, Ok(resource_type), Some(unserved), out);
        } else {
            let ticket = self.tickets.issue();
            self.state = State::Resolving { ticket, item: Box::new(item) };
            out.push(ManifestOutput::Resolve { ticket, api_version, kind });
        }
    }

    /// The type is known; `unserved` holds what is to be waited for, if the type was defined in this run.
    fn resolved(
        &mut self,
        now: Now,
        mut item: ManifestObject,
        result: Result<ResourceType, Error>,
        unserved: Option<Option<String>>,
        out: &mut Outbox<ManifestOutput>,
    ) {
        let resource_type = match result {
            Ok(resource_type) => resource_type,
            // What has no type any more has no objects.
            Err(Error::NotServed(_)) if self.ignores_missing() => {
                return self.finish(now, &item, None, Ok((Done::Missing, None)), out);
            }
            Err(error) => return self.finish(now, &item, None, Err(error), out),
        };
        if let Err(error) = self.place(&mut item.object, &resource_type) {
            return self.finish(now, &item, Some(resource_type), Err(error), out);
        }
        let requests = Requests::new(resource_type, item.object.namespace());
        let task = Box::new(Task { item, requests, is_new: unserved.is_some() });
        let give_up = now.mono + self.config.establish_timeout;
        match unserved.flatten() {
            Some(definition) => self.establish(now, task, definition, give_up, out),
            None => self.act(now, task, give_up, out),
        }
    }

    /// Gives an object its namespace, or takes from it the one that its type does not have.
    fn place(&self, object: &mut Unstructured, resource_type: &ResourceType) -> Result<(), Error> {
        for (field, pointer) in [("name", "/metadata/name"), ("namespace", "/metadata/namespace")] {
            if object.pointer(pointer).is_some_and(|value| !value.is_string() && !value.is_null()) {
                return Err(Error::misuse(format!("metadata.{field} must be a text; in YAML it may need quotes")));
            }
        }
        let named = object.namespace().map(ToOwned::to_owned);
        match named {
            _ if !resource_type.is_namespaced() => object.metadata_mut().set_namespace(None),
            None => object.metadata_mut().set_namespace(Some(&self.config.namespace)),
            Some(named) if self.config.enforce_namespace && named != self.config.namespace => {
                let wanted = &self.config.namespace;
                return Err(Error::misuse(format!("the object is of the namespace {named:?} and not of {wanted:?}")));
            }
            Some(_) => {}
        }
        Ok(())
    }

    fn establish(
        &mut self,
        now: Now,
        task: Box<Task>,
        definition: String,
        give_up: Time,
        out: &mut Outbox<ManifestOutput>,
    ) {
        let request = Requests::new(definitions(), None).get(&definition);
        match request {
            Ok(request) => {
                let ticket = self.send(request, out);
                self.state = State::Establishing { ticket, task, definition, give_up };
            }
            Err(error) => self.fail(now, &task, error, out),
        }
    }

    fn established(
        &mut self,
        now: Now,
        (task, definition, give_up): (Box<Task>, String, Time),
        result: Result<Answer, Error>,
        out: &mut Outbox<ManifestOutput>,
    ) {
        let object = result.and_then(|answer| response::decode::<Unstructured>(&answer));
        if object.is_ok_and(|object| is_established(&object)) || now.mono >= give_up {
            // If it is not, the object's own failure tells.
            self.definitions.settle(&definition);
            self.act(now, task, give_up, out);
        } else {
            self.state = State::Pausing { until: now.mono + PAUSE, task, next: Next::Establish(definition), give_up };
        }
    }

    /// Reads the object first where it is to be known whether it changes; or in which version it is replaced, where the manifest
    /// names none: some types cannot be replaced otherwise.
    fn act(&mut self, now: Now, task: Box<Task>, give_up: Time, out: &mut Outbox<ManifestOutput>) {
        let reads = match self.config.verb {
            ManifestVerb::Apply { .. } => true,
            ManifestVerb::Replace => task.item.object.resource_version().is_none(),
            ManifestVerb::Create | ManifestVerb::Delete { .. } => false,
        };
        if !reads {
            return self.write(now, task, None, give_up, out);
        }
        match task.requests.get(task.item.object.name()) {
            Ok(request) => {
                let ticket = self.send(request, out);
                self.state = State::Reading { ticket, task, give_up };
            }
            Err(error) => self.fail(now, &task, error, out),
        }
    }

    fn read(
        &mut self,
        now: Now,
        (mut task, give_up): (Box<Task>, Time),
        result: Result<Answer, Error>,
        out: &mut Outbox<ManifestOutput>,
    ) {
        let replaces = matches!(self.config.verb, ManifestVerb::Replace);
        match result.and_then(|answer| response::decode::<Unstructured>(&answer)) {
            Ok(before) => {
                if replaces {
                    task.item.object.metadata_mut().set_resource_version(before.resource_version());
                }
                self.write(now, task, Some(Box::new(before)), give_up, out);
            }
            Err(Error::Api(status)) if status.is_not_found() && !replaces => {
                self.write(now, task, None, give_up, out);
            }
            Err(error) => self.again_or_fail(now, task, give_up, error, out),
        }
    }

    fn write(
        &mut self,
        now: Now,
        task: Box<Task>,
        before: Option<Box<Unstructured>>,
        give_up: Time,
        out: &mut Outbox<ManifestOutput>,
    ) {
        match self.request(&task) {
            Ok(request) => {
                let ticket = self.send(request, out);
                self.state = State::Writing { ticket, task, before, give_up };
            }
            Err(error) => self.fail(now, &task, error, out),
        }
    }

    fn request(&self, Task { item, requests, .. }: &Task) -> Result<Request<Bytes>, Error> {
        let ManifestRunConfig { dry_run, field_validation, .. } = self.config;
        let (object, name) = (&item.object, item.object.name());
        let params = WriteParams { dry_run, field_manager: self.config.field_manager.clone(), field_validation };
        match &self.config.verb {
            ManifestVerb::Apply { field_manager, force } => {
                let write = WriteParams { field_manager: Some(field_manager.clone()), ..params };
                let patch = Patch::Apply(without_managed_fields(object.clone().into_value()));
                requests.patch(name, None, &patch, &PatchParams { write, force: *force })
            }
            ManifestVerb::Create if name.is_empty() && object.metadata().generate_name().is_none() => {
                Err(Error::misuse("the object has neither metadata.name nor metadata.generateName"))
            }
            ManifestVerb::Create => requests.create(object, &params),
            ManifestVerb::Replace => requests.replace(name, None, object, &params),
            ManifestVerb::Delete { params, .. } => {
                requests.delete(name, &DeleteParams { dry_run: dry_run || params.dry_run, ..params.clone() })
            }
        }
    }

    fn written(
        &mut self,
        now: Now,
        (task, before, give_up): (Box<Task>, Option<Box<Unstructured>>, Time),
        result: Result<Answer, Error>,
        out: &mut Outbox<ManifestOutput>,
    ) {
        match result.and_then(|answer| self.judge(&answer, before.as_deref())) {
            Ok((done, object)) => {
                if let Some(object) = object.as_ref().filter(|_| !self.config.dry_run && done != Done::Deleted) {
                    self.definitions.add(object);
                }
                let resource_type = task.requests.resource_type().clone();
                self.finish(now, &task.item, Some(resource_type), Ok((done, object)), out);
            }
            // Of a type that has gone with its definition the path is not found, which is said in plain text.
            Err(error) if self.ignores_missing() && is_missing(&error) => {
                let resource_type = task.requests.resource_type().clone();
                self.finish(now, &task.item, Some(resource_type), Ok((Done::Missing, None)), out);
            }
            Err(error) => self.again_or_fail(now, task, give_up, error, out),
        }
    }

    fn judge(&self, answer: &Answer, before: Option<&Unstructured>) -> Result<(Done, Option<Unstructured>), Error> {
        if matches!(self.config.verb, ManifestVerb::Delete { .. }) {
            return Ok(match Deleted::<Unstructured>::decode(answer)? {
                Deleted::Object(object) => (Done::Deleted, Some(*object)),
                Deleted::Status(_) => (Done::Deleted, None),
            });
        }
        let object: Unstructured = response::decode(answer)?;
        let done = match (&self.config.verb, before) {
            (ManifestVerb::Create, _) | (ManifestVerb::Apply { .. }, None) => Done::Created,
            (ManifestVerb::Apply { .. }, Some(before)) if is_same(before, &object, self.config.dry_run) => {
                Done::Unchanged
            }
            (ManifestVerb::Apply { .. }, Some(_)) => Done::Configured,
            (ManifestVerb::Replace | ManifestVerb::Delete { .. }, _) => Done::Replaced,
        };
        Ok((done, Some(object)))
    }

    /// A path that the server does not have is answered in plain text; that of a new type may yet come.
    fn again_or_fail(
        &mut self,
        now: Now,
        task: Box<Task>,
        give_up: Time,
        error: Error,
        out: &mut Outbox<ManifestOutput>,
    ) {
        if task.is_new && error.code() == Some(404) && error.status().is_none() && now.mono < give_up {
            self.state = State::Pausing { until: now.mono + PAUSE, task, next: Next::Act, give_up };
        } else {
            self.fail(now, &task, error, out);
        }
    }

    fn fail(&mut self, now: Now, task: &Task, error: Error, out: &mut Outbox<ManifestOutput>) {
        self.finish(now, &task.item, Some(task.requests.resource_type().clone()), Err(error), out);
    }

    /// Reports an object and begins with the next.
    fn finish(
        &mut self,
        now: Now,
        item: &ManifestObject,
        resource_type: Option<ResourceType>,
        result: Result<(Done, Option<Unstructured>), Error>,
        out: &mut Outbox<ManifestOutput>,
    ) {
        let (result, object) = match result {
            Ok((done, object)) => (Ok(done), object),
            Err(error) => (Err(error), None),
        };
        // The server may have made the name.
        let name = object.as_ref().map_or("", |object| object.name());
        let name = if name.is_empty() { item.object.name() } else { name }.to_owned();
        out.push(ManifestOutput::Report(Box::new(ManifestOutcome {
            place: item.place.clone(),
            api_version: item.object.api_version().to_owned(),
            kind: item.object.kind().to_owned(),
            namespace: item.object.namespace().map(ToOwned::to_owned),
            name,
            resource_type,
            result,
            object,
        })));
        self.proceed(now, out);
    }

    const fn ignores_missing(&self) -> bool {
        matches!(self.config.verb, ManifestVerb::Delete { ignore_missing: true, .. })
    }

    fn send(&mut self, request: Request<Bytes>, out: &mut Outbox<ManifestOutput>) -> Ticket {
        let ticket = self.tickets.issue();
        out.push(ManifestOutput::Send { ticket, request: request.into() });
        ticket
    }

    const fn ticket(&self) -> Option<Ticket> {
        match &self.state {
            State::Resolving { ticket, .. }
            | State::Establishing { ticket, .. }
            | State::Reading { ticket, .. }
            | State::Writing { ticket, .. } => Some(*ticket),
            State::Starting | State::Pausing { .. } | State::Done => None,
        }
    }
}

impl Machine for ManifestRun {
    type Input = ManifestInput;
    type Output = ManifestOutput;

    fn on_input(&mut self, now: Now, input: ManifestInput, out: &mut Outbox<ManifestOutput>) {
        let (ManifestInput::Resolved { ticket, .. } | ManifestInput::Answered { ticket, .. }) = &input;
        if self.ticket() != Some(*ticket) {
            return;
        }
        match (std::mem::replace(&mut self.state, State::Done), input) {
            (State::Resolving { item, .. }, ManifestInput::Resolved { result, .. }) => {
                self.resolved(now, *item, result, None, out);
            }
            (State::Establishing { task, definition, give_up, .. }, ManifestInput::Answered { result, .. }) => {
                self.established(now, (task, definition, give_up), result, out);
            }
            (State::Reading { task, give_up, .. }, ManifestInput::Answered { result, .. }) => {
                self.read(now, (task, give_up), result, out);
            }
            (State::Writing { task, before, give_up, .. }, ManifestInput::Answered { result, .. }) => {
                self.written(now, (task, before, give_up), result, out);
            }
            (state, _) => self.state = state,
        }
    }

    fn on_timer(&mut self, now: Now, out: &mut Outbox<ManifestOutput>) {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Starting => self.proceed(now, out),
            State::Pausing { task, next: Next::Act, give_up, .. } => self.act(now, task, give_up, out),
            State::Pausing { task, next: Next::Establish(definition), give_up, .. } => {
                self.establish(now, task, definition, give_up, out);
            }
            state => self.state = state,
        }
    }

    fn deadline(&self) -> Option<Deadline> {
        match &self.state {
            State::Starting => Some(Deadline::new(Time::ZERO, "start")),
            State::Pausing { until, .. } => Some(Deadline::new(*until, "a new type")),
            _ => None,
        }
    }
}

/// Whether there is no such object, or no such type; a web page about it is from somebody else than the API server.
fn is_missing(error: &Error) -> bool {
    match error {
        Error::Body(body) => body.code == 404 && body.problem != BodyProblem::Html,
        error => error.is_not_found(),
    }
}

/// Whether an apply has changed nothing. One that stores nothing answers with the version as it was.
fn is_same(before: &Unstructured, after: &Unstructured, dry_run: bool) -> bool {
    let content = |object: &Unstructured| -> Value { without_managed_fields(object.clone().into_value()) };
    before.resource_version() == after.resource_version() && (!dry_run || content(before) == content(after))
}

/// How long is waited before it is looked again whether a new type is served.
const PAUSE: Duration = Duration::from_millis(500);
