//! What handlers return.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use cloudcoil_core::error::chain;
use cloudcoil_core::{Error, Outcome, Resource, Verdict};

/// Why a pass ends before its work is done: a failure to be retried, one that a retry cannot mend, or something to wait for.
///
/// Every error turns into one by `?` and is retried, with a delay that grows from failure to failure. A write that met a newer
/// version of its object starts over without being counted as a failure.
///
/// ```
/// use std::time::Duration;
/// use cloudcoil_runtime::{Stop, Wait};
///
/// fn size(text: &str) -> Result<u32, Stop> {
///     if text.is_empty() {
///         return Err(Wait::new("NoSize").after(Duration::from_secs(10)).into());
///     }
///     Ok(text.parse()?)
/// }
/// assert!(size("").is_err() && size("x").is_err());
/// ```
pub struct Stop(Verdict);

impl Stop {
    /// A failure that a retry cannot mend: nothing happens to the object until its next event.
    pub fn terminal(error: impl fmt::Display) -> Self {
        Self(Verdict::Terminal { message: error.to_string() })
    }

    /// A failure to be retried, no sooner than after `delay`.
    pub fn retry_after(error: impl fmt::Display, delay: Duration) -> Self {
        Self(Verdict::Failed { message: error.to_string(), retry_after: Some(delay) })
    }

    /// A failure to be retried.
    pub fn failed(error: impl fmt::Display) -> Self {
        Self(Verdict::Failed { message: error.to_string(), retry_after: None })
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for Stop {
    fn from(error: E) -> Self {
        let known = (&error as &(dyn StdError + 'static)).downcast_ref::<Error>();
        match known {
            Some(error) if error.is_conflict() => Self(Verdict::Conflict),
            known => {
                let retry_after = known.and_then(Error::retry_after);
                Self(Verdict::Failed { message: chain(&error), retry_after })
            }
        }
    }
}

impl From<Wait> for Stop {
    fn from(Wait { reason, message, after }: Wait) -> Self {
        Self(Verdict::Waiting { reason, message, after })
    }
}

impl From<Stop> for Outcome {
    fn from(Stop(verdict): Stop) -> Self {
        Self::new(verdict)
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Verdict::Failed { message, .. } | Verdict::Terminal { message } => f.write_str(message),
            Verdict::Waiting { reason, message, .. } if message.is_empty() => write!(f, "waiting: {reason}"),
            Verdict::Waiting { reason, message, .. } => write!(f, "waiting: {message} ({reason})"),
            Verdict::Conflict => f.write_str("the object has changed meanwhile"),
            verdict => write!(f, "{verdict:?}"),
        }
    }
}

/// Something that takes its time is not ready yet: the pass ends without being a failure, and comes again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "return it as an error"]
pub struct Wait {
    reason: String,
    message: String,
    after: Option<Duration>,
}

impl Wait {
    /// Waits for something; `reason` is a word in CamelCase for programs. Looks again after 30 seconds unless told otherwise,
    /// or sooner when something changes that the controller watches.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: String::new(), after: None }
    }

    /// When to look again.
    pub fn after(self, delay: Duration) -> Self {
        Self { after: Some(delay), ..self }
    }

    /// Why, for people.
    pub fn message(self, message: impl Into<String>) -> Self {
        Self { message: message.into(), ..self }
    }
}

/// What happens after a pass that went well.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "return it"]
pub struct Action(Option<Duration>);

impl Action {
    /// Nothing, until something changes.
    pub const fn await_change() -> Self {
        Self(None)
    }

    /// Look again after a while, or sooner when something changes.
    pub const fn requeue_after(delay: Duration) -> Self {
        Self(Some(delay))
    }
}

/// What a handler may return when it went well: nothing, an [`Action`], the object with changes, or that if there are
/// any, and both.
///
/// `Form` tells these apart for the compiler; it is never named.
pub trait IntoOutcome<K, Form> {
    /// The object as it should be, if it was changed, and what happens next.
    fn into_parts(self) -> (Option<K>, Action);
}

/// The forms of [`IntoOutcome`].
pub mod form {
    /// `()`
    #[derive(Debug)]
    #[expect(clippy::exhaustive_structs, reason = "it is never made")]
    pub struct Nothing;
    /// An object.
    #[derive(Debug)]
    #[expect(clippy::exhaustive_structs, reason = "it is never made")]
    pub struct Object;
    /// An object or none, alone or with an action.
    #[derive(Debug)]
    #[expect(clippy::exhaustive_structs, reason = "it is never made")]
    pub struct Mixed;
}

impl<K> IntoOutcome<K, form::Nothing> for () {
    fn into_parts(self) -> (Option<K>, Action) {
        (None, Action::await_change())
    }
}

impl<K> IntoOutcome<K, form::Nothing> for Action {
    fn into_parts(self) -> (Option<K>, Action) {
        (None, self)
    }
}

impl<K: Resource> IntoOutcome<K, form::Object> for K {
    fn into_parts(self) -> (Option<Self>, Action) {
        (Some(self), Action::await_change())
    }
}

impl<K> IntoOutcome<K, form::Mixed> for Option<K> {
    fn into_parts(self) -> (Self, Action) {
        (self, Action::await_change())
    }
}

impl<K> IntoOutcome<K, form::Mixed> for (K, Action) {
    fn into_parts(self) -> (Option<K>, Action) {
        (Some(self.0), self.1)
    }
}

impl<K> IntoOutcome<K, form::Mixed> for (Option<K>, Action) {
    fn into_parts(self) -> (Option<K>, Action) {
        self
    }
}

impl From<Action> for Outcome {
    fn from(Action(after): Action) -> Self {
        Self::new(Verdict::Done { requeue_after: after })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloudcoil_core::Status;
    use k8s_openapi::api::core::v1::Pod;

    fn verdict(stop: impl Into<Stop>) -> Verdict {
        Outcome::from(stop.into()).verdict
    }

    #[test]
    fn errors_are_retried_and_a_conflict_starts_over() {
        let failed = verdict("x".parse::<u32>().unwrap_err());
        assert!(matches!(failed, Verdict::Failed { message, retry_after: None } if message.contains("invalid digit")));
        let conflict = Status::failure(409, "Conflict", "changed");
        assert_eq!(verdict(Error::from(conflict)), Verdict::Conflict);
        let mut busy = Status::failure(429, "TooManyRequests", "busy");
        busy.details.retry_after_seconds = 3;
        let Verdict::Failed { retry_after, .. } = verdict(Error::from(busy)) else { panic!() };
        assert_eq!(retry_after, Some(Duration::from_secs(3)));
        assert!(matches!(verdict(Stop::terminal("no")), Verdict::Terminal { .. }));
    }

    #[test]
    fn handlers_may_return_in_several_forms() {
        fn parts<R: IntoOutcome<Pod, F>, F>(returned: R) -> (bool, Action) {
            let (object, action) = returned.into_parts();
            (object.is_some(), action)
        }
        let later = || Action::requeue_after(Duration::from_secs(1));
        assert_eq!(parts(()), (false, Action::await_change()));
        assert_eq!(parts(later()), (false, later()));
        assert_eq!(parts(Pod::default()), (true, Action::await_change()));
        assert_eq!(parts(None), (false, Action::await_change()));
        assert_eq!(parts((Pod::default(), later())), (true, later()));
        assert_eq!(parts((None, later())), (false, later()));
    }
}
