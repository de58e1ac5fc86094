//! Waiting until an object is what it should be.

mod predicate;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use crate::drive::{HttpMachine, Said};
use crate::error::Error;
use crate::exchange::{HttpEffect, HttpEvent};
use crate::list_watch::{ListWatch, WatchConfig, WatchEvent, WatchInput, WatchOutput};
use crate::machine::{Deadline, Machine, Outbox, Ticket};
use crate::object::{Object, Trim};
use crate::request::Requests;
use crate::time::{Now, Time};

pub use predicate::{Predicate, PredicateFn};

/// Waits until one of several predicates holds for one object, and ends with exactly one [`Done`](WaitOutput::Done).
///
/// The object is listed and watched by its name, so that no state between is missed: every state that the server
/// reports is judged. The predicates are asked in their order, and the first that holds is the answer. The object need not
/// exist when the wait begins.
///
/// Failures that may pass are tried again until the time is over. Those that will hardly pass end the wait: a collection that
/// does not exist, a refusal as 403, an object or a predicate that makes no sense.
///
/// ```
/// use cloudcoil_core::{KnownResource, Machine, Now, Outbox, Predicate, Requests, WaitFor, WaitOutput};
/// use cloudcoil_core::k8s_openapi::api::core::v1::Pod;
///
/// let pods = Requests::new(Pod::resource_type(), Some("default"));
/// let mut wait = WaitFor::new(pods, "web-0", 0, 0)?.when("ready", Predicate::condition("Ready")).when("gone", Predicate::Deleted);
/// let mut out = Outbox::new();
/// let _ = wait.step(Now::default(), None, &mut out);
/// assert!(matches!(out.pop(), Some(WaitOutput::Http(_))));
/// # Ok::<(), cloudcoil_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct WaitFor {
    state: State,
    watch: ListWatch,
    name: Box<str>,
    predicates: Vec<(String, Predicate)>,
    timeout: Option<Duration>,
    /// The object whose end counts as a deletion, and not another of the same name.
    uid: Option<Box<str>>,
    /// The object as it was last.
    last: Option<Arc<Object>>,
    /// Whether the list that is being read has the object.
    listed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The first step.
    Starting,
    /// A state of the object for which a predicate holds.
    Waiting { give_up: Option<Time> },
    /// Nothing.
    Done,
}

impl WaitFor {
    /// A wait for the object `name`. `machine` is the number in its tickets, `seed` moves the jitter of its retries.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a name that cannot be one, or where a namespace has to be chosen.
    pub fn new(requests: Requests, name: &str, machine: u32, seed: u64) -> Result<Self, Error> {
        requests.get(name)?;
        let field_selector = Some(format!("metadata.name={name}"));
        let config = WatchConfig { field_selector, trim: Trim::Nothing, ..WatchConfig::new(requests) };
        Ok(Self {
            state: State::Starting,
            watch: ListWatch::new(config, machine, seed),
            name: name.into(),
            predicates: Vec::new(),
            timeout: None,
            uid: None,
            last: None,
            listed: false,
        })
    }

    /// Also until `predicate` holds; `name` is what the answer calls it.
    #[must_use]
    pub fn when(mut self, name: impl Into<String>, predicate: Predicate) -> Self {
        self.predicates.push((name.into(), predicate));
        self
    }

    /// Gives up after this time, with [`Error::TimedOut`]. Zero looks once. Without a limit it waits for ever.
    #[must_use]
    pub fn timeout(self, timeout: Option<Duration>) -> Self {
        Self { timeout, ..self }
    }

    /// Another object of the same name counts as a deletion of this one. It is the first that is seen, unless this is
    /// called.
    #[must_use]
    pub fn uid(self, uid: impl Into<Box<str>>) -> Self {
        Self { uid: Some(uid.into()), ..self }
    }

    /// Steps the watch, and judges what it reports.
    fn drive(&mut self, now: Now, input: Option<WatchInput>, out: &mut Outbox<WaitOutput>) {
        let mut said = Outbox::new();
        let _ = self.watch.step(now, input, &mut said);
        let mut unsent = Vec::new();
        let mut answer = None;
        for output in said {
            match output {
                WatchOutput::Event(event) if answer.is_none() => answer = self.hear(event),
                WatchOutput::Event(_) => {}
                WatchOutput::Http(HttpEffect::Send { ticket, .. }) if answer.is_some() => unsent.push(ticket),
                WatchOutput::Http(effect) => out.push(WaitOutput::Http(effect)),
            }
        }
        if let Some(answer) = answer {
            self.end(now, answer, &unsent, out);
        }
    }

    fn end(&mut self, now: Now, answer: Result<Awaited, Error>, unsent: &[Ticket], out: &mut Outbox<WaitOutput>) {
        self.state = State::Done;
        let mut said = Outbox::new();
        let _ = self.watch.step(now, Some(WatchInput::Stopped), &mut said);
        for output in said {
            if let WatchOutput::Http(HttpEffect::Cancel { ticket }) = output
                && !unsent.contains(&ticket)
            {
                out.push(WaitOutput::Http(HttpEffect::Cancel { ticket }));
            }
        }
        out.push(WaitOutput::Done(answer));
    }

    /// The answer, if this event brings it.
    fn hear(&mut self, event: WatchEvent) -> Option<Result<Awaited, Error>> {
        match event {
            WatchEvent::Restarted => {
                self.listed = false;
                None
            }
            WatchEvent::Listed(object) | WatchEvent::Applied(object) => self.exists(object),
            WatchEvent::Synced { .. } if self.listed => self.looked(),
            WatchEvent::Synced { .. } => self.is_gone().or_else(|| self.looked()),
            WatchEvent::Deleted(object) if object.name() == &*self.name => {
                self.last = Some(object);
                self.is_gone()
            }
            WatchEvent::Faulty(faulty) => match &faulty.key {
                Some(key) if key.name() != &*self.name => None,
                _ => Some(Err(faulty.error.into())),
            },
            WatchEvent::Failed { error, retry_in } => {
                let is_final = error.is_permanent() || retry_in == Duration::MAX || self.looks_once();
                is_final.then_some(Err(error))
            }
            WatchEvent::Deleted(_) | WatchEvent::Warned(_) => None,
        }
    }

    fn exists(&mut self, object: Arc<Object>) -> Option<Result<Awaited, Error>> {
        // A server need not know the selector.
        if object.name() != &*self.name {
            return None;
        }
        self.listed = true;
        let is_another = self.uid.as_deref().is_some_and(|uid| object.uid().is_some_and(|other| other != uid));
        if self.uid.is_none() {
            self.uid = object.uid().map(Into::into);
        }
        let judge = |predicate: &Predicate| match predicate {
            Predicate::Deleted => Ok(is_another),
            predicate => predicate.holds(&object),
        };
        let found = self.predicates.iter().find_map(|(name, predicate)| match judge(predicate) {
            Ok(false) => None,
            Ok(true) => Some(Ok(Awaited { predicate: name.clone(), object: Some(Arc::clone(&object)) })),
            Err(error) => Some(Err(error)),
        });
        self.last = Some(object);
        found
    }

    fn is_gone(&mut self) -> Option<Result<Awaited, Error>> {
        let (name, _) = self.predicates.iter().find(|(_, predicate)| matches!(predicate, Predicate::Deleted))?;
        Some(Ok(Awaited { predicate: name.clone(), object: self.last.take() }))
    }

    /// What there is has been judged.
    fn looked(&self) -> Option<Result<Awaited, Error>> {
        self.looks_once().then_some(Err(Error::TimedOut(Duration::ZERO)))
    }

    fn looks_once(&self) -> bool {
        self.timeout == Some(Duration::ZERO)
    }
}

/// What a wait has come to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Awaited {
    /// The name of the predicate that holds.
    pub predicate: String,
    /// The object for which it holds. Of one that is gone its last state, if any was seen; of one that another has taken
    /// the place of, that other.
    pub object: Option<Arc<Object>>,
}

/// What a [`WaitFor`] hears.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must know what it may say")]
pub enum WaitInput {
    /// Something came of a request.
    Http(HttpEvent),
    /// Nobody waits any more: it ends with [`Error::Cancelled`].
    Cancelled,
}

/// What a [`WaitFor`] asks for and says.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must do all of them")]
pub enum WaitOutput {
    /// Perform an HTTP effect.
    Http(HttpEffect),
    /// The wait is over; said once, and nothing after it.
    Done(Result<Awaited, Error>),
}

impl Machine for WaitFor {
    type Input = WaitInput;
    type Output = WaitOutput;

    fn on_input(&mut self, now: Now, input: WaitInput, out: &mut Outbox<WaitOutput>) {
        match (self.state, input) {
            (State::Done, _) => {}
            (_, WaitInput::Cancelled) => self.end(now, Err(Error::Cancelled), &[], out),
            (_, WaitInput::Http(event)) => self.drive(now, Some(WatchInput::Http(event)), out),
        }
    }

    fn on_timer(&mut self, now: Now, out: &mut Outbox<WaitOutput>) {
        match self.state {
            State::Starting if self.predicates.is_empty() => {
                self.end(now, Err(Error::misuse("a wait needs something to wait for")), &[], out);
            }
            State::Starting => {
                let limit = self.timeout.filter(|_| !self.looks_once());
                self.state = State::Waiting { give_up: limit.map(|limit| now.mono + limit) };
                self.drive(now, None, out);
            }
            State::Waiting { give_up: Some(at) } if at <= now.mono => {
                self.end(now, Err(Error::TimedOut(self.timeout.unwrap_or_default())), &[], out);
            }
            State::Waiting { .. } => self.drive(now, None, out),
            State::Done => {}
        }
    }

    fn deadline(&self) -> Option<Deadline> {
        match self.state {
            State::Starting => Some(Deadline::new(Time::ZERO, "start")),
            State::Waiting { give_up } => {
                let give_up = give_up.map(|at| Deadline::new(at, "what is waited for"));
                Deadline::earliest(give_up, self.watch.deadline())
            }
            State::Done => None,
        }
    }
}

impl HttpMachine for WaitFor {
    type Event = Result<Awaited, Error>;

    fn hear(event: HttpEvent) -> WaitInput {
        WaitInput::Http(event)
    }

    fn sort(output: WaitOutput) -> Said<Self::Event> {
        match output {
            WaitOutput::Http(effect) => Said::Effect(effect),
            WaitOutput::Done(result) => Said::Event(result),
        }
    }
}
