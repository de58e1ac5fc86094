//! How listeners end.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use cloudcoil_runtime::listener::Handler;
use futures_channel::oneshot;
use futures_util::FutureExt as _;
use futures_util::future::pending;
use http::Response;

use crate::raw::Raw;
use crate::worlds::{World, echo, local};

const LONG: Duration = Duration::from_secs(60);

/// A handler that says when it has begun, and answers when it is let.
fn gated() -> (Handler, Receiver<()>, oneshot::Sender<()>) {
    let (begin, begun) = channel();
    let (open, opened) = oneshot::channel();
    let opened = opened.map(drop).shared();
    let handler: Handler = Arc::new(move |_| {
        let (begin, opened) = (begin.clone(), opened.clone());
        Box::pin(async move {
            begin.send(()).unwrap();
            opened.await;
            Response::new("late".into())
        })
    });
    (handler, begun, open)
}

pub(crate) fn stopping_answers_what_has_begun_and_takes_nothing_new<W: World>() {
    let (handler, begun, open) = gated();
    let server = W::listen(local(), handler).unwrap();
    let address = server.address();
    let (mut idle, mut busy, mut half) = (Raw::plain(address), Raw::plain(address), Raw::plain(address));
    busy.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n");
    begun.recv().unwrap();
    half.send(b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n");
    half.read_to("\r\n\r\n").unwrap();
    let stopping = std::thread::spawn(move || server.stop(LONG));
    assert!(idle.has_ended(), "nobody has asked for anything on it");
    half.send(b"x");
    begun.recv().unwrap();
    open.send(()).unwrap();
    for raw in [&mut busy, &mut half] {
        let said = raw.answer();
        assert_eq!((&*said.text(), said.closes(), raw.has_ended()), ("late", true, true));
    }
    drop((idle, busy, half));
    stopping.join().unwrap();
    assert!(TcpStream::connect(address).is_err());
}

pub(crate) fn what_outlasts_the_grace_is_cut_off<W: World>() {
    let (begin, begun) = channel();
    let stuck: Handler = Arc::new(move |_| {
        begin.send(()).unwrap();
        Box::pin(pending())
    });
    let server = W::listen(local(), stuck).unwrap();
    let mut raw = Raw::plain(server.address());
    raw.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    begun.recv().unwrap();
    server.stop(Duration::from_millis(50));
    assert!(raw.is_over());
}

pub(crate) fn a_dropped_handle_closes_everything<W: World>() {
    let server = W::listen(local(), echo()).unwrap();
    let address = server.address();
    let (mut idle, mut half) = (Raw::plain(address), Raw::plain(address));
    idle.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    idle.answer();
    half.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n");
    half.answer();
    drop(server);
    assert!(idle.is_over() && half.is_over());
}
