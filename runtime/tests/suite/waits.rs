//! Waiting for objects, against the in-memory server in virtual time.

use std::time::Duration;

use cloudcoil_runtime::{Error, Patch, Predicate, Resource as _, Runtime as _};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::common::{Server, Virtual, json};

fn pod() -> Pod {
    serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}))
        .unwrap()
}

fn phase(phase: &str) -> Patch {
    let ready = if phase == "Running" { "True" } else { "False" };
    Patch::Merge(json!({"status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}}))
}

#[test]
fn a_wait_ends_with_the_first_state_that_holds_even_across_broken_watches() {
    let runtime = Virtual::new();
    let cluster = Cluster::new(&runtime);
    let pods = cluster.client().api::<Pod>();
    let (others, clock, server) = (pods.clone(), runtime.clone(), cluster.clone());
    runtime.spawn(Box::pin(async move {
        clock.sleep(Duration::from_secs(5)).await;
        others.create(&pod()).await.unwrap();
        server.break_watches();
        clock.sleep(Duration::from_secs(20)).await;
        others.patch_status("a", phase("Pending")).await.unwrap();
        server.break_watches();
        others.patch_status("a", phase("Running")).await.unwrap();
    }));
    let ready = runtime.run(async {
        let failed = Predicate::JsonPath { path: "{.status.phase}".parse().unwrap(), value: Some("Failed".into()) };
        pods.wait_for("a").named("failed", failed).condition("Ready").timeout(Duration::from_secs(300)).await.unwrap()
    });
    assert_eq!((&*ready.predicate, ready.object.unwrap().name()), ("condition=Ready", "a"));
    assert!(runtime.elapsed() < Duration::from_secs(40), "{:?}", runtime.elapsed());
    assert_eq!(cluster.watches(), 0, "the watch is closed");
}

#[test]
fn functions_judge_typed_objects_and_deletions_are_seen() {
    let runtime = Virtual::new();
    let cluster = Cluster::new(&runtime);
    let pods = cluster.client().api::<Pod>();
    let (others, clock) = (pods.clone(), runtime.clone());
    runtime.spawn(Box::pin(async move {
        others.create(&pod()).await.unwrap();
        clock.sleep(Duration::from_secs(5)).await;
        others.patch_status("a", phase("Running")).await.unwrap();
        clock.sleep(Duration::from_secs(5)).await;
        others.delete("a").grace_period(Duration::ZERO).await.unwrap();
    }));
    runtime.run(async {
        let runs = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
        assert_eq!(pods.wait_for("a").exists().await.unwrap().predicate, "create");
        let running = pods.wait_for("a").when("runs", runs).await.unwrap();
        assert!(runs(running.object.as_ref().unwrap()));
        let gone = pods.wait_for("a").uid(running.object.unwrap().uid().unwrap()).deleted().await.unwrap();
        assert_eq!(gone.predicate, "delete");
        assert!(pods.wait_for("a").deleted().await.unwrap().object.is_none(), "what is not there is deleted");
        let never = pods.wait_for("a").exists().timeout(Duration::from_secs(3)).await;
        assert_eq!(never, Err(Error::TimedOut(Duration::from_secs(3))));
        let once = pods.wait_for("a").exists().timeout(Duration::ZERO).await;
        assert_eq!(once, Err(Error::TimedOut(Duration::ZERO)));
    });
}

#[test]
fn errors_that_will_not_pass_and_misuse_end_a_wait_at_once() {
    let runtime = Virtual::new();
    let server =
        Server::new(&runtime, |_| Some(json(403, json!({"kind": "Status", "code": 403, "reason": "Forbidden"}))));
    let maps = server.client().api::<ConfigMap>();
    runtime.run(async {
        assert_eq!(maps.wait_for("a").exists().await.unwrap_err().code(), Some(403));
        assert!(matches!(maps.wait_for("a").await, Err(Error::Misuse(_))), "nothing to wait for");
        let everywhere = maps.clone().all_namespaces();
        assert!(matches!(everywhere.wait_for("a").exists().await, Err(Error::Misuse(_))));
    });
    assert!(runtime.elapsed() < Duration::from_secs(1));
}

#[test]
fn an_object_that_does_not_fit_its_type_ends_a_typed_wait() {
    let runtime = Virtual::new();
    let odd: Value = json!({"kind": "ConfigMap", "metadata": {"name": "a", "namespace": "ns"}, "data": 3});
    let list = json!({"kind": "ConfigMapList", "metadata": {"resourceVersion": "1"}, "items": [odd]});
    let server = Server::new(&runtime, move |seen| {
        let refused = seen.uri.contains("sendInitialEvents");
        let refusal = json!({"kind": "Status", "code": 400, "reason": "BadRequest"});
        Some(if refused { json(400, refusal) } else { json(200, list.clone()) })
    });
    let result = runtime.run(server.client().api::<ConfigMap>().wait_for("a").when("any", |_| true).into_future());
    assert!(matches!(&result, Err(Error::Decode(error)) if &*error.path == "data"), "{result:?}");
}
