use std::time::Duration;

use http::{Method, Request};
use proptest::collection::vec;
use proptest::prelude::*;

use super::fuzz::{Served, http1_request, serve};
use super::*;
use crate::exchange::HttpRequest;
use crate::laws::{self, Move};
use crate::machine::{Deadline, Machine as _, Outbox, Ticket, Tickets};
use crate::time::Now;

fn whole(text: &str) -> Served {
    let served = serve(ListenLimits::default(), [text.as_bytes()]);
    let pieces = serve(ListenLimits::default(), text.as_bytes().chunks(1));
    assert_eq!(served, pieces, "cut anywhere, it is the same: {text:?}");
    served
}

/// The codes of all answers.
fn codes(served: &Served) -> Vec<u16> {
    let text = String::from_utf8_lossy(&served.sent);
    let codes = text.match_indices("HTTP/1.1 ").map(|(at, _)| text[at + 9..at + 12].parse().unwrap());
    codes.collect()
}

fn request(method: Method, uri: &str, headers: &[(&'static str, &'static str)], body: &'static str) -> HttpRequest {
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Bytes::from_static(body.as_bytes())).unwrap().into()
}

/// A request that is refused with this code, on a connection that closes then, whatever comes behind it.
fn refused(text: &str) -> u16 {
    let served = whole(&format!("{text}GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"));
    assert!(served.requests.is_empty() && served.is_finished, "{text:?}: {served:?}");
    let [code] = codes(&served)[..] else { panic!("{text:?}: {served:?}") };
    assert!(String::from_utf8_lossy(&served.sent).contains("\r\nconnection: close\r\n"));
    code
}

#[test]
fn requests_are_answered_one_after_the_other_on_one_connection() {
    let served = whole(
        "GET /a?b HTTP/1.1\r\nHost: h\r\n\r\n\r\nPOST /c HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhiBREW /pot HTTP/1.1\r\nHost:\r\nTransfer-Encoding: \
         Chunked\r\n\r\n1;x=y\r\n1\r\n2\r\n23\r\n0\r\nTrailer: x\r\n\r\n",
    );
    let chunked = [("host", ""), ("transfer-encoding", "Chunked")];
    let expected = [
        request(Method::GET, "/a?b", &[("host", "h")], ""),
        request(Method::POST, "/c", &[("host", "h"), ("content-length", "2")], "hi"),
        request(Method::from_bytes(b"BREW").unwrap(), "/pot", &chunked, "123"),
    ];
    assert_eq!(served.requests, expected);
    assert_eq!(codes(&served), [200, 200, 200]);
    let sent = String::from_utf8_lossy(&served.sent);
    assert!(sent.contains("\r\ncontent-length: 3\r\n") && sent.ends_with("\r\n\r\n123"), "{sent}");
    assert!(!served.is_finished && !served.is_closed);
}

#[test]
fn a_connection_is_kept_only_if_the_client_keeps_it() {
    for (text, kept) in [
        ("GET / HTTP/1.1\r\nHost: h\r\n\r\n", true),
        ("GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", true),
        ("GET / HTTP/1.1\r\nHost: h\r\nConnection: te, Close\r\n\r\n", false),
        ("GET / HTTP/1.0\r\n\r\n", false),
        ("GET / HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n", false),
    ] {
        let served = whole(text);
        assert_eq!((served.requests.len(), codes(&served), served.is_finished), (1, vec![200], !kept), "{text:?}");
        assert_eq!(String::from_utf8_lossy(&served.sent).contains("connection: close"), !kept, "{text:?}");
    }
}

#[test]
fn targets_become_paths() {
    for (target, host, path) in [
        ("/a%20b?c=/d", "h", "/a%20b?c=/d"),
        ("http://other:81/a?b", "other:81", "/a?b"),
        ("HTTPS://other", "other", "/"),
        ("//other/a", "h", "//other/a"),
    ] {
        let served = whole(&format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n"));
        let request = served.requests.first().unwrap_or_else(|| panic!("{target}: {served:?}")).inner();
        assert_eq!(
            (request.uri().to_string(), &request.headers()["host"]),
            (path.to_owned(), &HeaderValue::from_static(host))
        );
    }
    assert_eq!(whole("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n").requests[0].inner().uri(), "*");
    for target in ["*", "a", "a:80", "ftp://a/b", "http://me:secret@a/b", "http:/a", "/a b"] {
        assert_eq!(refused(&format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n")), 400, "{target}");
    }
    assert_eq!(refused("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n"), 501);
}

#[test]
fn what_could_be_read_in_two_ways_is_refused() {
    let get = |rest: &str| refused(&format!("GET / HTTP/1.1\r\n{rest}\r\n"));
    let host = |rest: &str| get(&format!("Host: h\r\n{rest}"));
    // Hosts.
    for text in ["", "Host: a\r\nHost: a\r\n", "Host: a b\r\n", "Host: me@a\r\n", "Host: a/b\r\n"] {
        assert_eq!(get(text), 400, "{text:?}");
    }
    // Lines.
    for text in [
        "A: b\n",
        "A: b\rC: d\r\n",
        "A: b\r\n c\r\n",
        "A: b\r\n\tc\r\n",
        " A: b\r\n",
        "A : b\r\n",
        "A\r\n",
        ": b\r\n",
        "A: b\0c\r\n",
        "A(: b\r\n",
    ] {
        assert_eq!(host(text), 400, "{text:?}");
    }
    assert_eq!(refused("GET / HTTP/1.1\nHost: h\n\n"), 400);
    assert_eq!(refused("\nGET / HTTP/1.1\r\nHost: h\r\n\r\n"), 400);
    assert_eq!(refused("GET  / HTTP/1.1\r\nHost: h\r\n\r\n"), 400);
    // Lengths.
    for text in [
        "Content-Length: 1\r\nContent-Length: 2\r\n",
        "Content-Length: 1, 2\r\n",
        "Content-Length: +1\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 0x1\r\n",
        "Content-Length: 1 2\r\n",
        "Content-Length:\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
    ] {
        assert_eq!(host(text), 400, "{text:?}");
    }
    for text in ["gzip, chunked", "chunked, gzip", "chunked, chunked", "identity", "xchunked", ""] {
        assert_eq!(host(&format!("Transfer-Encoding: {text}\r\n")), 501, "{text:?}");
    }
    assert_eq!(host("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 501);
    assert_eq!(refused("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
    assert_eq!(host("Expect: 200-ok\r\n"), 417);
}

#[test]
fn chunks_that_could_be_read_in_two_ways_are_refused() {
    for chunks in [
        "\r\n",
        "x\r\n",
        "0x1\r\n1\r\n",
        "-1\r\n",
        "+1\r\n1\r\n",
        "1 \r\n1\r\n",
        "1 1\r\n1\r\n",
        "1\n1\r\n",
        "1\r1\r\n",
        "1\r\n12\r\n",
        "1\r\n1\n",
        "1\r\n1\r1",
        "1;\n\r\n1\r\n",
        "1;a\rb\r\n1\r\n",
        "11111111111111111\r\n",
        "0\r\n\n",
        "0\r\nA: b\n\r\n",
        "1\r\n1",
        "1\r\n1\r\n\r\n",
    ] {
        let text = format!("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
        assert_eq!(refused(&text), 400, "{chunks:?}");
    }
}

#[test]
fn what_is_no_request_is_refused() {
    for text in [
        "\x16\x03\x01\x02\r\n\r\n",
        "SSH-2.0-OpenSSH\r\n\r\n",
        "GET\r\n\r\n",
        "{}\r\n\r\n",
        "GET /\r\n\r\n",
        "GET / FTP/1.1\r\n\r\n",
    ] {
        assert_eq!(refused(text), 400, "{text:?}");
    }
    for version in ["HTTP/2.0", "HTTP/1.2", "HTTP/0.9"] {
        assert_eq!(refused(&format!("GET / {version}\r\nHost: a\r\n\r\n")), 505, "{version}");
    }
    // HTTP/2 begins like this.
    assert_eq!(codes(&whole("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")), [505]);
}

#[test]
fn heads_and_bodies_are_limited_to_the_byte() {
    let limits = ListenLimits { head: 200, body: 100, ..ListenLimits::default() };
    let served = |text: &str| {
        let served = serve(limits, [text.as_bytes()]);
        assert_eq!(served, serve(limits, text.as_bytes().chunks(1)), "{text}");
        (codes(&served), served.requests.len(), served.is_finished)
    };
    let head = |length: usize| {
        let rest = "GET / HTTP/1.1\r\nHost: h\r\nA: \r\n\r\n".len();
        format!("GET / HTTP/1.1\r\nHost: h\r\nA: {}\r\n\r\n", "x".repeat(length - rest))
    };
    assert_eq!(served(&head(200)), (vec![200], 1, false));
    assert_eq!(served(&head(201)), (vec![431], 0, true));
    assert_eq!(served(&"x".repeat(201)), (vec![431], 0, true), "the end of the head is not waited for");
    let sized = |length: usize| {
        let body = "x".repeat(length);
        format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{body}")
    };
    assert_eq!(served(&sized(100)), (vec![200], 1, false));
    assert_eq!(served(&sized(101)), (vec![413], 0, true));
    let chunked = |length: usize| {
        let chunks = "1\r\nx\r\n".repeat(length);
        format!("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}0\r\n\r\n")
    };
    assert_eq!(served(&chunked(100)), (vec![200], 1, false));
    assert_eq!(served(&chunked(101)), (vec![413], 0, true));
    let many = format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n", "a:b\r\n".repeat(RequestDecoder::MAX_HEADERS));
    assert_eq!(codes(&whole(&many)), [431]);
    let long = format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "x".repeat(65_535));
    let wide = ListenLimits { head: 1 << 20, ..limits };
    assert_eq!(codes(&serve(wide, [long.as_bytes()])), [414]);
}

#[test]
fn a_client_that_asks_first_is_told_to_go_on_or_not_to() {
    let post = "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue\r\nContent-Length: ";
    let served = whole(&format!("{post}2\r\n\r\nhi"));
    assert!(served.sent.starts_with(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"));
    assert_eq!(served.requests.len(), 1);
    let served = whole(&format!("{post}0\r\n\r\n"));
    assert_eq!(codes(&served), [200], "there is nothing to ask for");
    let served = whole(&format!("{post}8388609\r\n\r\n"));
    assert_eq!((codes(&served), served.requests.len()), (vec![413], 0));
    let served = whole("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi");
    assert_eq!(codes(&served), [200]);
}

/// A connection under way, at a time.
struct Run {
    connection: ServerConnection,
    now: Now,
    out: Outbox<ServerOutput>,
    deadline: Option<Deadline>,
}

impl Run {
    fn new() -> Self {
        let connection = ServerConnection::new(ListenLimits::default());
        let mut run = Self { connection, now: Now::default(), out: Outbox::new(), deadline: None };
        run.step(None);
        run
    }

    fn step(&mut self, input: Option<ServerInput>) {
        self.deadline = self.connection.step(self.now, input, &mut self.out);
    }

    fn wait(&mut self, duration: Duration) {
        self.now = self.now.after(duration);
        self.step(None);
    }

    /// What is under way.
    fn output(&mut self) -> ServerOutput {
        let output = self.out.pop().unwrap();
        assert!(self.out.is_empty());
        output
    }

    fn ticket(&mut self) -> Ticket {
        match self.output() {
            ServerOutput::Receive { ticket }
            | ServerOutput::Send { ticket, .. }
            | ServerOutput::Handle { ticket, .. }
            | ServerOutput::Finish { ticket } => ticket,
            ServerOutput::Close => panic!("closed"),
        }
    }

    fn receive(&mut self, text: &str) {
        let ticket = self.ticket();
        self.step(Some(ServerInput::Received { ticket, bytes: Bytes::copy_from_slice(text.as_bytes()) }));
    }

    fn answer(&mut self, response: Response<Bytes>) {
        let ticket = self.ticket();
        self.step(Some(ServerInput::Answered { ticket, response }));
    }

    /// What is sent next, whose sending is over then.
    fn sent(&mut self) -> String {
        let ServerOutput::Send { ticket, bytes } = self.output() else { panic!("nothing is sent") };
        self.step(Some(ServerInput::Sent { ticket }));
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    fn left(&self) -> Duration {
        self.deadline.unwrap().at.since(self.now.mono)
    }
}

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_client_that_says_nothing_is_told_nothing() {
    let mut run = Run::new();
    assert_eq!(run.left(), 10 * SECOND, "nobody connects to say nothing");
    run.receive(GET);
    run.answer(Response::new(Bytes::new()));
    assert!(run.sent().starts_with("HTTP/1.1 200"));
    assert_eq!(run.left(), 180 * SECOND);
    run.ticket();
    run.wait(180 * SECOND);
    let ServerOutput::Finish { ticket } = run.output() else { panic!() };
    run.step(Some(ServerInput::Sent { ticket }));
    assert_eq!((run.output(), run.deadline), (ServerOutput::Close, None));
}

#[test]
fn a_head_that_drips_in_is_cut_off_however_it_drips() {
    let mut run = Run::new();
    run.wait(9 * SECOND);
    run.receive("GET / HT");
    for _ in 0..9 {
        run.wait(SECOND);
        run.receive("X");
    }
    assert_eq!(run.left(), SECOND);
    run.ticket();
    run.wait(SECOND);
    let sent = run.sent();
    assert!(sent.starts_with("HTTP/1.1 408 Request Timeout\r\n") && sent.contains("connection: close"), "{sent}");
}

#[test]
fn empty_lines_keep_no_connection() {
    let mut run = Run::new();
    run.receive("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    run.answer(Response::new(Bytes::new()));
    let _ = run.sent();
    let left = run.left();
    for half in ["\r", "\n", "\r", "\n", "\r"] {
        run.wait(SECOND);
        run.receive(half);
    }
    assert_eq!(run.left(), left - 5 * SECOND);
}

#[test]
fn a_body_that_drips_in_is_cut_off_however_it_drips() {
    let mut run = Run::new();
    run.receive("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n");
    for _ in 0..29 {
        run.wait(SECOND);
        run.receive("x");
    }
    run.ticket();
    run.wait(SECOND);
    assert!(run.sent().starts_with("HTTP/1.1 408"));
}

#[test]
fn a_handler_that_takes_too_long_is_given_up_and_the_next_request_is_served() {
    let mut run = Run::new();
    run.receive(&[GET, GET].concat());
    let late = run.ticket();
    run.wait(30 * SECOND);
    let sent = run.sent();
    assert!(sent.starts_with("HTTP/1.1 503") && !sent.contains("connection: close"), "{sent}");
    run.step(Some(ServerInput::Answered { ticket: late, response: Response::new("late".into()) }));
    run.answer(Response::new("in time".into()));
    assert!(run.sent().ends_with("in time"));
}

#[test]
fn a_handler_that_fails_is_answered_for() {
    let mut run = Run::new();
    run.receive(GET);
    let ticket = run.ticket();
    run.step(Some(ServerInput::Panicked { ticket }));
    assert!(run.sent().starts_with("HTTP/1.1 500"));
    run.receive(GET);
    let mut informational = Response::new(Bytes::new());
    *informational.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    run.answer(informational);
    assert!(run.sent().starts_with("HTTP/1.1 500"), "these announce an answer, and are none");
}

#[test]
fn a_client_that_takes_nothing_in_is_cut_off() {
    let mut run = Run::new();
    run.receive(GET);
    run.answer(Response::new("x".into()));
    assert!(matches!(run.output(), ServerOutput::Send { .. }));
    run.wait(30 * SECOND);
    assert_eq!(run.output(), ServerOutput::Close);
}

#[test]
fn the_last_answer_is_not_lost_while_the_client_sends() {
    let mut run = Run::new();
    run.receive("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9999999\r\n\r\nxxx");
    assert!(run.sent().starts_with("HTTP/1.1 413"));
    let ServerOutput::Finish { ticket } = run.output() else { panic!() };
    run.step(Some(ServerInput::Sent { ticket }));
    run.receive("xxxxxxxxxxx");
    run.receive("xxxxxxxxxxx");
    run.receive("");
    assert_eq!(run.output(), ServerOutput::Close);
}

#[test]
fn stopping_lets_what_has_begun_end_and_nothing_else_begin() {
    let mut idle = Run::new();
    idle.ticket();
    idle.step(Some(ServerInput::Stopped));
    assert!(matches!(idle.output(), ServerOutput::Finish { .. }));

    let mut busy = Run::new();
    busy.receive("GET /");
    busy.step(Some(ServerInput::Stopped));
    busy.receive(" HTTP/1.1\r\nHost: h\r\n\r\nGET");
    busy.answer(Response::new("x".into()));
    assert!(busy.sent().contains("connection: close"));
    assert!(matches!(busy.output(), ServerOutput::Finish { .. }));

    let mut answering = Run::new();
    answering.receive(GET);
    answering.answer(Response::new("x".into()));
    answering.step(Some(ServerInput::Stopped));
    assert!(!answering.sent().contains("connection: close"), "that was said already");
    assert!(matches!(answering.output(), ServerOutput::Finish { .. }));
}

#[test]
fn a_connection_that_ends_or_breaks_is_closed() {
    let mut run = Run::new();
    run.receive("");
    assert_eq!(run.output(), ServerOutput::Close);
    let mut run = Run::new();
    run.receive("GET / HTTP/1.1\r\n");
    run.receive("");
    assert_eq!(run.output(), ServerOutput::Close);
    let mut run = Run::new();
    run.receive(GET);
    run.ticket();
    run.step(Some(ServerInput::Broke));
    assert_eq!(run.output(), ServerOutput::Close);
    run.step(Some(ServerInput::Broke));
    run.step(Some(ServerInput::Stopped));
    assert!(run.out.is_empty() && run.deadline.is_none());
}

#[test]
fn answers_have_bodies_where_http_has_them() {
    let answered = |method: &str, response: http::response::Builder, body: &'static str| {
        let mut run = Run::new();
        run.receive(&format!("{method} / HTTP/1.1\r\nHost: h\r\n\r\n"));
        run.answer(response.body(Bytes::from_static(body.as_bytes())).unwrap());
        run.sent().replace("date: Thu, 01 Jan 1970 00:00:00 GMT\r\n", "")
    };
    let ok = Response::builder;
    assert_eq!(answered("GET", ok(), "x"), "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx");
    assert_eq!(answered("HEAD", ok(), "x"), "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n");
    assert_eq!(
        answered("HEAD", ok().header("content-length", "7"), ""),
        "HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n"
    );
    assert_eq!(answered("GET", ok().status(204), "x"), "HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!(answered("GET", ok().status(304), "x"), "HTTP/1.1 304 Not Modified\r\n\r\n");
    assert_eq!(answered("GET", ok().status(599), ""), "HTTP/1.1 599 \r\ncontent-length: 0\r\n\r\n");
    let own = ok().header("content-length", "9").header("transfer-encoding", "chunked").header("keep-alive", "x");
    let own = own.header("a", "1").header("a", "2").header("date", "now").header("connection", "close");
    let answered = answered("GET", own, "x");
    let (head, body) = answered.split_once("\r\n\r\n").unwrap();
    // Headers of different names come in any order.
    let mut lines: Vec<_> = head.split("\r\n").collect();
    lines.sort_unstable();
    assert_eq!(lines, ["HTTP/1.1 200 OK", "a: 1", "a: 2", "connection: close", "content-length: 1", "date: now"]);
    assert_eq!(body, "x");
}

fn streams() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(GET.to_owned()),
        Just("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello".to_owned()),
        Just("PUT /b HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nA: b\r\n\r\n".to_owned()),
        Just("\r\n".to_owned()),
        "[ -~\r\n]{0,8}",
    ];
    (vec(piece, 0..6), vec(any::<u8>(), 0..3), any::<prop::sample::Index>(), any::<bool>()).prop_map(
        |(text, noise, at, noisy)| {
            let mut bytes = text.concat().into_bytes();
            if noisy {
                let at = at.index(bytes.len() + 1);
                bytes.splice(at..at, noise);
            }
            bytes
        },
    )
}

fn tickets(machine: u32) -> Vec<Ticket> {
    let mut tickets = Tickets::new(machine);
    (0..12).map(|_| tickets.issue()).collect()
}

fn script() -> impl Strategy<Value = Vec<Move<ServerInput>>> {
    let ticket = || (0_usize..12).prop_map(|at| tickets(0)[at]);
    let input = prop_oneof![
        3 => (ticket(), prop_oneof![Just(GET), Just("GET /"), Just("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhe"), Just("llo"), Just("")])
            .prop_map(|(ticket, text)| ServerInput::Received { ticket, bytes: Bytes::from_static(text.as_bytes()) }),
        2 => ticket().prop_map(|ticket| ServerInput::Sent { ticket }),
        2 => ticket().prop_map(|ticket| ServerInput::Answered { ticket, response: Response::new("x".into()) }),
        1 => ticket().prop_map(|ticket| ServerInput::Panicked { ticket }),
        1 => Just(ServerInput::Broke),
        1 => Just(ServerInput::Stopped),
    ];
    let wait = (0_u64..40_000).prop_map(|millis| Move::Wait(Duration::from_millis(millis)));
    vec(prop_oneof![1 => wait, 6 => input.prop_map(Move::Input)], 0..60)
}

proptest! {
    #[test]
    fn cut_anywhere_it_is_the_same(bytes in streams(), size: u8) {
        http1_request(&[&[size], &bytes[..]].concat());
        http1_request(&[&[0], &bytes[..]].concat());
    }

    #[test]
    fn no_bytes_are_too_strange(bytes in vec(any::<u8>(), 0..300)) {
        http1_request(&bytes);
        http1_request(&[b"\x03POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", &bytes[..]].concat());
    }

    #[test]
    fn the_laws_hold(script in script()) {
        let make = || ServerConnection::new(ListenLimits::default());
        let ticket = tickets(7)[0];
        let stale = [
            ServerInput::Received { ticket, bytes: "GET".into() },
            ServerInput::Received { ticket, bytes: Bytes::new() },
            ServerInput::Sent { ticket },
            ServerInput::Answered { ticket, response: Response::new(Bytes::new()) },
            ServerInput::Panicked { ticket },
        ];
        laws::same_inputs_same_outputs(make, &script);
        laws::stale_inputs_change_nothing(make, &script, &stale);
        let ended = [&script[..], &[Move::Input(ServerInput::Broke)]].concat();
        laws::ended_stays_ended(&mut make(), &ended, &script);
    }
}
