//! Requests from bytes. What two readers could understand in two ways is refused: see RFC 9112, section 11.2.

use std::borrow::Cow;

use bytes::{Buf as _, Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, HOST, TRANSFER_ENCODING};
use http::uri::{Authority, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};

use super::chunked::{self, Chunked};
use super::{content_length, has_token, head_end};

/// Takes apart the requests that come on one connection, one after the other.
///
/// One big chunk and one byte at a time give the same parts, but for where the data are cut.
///
/// ```
/// use cloudcoil_core::http1::{RequestDecoder, RequestPart};
///
/// let mut decoder = RequestDecoder::new(RequestDecoder::MAX_HEAD);
/// decoder.receive("POST /validate HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}GET".into());
/// let Some(RequestPart::Head(head)) = decoder.part()? else { panic!() };
/// assert_eq!((head.uri.path(), head.length), ("/validate", Some(2)));
/// assert_eq!(decoder.part()?, Some(RequestPart::Data("{}".into())));
/// assert_eq!(decoder.part()?, Some(RequestPart::End));
/// assert_eq!(decoder.part()?, None);
/// assert!(decoder.has_begun(), "there is more than a beginning of the next");
/// # Ok::<(), cloudcoil_core::http1::Refusal>(())
/// ```
#[derive(Debug)]
pub struct RequestDecoder {
    state: State,
    /// Bytes that were not looked at yet.
    input: Bytes,
    max_head: usize,
}

/// A part of a request, in order: a head, data, an end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "whoever reads a request must read all of these")]
pub enum RequestPart {
    /// The first line and the headers.
    Head(RequestHead),
    /// The next bytes of the body, never none.
    Data(Bytes),
    /// The request is whole. What comes next is another.
    End,
}

/// What comes before the body.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestHead {
    /// The method, which may be one that nobody knows.
    pub method: Method,
    /// The path and query, or `*`. If the request names the server there as well, that is in the header `Host` instead.
    pub uri: Uri,
    /// The headers.
    pub headers: HeaderMap,
    /// How long the body is, in bytes; `None` if it says so only as it comes.
    pub length: Option<u64>,
    /// The client sends no body before it has heard `100 Continue`, or waited long for it.
    pub expects_continue: bool,
    /// The client wants to send other requests on the same connection.
    pub keeps_alive: bool,
}

/// Why a request is not taken. Nothing that comes after it on its connection can be made sense of.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("{problem}")]
pub struct Refusal {
    /// What to answer.
    pub status: StatusCode,
    /// What is wrong, in words for the client.
    pub problem: Cow<'static, str>,
}

#[derive(Debug)]
enum State {
    AwaitingHead { head: BytesMut },
    Sized { left: u64 },
    Chunked(Chunked),
    Refused(Refusal),
}

impl RequestDecoder {
    /// The longest head in bytes, unless another limit is given.
    pub const MAX_HEAD: usize = 64 << 10;
    /// The most headers.
    pub const MAX_HEADERS: usize = 128;

    /// A decoder that refuses heads of more than `max_head` bytes.
    pub fn new(max_head: usize) -> Self {
        Self { state: State::AwaitingHead { head: BytesMut::new() }, input: Bytes::new(), max_head }
    }

    /// Takes in bytes of the connection, to be called once [`part`](Self::part) has no more to say.
    pub fn receive(&mut self, bytes: Bytes) {
        self.input = if self.input.is_empty() { bytes } else { [&self.input[..], &bytes].concat().into() };
    }

    /// Whether there is a beginning of a request whose [end](RequestPart::End) was not reached. To be asked when
    /// [`part`](Self::part) has no more to say.
    pub fn has_begun(&self) -> bool {
        // Half an empty line is none of a request.
        !matches!(&self.state, State::AwaitingHead { head } if matches!(&head[..], b"" | b"\r") && self.input.is_empty())
    }

    /// The next part; `None` until more is received.
    ///
    /// # Errors
    /// [`Refusal`] if this is not HTTP/1, too long, or not clear; from then on always the same.
    pub fn part(&mut self) -> Result<Option<RequestPart>, Refusal> {
        let part = self.next();
        if let Err(refusal) = &part {
            self.state = State::Refused(refusal.clone());
        }
        part
    }

    fn next(&mut self) -> Result<Option<RequestPart>, Refusal> {
        match &mut self.state {
            State::AwaitingHead { head } => {
                let Some(text) = take_head(head, &mut self.input, self.max_head)? else { return Ok(None) };
                let head = parse(&text)?;
                self.state = match head.length {
                    Some(left) => State::Sized { left },
                    None => State::Chunked(Chunked::strict()),
                };
                Ok(Some(RequestPart::Head(head)))
            }
            State::Sized { left: 0 } => Ok(Some(self.end())),
            State::Sized { .. } | State::Chunked(_) if self.input.is_empty() => Ok(None),
            State::Sized { left } => {
                let most = usize::try_from(*left).unwrap_or(usize::MAX).min(self.input.len());
                *left -= most as u64;
                Ok(Some(RequestPart::Data(self.input.split_to(most))))
            }
            State::Chunked(chunked) => match chunked.next(&mut self.input) {
                Ok(chunked::Next::Data(bytes)) => Ok(Some(RequestPart::Data(bytes))),
                Ok(chunked::Next::More) => Ok(None),
                Ok(chunked::Next::End) => Ok(Some(self.end())),
                Err(error) => Err(Refusal::new(StatusCode::BAD_REQUEST, error.message.to_string())),
            },
            State::Refused(refusal) => Err(refusal.clone()),
        }
    }

    fn end(&mut self) -> RequestPart {
        self.state = State::AwaitingHead { head: BytesMut::new() };
        RequestPart::End
    }
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, problem: impl Into<Cow<'static, str>>) -> Self {
        Self { status, problem: problem.into() }
    }
}

/// The head of a request, once it is whole.
fn take_head(head: &mut BytesMut, input: &mut Bytes, most: usize) -> Result<Option<Bytes>, Refusal> {
    let known = head.len();
    head.extend_from_slice(input);
    // Empty lines before a request are left over from the one before.
    let mut blank = 0;
    while head[blank..].starts_with(b"\r\n") {
        blank += 2;
    }
    head.advance(blank);
    let known = known.saturating_sub(blank);
    let end = head_end(head, known);
    if end.unwrap_or(head.len()) > most {
        return Err(Refusal::new(
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            format!("the head of the request is longer than {most} bytes"),
        ));
    }
    let Some(end) = end else {
        input.clear();
        return Ok(None);
    };
    input.advance(input.len() - (head.len() - end));
    let whole = std::mem::take(head).freeze();
    Ok(Some(whole.slice(..end)))
}

fn parse(text: &[u8]) -> Result<RequestHead, Refusal> {
    if !has_whole_lines(text) {
        return Err(bad("a line of the head does not end as it should"));
    }
    let mut fields = [httparse::EMPTY_HEADER; RequestDecoder::MAX_HEADERS];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(text) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Err(bad("the head of the request is cut short")),
        Err(httparse::Error::TooManyHeaders) => {
            let most = RequestDecoder::MAX_HEADERS;
            return Err(Refusal::new(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                format!("the request has more than {most} headers"),
            ));
        }
        Err(httparse::Error::Version) if names_version(text) => {
            return Err(Refusal::new(StatusCode::HTTP_VERSION_NOT_SUPPORTED, "this server speaks HTTP/1.1"));
        }
        Err(error) => return Err(bad(format!("the head of the request is not HTTP/1: {error}"))),
    }
    let (Some(method), Some(target), Some(minor)) = (request.method, request.path, request.version) else {
        return Err(bad("the first line is no request"));
    };
    let method = Method::from_bytes(method.as_bytes()).map_err(|_| bad("the method is no word"))?;
    let mut headers = HeaderMap::with_capacity(request.headers.len());
    for field in request.headers {
        let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| bad("the name of a header is no word"))?;
        let value = HeaderValue::from_bytes(field.value).map_err(|_| bad("the value of a header is no text"))?;
        headers.append(name, value);
    }
    check_host(&headers, minor)?;
    let uri = take_uri(target, &method, &mut headers)?;
    let length = body_length(&headers, minor)?;
    let expects_continue = minor == 1 && expects(&headers)? && length != Some(0);
    let keeps_alive = minor == 1 && !has_token(&headers, &CONNECTION, "close");
    Ok(RequestHead { method, uri, headers, length, expects_continue, keeps_alive })
}

/// Whether every line ends in a carriage return and a line feed, and neither stands anywhere else.
fn has_whole_lines(text: &[u8]) -> bool {
    memchr::memchr2_iter(b'\r', b'\n', text).all(|at| match text[at] {
        b'\n' => at > 0 && text[at - 1] == b'\r',
        _ => text.get(at + 1) == Some(&b'\n'),
    })
}

/// Whether the first line is that of a request, of whatever version.
fn names_version(text: &[u8]) -> bool {
    let line = text.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let words: Vec<_> = line.split(|byte| *byte == b' ').collect();
    matches!(*words, [_, _, version] if version.starts_with(b"HTTP/"))
}

/// See RFC 9112, section 3.2.
fn check_host(headers: &HeaderMap, minor: u8) -> Result<(), Refusal> {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if minor == 0 => Ok(()),
        (Some(host), None) if host.is_empty() || authority(host.as_bytes()).is_some() => Ok(()),
        (Some(_), None) => Err(bad("the header Host names no host")),
        _ => Err(bad("the request must have one header Host")),
    }
}

fn authority(text: &[u8]) -> Option<Authority> {
    Authority::try_from(text).ok().filter(|authority| !authority.as_str().contains('@'))
}

/// See RFC 9112, section 3.2, for the forms that a target has.
fn take_uri(target: &str, method: &Method, headers: &mut HeaderMap) -> Result<Uri, Refusal> {
    if method == Method::CONNECT {
        return Err(Refusal::new(StatusCode::NOT_IMPLEMENTED, "this server is no proxy"));
    }
    let uri = Uri::try_from(target).map_err(|_| match target.len() >= usize::from(u16::MAX - 1) {
        true => Refusal::new(StatusCode::URI_TOO_LONG, "the target of the request is too long"),
        false => bad("the target of the request is no path"),
    })?;
    if target.starts_with('/') || (target == "*" && method == Method::OPTIONS) {
        return Ok(uri);
    }
    let is_web = uri.scheme() == Some(&Scheme::HTTP) || uri.scheme() == Some(&Scheme::HTTPS);
    let host = uri.authority().filter(|_| is_web).filter(|authority| !authority.as_str().contains('@'));
    let host = host.and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
    headers.insert(HOST, host.ok_or_else(|| bad("the target of the request is no path"))?);
    Ok(uri.into_parts().path_and_query.map_or_else(|| Uri::from_static("/"), Uri::from))
}

/// How long the body is, as RFC 9112, section 6.3, has it; `None` if it comes in chunks.
fn body_length(headers: &HeaderMap, minor: u8) -> Result<Option<u64>, Refusal> {
    let length = content_length(headers).map_err(|_| bad("the length of the request is not a number"))?;
    let codings: Vec<_> = headers.get_all(TRANSFER_ENCODING).iter().collect();
    match *codings {
        [] => Ok(Some(length.unwrap_or(0))),
        _ if headers.contains_key(CONTENT_LENGTH) => Err(bad("the request says in two ways how long it is")),
        _ if minor == 0 => Err(bad("HTTP/1.0 knows no chunks")),
        [coding] if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => Ok(None),
        _ => Err(Refusal::new(StatusCode::NOT_IMPLEMENTED, "the only transfer encoding of this server is chunked")),
    }
}

/// The one expectation that there is (RFC 9110, section 10.1.1).
fn expects(headers: &HeaderMap) -> Result<bool, Refusal> {
    let mut expectations = headers.get_all(EXPECT).iter();
    match (expectations.next(), expectations.next()) {
        (None, _) => Ok(false),
        (Some(one), None) if one.as_bytes().eq_ignore_ascii_case(b"100-continue") => Ok(true),
        _ => Err(Refusal::new(StatusCode::EXPECTATION_FAILED, "this server meets no expectation but 100-continue")),
    }
}

fn bad(problem: impl Into<Cow<'static, str>>) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, problem)
}
