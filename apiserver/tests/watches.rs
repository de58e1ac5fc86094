//! Watches: from where they start, what they tell, and how they end.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod common;

use std::time::Duration;

use bytes::Bytes;
use cloudcoil_apiserver::{ServerConfig, ServerInput};
use common::{MAPS, World, map, request};
use serde_json::{Value, json};

/// Of `default` without what the server itself puts there.
fn path(query: &str) -> String {
    format!("{MAPS}?watch=true&fieldSelector=metadata.name!%3Dkube-root-ca.crt&{query}")
}

#[test]
fn a_watch_tells_of_every_change_after_its_version() {
    let mut world = World::new();
    let start = world.server.revision();
    world.create(MAPS, map("a"));
    let watch = world.watch(&path(&format!("resourceVersion={start}")));
    assert_eq!(world.told(watch), [format!("ADDED a {}", start + 1)]);
    world.patch(&format!("{MAPS}/a"), json!({"data": {"x": "1"}}));
    world.patch(&format!("{MAPS}/a"), json!({"data": {"x": "1"}}));
    world.call("DELETE", &format!("{MAPS}/a"), None);
    assert_eq!(world.told(watch), [format!("MODIFIED a {}", start + 2), format!("DELETED a {}", start + 3)]);
    world.create("/api/v1/namespaces/default/secrets", map("a"));
    world.create("/api/v1/namespaces/kube-public/configmaps", map("a"));
    assert_eq!(world.told(watch), [""; 0]);
    assert_eq!(world.reply(watch).headers["content-type"], "application/json");
}

#[test]
fn a_watch_without_a_version_begins_with_what_exists() {
    let mut world = World::new();
    world.create(MAPS, map("b"));
    world.create(MAPS, map("a"));
    let now = world.server.revision();
    let state = [format!("ADDED a {now}"), format!("ADDED b {}", now - 1)];
    for query in ["", "resourceVersion=0", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"] {
        let watch = world.watch(&path(query));
        assert_eq!(world.told(watch), state, "{query}");
    }
    let current = format!("resourceVersion={now}");
    let watches =
        ["resourceVersionMatch=NotOlderThan&sendInitialEvents=false", &current].map(|query| world.watch(&path(query)));
    assert_eq!(watches.map(|watch| world.told(watch).len()), [0, 0]);
    world.create(MAPS, map("c"));
    assert_eq!(watches.map(|watch| world.told(watch).len()), [1, 1]);
}

#[test]
fn a_streaming_list_ends_its_first_events_with_a_bookmark() {
    let mut world = World::new();
    world.create(MAPS, map("a"));
    let watch = world.watch(&path("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"));
    let events = world.events(watch);
    assert_eq!((events.len(), &events[0]["type"]), (2, &json!("ADDED")));
    let revision = world.server.revision().to_string();
    assert_eq!(
        events[1],
        json!({"type": "BOOKMARK", "object": {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {
        "resourceVersion": revision, "annotations": {"k8s.io/initial-events-end": "true"}}}})
    );
    world.create(MAPS, map("b"));
    assert_eq!(world.told(watch).len(), 1);
}

#[test]
fn a_watch_from_before_history_fails_with_an_event() {
    let mut world = World::new();
    world.create(MAPS, map("a"));
    let now = world.server.revision();
    world.server.compact(now);
    let watch = world.watch(&path(&format!("resourceVersion={}", now - 1)));
    let message = format!("too old resource version: {} ({now})", now - 1);
    assert_eq!(
        world.events(watch),
        [json!({"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "metadata": {},
        "status": "Failure", "message": message, "reason": "Expired", "code": 410}})]
    );
    assert!(world.reply(watch).closed);
    let watch = world.watch(&path(&format!("resourceVersion={now}")));
    assert!(world.told(watch).is_empty() && !world.reply(watch).closed);
}

#[test]
fn compaction_leaves_open_watches_alone() {
    let mut world = World::new();
    let watch = world.watch(&path(&format!("resourceVersion={}", world.server.revision())));
    world.create(MAPS, map("a"));
    let revision = world.server.revision();
    world.server.compact(revision);
    world.create(MAPS, map("b"));
    assert_eq!(world.told(watch).len(), 2);
}

#[test]
fn objects_enter_and_leave_a_selection() {
    let mut world = World::new();
    let start = world.server.revision();
    let watch = world.watch(&path(&format!("resourceVersion={start}&labelSelector=on%3Dyes")));
    world.create(MAPS, map("a"));
    world.patch(&format!("{MAPS}/a"), json!({"metadata": {"labels": {"on": "yes"}}}));
    world.patch(&format!("{MAPS}/a"), json!({"data": {"x": "1"}}));
    world.patch(&format!("{MAPS}/a"), json!({"metadata": {"labels": {"on": "no"}}, "data": {"x": "2"}}));
    world.call("DELETE", &format!("{MAPS}/a"), None);
    let events = world.events(watch);
    let kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["ADDED", "MODIFIED", "DELETED"]);
    let left = &events[2]["object"];
    assert_eq!(
        (&left["metadata"]["labels"]["on"], &left["data"]["x"]),
        (&json!("yes"), &json!("1")),
        "as it was when it left"
    );
    assert_eq!(left["metadata"]["resourceVersion"], (start + 4).to_string());
}

#[test]
fn one_object_can_be_watched() {
    let mut world = World::new();
    world.create(MAPS, map("a"));
    world.create(MAPS, map("b"));
    let legacy = "/api/v1/watch/namespaces/default/configmaps/a";
    for path in [format!("{MAPS}?watch=1&fieldSelector=metadata.name%3Da"), legacy.to_owned()] {
        let watch = world.watch(&path);
        assert_eq!(world.told(watch).len(), 1, "{path}");
        world.patch(&format!("{MAPS}/a"), json!({"metadata": {"annotations": {"p": path}}}));
        world.patch(&format!("{MAPS}/b"), json!({"metadata": {"annotations": {"p": path}}}));
        assert_eq!(world.told(watch).len(), 1, "{path}");
    }
}

#[test]
fn bookmarks_come_every_minute_and_before_the_end() {
    let mut world = World::new();
    let watch = world
        .watch(&path(&format!("resourceVersion={}&allowWatchBookmarks=1&timeoutSeconds=150", world.server.revision())));
    let plain = world.watch(&path(&format!("resourceVersion={}&timeoutSeconds=150", world.server.revision())));
    world.create("/api/v1/namespaces/default/secrets", map("other"));
    let revision = world.server.revision();
    let bookmark = format!("BOOKMARK {revision}");
    world.wait(Duration::from_secs(59));
    assert_eq!(world.told(watch), [""; 0]);
    world.wait(Duration::from_secs(1));
    assert_eq!(world.told(watch), std::slice::from_ref(&bookmark), "it tells how far everything has got");
    world.wait(Duration::from_secs(60));
    assert_eq!(world.told(watch), std::slice::from_ref(&bookmark));
    world.wait(Duration::from_secs(28));
    assert_eq!((world.told(watch), world.reply(watch).closed), (vec![bookmark], false));
    world.wait(Duration::from_secs(2));
    assert!(world.told(watch).is_empty() && world.reply(watch).closed && world.reply(plain).closed);
    assert_eq!(world.reply(plain).body.len(), 0);
    assert_eq!(world.server.open_watches(), 0);
}

#[test]
fn a_watch_ends_by_itself_in_half_an_hour_to_an_hour() {
    let mut world = World::new();
    let watches: Vec<_> = (0..20).map(|_| world.watch(&path("resourceVersion=0"))).collect();
    world.wait(Duration::from_secs(1800));
    assert_eq!(world.server.open_watches(), 20);
    world.wait(Duration::from_secs(900));
    assert!((1..20).contains(&world.server.open_watches()), "not all at once");
    world.wait(Duration::from_secs(901));
    assert_eq!(world.server.open_watches(), 0);
    assert!(watches.into_iter().all(|watch| world.reply(watch).closed));
}

#[test]
fn a_cancelled_watch_is_told_nothing_more() {
    let mut world = World::new();
    let watch = world.watch(&path("resourceVersion=0&timeoutSeconds=10"));
    world.step(Some(ServerInput::Cancelled { ticket: watch }));
    world.step(Some(ServerInput::Cancelled { ticket: watch }));
    world.create(MAPS, map("a"));
    world.wait(Duration::from_secs(20));
    assert!(world.told(watch).is_empty() && !world.reply(watch).closed);
    assert_eq!(world.server.open_watches(), 0);
}

#[test]
fn all_watches_can_be_ended_at_once() {
    let mut world = World::new();
    let watches = [world.watch(&path("")), world.watch("/api/v1/pods?watch=1")];
    world.act(|server, _, out| server.close_watches(out));
    assert!(watches.into_iter().all(|watch| world.reply(watch).closed));
}

#[test]
fn a_frozen_cache_holds_events_back() {
    let mut world = World::new();
    let watch = world.watch(&path(&format!("resourceVersion={}", world.server.revision())));
    world.server.freeze();
    world.create(MAPS, map("a"));
    world.patch(&format!("{MAPS}/a"), json!({"data": {"x": "1"}}));
    assert_eq!(world.told(watch), [""; 0]);
    let late = world.watch(&path(&format!("resourceVersion={}", world.server.revision())));
    let fresh = request(
        "GET",
        &path("sendInitialEvents=true&resourceVersionMatch=NotOlderThan"),
        "application/json",
        Bytes::new(),
    );
    let waiting = world.send(fresh);
    assert_eq!(world.reply(waiting).code, 0, "a streaming list without a version waits for the newest");
    world.act(|server, now, out| server.thaw(now, out));
    assert_eq!(world.told(watch).len(), 2);
    assert_eq!(world.told(late), [""; 0], "it knew of both");
    assert_eq!(world.told(waiting).len(), 1);
    world.create(MAPS, map("b"));
    assert_eq!([watch, late, waiting].map(|watch| world.told(watch).len()), [1, 1, 1]);
}

#[test]
fn a_cache_that_has_fallen_behind_history_ends_its_watches() {
    let mut world = World::with(ServerConfig { history: 2, ..ServerConfig::default() });
    let watch = world.watch(&format!("{MAPS}?watch=1&resourceVersion=0"));
    world.server.freeze();
    for name in ["a", "b", "c"] {
        world.create(MAPS, map(name));
    }
    world.act(|server, now, out| server.thaw(now, out));
    assert!(world.reply(watch).closed);
}

#[test]
fn a_streaming_list_of_a_version_that_does_not_come_fails_with_an_event() {
    let mut world = World::new();
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=9999";
    let watch = world.send(request("GET", &path(query), "application/json", Bytes::new()));
    world.wait(Duration::from_secs(3));
    let events = world.events(watch);
    assert_eq!((&events[0]["type"], &events[0]["object"]["code"]), (&json!("ERROR"), &json!(504)));
    assert!(world.reply(watch).code == 200 && world.reply(watch).closed);
}

#[test]
fn a_watch_from_the_future_waits_for_it() {
    let mut world = World::new();
    let watch = world.watch(&path(&format!("resourceVersion={}", world.server.revision() + 1)));
    world.create(MAPS, map("a"));
    assert_eq!(world.told(watch), [""; 0]);
    world.create(MAPS, map("b"));
    assert_eq!(world.told(watch).len(), 1);
}

#[test]
fn events_come_as_tables_and_as_metadata() {
    let mut world = World::new();
    world.create(MAPS, map("a"));
    world.create(MAPS, map("b"));
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let form = |world: &mut World, kind: &str| -> Vec<Value> {
        let mut request = request("GET", &path(query), "application/json", Bytes::new());
        request
            .headers_mut()
            .insert("accept", format!("application/json;as={kind};v=v1;g=meta.k8s.io").parse().unwrap());
        let watch = world.send(request);
        world.events(watch)
    };
    let tables = form(&mut world, "Table");
    assert!(tables.iter().all(|event| event["object"]["kind"] == "Table"));
    let columns: Vec<_> = tables.iter().map(|event| event["object"]["columnDefinitions"].is_array()).collect();
    assert_eq!(columns, [true, false, false], "the columns are told once");
    assert_eq!(tables[0]["object"]["rows"][0]["cells"][0], "a");
    let metadata = form(&mut world, "PartialObjectMetadata");
    assert!(metadata.iter().all(|event| event["object"]["kind"] == "PartialObjectMetadata"));
    assert_eq!(metadata[2]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
}

#[test]
fn a_long_beginning_comes_in_pieces() {
    let mut world = World::new();
    for index in 0..50 {
        world.create(MAPS, json!({"metadata": {"name": format!("a{index:02}")}, "data": {"x": "y".repeat(5000)}}));
    }
    let watch = world.watch(&path(""));
    assert_eq!(world.told(watch).len(), 50);
}
