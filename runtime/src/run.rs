//! Running controllers, and their handlers in tasks.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use cloudcoil_core::{Error, Outcome, Resource};
use futures_util::FutureExt as _;
use futures_util::future::{AbortHandle, Abortable, BoxFuture, Either, select};
use tracing::{Instrument as _, Span};

use crate::plain::message;
use crate::{Action, Client, Command, Context, Controller, IntoOutcome, Report, Started, Stop};

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

/// A handler that is running.
pub(crate) struct Run(AbortHandle);

impl Run {
    /// Starts it, in a task of its own.
    pub(crate) fn start<F: Future<Output = Outcome> + Send + 'static>(
        client: &Client,
        object: &str,
        span: Span,
        mut report: Report,
        attempt: impl FnOnce(Client) -> F,
    ) -> Self {
        let (stop, stopped) = AbortHandle::new_pair();
        let attempt = AssertUnwindSafe(attempt(client.clone())).catch_unwind();
        let task = async move {
            if let Ok(ended) = Abortable::new(attempt, stopped).await {
                report.say(ended.unwrap_or_else(|panic| Outcome::panicked(message(&*panic))));
            }
        };
        client.runtime().spawn_handler(object, task.instrument(span).boxed());
        Self(stop)
    }

    /// Drops what the handler is doing.
    pub(crate) fn give_up(&self) {
        self.0.abort();
    }

    /// It has reported.
    pub(crate) fn ended(self) {}
}
