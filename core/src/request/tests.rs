use std::time::Duration;

use serde_json::json;

use super::*;
use crate::resource::KnownResource;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Pod};

fn pods() -> Requests {
    Requests::new(Pod::resource_type(), Some("ns"))
}

fn body(request: &Request<Bytes>) -> Value {
    serde_json::from_slice(request.body()).unwrap()
}

#[test]
fn paths_follow_group_scope_and_subresource() {
    let all = Requests::new(Deployment::resource_type(), None);
    assert_eq!(all.list(&ListParams::default()).unwrap().uri(), "/apis/apps/v1/deployments");
    let namespaces = Requests::new(Namespace::resource_type(), Some("ignored"));
    assert_eq!(namespaces.get("a").unwrap().uri(), "/api/v1/namespaces/a");
    assert_eq!(pods().get_subresource("a", "status").unwrap().uri(), "/api/v1/namespaces/ns/pods/a/status");
    assert_eq!(pods().get_subresource("a", "proxy/x").unwrap().uri(), "/api/v1/namespaces/ns/pods/a/proxy/x");
}

#[test]
fn names_cannot_leave_their_segment() {
    for name in ["", ".", "..", "a/b", "../x", "a%2fb"] {
        assert!(matches!(pods().get(name), Err(Error::Misuse(_))), "{name:?}");
    }
    assert_eq!(pods().get("system:a?b#c").unwrap().uri(), "/api/v1/namespaces/ns/pods/system:a%3Fb%23c");
}

#[test]
fn one_namespaced_object_needs_a_namespace() {
    let all = Requests::new(Pod::resource_type(), Some(""));
    assert!(all.get("a").is_err() && all.create(&Pod::default(), &WriteParams::default()).is_err());
    assert!(all.delete_collection(&DeleteParams::default(), &ListParams::default()).is_err());
}

#[test]
fn selectors_are_escaped() {
    let params = ListParams { label_selector: Some("a in (b,c),d!=é".into()), limit: Some(5), ..Default::default() };
    let uri = pods().list(&params).unwrap().uri().to_string();
    assert_eq!(uri, "/api/v1/namespaces/ns/pods?labelSelector=a%20in%20%28b,c%29,d%21%3D%C3%A9&limit=5");
}

#[test]
fn a_continue_token_excludes_a_version() {
    let version = ListVersion::NotOlderThan("5".into());
    let params = ListParams { continue_token: Some("t".into()), version, ..Default::default() };
    assert!(pods().list(&params).is_err());
}

#[test]
fn a_streaming_list_asks_for_bookmarks_and_a_match() {
    let params = WatchParams { initial_events: true, timeout: Some(Duration::from_millis(1)), ..Default::default() };
    let uri = pods().watch(&params).unwrap().uri().to_string();
    let query = "watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    assert_eq!(uri, format!("/api/v1/namespaces/ns/pods?{query}&timeoutSeconds=1"));
}

#[test]
fn bodies_carry_their_type() {
    let request = pods().create(&Pod::default(), &WriteParams::default()).unwrap();
    assert_eq!((&body(&request)["apiVersion"], &body(&request)["kind"]), (&json!("v1"), &json!("Pod")));
}

#[test]
fn an_apply_needs_a_manager_and_has_no_managed_fields() {
    let manager = WriteParams { field_manager: Some("me".into()), ..Default::default() };
    let named = PatchParams { write: manager, force: true };
    let apply = |metadata: Value, params: PatchParams| {
        pods().patch("a", None, &Patch::Apply(json!({"metadata": metadata})), &params)
    };
    assert!(apply(json!({}), PatchParams::default()).is_err());
    assert!(apply(json!({"managedFields": [{}]}), named.clone()).is_err());
    let request = apply(json!({"managedFields": null}), named.clone()).unwrap();
    assert_eq!(body(&request)["metadata"], json!({}));
    assert_eq!(request.headers()[header::CONTENT_TYPE], "application/apply-patch+yaml");
    assert!(pods().patch("a", None, &Patch::Merge(json!({})), &named).is_err());
}

#[test]
fn deletions_say_their_conditions_in_the_body() {
    let params = DeleteParams { uid: Some("u".into()), grace_period: Some(Duration::ZERO), ..Default::default() };
    let request = pods().delete("a", &params).unwrap();
    assert_eq!(
        (&body(&request)["preconditions"]["uid"], &body(&request)["gracePeriodSeconds"]),
        (&json!("u"), &json!(0))
    );
}

#[test]
fn bodies_of_subresources_carry_the_subresources_type() {
    let deployments = Requests::new(Deployment::resource_type(), Some("ns"));
    let manager = WriteParams { field_manager: Some("me".into()), ..Default::default() };
    let named = PatchParams { write: manager, force: true };
    for (subresource, api_version, kind) in [
        ("scale", "autoscaling/v1", "Scale"),
        ("status", "apps/v1", "Deployment"),
        ("token", "authentication.k8s.io/v1", "TokenRequest"),
    ] {
        let patch = Patch::Apply(json!({"metadata": {"name": "a"}, "kind": ""}));
        let body = body(&deployments.patch("a", Some(subresource), &patch, &named).unwrap());
        assert_eq!((&body["apiVersion"], &body["kind"]), (&json!(api_version), &json!(kind)));
    }
    let own = json!({"kind": "Own"});
    let request = deployments.create_subresource("a", "odd", &own, &WriteParams::default()).unwrap();
    assert_eq!(body(&request), own, "what is not one of Kubernetes' own is left alone");
}

#[test]
fn an_eviction_says_how_to_delete() {
    let plain = pods().evict("a", &DeleteParams::default()).unwrap();
    assert_eq!(
        body(&plain),
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a", "namespace": "ns"}})
    );
    assert_eq!(plain.uri(), "/api/v1/namespaces/ns/pods/a/eviction");
    let params = DeleteParams { dry_run: true, grace_period: Some(Duration::ZERO), ..Default::default() };
    let request = pods().evict("a", &params).unwrap();
    assert_eq!(body(&request)["deleteOptions"]["gracePeriodSeconds"], 0);
    assert_eq!(request.uri(), "/api/v1/namespaces/ns/pods/a/eviction?dryRun=All");
}

#[test]
fn reads_ask_for_the_view_that_is_wanted() {
    let accept = |request: Request<Bytes>| request.headers()[header::ACCEPT].to_str().unwrap().to_owned();
    let metadata = pods().viewed(View::Metadata);
    assert!(accept(metadata.get("a").unwrap()).contains("as=PartialObjectMetadata;"));
    assert!(accept(metadata.list(&ListParams::default()).unwrap()).contains("as=PartialObjectMetadataList;"));
    assert!(accept(metadata.watch(&WatchParams::default()).unwrap()).contains("as=PartialObjectMetadata;"));
    let table = accept(pods().viewed(View::Table).get("a").unwrap());
    assert!(table.starts_with("application/json;as=Table;") && table.ends_with(",application/json"), "{table}");
    assert_eq!(accept(metadata.delete("a", &DeleteParams::default()).unwrap()), "application/json");
}

#[test]
fn one_object_is_read_at_a_version_that_can_be_had() {
    let at = |version: ListVersion| pods().get_at("a", &version).map(|request| request.uri().to_string());
    let path = "/api/v1/namespaces/ns/pods/a";
    assert_eq!(at(ListVersion::MostRecent).unwrap(), path);
    assert_eq!(at(ListVersion::Any).unwrap(), format!("{path}?resourceVersion=0"));
    assert_eq!(at(ListVersion::NotOlderThan("5".into())).unwrap(), format!("{path}?resourceVersion=5"));
    assert!(at(ListVersion::Exact("5".into())).is_err());
}
