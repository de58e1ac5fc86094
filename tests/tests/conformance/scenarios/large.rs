//! Much at once.

use bytes::Bytes;
use cloudcoil_runtime::core::NetworkErrorKind;
use cloudcoil_runtime::{Error, WatchEvent};
use serde_json::{Value, json};

use super::{at, event, map, short, stored};
use crate::scripted::{Answer, in_order};
use crate::stage::{Stage, scenarios};
use crate::world::op::maps;

scenarios! {
    ANY {
        a_large_object_passes_whole,
        large_objects_are_listed_and_watched,
    }
    SCRIPT {
        a_list_of_ten_megabytes_is_read,
        an_event_of_ten_megabytes_is_one_event,
        a_body_of_ten_megabytes_is_sent,
        an_object_of_many_fields_is_read,
        nesting_beyond_measure_is_refused,
    }
    CONNECTIONS {
        long_headers_are_read,
        many_headers_are_read,
        heads_without_measure_are_refused,
    }
}

const MEGABYTE: usize = 1_000_000;

fn a_large_object_passes_whole(stage: &Stage) {
    let world = stage.api();
    let text = "x".repeat(MEGABYTE);
    world.must(maps().create(map("large", &text)));
    assert_eq!(at(&world.must(maps().get("large")).value(), "/data/key"), &text);
}

fn large_objects_are_listed_and_watched(stage: &Stage) {
    let world = stage.api();
    let texts = ["x", "é", "\n"].map(|text| text.repeat(400_000 / text.len()));
    for (name, text) in ["a", "b", "c"].iter().zip(&texts) {
        let mut large = map(name, text);
        large["metadata"]["labels"] = json!({"size": "large"});
        world.must(maps().create(large));
    }
    let list = world.must(maps().list().labels("size=large").limit(2)).list();
    let read: Vec<_> = list.items.iter().map(|object| object.fields()["data"]["key"].as_str().unwrap()).collect();
    assert!(read == texts, "every letter is there");
    let events = world.watch(maps().follow().labels("size=large"));
    assert_eq!(super::synced(&events), ["a", "b", "c"]);
    let changed = "y".repeat(900_000);
    world.must(maps().merge("b", json!({"data": {"key": changed}})));
    let WatchEvent::Applied(object) = events.good() else { panic!("no change") };
    assert!(object.fields()["data"]["key"] == json!(changed));
}

/// An object of so many bytes.
fn large(name: &str, version: u32, size: usize) -> Value {
    let mut large = stored(name, version);
    large["data"]["key"] = json!("x".repeat(size));
    large
}

fn a_list_of_ten_megabytes_is_read(stage: &Stage) {
    let names: Vec<_> = (0..10).map(|number| format!("a{number}")).collect();
    let items: Vec<_> = names.iter().map(|name| large(name, 5, MEGABYTE)).collect();
    let list = Answer::list("10", &items);
    let play = stage.play(in_order([list.clone(), list.chunked().in_pieces_of(60_000)]));
    assert_eq!(play.must(maps().list()).names(), names);
    let list = play.must(maps().objects()).list();
    let whole =
        |object: &cloudcoil_runtime::Unstructured| object.fields()["data"]["key"].as_str().unwrap().len() == MEGABYTE;
    assert!(list.items.len() == 10 && list.items.iter().all(whole));
}

fn an_event_of_ten_megabytes_is_one_event(stage: &Stage) {
    let large = json!({"type": "MODIFIED", "object": large("a", 11, 10 * MEGABYTE)});
    let events = Answer::watch(&[large, event("DELETED", "a", 12)]).in_pieces_of(60_000);
    let play = stage.play(in_order([Answer::list("10", &[stored("a", 5)]), events]));
    let events = play.watch(maps().follow().in_pages_of(500));
    assert_eq!(super::told(&events, 3), ["restarted", "listed a 5", "synced"]);
    let WatchEvent::Applied(object) = events.good() else { panic!("no change") };
    assert_eq!(object.fields()["data"]["key"].as_str().map(str::len), Some(10 * MEGABYTE));
    assert_eq!(short(&events.good()), "deleted a 12");
}

fn a_body_of_ten_megabytes_is_sent(stage: &Stage) {
    let play = stage.play(Box::new(|_| Answer::json(&stored("a", 5))));
    let large = map("a", &"x".repeat(10 * MEGABYTE));
    play.must(maps().create(large.clone()));
    play.must(maps().get("a"));
    let seen = play.seen();
    let sent: Value = serde_json::from_slice(&seen[0].body).unwrap();
    assert!(sent["data"] == large["data"]);
    assert!(seen[1].body.is_empty());
}

fn an_object_of_many_fields_is_read(stage: &Stage) {
    let mut wide = stored("a", 5);
    wide["data"] =
        (0..50_000).map(|number| (format!("key-{number}"), json!("x"))).collect::<serde_json::Map<_, _>>().into();
    let play = stage.play(in_order([Answer::json(&wide)]));
    assert!(play.must(maps().get("a")).value() == wide);
}

fn nesting_beyond_measure_is_refused(stage: &Stage) {
    let deep = "[".repeat(5 * MEGABYTE);
    let object = format!(r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"a"}},"data":{deep}"#);
    let play = stage.play(in_order([Answer::new(200, "application/json", object), Answer::json(&stored("a", 5))]));
    let error = play.fail(maps().get("a"));
    assert!(matches!(error, Error::Body(_) | Error::Decode(_)), "{error:?}");
    play.must(maps().get("a"));
}

fn long_headers_are_read(stage: &Stage) {
    let play = stage.play(Box::new(|_| Answer::json(&stored("a", 5)).header("x-long", &"x".repeat(40_000))));
    for _ in 0..3 {
        play.must(maps().get("a"));
    }
    assert!(play.seen().iter().all(|seen| seen.connection == 0));
}

fn many_headers_are_read(stage: &Stage) {
    // API servers give each warning a header of its own.
    let warning = |number: usize| ("warning".to_owned(), format!("299 - \"field {number} is deprecated\""));
    let play = stage.play(Box::new(move |_| {
        let mut answer = Answer::json(&stored("a", 5));
        answer.headers.extend((0..100).map(warning));
        answer
    }));
    for _ in 0..3 {
        play.must(maps().get("a"));
    }
}

fn heads_without_measure_are_refused(stage: &Stage) {
    let long = format!("X-Long: {}\r\n", "x".repeat(10_000));
    for (line, count) in [(long.as_str(), 100), ("x: y\r\n", 5000)] {
        let head = Bytes::from_static(b"HTTP/1.1 200 OK\r\n");
        let lines = std::iter::repeat_n(line.to_owned().into(), count);
        let answer = Answer::raw(std::iter::once(head).chain(lines).chain([Bytes::from_static(b"\r\n")]));
        let play = stage.play(in_order([answer, Answer::json(&stored("a", 5))]));
        let Error::Network(error) = play.fail(maps().get("a")) else { panic!("no failure of the network") };
        assert_eq!((error.kind, &*error.message), (NetworkErrorKind::Protocol, "the head of the answer is too long"));
        play.must(maps().get("a"));
        assert_eq!(play.wait_for(2)[1].connection, 1);
    }
}
