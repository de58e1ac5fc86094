//! The same work done by `kube`.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use http::{Request, Response};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::client::Body;
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::scheduler::{ScheduleRequest, scheduler};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use serde_json::Value;

/// Watches an empty list and then `chunks`, into a reflector's store.
pub fn watch_to_store(chunks: &[Bytes]) -> Store<Pod> {
    let chunks = chunks.to_vec();
    let runtime = runtime();
    // The client starts a task when it is made.
    let _entered = runtime.enter();
    let client = client(move |request: &Request<Body>| {
        let watch = request.uri().query().is_some_and(|query| query.contains("watch="));
        if watch { endless(chunks.clone()) } else { whole(Bytes::from_static(EMPTY)) }
    });
    let (store, writer) = reflector::store();
    let watch = watcher(Api::<Pod>::all(client), watcher::Config::default());
    let mut events = std::pin::pin!(watch.reflect(writer).applied_objects());
    runtime.block_on(async {
        let mut seen = 0;
        while seen < WATCHED {
            events.try_next().await.expect("the watch is whole");
            seen += 1;
        }
    });
    store
}

/// How many objects a watch of 20,000 events reports.
pub const WATCHED: usize = 19_800;

/// Lists `body` into a reflector's store.
pub fn list_to_store(body: &Bytes) -> Store<Pod> {
    let body = body.clone();
    let runtime = runtime();
    let _entered = runtime.enter();
    let client = client(move |request: &Request<Body>| {
        let watch = request.uri().query().is_some_and(|query| query.contains("watch="));
        if watch { endless(Vec::new()) } else { whole(body.clone()) }
    });
    let (store, writer) = reflector::store();
    let config = watcher::Config { page_size: None, ..watcher::Config::default() };
    let mut events = std::pin::pin!(watcher(Api::<Pod>::all(client), config).reflect(writer));
    runtime.block_on(async {
        while !matches!(events.try_next().await.expect("the list is whole"), Some(watcher::Event::InitDone)) {}
    });
    store
}

/// Puts `names` into the scheduler and takes them all out again.
pub fn queue(names: &[String]) -> usize {
    let runtime = runtime();
    let _entered = runtime.enter();
    let now = tokio::time::Instant::now();
    let requests: Vec<_> = names
        .iter()
        .map(|name| ScheduleRequest { message: ObjectRef::<ConfigMap>::new(name).within("default"), run_at: now })
        .collect();
    runtime.block_on(async {
        let open = stream::iter(requests).chain(stream::pending());
        scheduler(open).take(names.len()).count().await
    })
}

/// The difference of two values as a JSON patch.
pub fn diff(old: &Value, new: &Value) -> usize {
    json_patch::diff(old, new).0.len()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime without sockets")
}

type Answer = UnsyncBoxBody<Bytes, Infallible>;

fn client(answer: impl Fn(&Request<Body>) -> Answer + Clone + Send + 'static) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let body = answer(&request);
        async move { Ok::<_, Infallible>(Response::new(body)) }
    });
    Client::new(service, "default")
}

fn whole(body: Bytes) -> Answer {
    Full::new(body).boxed_unsync()
}

/// The chunks, and then silence: a watch that goes on.
fn endless(chunks: Vec<Bytes>) -> Answer {
    let frames = stream::iter(chunks).map(|chunk| Ok(Frame::data(chunk))).chain(stream::pending());
    StreamBody::new(frames).boxed_unsync()
}

const EMPTY: &[u8] = br#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}"#;
