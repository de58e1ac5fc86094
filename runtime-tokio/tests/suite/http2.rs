//! HTTP/2: requests that are not taken up, and what is read of an answer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use cloudcoil_tokio::core::config::{Pem, Secret};
use cloudcoil_tokio::core::{BackoffPolicy, NetworkError, NetworkErrorKind, RetryPolicy};
use cloudcoil_tokio::{Api, Client, Config, Connect as _, Error, HyperTransport, TokioRuntime, Transport as _};
use futures_util::future::join_all;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::frames::{
    ANY_STREAM, Asked, CANCEL, ENHANCE_YOUR_CALM, Frames, INTERNAL_ERROR, NO_ERROR, REFUSED_STREAM, Said, answer, data,
    go_away, head, nothing, reset,
};
use crate::server::{body, serve, whole};
use crate::tls::{authority, issued, server_config};

const MAP: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"1"}}"#;
const LIST: &str = r#"{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"1"},"items":[]}"#;

/// Sends each request once, as far as that is for a policy to say.
fn once(server: &Frames) -> Api<ConfigMap> {
    Client::try_from_config(&server.config).unwrap().with_retry(RetryPolicy::OFF).api()
}

fn map(name: &str) -> ConfigMap {
    let metadata = ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
    ConfigMap { metadata, ..ConfigMap::default() }
}

#[track_caller]
fn network(error: Error) -> NetworkError {
    match error {
        Error::Network(error) => error,
        other => panic!("no failure of the network: {other:?}"),
    }
}

/// A server that says this to the first request, and answers all others.
async fn first(mut say: impl FnMut(u32) -> Said + Send + 'static) -> Frames {
    let mut is_first = true;
    Frames::serve(move |_, asked| match asked {
        None => nothing(),
        Some(asked) if std::mem::replace(&mut is_first, false) => say(asked.stream),
        Some(asked) => answer(asked.stream, MAP),
    })
    .await
}

#[tokio::test]
async fn a_write_that_is_not_taken_up_is_sent_again_over_another_connection() {
    type Say = fn(u32) -> Said;
    let rows: [(&str, Say); 6] = [
        ("a stream is refused", |stream| reset(stream, REFUSED_STREAM)),
        ("a connection is closing", |_| go_away(0, NO_ERROR)),
        ("it has closed", |_| go_away(0, NO_ERROR).and_close()),
        ("it is closing in two steps", |_| go_away(ANY_STREAM, NO_ERROR).and(go_away(0, NO_ERROR))),
        ("it has had enough", |_| go_away(0, ENHANCE_YOUR_CALM).and_close()),
        ("it has failed before it looked", |_| go_away(0, INTERNAL_ERROR).and_close()),
    ];
    for (what, say) in rows {
        let server = first(say).await;
        once(&server).create(&map("a")).await.unwrap_or_else(|error| panic!("{what}: {error:?}"));
        assert_eq!(server.streams(), [(0, 1), (1, 1)], "{what}");
        let bodies: Vec<_> = server.asked().into_iter().map(|asked| asked.body).collect();
        assert!(bodies[0].contains("ConfigMap") && bodies[0] == bodies[1], "{what}: {bodies:?}");
    }
}

#[tokio::test]
async fn a_write_that_may_have_been_done_is_not_sent_again() {
    type Say = fn(u32) -> Said;
    let rows: [(&str, Say); 8] = [
        ("nothing is said", |_| nothing().and_close()),
        ("the stream fails", |stream| reset(stream, INTERNAL_ERROR)),
        ("it is cancelled", |stream| reset(stream, CANCEL)),
        ("the connection takes it up, and fails", |stream| go_away(stream, INTERNAL_ERROR).and_close()),
        ("the connection takes all up, and closes", |_| go_away(ANY_STREAM, NO_ERROR).and_close()),
        ("refused in the midst of the answer", |stream| head(stream, &[]).and(reset(stream, REFUSED_STREAM))),
        ("broken off for no reason", |stream| {
            head(stream, &[]).and(data(stream, &MAP[..9], false)).and(reset(stream, 0))
        }),
        ("left out in the midst of the answer", |stream| head(stream, &[]).and(go_away(0, NO_ERROR)).and_close()),
    ];
    for (what, say) in rows {
        let server = first(say).await;
        let error = network(once(&server).create(&map("a")).await.unwrap_err());
        assert_eq!(error.kind, NetworkErrorKind::Lost, "{what}: {error}");
        assert_eq!(server.streams(), [(0, 1)], "{what}");
    }
}

#[tokio::test]
async fn what_a_closing_connection_has_taken_up_is_answered() {
    let server = first(|stream| {
        go_away(ANY_STREAM, NO_ERROR).and(go_away(stream, NO_ERROR)).and(answer(stream, MAP)).and_close()
    })
    .await;
    let maps = once(&server);
    maps.create(&map("a")).await.unwrap();
    maps.create(&map("b")).await.unwrap();
    assert_eq!(server.streams(), [(0, 1), (1, 1)], "nothing more goes over it");
}

#[tokio::test]
async fn a_write_that_crosses_the_closing_of_an_idle_connection_is_sent_again() {
    let server = Frames::serve(|connection, asked| match asked {
        None => nothing(),
        // The connection has closed behind the first answer, when the second request was on its way.
        Some(asked) if connection == 0 && asked.stream > 1 => go_away(1, NO_ERROR).and_close(),
        Some(asked) => answer(asked.stream, MAP),
    })
    .await;
    let maps = once(&server);
    maps.get("a").await.unwrap();
    maps.create(&map("a")).await.unwrap();
    assert_eq!(server.streams(), [(0, 1), (0, 3), (1, 1)]);
}

#[tokio::test]
async fn a_connection_that_closes_as_soon_as_it_is_open_is_followed_by_another() {
    let server = Frames::serve(|connection, asked| match asked {
        None if connection == 0 => go_away(0, NO_ERROR).and_close(),
        None => nothing(),
        Some(asked) => answer(asked.stream, MAP),
    })
    .await;
    once(&server).create(&map("a")).await.unwrap();
    assert_eq!(server.streams(), [(1, 1)]);
}

#[tokio::test]
async fn a_read_is_repeated_when_its_connection_closes_under_it_and_a_write_is_not() {
    let server = Frames::serve(|_, asked| match asked {
        None => nothing(),
        Some(asked) if asked.stream > 1 => nothing().and_close(),
        Some(asked) => answer(asked.stream, MAP),
    })
    .await;
    let maps = once(&server);
    maps.get("a").await.unwrap();
    maps.get("a").await.unwrap();
    let error = network(maps.create(&map("a")).await.unwrap_err());
    assert_eq!(error.kind, NetworkErrorKind::Lost, "{error}");
    assert_eq!(server.streams(), [(0, 1), (0, 3), (1, 1), (1, 3)]);
}

#[test]
fn a_write_whose_connection_ends_with_its_runtime_may_have_been_done() {
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (servers, firsts, seconds) = (runtime(), runtime(), runtime());
    let (tell, told) = std::sync::mpsc::channel();
    let server = servers.block_on(Frames::serve(move |_, asked| match asked {
        Some(asked) if asked.stream == 1 => answer(1, MAP),
        Some(_) => {
            tell.send(()).unwrap();
            nothing()
        }
        None => nothing(),
    }));
    let maps = once(&server);
    firsts.block_on(async { maps.get("a").await }).unwrap();
    let second = seconds.spawn(async move { maps.create(&map("a")).await });
    told.recv().unwrap();
    firsts.shutdown_background();
    let error = network(seconds.block_on(second).unwrap().unwrap_err());
    assert_eq!(error.kind, NetworkErrorKind::Lost, "{error}");
}

#[tokio::test]
async fn a_server_that_takes_nothing_up_is_given_up() {
    let server =
        Frames::serve(|_, asked| asked.map_or_else(nothing, |asked| reset(asked.stream, REFUSED_STREAM))).await;
    let backoff = BackoffPolicy { first: Duration::from_millis(1), cap: Duration::from_millis(2), jitter: 0 };
    let client = Client::try_from_config(&server.config).unwrap();
    let client = client.with_retry(RetryPolicy { backoff, ..RetryPolicy::DEFAULT });
    let error = network(client.api::<ConfigMap>().create(&map("a")).await.unwrap_err());
    let named = format!(
        "{}: request not taken up: the server refuses it before it has looked at it (6 attempts)",
        server.address
    );
    assert_eq!((error.kind, error.to_string()), (NetworkErrorKind::Unprocessed, named));
    assert_eq!(server.asked().len(), 12, "each attempt is two");
    let error = network(once(&server).get("a").await.unwrap_err());
    assert_eq!(error.kind, NetworkErrorKind::Unprocessed);
    assert_eq!(server.asked().len(), 14);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_are_done_once_each_while_connections_close_under_them() {
    let stored = Arc::new(Mutex::new(BTreeMap::<String, usize>::new()));
    let (store, mut last) = (stored.clone(), BTreeMap::new());
    let server = Frames::serve(move |connection, asked| {
        let Some(Asked { stream, body, .. }) = asked else { return nothing() };
        // A connection takes up a few, and closes while others are on their way.
        let is_last = *stream >= 19 && !last.contains_key(&connection);
        if is_last {
            last.insert(connection, *stream);
        }
        if last.get(&connection).is_some_and(|last| stream > last) {
            return nothing();
        }
        *store.lock().unwrap().entry(body.clone()).or_default() += 1;
        let said = answer(*stream, MAP);
        if is_last { said.and(go_away(*stream, NO_ERROR)) } else { said }
    })
    .await;
    let maps = once(&server);
    let names: Vec<_> = (0..90).map(|number| map(&format!("m{number}"))).collect();
    let results = join_all(names.iter().map(|map| async { maps.create(map).await })).await;
    let failed: Vec<_> = results.into_iter().filter_map(Result::err).map(network).collect();
    assert!(failed.iter().all(|error| error.kind == NetworkErrorKind::Unprocessed), "{failed:?}");
    let stored = stored.lock().unwrap();
    assert!(stored.values().all(|count| *count == 1), "{stored:?}");
    assert_eq!(stored.len() + failed.len(), names.len());
}

#[tokio::test]
async fn a_list_goes_on_where_its_request_was_not_taken_up() {
    let server = Frames::serve(|connection, asked| match asked {
        None => nothing(),
        Some(asked) if connection == 0 => reset(asked.stream, REFUSED_STREAM),
        Some(asked) => head(asked.stream, &[]).and(data(asked.stream, LIST, true)),
    })
    .await;
    assert!(once(&server).list().await.unwrap().items.is_empty());
    assert_eq!(server.streams(), [(0, 1), (1, 1)]);
}

/// The warnings of an API server, one header each, and a header of a length.
fn headers(warnings: usize, length: usize) -> Vec<(String, String)> {
    let warning = |number| ("warning".to_owned(), format!("299 - \"field {number} is deprecated\""));
    (0..warnings).map(warning).chain([("x-long".to_owned(), "x".repeat(length))]).collect()
}

#[tokio::test]
async fn heads_are_as_long_as_over_http1() {
    for (warnings, length, is_read) in [(900, 1, true), (0, 250_000, true), (1100, 1, false), (0, 270_000, false)] {
        let server = first(move |stream| head(stream, &headers(warnings, length)).and(data(stream, MAP, true))).await;
        let maps = once(&server);
        let answered = maps.get("a").await;
        assert_eq!(answered.is_ok(), is_read, "{warnings} {length}");
        if let Err(error) = answered.map_err(network) {
            assert_eq!(
                (error.kind, &*error.message),
                (NetworkErrorKind::Protocol, "the head of the answer is too long")
            );
        }
        maps.get("a").await.unwrap();
        assert_eq!(server.streams(), [(0, 1), (0, 3)], "the others are not disturbed");
    }
}

#[tokio::test]
async fn heads_without_end_are_refused() {
    let server = first(|stream| head(stream, &headers(1, 8 << 20))).await;
    let maps = once(&server);
    assert_eq!(network(maps.get("a").await.unwrap_err()).kind, NetworkErrorKind::Protocol);
    maps.get("a").await.unwrap();
}

#[tokio::test]
async fn readers_who_lag_hold_up_nobody_else() {
    let ca = authority();
    let server =
        serve(Some(server_config(&issued(&ca, "127.0.0.1"), None, &["h2"])), |request| match request.uri().path() {
            "/watch" => body(stream::repeat(Bytes::from(vec![b'x'; 64 << 10]))),
            _ => whole("hello"),
        })
        .await;
    let mut config = Config::new(&format!("https://{}", server.address)).unwrap();
    config.tls.ca = Some(Pem { origin: "test".into(), text: Secret::new(ca.pem()) });
    let transport = HyperTransport::new(&config, TokioRuntime::new()).unwrap();
    let send = |path| transport.send(Request::get(path).body(Bytes::new()).unwrap());
    let mut lagging = join_all((0..20).map(|_| send("/watch"))).await;
    for _ in 0..20 {
        let hello = async { send("/x").await.unwrap().into_body().try_collect::<Vec<Bytes>>().await.unwrap() };
        let hello = tokio::time::timeout(Duration::from_secs(60), hello).await.expect("there is room for it");
        assert_eq!(hello.concat(), b"hello");
    }
    let late = lagging.pop().unwrap().unwrap().into_body();
    let length: usize =
        late.take(100).map(|piece| piece.unwrap().len()).fold(0, |sum, length| async move { sum + length }).await;
    assert!(length > 1 << 20, "it goes on where it was held up: {length}");
    assert_eq!(server.connections(), 1);
}
