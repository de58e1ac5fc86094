//! What the server serves: asked once, kept, and asked again when something is missing.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cloudcoil_core::NetworkError;
use cloudcoil_runtime::{Body, Client, Error, Resource as _, ResourceType, Transport, Unstructured};
use futures_util::future::{BoxFuture, join_all};
use http::header::{ACCEPT, HeaderValue};
use http::{Request, Response};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::common::{Piece, Reply, Server, Virtual, json as reply, text};

fn widgets() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

#[test]
fn a_type_that_was_installed_a_moment_ago_is_found() {
    let runtime = Virtual::new();
    let client = Cluster::new(&runtime).client();
    runtime.run(async {
        let pods = client.discovery().find("po").await.unwrap();
        assert_eq!(pods.resource_type.to_string(), "pods");
        let Err(Error::NotServed(missing)) = client.discovery().find("wd").await else { panic!() };
        assert!(missing.failures.is_empty());
        let definition: CustomResourceDefinition = serde_json::from_value(widgets()).unwrap();
        client.api::<CustomResourceDefinition>().create(&definition).await.unwrap();
        runtime.sleep(Duration::from_secs(5)).await;
        let found = client.clone().discovery().find("wd").await.unwrap().resource_type;
        assert_eq!(found.to_string(), "widgets.example.com");
        let widget: Unstructured = serde_json::from_value(json!({"metadata": {"name": "w"}})).unwrap();
        let created = client.api_for(found).create(&widget).await.unwrap();
        assert_eq!((created.kind(), created.name()), ("Widget", "w"));
        let kind = client.discovery().find_kind("example.com/v1", "Widget").await.unwrap();
        assert_eq!(&*kind.resource_type.plural, "widgets");
    });
}

fn group(name: &str, version: Value) -> Value {
    json!({"metadata": {"name": name}, "versions": [version]})
}

fn version(resource: &str, kind: &str) -> Value {
    json!({"version": "v1", "freshness": "Current", "resources": [{"resource": resource, "scope": "Cluster",
        "responseKind": {"kind": kind}, "singularResource": kind.to_lowercase(), "verbs": ["get", "list"]}]})
}

fn document(groups: &[Value], etag: &str) -> Reply {
    let mut document = reply(200, json!({"kind": "APIGroupDiscoveryList", "items": groups}));
    document.headers = vec![("etag", etag.to_owned())];
    document
}

fn core() -> Reply {
    document(&[json!({"metadata": {}, "versions": [version("nodes", "Node")]})], "\"core\"")
}

async fn found(client: &Client, name: &str) -> Result<ResourceType, Error> {
    client.discovery().find(name).await.map(|resource| resource.resource_type)
}

#[test]
fn many_who_ask_at_once_have_the_server_asked_once() {
    let runtime = Virtual::new();
    let server = Server::new(&runtime, |seen| {
        Some(if seen.uri == "/api" { core() } else { document(&[group("a", version("as", "A"))], "\"a\"") })
    });
    let client = server.client();
    runtime.run(async {
        let asking = (0..10).map(|_| found(&client, "nodes"));
        assert!(join_all(asking).await.into_iter().all(|result| result.is_ok()));
    });
    assert_eq!(server.uris(), ["/api", "/apis"]);
    let accept = server.seen()[0].headers["accept"].to_str().unwrap().to_owned();
    assert!(accept.starts_with("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"), "{accept}");
}

#[test]
fn a_refresh_sends_only_what_has_changed_and_is_never_answered_by_an_earlier_question() {
    let runtime = Virtual::new();
    let server = Server::new(&runtime, |seen| {
        let known = seen.headers.get("if-none-match").map(|etag| etag.to_str().unwrap());
        Some(match (&*seen.uri, known) {
            ("/api", Some("\"core\"")) => text(304, ""),
            ("/api", None) => {
                let mut slow = core();
                slow.pieces.insert(0, Piece::Wait(Duration::from_secs(1)));
                slow
            }
            ("/apis", None) => document(&[], "\"none\""),
            ("/apis", Some("\"none\"")) => document(&[group("a", version("as", "A"))], "\"a\""),
            _ => panic!("{seen:?}"),
        })
    });
    let client = server.client();
    runtime.run(async {
        let discovery = client.discovery();
        let mut first = Box::pin(discovery.catalog());
        assert!(futures_util::poll!(&mut first).is_pending());
        let (first, second) = futures_util::join!(first, discovery.refresh());
        let names = |catalog: &cloudcoil_runtime::Catalog| {
            catalog.resources().map(|resource| resource.resource_type.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names(&first.unwrap()), ["nodes"]);
        assert_eq!(names(&second.unwrap()), ["nodes", "as.a"]);
        assert_eq!(server.uris().len(), 4);
        assert_eq!(names(&discovery.catalog().await.unwrap()), ["nodes", "as.a"]);
        assert_eq!(server.uris().len(), 4, "what is known is not asked for again");
    });
}

#[test]
fn a_failed_discovery_is_not_kept_and_a_partial_one_is_asked_for_again() {
    let runtime = Virtual::new();
    let mut broken = 3;
    let server = Server::new(&runtime, move |seen| match (&*seen.uri, broken) {
        ("/api", 3) => Some(text(403, "no")),
        ("/apis", 3) => {
            broken = 2;
            Some(text(403, "no"))
        }
        ("/api", _) => Some(core()),
        (_, 0) => Some(document(&[group("a", version("as", "A"))], "\"a\"")),
        _ => {
            broken -= 1;
            let stale = json!({"version": "v1", "freshness": "Stale", "resources": []});
            Some(document(&[group("a", stale)], "\"stale\""))
        }
    });
    let client = server.client();
    runtime.run(async {
        assert_eq!(found(&client, "nodes").await.unwrap_err().code(), Some(403));
        assert!(found(&client, "nodes").await.is_ok(), "one broken group hides no other");
        let missing = found(&client, "as").await.unwrap_err().to_string();
        assert!(missing.contains("a/v1: the server behind it does not answer"), "{missing}");
        assert!(!client.discovery().catalog().await.unwrap().is_complete());
        runtime.sleep(Duration::from_secs(10)).await;
        assert!(client.discovery().catalog().await.unwrap().is_complete());
        assert!(found(&client, "as.a").await.is_ok());
    });
}

#[test]
fn who_goes_away_leaves_no_question_behind() {
    let runtime = Virtual::new();
    let server = Server::new(&runtime, |_| Some(Reply { code: 200, headers: vec![], pieces: vec![] }));
    let client = server.client();
    runtime.run(async {
        let discovery = client.discovery();
        let mut asking = Box::pin(discovery.catalog());
        assert!(futures_util::poll!(&mut asking).is_pending());
        assert_eq!(server.open(), 2);
    });
    assert_eq!(server.open(), 0);
}

/// The way to a server as it was before it knew of aggregated documents.
struct Old(Cluster);

impl Transport for Old {
    fn send(&self, mut request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>, NetworkError>> {
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
        self.0.send(request)
    }
}

#[test]
fn the_same_is_found_in_two_documents_and_in_many() {
    let runtime = Virtual::new();
    let cluster = Cluster::new(&runtime);
    let new = cluster.client();
    let old = Client::new(Arc::new(runtime.clone()), Arc::new(Old(cluster)));
    runtime.run(async {
        let (new, old) = (new.discovery().catalog().await.unwrap(), old.discovery().catalog().await.unwrap());
        assert!(new.is_complete() && old.is_complete());
        assert_eq!(new.groups(), old.groups());
        assert!(new.resources().count() > 50 && new.category("all").len() > 5);
    });
}
