//! Parts of objects that have paths of their own.

use cloudcoil_runtime::{Evicted, Patch, Resource};
use serde_json::{Value, json};

use super::at;
use crate::stage::{Stage, scenarios};
use crate::world::op::{Reply, deployments, pods};

scenarios! {
    ANY {
        a_status_is_written_apart_from_the_rest,
        a_scale_is_read_and_written,
        an_eviction_deletes_the_pod,
        an_eviction_that_a_budget_forbids_is_an_answer,
        an_unknown_subresource_is_not_found,
    }
    MEMORY {
        a_log_is_read_whole,
        a_log_is_followed_to_its_end,
    }
}

fn a_status_is_written_apart_from_the_rest(stage: &Stage) {
    let world = stage.api();
    let mut made = world.must(deployments().create(deployment("a", 1))).value();
    made["spec"]["replicas"] = json!(9);
    made["status"] = json!({"observedGeneration": 7});
    let written = world.must(deployments().replace(made).subresource("status")).value();
    assert_eq!((at(&written, "/spec/replicas"), at(&written, "/status/observedGeneration")), (&json!(1), &json!(7)));
    let patch = json!({"status": {"replicas": 3}, "spec": {"replicas": 9}});
    let patched = world.must(deployments().merge("a", patch).subresource("status")).value();
    assert_eq!((at(&patched, "/spec/replicas"), at(&patched, "/status/replicas")), (&json!(1), &json!(3)));
    let plain = world.must(deployments().merge("a", json!({"status": {"replicas": 8}}))).value();
    assert_eq!(at(&plain, "/status/replicas"), &json!(3));
    assert_eq!(world.must(deployments().part("a", "status")).value()["status"], plain["status"]);
}

fn a_scale_is_read_and_written(stage: &Stage) {
    let world = stage.api();
    world.must(deployments().create(deployment("a", 2)));
    let mut scale = world.must(deployments().part("a", "scale")).value();
    assert_eq!((at(&scale, "/kind"), at(&scale, "/spec/replicas")), (&json!("Scale"), &json!(2)));
    scale["spec"]["replicas"] = json!(3);
    assert_eq!(at(&world.must(deployments().replace_part("a", "scale", scale)).value(), "/spec/replicas"), &json!(3));
    let patch = Patch::Merge(json!({"spec": {"replicas": 4}}));
    let patched = world.must(deployments().patch_part("a", "scale", patch)).value();
    assert_eq!((at(&patched, "/kind"), at(&patched, "/spec/replicas")), (&json!("Scale"), &json!(4)));
    let set = world.must(deployments().set_replicas("a", 5)).value();
    assert_eq!((at(&set, "/kind"), at(&set, "/spec/replicas")), (&json!("Deployment"), &json!(5)));
}

fn an_eviction_deletes_the_pod(stage: &Stage) {
    let world = stage.api();
    let made = world.must(pods().create(pod("a"))).object();
    world.must(pods().evict("a").dry_run());
    let other = pods().evict("a").uid("11111111-1111-1111-1111-111111111111");
    assert!(world.fail(other).is_conflict());
    let evicted = world.must(pods().evict("a").uid(made.uid().unwrap())).evicted();
    assert!(evicted.is_accepted(), "{evicted:?}");
    assert_eq!(world.must(pods().find("a")), Reply::Missing);
    assert!(world.fail(pods().evict("a")).is_not_found());
}

fn an_eviction_that_a_budget_forbids_is_an_answer(stage: &Stage) {
    let world = stage.api();
    world.must(pods().create(pod("a")));
    // A pod that is not ready may always go, and what no controller has looked at may not.
    let ready = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    world.must(pods().merge("a", ready).subresource("status"));
    let budgets = crate::world::op::Kind(cloudcoil_runtime::ResourceType::new(
        "policy",
        "v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        cloudcoil_runtime::Scope::Namespaced,
    ));
    let spec = json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}});
    let budget =
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": spec});
    world.must(budgets.create(budget));
    let Evicted::Refused(refusal) = world.must(pods().evict("a")).evicted() else { panic!("it was evicted") };
    assert_eq!(refusal.status().code, 429);
    assert!(refusal.disruption_budget().is_some(), "{refusal:?}");
    assert!(matches!(world.must(pods().find("a")), Reply::Object(_)));
}

fn an_unknown_subresource_is_not_found(stage: &Stage) {
    let world = stage.api();
    world.must(deployments().create(deployment("a", 1)));
    let error = world.fail(deployments().part("a", "nothing"));
    assert!(error.is_not_found(), "{error:?}");
}

fn a_log_is_read_whole(stage: &Stage) {
    let world = stage.api();
    logging(stage, &["one\n", "zwei ü\n", "three"]);
    assert_eq!(world.must(pods().log("a")).text(), "one\nzwei ü\nthree");
    assert!(world.fail(pods().log("b")).is_not_found());
}

fn a_log_is_followed_to_its_end(stage: &Stage) {
    let world = stage.api();
    logging(stage, &["one\ntw"]);
    let lines = world.lines(pods().log("a"));
    assert_eq!(lines.good(), "one");
    let log = source(stage);
    stage.with_server(move |server, now, out| server.append_log(now, &log, "o\nthree\n", out));
    assert_eq!((lines.good(), lines.good()), ("two".into(), "three".into()));
    let log = source(stage);
    stage.with_server(move |server, _, out| server.finish_log(&log, out));
    assert_eq!(lines.next(), None);
}

fn source(stage: &Stage) -> cloudcoil_apiserver::LogSource {
    cloudcoil_apiserver::LogSource::new(&stage.namespace, "a", "app")
}

/// Makes a pod that has written this.
fn logging(stage: &Stage, texts: &'static [&'static str]) {
    stage.api().must(pods().create(pod("a")));
    let log = source(stage);
    stage.with_server(move |server, now, out| {
        for text in texts {
            assert!(server.append_log(now, &log, text, out));
        }
    });
}

fn pod(name: &str) -> Value {
    let container = json!({"name": "app", "image": "image.example/app"});
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [container], "automountServiceAccountToken": false, "terminationGracePeriodSeconds": 0},
    })
}

fn deployment(name: &str, replicas: u32) -> Value {
    let container = json!({"name": "app", "image": "image.example/app"});
    let template = json!({"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    })
}
