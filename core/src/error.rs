//! What can go wrong, by who is at fault.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use thiserror::Error;

use crate::config::{ConfigError, Proxy};
use crate::credentials::CredentialsError;
use crate::discovery::NotServed;
use crate::status::Status;

/// A failure of a request, a stream or a call: whose fault it is, and what it is about.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The API server refused: its own account.
    #[error("{0}")]
    Api(Box<Status>),
    /// Something between here and the API server answered in the API server's place, or cut its answer short.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// The network failed.
    #[error(transparent)]
    Network(NetworkError),
    /// The program that fetches credentials failed, so nothing was sent.
    #[error(transparent)]
    Credentials(Box<CredentialsError>),
    /// An object does not fit the type it was asked as.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// There is no configuration to reach a cluster with, or it cannot be used.
    #[error(transparent)]
    Config(Box<ConfigError>),
    /// Something that should run for ever has come to an end that nobody asked for: what, and why.
    #[error("{0}")]
    Stopped(Box<str>),
    /// The server has no type of this name, as far as could be found out.
    #[error(transparent)]
    NotServed(Box<NotServed>),
    /// The time given for the call ran out.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// The caller gave the call up.
    #[error("the call was cancelled")]
    Cancelled,
    /// The caller asked for what cannot be: to be mended in the program, never caused by what a server sends.
    #[error("{0}")]
    Misuse(Box<str>),
}

impl Error {
    pub(crate) fn misuse(message: impl Into<Box<str>>) -> Self {
        Self::Misuse(message.into())
    }

    /// The HTTP code of the answer, if there was one.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Api(status) => Some(status.code).filter(|code| *code != 0),
            Self::Body(error) => Some(error.code),
            _ => None,
        }
    }

    /// The API server's account of the failure, if it gave one.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Api(status) => Some(status),
            _ => None,
        }
    }

    /// Whether the object, or the path, does not exist.
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404) || self.status().is_some_and(Status::is_not_found)
    }

    /// Whether a write was refused because the object has changed meanwhile.
    pub fn is_conflict(&self) -> bool {
        self.status().is_some_and(Status::is_conflict)
    }

    /// Whether the guards of a JSON patch did not hold, or the server met another write on its own way: read again, and
    /// make the patch anew.
    ///
    /// The API server answers 422 to a JSON patch that cannot be applied, and names neither the object nor a field then,
    /// as it does when the object would be invalid; what a webhook says carries the webhook's name.
    pub fn is_failed_guard(&self) -> bool {
        self.is_conflict()
            || self.status().is_some_and(|status| {
                let details = &status.details;
                status.code == 422
                    && details.name.is_empty()
                    && details.kind.is_empty()
                    && details.causes.is_empty()
                    && !status.message.contains("admission webhook")
            })
    }

    /// Whether an object of that name exists already.
    pub fn is_already_exists(&self) -> bool {
        self.status().is_some_and(Status::is_already_exists)
    }

    /// Whether a resource version or continue token is too old: list anew.
    pub fn is_expired(&self) -> bool {
        self.code() == Some(410) || self.status().is_some_and(Status::is_expired)
    }

    /// Whether the server has not seen the asked resource version yet.
    pub fn is_resource_version_too_large(&self) -> bool {
        self.status().is_some_and(Status::is_resource_version_too_large)
    }

    /// How long the server asks to wait before the request is sent again.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Api(status) => status.retry_after(),
            Self::Body(error) => error.retry_after,
            _ => None,
        }
    }

    /// Whether the same request cannot succeed later: a client error other than 408, 410 and 429, a misuse,
    /// or no configuration.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Misuse(_) | Self::Config(_) => true,
            _ => self.code().is_some_and(|code| (400..500).contains(&code) && !matches!(code, 408 | 410 | 429)),
        }
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        Self::Api(Box::new(status))
    }
}

impl From<NetworkError> for Error {
    fn from(error: NetworkError) -> Self {
        match error.credentials {
            Some(credentials) => Self::Credentials(credentials),
            None => Self::Network(error),
        }
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        Self::Config(Box::new(error))
    }
}

/// An answer whose body is not what the API server sends: HTML from a proxy, nothing, half of something.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("HTTP {code} with {problem}{}", Quoted(snippet))]
#[non_exhaustive]
pub struct BodyError {
    /// The HTTP code of the answer.
    pub code: u16,
    /// What is wrong with the body.
    pub problem: BodyProblem,
    /// The beginning of the body, at most [`BodyError::SNIPPET`] characters, control characters replaced.
    pub snippet: Box<str>,
    /// What the answer's `Retry-After` header says.
    pub retry_after: Option<Duration>,
}

impl BodyError {
    /// How many characters of a body an error shows at the most.
    pub const SNIPPET: usize = 200;

    pub(crate) fn new(code: u16, problem: BodyProblem, body: &[u8], retry_after: Option<Duration>) -> Self {
        let bytes = &body[..body.len().min(4 * Self::SNIPPET)];
        let text = String::from_utf8_lossy(bytes);
        let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
        let snippet = plain.take(Self::SNIPPET).collect::<String>().into();
        Self { code, problem, snippet, retry_after }
    }
}

/// What is wrong with a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BodyProblem {
    /// There is none.
    #[error("an empty body")]
    Empty,
    /// It is a web page.
    #[error("an HTML page")]
    Html,
    /// It ends in the middle.
    #[error("a truncated body")]
    Truncated,
    /// Its bytes are no UTF-8.
    #[error("a body that is not UTF-8")]
    NotUtf8,
    /// It is text, but no JSON, or JSON of another shape.
    #[error("a body that is not a Kubernetes object")]
    NotJson,
    /// It is longer than the limit, which the variant holds in bytes.
    #[error("a body of more than {0} bytes")]
    TooLarge(usize),
}

struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": {:?}", self.0) }
    }
}

/// An error and what is behind it, without saying the same twice.
pub fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let more = error.to_string();
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
        next = error.source();
    }
    text
}

/// What is behind all else that is behind an error, or the error itself.
///
/// An error inside of an I/O error is not among its sources, and needs not be: the one says what the other does.
pub fn root<'a>(error: &'a (dyn StdError + 'static)) -> &'a (dyn StdError + 'static) {
    let mut root = error;
    while let Some(error) = root.source() {
        root = error;
    }
    root
}

/// The network's failure to carry a request or an answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}{kind}: {message}{}", Of(server.as_deref()), Attempts(*attempts))]
#[non_exhaustive]
pub struct NetworkError {
    /// At which point it failed.
    pub kind: NetworkErrorKind,
    /// What the transport says.
    pub message: Box<str>,
    /// How many times the request was tried; this is the failure of the last.
    pub attempts: u32,
    /// Which server could not be reached, or was lost: its host and port, such as `10.0.0.1:6443`, and the proxy on the way to it
    /// unless that is what failed, and named in the message.
    pub server: Option<Box<str>>,
    is_proxys: bool,
    /// What it is about, when it is no failure of the network at all.
    credentials: Option<Box<CredentialsError>>,
}

impl NetworkError {
    /// A failure at `kind`, as the transport words it.
    pub fn new(kind: NetworkErrorKind, message: impl Into<Box<str>>) -> Self {
        Self { kind, message: message.into(), attempts: 1, server: None, is_proxys: false, credentials: None }
    }

    /// The same, as that of a proxy, which the message names then, without a word about its user.
    ///
    /// ```
    /// use cloudcoil_core::config::Proxy;
    /// use cloudcoil_core::{NetworkError, NetworkErrorKind};
    ///
    /// let proxy = Proxy::parse("http://me:secret@px:3128").unwrap();
    /// let error = NetworkError::new(NetworkErrorKind::Connect, "connection refused").at_proxy(&proxy);
    /// assert_eq!(error.to_string(), "cannot connect: the proxy http://px:3128: connection refused");
    /// ```
    #[must_use]
    pub fn at_proxy(self, proxy: &Proxy) -> Self {
        Self { message: format!("the proxy {proxy}: {}", self.message).into(), is_proxys: true, ..self }
    }

    /// Whether it is a proxy that failed, and not the server behind it.
    pub(crate) const fn is_proxys(&self) -> bool {
        self.is_proxys
    }

    /// The same, as that of the last of so many attempts.
    pub(crate) fn after(self, attempts: u32) -> Self {
        Self { attempts, ..self }
    }

    /// The same, as that of the way to a server.
    pub(crate) fn of(self, server: Box<str>) -> Self {
        Self { server: Some(server), ..self }
    }

    /// An exchange that ended in order, and answered nothing.
    pub(crate) fn no_answer() -> Self {
        Self::new(NetworkErrorKind::Protocol, "the exchange ended before the head of an answer")
    }
}

struct Of<'a>(Option<&'a str>);

impl fmt::Display for Of<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |server| write!(f, "{server}: "))
    }
}

struct Attempts(u32);

impl fmt::Display for Attempts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 2 { Ok(()) } else { write!(f, " ({} attempts)", self.0) }
    }
}

impl From<CredentialsError> for NetworkError {
    fn from(error: CredentialsError) -> Self {
        let credentials = Some(Box::new(error.clone()));
        Self { credentials, ..Self::new(NetworkErrorKind::Credentials, error.to_string()) }
    }
}

/// At which point the network failed: it tells whether a request can have reached the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NetworkErrorKind {
    /// No connection was made: the request was not sent.
    #[error("cannot connect")]
    Connect,
    /// The TLS handshake failed: the request was not sent.
    #[error("TLS handshake failed")]
    Tls,
    /// The request was not taken up: the server says so, as it does when it shuts down, or the connection closed before the
    /// request was sent. So it can be sent again, whatever it asks for
    /// ([RFC 9113, section 8.7](https://www.rfc-editor.org/rfc/rfc9113#section-8.7)).
    #[error("request not taken up")]
    Unprocessed,
    /// The connection broke after the request may have been sent.
    #[error("connection lost")]
    Lost,
    /// The other side does not speak HTTP as it should.
    #[error("malformed HTTP")]
    Protocol,
    /// The request cannot be sent as it is.
    #[error("cannot send")]
    Request,
    /// There are no credentials that it could be sent with: it was not sent.
    #[error("no credentials")]
    Credentials,
}

/// An object that does not fit its type: which, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{object}: {}{message}", At(path))]
#[non_exhaustive]
pub struct DecodeError {
    /// The kind, namespace and name as far as they could be read, such as `Widget ns/a`.
    pub object: Box<str>,
    /// The path of the field at fault, such as `spec.items[2].price`; empty when it is the whole object.
    pub path: Box<str>,
    /// What does not fit.
    pub message: Box<str>,
}

struct At<'a>(&'a str);

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "{}: ", self.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snippet_is_bounded_and_free_of_control_characters() {
        let body = "\u{1b}[31m<html>\n".to_owned() + &"é".repeat(10_000);
        let error = BodyError::new(503, BodyProblem::Html, body.as_bytes(), None);
        assert_eq!(error.snippet.chars().count(), BodyError::SNIPPET);
        assert!(!error.snippet.chars().any(char::is_control));
        assert!(error.to_string().starts_with("HTTP 503 with an HTML page: \" [31m<html> "));
    }

    #[test]
    fn timeouts_expiry_and_overload_are_not_permanent() {
        let permanent = |code| Error::from(Status::failure(code, "", "")).is_permanent();
        assert!([400, 401, 403, 404, 405, 409, 422].into_iter().all(permanent));
        assert!(![408, 410, 429, 500, 503, 504].into_iter().any(permanent));
    }
}
