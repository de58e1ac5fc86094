//! Running controllers, and their handlers on threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use cloudcoil_core::{Error, Outcome, Resource};
use tracing::Span;

use super::group::Group;
use super::{Client, Command, Context, Controller, Report, Started};
use crate::plain::message;
use crate::{Action, IntoOutcome, Stop};

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

/// A handler that is running.
pub(crate) struct Run {
    group: Group,
    thread: Option<JoinHandle<()>>,
}

impl Run {
    /// Starts it, on a thread of its own.
    pub(crate) fn start<F: FnOnce() -> Outcome + Send + 'static>(
        client: &Client,
        object: &str,
        span: Span,
        mut report: Report,
        attempt: impl FnOnce(Client) -> F,
    ) -> Self {
        let group = Group::default();
        let attempt = attempt(client.clone().grouped(Some(group.clone())));
        report.say(Stop::failed("the system refuses a thread").into());
        let builder = thread::Builder::new().name("cloudcoil-worker".into());
        let spawned = builder.spawn(move || {
            let ended = span.in_scope(|| catch_unwind(AssertUnwindSafe(attempt)));
            report.say(ended.unwrap_or_else(|panic| Outcome::panicked(message(&*panic))));
        });
        if let Err(error) = &spawned {
            tracing::error!(%error, "no thread for the handler of {object}");
        }
        Self { group, thread: spawned.ok() }
    }

    /// Asks the handler to end.
    pub(crate) fn give_up(&self) {
        tracing::debug!("a pass is cancelled, and is over when its handler returns");
        self.group.cancel();
    }

    /// It has reported: waits for the rest.
    pub(crate) fn ended(self) {
        // What the handler leaves behind may panic when it is dropped; the pass is over.
        let _ = self.thread.map(JoinHandle::join);
    }
}
