//! Informers and controllers at work.

use std::time::Duration;

use cloudcoil_runtime::{Change, Error, Resource, ResourceKey};
use serde_json::{Value, json};

use super::{at, event, map, stored};
use crate::scripted::{Answer, Play, Script, Seen, Then, in_order};
use crate::stage::{Stage, scenarios};
use crate::world::op::{Operator, Until, maps, secrets};
use crate::world::{Flow, World};

scenarios! {
    ANY {
        an_informer_holds_what_is_there,
        a_controller_keeps_what_its_objects_own,
        a_controller_writes_what_its_handler_returns,
        a_finalizer_cleans_up_before_the_object_goes,
        handlers_that_stumble_are_called_again,
        a_controller_catches_up_with_what_it_has_missed,
        two_controllers_share_a_client,
        what_is_owned_comes_back_as_it_should_be,
    }
    MEMORY {
        an_informer_keeps_what_it_holds_until_it_knows_better,
        a_controller_works_on_through_what_its_server_forgets,
    }
    SCRIPT {
        an_informer_keeps_what_it_holds_while_its_server_is_away,
        an_informer_tells_the_difference_after_an_expiry,
        an_object_that_is_made_anew_is_deleted_and_added,
        a_conflict_is_worked_off,
        a_refused_write_is_tried_again,
        an_object_that_does_not_fit_holds_up_no_other,
        a_stopped_controller_finishes_what_it_has_begun,
    }
}

const MINUTE: Duration = Duration::from_secs(60);

fn an_informer_holds_what_is_there(stage: &Stage) {
    let world = stage.api();
    let label = json!({"app": "web"});
    let secret =
        |name: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": label}});
    world.must(secrets().create(secret("a")));
    let informing = world.inform(secrets().follow().labels("app=web").in_pages_of(500));
    informing.synced.next().unwrap().unwrap();
    let key = |name: &str| ResourceKey::new(Some(&stage.namespace), name).unwrap();
    assert_eq!(informing.reader.keys(), [key("a")]);
    assert!(matches!(informing.changes.next(), Some(Change::Added(_))));
    world.must(secrets().create(secret("b")));
    assert!(matches!(informing.changes.next(), Some(Change::Added(_))));
    assert!(informing.reader.get(&key("b")).unwrap().is_some());
    world.must(secrets().merge("b", json!({"metadata": {"labels": {"app": "other"}}})));
    assert!(matches!(informing.changes.next(), Some(Change::Deleted(_))));
    assert!(informing.reader.get(&key("b")).unwrap().is_none() && informing.changes.come().is_empty());
}

fn a_controller_keeps_what_its_objects_own(stage: &Stage) {
    let world = stage.api();
    let running = world.operate(Operator::KeepsChild);
    let made = world.must(maps().create(map("a", "1"))).value();
    world.must(secrets().wait_for("a-child", Until::Exists, MINUTE));
    let child = world.must(secrets().get("a-child")).value();
    assert_eq!(at(&child, "/metadata/ownerReferences/0/uid"), at(&made, "/metadata/uid"));
    world.must(secrets().delete("a-child").uid(child["metadata"]["uid"].as_str().unwrap()));
    world.must(secrets().wait_for("a-child", Until::Exists, MINUTE));
    running.stop().unwrap();
}

fn a_controller_writes_what_its_handler_returns(stage: &Stage) {
    let world = stage.api();
    let running = world.operate(Operator::Labels);
    let events = world.watch(maps().follow().labels("seen=yes").fields("metadata.name=a"));
    super::synced(&events);
    world.must(maps().create(map("a", "1")));
    assert!(super::short(&events.good()).starts_with("applied a "));
    running.stop().unwrap();
}

fn a_finalizer_cleans_up_before_the_object_goes(stage: &Stage) {
    let world = stage.api();
    let outside = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a-outside"}});
    world.must(secrets().create(outside));
    world.must(maps().create(map("a", "1")));
    let running = world.operate(Operator::CleansUp);
    let events = world.watch(maps().follow().fields("metadata.name=a"));
    super::synced(&events);
    // The finalizer may have been there already, or comes now.
    while world.must(maps().get("a")).value()["metadata"]["finalizers"].is_null() {
        events.good();
    }
    world.must(maps().delete("a"));
    world.must(maps().wait_for("a", Until::Deleted, MINUTE));
    assert!(world.fail(secrets().get("a-outside")).is_not_found(), "what was outside went first");
    running.stop().unwrap();
}

/// Waits until objects have the label of [`Operator::Labels`].
fn await_labels(world: &dyn World, names: &[&str]) {
    let events = world.watch(maps().follow().labels("seen=yes"));
    let mut missing: std::collections::BTreeSet<_> = names.iter().map(|name| (*name).to_owned()).collect();
    while !missing.is_empty() {
        if let cloudcoil_runtime::WatchEvent::Listed(object) | cloudcoil_runtime::WatchEvent::Applied(object) =
            events.good()
        {
            missing.remove(object.name());
        }
    }
}

fn handlers_that_stumble_are_called_again(stage: &Stage) {
    let world = stage.api();
    let running = world.operate(Operator::Stumbles);
    for how in ["fails", "panics", "waits", "goes-well"] {
        world.must(maps().create(map(how, how)));
    }
    await_labels(world, &["fails", "panics", "waits", "goes-well"]);
    running.stop().unwrap();
}

fn a_controller_catches_up_with_what_it_has_missed(stage: &Stage) {
    let world = stage.api();
    world.must(maps().create(map("a", "1")));
    let running = world.operate(Operator::Labels);
    await_labels(world, &["a"]);
    running.stop().unwrap();
    world.must(maps().merge("a", json!({"metadata": {"labels": {"seen": "no"}}})));
    world.must(maps().create(map("b", "1")));
    let running = world.operate(Operator::Labels);
    await_labels(world, &["a", "b"]);
    running.stop().unwrap();
    let versions = |world: &dyn World| {
        ["a", "b"].map(|name| world.must(maps().get(name)).object().resource_version().map(str::to_owned))
    };
    let before = versions(world);
    // There is nothing left to do, and nothing is done.
    let running = world.operate(Operator::Labels);
    world.must(maps().create(map("c", "1")));
    await_labels(world, &["c"]);
    running.stop().unwrap();
    assert_eq!(versions(world), before);
}

fn two_controllers_share_a_client(stage: &Stage) {
    let world = stage.api();
    let (labels, children) = (world.operate(Operator::Labels), world.operate(Operator::KeepsChild));
    let names = ["a", "b", "c", "d", "e"];
    for made in world.all(names.iter().map(|name| maps().create(map(name, name)))) {
        made.unwrap();
    }
    await_labels(world, &names);
    for name in names {
        world.must(secrets().wait_for(&format!("{name}-child"), Until::Exists, MINUTE));
    }
    labels.stop().unwrap();
    // The other goes on.
    world.must(maps().create(map("f", "1")));
    world.must(secrets().wait_for("f-child", Until::Exists, MINUTE));
    children.stop().unwrap();
    assert_eq!(at(&world.must(maps().get("f")).value(), "/metadata/labels/seen"), &Value::Null);
}

fn what_is_owned_comes_back_as_it_should_be(stage: &Stage) {
    let world = stage.api();
    world.must(maps().create(map("a", "1")));
    let running = world.operate(Operator::KeepsChild);
    world.must(secrets().wait_for("a-child", Until::Exists, MINUTE));
    let events = world.watch(secrets().follow().fields("metadata.name=a-child"));
    assert_eq!(super::synced(&events), ["a-child"]);
    let good = at(&world.must(secrets().get("a-child")).value(), "/data/key").clone();
    world.must(secrets().merge("a-child", json!({"stringData": {"key": "spoilt"}})));
    let next = || match events.good() {
        cloudcoil_runtime::WatchEvent::Applied(object) => object.into_value()["data"]["key"].clone(),
        other => panic!("no change: {other:?}"),
    };
    assert_ne!(next(), good);
    assert_eq!(next(), good);
    world.must(maps().merge("a", json!({"data": {"key": "2"}})));
    assert_eq!(next(), json!("Mg=="), "what the owner says now");
    running.stop().unwrap();
}

/// The next change, such as `added a`.
#[track_caller]
fn told(changes: &Flow<Change>, count: usize) -> Vec<String> {
    let next = || match changes.next().expect("it runs") {
        Change::Added(object) => format!("added {}", object.key()),
        Change::Updated { new, .. } => format!("updated {}", new.key()),
        Change::Deleted(object) => format!("deleted {}", object.key()),
    };
    (0..count).map(|_| next().replace("default/", "")).collect()
}

fn an_informer_keeps_what_it_holds_until_it_knows_better(stage: &Stage) {
    let world = stage.api();
    for name in ["a", "b"] {
        world.must(maps().create(map(name, "1")));
    }
    let informing = world.inform(maps().follow().labels("!nobody").fields("metadata.name!=kube-root-ca.crt"));
    informing.synced.next().unwrap().unwrap();
    let told = |count| -> Vec<String> {
        told(&informing.changes, count)
            .iter()
            .map(|change| change.replace(&format!("{}/", stage.namespace), ""))
            .collect()
    };
    assert_eq!(told(2), ["added a", "added b"]);
    stage.with_server(|server, _, out| {
        server.freeze();
        server.close_watches(out);
    });
    world.must(maps().delete("a"));
    world.must(maps().create(map("c", "1")));
    let names = || informing.reader.keys().iter().map(|key| key.name().to_owned()).collect::<Vec<_>>();
    assert_eq!(names(), ["a", "b"], "nothing else is known yet");
    stage.with_server(|server, now, out| {
        server.compact(server.revision());
        server.thaw(now, out);
        server.close_watches(out);
    });
    let mut changes = told(2);
    changes.sort();
    assert_eq!(
        (changes, names()),
        (vec!["added c".to_owned(), "deleted a".to_owned()], vec!["b".to_owned(), "c".to_owned()])
    );
    assert!(informing.changes.come().is_empty(), "nothing is told of what has not changed");
}

fn a_controller_works_on_through_what_its_server_forgets(stage: &Stage) {
    let world = stage.api();
    let running = world.operate(Operator::Labels);
    for round in 0..3 {
        let name = format!("a{round}");
        world.must(maps().create(map(&name, "1")));
        await_labels(world, &[&name]);
        stage.with_server(|server, _, out| {
            server.compact(server.revision());
            server.close_watches(out);
        });
    }
    running.stop().unwrap();
}

fn an_informer_keeps_what_it_holds_while_its_server_is_away(stage: &Stage) {
    let answers = [
        Answer::list("10", &[stored("a", 5), stored("b", 7)]),
        Answer::watch(&[]).then(Then::Reset),
        Answer::new(503, "text/html", "<html>no server</html>"),
        Answer::watch(&[event("ADDED", "c", 12)]),
    ];
    let play = stage.play(in_order(answers));
    let informing = play.inform(maps().follow().in_pages_of(500));
    informing.synced.next().unwrap().unwrap();
    assert_eq!(told(&informing.changes, 2), ["added a", "added b"]);
    play.wait_for(3);
    assert_eq!(informing.reader.keys().len(), 2);
    assert_eq!(told(&informing.changes, 1), ["added c"]);
    assert_eq!((informing.reader.keys().len(), play.seen().len()), (3, 4));
}

fn an_informer_tells_the_difference_after_an_expiry(stage: &Stage) {
    let answers = [
        Answer::list("10", &[stored("a", 5), stored("b", 7), stored("c", 8)]),
        Answer::refusal(410, "Expired", "too old resource version: 10 (20)"),
        Answer::list("20", &[stored("b", 7), stored("c", 19), stored("d", 15)]),
        Answer::watch(&[event("DELETED", "b", 21)]),
    ];
    let play = stage.play(in_order(answers));
    let informing = play.inform(maps().follow().in_pages_of(500));
    assert_eq!(told(&informing.changes, 3), ["added a", "added b", "added c"]);
    let mut difference = told(&informing.changes, 3);
    difference.sort();
    assert_eq!(difference, ["added d", "deleted a", "updated c"]);
    assert_eq!(told(&informing.changes, 1), ["deleted b"]);
    let names: Vec<_> = informing.reader.keys().iter().map(|key| key.name().to_owned()).collect();
    assert_eq!(names, ["c", "d"]);
}

fn an_object_that_is_made_anew_is_deleted_and_added(stage: &Stage) {
    let mut other = stored("a", 15);
    other["metadata"]["uid"] = json!("another");
    let answers = [
        Answer::list("10", &[stored("a", 5)]),
        Answer::refusal(410, "Expired", "too old resource version: 10 (20)"),
        Answer::list("20", &[other]),
        Answer::watch(&[]),
    ];
    let play = stage.play(in_order(answers));
    let informing = play.inform(maps().follow().in_pages_of(500));
    assert_eq!(told(&informing.changes, 3), ["added a", "deleted a", "added a"]);
}

/// A server with these objects, whose watches say these changes; it answers writes, and reads of one object, in another way.
fn controlled(items: Vec<Value>, mut other: impl FnMut(&Seen) -> Answer + Send + 'static) -> Script {
    Box::new(move |seen| match (seen.method.as_str(), seen.parameter("sendInitialEvents")) {
        ("GET", Some(_)) => Answer::refusal(422, "Invalid", "sendInitialEvents: Forbidden"),
        ("GET", None) if seen.is_watch() => Answer::watch(&[]),
        ("GET", None) if seen.path.ends_with("/configmaps") => Answer::list("10", &items),
        _ => other(seen),
    })
}

/// The writes so far, when there are so many.
#[track_caller]
fn writes(play: &Play, count: usize) -> Vec<Seen> {
    for requests in 0.. {
        let writes: Vec<_> = play.wait_for(requests).into_iter().filter(|seen| seen.method != "GET").collect();
        if writes.len() >= count {
            return writes;
        }
    }
    unreachable!("it waits for ever, or is stuck")
}

fn labelled(version: u32) -> Value {
    let mut labelled = stored("a", version);
    labelled["metadata"]["labels"] = json!({"seen": "yes"});
    labelled
}

fn a_conflict_is_worked_off(stage: &Stage) {
    let mut writes_seen = 0;
    let play = stage.play(controlled(vec![stored("a", 5)], move |seen| {
        if seen.method == "GET" {
            return Answer::json(&stored("a", 12));
        }
        writes_seen += 1;
        if writes_seen == 1 {
            Answer::refusal(409, "Conflict", "the object has been modified")
        } else {
            Answer::json(&labelled(13))
        }
    }));
    let running = play.operate(Operator::Labels);
    let writes = writes(&play, 2);
    running.stop().unwrap();
    assert!(
        writes.iter().all(|seen| seen.method == "PATCH" && seen.path.ends_with("/namespaces/default/configmaps/a"))
    );
    let later = play.seen().iter().filter(|seen| seen.method != "GET").count();
    assert_eq!(later, 2, "what was written is not written again");
}

fn a_refused_write_is_tried_again(stage: &Stage) {
    let mut answers = vec![
        Answer::json(&labelled(13)),
        Answer::new(502, "text/html", "<html>bad gateway</html>"),
        Answer::refusal(403, "Forbidden", "no, because"),
    ];
    let play = stage.play(controlled(vec![stored("a", 5)], move |seen| match seen.method.as_str() {
        "GET" => Answer::json(&stored("a", 5)),
        _ => answers.pop().unwrap_or_else(|| Answer::refusal(500, "InternalError", "once more?")),
    }));
    let running = play.operate(Operator::Labels);
    let writes = writes(&play, 3);
    running.stop().unwrap();
    assert!(writes.iter().all(|seen| seen.body == writes[0].body), "it is the same each time");
}

fn an_object_that_does_not_fit_holds_up_no_other(stage: &Stage) {
    let mut odd = stored("odd", 4);
    odd["data"] = json!(17);
    let play = stage.play(controlled(vec![odd, stored("a", 5)], |_| Answer::json(&labelled(13))));
    let running = play.operate(Operator::Labels);
    let writes = writes(&play, 1);
    running.stop().unwrap();
    assert!(writes[0].path.ends_with("/a"), "{}", writes[0].path);
    let error = play.inform(maps().follow().in_pages_of(500)).synced.next().unwrap();
    assert_eq!(error, Ok::<_, Error>(()), "whoever reads it as it is reads both");
}

fn a_stopped_controller_finishes_what_it_has_begun(stage: &Stage) {
    let slow = || Answer::json(&labelled(13)).in_pieces_of(40).pausing(Duration::from_millis(30));
    let play = stage.play(controlled(vec![stored("a", 5)], move |_| slow()));
    let running = play.operate(Operator::Labels);
    let write = writes(&play, 1)[0].connection;
    running.stop().unwrap();
    let watch = play.seen().iter().filter(|seen| seen.is_watch()).map(|seen| seen.connection).last();
    let left = play.wait_for_left(1);
    assert!(Some(left[0]) == watch && !left.contains(&write), "{left:?}: the write came to its end");
}
