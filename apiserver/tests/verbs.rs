//! Creating, reading, replacing, patching and deleting, in the API server's words and codes.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod common;

use bytes::Bytes;
use cloudcoil_apiserver::ServerConfig;
use common::{MAPS, World, map, refusal, request};
use serde_json::{Value, json};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn deployment(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
        "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}}})
}

#[test]
fn a_new_object_gets_what_the_server_gives_it() {
    let mut world = World::new();
    let body = json!({"metadata": {"name": "a", "uid": "mine", "generation": 9, "creationTimestamp": null,
        "deletionTimestamp": "2020-01-01T00:00:00Z", "labels": {}, "generateName": ""}, "data": {"k": "v"}});
    let created = world.create(MAPS, body);
    let metadata = &created["metadata"];
    assert_eq!(metadata["namespace"], "default");
    assert_eq!(metadata["creationTimestamp"], "2026-01-02T03:04:05Z");
    assert_eq!(metadata["resourceVersion"], world.server.revision().to_string());
    assert_eq!(metadata["uid"].as_str().map(str::len), Some(36));
    assert_ne!(metadata["uid"], "mine");
    for absent in ["deletionTimestamp", "labels", "generateName"] {
        assert!(metadata.get(absent).is_none(), "{absent}");
    }
    assert_eq!(world.get(&format!("{MAPS}/a")), (200, created));
}

#[test]
fn a_name_is_made_from_its_prefix() {
    let mut world = World::new();
    let long = format!("{}-", "x".repeat(70));
    for prefix in ["a-", &long] {
        let created = world.create(MAPS, json!({"metadata": {"generateName": prefix}}));
        let name = created["metadata"]["name"].as_str().unwrap();
        assert!(name.len() <= 63 && name.starts_with(&prefix[..prefix.len().min(58)]), "{name}");
        assert_eq!(created["metadata"]["generateName"], prefix);
    }
    let both = world.create(MAPS, json!({"metadata": {"generateName": "a-", "name": "given"}}));
    assert_eq!(both["metadata"]["name"], "given");
}

#[test]
fn refusals_of_creation_say_what_the_api_server_says() {
    let mut world = World::new();
    world.create(MAPS, map("taken"));
    let other = "/api/v1/namespaces/none/configmaps";
    for (path, body, expected) in [
        (MAPS, map("taken"), (409, "AlreadyExists", "configmaps \"taken\" already exists")),
        (other, map("a"), (404, "NotFound", "namespaces \"none\" not found")),
        (
            MAPS,
            json!({"metadata": {"name": "a", "namespace": "x"}}),
            (
                400,
                "BadRequest",
                "the namespace of the provided object does not match the namespace sent on the request",
            ),
        ),
        (
            MAPS,
            json!({"metadata": {}}),
            (
                422,
                "Invalid",
                "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required",
            ),
        ),
        (
            MAPS,
            json!({"data": {"x": 1}}),
            (
                400,
                "BadRequest",
                "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: \
            json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
            ),
        ),
        (
            MAPS,
            json!({"kind": "ConfigMap", "apiVersion": "v2"}),
            (400, "BadRequest", "the API version in the data (v2) does not match the expected API version (v1)"),
        ),
        (
            MAPS,
            json!({"metadata": {"name": "a", "resourceVersion": "1"}}),
            (500, "", "resourceVersion should not be set on objects to be created"),
        ),
    ] {
        let answer = world.call("POST", path, Some(body.clone()));
        assert_eq!(refusal(&answer), expected, "{path} {body}");
    }
}

#[test]
fn refusals_of_options_and_paths_say_what_the_api_server_says() {
    let mut world = World::new();
    for (path, body, expected) in [
        (
            &*format!("{MAPS}?dryRun=x"),
            map("a"),
            (
                422,
                "Invalid",
                "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: \
            Unsupported value: [\"x\"]: supported values: \"All\"",
            ),
        ),
        (
            &format!("{MAPS}?fieldValidation=Strict"),
            json!({"metadata": {"name": "a", "odd": 1}, "foo": 1}),
            (
                400,
                "BadRequest",
                "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: unknown \
            field \"foo\", unknown field \"metadata.odd\"",
            ),
        ),
        (
            "/api/v1/configmaps",
            map("a"),
            (405, "MethodNotAllowed", "the server does not allow this method on the requested resource"),
        ),
        ("/api/v1/nothings", map("a"), (404, "NotFound", "the server could not find the requested resource")),
        (&format!("{MAPS}/a/status"), map("a"), (404, "NotFound", "the server could not find the requested resource")),
    ] {
        let answer = world.call("POST", path, Some(body.clone()));
        assert_eq!(refusal(&answer), expected, "{path} {body}");
    }
    assert_eq!(world.get("/apis/none/v1/x"), (404, json!("404 page not found\n")));
    assert_eq!(world.get("/none"), (404, json!("404 page not found\n")));
}

#[test]
fn an_invalid_object_names_its_fields() {
    let mut world = World::new();
    let metadata =
        json!({"name": "A_", "labels": {"a b": "c"}, "finalizers": ["x"], "ownerReferences": [{"kind": "K"}]});
    let (code, status) = world.call("POST", MAPS, Some(json!({"metadata": metadata, "data": {"a b": "c"}})));
    assert_eq!(
        (code, &status["details"]["kind"], &status["details"]["name"]),
        (422, &json!("ConfigMap"), &json!("A_"))
    );
    let causes = status["details"]["causes"].as_array().unwrap();
    let found: Vec<_> = causes.iter().map(|cause| [&cause["field"], &cause["reason"]]).collect();
    let (required, invalid) = (json!("FieldValueRequired"), json!("FieldValueInvalid"));
    assert_eq!(
        found,
        [
            [&json!("metadata.name"), &invalid],
            [&json!("metadata.labels"), &invalid],
            [&json!("metadata.ownerReferences[0].apiVersion"), &required],
            [&json!("metadata.ownerReferences[0].name"), &required],
            [&json!("metadata.ownerReferences[0].uid"), &required],
            [&json!("metadata.finalizers[0]"), &invalid],
            [&json!("data[a b]"), &invalid],
        ]
    );
}

#[test]
fn bodies_come_as_json_yaml_or_protobuf() {
    let mut world = World::new();
    let yaml = Bytes::from("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: written}\ndata:\n  a: \"1\"\n");
    let reply = world.exchange(request("POST", MAPS, "application/yaml", yaml));
    assert_eq!((reply.code, &reply.json()["data"]["a"]), (201, &json!("1")), "{}", reply.json());
    // k8s\0, a runtime.Unknown with an empty TypeMeta, and a ConfigMap whose ObjectMeta has the name `p`.
    let protobuf = b"k8s\0\x0a\0\x12\x05\x0a\x03\x0a\x01p";
    let reply =
        world.exchange(request("POST", MAPS, "application/vnd.kubernetes.protobuf", Bytes::from_static(protobuf)));
    assert_eq!((reply.code, &reply.json()["metadata"]["name"]), (201, &json!("p")));
    for (kind, body, code) in [
        ("text/plain", "{}", 415),
        ("application/json", "", 400),
        ("application/json", "{", 400),
        ("application/json", "[]", 400),
        ("application/yaml", ": :", 400),
        ("application/vnd.kubernetes.protobuf", "{}", 400),
        ("application/json; charset=utf-8", r#"{"metadata":{"name":"z"}}"#, 201),
    ] {
        let reply = world.exchange(request("POST", MAPS, kind, Bytes::from(body)));
        assert_eq!(reply.code, code, "{kind} {body}: {}", reply.json());
    }
    let large = Bytes::from(format!("{{\"data\":{{\"a\":\"{}\"}}}}", "x".repeat(3 << 20)));
    assert_eq!(world.exchange(request("POST", MAPS, "application/json", large)).code, 413);
}

#[test]
fn warnings_name_unknown_fields_unless_they_are_to_be_ignored() {
    let mut world = World::new();
    let body = |name: &str| Bytes::from(json!({"metadata": {"name": name}, "foo": 1}).to_string());
    let warned = world.exchange(request("POST", MAPS, "application/json", body("a")));
    assert_eq!(warned.headers["warning"], "299 - \"unknown field \\\"foo\\\"\"");
    assert!(warned.json().get("foo").is_none(), "what a type does not have is dropped");
    let ignored =
        world.exchange(request("POST", &format!("{MAPS}?fieldValidation=Ignore"), "application/json", body("b")));
    assert!(ignored.headers.get("warning").is_none() && ignored.code == 201);
}

#[test]
fn a_replace_is_conditional_when_it_names_a_version() {
    let mut world = World::new();
    let old = world.create(MAPS, map("a"));
    let path = format!("{MAPS}/a");
    let (code, new) = world.call("PUT", &path, Some(json!({"metadata": {"name": "a"}, "data": {"x": "1"}})));
    assert_eq!((code, &new["metadata"]["uid"]), (200, &old["metadata"]["uid"]));
    assert_eq!(new["metadata"]["creationTimestamp"], old["metadata"]["creationTimestamp"]);
    let mut stale = new.clone();
    stale["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
    let message = "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes \
        to the latest version and try again";
    assert_eq!(refusal(&world.call("PUT", &path, Some(stale))), (409, "Conflict", message));
    let (code, same) = world.call("PUT", &path, Some(new.clone()));
    assert_eq!((code, &same), (200, &new), "a change of nothing makes no new version");
    assert_eq!(world.call("PUT", &path, Some(json!({"metadata": {"name": "a", "uid": "other"}}))).0, 409);
    assert_eq!(world.call("PUT", &path, Some(json!({"metadata": {"name": "b"}}))).0, 400);
    assert_eq!(world.call("PUT", &path, Some(json!({"metadata": {}}))).0, 400);
    assert_eq!(world.call("PUT", &format!("{MAPS}/b"), Some(map("b"))).0, 404);
    assert_eq!(world.call("PUT", &path, Some(json!({"metadata": {"name": "a", "resourceVersion": "x"}}))).0, 500);
}

#[test]
fn some_kinds_are_created_by_a_replace_and_some_need_a_version() {
    let mut world = World::new();
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "x"}});
    assert_eq!(world.call("PUT", leases, Some(lease.clone())).0, 201);
    let message = "leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified \
        for an update";
    assert_eq!(refusal(&world.call("PUT", leases, Some(lease))), (422, "Invalid", message));
}

#[test]
fn patches_come_in_three_forms() {
    let mut world = World::new();
    world.create(DEPLOYMENTS, deployment("d"));
    let path = format!("{DEPLOYMENTS}/d");
    let json_patch = json!([{"op": "test", "path": "/spec/replicas", "value": 1}, {"op": "replace", "path": "/spec/replicas", "value": 2}]);
    let (code, patched) = world.call_as("PATCH", &path, "application/json-patch+json", Some(json_patch.clone()));
    assert_eq!((code, &patched["spec"]["replicas"]), (200, &json!(2)));
    let merged =
        world.patch(&path, json!({"spec": {"replicas": 3, "paused": true}, "metadata": {"labels": {"x": "y"}}}));
    assert_eq!((&merged["spec"]["replicas"], &merged["metadata"]["labels"]), (&json!(3), &json!({"x": "y"})));
    let containers = json!({"spec": {"template": {"spec": {"containers": [{"name": "d", "image": "j"}]}}}});
    let strategic = "application/strategic-merge-patch+json";
    let (code, patched) = world.call_as("PATCH", &path, strategic, Some(containers));
    assert_eq!((code, patched["spec"]["template"]["spec"]["containers"].as_array().map(Vec::len)), (200, Some(2)));
    for (kind, patch, code) in [
        ("application/json-patch+json", json_patch, 422),
        ("application/json-patch+json", json!([{"op": "remove", "path": "/nothing"}]), 422),
        ("application/json-patch+json", json!({"op": "remove"}), 400),
        ("application/merge-patch+json", json!([1]), 400),
        ("application/merge-patch+json", json!({"spec": {"replicas": "x"}}), 422),
        ("application/merge-patch+json", json!({"metadata": {"name": "other"}}), 400),
        ("application/merge-patch+json", json!({"metadata": {"resourceVersion": "1"}}), 409),
        ("application/merge-patch+json", json!({"metadata": {"uid": "1"}}), 422),
        ("application/merge-patch+json", json!({"spec": {"selector": {"matchLabels": {"c": "d"}}}}), 422),
        (strategic, json!({"spec": {"template": {"spec": {"containers": [{"image": "x"}]}}}}), 400),
        ("application/apply-patch+yaml", json!({}), 422),
        ("application/apply-patch+cbor", json!({}), 415),
        ("application/json", json!({}), 415),
    ] {
        let answer = world.call_as("PATCH", &path, kind, Some(patch.clone()));
        assert_eq!(answer.0, code, "{kind} {patch}: {}", answer.1);
    }
    assert_eq!(world.call("PATCH", &format!("{DEPLOYMENTS}/none"), Some(json!({}))).0, 404);
}

#[test]
fn generation_counts_changes_of_the_desired_state_alone() {
    let mut world = World::new();
    let generation = |object: &Value| object["metadata"]["generation"].as_i64();
    assert_eq!(generation(&world.create(DEPLOYMENTS, deployment("d"))), Some(1));
    let path = format!("{DEPLOYMENTS}/d");
    for (at, patch, expected) in [
        (path.clone(), json!({"metadata": {"labels": {"x": "y"}}}), 1),
        (path.clone(), json!({"spec": {"replicas": 2}}), 2),
        (path.clone(), json!({"metadata": {"generation": 7}, "spec": {"replicas": 2}}), 2),
        (path.clone(), json!({"status": {"replicas": 5}}), 2),
        (format!("{path}/status"), json!({"status": {"replicas": 5}, "spec": {"replicas": 9}}), 2),
    ] {
        assert_eq!(generation(&world.patch(&at, patch.clone())), Some(expected), "{patch}");
    }
}

#[test]
fn the_status_is_written_through_its_subresource_alone() {
    let mut world = World::new();
    let mut body = deployment("d");
    body["status"] = json!({"replicas": 3});
    assert_eq!(world.create(DEPLOYMENTS, body)["status"], json!({}));
    let path = format!("{DEPLOYMENTS}/d");
    assert_eq!(world.patch(&path, json!({"status": {"replicas": 3}}))["status"], json!({}));
    let patch = json!({"status": {"replicas": 3}, "spec": {"replicas": 9}, "metadata": {"labels": {"x": "y"}}});
    let patched = world.patch(&format!("{path}/status"), patch);
    assert_eq!((&patched["status"]["replicas"], &patched["spec"]["replicas"]), (&json!(3), &json!(1)));
    assert!(patched["metadata"].get("labels").is_none());
    let kept = world.patch(&path, json!({"spec": {"replicas": 4}}));
    assert_eq!((&kept["status"]["replicas"], &kept["spec"]["replicas"]), (&json!(3), &json!(4)));
    assert_eq!(world.get(&format!("{path}/status")), (200, kept));
}

#[test]
fn scale_is_read_and_written_for_all_that_has_replicas() {
    let mut world = World::new();
    world.create(DEPLOYMENTS, deployment("d"));
    let path = format!("{DEPLOYMENTS}/d/scale");
    let (code, mut scale) = world.get(&path);
    assert_eq!(
        (code, &scale["spec"], &scale["status"]),
        (200, &json!({"replicas": 1}), &json!({"replicas": 0, "selector": "a=b"}))
    );
    scale["spec"]["replicas"] = json!(4);
    assert_eq!(world.call("PUT", &path, Some(scale.clone())).1["spec"]["replicas"], 4);
    assert_eq!(world.call("PUT", &path, Some(scale)).0, 409, "the scale has the version of its object");
    assert_eq!(world.patch(&path, json!({"spec": {"replicas": 0}}))["spec"], json!({}));
    let (_, deployment) = world.get(&format!("{DEPLOYMENTS}/d"));
    assert_eq!((&deployment["spec"]["replicas"], &deployment["metadata"]["generation"]), (&json!(0), &json!(3)));
    assert_eq!(world.call("PATCH", &path, Some(json!({"spec": {"replicas": -1}}))).0, 422);
    assert_eq!(world.get(&format!("{DEPLOYMENTS}/none/scale")).0, 404);
}

#[test]
fn a_dry_run_changes_nothing() {
    let mut world = World::new();
    world.create(MAPS, map("a"));
    let revision = world.server.revision();
    let (code, dry) = world.call("POST", &format!("{MAPS}?dryRun=All"), Some(map("b")));
    assert!(code == 201 && dry["metadata"].get("resourceVersion").is_none(), "{dry}");
    assert_eq!(
        world.call("PATCH", &format!("{MAPS}/a?dryRun=All"), Some(json!({"data": {"x": "1"}}))).1["data"]["x"],
        "1"
    );
    assert_eq!(world.call("PUT", &format!("{MAPS}/a?dryRun=All"), Some(map("a"))).0, 200);
    assert_eq!(world.call("DELETE", &format!("{MAPS}/a?dryRun=All"), None).0, 200);
    assert_eq!(world.call("DELETE", &format!("{MAPS}?dryRun=All"), None).0, 200);
    assert_eq!(world.call("DELETE", &format!("{MAPS}/a"), Some(json!({"dryRun": ["All"]}))).0, 200);
    world.settle();
    assert_eq!(world.server.revision(), revision);
    assert!(world.exists(&format!("{MAPS}/a")) && !world.exists(&format!("{MAPS}/b")));
}

#[test]
fn deletion_answers_with_a_status_or_with_the_object() {
    let mut world = World::new();
    let created = world.create(MAPS, map("a"));
    let (code, status) = world.call("DELETE", &format!("{MAPS}/a"), None);
    assert_eq!(
        (code, status),
        (
            200,
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": {"name": "a", "kind": "configmaps", "uid": created["metadata"]["uid"]}})
        )
    );
    assert_eq!(
        refusal(&world.call("DELETE", &format!("{MAPS}/a"), None)),
        (404, "NotFound", "configmaps \"a\" not found")
    );
    let pods = "/api/v1/namespaces/default/pods";
    world.create(pods, json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}));
    let (code, pod) = world.call("DELETE", &format!("{pods}/p"), None);
    assert_eq!((code, &pod["kind"], &pod["metadata"]["name"]), (200, &json!("Pod"), &json!("p")));
    assert!(!world.exists(&format!("{pods}/p")));
}

#[test]
fn preconditions_protect_from_deleting_another_object() {
    let mut world = World::new();
    let created = world.create(DEPLOYMENTS, deployment("d"));
    let path = format!("{DEPLOYMENTS}/d");
    let uid = created["metadata"]["uid"].as_str().unwrap().to_owned();
    let message = format!(
        "Operation cannot be fulfilled on Deployment.apps \"d\": the UID in the precondition (x) does not \
        match the UID in record ({uid}). The object might have been deleted and then recreated"
    );
    let answer = world.call("DELETE", &path, Some(json!({"preconditions": {"uid": "x"}})));
    assert_eq!(refusal(&answer), (409, "Conflict", &*message));
    assert_eq!(world.call("DELETE", &path, Some(json!({"preconditions": {"resourceVersion": "1"}}))).0, 409);
    assert_eq!(world.call("DELETE", &path, Some(json!({"propagationPolicy": "Odd"}))).0, 422);
    assert_eq!(world.call("DELETE", &path, Some(json!({"preconditions": {"uid": uid}}))).0, 200);
}

#[test]
fn a_collection_is_deleted_by_selector() {
    let mut world = World::new();
    for (name, label) in [("a", "x"), ("b", "y"), ("c", "x")] {
        world.create(MAPS, json!({"metadata": {"name": name, "labels": {"l": label}}}));
    }
    let (code, list) = world.call("DELETE", &format!("{MAPS}?labelSelector=l%3Dx"), None);
    assert_eq!((code, &list["kind"], common::names(&list)), (200, &json!("ConfigMapList"), vec!["a", "c"]));
    assert_eq!(common::names(&world.get(&format!("{MAPS}?labelSelector=l")).1), ["b"]);
    assert_eq!(world.call("DELETE", "/api/v1/configmaps", None).0, 405);
    assert_eq!(world.call("DELETE", "/api/v1/namespaces", None).0, 405);
}

#[test]
fn what_says_it_will_not_change_does_not() {
    let mut world = World::new();
    world.create(MAPS, json!({"metadata": {"name": "a"}, "immutable": true, "data": {"x": "1"}}));
    assert_eq!(world.call("PATCH", &format!("{MAPS}/a"), Some(json!({"data": {"x": "2"}}))).0, 422);
    assert_eq!(world.call("PATCH", &format!("{MAPS}/a"), Some(json!({"immutable": null}))).0, 422);
    world.patch(&format!("{MAPS}/a"), json!({"metadata": {"labels": {"x": "y"}}}));
    let pods = "/api/v1/namespaces/default/pods";
    world.create(pods, json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}));
    assert_eq!(world.call("PATCH", &format!("{pods}/p"), Some(json!({"spec": {"nodeName": "n"}}))).0, 422);
    let image = json!([{"op": "replace", "path": "/spec/containers/0/image", "value": "j"}]);
    assert_eq!(world.call_as("PATCH", &format!("{pods}/p"), "application/json-patch+json", Some(image)).0, 200);
}

#[test]
fn a_token_is_asked_for_where_there_is_one() {
    let mut world = World::with(ServerConfig { token: Some("secret".to_owned()), ..ServerConfig::default() });
    for (header, code) in [("", 401), ("Bearer wrong", 401), ("Basic secret", 401), ("bearer secret", 200)] {
        let mut request = request("GET", MAPS, "application/json", Bytes::new());
        if !header.is_empty() {
            request.headers_mut().insert("authorization", header.parse().unwrap());
        }
        assert_eq!(world.exchange(request).code, code, "{header}");
    }
    assert_eq!(refusal(&world.get(MAPS)), (401, "Unauthorized", "Unauthorized"));
    assert_eq!((world.get("/healthz").0, world.get("/version").0, world.get("/api").0), (200, 200, 401));
}

#[test]
fn head_is_a_get_without_its_body() {
    let mut world = World::new();
    let whole = world.exchange(request("GET", "/version", "application/json", Bytes::new()));
    let head = world.exchange(request("HEAD", "/version", "application/json", Bytes::new()));
    assert_eq!((head.code, head.body.len()), (200, 0));
    assert_eq!(head.headers["content-length"], whole.body.len().to_string());
}

#[test]
fn reviews_let_everybody_do_everything() {
    let mut world = World::new();
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let spec = json!({"resourceAttributes": {"verb": "get", "resource": "pods"}});
    assert_eq!(world.create(path, json!({"spec": spec}))["status"]["allowed"], true);
    assert_eq!(world.call("POST", path, Some(json!({"spec": {}}))).0, 422);
    let who = world.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", json!({}));
    assert_eq!(who["status"]["userInfo"]["username"], "admin");
    assert_eq!(world.get(path).0, 405);
}

#[test]
fn a_pod_is_bound_and_evicted_within_its_budget() {
    let mut world = World::new();
    let pods = "/api/v1/namespaces/default/pods";
    let pod =
        json!({"metadata": {"name": "p", "labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    world.create(pods, pod);
    assert_eq!(world.get(&format!("{pods}/p/log")).0, 204);
    world.create(&format!("{pods}/p/binding"), json!({"metadata": {"name": "p"}, "target": {"name": "n1"}}));
    let again = world.call("POST", &format!("{pods}/p/binding"), Some(json!({"target": {"name": "n2"}})));
    assert_eq!(again.0, 409);
    world.patch(&format!("{pods}/p/status"), json!({"status": {"phase": "Running"}}));
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let budget =
        json!({"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}});
    world.create(budgets, budget);
    let evicted = world.call("POST", &format!("{pods}/p/eviction"), Some(json!({"metadata": {"name": "p"}})));
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    assert_eq!(refusal(&evicted), (429, "TooManyRequests", message));
    assert_eq!(evicted.1["details"]["causes"][0]["reason"], "DisruptionBudget");
    world.patch(&format!("{budgets}/b/status"), json!({"status": {"disruptionsAllowed": 1, "observedGeneration": 1}}));
    world.create(&format!("{pods}/p/eviction"), json!({"metadata": {"name": "p"}}));
    let pod = world.get(&format!("{pods}/p")).1;
    assert_eq!(
        (&pod["metadata"]["deletionGracePeriodSeconds"], &pod["metadata"]["generation"]),
        (&json!(30), &json!(2))
    );
    assert_eq!(pod["status"]["conditions"][1]["reason"], "EvictionByEvictionAPI");
    let budget = world.get(&format!("{budgets}/b")).1;
    assert_eq!(budget["status"]["disruptionsAllowed"], 0);
    assert!(budget["status"]["disruptedPods"]["p"].is_string());
    world.wait(std::time::Duration::from_secs(29));
    assert!(world.exists(&format!("{pods}/p")));
    world.wait(std::time::Duration::from_secs(2));
    assert!(!world.exists(&format!("{pods}/p")), "its time is over");
}

#[test]
fn services_get_addresses_that_they_keep() {
    let mut world = World::new();
    let path = "/api/v1/namespaces/default/services";
    let spec = json!({"type": "NodePort", "ports": [{"port": 80}]});
    let one = world.create(path, json!({"metadata": {"name": "a"}, "spec": spec}));
    let two = world.create(path, json!({"metadata": {"name": "b"}, "spec": spec}));
    assert!(one["spec"]["clusterIP"].as_str().is_some_and(|ip| ip.starts_with("10.96.")));
    assert_ne!(one["spec"]["clusterIP"], two["spec"]["clusterIP"]);
    assert_ne!(one["spec"]["ports"][0]["nodePort"], two["spec"]["ports"][0]["nodePort"]);
    let (code, kept) = world.call("PUT", &format!("{path}/a"), Some(json!({"metadata": {"name": "a"}, "spec": spec})));
    assert_eq!((code, &kept["spec"]), (200, &one["spec"]));
    assert_eq!(world.call("PATCH", &format!("{path}/a"), Some(json!({"spec": {"clusterIP": "10.96.1.1"}}))).0, 422);
}

#[test]
fn odd_requests_are_answered_and_never_panic() {
    let mut world = World::new();
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"] {
        for path in [
            "/",
            "/api",
            "/api/",
            "/api/v1/",
            "//",
            "/api/v1/namespaces/default/",
            "/api/v1/watch",
            "/apis/x",
            "/api/v1/namespaces/default/pods/x/y/z",
            "/api/v1/namespaces/%ff/pods",
            "/api/v1/pods?watch=%ff&limit=",
            "/apis/a/b/c/d/e/f",
        ] {
            for body in [None, Some(json!(null)), Some(json!({"metadata": 1})), Some(json!("x"))] {
                let bytes = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
                let ticket = world.send(request(method, path, "application/json", bytes));
                let code = world.reply(ticket).code;
                assert!((200..600).contains(&code), "{method} {path}: {code}");
            }
        }
    }
}
