//! What listeners do not do for a client.

use std::sync::Arc;
use std::time::Duration;

use cloudcoil_apiserver::Tls as Authority;
use cloudcoil_runtime::core::listen::{ListenConfig, ListenLimits};
use cloudcoil_runtime::listener::Handler;
use futures_util::future::pending;

use crate::raw::{Raw, served};
use crate::worlds::{World, echo, local};

const SHORT: Duration = Duration::from_millis(50);

fn limited(limits: ListenLimits) -> ListenConfig {
    ListenConfig { limits, ..local() }
}

pub(crate) fn bodies_are_limited_to_the_byte<W: World>() {
    let server = W::listen(limited(ListenLimits { body: 1000, ..ListenLimits::default() }), echo()).unwrap();
    let sized =
        |length: usize| format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{}", "x".repeat(length));
    let chunked = |length: usize| {
        let (one, other) = (length / 2, length - length / 2);
        let chunks = format!("{one:x}\r\n{}\r\n{other:x}\r\n{}\r\n0\r\n\r\n", "x".repeat(one), "x".repeat(other));
        format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}")
    };
    for text in [sized(1000), chunked(1000)] {
        let mut raw = Raw::plain(server.address());
        raw.send(text.as_bytes());
        assert_eq!(raw.answer().body.len(), "POST / ".len() + 1000);
    }
    for text in [sized(1001), chunked(1001)] {
        let mut raw = Raw::plain(server.address());
        raw.send(text.as_bytes());
        let said = raw.answer();
        assert_eq!((said.status, said.closes(), raw.has_ended()), (413, true, true));
        assert_eq!(said.text(), "the body of the request is longer than 1000 bytes\n");
    }
}

pub(crate) fn a_client_that_is_told_of_its_limit_hears_it_while_it_sends<W: World>() {
    let server = W::listen(local(), echo()).unwrap();
    let mut raw = Raw::plain(server.address());
    raw.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", (8 << 20) + 1).as_bytes());
    let piece = vec![b'x'; 64 << 10];
    for _ in 0..128 {
        // Once the server has waited long enough for the end, this may fail; what it has said is there all the same.
        if raw.try_send(&piece).is_err() {
            break;
        }
    }
    assert_eq!(raw.answer().status, 413);
}

pub(crate) fn heads_are_limited<W: World>() {
    let server = W::listen(local(), echo()).unwrap();
    for (text, status) in [
        (format!("GET / HTTP/1.1\r\nHost: a\r\nA: {}\r\n\r\n", "x".repeat(60_000)), 200),
        (format!("GET / HTTP/1.1\r\nHost: a\r\nA: {}\r\n\r\n", "x".repeat(66_000)), 431),
        (format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "A: b\r\n".repeat(129)), 431),
    ] {
        let mut raw = Raw::plain(server.address());
        raw.send(text.as_bytes());
        assert_eq!(raw.answer().status, status);
    }
}

pub(crate) fn slow_clients_are_cut_off<W: World>() {
    let authority = Authority::generate(&[]).unwrap();
    let limits = ListenLimits { arrival: SHORT, transfer: SHORT, idle: SHORT, ..ListenLimits::default() };
    let plain = W::listen(limited(limits), echo()).unwrap();
    let secure = W::listen(ListenConfig { tls: Some(served(&authority)), ..limited(limits) }, echo()).unwrap();

    assert!(Raw::plain(plain.address()).has_ended(), "nothing said");
    assert!(Raw::plain(secure.address()).is_over(), "no handshake");
    let mut head = Raw::plain(plain.address());
    head.send(b"GET / HTTP/1.1\r\nHost:");
    assert_eq!((head.answer().status, head.has_ended()), (408, true));
    let mut body = Raw::plain(plain.address());
    body.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nx");
    assert_eq!((body.answer().status, body.has_ended()), (408, true));
    let mut idle = Raw::plain(plain.address());
    idle.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!((idle.answer().status, idle.has_ended()), (200, true));
}

pub(crate) fn a_slow_handler_is_given_up<W: World>() {
    let stuck: Handler = Arc::new(|_| Box::pin(pending()));
    let server = W::listen(limited(ListenLimits { handler: SHORT, ..ListenLimits::default() }), stuck).unwrap();
    let mut raw = Raw::plain(server.address());
    raw.send(b"GET /stuck HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(raw.answer().status, 503);
    raw.send(b"GET /stuck HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(raw.answer().status, 503, "the connection goes on");
}

pub(crate) fn connections_over_the_limit_wait<W: World>() {
    let server = W::listen(limited(ListenLimits { connections: 2, ..ListenLimits::default() }), echo()).unwrap();
    let ask = |raw: &mut Raw| raw.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut open = [Raw::plain(server.address()), Raw::plain(server.address())];
    for raw in &mut open {
        ask(raw);
        assert_eq!(raw.answer().status, 200);
    }
    let mut waiting = Raw::plain(server.address());
    ask(&mut waiting);
    for raw in &mut open {
        ask(raw);
        assert_eq!(raw.answer().status, 200);
    }
    let Raw::Plain(tcp) = &waiting else { unreachable!("it is plain") };
    tcp.set_nonblocking(true).unwrap();
    assert!(!waiting.is_over(), "nobody has taken it yet");
    let Raw::Plain(tcp) = &waiting else { unreachable!("it is plain") };
    tcp.set_nonblocking(false).unwrap();
    let [one, _other] = open;
    drop(one);
    assert_eq!(waiting.answer().status, 200);
}
