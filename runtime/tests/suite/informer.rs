//! Informers and watch streams.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloudcoil_runtime::{Error, Informer, Resource, ResourceKey, Selector, WatchEvent};
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use crate::common::{Piece, Reply, Seen, Server, Virtual, events, json};

fn map(name: &str, version: u32, data: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": data}, "metadata": {"name": name, "namespace": "ns",
        "uid": format!("u-{name}"), "resourceVersion": version.to_string(), "labels": {"app": name}}})
}

fn event(kind: &str, object: Value) -> Value {
    json!({"type": kind, "object": object})
}

fn list(version: u32, items: &[Value]) -> Reply {
    json(200, json!({"kind": "ConfigMapList", "metadata": {"resourceVersion": version.to_string()}, "items": items}))
}

fn is_watch(seen: &Seen) -> bool {
    seen.uri.contains("watch=true")
}

/// Refuses streaming lists, answers lists with `items`, and watches with `watches` one after the other.
fn cluster(
    runtime: &Virtual,
    items: Vec<Value>,
    watches: impl IntoIterator<Item = Reply, IntoIter: Send + 'static>,
) -> Arc<Server> {
    let mut watches = watches.into_iter();
    Server::new(runtime, move |seen| match is_watch(seen) {
        true if seen.uri.contains("sendInitialEvents") => Some(json(
            400,
            json!({"kind": "Status", "code": 400, "reason": "BadRequest", "message": "sendInitialEvents is forbidden"}),
        )),
        true => watches.next(),
        false => Some(list(5, &items)),
    })
}

type Log = Arc<Mutex<Vec<String>>>;

fn logged(log: &Log) -> Vec<String> {
    std::mem::take(&mut log.lock().unwrap())
}

fn writing(log: &Log, informer: Informer<ConfigMap>) -> Informer<ConfigMap> {
    let write = |log: &Log| {
        let log = log.clone();
        move |text: String| log.lock().unwrap().push(text)
    };
    let (add, update, delete, error) = (write(log), write(log), write(log), write(log));
    let data = |map: &ConfigMap| map.data.as_ref().map_or(String::new(), |data| data["x"].clone());
    informer
        .on_add(move |map| add(format!("+{}", map.name())))
        .on_update(move |old, new| update(format!("{} {}>{}", new.name(), data(&old), data(&new))))
        .on_delete(move |map| delete(format!("-{}", map.name())))
        .on_error(move |text| error(format!("!{text}")))
}

fn key(name: &str) -> ResourceKey {
    ResourceKey::new(Some("ns"), name).unwrap()
}

#[test]
fn handlers_hear_of_what_exists_and_of_each_change() {
    let runtime = Virtual::new();
    let changes = events([
        event("MODIFIED", map("a", 6, "2")),
        event("ADDED", map("c", 7, "1")),
        event("DELETED", map("b", 8, "1")),
    ]);
    let server = cluster(&runtime, vec![map("a", 1, "1"), map("b", 2, "1")], [changes]);
    let log = Log::default();
    runtime.run(async {
        let informer = writing(&log, Informer::new(server.client())).start();
        assert!(!informer.has_synced() && informer.is_empty());
        informer.wait_synced(Duration::from_secs(60)).await.unwrap();
        runtime.sleep(Duration::from_secs(1)).await;
        assert_eq!(logged(&log), ["+a", "+b", "a 1>2", "+c", "-b"]);
        assert_eq!(informer.keys(), [key("a"), key("c")]);
        assert_eq!(server.open(), 1);
        drop(informer);
        runtime.sleep(Duration::from_secs(1)).await;
        assert_eq!(server.open(), 0, "nobody wants the informer any more");
    });
}

#[test]
fn late_handlers_hear_of_what_is_held_as_additions() {
    let runtime = Virtual::new();
    let mut changes = events([event("MODIFIED", map("a", 6, "2"))]);
    changes.pieces.insert(0, Piece::Wait(Duration::from_secs(10)));
    let server = cluster(&runtime, vec![map("a", 1, "1"), map("b", 2, "1")], [changes]);
    let log = Log::default();
    runtime.run(async {
        let informer = Informer::<ConfigMap>::new(server.client()).start();
        informer.wait_synced(Duration::from_secs(60)).await.unwrap();
        let write = log.clone();
        informer.on_add(move |map| write.lock().unwrap().push(format!("+{}", map.name())));
        let write = log.clone();
        informer.on_update(move |_, new| write.lock().unwrap().push(new.name().to_owned()));
        runtime.sleep(Duration::from_secs(20)).await;
        assert_eq!(logged(&log), ["+a", "+b", "a"]);
    });
}

#[test]
fn a_lost_connection_hides_nothing() {
    let runtime = Virtual::new();
    let mut broken = events([event("MODIFIED", map("a", 6, "2"))]);
    broken.pieces.push(Piece::Break);
    let gone = json(410, json!({"kind": "Status", "code": 410, "reason": "Expired"}));
    let mut lists =
        vec![list(9, &[map("a", 6, "2"), map("c", 8, "1")]), list(5, &[map("a", 1, "1"), map("b", 2, "1")])];
    let mut watches = vec![events([]), gone, broken];
    let server = Server::new(&runtime, move |seen| if is_watch(seen) { watches.pop() } else { lists.pop() });
    let log = Log::default();
    runtime.run(async {
        let informer =
            writing(&log, Informer::new(server.client())).configure(|config| config.watch.streaming = false).start();
        runtime.sleep(Duration::from_secs(30)).await;
        let log = logged(&log);
        assert_eq!(
            log.iter().filter(|line| !line.starts_with('!')).collect::<Vec<_>>(),
            ["+a", "+b", "a 1>2", "-b", "+c"]
        );
        assert!(log.iter().any(|line| line == "!connection lost: reset"), "{log:?}");
        assert_eq!((informer.status().failure, informer.len()), (None, 2));
    });
    assert!(server.uris()[2].contains("resourceVersion=6"), "the watch goes on where it broke");
}

#[test]
fn an_object_that_does_not_fit_disturbs_no_other() {
    let runtime = Virtual::new();
    let mut poison = map("b", 2, "1");
    poison["data"] = json!(3);
    let items = vec![map("a", 1, "1"), poison, map("c", 3, "1")];
    let mended = events([event("MODIFIED", map("b", 6, "1"))]);
    let server = cluster(&runtime, items.clone(), [events([])]);
    let log = Log::default();
    runtime.run(async {
        let informer = writing(&log, Informer::new(server.client())).start();
        informer.wait_synced(Duration::from_secs(60)).await.unwrap();
        runtime.sleep(Duration::from_secs(1)).await;
        let log = logged(&log);
        assert_eq!(log[0], "+a");
        assert!(log[1].starts_with("!ConfigMap ns/b: data: invalid type: integer `3`"), "{log:?}");
        let listed = informer.list();
        assert_eq!((listed.items.len(), listed.errors.len()), (2, 1));
        assert!(informer.get(&key("b")).is_err() && informer.get(&key("a")).unwrap().is_some());
        assert_eq!(informer.object(&key("b")).unwrap().label("app"), Some("b"));
    });
    let server = cluster(&runtime, items, [mended]);
    runtime.run(async {
        let informer = Informer::<ConfigMap>::new(server.client()).eager().start();
        informer.wait_synced(Duration::from_secs(60)).await.unwrap();
        assert_eq!(informer.status().errors, 1, "found without anybody reading it");
        runtime.sleep(Duration::from_secs(1)).await;
        assert_eq!(informer.list().all().unwrap().len(), 3);
    });
}

#[test]
fn objects_are_found_by_namespace_label_and_index_and_shared() {
    let runtime = Virtual::new();
    let server = cluster(&runtime, vec![map("a", 1, "1"), map("b", 2, "2"), map("c", 3, "2")], [events([])]);
    runtime.run(async {
        let informer = Informer::<ConfigMap>::new(server.client())
            .index("data", |object| object.field("data.x").map(|text| text.into_owned()).into_iter().collect())
            .start();
        informer.wait_synced(Duration::from_secs(60)).await.unwrap();
        let names = |list: cloudcoil_runtime::ResourceList<Arc<ConfigMap>>| -> Vec<String> {
            list.items.iter().map(|map| map.name().to_owned()).collect()
        };
        assert_eq!(names(informer.by_index("data", "2").unwrap()), ["b", "c"]);
        assert_eq!(informer.index_keys("data").unwrap(), ["1", "2"]);
        assert!(matches!(informer.by_index("other", "2"), Err(Error::Misuse(_))));
        let selector = Selector::parse("app in (a, c)").unwrap();
        assert_eq!(names(informer.select(Some("ns"), &selector)), ["a", "c"]);
        assert_eq!(names(informer.list_in("elsewhere")), [""; 0]);
        let get = || informer.get(&key("a")).unwrap().unwrap();
        assert!(Arc::ptr_eq(&get(), &get()));
    });
}

#[test]
fn a_sync_that_does_not_come_gives_the_reason() {
    let runtime = Virtual::new();
    let forbidden = || json(403, json!({"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no"}));
    let server = Server::new(&runtime, move |_| Some(forbidden()));
    let silent = Server::new(&runtime, |_| Some(events([])));
    runtime.run(async {
        let informer = Informer::<ConfigMap>::new(server.client()).start();
        let error = informer.wait_synced(Duration::from_secs(5)).await.unwrap_err();
        assert_eq!(error.code(), Some(403));
        informer.stop();
        informer.stopped().await;
        assert_eq!(informer.wait_synced(Duration::from_secs(5)).await, Err(Error::Cancelled));
        let informer = Informer::<ConfigMap>::new(silent.client()).start();
        let limit = Duration::from_secs(3);
        assert_eq!(informer.wait_synced(limit).await, Err(Error::TimedOut(limit)));
    });
}

#[test]
fn a_handler_that_panics_hears_of_the_next_change() {
    let runtime = Virtual::new();
    let server = cluster(&runtime, vec![map("a", 1, "1"), map("b", 2, "1")], [events([])]);
    let log = Log::default();
    runtime.run(async {
        let write = log.clone();
        let informer = Informer::<ConfigMap>::new(server.client()).on_add(move |map| {
            assert_ne!(map.name(), "a", "planted");
            write.lock().unwrap().push(map.name().to_owned());
        });
        let informer = informer.start();
        informer.wait_synced(Duration::from_secs(60)).await.unwrap();
        runtime.sleep(Duration::from_secs(1)).await;
        assert_eq!(logged(&log), ["b"]);
    });
}

#[test]
fn a_resync_says_every_object_again_and_asks_the_server_nothing() {
    let runtime = Virtual::new();
    let server = cluster(&runtime, vec![map("a", 1, "1")], std::iter::repeat_with(|| events([])));
    let log = Log::default();
    runtime.run(async {
        let informer = writing(&log, Informer::new(server.client())).resync(Duration::from_secs(20)).start();
        informer.wait_synced(Duration::from_secs(60)).await.unwrap();
        runtime.sleep(Duration::from_secs(1)).await;
        let asked = server.uris().len();
        runtime.sleep(Duration::from_secs(49)).await;
        assert_eq!(logged(&log), ["+a", "a 1>1", "a 1>1"]);
        assert_eq!(server.uris().len(), asked);
    });
}

#[test]
fn a_watch_stream_reads_no_more_than_it_is_asked_for_and_closes_when_dropped() {
    let runtime = Virtual::new();
    let many = (0..100).map(|i| event("ADDED", map(&format!("n{i}"), 10 + i, "1")));
    let server = cluster(&runtime, vec![map("a", 1, "1")], [events(many)]);
    runtime.run(async {
        let mut stream = server.client().api::<ConfigMap>().watch().labels("app").stream();
        let mut next = async || stream.next().await.unwrap().unwrap();
        assert_eq!(next().await, WatchEvent::Restarted);
        assert!(matches!(next().await, WatchEvent::Restarted | WatchEvent::Listed(_)));
        while next().await != WatchEvent::Synced {}
        assert!(matches!(next().await, WatchEvent::Applied(map) if map.name() == "n0"));
        let before = server.polled();
        runtime.sleep(Duration::from_secs(30)).await;
        assert_eq!((server.polled(), server.open()), (before, 1));
        drop(stream);
        assert_eq!(server.open(), 0);
    });
    assert!(server.uris().iter().all(|uri| uri.contains("labelSelector=app")));
}

#[test]
fn a_watch_stream_reports_what_will_not_pass_and_goes_on() {
    let runtime = Virtual::new();
    let mut poison = map("b", 2, "1");
    poison["data"] = json!(3);
    let mut replies = vec![
        list(5, &[poison, map("a", 1, "1")]),
        json(503, json!({"kind": "Status", "code": 503})),
        json(403, json!({"kind": "Status", "code": 403, "reason": "Forbidden"})),
    ];
    let server = Server::new(&runtime, move |seen| if seen.uri.contains("watch=true") { None } else { replies.pop() });
    let items: Vec<_> = runtime.run(async {
        let watch = server.client().api::<ConfigMap>().watch().configure(|config| config.streaming = false);
        let stream = watch.stream().filter(|item| std::future::ready(!matches!(item, Ok(WatchEvent::Restarted))));
        stream.take(4).collect().await
    });
    assert!(
        matches!(&items[..], [
        Err(Error::Api(refused)),
        Err(Error::Decode(odd)),
        Ok(WatchEvent::Listed(map)),
        Ok(WatchEvent::Synced),
    ] if refused.code == 403 && &*odd.object == "ConfigMap ns/b" && map.name() == "a"),
        "{items:?}"
    );
}

#[test]
fn a_handler_that_joins_in_the_middle_hears_of_each_object_once() {
    let runtime = Virtual::new();
    let items = (0..200).map(|i| map(&format!("n{i}"), 1, "1")).collect();
    let server = cluster(&runtime, items, [events([])]);
    let log = Log::default();
    runtime.run(async {
        let handle: Arc<Mutex<Option<cloudcoil_runtime::InformerHandle<ConfigMap>>>> = Arc::default();
        let (join, late) = (handle.clone(), log.clone());
        let informer = Informer::<ConfigMap>::new(server.client()).on_add(move |map| {
            if map.name() == "n150" {
                let late = late.clone();
                let joined = join.lock().unwrap();
                joined.as_ref().unwrap().on_add(move |map| late.lock().unwrap().push(map.name().to_owned()));
            }
        });
        *handle.lock().unwrap() = Some(informer.start());
        runtime.sleep(Duration::from_secs(5)).await;
        let mut heard = logged(&log);
        heard.sort();
        assert_eq!(heard.len(), 200);
        heard.dedup();
        assert_eq!(heard.len(), 200);
        handle.lock().unwrap().take();
    });
}
