//! Every verb, against the in-memory server in virtual time.

use std::time::Duration;

use cloudcoil_runtime::{
    Deleted, Error, FieldValidation, ListVersion, Patch, Propagation, Resource as _, ResourceType, Scope, Unstructured,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::common::Virtual;

fn map(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": {"app": "web"}}, "data": {"k": value}})).unwrap()
}

fn data(map: &ConfigMap) -> &str {
    &map.data.as_ref().unwrap()["k"]
}

#[test]
fn a_save_creates_or_replaces_and_keeps_what_others_have_done() {
    let runtime = Virtual::new();
    let cluster = Cluster::new(&runtime);
    runtime.run(async {
        let maps = cluster.client().api::<ConfigMap>();
        let first = maps.save(&map("a", "1")).await.unwrap();
        assert_eq!(data(&maps.save(&map("a", "2")).field_manager("me").await.unwrap()), "2");
        assert!(maps.save(&first).await.unwrap_err().is_conflict(), "it has changed since");
        assert_eq!(data(&maps.save(&map("a", "3")).dry_run().await.unwrap()), "3");
        assert_eq!(data(&maps.get("a").await.unwrap()), "2");
        let mut nameless = map("", "4");
        nameless.metadata.name = None;
        nameless.metadata.generate_name = Some("g-".to_owned());
        assert!(maps.save(&nameless).await.unwrap().name().starts_with("g-"));
    });
    let methods: Vec<_> = cluster.written().iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(methods, ["POST", "PUT", "PUT", "PUT", "POST"]);
}

#[test]
fn a_removal_is_of_the_very_object_and_a_deletion_may_have_conditions() {
    let runtime = Virtual::new();
    let cluster = Cluster::new(&runtime);
    runtime.run(async {
        let maps = cluster.client().api::<ConfigMap>();
        let old = maps.create(&map("a", "1")).await.unwrap();
        assert!(matches!(maps.delete("a").dry_run().await.unwrap(), Deleted::Status(_) | Deleted::Object(_)));
        maps.get("a").await.unwrap();
        maps.delete("a").propagation(Propagation::Background).await.unwrap();
        let new = maps.create(&map("a", "2")).await.unwrap();
        assert!(maps.remove(&old).await.unwrap_err().is_conflict(), "another has its name");
        let stale = maps.delete("a").resource_version(old.resource_version().unwrap()).await;
        assert!(stale.unwrap_err().is_conflict());
        maps.remove(&new).await.unwrap();
        assert_eq!(maps.get_opt("a").await, Ok(None));
        assert!(maps.remove(&new).await.unwrap_err().is_not_found());

        for name in ["a", "b", "c"] {
            maps.create(&map(name, "1")).await.unwrap();
        }
        maps.delete_collection().labels("app=web").dry_run().await.unwrap();
        assert_eq!(maps.list().labels("app=web").await.unwrap().items.len(), 3);
        maps.delete_collection().fields("metadata.name=b").grace_period(Duration::ZERO).await.unwrap();
        assert_eq!(maps.list().labels("app=web").await.unwrap().items.len(), 2);
        maps.delete_collection().labels("app=web").await.unwrap();
        assert!(maps.list().labels("app=web").await.unwrap().items.is_empty());
    });
}

#[test]
fn patches_of_each_kind_change_objects_and_their_parts() {
    let runtime = Virtual::new();
    let cluster = Cluster::new(&runtime);
    let container = |name: &str, image: &str| json!({"name": name, "image": image});
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container("a", "1"), container("b", "1")]}});
    let web: Deployment = serde_json::from_value(json!({"metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template}}))
    .unwrap();
    runtime.run(async {
        let deployments = cluster.client().api::<Deployment>();
        deployments.create(&web).await.unwrap();
        let images = |deployment: &Deployment| -> Vec<_> {
            let containers = &deployment.spec.template.spec.as_ref().unwrap().containers;
            containers.iter().map(|container| container.image.clone().unwrap()).collect()
        };
        let strategic = json!({"spec": {"template": {"spec": {"containers": [container("b", "2")]}}}});
        let patched = deployments.patch("web", Patch::Strategic(strategic.clone())).await.unwrap();
        assert_eq!(images(&patched), ["1", "2"], "lists merge by their keys");
        let patched = deployments.patch("web", Patch::Merge(strategic)).dry_run().await.unwrap();
        assert_eq!(images(&patched), ["2"], "lists are replaced");
        let operations = json!([{"op": "test", "path": "/spec/replicas", "value": 1},
            {"op": "replace", "path": "/spec/replicas", "value": 2}]);
        let patched = deployments.patch("web", Patch::Json(operations.clone())).field_manager("me").await.unwrap();
        assert_eq!(patched.spec.replicas, Some(2));
        assert!(deployments.patch("web", Patch::Json(operations)).await.unwrap_err().is_failed_guard());

        let status = Patch::Merge(json!({"status": {"replicas": 7}, "spec": {"replicas": 9}}));
        let patched = deployments.status("web").patch(status).await.unwrap();
        assert_eq!((patched.status.unwrap().replicas, patched.spec.replicas), (Some(7), Some(2)));
        let scale = json!({"metadata": {"name": "web"}, "spec": {"replicas": 4}});
        let applied = deployments.subresource::<Value>("web", "scale").apply("hpa", &scale).force().await.unwrap();
        assert_eq!(applied["spec"]["replicas"], 4);
        let unknown = Patch::Merge(json!({"spec": {"odd": 1}}));
        let strict = deployments.patch("web", unknown).field_validation(FieldValidation::Strict).await;
        assert!(strict.is_err());
    });
}

#[test]
fn untyped_objects_are_written_as_typed_ones_are() {
    let runtime = Virtual::new();
    let cluster = Cluster::new(&runtime);
    runtime.run(async {
        let maps = cluster.client().api_for(ResourceType::new("", "v1", "ConfigMap", "configmaps", Scope::Namespaced));
        let object: Unstructured =
            serde_json::from_value(json!({"metadata": {"name": "u"}, "data": {"k": "1"}})).unwrap();
        let created = maps.apply("me", &object).await.unwrap();
        assert_eq!((created.kind(), created.api_version()), ("ConfigMap", "v1"));
        // What was read can be applied as it is.
        let again = maps.apply("me", &created).force().await.unwrap();
        assert_eq!(again.resource_version(), created.resource_version());
        assert_eq!(maps.get("u").version(ListVersion::Any).await.unwrap().pointer("/data/k"), Some(&json!("1")));
        assert!(matches!(maps.get("u").version(ListVersion::Exact("1".into())).await, Err(Error::Misuse(_))));
        let user = cluster.client().whoami().await.unwrap();
        assert!(user.username.is_some());
        maps.remove(&again).await.unwrap();
    });
}
