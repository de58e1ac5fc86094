//! Getting a connection through a proxy: what is said to it, and what its answers mean.

#[cfg(test)]
mod tests;

use std::fmt;
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderValue, Uri};

use crate::config::{Proxy, ProxyScheme};
use crate::error::{NetworkError, NetworkErrorKind};

impl Proxy {
    /// Whether requests to that server are handed to the proxy as they are, with their absolute address and
    /// [`authorization`](Self::authorization) in them, over a connection that is the proxy's own: as Go does for plain `http`
    /// through HTTP proxies. Otherwise a [`ProxyHandshake`] makes a connection to the proxy one to the server.
    pub fn forwards(&self, server: &Uri) -> bool {
        let is_http = matches!(self.scheme, ProxyScheme::Http | ProxyScheme::Https);
        is_http && server.scheme_str() != Some("https")
    }

    /// The `Proxy-Authorization` header, marked as sensitive.
    pub fn authorization(&self) -> Option<HeaderValue> {
        let credentials = self.credentials.as_ref()?;
        let text = [credentials.username.expose(), b":", credentials.password.expose()].concat();
        let mut header = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(text))).ok()?;
        header.set_sensitive(true);
        Some(header)
    }
}

/// The words with a proxy that make a fresh connection to it one to a server: `CONNECT` (RFC 9110, section 9.3.6), or SOCKS
/// version 5 (RFC 1928, RFC 1929).
///
/// Its driver hands in what has come, nothing at first, and does as it is told. Bytes may be cut anywhere.
///
/// ```
/// use cloudcoil_core::config::Proxy;
/// use cloudcoil_core::proxy::{ProxyHandshake, ProxyStep};
///
/// let proxy = Proxy::parse("http://px:3128").unwrap();
/// let mut handshake = ProxyHandshake::new(&proxy, "api.example.org", 6443)?;
/// let Ok(ProxyStep::Send(bytes)) = handshake.received(b"") else { panic!() };
/// assert!(bytes.starts_with(b"CONNECT api.example.org:6443 HTTP/1.1\r\n"));
/// assert_eq!(handshake.received(b"HTTP/1.1 200 OK\r\n"), Ok(ProxyStep::Receive));
/// assert_eq!(handshake.received(b"\r\n"), Ok(ProxyStep::Done));
/// # Ok::<(), cloudcoil_core::NetworkError>(())
/// ```
#[derive(Clone)]
pub struct ProxyHandshake {
    proxy: Proxy,
    host: String,
    port: u16,
    state: State,
    buffer: Vec<u8>,
}

/// What to do next.
#[derive(Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must do all of them")]
pub enum ProxyStep {
    /// Send this, and hand in what comes then.
    Send(Bytes),
    /// Hand in what comes.
    Receive,
    /// The connection is one to the server.
    Done,
}

/// What is sent may hold a password.
impl fmt::Debug for ProxyStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Send(_) => "Send",
            Self::Receive => "Receive",
            Self::Done => "Done",
        })
    }
}

/// What is waited for.
#[derive(Clone, Copy)]
enum State {
    /// The first step.
    Start,
    /// The head of an HTTP answer.
    Head,
    /// The choice of an authentication method.
    Method,
    /// Whether the password is right.
    Verdict,
    /// Whether there is a connection.
    Reply,
    Done,
}

impl ProxyHandshake {
    /// A handshake for a connection to a server's host, without brackets, and port.
    ///
    /// # Errors
    /// [`NetworkErrorKind::Connect`] if the proxy's protocol has no room for the host's name, or for the credentials.
    pub fn new(proxy: &Proxy, host: &str, port: u16) -> Result<Self, NetworkError> {
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host).to_owned();
        let handshake = Self { proxy: proxy.clone(), host, port, state: State::Start, buffer: Vec::new() };
        if handshake.is_socks() {
            if handshake.host.len() > 255 {
                return Err(handshake.error("SOCKS has no room for a host's name of more than 255 bytes"));
            }
            if let Some(credentials) = &proxy.credentials
                && (credentials.username.expose().len() > 255 || credentials.password.expose().len() > 255)
            {
                return Err(handshake.error("SOCKS has no room for a user name or a password of more than 255 bytes"));
            }
        }
        Ok(handshake)
    }

    /// Takes what the proxy has sent.
    ///
    /// # Errors
    /// [`NetworkErrorKind::Connect`], saying what the proxy does not like, or that it does not speak as it should.
    pub fn received(&mut self, bytes: &[u8]) -> Result<ProxyStep, NetworkError> {
        let known = self.buffer.len();
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() > LIMIT {
            return Err(self.error("it answers at too great length"));
        }
        match self.state {
            State::Start if self.is_socks() => Ok(self.greet()),
            State::Start => Ok(self.connect()),
            State::Head => self.head(known),
            State::Method => self.method(),
            State::Verdict => self.verdict(),
            State::Reply => self.reply(),
            State::Done => self.done(),
        }
    }

    /// What it means that the proxy has closed the connection before the handshake was done.
    pub fn closed(&self) -> NetworkError {
        self.error("it has closed the connection")
    }

    const fn is_socks(&self) -> bool {
        matches!(self.proxy.scheme, ProxyScheme::Socks5 | ProxyScheme::Socks5h)
    }

    fn connect(&mut self) -> ProxyStep {
        let server = authority(&self.host, self.port);
        let mut head =
            format!("CONNECT {server} HTTP/1.1\r\nHost: {server}\r\nUser-Agent: {USER_AGENT}\r\n").into_bytes();
        if let Some(authorization) = self.proxy.authorization() {
            head.extend_from_slice(&[b"Proxy-Authorization: ", authorization.as_bytes(), b"\r\n"].concat());
        }
        head.extend_from_slice(b"\r\n");
        self.send(State::Head, head)
    }

    /// The end of the head is looked for behind what is `known` not to hold it.
    fn head(&mut self, mut known: usize) -> Result<ProxyStep, NetworkError> {
        loop {
            let from = known.saturating_sub(3);
            let Some(length) = head_length(&self.buffer[from..]).map(|length| from + length) else {
                return Ok(ProxyStep::Receive);
            };
            let (code, reason) = status(&self.buffer);
            return match code {
                // One that only announces another; a proxy may send any number of them.
                Some(100..=199) => {
                    self.buffer.drain(..length);
                    known = 0;
                    continue;
                }
                Some(200..=299) => {
                    self.buffer.drain(..length);
                    self.done()
                }
                Some(407) if self.proxy.credentials.is_none() => Err(self.error(NO_CREDENTIALS)),
                Some(407) => Err(self.error("it does not take the user name and the password in its URL")),
                Some(code) => Err(self.error(format!("it answers {code} {reason}").trim_end())),
                None => Err(self.error("it does not speak HTTP/1.1")),
            };
        }
    }

    fn greet(&mut self) -> ProxyStep {
        let methods: &[u8] = if self.proxy.credentials.is_some() { &[NO_AUTH, PASSWORD] } else { &[NO_AUTH] };
        self.send(State::Method, [&[SOCKS5, methods.len() as u8], methods].concat())
    }

    fn method(&mut self) -> Result<ProxyStep, NetworkError> {
        let &[version, method, ..] = &self.buffer[..] else { return Ok(ProxyStep::Receive) };
        self.buffer.drain(..2);
        match (version, method, &self.proxy.credentials) {
            (SOCKS5, NO_AUTH, _) => Ok(self.request()),
            (SOCKS5, PASSWORD, Some(credentials)) => {
                let (username, password) = (credentials.username.expose(), credentials.password.expose());
                let words =
                    [&[PASSWORD_VERSION, username.len() as u8], username, &[password.len() as u8], password].concat();
                Ok(self.send(State::Verdict, words))
            }
            (SOCKS5, _, None) => Err(self.error(NO_CREDENTIALS)),
            (SOCKS5, ..) => Err(self.error("it knows no way to prove who one is that is known here")),
            _ => Err(self.error("it does not speak SOCKS version 5")),
        }
    }

    fn verdict(&mut self) -> Result<ProxyStep, NetworkError> {
        let &[_, verdict, ..] = &self.buffer[..] else { return Ok(ProxyStep::Receive) };
        self.buffer.drain(..2);
        match verdict {
            0 => Ok(self.request()),
            _ => Err(self.error("it does not take the user name and the password in its URL")),
        }
    }

    fn request(&mut self) -> ProxyStep {
        let mut words = vec![SOCKS5, CONNECT, 0];
        match self.host.parse() {
            Ok(IpAddr::V4(address)) => {
                words.push(IPV4);
                words.extend(address.octets());
            }
            Ok(IpAddr::V6(address)) => {
                words.push(IPV6);
                words.extend(address.octets());
            }
            Err(_) => {
                words.extend([NAME, self.host.len() as u8]);
                words.extend(self.host.bytes());
            }
        }
        words.extend(self.port.to_be_bytes());
        self.send(State::Reply, words)
    }

    fn reply(&mut self) -> Result<ProxyStep, NetworkError> {
        if self.buffer.first().is_some_and(|version| *version != SOCKS5) {
            return Err(self.error("it does not speak SOCKS version 5"));
        }
        if let Some(code) = self.buffer.get(1).filter(|code| **code != 0) {
            return Err(self.error(refusal(*code)));
        }
        let [_, _, _, kind, rest @ ..] = &self.buffer[..] else { return Ok(ProxyStep::Receive) };
        let address = match (*kind, rest.first()) {
            (IPV4, _) => 4,
            (IPV6, _) => 16,
            (NAME, Some(length)) => 1 + usize::from(*length),
            (NAME, None) => return Ok(ProxyStep::Receive),
            _ => return Err(self.error("it does not speak SOCKS version 5")),
        };
        if rest.len() < address + 2 {
            return Ok(ProxyStep::Receive);
        }
        self.buffer.drain(..4 + address + 2);
        self.done()
    }

    /// A server says nothing before it is spoken to, so whatever else has come is not the server's.
    fn done(&mut self) -> Result<ProxyStep, NetworkError> {
        self.state = State::Done;
        if self.buffer.is_empty() { Ok(ProxyStep::Done) } else { Err(self.error("it says more than it was asked")) }
    }

    fn send(&mut self, awaited: State, words: Vec<u8>) -> ProxyStep {
        self.state = awaited;
        ProxyStep::Send(words.into())
    }

    fn error(&self, problem: &str) -> NetworkError {
        NetworkError::new(NetworkErrorKind::Connect, problem).at_proxy(&self.proxy)
    }
}

impl fmt::Debug for ProxyHandshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyHandshake").field("proxy", &self.proxy).field("host", &self.host).finish_non_exhaustive()
    }
}

/// The code of an HTTP answer, if it is one, and its words.
fn status(head: &[u8]) -> (Option<u16>, String) {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line.trim_ascii_end());
    let mut words = line.splitn(3, ' ');
    let version = words.next().unwrap_or_default();
    let code = words.next().filter(|_| version.starts_with("HTTP/1.")).and_then(|code| code.parse().ok());
    let reason = words.next().unwrap_or_default().chars().filter(|c| !c.is_control()).take(100);
    (code, reason.collect())
}

/// Where the head of an HTTP answer ends.
fn head_length(bytes: &[u8]) -> Option<usize> {
    let ends = |end: &[u8]| memchr::memmem::find(bytes, end).map(|at| at + end.len());
    match (ends(b"\r\n\r\n"), ends(b"\n\n")) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// What a SOCKS proxy means (RFC 1928, section 6).
const fn refusal(code: u8) -> &'static str {
    match code {
        1 => "it has failed",
        2 => "it does not allow it",
        3 => "it cannot reach the network",
        4 => "it cannot reach the host",
        5 => "the server refuses the connection",
        6 => "the server is too far away",
        7 => "it knows no CONNECT",
        8 => "it does not know the kind of address",
        _ => "it gives no known reason",
    }
}

/// A host and port, with brackets around an IPv6 address.
fn authority(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

const NO_CREDENTIALS: &str = "it asks for a user name and a password: write USER:PASSWORD@ before the host in its URL";

const USER_AGENT: &str = concat!("cloudcoil/", env!("CARGO_PKG_VERSION"));

/// More than any proxy has to say, in bytes.
const LIMIT: usize = 32 << 10;

const SOCKS5: u8 = 5;
const NO_AUTH: u8 = 0;
const PASSWORD: u8 = 2;
const PASSWORD_VERSION: u8 = 1;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;
