//! One client, seen the same way whatever it runs on.

mod asynchronous;
pub(crate) mod op;
mod simulated;
mod threads;
mod waits;

use std::sync::Arc;
use std::time::Duration;

use cloudcoil_runtime::core::config::Config;
use cloudcoil_runtime::{BackoffPolicy, Change, Error, Reader, Recorder, RetryPolicy, Unstructured, WatchEvent};

use op::{Follow, Op, Operator, Reply};
pub(crate) use simulated::Simulated;
pub(crate) use waits::{Flow, Waits};

/// A client.
///
/// Everything blocks, in virtual time where there is no other. What takes longer than any of it should panics.
pub(crate) trait World {
    /// Begins a call. What comes of it is the one thing that flows; if the flow is dropped, the call is given up, where callers can.
    fn start(&self, op: Op) -> Flow<Result<Reply, Error>>;

    /// Follows objects until the flow is dropped.
    fn watch(&self, follow: Follow) -> Flow<Result<WatchEvent<Unstructured>, Error>>;

    /// Follows a log, as [`Kind::log`](op::Kind::log) names it, line by line.
    fn lines(&self, log: Op) -> Flow<Result<String, Error>>;

    /// Keeps objects.
    fn inform(&self, follow: Follow) -> Informing;

    /// Runs a controller.
    fn operate(&self, operator: Operator) -> Operating;

    /// The same client with other settings.
    fn with(&self, settings: &Settings) -> Box<dyn World>;
}

impl dyn World + '_ {
    /// Makes a call.
    pub(crate) fn perform(&self, op: Op) -> Result<Reply, Error> {
        self.start(op).one()
    }

    /// Makes a call that succeeds.
    #[track_caller]
    pub(crate) fn must(&self, op: Op) -> Reply {
        let asked = format!("{op:?}");
        self.perform(op).unwrap_or_else(|error| panic!("{asked}: {error:?}"))
    }

    /// Makes a call that fails.
    #[track_caller]
    pub(crate) fn fail(&self, op: Op) -> Error {
        let asked = format!("{op:?}");
        match self.perform(op) {
            Ok(reply) => panic!("{asked} has succeeded: {reply:?}"),
            Err(error) => error,
        }
    }

    /// Makes calls, all at once.
    pub(crate) fn all(&self, ops: impl IntoIterator<Item = Op>) -> Vec<Result<Reply, Error>> {
        let started: Vec<_> = ops.into_iter().map(|op| self.start(op)).collect();
        started.into_iter().map(Flow::one).collect()
    }
}

/// What a client is set up with.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) namespace: String,
    pub(crate) timeout: Option<Duration>,
    pub(crate) retry: RetryPolicy,
    pub(crate) recorder: Option<Recorder>,
}

impl Settings {
    pub(crate) fn within(namespace: &str) -> Self {
        let (timeout, retry) = (Some(Duration::from_secs(30)), RetryPolicy::DEFAULT);
        Self { namespace: namespace.into(), timeout, retry, recorder: None }
    }

    /// Every request is sent once.
    pub(crate) fn once(self) -> Self {
        Self { retry: RetryPolicy::OFF, ..self }
    }

    /// Requests are sent again as always, but soon.
    pub(crate) fn soon(self) -> Self {
        let backoff = BackoffPolicy { first: Duration::from_millis(1), cap: Duration::from_millis(2), jitter: 0 };
        Self { retry: RetryPolicy { backoff, ..RetryPolicy::DEFAULT }, ..self }
    }

    pub(crate) fn recorded(self, recorder: Recorder) -> Self {
        Self { recorder: Some(recorder), ..self }
    }

    pub(crate) fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }
}

/// A running informer; it stops when it is dropped.
pub(crate) struct Informing {
    pub(crate) changes: Flow<Change>,
    /// The one thing that flows is whether it has synced.
    pub(crate) synced: Flow<Result<(), Error>>,
    pub(crate) reader: Reader<Unstructured>,
}

/// A running controller; it stops when it is dropped.
pub(crate) struct Operating {
    ended: Flow<Result<(), Error>>,
    stop: Arc<dyn Fn()>,
}

impl Operating {
    /// Has it work off what there is, and answers how it ended.
    pub(crate) fn stop(self) -> Result<(), Error> {
        (self.stop)();
        self.ended.one()
    }
}

/// What a client over sockets runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Executor {
    Tokio,
    AsyncStd,
    Smol,
    Blocking,
}

impl Executor {
    pub(crate) const ALL: [Self; 4] = [Self::Tokio, Self::AsyncStd, Self::Smol, Self::Blocking];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tokio => "tokio",
            Self::AsyncStd => "async_std",
            Self::Smol => "smol",
            Self::Blocking => "blocking",
        }
    }

    /// A client for a configuration.
    ///
    /// # Errors
    /// Where it cannot be had with that configuration.
    pub(crate) fn connect(self, config: &Config, settings: &Settings) -> Result<Box<dyn World>, Error> {
        match self {
            Self::Tokio => asynchronous::on_tokio(config, settings),
            Self::AsyncStd => asynchronous::on_async_std(config, settings),
            Self::Smol => asynchronous::on_smol(config, settings),
            Self::Blocking => threads::connect(config, settings),
        }
    }
}
