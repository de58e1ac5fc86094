//! A server that plays faults over real sockets, as a script says.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use socket2::SockRef;

use crate::program::PATIENCE;

/// What is done with a request.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Writes bytes at once.
    Write(Vec<u8>),
    /// Writes bytes one by one, each in a packet of its own.
    Trickle(Vec<u8>),
    /// Waits until the test opens this gate.
    Await(&'static str),
    /// Resets the connection.
    Reset,
    /// Keeps the connection open and says nothing.
    Hang,
}

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    /// What it asks for, in a few words: see [`describe`].
    pub(crate) what: String,
    /// The bearer token that it carries.
    pub(crate) token: Option<String>,
    pub(crate) at: Instant,
}

#[derive(Default)]
struct State {
    /// What is done with the next requests for a path; the last is done again and again.
    replies: BTreeMap<String, VecDeque<Vec<Act>>>,
    heard: Vec<Heard>,
    open: BTreeSet<&'static str>,
    closed: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// The server; it ends with the test.
pub(crate) struct Script {
    shared: Arc<Shared>,
    pub(crate) url: String,
    certificate: Vec<u8>,
}

impl Script {
    pub(crate) fn new() -> Self {
        Self::start("http", None, Vec::new())
    }

    /// With a certificate that nobody vouches for.
    pub(crate) fn tls() -> Self {
        let rcgen::CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let key = rustls::pki_types::PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_no_client_auth().with_single_cert(vec![cert.der().clone()], key).unwrap();
        Self::start("https", Some(Arc::new(config)), cert.pem().into_bytes())
    }

    fn start(scheme: &str, tls: Option<Arc<ServerConfig>>, certificate: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("{scheme}://{}", listener.local_addr().unwrap());
        let shared = Arc::<Shared>::default();
        let script = Self { shared: shared.clone(), url, certificate };
        script.on("/api", [json(CORE)]);
        script.on("/apis", [json(GROUPS)]);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (shared, tls) = (shared.clone(), tls.clone());
                std::thread::spawn(move || serve(stream, tls, &shared));
            }
        });
        script
    }

    /// Its certificate, as a kubeconfig has it.
    pub(crate) fn authority(&self) -> String {
        base64::Engine::encode(&base64::engine::general_purpose::STANDARD, &self.certificate)
    }

    /// What is done with the next requests for a path, one after the other.
    pub(crate) fn on<R: Into<Vec<Act>>>(&self, path: &str, replies: impl IntoIterator<Item = R>) {
        let replies = replies.into_iter().map(Into::into).collect();
        self.shared.state.lock().unwrap().replies.insert(path.to_owned(), replies);
    }

    /// Lets those go on who wait at a gate.
    pub(crate) fn open(&self, gate: &'static str) {
        self.shared.state.lock().unwrap().open.insert(gate);
        self.shared.changed.notify_all();
    }

    /// What has been asked for, but for discovery.
    pub(crate) fn heard(&self) -> Vec<Heard> {
        let state = self.shared.state.lock().unwrap();
        state
            .heard
            .iter()
            .filter(|heard| !heard.what.starts_with("get /api ") && !heard.what.starts_with("get /apis "))
            .cloned()
            .collect()
    }

    /// The same in a few words each.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.heard().into_iter().map(|heard| heard.what).collect()
    }

    /// Waits until so many requests have come, but for discovery.
    pub(crate) fn wait(&self, count: usize) {
        let is_discovery = |heard: &Heard| heard.what.starts_with("get /api ") || heard.what.starts_with("get /apis ");
        let state = self.shared.state.lock().unwrap();
        let enough = |state: &mut State| state.heard.iter().filter(|heard| !is_discovery(heard)).count() < count;
        let (_state, timeout) = self.shared.changed.wait_timeout_while(state, PATIENCE, enough).unwrap();
        assert!(!timeout.timed_out(), "{count} requests did not come");
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        self.shared.state.lock().unwrap().closed = true;
        self.shared.changed.notify_all();
    }
}

/// Serves one connection until it ends.
fn serve(stream: TcpStream, tls: Option<Arc<ServerConfig>>, shared: &Shared) {
    stream.set_nodelay(true).unwrap();
    let socket = stream.try_clone().unwrap();
    match tls {
        None => converse(stream, &socket, shared),
        Some(config) => converse(StreamOwned::new(ServerConnection::new(config).unwrap(), stream), &socket, shared),
    }
}

fn converse(stream: impl Read + Write, socket: &TcpStream, shared: &Shared) {
    let mut reader = BufReader::new(stream);
    while let Some(head) = request(&mut reader) {
        let (what, path) = describe(&head);
        let acts = {
            let mut state = shared.state.lock().unwrap();
            state.heard.push(Heard { what, token: token(&head), at: Instant::now() });
            match state.replies.get_mut(&path) {
                Some(replies) if replies.len() > 1 => replies.pop_front().unwrap(),
                Some(replies) => replies.front().cloned().unwrap_or_default(),
                None => answer("404 Not Found", "text/plain", b"404 page not found"),
            }
        };
        shared.changed.notify_all();
        if !play(acts, reader.get_mut(), socket, shared) {
            return;
        }
    }
}

/// Whether the connection can take another request.
fn play(acts: Vec<Act>, stream: &mut (impl Read + Write), socket: &TcpStream, shared: &Shared) -> bool {
    for act in acts {
        let done = match act {
            Act::Write(bytes) => stream.write_all(&bytes),
            Act::Trickle(bytes) => bytes.iter().try_for_each(|byte| stream.write_all(&[*byte])),
            Act::Await(gate) => {
                shared.wait_until(|state| state.open.contains(gate));
                Ok(())
            }
            Act::Hang => {
                shared.wait_until(|_| false);
                return false;
            }
            Act::Reset => {
                SockRef::from(socket).set_linger(Some(std::time::Duration::ZERO)).unwrap();
                // With the last that holds the socket gone it is reset.
                return false;
            }
        };
        if done.is_err() {
            return false;
        }
    }
    true
}

impl Shared {
    fn wait_until(&self, holds: impl Fn(&State) -> bool) {
        let state = self.state.lock().unwrap();
        drop(self.changed.wait_while(state, |state| !state.closed && !holds(state)).unwrap());
    }
}

/// The head of the next request, whose body is passed over.
fn request(reader: &mut BufReader<impl Read>) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length =
        head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length:").map(ToOwned::to_owned));
    let length = length.map_or(0, |length| length.trim().parse().unwrap());
    reader.take(length).read_to_end(&mut Vec::new()).ok()?;
    Some(head)
}

/// The bearer token of a request.
fn token(head: &str) -> Option<String> {
    let header = head.lines().find(|line| line.to_lowercase().starts_with("authorization: bearer "))?;
    header.split(' ').next_back().map(ToOwned::to_owned)
}

/// A request in a few words, and its path: `list`, `list continue=c1`, `watch rv=5`, `stream` for a streaming list, or its method
/// and path.
fn describe(head: &str) -> (String, String) {
    let mut words = head.split_whitespace();
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query: BTreeMap<&str, &str> = query.split('&').filter_map(|pair| pair.split_once('=')).collect();
    let named = |names: &[(&str, &str)]| -> String {
        names.iter().filter_map(|(name, short)| query.get(name).map(|value| format!(" {short}={value}"))).collect()
    };
    let what = match method {
        "GET" if query.contains_key("sendInitialEvents") => format!("stream{}", named(&[("resourceVersion", "rv")])),
        "GET" if query.contains_key("watch") => format!("watch{}", named(&[("resourceVersion", "rv")])),
        "GET" if path.ends_with("maps") => {
            format!("list{}", named(&[("resourceVersion", "rv"), ("limit", "limit"), ("continue", "continue")]))
        }
        _ => format!("{} {path} ", method.to_lowercase()),
    };
    (what.trim_end_matches('?').to_owned(), path.to_owned())
}

/// A whole answer with a length.
pub(crate) fn answer(status: &str, kind: &str, body: &[u8]) -> Vec<Act> {
    with_headers(status, &format!("Content-Type: {kind}\r\n"), body)
}

/// The same, with headers of one's own.
pub(crate) fn with_headers(status: &str, headers: &str, body: &[u8]) -> Vec<Act> {
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    vec![Act::Write([head.as_bytes(), body].concat())]
}

pub(crate) fn json(body: &str) -> Vec<Act> {
    answer("200 OK", "application/json", body.as_bytes())
}

/// What the API server says when it refuses.
pub(crate) fn refusal(status: &str, reason: &str, message: &str) -> Vec<Act> {
    let code = status.split(' ').next().unwrap();
    let body = format!(
        r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","message":"{message}","reason":"{reason}","code":{code}}}"#
    );
    answer(status, "application/json", body.as_bytes())
}

/// The head of an answer in chunks.
pub(crate) fn chunked() -> Act {
    Act::Write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec())
}

/// One chunk.
pub(crate) fn chunk(text: &str) -> Act {
    Act::Write(chunk_bytes(text))
}

pub(crate) fn chunk_bytes(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

/// The end of an answer in chunks.
pub(crate) fn last_chunk() -> Act {
    Act::Write(b"0\r\n\r\n".to_vec())
}

const CORE: &str = r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[{"metadata":{"name":null},
"versions":[{"version":"v1","freshness":"Current","resources":[{"resource":"configmaps","responseKind":{"group":"","version":"v1","kind":"ConfigMap"},
"scope":"Namespaced","singularResource":"configmap","shortNames":["cm"],"verbs":["create","delete","get","list","patch","update","watch"]}]}]}]}"#;

/// Groups of types, of which there are none.
pub(crate) const GROUPS: &str =
    r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[]}"#;
