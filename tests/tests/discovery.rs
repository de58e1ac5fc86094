//! Discovery against a real control plane: it finds what `kubectl` finds, and a group that is broken hides no other.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "helpers of tests may unwrap where tests may")]

use std::collections::BTreeSet;
use std::time::Duration;

use cloudcoil_testing::ControlPlane;
use cloudcoil_tokio::core::Catalog;
use cloudcoil_tokio::prelude::*;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use serde_json::json;

/// How long the server may take to notice that a group is broken.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_group_hides_no_other_on_a_real_control_plane() {
    let Some(plane) = ControlPlane::start_or_skip("a_broken_group_hides_no_other_on_a_real_control_plane") else {
        return;
    };
    let client = Client::try_from_kubeconfig(plane.kubeconfig_path()).await.unwrap();
    client.check_ready().await.unwrap();
    assert_eq!(client.server_version().await.unwrap().major, "1");

    let catalog = client.discovery().catalog().await.unwrap();
    assert!(catalog.is_complete(), "{:?}", catalog.failures());
    finds_what_kubectl_finds(&plane, &catalog);
    knows_subresources(&catalog);
    assert_eq!(*client.discovery().refresh().await.unwrap(), *catalog, "nothing has changed");

    client.api::<APIService>().create(&broken()).await.unwrap();
    let failed = tokio::time::timeout(PATIENCE, broken_is_named(&client)).await;
    assert!(failed.is_ok(), "{:?}", client.discovery().catalog().await.unwrap().failures());
    assert_eq!(client.discovery().find("deploy").await.unwrap().resource_type.to_string(), "deployments.apps");
    let missing = client.discovery().find("gadgets").await.unwrap_err();
    assert!(
        matches!(&missing, Error::NotServed(_)) && missing.to_string().contains("broken.example.com/v1"),
        "{missing}"
    );

    client.api::<APIService>().delete("v1.broken.example.com").await.unwrap();
    let mended = tokio::time::timeout(PATIENCE, async {
        while !client.discovery().refresh().await.unwrap().is_complete() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    });
    mended.await.unwrap();
    let missing = client.discovery().find("gadgets").await.unwrap_err();
    assert_eq!(missing.to_string(), "the server doesn't have a resource type \"gadgets\"");
}

fn finds_what_kubectl_finds(plane: &ControlPlane, catalog: &Catalog) {
    let names = |flags: &[&str]| {
        let output = plane.kubectl().arg("api-resources").args(["-o", "name"]).args(flags).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().map(ToOwned::to_owned).collect::<BTreeSet<_>>()
    };
    let ours = |resources: &mut dyn Iterator<Item = &cloudcoil_tokio::core::ApiResource>| {
        resources.map(|resource| resource.resource_type.to_string()).collect::<BTreeSet<_>>()
    };
    assert_eq!(ours(&mut catalog.resources()), names(&[]));
    assert_eq!(ours(&mut catalog.category("all").into_iter()), names(&["--categories=all"]));
    let namespaced = &mut catalog.resources().filter(|resource| resource.resource_type.is_namespaced());
    assert_eq!(ours(namespaced), names(&["--namespaced=true"]));
    let listable = &mut catalog.resources().filter(|resource| resource.supports("list"));
    assert_eq!(ours(listable), names(&["--verbs=list"]));
    for (name, meant) in [
        ("po", "pods"),
        ("ev", "events"),
        ("events.events", "events.events.k8s.io"),
        ("crd.v1.apiextensions.k8s.io", "customresourcedefinitions.apiextensions.k8s.io"),
        ("HorizontalPodAutoscaler", "horizontalpodautoscalers.autoscaling"),
    ] {
        assert_eq!(catalog.find(name).unwrap().resource_type.to_string(), meant);
    }
}

fn knows_subresources(catalog: &Catalog) {
    let of = |name: &str, part| {
        let part = catalog.find(name).unwrap().subresource(part).unwrap().clone();
        format!("{}/{} {}", part.group, part.version, part.kind)
    };
    assert_eq!(of("pods", "eviction"), "policy/v1 Eviction");
    assert_eq!(of("pods", "log"), "/v1 Pod");
    assert_eq!(of("deployments", "scale"), "autoscaling/v1 Scale");
    assert_eq!(of("deployments", "status"), "apps/v1 Deployment");
}

/// A group whose server is nowhere.
fn broken() -> APIService {
    serde_json::from_value(json!({"metadata": {"name": "v1.broken.example.com"}, "spec": {
        "group": "broken.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
        "insecureSkipTLSVerify": true, "service": {"namespace": "default", "name": "nowhere"}}}))
    .unwrap()
}

async fn broken_is_named(client: &Client) {
    let is_named = |catalog: &Catalog| {
        catalog.failures().iter().any(|failure| failure.group.as_deref() == Some("broken.example.com"))
    };
    while !is_named(&client.discovery().refresh().await.unwrap()) {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
