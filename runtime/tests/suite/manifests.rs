//! Manifests brought to the in-memory server, in virtual time.

use std::time::Duration;

use cloudcoil_core::manifest::{self, Done, ManifestReport};
use cloudcoil_runtime::FieldValidation;
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;

use crate::cluster::Cluster;
use crate::common::Virtual;

const APP: &str = "
apiVersion: example.com/v1
kind: Widget
metadata: {name: w, namespace: team}
spec: {size: 3}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: team}, data: {k: v}}
- {apiVersion: v1, kind: Namespace, metadata: {name: team, labels: {a: b}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

fn parsed(text: &str) -> Vec<manifest::ManifestObject> {
    manifest::parse("app.yaml", text.as_bytes()).unwrap()
}

fn shown(report: &ManifestReport) -> Vec<String> {
    report.outcomes.iter().map(ToString::to_string).collect()
}

#[test]
fn a_whole_application_is_applied_in_order_and_again_and_deleted_in_reverse() {
    let runtime = Virtual::new();
    let cluster = Cluster::new(&runtime);
    runtime.run(async {
        let client = cluster.client();
        let apply = |text: &str| client.manifests(parsed(text)).apply("me");
        let first = apply(APP).await;
        let names = [
            "namespace/team",
            "customresourcedefinition.apiextensions.k8s.io/widgets.example.com",
            "configmap/a",
            "widget.example.com/w",
        ];
        assert_eq!(shown(&first), names.map(|name| format!("{name} created")));
        let second = apply(APP).await;
        assert!(second.outcomes.iter().all(|outcome| outcome.result == Ok(Done::Unchanged)), "{:?}", shown(&second));
        let changed = APP.replace("k: v", "k: x");
        let would: Vec<_> = apply(&changed).dry_run().stream().map(|outcome| outcome.result.unwrap()).collect().await;
        assert_eq!(would, [Done::Unchanged, Done::Unchanged, Done::Configured, Done::Unchanged]);
        assert_eq!(apply(&changed).await.outcomes[2].result, Ok(Done::Configured));

        let delete = || client.manifests(parsed(APP)).delete();
        let deleted = delete().grace_period(Duration::ZERO).await;
        assert!(deleted.is_ok(), "{:?}", shown(&deleted));
        assert_eq!(deleted.outcomes[0].kind, "Widget", "the last goes first");
        runtime.sleep(Duration::from_secs(60)).await;
        let again = delete().await;
        assert!(again.failures().count() >= 3, "{:?}", shown(&again));
        let ignored = delete().ignore_missing().await;
        assert!(ignored.is_ok(), "{:?}", shown(&ignored));
    });
}

#[test]
fn what_fails_is_reported_and_the_rest_goes_on() {
    let runtime = Virtual::new();
    let cluster = Cluster::new(&runtime);
    let text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}\n---\n{apiVersion: x.example/v1, kind: Odd, metadata: {name: b}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, odd: 1}\n";
    runtime.run(async {
        let client = cluster.client();
        let strict = || client.manifests(parsed(text)).create().field_validation(FieldValidation::Strict);
        let report = strict().field_manager("me").await;
        let failed: Vec<_> = report.failures().map(|(outcome, _)| &*outcome.name).collect();
        assert_eq!((report.outcomes.len(), failed), (3, vec!["c", "b"]), "{:?}", shown(&report));
        assert!(client.api::<ConfigMap>().get("a").await.is_ok());
        assert_eq!(strict().await.failures().count(), 3, "what exists is not created again");

        let other = text.replace("k: v", "k: x").replace(", odd: 1", "");
        let replaced = client.manifests(parsed(&other)).replace().await;
        assert_eq!(replaced.outcomes[0].result, Ok(Done::Replaced));
        assert!(replaced.outcomes[1].result.as_ref().unwrap_err().is_not_found());
        assert_eq!(client.api::<ConfigMap>().get("a").await.unwrap().data.unwrap()["k"], "x");
    });
}

#[test]
fn another_managers_field_is_a_conflict_unless_it_is_forced() {
    let runtime = Virtual::new();
    let cluster = Cluster::new(&runtime);
    let text =
        |value: &str| format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}, data: {{k: '{value}'}}}}");
    runtime.run(async {
        let client = cluster.client().with_default_namespace("default");
        assert!(client.manifests(parsed(&text("x"))).apply("one").await.is_ok());
        let refused = client.manifests(parsed(&text("y"))).apply("two").await;
        let result = refused.outcomes[0].result.as_ref();
        assert!(result.is_err_and(cloudcoil_runtime::Error::is_conflict), "{:?}", refused.outcomes);
        assert!(client.manifests(parsed(&text("y"))).apply("two").force().await.is_ok());
        let read = client.api::<ConfigMap>().get("a").await.unwrap();
        assert_eq!(read.data.unwrap()["k"], "y");
    });
}
