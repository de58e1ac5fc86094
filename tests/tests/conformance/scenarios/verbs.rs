//! Every verb, on every API server.

use std::time::Duration;

use cloudcoil_runtime::core::manifest::Done;
use cloudcoil_runtime::{Deleted, Error, Patch, Propagation, Resource};
use serde_json::json;

use super::{at, map, stored};
use crate::scripted::Answer;
use crate::stage::{Place, Stage, scenarios};
use crate::world::op::{Op, Reply, Until, deployments, maps, secrets};

scenarios! {
    ANY {
        what_is_created_can_be_read,
        a_name_may_be_left_to_the_server,
        a_second_creation_is_refused,
        nothing_is_an_answer_where_it_may_be,
        a_replacement_takes_the_place_of_the_whole,
        an_outdated_replacement_is_a_conflict,
        a_merge_patch_adds_changes_and_removes,
        a_json_patch_is_guarded_by_its_tests,
        a_strategic_patch_merges_lists_by_their_keys,
        an_apply_owns_what_it_says,
        a_dry_run_stores_nothing,
        a_deletion_says_what_became_of_the_object,
        a_deletion_of_another_object_of_the_name_is_refused,
        a_collection_is_deleted_by_its_labels,
        a_foreground_deletion_waits_for_what_is_owned,
        selectors_choose,
        metadata_comes_alone,
        tables_are_as_the_server_prints_them,
        types_are_found_by_every_name,
        a_wait_ends_when_what_is_waited_for_holds,
        a_wait_for_what_does_not_come_runs_out_of_time,
        a_manifest_is_applied_and_deleted_whole,
        the_server_tells_its_version_and_that_it_is_ready,
        names_of_other_languages_are_kept,
    }
    SCRIPT {
        requests_say_what_they_carry,
    }
}

fn what_is_created_can_be_read(stage: &Stage) {
    let world = stage.api();
    let made = world.must(maps().create(map("a", "1"))).object();
    assert_eq!(made.namespace(), Some(stage.namespace.as_str()));
    assert_eq!(made.pointer("/data"), Some(&json!({"key": "1"})));
    assert!(made.uid().is_some() && made.resource_version().is_some());
    assert_eq!(world.must(maps().get("a")).object(), made);
    assert_eq!(world.must(maps().get("a").within(&stage.namespace)).object(), made);
}

fn a_name_may_be_left_to_the_server(stage: &Stage) {
    let world = stage.api();
    let mut object = map("", "1");
    object["metadata"] = json!({"generateName": "made-"});
    let names: Vec<_> = [(); 2].map(|()| world.must(maps().create(object.clone())).object().name().to_owned()).into();
    assert!(names.iter().all(|name| name.starts_with("made-") && name.len() == 10), "{names:?}");
    assert_ne!(names[0], names[1]);
}

fn a_second_creation_is_refused(stage: &Stage) {
    let world = stage.api();
    world.must(maps().create(map("a", "1")));
    let error = world.fail(maps().create(map("a", "2")));
    assert!(error.is_already_exists(), "{error:?}");
    let status = error.status().unwrap();
    assert_eq!((status.code, status.reason.as_str(), status.details.name.as_str()), (409, "AlreadyExists", "a"));
    assert_eq!(at(&world.must(maps().get("a")).value(), "/data/key"), "1");
}

fn nothing_is_an_answer_where_it_may_be(stage: &Stage) {
    let world = stage.api();
    assert_eq!(world.must(maps().find("a")), Reply::Missing);
    let made = world.must(maps().create(map("a", "1")));
    assert_eq!(world.must(maps().find("a")), made);
    let error = world.fail(maps().get("b"));
    let status = error.status().unwrap();
    assert_eq!((status.code, status.reason.as_str(), status.details.kind.as_str()), (404, "NotFound", "configmaps"));
    assert_eq!(status.message, "configmaps \"b\" not found");
}

fn a_replacement_takes_the_place_of_the_whole(stage: &Stage) {
    let world = stage.api();
    let mut object = world.must(maps().create(map("a", "1"))).value();
    object["data"] = json!({"other": "2"});
    let replaced = world.must(maps().replace(object.clone())).value();
    assert_eq!(at(&replaced, "/data"), &json!({"other": "2"}));
    assert_ne!(at(&replaced, "/metadata/resourceVersion"), at(&object, "/metadata/resourceVersion"));
    let again = world.must(maps().replace(replaced.clone())).value();
    assert_eq!(again, replaced, "what changes nothing has no new version");
}

fn an_outdated_replacement_is_a_conflict(stage: &Stage) {
    let world = stage.api();
    let old = world.must(maps().create(map("a", "1"))).value();
    world.must(maps().merge("a", json!({"data": {"key": "2"}})));
    let error = world.fail(maps().replace(old.clone()));
    assert!(error.is_conflict() && !error.is_already_exists(), "{error:?}");
    let mut free = old;
    free["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    assert_eq!(at(&world.must(maps().replace(free)).value(), "/data/key"), "1");
}

fn a_merge_patch_adds_changes_and_removes(stage: &Stage) {
    let world = stage.api();
    world.must(maps().create(map("a", "1")));
    let patch = json!({"data": {"key": null, "more": "2"}, "metadata": {"labels": {"l": "x"}}});
    let patched = world.must(maps().merge("a", patch)).value();
    assert_eq!((at(&patched, "/data"), at(&patched, "/metadata/labels/l")), (&json!({"more": "2"}), &json!("x")));
    assert_eq!(world.must(maps().get("a")).value(), patched);
}

fn a_json_patch_is_guarded_by_its_tests(stage: &Stage) {
    let world = stage.api();
    world.must(maps().create(map("a", "1")));
    let patch = |old: &str, new: &str| {
        let operations = json!([
            {"op": "test", "path": "/data/key", "value": old},
            {"op": "replace", "path": "/data/key", "value": new},
        ]);
        maps().patch("a", Patch::Json(serde_json::from_value(operations).unwrap()))
    };
    assert_eq!(at(&world.must(patch("1", "2")).value(), "/data/key"), "2");
    let error = world.fail(patch("1", "3"));
    assert!(error.is_failed_guard(), "{error:?}");
    assert_eq!(at(&world.must(maps().get("a")).value(), "/data/key"), "2");
}

fn a_strategic_patch_merges_lists_by_their_keys(stage: &Stage) {
    let world = stage.api();
    world.must(deployments().create(deployment("a")));
    let container = json!({"name": "more", "image": "image.example/more"});
    let patch = Patch::Strategic(json!({"spec": {"template": {"spec": {"containers": [container]}}}}));
    let patched = world.must(deployments().patch("a", patch)).value();
    let containers = at(&patched, "/spec/template/spec/containers").as_array().unwrap();
    let mut names: Vec<_> = containers.iter().map(|container| container["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["app", "more"]);
}

fn an_apply_owns_what_it_says(stage: &Stage) {
    let world = stage.api();
    let applied = world.must(maps().apply("one", map("a", "1"))).value();
    assert_eq!(at(&applied, "/metadata/managedFields/0/manager"), "one");
    let error = world.fail(maps().apply("two", map("a", "2")));
    assert!(error.is_conflict(), "{error:?}");
    assert_eq!(error.status().unwrap().details.causes[0].field, ".data.key");
    let forced = world.must(maps().apply("two", map("a", "2")).force()).value();
    assert_eq!(at(&forced, "/data/key"), "2");
    let mut less = map("a", "");
    less.as_object_mut().unwrap().remove("data");
    let taken_back = world.must(maps().apply("two", less)).value();
    assert_eq!(at(&taken_back, "/data/key"), &json!(null), "nobody owns it any more");
}

fn a_dry_run_stores_nothing(stage: &Stage) {
    let world = stage.api();
    assert_eq!(at(&world.must(maps().create(map("a", "1")).dry_run()).value(), "/data/key"), "1");
    assert_eq!(world.must(maps().find("a")), Reply::Missing);
    let made = world.must(maps().create(map("a", "1"))).value();
    world.must(maps().merge("a", json!({"data": {"key": "2"}})).dry_run());
    world.must(maps().apply("me", map("a", "1")).dry_run());
    world.must(maps().delete("a").dry_run());
    world.must(maps().delete_collection().labels("no=one").dry_run());
    assert_eq!(world.must(maps().get("a")).value(), made);
}

fn a_deletion_says_what_became_of_the_object(stage: &Stage) {
    let world = stage.api();
    world.must(maps().create(map("a", "1")));
    let gone = world.must(maps().delete("a")).deleted();
    assert!(matches!(&gone, Deleted::Status(status) if status.status == "Success"), "{gone:?}");
    assert_eq!(world.must(maps().find("a")), Reply::Missing);
    assert!(world.fail(maps().delete("a")).is_not_found());

    let mut held = map("b", "1");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    world.must(maps().create(held));
    let going = world.must(maps().delete("b")).deleted();
    let Deleted::Object(object) = going else { panic!("it is not gone: {going:?}") };
    assert!(object.pointer("/metadata/deletionTimestamp").is_some());
    world.must(maps().merge("b", json!({"metadata": {"finalizers": null}})));
    assert_eq!(world.must(maps().find("b")), Reply::Missing);
}

fn a_deletion_of_another_object_of_the_name_is_refused(stage: &Stage) {
    let world = stage.api();
    let made = world.must(maps().create(map("a", "1"))).object();
    assert!(world.fail(maps().delete("a").uid("11111111-1111-1111-1111-111111111111")).is_conflict());
    assert!(world.fail(maps().delete("a").resource_version("1")).is_conflict());
    let own = maps().delete("a").uid(made.uid().unwrap()).resource_version(made.resource_version().unwrap());
    world.must(own);
    assert_eq!(world.must(maps().find("a")), Reply::Missing);
}

fn a_collection_is_deleted_by_its_labels(stage: &Stage) {
    let world = stage.api();
    for (name, app) in [("a", "web"), ("b", "api"), ("c", "web")] {
        world.must(secrets().create(labelled("Secret", name, app)));
    }
    let deleted = world.must(secrets().delete_collection().labels("app=web")).names();
    assert_eq!(deleted, ["a", "c"]);
    assert_eq!(world.must(secrets().list()).names(), ["b"]);
}

fn a_foreground_deletion_waits_for_what_is_owned(stage: &Stage) {
    let world = stage.api();
    world.must(maps().create(map("a", "1")));
    world.must(maps().delete("a").propagation(Propagation::Orphan));
    let left = world.must(maps().find("a"));
    // Only a collector of garbage takes this finalizer away, and only the server in memory has one.
    if stage.place == Place::Real {
        assert_eq!(at(&left.value(), "/metadata/finalizers"), &json!(["orphan"]));
    } else {
        assert_eq!(world.must(maps().wait_for("a", Until::Deleted, Duration::from_secs(30))).text(), "delete");
    }
}

fn selectors_choose(stage: &Stage) {
    let world = stage.api();
    for (name, app) in [("a", "web"), ("b", "api"), ("c", "web")] {
        world.must(secrets().create(labelled("Secret", name, app)));
    }
    let names = |op: Op| world.must(op).names();
    assert_eq!(names(secrets().list().labels("app=web")), ["a", "c"]);
    assert_eq!(names(secrets().list().labels("app notin (web)")), ["b"]);
    assert_eq!(names(secrets().list().fields("metadata.name=c")), ["c"]);
    assert_eq!(names(secrets().list().fields("metadata.name!=c").labels("app in (web, api)")), ["a", "b"]);
    let everywhere = secrets().list().fields(&format!("metadata.namespace={}", stage.namespace)).everywhere();
    assert_eq!(names(everywhere), ["a", "b", "c"]);
}

fn metadata_comes_alone(stage: &Stage) {
    let world = stage.api();
    let made = world.must(maps().create(map("a", "1"))).value();
    let alone = world.must(maps().metadata("a")).value();
    assert_eq!((at(&alone, "/kind"), at(&alone, "/data")), (&json!("PartialObjectMetadata"), &json!(null)));
    assert_eq!(at(&alone, "/metadata/uid"), at(&made, "/metadata/uid"));
    let list = world.must(maps().list_metadata().fields("metadata.name=a")).list();
    assert_eq!(list.items.len(), 1);
    assert_eq!((list.items[0].name(), list.items[0].pointer("/data")), ("a", None));
}

fn tables_are_as_the_server_prints_them(stage: &Stage) {
    let world = stage.api();
    for name in ["a", "b"] {
        world.must(maps().create(map(name, "1")));
    }
    let table = world.must(maps().table("a")).table();
    let columns: Vec<_> = table.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(columns, ["Name", "Data", "Age"]);
    assert_eq!((table.rows.len(), &table.rows[0].cells[..2]), (1, &[json!("a"), json!(1)][..]));
    let table = world.must(maps().list_table().limit(1).fields("metadata.name!=kube-root-ca.crt")).table();
    assert_eq!(table.rows[0].cells[0], "a");
}

fn types_are_found_by_every_name(stage: &Stage) {
    let world = stage.api();
    for name in ["deploy", "deployment", "deployments", "deployments.apps", "deployments.v1.apps", "Deployment"] {
        assert_eq!(world.must(Op::find_type(name)).text(), "apps/v1/deployments", "{name}");
    }
    assert_eq!(world.must(Op::find_type("svc")).text(), "v1/services");
    let error = world.fail(Op::find_type("gadgets"));
    assert!(matches!(&error, Error::NotServed(unknown) if &*unknown.name == "gadgets"), "{error:?}");
}

fn a_wait_ends_when_what_is_waited_for_holds(stage: &Stage) {
    let world = stage.api();
    let minute = Duration::from_secs(60);
    let waiting = world.start(maps().wait_for("a", Until::Exists, minute));
    world.must(maps().create(map("a", "1")));
    assert_eq!(waiting.one().unwrap().text(), "create");

    world.must(deployments().create(deployment("d")));
    let waiting = world.start(deployments().wait_for("d", Until::Condition("Available"), minute));
    let conditions = json!({"status": {"conditions": [{"type": "Available", "status": "True"}]}});
    world.must(deployments().merge("d", conditions).subresource("status"));
    assert_eq!(waiting.one().unwrap().text(), "condition=Available");

    let waiting = world.start(maps().wait_for("a", Until::Deleted, minute));
    world.must(maps().delete("a"));
    assert_eq!(waiting.one().unwrap().text(), "delete");
}

fn a_wait_for_what_does_not_come_runs_out_of_time(stage: &Stage) {
    let limit = Duration::from_millis(300);
    let error = stage.api().fail(maps().wait_for("a", Until::Exists, limit));
    assert_eq!(error, Error::TimedOut(limit));
}

fn a_manifest_is_applied_and_deleted_whole(stage: &Stage) {
    let world = stage.api();
    let text = "
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data: {key: '1'}
---
apiVersion: v1
kind: Gadget
metadata: {name: unknown}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b}
";
    let did = |op: Op, done: Done| {
        let mut outcomes = world.must(op).outcomes();
        outcomes.sort_by(|one, other| one.name.cmp(&other.name));
        let outcomes: Vec<_> =
            outcomes.iter().map(|outcome| (outcome.name.as_str(), outcome.result.as_ref().ok())).collect();
        assert_eq!(outcomes, [("a", Some(&done)), ("b", Some(&done)), ("unknown", None)]);
    };
    did(Op::apply_manifest(text), Done::Created);
    did(Op::apply_manifest(text), Done::Unchanged);
    assert_eq!(at(&world.must(maps().get("a")).value(), "/data/key"), "1");
    did(Op::delete_manifest(text), Done::Deleted);
    assert_eq!(world.must(maps().find("b")), Reply::Missing);
}

fn the_server_tells_its_version_and_that_it_is_ready(stage: &Stage) {
    let world = stage.api();
    let Reply::Version(version) = world.must(Op::version()) else { panic!("no version") };
    assert!(version.git_version.starts_with("v1."), "{version:?}");
    assert_eq!(world.must(Op::ready()), Reply::Ready);
    assert_eq!(world.must(Op::whoami()).text(), "admin");
}

fn names_of_other_languages_are_kept(stage: &Stage) {
    let world = stage.api();
    let value = "naïve → 完了 \u{1F600}\u{0}\u{7f}\u{2028}\\\"/\r\n\t";
    let made = world.must(maps().create(map("a", value))).value();
    assert_eq!(at(&made, "/data/key"), value);
    let annotation = json!({"metadata": {"annotations": {"example.com/x": value.replace('\0', "")}}});
    let patched = world.must(maps().merge("a", annotation)).value();
    assert_eq!(patched["metadata"]["annotations"]["example.com/x"], value.replace('\0', ""));
    assert_eq!(
        world.must(maps().list().fields("metadata.name=a")).list().items[0].clone().into_value()["data"],
        patched["data"]
    );
}

fn requests_say_what_they_carry(stage: &Stage) {
    let play = stage.play(Box::new(|_| Answer::json(&stored("a", 5))));
    let patches = [
        (maps().merge("a", json!({})), "application/merge-patch+json"),
        (maps().patch("a", Patch::Strategic(json!({}))), "application/strategic-merge-patch+json"),
        (maps().patch("a", Patch::Json(serde_json::from_value(json!([])).unwrap())), "application/json-patch+json"),
        (maps().apply("me", map("a", "1")), "application/apply-patch+yaml"),
        (maps().create(map("a", "1")), "application/json"),
    ];
    for (op, content_type) in patches {
        play.must(op.manager("me"));
        let seen = play.seen().pop().unwrap();
        assert_eq!(seen.header("content-type"), Some(content_type));
        assert!(seen.header("accept").is_some_and(|accept| accept.contains("application/json")), "{seen:?}");
        assert_eq!(seen.parameter("fieldManager"), Some("me"));
    }
}

fn labelled(kind: &str, name: &str, app: &str) -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "labels": {"app": app}}})
}

fn deployment(name: &str) -> serde_json::Value {
    let container = json!({"name": "app", "image": "image.example/app"});
    let template = json!({"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template},
    })
}
