//! From the bytes of an answer to a typed value or a typed error.

use std::borrow::Cow;
use std::str::Utf8Error;
use std::time::Duration;

use http::HeaderMap;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use crate::call;
use crate::error::{BodyError, BodyProblem, DecodeError, Error};
use crate::exchange::Answer;
use crate::status::Status;

/// The value an answer carries.
///
/// # Errors
/// [`Error::Api`] when the API server refused, [`Error::Body`] when the body is not the API server's (HTML, empty,
/// truncated, not UTF-8, no object), [`Error::Decode`] when the object does not fit `T`.
pub fn decode<T: DeserializeOwned>(answer: &Answer) -> Result<T, Error> {
    decode_borrowed(answer)
}

/// As [`decode`], for a value that borrows from the answer.
pub(crate) fn decode_borrowed<'a, T: Deserialize<'a>>(answer: &'a Answer) -> Result<T, Error> {
    check(answer)?;
    let text = str::from_utf8(&answer.body).map_err(|error| not_json(answer, no_text(error)))?;
    if is_failure(text) {
        return Err(failure(answer));
    }
    serde_json::from_str(text).map_err(|error| match error.classify() {
        Category::Data if text.trim_start().starts_with('{') => Error::Decode(fault_of::<T>(text, "object")),
        Category::Eof => not_json(answer, BodyProblem::Truncated),
        _ => not_json(answer, BodyProblem::NotJson),
    })
}

/// Whether a success carries a [`Status`], as it may where an object could come too.
///
/// # Errors
/// As [`decode`].
pub fn is_status(answer: &Answer) -> Result<bool, Error> {
    #[derive(Deserialize)]
    struct Typed<'a> {
        #[serde(borrow)]
        kind: Option<Cow<'a, str>>,
    }
    let Typed { kind } = decode_borrowed(answer)?;
    Ok(kind.as_deref() == Some("Status"))
}

/// Whether an answer is a success; its body is not looked at when it is.
///
/// # Errors
/// As [`decode`], but for what a successful body holds.
pub fn check(answer: &Answer) -> Result<(), Error> {
    if let Some(limit) = answer.over_limit() {
        return Err(body_error(answer, BodyProblem::TooLarge(limit)));
    }
    if answer.status.is_success() { Ok(()) } else { Err(failure(answer)) }
}

/// What `Retry-After` asks for: seconds, or a date, which counts from the `Date` of the same answer. What cannot be read, as
/// a negative number, is as if it were not there.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    call::retry_after(headers)
}

/// An object of type `T` from its JSON text.
///
/// # Errors
/// A [`DecodeError`] that names the object and the field that does not fit.
pub fn decode_object<T: DeserializeOwned>(json: &str) -> Result<T, DecodeError> {
    decode_item(json, "object")
}

/// As [`decode_object`]; `kind` is what an error calls an object that does not name its own.
pub(crate) fn decode_item<T: DeserializeOwned>(json: &str, kind: &str) -> Result<T, DecodeError> {
    serde_json::from_str(json).map_err(|_| fault_of::<T>(json, if kind.is_empty() { "object" } else { kind }))
}

/// Why a text is no `T`. The path costs time to keep, so it is looked for only once there is something wrong.
fn fault_of<'a, T: Deserialize<'a>>(json: &'a str, kind: &str) -> DecodeError {
    let deserializer = &mut serde_json::Deserializer::from_str(json);
    let (path, message) = match serde_path_to_error::deserialize::<_, T>(deserializer) {
        Err(error) => (path_of(error.path()), error.inner().to_string()),
        Ok(_) => (String::new(), "trailing characters after the object".to_owned()),
    };
    DecodeError { object: name_of(json, kind), path: path.into(), message: message.into() }
}

fn path_of(path: &serde_path_to_error::Path) -> String {
    let text = path.to_string();
    if text == "." { String::new() } else { text }
}

/// Whether a successful answer carries a [`Status`] of a failure in place of what was asked for, as servers behind the API server
/// do.
fn is_failure(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Told<'a> {
        #[serde(borrow)]
        kind: Option<Cow<'a, str>>,
        #[serde(borrow)]
        status: Option<Cow<'a, str>>,
    }
    // Most bodies do not have the word, and need not be read twice.
    memchr::memmem::find(text.as_bytes(), b"\"Failure\"").is_some()
        && serde_json::from_str(text).is_ok_and(|Told { kind, status }| {
            kind.as_deref() == Some("Status") && status.as_deref() == Some("Failure")
        })
}

/// The error for an answer that says no.
fn failure(answer: &Answer) -> Error {
    match serde_json::from_slice::<MaybeStatus>(&answer.body) {
        Ok(MaybeStatus { kind: Some(kind), mut status }) if kind == "Status" => {
            if status.code == 0 {
                status.code = answer.status.as_u16();
            }
            if status.details.retry_after_seconds == 0 {
                let secs = retry_after(&answer.headers).map_or(0, |wait| wait.as_secs());
                status.details.retry_after_seconds = u32::try_from(secs).unwrap_or(u32::MAX);
            }
            status.into()
        }
        Err(error) => match str::from_utf8(&answer.body) {
            Err(error) => not_json(answer, no_text(error)),
            Ok(_) if error.is_eof() => not_json(answer, BodyProblem::Truncated),
            Ok(_) => not_json(answer, BodyProblem::NotJson),
        },
        Ok(_) => not_json(answer, BodyProblem::NotJson),
    }
}

/// What is wrong with a body that is no text: one that breaks off within a character may have been good so far.
fn no_text(error: Utf8Error) -> BodyProblem {
    if error.error_len().is_none() { BodyProblem::Truncated } else { BodyProblem::NotUtf8 }
}

#[derive(Deserialize)]
struct MaybeStatus {
    kind: Option<String>,
    #[serde(flatten)]
    status: Status,
}

/// The kind, namespace and name of an object, as far as they can be read.
fn name_of(json: &str, default_kind: &str) -> Box<str> {
    #[derive(Deserialize, Default)]
    struct Named {
        kind: Option<String>,
        #[serde(default)]
        metadata: Name,
    }
    #[derive(Deserialize, Default)]
    struct Name {
        name: Option<String>,
        namespace: Option<String>,
    }
    let Named { kind, metadata } = serde_json::from_str(json).unwrap_or_default();
    let kind = kind.unwrap_or_else(|| default_kind.to_owned());
    match (metadata.namespace, metadata.name) {
        (Some(namespace), Some(name)) => format!("{kind} {namespace}/{name}"),
        (None, Some(name)) => format!("{kind} {name}"),
        _ => kind,
    }
    .into()
}

/// The error for a body that is no JSON; what can be seen at its first byte goes before `problem`.
fn not_json(answer: &Answer, problem: BodyProblem) -> Error {
    body_error(answer, body_problem(&answer.body, problem))
}

/// What is wrong with a body that is no JSON: what can be seen at its first byte goes before `problem`.
pub(crate) fn body_problem(body: &[u8], problem: BodyProblem) -> BodyProblem {
    match body.trim_ascii_start().first() {
        None => BodyProblem::Empty,
        Some(b'<') => BodyProblem::Html,
        Some(_) => problem,
    }
}

pub(crate) fn body_error(answer: &Answer, problem: BodyProblem) -> Error {
    BodyError::new(answer.status.as_u16(), problem, &answer.body, retry_after(&answer.headers)).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Resource, Unstructured};
    use http::{StatusCode, header};
    use k8s_openapi::api::core::v1::Pod;

    fn answer(code: u16, body: &[u8]) -> Answer {
        let mut answer = Answer::new(StatusCode::from_u16(code).unwrap(), HeaderMap::new());
        answer.receive(body);
        answer
    }

    fn problem_of(code: u16, body: &[u8]) -> (u16, BodyProblem) {
        match decode::<Pod>(&answer(code, body)) {
            Err(Error::Body(error)) => (error.code, error.problem),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn bodies_that_are_not_the_api_servers_each_have_their_own_error() {
        for code in [200, 503] {
            assert_eq!(problem_of(code, b""), (code, BodyProblem::Empty));
            assert_eq!(problem_of(code, b" \n"), (code, BodyProblem::Empty));
            assert_eq!(problem_of(code, b"<html>Service Unavailable</html>"), (code, BodyProblem::Html));
            assert_eq!(problem_of(code, b"{\"kind\":\"Pod\",\"meta"), (code, BodyProblem::Truncated));
            assert_eq!(problem_of(code, b"{\"kind\":\"\xff\"}"), (code, BodyProblem::NotUtf8));
            assert_eq!(problem_of(code, b"{\"kind\":\"\xc3"), (code, BodyProblem::Truncated));
            assert_eq!(problem_of(code, b"upstream error"), (code, BodyProblem::NotJson));
            assert_eq!(problem_of(code, b"[1]"), (code, BodyProblem::NotJson));
        }
        assert_eq!(problem_of(502, b"{\"error\":\"bad gateway\"}"), (502, BodyProblem::NotJson));
    }

    #[test]
    fn a_refusal_keeps_the_code_of_the_answer_and_its_retry_after() {
        let mut answer = answer(429, br#"{"kind":"Status","message":"slow down"}"#);
        answer.headers.insert(header::RETRY_AFTER, "2".parse().unwrap());
        let error = decode::<Pod>(&answer).unwrap_err();
        assert_eq!((error.code(), error.retry_after()), (Some(429), Some(Duration::from_secs(2))));
    }

    #[test]
    fn an_object_that_does_not_fit_is_named() {
        let body =
            br#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"ns"},"spec":{"containers":3}}"#;
        match decode::<Pod>(&answer(200, body)) {
            Err(Error::Decode(error)) => assert_eq!((&*error.object, &*error.path), ("Pod ns/a", "spec.containers")),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_failure_in_place_of_an_object_is_a_refusal() {
        let body = br#"{"kind":"Status","status":"Failure","reason":"Forbidden","code":403,"message":"no"}"#;
        let error = decode::<Unstructured>(&answer(200, body)).unwrap_err();
        assert!(matches!(&error, Error::Api(status) if status.reason == "Forbidden"), "{error:?}");
        assert_eq!(error.code(), Some(403));
        for body in
            [&br#"{"kind":"Status","status":"Success"}"#[..], br#"{"kind":"Job","status":{"Failure":"Failure"}}"#]
        {
            assert!(decode::<Unstructured>(&answer(200, body)).is_ok());
        }
    }

    #[test]
    fn an_object_that_fits_is_decoded() {
        let pod: Pod = decode(&answer(201, br#"{"metadata":{"name":"a"}}"#)).unwrap();
        assert_eq!(pod.name(), "a");
    }

    #[test]
    fn a_body_over_the_limit_is_refused() {
        let mut answer = Answer::new(StatusCode::OK, HeaderMap::new()).limited(3);
        answer.receive(b"{\"a\":1}");
        assert!(matches!(decode::<Pod>(&answer), Err(Error::Body(error)) if error.problem == BodyProblem::TooLarge(3)));
    }
}
