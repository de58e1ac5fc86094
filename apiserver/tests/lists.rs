//! Lists: pages, resource versions, selectors, and the forms they come in.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod common;

use std::time::Duration;

use cloudcoil_apiserver::ServerConfig;
use common::{World, map, names, refusal};
use serde_json::{Value, json};

/// Nothing but a test makes secrets.
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

fn world_of(names: &[&str]) -> World {
    let mut world = World::new();
    for name in names {
        world.create(SECRETS, json!({"metadata": {"name": name, "labels": {"first": &name[..1]}}}));
    }
    world
}

fn next(list: &Value) -> &str {
    list["metadata"]["continue"].as_str().unwrap_or_default()
}

#[test]
fn a_list_is_in_order_and_tells_its_version() {
    let mut world = world_of(&["b", "a", "c"]);
    let (code, list) = world.get(SECRETS);
    assert_eq!((code, &list["kind"], names(&list)), (200, &json!("SecretList"), vec!["a", "b", "c"]));
    assert_eq!(list["metadata"]["resourceVersion"], world.server.revision().to_string());
    assert!(list["items"][0].get("kind").is_none(), "items of built-in kinds come without their type");
    let (code, none) = world.get("/api/v1/namespaces/nowhere/secrets");
    assert_eq!((code, names(&none)), (200, vec![]));
}

#[test]
fn keys_are_ordered_by_bytes_across_namespaces() {
    let mut world = world_of(&["a"]);
    for namespace in ["default-b", "a"] {
        world.create("/api/v1/namespaces", map(namespace));
        world.create(&format!("/api/v1/namespaces/{namespace}/secrets"), map("x"));
    }
    world.settle();
    let (_, list) = world.get("/api/v1/secrets");
    let keys: Vec<_> =
        list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["namespace"].as_str().unwrap()).collect();
    assert_eq!(keys, ["a", "default-b", "default"], "as etcd orders a/x, default-b/x, default/a");
}

#[test]
fn pages_show_the_state_of_the_first_one() {
    let mut world = world_of(&["a", "b", "c", "d", "e"]);
    let (_, first) = world.get(&format!("{SECRETS}?limit=2"));
    assert_eq!((names(&first), &first["metadata"]["remainingItemCount"]), (vec!["a", "b"], &json!(3)));
    world.call("DELETE", &format!("{SECRETS}/c"), None);
    world.create(SECRETS, map("bb"));
    let (_, second) = world.get(&format!("{SECRETS}?limit=2&continue={}", next(&first)));
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    let (_, last) = world.get(&format!("{SECRETS}?limit=2&continue={}", next(&second)));
    assert_eq!((names(&last), next(&last)), (vec!["e"], ""));
    assert!(last["metadata"].get("remainingItemCount").is_none());
    assert_eq!(names(&world.get(SECRETS).1), ["a", "b", "bb", "d", "e"]);
}

#[test]
fn a_page_of_a_selection_does_not_say_how_many_are_left() {
    let mut world = world_of(&["a1", "b1", "a2", "a3"]);
    let (_, first) = world.get(&format!("{SECRETS}?limit=1&labelSelector=first%3Da"));
    assert_eq!(names(&first), ["a1"]);
    assert!(!next(&first).is_empty() && first["metadata"].get("remainingItemCount").is_none());
    let (_, rest) = world.get(&format!("{SECRETS}?labelSelector=first%3Da&continue={}", next(&first)));
    assert_eq!(names(&rest), ["a2", "a3"]);
}

#[test]
fn an_expired_page_can_go_on_from_the_newest_state() {
    let mut world = world_of(&["a", "b", "c"]);
    let (_, first) = world.get(&format!("{SECRETS}?limit=1"));
    world.create(SECRETS, map("aa"));
    world.create(SECRETS, map("d"));
    let revision = world.server.revision();
    world.server.compact(revision);
    let answer = world.get(&format!("{SECRETS}?limit=1&continue={}", next(&first)));
    assert_eq!((answer.0, refusal(&answer).1), (410, "Expired"));
    assert!(refusal(&answer).2.starts_with("The provided continue parameter is too old to display a consistent list"));
    let (code, rest) = world.get(&format!("{SECRETS}?continue={}", next(&answer.1)));
    assert_eq!((code, names(&rest)), (200, vec!["aa", "b", "c", "d"]));
    let old = world.get(&format!("{SECRETS}?resourceVersion=2&resourceVersionMatch=Exact"));
    assert_eq!(refusal(&old), (410, "Expired", "The resourceVersion for the provided list is too old."));
}

#[test]
fn history_is_bounded() {
    let mut world = World::with(ServerConfig { history: 3, ..ServerConfig::default() });
    let (_, first) = {
        world.create(SECRETS, map("a"));
        world.create(SECRETS, map("b"));
        world.get(&format!("{SECRETS}?limit=1"))
    };
    for name in ["c", "d", "e"] {
        world.create(SECRETS, map(name));
    }
    assert_eq!(world.get(&format!("{SECRETS}?continue={}", next(&first))).0, 200);
    world.create(SECRETS, map("f"));
    assert_eq!(world.get(&format!("{SECRETS}?continue={}", next(&first))).0, 410);
}

#[test]
fn an_exact_version_is_the_state_of_its_time() {
    let mut world = world_of(&["a"]);
    let then = world.server.revision();
    world.create(SECRETS, map("b"));
    world.patch(&format!("{SECRETS}/a"), json!({"data": {"x": "MQ=="}}));
    let (_, list) = world.get(&format!("{SECRETS}?resourceVersion={then}&resourceVersionMatch=Exact"));
    assert_eq!((names(&list), &list["metadata"]["resourceVersion"]), (vec!["a"], &json!(then.to_string())));
    assert!(list["items"][0].get("data").is_none());
    let (_, newer) = world.get(&format!("{SECRETS}?resourceVersion={then}&resourceVersionMatch=NotOlderThan"));
    assert_eq!(names(&newer), ["a", "b"]);
    let (_, legacy) = world.get(&format!("{SECRETS}?resourceVersion={then}&limit=5"));
    assert_eq!(names(&legacy), ["a"], "with a limit an old version means exactly that");
    let future = world.get(&format!("{SECRETS}?resourceVersion=9999&resourceVersionMatch=Exact"));
    assert_eq!((future.0, refusal(&future).1), (504, "Timeout"));
}

#[test]
fn a_version_yet_to_come_is_waited_for() {
    let mut world = world_of(&["a"]);
    let revision = world.server.revision();
    for path in
        [format!("{SECRETS}?resourceVersion={}", revision + 1), format!("{SECRETS}/a?resourceVersion={}", revision + 1)]
    {
        let ticket = world.send(common::request("GET", &path, "application/json", bytes::Bytes::new()));
        assert_eq!(world.reply(ticket).code, 0, "nothing yet");
        world.wait(Duration::from_secs(3));
        let reply = world.reply(ticket).clone();
        let answer = (reply.code, reply.json());
        let message = format!("Timeout: Too large resource version: {}, current: {revision}", revision + 1);
        assert_eq!(refusal(&answer), (504, "Timeout", &*message));
        assert_eq!(
            answer.1["details"],
            json!({"causes": [{"reason": "ResourceVersionTooLarge",
            "message": "Too large resource version"}], "retryAfterSeconds": 1})
        );
        assert_eq!(reply.headers["retry-after"], "1");
    }
    let path = format!("{SECRETS}?resourceVersion={}", revision + 1);
    let ticket = world.send(common::request("GET", &path, "application/json", bytes::Bytes::new()));
    world.create(SECRETS, map("b"));
    assert_eq!((world.reply(ticket).code, names(&world.reply(ticket).json())), (200, vec!["a", "b"]));
}

#[test]
fn a_frozen_cache_reads_the_past_unless_asked_for_the_newest() {
    let mut world = world_of(&["a"]);
    let then = world.server.revision();
    world.server.freeze();
    world.create(SECRETS, map("b"));
    assert_eq!(names(&world.get(&format!("{SECRETS}?resourceVersion=0")).1), ["a"]);
    assert_eq!(names(&world.get(&format!("{SECRETS}?resourceVersion={then}")).1), ["a"]);
    assert_eq!(names(&world.get(SECRETS).1), ["a", "b"]);
    assert_eq!(world.get(&format!("{SECRETS}/b?resourceVersion=0")).0, 404);
    let path = format!("{SECRETS}?resourceVersion={}", then + 1);
    let ticket = world.send(common::request("GET", &path, "application/json", bytes::Bytes::new()));
    assert_eq!(world.reply(ticket).code, 0);
    world.act(|server, now, out| server.thaw(now, out));
    assert_eq!((world.reply(ticket).code, names(&world.reply(ticket).json())), (200, vec!["a", "b"]));
    assert_eq!(names(&world.get(&format!("{SECRETS}?resourceVersion=0")).1), ["a", "b"]);
}

#[test]
fn selectors_choose_by_labels_and_known_fields() {
    let mut world = world_of(&["a1", "a2", "b1"]);
    for (query, expected) in [
        ("labelSelector=first%3Da", vec!["a1", "a2"]),
        ("labelSelector=first+in+(b,c)", vec!["b1"]),
        ("labelSelector=!first", vec![]),
        ("fieldSelector=metadata.name%3Da1", vec!["a1"]),
        ("fieldSelector=metadata.name!%3Da1,metadata.namespace%3Ddefault", vec!["a2", "b1"]),
        ("fieldSelector=metadata.namespace%3Dother", vec![]),
        ("labelSelector=first%3Da&fieldSelector=metadata.name%3Db1", vec![]),
    ] {
        let (code, list) = world.get(&format!("{SECRETS}?{query}"));
        assert_eq!((code, names(&list)), (200, expected), "{query}");
    }
    for query in ["labelSelector=a%3D%3D%3Db", "labelSelector=!!", "fieldSelector=data.x%3D1", "fieldSelector=x"] {
        assert_eq!(world.get(&format!("{SECRETS}?{query}")).0, 400, "{query}");
    }
}

#[test]
fn built_in_kinds_are_selected_by_the_fields_that_the_api_server_knows() {
    let mut world = World::new();
    let pods = "/api/v1/namespaces/default/pods";
    for name in ["a", "b"] {
        world.create(pods, json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}}));
    }
    world.create(&format!("{pods}/a/binding"), json!({"target": {"name": "n"}}));
    world.patch(&format!("{pods}/b/status"), json!({"status": {"phase": "Failed"}}));
    world.create("/api/v1/namespaces/default/secrets", json!({"metadata": {"name": "s"}, "type": "x/y"}));
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "a", "namespace": "default"},
        "type": "Normal", "reason": "R", "source": {"component": "me"}});
    world.create("/api/v1/namespaces/default/events", event);
    for (path, query, expected) in [
        ("/api/v1/pods", "spec.nodeName%3Dn", vec!["a"]),
        ("/api/v1/pods", "spec.nodeName%3D", vec!["b"]),
        ("/api/v1/pods", "status.phase!%3DPending", vec!["b"]),
        ("/api/v1/pods", "spec.hostNetwork%3Dfalse", vec!["a", "b"]),
        ("/api/v1/secrets", "type%3Dx/y", vec!["s"]),
        ("/api/v1/events", "involvedObject.name%3Da,involvedObject.kind%3DPod,source%3Dme", vec!["e"]),
        ("/apis/events.k8s.io/v1/events", "regarding.name%3Da,type%3DNormal", vec!["e"]),
        ("/api/v1/namespaces", "status.phase%3DActive,metadata.name%3Ddefault", vec!["default"]),
    ] {
        let (code, list) = world.get(&format!("{path}?fieldSelector={query}"));
        assert_eq!((code, names(&list)), (200, expected), "{path} {query}");
    }
    let unknown = world.get("/api/v1/pods?fieldSelector=spec.foo%3D1");
    assert_eq!(refusal(&unknown), (400, "BadRequest", "field label not supported: spec.foo"));
}

#[test]
fn events_of_both_groups_are_one() {
    let mut world = World::new();
    let event = json!({"metadata": {"name": "e"}, "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
        "note": "n", "reason": "R", "type": "Normal", "eventTime": "2026-01-02T03:04:05.000000Z", "action": "A",
        "reportingController": "c", "reportingInstance": "i"});
    world.create("/apis/events.k8s.io/v1/namespaces/default/events", event);
    let (_, core) = world.get("/api/v1/namespaces/default/events/e");
    assert_eq!(
        (&core["message"], &core["involvedObject"]["name"], &core["reportingComponent"]),
        (&json!("n"), &json!("p"), &json!("c"))
    );
    world.patch("/api/v1/namespaces/default/events/e", json!({"message": "m", "count": 2}));
    let (_, own) = world.get("/apis/events.k8s.io/v1/namespaces/default/events/e");
    assert_eq!(
        (&own["note"], &own["deprecatedCount"], &own["apiVersion"]),
        (&json!("m"), &json!(2), &json!("events.k8s.io/v1"))
    );
}

#[test]
fn lists_come_as_tables_and_as_metadata() {
    let mut world = world_of(&["a"]);
    let form = |kind: &str| format!("application/json;as={kind};v=v1;g=meta.k8s.io");
    let (_, table) = world.get_as(SECRETS, &form("Table"));
    assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    assert_eq!(table["rows"][0]["cells"], json!(["a", "Opaque", 0, "0s"]));
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    let (_, bare) = world.get_as(&format!("{SECRETS}?includeObject=None"), &form("Table"));
    assert_eq!(bare["rows"][0]["object"], Value::Null);
    let (_, whole) = world.get_as(&format!("{SECRETS}/a?includeObject=Object"), &form("Table"));
    assert_eq!(whole["rows"][0]["object"]["kind"], "Secret");
    let (_, list) = world.get_as(SECRETS, &form("PartialObjectMetadataList"));
    assert_eq!(
        (&list["kind"], &list["items"][0]["metadata"]["name"]),
        (&json!("PartialObjectMetadataList"), &json!("a"))
    );
    let (_, one) = world.get_as(&format!("{SECRETS}/a"), &form("PartialObjectMetadata"));
    assert_eq!((&one["kind"], one.get("data")), (&json!("PartialObjectMetadata"), None));
    for (path, accept) in [
        (SECRETS.to_owned(), form("PartialObjectMetadata")),
        (format!("{SECRETS}/a"), form("PartialObjectMetadataList")),
        (SECRETS.to_owned(), form("Odd")),
        (SECRETS.to_owned(), "text/html".to_owned()),
        (SECRETS.to_owned(), "application/vnd.kubernetes.protobuf".to_owned()),
    ] {
        assert_eq!(world.get_as(&path, &accept).0, 406, "{accept}");
    }
}

#[test]
fn parameters_that_make_no_sense_are_refused() {
    let mut world = World::new();
    for (query, code) in [
        ("limit=x", 400),
        ("limit=-1", 200),
        ("continue=x", 400),
        ("resourceVersion=x", 400),
        ("timeoutSeconds=x", 400),
        ("resourceVersionMatch=Exact", 422),
        ("resourceVersionMatch=Odd&resourceVersion=1", 422),
        ("resourceVersion=0&resourceVersionMatch=Exact", 422),
        ("sendInitialEvents=true", 422),
        ("watch=1&sendInitialEvents=true", 422),
        ("watch=1&resourceVersionMatch=NotOlderThan", 422),
        ("watch=1&resourceVersion=x", 500),
    ] {
        assert_eq!(world.get(&format!("{SECRETS}?{query}")).0, code, "{query}");
    }
}

#[test]
fn discovery_tells_the_same_in_one_document_and_in_many() {
    let mut world = World::new();
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let mut seen = 0;
    for root in ["/api", "/apis"] {
        let (_, all) = world.get_as(root, aggregated);
        for group in all["items"].as_array().unwrap() {
            for version in group["versions"].as_array().unwrap() {
                let name = group["metadata"]["name"].as_str().map(|name| format!("/{name}")).unwrap_or_default();
                let (code, one) = world.get(&format!("{root}{name}/{}", version["version"].as_str().unwrap()));
                assert_eq!(code, 200);
                let listed = one["resources"].as_array().unwrap();
                for resource in version["resources"].as_array().unwrap() {
                    let same = listed.iter().find(|one| one["name"] == resource["resource"]).unwrap();
                    assert_eq!(
                        (&same["verbs"], &same["kind"]),
                        (&resource["verbs"], &resource["responseKind"]["kind"])
                    );
                    seen += 1 + resource["subresources"].as_array().map_or(0, Vec::len);
                }
                seen -= listed.len();
            }
        }
    }
    assert_eq!(seen, 0, "as many resources and subresources one way as the other");
    assert_eq!(world.get("/apis/apps").1["preferredVersion"]["groupVersion"], "apps/v1");
    assert_eq!(world.get("/apis/none").0, 404);
}

#[test]
fn openapi_describes_every_kind_and_says_what_writes_may_say() {
    let mut world = World::new();
    let (_, index) = world.get("/openapi/v3");
    let paths = index["paths"].as_object().unwrap().clone();
    assert!(paths.contains_key("api/v1") && paths.contains_key("apis/apps/v1"));
    for entry in paths.values() {
        let (code, document) = world.get(entry["serverRelativeURL"].as_str().unwrap());
        assert_eq!(code, 200);
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let text = document.to_string();
        for reference in text.split("#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(schemas.contains_key(name), "{name} is referred to and not described");
        }
    }
    let (_, apps) = world.get("/openapi/v3/apis/apps/v1");
    let patch = &apps["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    assert!(patch["parameters"].as_array().unwrap().iter().any(|one| one["name"] == "fieldValidation"));
    assert_eq!(world.get("/openapi/v3/apis/none/v1").0, 404);
}
