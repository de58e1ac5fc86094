//! HTTP/2, which API servers prefer, on the adapter that has it.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cloudcoil_apiserver::Tls as Authority;
use cloudcoil_runtime::core::config::Config;
use cloudcoil_runtime::core::listen::{ListenConfig, ListenLimits, failure};
use cloudcoil_runtime::core::{Error, RetryPolicy, http};
use cloudcoil_runtime::listener::Handler;
use cloudcoil_runtime::{Client, Listener as _};
use cloudcoil_tokio::Connect as _;
use futures_channel::oneshot;
use futures_util::FutureExt as _;
use futures_util::future::{join_all, pending};
use http::{Method, Response, StatusCode, Version};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::raw::{Raw, served, trusting};
use crate::worlds::{Tokio, World as _, handler, local};

/// Runs `talk` with a client and what listens to it.
fn over_http2<F: Future<Output = ()>>(
    limits: ListenLimits,
    handler: Handler,
    talk: impl FnOnce(Client, cloudcoil_runtime::listener::ListenHandle) -> F,
) {
    let authority = Authority::generate(&[]).unwrap();
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    tokio.block_on(async {
        let config = ListenConfig { tls: Some(served(&authority)), limits, ..local() };
        let handle = cloudcoil_tokio::runtime().listen(config, handler).await.unwrap();
        let mut config = Config::new(&format!("https://{}", handle.address())).unwrap();
        config.tls = trusting(&authority);
        talk(Client::try_from_config(&config).unwrap().with_retry(RetryPolicy::OFF), handle).await;
    });
}

fn map(length: usize) -> ConfigMap {
    let data = Some([("x".to_owned(), "y".repeat(length))].into());
    ConfigMap { metadata: ObjectMeta { name: Some("a".into()), ..ObjectMeta::default() }, data, ..ConfigMap::default() }
}

fn named() -> Response<Bytes> {
    Response::new(r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#.into())
}

fn code(error: &Error) -> u16 {
    error.code().unwrap_or_else(|| panic!("{error:?}"))
}

/// Says of one path that it panics, of one that it never ends, and of others the name.
fn odd() -> Handler {
    Arc::new(|request| {
        assert_eq!(request.version(), Version::HTTP_2);
        Box::pin(async move {
            match request.uri().path().rsplit('/').next() {
                Some("panic") => panic!("as it was told to"),
                Some("stuck") => pending().await,
                Some("odd") => failure(StatusCode::CONTINUE, "this is no answer"),
                Some("gone") => failure(StatusCode::NO_CONTENT, "there is no body to this"),
                _ => named(),
            }
        })
    })
}

#[test]
fn what_goes_wrong_is_answered_for_as_over_http1() {
    let limits = ListenLimits { body: 10_000, handler: Duration::from_millis(500), ..ListenLimits::default() };
    over_http2(limits, odd(), |client, handle| async move {
        let _open = handle;
        let maps = client.api::<ConfigMap>();
        assert_eq!(code(&maps.get("panic").await.unwrap_err()), 500);
        assert_eq!(code(&maps.get("stuck").await.unwrap_err()), 503);
        assert_eq!(code(&maps.get("odd").await.unwrap_err()), 500);
        assert_eq!(code(&maps.create(&map(11_000)).await.unwrap_err()), 413);
        assert!(maps.create(&map(9000)).await.is_ok());
        assert!(maps.get("gone").await.is_err(), "there is nothing to read");
        assert!(maps.get("a").await.is_ok());
    });
}

#[test]
fn many_requests_share_a_connection() {
    over_http2(ListenLimits { connections: 1, ..ListenLimits::default() }, odd(), |client, handle| async move {
        let _open = handle;
        client.api::<ConfigMap>().get("a").await.unwrap();
        let maps = client.api::<ConfigMap>();
        for answer in join_all((0..50).map(|_| async { maps.get("a").await })).await {
            assert!(answer.is_ok());
        }
    });
}

#[test]
fn large_bodies_wait_for_room_and_are_all_taken() {
    let limits = ListenLimits { connections: 1, body: 100_000, ..ListenLimits::default() };
    over_http2(limits, odd(), |client, handle| async move {
        let _open = handle;
        client.api::<ConfigMap>().get("a").await.unwrap();
        let (maps, large) = (client.api::<ConfigMap>(), map(90_000));
        for answer in join_all((0..30).map(|_| async { maps.create(&large).await })).await {
            assert!(answer.is_ok(), "{answer:?}");
        }
    });
}

#[test]
fn a_connection_without_requests_is_closed_after_a_while() {
    let authority = Authority::generate(&[]).unwrap();
    let limits = ListenLimits { arrival: Duration::from_millis(100), ..ListenLimits::default() };
    let server = Tokio::listen(ListenConfig { tls: Some(served(&authority)), limits, ..local() }, odd()).unwrap();
    let mut raw = Raw::tls_for(server.address(), &trusting(&authority), b"h2").unwrap();
    // The words that begin every connection, and no settings.
    raw.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    while !raw.is_over() {}
    let mut silent = Raw::tls_for(server.address(), &trusting(&authority), b"h2").unwrap();
    while !silent.is_over() {}
}

#[test]
fn an_answer_that_is_not_taken_ends_its_connection() {
    // The words that begin every connection, with settings that leave no room for an answer, some, or all of it.
    let settings = |window: u32| {
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x06\x04\0\0\0\0\0\0\x04";
        [&preface[..], &window.to_be_bytes()].concat()
    };
    // GET https://a/
    let request = b"\0\0\x06\x01\x05\0\0\0\x01\x82\x84\x87\x41\x01a";
    let authority = Authority::generate(&[]).unwrap();
    let limits = ListenLimits { reply: Duration::from_millis(200), ..ListenLimits::default() };
    let long = handler(|_| Response::new(vec![b'x'; 60_000].into()));
    let server = Tokio::listen(ListenConfig { tls: Some(served(&authority)), limits, ..local() }, long).unwrap();
    let connect = || Raw::tls_for(server.address(), &trusting(&authority), b"h2").unwrap();
    for window in [0, 20_000] {
        let (mut raw, started) = (connect(), Instant::now());
        raw.send(&[&settings(window)[..], request].concat());
        while !raw.is_over() {
            assert!(started.elapsed() < Duration::from_secs(50), "{window}");
        }
    }
    let (mut taking, started) = (connect(), Instant::now());
    taking.send(&[&settings(60_000)[..], request].concat());
    while started.elapsed() < 2 * limits.reply {
        taking.send(b"\0\0\x08\x06\0\0\0\0\0are you?");
        taking.read_to("are you?").expect("a connection whose answers are taken stays open");
    }
}

#[test]
fn stopping_answers_what_has_begun() {
    let (begin, begun) = channel();
    let (open, opened) = oneshot::channel::<()>();
    let opened = opened.map(drop).shared();
    let gated: Handler = Arc::new(move |request| {
        let (begin, opened) = (begin.clone(), opened.clone());
        Box::pin(async move {
            assert_eq!(request.method(), Method::GET);
            begin.send(()).unwrap();
            opened.await;
            named()
        })
    });
    over_http2(ListenLimits::default(), gated, |client, handle| async move {
        let maps = client.api::<ConfigMap>();
        let asked = tokio::spawn(async move { maps.get("a").await });
        tokio::task::spawn_blocking(move || begun.recv().unwrap()).await.unwrap();
        let stopping = tokio::spawn(handle.stop(Duration::from_secs(60)));
        open.send(()).unwrap();
        assert!(asked.await.unwrap().is_ok());
        stopping.await.unwrap();
    });
}
