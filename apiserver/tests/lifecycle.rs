//! How objects go away, alone and with others; namespaces; custom resource definitions.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod common;

use std::time::Duration;

use common::{DEFINITIONS, MAPS, WIDGETS, World, definition, map, names, refusal, widget};
use serde_json::{Value, json};

fn owned(name: &str, owners: &[&Value]) -> Value {
    let references: Vec<_> = owners
        .iter()
        .map(|owner| {
            json!({"apiVersion": "v1", "kind": owner["kind"], "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true})
        })
        .collect();
    json!({"metadata": {"name": name, "ownerReferences": references}})
}

fn at(name: &str) -> String {
    format!("{MAPS}/{name}")
}

fn delete(world: &mut World, path: &str, policy: &str) {
    let (code, answer) = world.call("DELETE", path, Some(json!({"propagationPolicy": policy})));
    assert_eq!(code, 200, "{answer}");
}

#[test]
fn finalizers_keep_an_object_until_the_last_one_goes() {
    let mut world = World::new();
    world.create(MAPS, json!({"metadata": {"name": "a", "finalizers": ["x.y/1", "x.y/2"]}}));
    let (code, deleting) = world.call("DELETE", &at("a"), None);
    assert_eq!((code, &deleting["kind"]), (200, &json!("ConfigMap")));
    assert_eq!(deleting["metadata"]["deletionTimestamp"], "2026-01-02T03:04:05Z");
    assert_eq!(deleting["metadata"]["deletionGracePeriodSeconds"], 0);
    world.wait(Duration::from_secs(60));
    let (code, again) = world.call("DELETE", &at("a"), None);
    assert_eq!((code, again), (200, deleting.clone()), "deleting it again changes nothing");
    let exists = world.call("POST", MAPS, Some(map("a")));
    assert_eq!(refusal(&exists).2, "object is being deleted: configmaps \"a\" already exists");
    let more = world.call("PATCH", &at("a"), Some(json!({"metadata": {"finalizers": ["x.y/1", "x.y/2", "x.y/3"]}})));
    assert_eq!(more.0, 422);
    let fewer = world.patch(&at("a"), json!({"metadata": {"finalizers": ["x.y/2"]}}));
    assert_eq!(fewer["metadata"]["deletionTimestamp"], deleting["metadata"]["deletionTimestamp"]);
    let gone = world.patch(&at("a"), json!({"metadata": {"finalizers": null}}));
    assert!(gone["metadata"].get("finalizers").is_none() && !world.exists(&at("a")));
}

#[test]
fn what_is_owned_goes_after_its_owner() {
    let mut world = World::new();
    let owner = world.create(MAPS, map("owner"));
    let child = world.create(MAPS, owned("child", &[&owner]));
    world.create(MAPS, owned("grandchild", &[&child]));
    world.create(MAPS, map("other"));
    world.settle();
    assert!(world.exists(&at("grandchild")));
    delete(&mut world, &at("owner"), "Background");
    assert!(!world.exists(&at("owner")) && world.exists(&at("child")), "the collector needs a moment");
    world.settle();
    assert!(!world.exists(&at("child")) && !world.exists(&at("grandchild")) && world.exists(&at("other")));
}

#[test]
fn an_object_with_another_owner_stays() {
    let mut world = World::new();
    let [one, two] = ["one", "two"].map(|name| world.create(MAPS, map(name)));
    world.create(MAPS, owned("child", &[&one, &two]));
    delete(&mut world, &at("one"), "Background");
    world.settle();
    let (_, child) = world.get(&at("child"));
    let owners = child["metadata"]["ownerReferences"].as_array().unwrap();
    assert_eq!((owners.len(), &owners[0]["name"]), (1, &json!("two")), "and forgets the one that is gone");
    delete(&mut world, &at("two"), "Background");
    world.settle();
    assert!(!world.exists(&at("child")));
}

#[test]
fn what_is_owned_goes_before_an_owner_deleted_in_the_foreground() {
    let mut world = World::new();
    let owner = world.create(MAPS, map("owner"));
    let mut child = owned("child", &[&owner]);
    child["metadata"]["finalizers"] = json!(["x.y/z"]);
    world.create(MAPS, child);
    delete(&mut world, &at("owner"), "Foreground");
    world.settle();
    let (_, waiting) = world.get(&at("owner"));
    assert_eq!(waiting["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    let (_, child) = world.get(&at("child"));
    assert!(child["metadata"]["deletionTimestamp"].is_string());
    world.patch(&at("child"), json!({"metadata": {"finalizers": null}}));
    world.settle();
    assert!(!world.exists(&at("child")) && !world.exists(&at("owner")));
}

#[test]
fn a_tree_goes_leaves_first_in_the_foreground() {
    let mut world = World::new();
    let root = world.create(MAPS, map("root"));
    let branch = world.create(MAPS, owned("branch", &[&root]));
    world.create(MAPS, owned("leaf", &[&branch]));
    let watch = world.watch(&format!("{MAPS}?watch=1&resourceVersion={}", world.server.revision()));
    delete(&mut world, &at("root"), "Foreground");
    world.settle();
    let told = world.told(watch);
    let gone: Vec<_> = told.iter().filter_map(|line| line.strip_prefix("DELETED ")?.split(' ').next()).collect();
    assert_eq!(gone, ["leaf", "branch", "root"]);
}

#[test]
fn orphans_stay_without_their_owner() {
    let mut world = World::new();
    let owner = world.create(MAPS, map("owner"));
    world.create(MAPS, owned("child", &[&owner]));
    delete(&mut world, &at("owner"), "Orphan");
    world.settle();
    assert!(!world.exists(&at("owner")));
    assert!(world.get(&at("child")).1["metadata"].get("ownerReferences").is_none());
}

#[test]
fn an_owner_that_never_was_takes_its_dependents_with_it() {
    let mut world = World::new();
    let ghost = json!({"kind": "ConfigMap", "metadata": {"name": "ghost", "uid": "none"}});
    world.create(MAPS, owned("child", &[&ghost]));
    let mut unknown = owned("kept", &[&ghost]);
    unknown["metadata"]["ownerReferences"][0]["kind"] = json!("Unserved");
    world.create(MAPS, unknown);
    let real = world.create(MAPS, map("real"));
    let mut other = owned("replaced", &[&real]);
    other["metadata"]["ownerReferences"][0]["uid"] = json!("another");
    world.create(MAPS, other);
    world.settle();
    assert!(!world.exists(&at("child")) && world.exists(&at("kept")) && !world.exists(&at("replaced")));
}

#[test]
fn an_owner_in_another_namespace_is_no_owner() {
    let mut world = World::new();
    let owner = world.create("/api/v1/namespaces/kube-public/configmaps", map("owner"));
    world.create(MAPS, owned("child", &[&owner]));
    let node = world.create("/api/v1/nodes", map("n"));
    world.create(MAPS, owned("of-node", &[&node]));
    world.settle();
    assert!(!world.exists(&at("child")) && world.exists(&at("of-node")));
    delete(&mut world, "/api/v1/nodes/n", "Background");
    world.settle();
    assert!(!world.exists(&at("of-node")));
}

#[test]
fn every_cluster_has_its_namespaces_and_every_namespace_its_equipment() {
    let mut world = World::new();
    let (_, list) = world.get("/api/v1/namespaces");
    assert_eq!(names(&list), ["default", "kube-node-lease", "kube-public", "kube-system"]);
    assert_eq!(list["items"][0]["spec"], json!({"finalizers": ["kubernetes"]}));
    assert_eq!(list["items"][0]["status"]["phase"], "Active");
    let created = world.create("/api/v1/namespaces", map("mine"));
    assert_eq!(created["metadata"]["labels"], json!({"kubernetes.io/metadata.name": "mine"}));
    world.settle();
    for namespace in ["default", "mine"] {
        assert!(world.exists(&format!("/api/v1/namespaces/{namespace}/serviceaccounts/default")));
        assert!(world.exists(&format!("/api/v1/namespaces/{namespace}/configmaps/kube-root-ca.crt")));
    }
    world.call("DELETE", "/api/v1/namespaces/mine/serviceaccounts/default", None);
    world.settle();
    assert!(world.exists("/api/v1/namespaces/mine/serviceaccounts/default"), "it is made anew");
}

#[test]
fn a_namespace_takes_what_is_in_it_along() {
    let mut world = World::new();
    world.create("/api/v1/namespaces", map("mine"));
    let maps = "/api/v1/namespaces/mine/configmaps";
    world.create(maps, json!({"metadata": {"name": "held", "finalizers": ["x.y/z"]}}));
    world.create("/api/v1/namespaces/mine/secrets", map("s"));
    world.create(MAPS, map("elsewhere"));
    world.settle();
    let (code, deleting) = world.call("DELETE", "/api/v1/namespaces/mine", None);
    assert_eq!(
        (code, &deleting["kind"], &deleting["status"]["phase"]),
        (200, &json!("Namespace"), &json!("Terminating"))
    );
    let late = world.call("POST", maps, Some(map("late")));
    let message = "configmaps \"late\" is forbidden: unable to create new content in namespace mine because it is being \
        terminated";
    assert_eq!(refusal(&late), (403, "Forbidden", message));
    assert_eq!(late.1["details"]["causes"][0]["reason"], "NamespaceTerminating");
    world.settle();
    assert!(!world.exists("/api/v1/namespaces/mine/secrets/s"));
    let (_, waiting) = world.get("/api/v1/namespaces/mine");
    let conditions = waiting["status"]["conditions"].as_array().unwrap();
    let remaining = conditions.iter().find(|condition| condition["type"] == "NamespaceFinalizersRemaining").unwrap();
    assert_eq!((&remaining["status"], &remaining["reason"]), (&json!("True"), &json!("SomeFinalizersRemain")));
    world.patch(&format!("{maps}/held"), json!({"metadata": {"finalizers": null}}));
    world.settle();
    assert!(!world.exists("/api/v1/namespaces/mine") && world.exists(&at("elsewhere")));
    assert_eq!(world.call("POST", maps, Some(map("late"))).0, 404);
    world.create("/api/v1/namespaces", map("mine"));
}

#[test]
fn namespaces_that_a_cluster_needs_stay() {
    let mut world = World::new();
    for name in ["default", "kube-system", "kube-public"] {
        let answer = world.call("DELETE", &format!("/api/v1/namespaces/{name}"), None);
        let message = format!("namespaces \"{name}\" is forbidden: this namespace may not be deleted");
        assert_eq!(refusal(&answer), (403, "Forbidden", &*message));
    }
}

#[test]
fn a_namespace_goes_when_another_finalizes_it() {
    let mut world = World::new();
    world.create("/api/v1/namespaces", json!({"metadata": {"name": "mine"}, "spec": {"finalizers": ["x.y/z"]}}));
    world.call("DELETE", "/api/v1/namespaces/mine", None);
    world.settle();
    let (_, namespace) = world.get("/api/v1/namespaces/mine");
    assert_eq!(namespace["spec"]["finalizers"], json!(["x.y/z"]), "its own part is done");
    let mut unchanged = world.patch("/api/v1/namespaces/mine", json!({"spec": {"finalizers": []}}));
    assert_eq!(unchanged["spec"]["finalizers"], json!(["x.y/z"]), "that is for finalize alone");
    unchanged["spec"]["finalizers"] = json!([]);
    assert_eq!(world.call("PUT", "/api/v1/namespaces/mine/finalize", Some(unchanged)).0, 200);
    assert!(!world.exists("/api/v1/namespaces/mine"));
}

#[test]
fn a_definition_is_served_once_it_is_established() {
    let mut world = World::new();
    let created = world.create(DEFINITIONS, definition(&[json!({"name": "v1", "storage": true})]));
    assert_eq!(created["spec"]["names"]["listKind"], "WidgetList");
    assert_eq!(created["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(world.get(WIDGETS), (404, json!("404 page not found\n")));
    world.settle();
    let (_, established) = world.get(&format!("{DEFINITIONS}/widgets.example.com"));
    let conditions: Vec<_> = established["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|condition| (condition["type"].as_str().unwrap(), condition["status"].as_str().unwrap()))
        .collect();
    assert_eq!(conditions, [("NamesAccepted", "True"), ("Established", "True")]);
    assert_eq!(established["status"]["acceptedNames"]["shortNames"], json!(["wd"]));
    let (_, resources) = world.get("/apis/example.com/v1");
    assert_eq!(resources["resources"][0]["shortNames"], json!(["wd"]));
    assert!(world.get("/apis").1.to_string().contains("example.com"));
    let made = world.create(WIDGETS, widget("w", json!({"any": [1, null, {"x": "y"}]})));
    assert_eq!((&made["metadata"]["generation"], &made["spec"]), (&json!(1), &json!({"any": [1, null, {"x": "y"}]})));
    let (_, list) = world.get(WIDGETS);
    assert_eq!((&list["kind"], &list["items"][0]["kind"]), (&json!("WidgetList"), &json!("Widget")));
}

#[test]
fn custom_resources_have_the_rules_of_all() {
    let mut world = World::new();
    world.create(DEFINITIONS, definition(&[json!({"name": "v1", "storage": true})]));
    world.settle();
    let made = world.create(WIDGETS, widget("w", json!({"size": 1})));
    assert!(made.get("status").is_none());
    let unversioned = world.call("PUT", &format!("{WIDGETS}/w"), Some(widget("w", json!({}))));
    assert_eq!(
        refusal(&unversioned).2,
        "widgets.example.com \"w\" is invalid: metadata.resourceVersion: Invalid value: 0: must \
        be specified for an update"
    );
    let generation = |object: &Value| object["metadata"]["generation"].as_i64();
    assert_eq!(generation(&world.patch(&format!("{WIDGETS}/w"), json!({"status": {"ready": true}}))), Some(2));
    assert_eq!(generation(&world.patch(&format!("{WIDGETS}/w"), json!({"metadata": {"labels": {"a": "b"}}}))), Some(2));
    for (body, code) in [
        (json!({"metadata": {"name": "x"}}), 400),
        (json!({"apiVersion": "example.com/v2", "kind": "Widget", "metadata": {"name": "x"}}), 400),
        (json!({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "x"}}), 422),
        (json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "X"}}), 422),
        (json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"labels": {"a": 1}}}), 400),
    ] {
        assert_eq!(world.call("POST", WIDGETS, Some(body.clone())).0, code, "{body}");
    }
    let strategic =
        world.call_as("PATCH", &format!("{WIDGETS}/w"), "application/strategic-merge-patch+json", Some(json!({})));
    assert_eq!(strategic.0, 415);
    assert_eq!(world.get(&format!("{WIDGETS}/w/status")).0, 404);
}

#[test]
fn a_definition_can_ask_for_status_scale_columns_and_fields() {
    let mut world = World::new();
    let version = json!({"name": "v1", "storage": true, "subresources": {"status": {}, "scale": {
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}},
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
        "selectableFields": [{"jsonPath": ".spec.color"}]});
    world.create(DEFINITIONS, definition(&[version]));
    world.settle();
    let mut body = widget("w", json!({"size": 3, "color": "red"}));
    body["status"] = json!({"replicas": 9});
    assert!(world.create(WIDGETS, body).get("status").is_none());
    world.create(WIDGETS, widget("v", json!({"size": 4, "color": "blue"})));
    let changed = world.patch(
        &format!("{WIDGETS}/w/status"),
        json!({"status": {"replicas": 2, "selector": "a=b"}, "spec": {"size": 8}}),
    );
    assert_eq!(
        (&changed["spec"]["size"], &changed["status"]["replicas"], &changed["metadata"]["generation"]),
        (&json!(3), &json!(2), &json!(1))
    );
    let (_, scale) = world.get(&format!("{WIDGETS}/w/scale"));
    assert_eq!((&scale["spec"], &scale["status"]), (&json!({}), &json!({"replicas": 2, "selector": "a=b"})));
    world.patch(&format!("{WIDGETS}/w/scale"), json!({"spec": {"replicas": 5}}));
    assert_eq!(world.get(&format!("{WIDGETS}/w")).1["spec"]["replicas"], 5);
    assert_eq!(names(&world.get(&format!("{WIDGETS}?fieldSelector=spec.color%3Dred")).1), ["w"]);
    assert_eq!(world.get(&format!("{WIDGETS}?fieldSelector=spec.size%3D3")).0, 400);
    let (_, table) = world.get_as(WIDGETS, "application/json;as=Table;v=v1;g=meta.k8s.io");
    assert_eq!(table["rows"][1]["cells"], json!(["w", 3]));
}

#[test]
fn versions_of_a_custom_resource_are_the_same_objects() {
    let mut world = World::new();
    world.create(
        DEFINITIONS,
        definition(&[json!({"name": "v1", "storage": true}), json!({"name": "v2beta1", "storage": false})]),
    );
    world.settle();
    world.create(WIDGETS, widget("w", json!({"a": 1})));
    let other = "/apis/example.com/v2beta1/namespaces/default/widgets";
    let watch = world.watch(&format!("{other}?watch=1"));
    assert_eq!(world.events(watch)[0]["object"]["apiVersion"], "example.com/v2beta1");
    let (code, same) = world.get(&format!("{other}/w"));
    assert_eq!((code, &same["apiVersion"], &same["spec"]["a"]), (200, &json!("example.com/v2beta1"), &json!(1)));
    world.patch(&format!("{other}/w"), json!({"spec": {"a": 2}}));
    assert_eq!(world.get(&format!("{WIDGETS}/w")).1["spec"]["a"], 2);
    let (_, group) = world.get("/apis/example.com");
    assert_eq!(group["preferredVersion"]["version"], "v1");
    let (_, mut stored) = world.get(&format!("{DEFINITIONS}/widgets.example.com"));
    stored["spec"]["versions"][1]["served"] = json!(false);
    assert_eq!(world.call("PUT", &format!("{DEFINITIONS}/widgets.example.com"), Some(stored)).0, 200);
    world.settle();
    assert_eq!((world.get(other).0, world.get(WIDGETS).0), (404, 200));
}

#[test]
fn a_definition_takes_its_objects_along() {
    let mut world = World::new();
    world.create(DEFINITIONS, definition(&[json!({"name": "v1", "storage": true})]));
    world.settle();
    let mut held = widget("held", json!({}));
    held["metadata"]["finalizers"] = json!(["x.y/z"]);
    world.create(WIDGETS, held);
    world.create(WIDGETS, widget("free", json!({})));
    let watch = world.watch(&format!("{WIDGETS}?watch=1&resourceVersion={}", world.server.revision()));
    let (code, deleting) = world.call("DELETE", &format!("{DEFINITIONS}/widgets.example.com"), None);
    assert_eq!(code, 200);
    assert_eq!(deleting["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
    world.settle();
    assert_eq!(names(&world.get(WIDGETS).1), ["held"]);
    let late = world.call("POST", WIDGETS, Some(widget("late", json!({}))));
    assert_eq!(
        refusal(&late),
        (405, "MethodNotAllowed", "create not allowed while custom resource definition is terminating")
    );
    world.patch(&format!("{WIDGETS}/held"), json!({"metadata": {"finalizers": null}}));
    world.settle();
    assert_eq!(world.get(WIDGETS), (404, json!("404 page not found\n")));
    assert!(!world.exists(&format!("{DEFINITIONS}/widgets.example.com")));
    assert!(world.reply(watch).closed, "there is nothing left to watch");
    assert_eq!(world.get("/apis/example.com").0, 404);
}

#[test]
fn definitions_that_cannot_be_are_refused_and_taken_names_wait() {
    let mut world = World::new();
    for (path, value) in [
        ("/metadata/name", json!("other")),
        ("/spec/group", json!("nodots")),
        ("/spec/scope", json!("Everywhere")),
        ("/spec/versions", json!([])),
        ("/spec/versions/0/storage", json!(false)),
        ("/spec/versions/0/schema", json!({})),
        ("/spec/names/plural", json!("Widgets")),
    ] {
        let mut bad = definition(&[json!({"name": "v1", "storage": true})]);
        *bad.pointer_mut(path).unwrap() = value;
        assert_eq!(world.call("POST", DEFINITIONS, Some(bad)).0, 422, "{path}");
    }
    world.create(DEFINITIONS, definition(&[json!({"name": "v1", "storage": true})]));
    world.settle();
    let mut second = definition(&[json!({"name": "v1", "storage": true})]);
    second["metadata"]["name"] = json!("others.example.com");
    second["spec"]["names"] = json!({"plural": "others", "singular": "other", "kind": "Widget"});
    world.create(DEFINITIONS, second);
    world.settle();
    let (_, waiting) = world.get(&format!("{DEFINITIONS}/others.example.com"));
    assert_eq!(waiting["status"]["conditions"][0]["reason"], "KindConflict");
    assert_eq!(world.get("/apis/example.com/v1/others").0, 404);
    world.call("DELETE", &format!("{DEFINITIONS}/widgets.example.com"), None);
    world.settle();
    world.settle();
    assert_eq!(world.get("/apis/example.com/v1/others").0, 200, "the name is free now");
}
