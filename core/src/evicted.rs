//! What an eviction is answered with.

use std::time::Duration;

use crate::error::Error;
use crate::exchange::Answer;
use crate::response;
use crate::status::{Status, StatusCause};

/// What became of an eviction: the pod goes, or the cluster does not let it go now.
///
/// See <https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/>.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the API server answers with one of these")]
pub enum Evicted {
    /// The pod is being deleted.
    Accepted(Box<Status>),
    /// A disruption budget, or a server that is too busy, is against it for now.
    Refused(EvictionRefusal),
}

impl Evicted {
    /// What the answer to an eviction says.
    ///
    /// # Errors
    /// As [`response::decode`], but for 429, which is an answer.
    pub fn decode(answer: &Answer) -> Result<Self, Error> {
        match response::decode::<Status>(answer) {
            Ok(status) => Ok(Self::Accepted(Box::new(status))),
            Err(Error::Api(status)) if status.code == 429 => Ok(Self::Refused(EvictionRefusal { status })),
            Err(error) => Err(error),
        }
    }

    /// Whether the pod is being deleted.
    pub const fn is_accepted(&self) -> bool {
        matches!(self, Self::Accepted(_))
    }
}

/// Why a pod may not be evicted now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvictionRefusal {
    status: Box<Status>,
}

impl EvictionRefusal {
    /// The API server's own account.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// What a disruption budget has against it; `None` when it is something else, as a server that is too busy.
    pub fn disruption_budget(&self) -> Option<&StatusCause> {
        self.status.details.causes.iter().find(|cause| cause.reason == "DisruptionBudget")
    }

    /// How long the server asks to wait; it mostly leaves that to the caller.
    pub fn retry_after(&self) -> Option<Duration> {
        self.status.retry_after()
    }
}

impl std::fmt::Display for EvictionRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.disruption_budget() {
            Some(cause) if !cause.message.is_empty() => write!(f, "{}: {}", self.status.message, cause.message),
            _ => self.status.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, StatusCode};

    use super::*;

    fn answer(code: u16, body: &str) -> Answer {
        let mut answer = Answer::new(StatusCode::from_u16(code).unwrap(), HeaderMap::new());
        answer.receive(body.as_bytes());
        answer
    }

    #[test]
    fn a_budget_that_is_against_it_is_an_answer_with_its_cause() {
        let body = r#"{"kind":"Status","code":429,"reason":"TooManyRequests","message":"Cannot evict pod",
            "details":{"causes":[{"reason":"DisruptionBudget","message":"The budget web needs 2 healthy pods and has 2"}]}}"#;
        let Ok(Evicted::Refused(refusal)) = Evicted::decode(&answer(429, body)) else { panic!() };
        assert_eq!(refusal.disruption_budget().unwrap().message, "The budget web needs 2 healthy pods and has 2");
        assert_eq!(refusal.to_string(), "Cannot evict pod: The budget web needs 2 healthy pods and has 2");
        assert_eq!(refusal.retry_after(), None);
    }

    #[test]
    fn a_busy_server_is_an_answer_without_a_budget_and_other_failures_are_errors() {
        let busy = r#"{"kind":"Status","code":429,"details":{"retryAfterSeconds":3}}"#;
        let Ok(Evicted::Refused(refusal)) = Evicted::decode(&answer(429, busy)) else { panic!() };
        assert_eq!((refusal.disruption_budget(), refusal.retry_after()), (None, Some(Duration::from_secs(3))));
        assert!(Evicted::decode(&answer(404, r#"{"kind":"Status","code":404}"#)).unwrap_err().is_not_found());
        assert!(matches!(Evicted::decode(&answer(429, "<html>")), Err(Error::Body(_))));
        let success = answer(201, r#"{"kind":"Status","status":"Success","code":201}"#);
        assert!(Evicted::decode(&success).unwrap().is_accepted());
    }
}
