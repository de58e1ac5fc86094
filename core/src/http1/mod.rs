//! HTTP/1.1: requests to bytes, and answers from bytes cut anywhere, for adapters whose executor has no HTTP of its own; and the
//! same the other way round, for what [listens](crate::listen).

mod chunked;
mod flaw;
mod received;
mod reply;

use bytes::{Buf as _, Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};

use crate::error::{NetworkError, NetworkErrorKind};
use chunked::Chunked;

pub use flaw::Flaw;
pub use received::{Refusal, RequestDecoder, RequestHead, RequestPart};
pub(crate) use reply::encode_response;
pub use reply::fit;

/// Takes apart one answer of a connection.
///
/// One big chunk and one byte at a time give the same parts, but for where the data are cut. See RFC 9112, section 6.
///
/// ```
/// use cloudcoil_core::http1::{Part, ResponseDecoder};
/// use http::{Method, StatusCode};
///
/// let mut decoder = ResponseDecoder::new(&Method::GET);
/// decoder.receive("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".into());
/// assert!(matches!(decoder.part()?, Some(Part::Head { status: StatusCode::OK, .. })));
/// assert_eq!(decoder.part()?, Some(Part::Data("ok".into())));
/// assert_eq!(decoder.part()?, Some(Part::End { reusable: true }));
/// # Ok::<(), cloudcoil_core::NetworkError>(())
/// ```
#[derive(Debug)]
pub struct ResponseDecoder {
    state: State,
    /// Bytes that were not looked at yet.
    input: Bytes,
    /// The connection has ended.
    ended: bool,
    is_head: bool,
    keeps_alive: bool,
}

/// A part of an answer, in order: a head, data, an end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "an adapter must do all of these")]
pub enum Part {
    /// The status and the headers.
    Head {
        /// The status.
        status: StatusCode,
        /// The headers.
        headers: HeaderMap,
    },
    /// The next bytes of the body, never none.
    Data(Bytes),
    /// The answer is whole; nothing comes after it.
    End {
        /// Whether the connection may carry another request.
        reusable: bool,
    },
}

#[derive(Debug)]
enum State {
    AwaitingHead { head: BytesMut },
    Sized { left: u64 },
    Chunked(Chunked),
    UntilClosed,
    Ending,
    Ended,
}

impl ResponseDecoder {
    /// The longest head in bytes.
    pub const MAX_HEAD: usize = 256 * 1024;
    /// The most headers: API servers give each warning one of its own, up to hundreds.
    pub const MAX_HEADERS: usize = 1000;

    /// A decoder of the answer to a request of this method.
    pub fn new(method: &Method) -> Self {
        Self {
            state: State::AwaitingHead { head: BytesMut::new() },
            input: Bytes::new(),
            ended: false,
            is_head: method == Method::HEAD,
            keeps_alive: false,
        }
    }

    /// Takes in bytes of the connection, to be called once [`part`](Self::part) has no more to say.
    pub fn receive(&mut self, bytes: Bytes) {
        if self.input.is_empty() {
            self.input = bytes;
        } else {
            self.input = [&self.input[..], &bytes].concat().into();
        }
    }

    /// Takes in that the connection has ended in order.
    pub const fn close(&mut self) {
        self.ended = true;
    }

    /// The next part; `None` until more is received.
    ///
    /// # Errors
    /// [`NetworkErrorKind::Protocol`] if this is not HTTP/1; [`NetworkErrorKind::Lost`] if the connection ended before the answer.
    pub fn part(&mut self) -> Result<Option<Part>, NetworkError> {
        loop {
            let part = match &mut self.state {
                State::AwaitingHead { head } => match take_head(head, &mut self.input)? {
                    None => return self.wait(),
                    Some(text) => self.begin(&text)?,
                },
                State::Sized { left: 0 } => Some(self.end(true)),
                State::Sized { .. } | State::UntilClosed | State::Chunked(_) if self.input.is_empty() => {
                    if self.ended && matches!(self.state, State::UntilClosed) {
                        Some(self.end(false))
                    } else {
                        return self.wait();
                    }
                }
                State::Sized { left } => {
                    let most = usize::try_from(*left).unwrap_or(usize::MAX).min(self.input.len());
                    *left -= most as u64;
                    Some(Part::Data(self.input.split_to(most)))
                }
                State::UntilClosed => Some(Part::Data(std::mem::take(&mut self.input))),
                State::Chunked(chunked) => match chunked.next(&mut self.input)? {
                    chunked::Next::Data(bytes) => Some(Part::Data(bytes)),
                    chunked::Next::More => None,
                    chunked::Next::End => Some(self.end(true)),
                },
                State::Ending => Some(self.end(true)),
                State::Ended => return Ok(None),
            };
            if part.is_some() {
                return Ok(part);
            }
        }
    }

    fn wait(&mut self) -> Result<Option<Part>, NetworkError> {
        if self.ended {
            self.state = State::Ended;
            return Err(Flaw::CutShort.into());
        }
        Ok(None)
    }

    /// What is left over belongs to nobody: the other side has lost count.
    fn end(&mut self, in_order: bool) -> Part {
        self.state = State::Ended;
        Part::End { reusable: in_order && self.keeps_alive && self.input.is_empty() && !self.ended }
    }

    /// Reads a head; `None` if it only announces another.
    fn begin(&mut self, text: &[u8]) -> Result<Option<Part>, NetworkError> {
        let Head { status, headers, minor } = parse(text)?;
        if status.is_informational() {
            if status == StatusCode::SWITCHING_PROTOCOLS {
                return Err(Flaw::Switched.into());
            }
            self.state = State::AwaitingHead { head: BytesMut::new() };
            return Ok(None);
        }
        self.keeps_alive = minor == 1 && !has_token(&headers, &CONNECTION, "close");
        let bodiless = self.is_head || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let length = content_length(&headers)?;
        self.state = match (bodiless, headers.contains_key(TRANSFER_ENCODING), length) {
            (true, ..) => State::Ending,
            (false, true, length) if is_chunked(&headers) => {
                // Both at once is how requests are smuggled: what comes after such an answer is not to be trusted.
                self.keeps_alive &= length.is_none();
                State::Chunked(Chunked::default())
            }
            (false, false, Some(left)) => State::Sized { left },
            (false, ..) => State::UntilClosed,
        };
        Ok(Some(Part::Head { status, headers }))
    }
}

/// A request as it is written to a connection with its server; its URI is absolute.
///
/// # Errors
/// [`NetworkErrorKind::Request`] if its URI names no server.
pub fn encode(request: &Request<Bytes>) -> Result<Vec<u8>, NetworkError> {
    let path = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
    encode_to(request, path)
}

/// A request as it is written to a connection with a proxy that forwards it.
///
/// # Errors
/// As [`encode`].
pub fn encode_forwarded(request: &Request<Bytes>) -> Result<Vec<u8>, NetworkError> {
    encode_to(request, &request.uri().to_string())
}

/// Whether a request that failed so may be sent once more, on a new connection.
///
/// A server may close a connection just when it is used again. So what only reads is repeated, once, if its connection was used
/// before (not `is_new`) and is lost. A server that has said anything else has taken the request, and is not asked again.
///
/// ```
/// use cloudcoil_core::NetworkError;
/// use cloudcoil_core::http1::{Flaw, may_repeat};
/// use http::Method;
///
/// let lost = NetworkError::from(Flaw::CutShort);
/// assert!(may_repeat(&Method::GET, false, &lost));
/// assert!(!may_repeat(&Method::POST, false, &lost) && !may_repeat(&Method::GET, true, &lost));
/// assert!(!may_repeat(&Method::GET, false, &Flaw::Head.into()));
/// ```
pub fn may_repeat(method: &Method, is_new: bool, error: &NetworkError) -> bool {
    *method == Method::GET && !is_new && error.kind == NetworkErrorKind::Lost
}

fn encode_to(request: &Request<Bytes>, target: &str) -> Result<Vec<u8>, NetworkError> {
    let (method, uri, headers, body) = (request.method(), request.uri(), request.headers(), request.body());
    let host = uri.authority().map(|authority| authority.as_str().rsplit('@').next().unwrap_or_default());
    let host = host.ok_or_else(|| NetworkError::new(NetworkErrorKind::Request, "the request names no server"))?;
    let mut bytes = format!("{method} {target} HTTP/1.1\r\n").into_bytes();
    let mut field = |name: &str, value: &[u8]| bytes.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
    if !headers.contains_key(HOST) {
        field(HOST.as_str(), host.as_bytes());
    }
    for (name, value) in headers.iter().filter(|(name, _)| !matches!(**name, CONTENT_LENGTH | TRANSFER_ENCODING)) {
        field(name.as_str(), value.as_bytes());
    }
    if !body.is_empty() || matches!(*method, Method::POST | Method::PUT | Method::PATCH) {
        field(CONTENT_LENGTH.as_str(), body.len().to_string().as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    Ok(bytes)
}

struct Head {
    status: StatusCode,
    headers: HeaderMap,
    minor: u8,
}

/// The head of an answer, once it is whole.
fn take_head(head: &mut BytesMut, input: &mut Bytes) -> Result<Option<Bytes>, NetworkError> {
    if head.is_empty() {
        // Empty lines before an answer are left over from the one before.
        let blank = input.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        input.advance(blank);
    }
    let known = head.len();
    head.extend_from_slice(input);
    let Some(end) = head_end(head, known) else {
        input.clear();
        if head.len() > ResponseDecoder::MAX_HEAD {
            return Err(Flaw::LongHead.into());
        }
        // Whoever says something else may go on for ever.
        let known = head.len().min(START.len());
        return if head[..known] == START[..known] { Ok(None) } else { Err(Flaw::Head.into()) };
    };
    input.advance(end - known);
    let whole = std::mem::take(head).freeze();
    Ok(Some(whole.slice(..end)))
}

/// Where a head ends: behind the first empty line. What was looked at before is not looked at again.
fn head_end(head: &[u8], known: usize) -> Option<usize> {
    let from = known.saturating_sub(3);
    memchr::memchr_iter(b'\n', &head[from..]).map(|at| from + at).find_map(|at| {
        let line = head[..at].strip_suffix(b"\r").unwrap_or(&head[..at]);
        line.ends_with(b"\n").then_some(at + 1)
    })
}

fn parse(text: &[u8]) -> Result<Head, NetworkError> {
    let mut fields = [httparse::EMPTY_HEADER; ResponseDecoder::MAX_HEADERS];
    let mut response = httparse::Response::new(&mut fields);
    match response.parse(text) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Err(Flaw::Head.into()),
        Err(httparse::Error::TooManyHeaders) => return Err(Flaw::LongHead.into()),
        Err(_) => return Err(Flaw::Head.into()),
    }
    let (Some(code), Some(minor)) = (response.code, response.version) else {
        return Err(Flaw::Head.into());
    };
    let status = StatusCode::from_u16(code).map_err(|_| Flaw::Head)?;
    let mut headers = HeaderMap::with_capacity(response.headers.len());
    for field in response.headers {
        let unusable = || Flaw::Head;
        let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| unusable())?;
        let value = HeaderValue::from_bytes(field.value).map_err(|_| unusable())?;
        headers.append(name, value);
    }
    Ok(Head { status, headers, minor })
}

/// The announced length, which may be said twice but not in two ways.
fn content_length(headers: &HeaderMap) -> Result<Option<u64>, NetworkError> {
    let mut length = None;
    for value in headers.get_all(CONTENT_LENGTH) {
        for text in value.to_str().unwrap_or("?").split(',') {
            let digits = Some(text.trim()).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            let said: Option<u64> = digits.and_then(|text| text.parse().ok());
            match (said, length) {
                (Some(said), None) => length = Some(said),
                (Some(said), Some(before)) if said == before => {}
                _ => return Err(Flaw::Head.into()),
            }
        }
    }
    Ok(length)
}

fn is_chunked(headers: &HeaderMap) -> bool {
    let last = headers.get_all(TRANSFER_ENCODING).iter().next_back().and_then(|value| value.to_str().ok());
    last.and_then(|value| value.rsplit(',').next()).is_some_and(|coding| coding.trim().eq_ignore_ascii_case("chunked"))
}

pub(crate) fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|word| word.trim().eq_ignore_ascii_case(token))
}

/// How each head begins.
const START: &[u8] = b"HTTP/1.";

#[cfg(test)]
mod tests;
