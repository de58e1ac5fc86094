//! Informers and controllers at work.

use std::time::Duration;

use cloudcoil_runtime::{Change, ResourceKey};
use serde_json::json;

use super::{at, map};
use crate::stage::{Stage, scenarios};
use crate::world::op::{Operator, Until, maps, secrets};

scenarios! {
    ANY {
        an_informer_holds_what_is_there,
        a_controller_keeps_what_its_objects_own,
        a_controller_writes_what_its_handler_returns,
        a_finalizer_cleans_up_before_the_object_goes,
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
