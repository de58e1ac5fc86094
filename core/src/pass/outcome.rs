//! What a handler's run came to, and what its pass made of it.

use std::time::Duration;

use serde_json::Value;
use thiserror::Error;

use super::update::Update;
use crate::error::Error;
use crate::patch::PatchError;

/// What became of a handler that was told to run: how it ended, and what it wants written.
///
/// ```
/// use std::time::Duration;
/// use cloudcoil_core::Outcome;
///
/// let outcome = Outcome::done().requeue_after(Duration::from_secs(60));
/// assert_eq!(outcome.update, None);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "whoever runs handlers makes it")]
pub struct Outcome {
    /// How the handler ended.
    pub verdict: Verdict,
    /// A change of the object to be written, however the handler ended; it counts as part of the pass.
    pub update: Option<Update>,
}

/// How a handler ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "whoever runs handlers must know what it may say")]
pub enum Verdict {
    /// All is as it should be.
    Done {
        /// When to look again, without an event.
        requeue_after: Option<Duration>,
    },
    /// Something that takes its time is not ready yet. That is no failure, and delays do not grow by it.
    Waiting {
        /// Why, for programs: a word in CamelCase.
        reason: String,
        /// Why, for people.
        message: String,
        /// When to look again, without an event; [`Outcome::WAIT`] if it does not say, or says at once.
        after: Option<Duration>,
    },
    /// The handler failed: the key is retried, with a delay that grows from failure to failure.
    Failed {
        /// What the handler says.
        message: String,
        /// How long a server asked it to wait.
        retry_after: Option<Duration>,
    },
    /// The handler failed in a way that a retry cannot mend: nothing happens until the next event.
    Terminal {
        /// What the handler says.
        message: String,
    },
    /// The handler panicked, which is a failure like others.
    Panicked {
        /// What the panic says.
        message: String,
    },
    /// A write of the handler met a newer version of an object: it is to start over soon, and nothing is wrong.
    Conflict,
    /// There is no object of that key any more, so that the handler had nothing to do.
    Gone,
    /// The handler was stopped before its end.
    Cancelled,
}

impl Outcome {
    /// How long a handler waits that does not say how long.
    pub const WAIT: Duration = Duration::from_secs(30);

    /// The handler ended in this way, and wants nothing written.
    pub const fn new(verdict: Verdict) -> Self {
        Self { verdict, update: None }
    }

    /// All is as it should be.
    pub const fn done() -> Self {
        Self::new(Verdict::Done { requeue_after: None })
    }

    /// Something is not ready yet.
    pub fn waiting(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Verdict::Waiting { reason: reason.into(), message: message.into(), after: None })
    }

    /// The handler failed and is to be retried.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Verdict::Failed { message: message.into(), retry_after: None })
    }

    /// The handler failed in a way that a retry cannot mend.
    pub fn terminal(message: impl Into<String>) -> Self {
        Self::new(Verdict::Terminal { message: message.into() })
    }

    /// The handler panicked.
    pub fn panicked(message: impl Into<String>) -> Self {
        Self::new(Verdict::Panicked { message: message.into() })
    }

    /// When to look again, or to try again, without an event; of a failure it is the shortest delay. Nothing to
    /// the other verdicts.
    #[must_use]
    pub fn requeue_after(mut self, delay: Duration) -> Self {
        if let Verdict::Done { requeue_after: after }
        | Verdict::Waiting { after, .. }
        | Verdict::Failed { retry_after: after, .. } = &mut self.verdict
        {
            *after = Some(delay);
        }
        self
    }

    /// The same, with a change to be written.
    #[must_use]
    pub fn with_update(self, update: Update) -> Self {
        Self { update: Some(update), ..self }
    }

    /// The same, with the change from `old`, an object as the API server returned it, to `new`.
    #[must_use]
    pub fn with_change(self, old: Value, new: Value) -> Self {
        self.with_update(Update::new(old, new))
    }
}

/// How a pass ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PassResult {
    /// The handler is content, and what it changed is written.
    Succeeded {
        /// When it wants to look again.
        requeue_after: Option<Duration>,
    },
    /// The handler waits for something, and what it changed is written.
    Waiting {
        /// Why, for programs.
        reason: String,
        /// Why, for people.
        message: String,
        /// When it wants to look again.
        after: Duration,
    },
    /// There is no such object any more.
    Gone,
    /// The object has changed meanwhile: the pass is to start over from its new state.
    Conflict,
    /// The pass failed.
    Failed(PassError),
    /// The pass was told to stop.
    Cancelled,
}

/// Why a pass failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PassError {
    /// The handler failed.
    #[error("{message}")]
    Handler {
        /// What the handler says.
        message: String,
        /// How long a server asked it to wait.
        retry_after: Option<Duration>,
    },
    /// The handler failed in a way that a retry cannot mend.
    #[error("{message}")]
    Terminal {
        /// What the handler says.
        message: String,
    },
    /// The handler panicked.
    #[error("the handler panicked: {message}")]
    Panicked {
        /// What the panic says.
        message: String,
    },
    /// The handler, with the writing of what it changed, took longer than it may.
    #[error("the pass did not end within {0:?}")]
    TimedOut(Duration),
    /// What the handler changed cannot be written as a patch of the object it was given.
    #[error("the change of the object cannot be written: {0}")]
    Change(#[from] PatchError),
    /// The API server did not take what the handler changed.
    #[error("the change of the object was not written: {0}")]
    Write(#[from] Error),
}

/// What becomes of a key after a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a queue must do all of them")]
pub enum Next {
    /// Its failures are forgotten, and it waits for an event.
    Forget,
    /// Its failures are forgotten, and it comes again after this delay.
    Requeue(Duration),
    /// It comes again after a delay that grows from failure to failure, and is no shorter than this.
    Retry(Option<Duration>),
}

impl PassResult {
    /// What becomes of the key.
    pub fn next(&self) -> Next {
        match self {
            Self::Succeeded { requeue_after: None } | Self::Gone | Self::Failed(PassError::Terminal { .. }) => {
                Next::Forget
            }
            Self::Succeeded { requeue_after: Some(after) } | Self::Waiting { after, .. } => Next::Requeue(*after),
            Self::Failed(PassError::Handler { retry_after, .. }) => Next::Retry(*retry_after),
            Self::Failed(PassError::Write(error)) => Next::Retry(error.retry_after()),
            Self::Failed(_) | Self::Conflict | Self::Cancelled => Next::Retry(None),
        }
    }
}

/// What the verdict alone makes of the pass, when all is written.
impl From<Verdict> for PassResult {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Done { requeue_after } => Self::Succeeded { requeue_after },
            Verdict::Waiting { reason, message, after } => {
                let after = after.filter(|after| !after.is_zero()).unwrap_or(Outcome::WAIT);
                Self::Waiting { reason, message, after }
            }
            Verdict::Failed { message, retry_after } => Self::Failed(PassError::Handler { message, retry_after }),
            Verdict::Terminal { message } => Self::Failed(PassError::Terminal { message }),
            Verdict::Panicked { message } => Self::Failed(PassError::Panicked { message }),
            Verdict::Conflict => Self::Conflict,
            Verdict::Gone => Self::Gone,
            Verdict::Cancelled => Self::Cancelled,
        }
    }
}
