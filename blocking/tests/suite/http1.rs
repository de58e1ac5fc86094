use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use cloudcoil_blocking::core::{Answer, NetworkErrorKind};
use cloudcoil_blocking::{Cancel, Client, Config, Connect as _, Error, RetryPolicy, Transport as _, UreqTransport};
use http::{Method, Request};

use crate::common::{is_closed, raw, read_head, write};

const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";

fn config(address: SocketAddr) -> Config {
    Config::new(&format!("http://{address}")).unwrap()
}

fn client(address: SocketAddr) -> Client {
    Client::try_from_config(&config(address)).unwrap().with_retry(RetryPolicy::OFF)
}

fn request(method: Method) -> Request<Bytes> {
    Request::builder().method(method).uri("/x?a=b").body(Bytes::new()).unwrap()
}

fn get(client: &Client) -> Result<Answer, Error> {
    client.request(request(Method::GET))
}

fn kind(result: Result<Answer, Error>) -> NetworkErrorKind {
    match result {
        Err(Error::Network(error)) => error.kind,
        other => panic!("{other:?}"),
    }
}

/// What a client makes of this answer, after which the server closes the connection.
fn answered(answer: &'static [u8]) -> Result<Answer, Error> {
    get(&client(raw(move |_, mut stream| {
        read_head(&mut stream);
        write(&mut stream, answer);
    })))
}

#[test]
fn a_connection_serves_one_request_after_the_other_when_answers_are_read_whole() {
    let (heads, seen) = mpsc::channel();
    let client = client(raw(move |number, mut stream| {
        while let Some(head) = read_head(&mut stream) {
            heads.send((number, head)).unwrap();
            write(&mut stream, HELLO);
        }
    }));
    for _ in 0..3 {
        assert_eq!(get(&client).unwrap().body, b"hello");
    }
    drop(client);
    let seen: Vec<_> = seen.try_iter().collect();
    assert!(seen.iter().all(|(number, head)| *number == 0 && head.starts_with("GET /x?a=b HTTP/1.1\r\n")), "{seen:?}");
    assert_eq!(seen.len(), 3);
}

#[test]
fn bodies_come_in_every_framing() {
    for answer in [
        HELLO,
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\n\r\nhello",
    ] {
        assert_eq!(answered(answer).unwrap().body, b"hello", "{}", String::from_utf8_lossy(answer));
    }
    assert!(answered(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap().body.is_empty());
    let moved = answered(b"HTTP/1.1 302 Found\r\nlocation: /y\r\ncontent-length: 0\r\n\r\n").unwrap();
    assert_eq!(moved.status.as_u16(), 302);
}

#[test]
fn a_body_that_ends_early_is_lost() {
    for answer in [
        &b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf"[..],
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-",
    ] {
        assert_eq!(kind(answered(answer)), NetworkErrorKind::Lost, "{}", String::from_utf8_lossy(answer));
    }
}

#[test]
fn what_is_not_http_is_malformed() {
    for answer in [
        &b"SSH-2.0-OpenSSH_9.6\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n",
    ] {
        assert_eq!(kind(answered(answer)), NetworkErrorKind::Protocol, "{}", String::from_utf8_lossy(answer));
    }
}

#[test]
fn a_read_is_repeated_once_when_a_kept_connection_closes_under_it_and_a_write_is_not() {
    let (heads, seen) = mpsc::channel();
    let client = client(raw(move |_, mut stream| {
        // Answers once, and closes when it is asked again.
        let first = read_head(&mut stream).unwrap();
        write(&mut stream, HELLO);
        heads.send(first).unwrap();
        read_head(&mut stream).into_iter().for_each(|head| heads.send(head).unwrap());
    }));
    for _ in 0..3 {
        assert_eq!(get(&client).unwrap().body, b"hello");
    }
    // The connection at hand has answered the last read.
    assert_eq!(kind(client.request(request(Method::POST))), NetworkErrorKind::Lost);
    let methods: Vec<String> = seen.try_iter().map(|head| head.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(methods, ["GET", "GET", "GET", "GET", "GET", "POST"]);
}

#[test]
fn where_nobody_listens_there_is_no_connection() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(kind(get(&client(address))), NetworkErrorKind::Connect);
    let nowhere = Config::new("http://no-such-host.invalid").unwrap();
    assert_eq!(
        kind(get(&Client::try_from_config(&nowhere).unwrap().with_retry(RetryPolicy::OFF))),
        NetworkErrorKind::Connect
    );
}

#[test]
fn a_request_that_takes_too_long_is_given_up_and_its_connection_closed() {
    let (closed, is_closed_now) = mpsc::channel();
    let client = client(raw(move |_, mut stream| {
        read_head(&mut stream);
        closed.send(is_closed(&mut stream)).unwrap();
    }));
    let limit = Duration::from_millis(20);
    assert_eq!(get(&client.with_timeout(Some(limit))), Err(Error::TimedOut(limit)));
    assert_eq!(is_closed_now.recv(), Ok(true));
}

#[test]
fn cancelling_ends_a_call_that_is_blocked_and_the_reading_of_a_body() {
    let (asked, is_asked) = mpsc::channel();
    let transport = UreqTransport::new(&config(raw(move |number, mut stream| {
        read_head(&mut stream);
        if number == 1 {
            write(&mut stream, b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n");
        }
        asked.send(()).unwrap();
        assert!(is_closed(&mut stream));
    })))
    .unwrap();
    let cancel = Cancel::new();
    thread::scope(|scope| {
        let sending = scope.spawn(|| transport.send(request(Method::GET), &cancel).err().unwrap());
        is_asked.recv().unwrap();
        assert!(cancel.cancel());
        assert_eq!(sending.join().unwrap().kind, NetworkErrorKind::Lost);
    });
    let cancel = Cancel::new();
    let mut body = transport.send(request(Method::GET), &cancel).unwrap().into_body();
    assert_eq!(body.next(), Some(Ok(Bytes::from_static(b"hello"))));
    thread::scope(|scope| {
        let reading = scope.spawn(|| body.next());
        is_asked.recv().unwrap();
        assert!(cancel.cancel());
        assert_eq!(reading.join().unwrap().unwrap().unwrap_err().kind, NetworkErrorKind::Lost);
    });
    let late = Cancel::new();
    late.cancel();
    assert!(transport.send(request(Method::GET), &late).is_err());
}

#[test]
fn an_exchange_that_is_over_cannot_close_the_connection_that_another_uses() {
    let (asked, is_asked) = mpsc::channel();
    let (go, may_go) = mpsc::channel::<()>();
    let transport = UreqTransport::new(&config(raw(move |_, mut stream| {
        while read_head(&mut stream).is_some() {
            asked.send(()).unwrap();
            may_go.recv().unwrap();
            write(&mut stream, HELLO);
        }
    })))
    .unwrap();
    let fetch = |cancel: &Cancel| {
        let body = transport.send(request(Method::GET), cancel)?.into_body();
        body.collect::<Result<Vec<_>, _>>()
    };
    let over = Cancel::new();
    go.send(()).unwrap();
    fetch(&over).unwrap();
    is_asked.recv().unwrap();
    thread::scope(|scope| {
        let fetching = scope.spawn(|| fetch(&Cancel::new()));
        is_asked.recv().unwrap();
        over.cancel();
        go.send(()).unwrap();
        assert_eq!(fetching.join().unwrap().unwrap().concat(), b"hello");
    });
}

#[test]
fn a_request_that_dials_again_has_no_connection_that_could_be_closed() {
    let (gone, is_gone) = mpsc::channel();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let transport = UreqTransport::new(&config(listener.local_addr().unwrap())).unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        read_head(&mut stream);
        write(&mut stream, HELLO);
        drop((stream, listener));
        gone.send(()).unwrap();
    });
    let cancel = Cancel::new();
    let body = transport.send(request(Method::GET), &cancel).unwrap().into_body();
    assert_eq!(body.collect::<Result<Vec<_>, _>>().unwrap().concat(), b"hello");
    is_gone.recv().unwrap();
    // The connection that is kept is tried first.
    let cancel = Cancel::new();
    let refused = transport.send(request(Method::GET), &cancel).err().unwrap();
    assert_eq!(refused.kind, NetworkErrorKind::Connect);
    assert!(!cancel.cancel(), "a connection that is not used any more");
    // What is left of an attempt before.
    let cancel = Cancel::new();
    cancel.on_cancel(|| ());
    assert!(transport.send(request(Method::GET), &cancel).is_err());
    assert!(!cancel.cancel(), "what was lent before");
}

#[test]
fn a_request_that_was_given_up_makes_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let transport = UreqTransport::new(&config(listener.local_addr().unwrap())).unwrap();
    let cancel = Cancel::new();
    cancel.cancel();
    assert!(transport.send(request(Method::GET), &cancel).is_err());
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn a_large_body_goes_both_ways() {
    let cluster = crate::common::Cluster::start_tls();
    let maps = cluster.client().api::<k8s_openapi::api::core::v1::ConfigMap>();
    let text = "x".repeat(900 << 10);
    let made = maps.create(&crate::common::map("large", &text)).send().unwrap();
    assert_eq!(crate::common::value(&made), text);
}

/// `hi`, in gzip.
const HI: &[u8] = &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xcb, 0xc8, 4, 0, 0xac, 0x2a, 0x93, 0xd8, 2, 0, 0, 0];

#[test]
fn a_compressed_answer_is_read_plain_and_a_damaged_one_fails() {
    let (heads, seen) = mpsc::channel();
    let address = raw(move |number, mut stream| {
        heads.send(read_head(&mut stream).unwrap().to_lowercase()).unwrap();
        let body = &HI[..HI.len() - 2 * number];
        let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n", body.len());
        write(&mut stream, &[head.as_bytes(), body].concat());
    });
    assert_eq!(get(&client(address)).unwrap().body, b"hi");
    assert_eq!(kind(get(&client(address))), NetworkErrorKind::Protocol);
    let asked = seen.try_iter().map(|head| head.contains("\r\naccept-encoding: gzip\r\n"));
    assert_eq!(asked.collect::<Vec<_>>(), [true, true]);
}
