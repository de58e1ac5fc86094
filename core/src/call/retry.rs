//! Which requests are sent again, and when.

use std::time::Duration;

use http::{Method, StatusCode, header};
use serde::Deserialize;

use super::retry_after::retry_after_at;
use crate::backoff::{Backoff, BackoffPolicy};
use crate::error::{BodyProblem, Error, NetworkError, NetworkErrorKind};
use crate::exchange::{Answer, HttpRequest};
use crate::response;
use crate::time::UnixTime;

/// How often a request is sent again, and after which waits.
///
/// Whether it may be at all is not a matter of policy. A write is never sent again when the first one may have been done: the
/// object could be made twice, or an object that others have deleted meanwhile could come back, or the answer would be about
/// the wrong attempt (`AlreadyExists` or `Conflict` for a write that was done, `NotFound` for a deletion that was).
///
/// | what came of it | reads ¹ | writes |
/// |---|---|---|
/// | no connection, or one that ended in the TLS handshake | again | again: nothing was sent |
/// | a request that the server says it has not taken up, as when it shuts down ³ | again | again: it was not looked at |
/// | a certificate that is not accepted ⁴, a request that cannot be sent | an error at once | an error at once |
/// | the connection was lost, or what came was no HTTP | again | an error at once: it may have been done |
/// | 2xx with a JSON body that is empty or cut short | again | the answer |
/// | 429 with `Retry-After` ² | again | again: it was refused before it was looked at |
/// | 429 without | again | the answer |
/// | 429 to an eviction, from the disruption budget | | the answer, even with `Retry-After` |
/// | 503 with `Retry-After` ² | again | again: the server says that it has not taken it up |
/// | 503 without, as web pages of load balancers are | again | the answer: it may have been done |
/// | 408, 502, 504 | again | the answer: it may have been done |
/// | 500 with `Retry-After` ² or reason `ServerTimeout` | again | the answer: it may have been done |
/// | other 500, 501, and all other 3xx, 4xx (409 too) | the answer | the answer |
///
/// ¹ `GET`, `HEAD`, `OPTIONS`; and writes that store nothing: dry runs, and reviews of `authentication.k8s.io` and
/// `authorization.k8s.io`.
/// ² In seconds or as a date; in the header, or `details.retryAfterSeconds` of the `Status`. What cannot be read counts as
/// absent.
/// ³ Over HTTP/2 by `GOAWAY` or `REFUSED_STREAM`. Below all this it was sent once more at once, as
/// [`Outgoing::is_unprocessed`](crate::Outgoing::is_unprocessed) says, which does not count.
/// ⁴ Once its files, and those of the authority, have been found to be [the same](crate::credentials::Credentials).
///
/// A wait is that of [`backoff`](Self::backoff), or what the server asks for if that is longer, but never more than
/// [`longest_wait`](Self::longest_wait). If it does not end before the time limit of the whole call, there is none: the call
/// ends at once with what came of the last attempt.
///
/// See <https://kubernetes.io/docs/reference/using-api/api-concepts/> and, for evictions,
/// <https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/>.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made with struct update syntax")]
pub struct RetryPolicy {
    /// How many times a request is sent again at the most.
    pub retries: u32,
    /// How long to wait where the server does not say.
    pub backoff: BackoffPolicy,
    /// The longest wait that is granted to a server that asks for one.
    pub longest_wait: Duration,
}

impl RetryPolicy {
    /// Every request is sent once.
    pub const OFF: Self = Self { retries: 0, ..Self::DEFAULT };

    /// 5 times, after 0.25 s doubling to 5 s, ±20 %; a server may ask for up to a minute.
    pub const DEFAULT: Self = Self {
        retries: 5,
        backoff: BackoffPolicy { first: Duration::from_millis(250), cap: Duration::from_secs(5), jitter: 20 },
        longest_wait: Duration::from_secs(60),
    };

    /// The same, sent again so many times at the most.
    #[must_use]
    pub const fn with_retries(self, retries: u32) -> Self {
        Self { retries, ..self }
    }

    /// How long to wait after one more failure. What the server asks for is stretched by up to a tenth: it tells all who ask
    /// at once the same.
    pub(super) fn wait(&self, asked: Option<Duration>, backoff: &mut Backoff) -> Duration {
        let own = backoff.fail();
        let Some(asked) = asked.map(|asked| asked.min(self.longest_wait)) else { return own };
        let spread = u64::try_from(asked.as_nanos() / 10).unwrap_or(u64::MAX);
        own.max(asked.saturating_add(Duration::from_nanos(backoff.random().below(spread))))
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// An attempt that failed, to be followed by another.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retry {
    /// Which attempt failed, counting from 1.
    pub attempt: u32,
    /// Why.
    pub cause: Error,
    /// How long the next attempt waits.
    pub after: Duration,
}

/// Why a request is to be sent again, and after how long by the server's wish; `None` if what came of it is the answer.
pub(super) fn reason(
    request: &HttpRequest,
    ended: Result<&Answer, &NetworkError>,
    wall: UnixTime,
) -> Option<(Error, Option<Duration>)> {
    let answer = match ended {
        Err(error) => return may_repeat(request, error.kind).then(|| (error.clone().into(), None)),
        Ok(answer) => answer,
    };
    let Err(error) = response::check(answer) else {
        let problem = cut_short(answer).filter(|_| stores_nothing(request))?;
        return Some((response::body_error(answer, problem), None));
    };
    let asked = retry_after_at(&answer.headers, wall).or_else(|| error.retry_after());
    let again = match answer.status.as_u16() {
        429 if is_budget(request, &error) => false,
        429 | 503 => asked.is_some() || stores_nothing(request),
        408 | 502 | 504 => stores_nothing(request),
        500 => (asked.is_some() || is_server_timeout(&error)) && stores_nothing(request),
        _ => false,
    };
    again.then_some((error, asked))
}

fn may_repeat(request: &HttpRequest, kind: NetworkErrorKind) -> bool {
    match kind {
        NetworkErrorKind::Connect | NetworkErrorKind::Unprocessed => true,
        NetworkErrorKind::Lost | NetworkErrorKind::Protocol => stores_nothing(request),
        NetworkErrorKind::Tls | NetworkErrorKind::Request | NetworkErrorKind::Credentials => false,
    }
}

/// Whether the server is the same after the request, however often it is sent.
fn stores_nothing(request: &HttpRequest) -> bool {
    let (method, uri) = (request.inner().method(), request.inner().uri());
    let is_dry_run = || match *method {
        Method::DELETE if !request.inner().body().is_empty() => is_dry_deletion(request.inner().body()),
        _ => uri.query().is_some_and(|query| query.split('&').any(|pair| pair == "dryRun=All")),
    };
    let is_review = || REVIEWS.iter().any(|root| uri.path().starts_with(root));
    match *method {
        Method::GET | Method::HEAD | Method::OPTIONS => true,
        Method::POST => is_dry_run() || is_review(),
        _ => is_dry_run(),
    }
}

/// A deletion has its options in its body.
fn is_dry_deletion(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Options {
        #[serde(default, rename = "dryRun")]
        dry_run: Vec<String>,
    }
    serde_json::from_slice(body).is_ok_and(|Options { dry_run }| dry_run == ["All"])
}

/// Whether a 429 is the answer to an eviction: that a disruption budget does not allow it now. One without an account
/// comes from the server's door, as it does for other requests.
fn is_budget(request: &HttpRequest, error: &Error) -> bool {
    let Some(status) = error.status() else { return false };
    request.inner().uri().path().ends_with("/eviction")
        || status.details.causes.iter().any(|cause| cause.reason == "DisruptionBudget")
}

fn is_server_timeout(error: &Error) -> bool {
    error.status().is_some_and(|status| status.reason == "ServerTimeout")
}

/// What a JSON body lacks, by its last byte: whether it is sound in between is for whoever decodes it.
fn cut_short(answer: &Answer) -> Option<BodyProblem> {
    let may_be_empty = matches!(answer.status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT);
    let content_type = answer.headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let is_json = content_type.split(';').next().is_some_and(|mime| mime.trim() == "application/json");
    let body = answer.body.trim_ascii();
    match (body.first(), body.last()) {
        _ if !is_json || may_be_empty => None,
        (None, _) => Some(BodyProblem::Empty),
        (Some(b'{'), Some(last)) if *last != b'}' => Some(BodyProblem::Truncated),
        _ => None,
    }
}

/// The groups whose objects are questions: creating one stores nothing.
const REVIEWS: [&str; 2] = ["/apis/authentication.k8s.io/", "/apis/authorization.k8s.io/"];
