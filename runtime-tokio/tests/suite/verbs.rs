//! Every verb, through a kubeconfig and TLS, against the in-memory API server.

use std::io::Write as _;

use cloudcoil_apiserver::{ServerConfig, ServerHandle, Tls, serve, serve_tls};
use cloudcoil_tokio::core::k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use cloudcoil_tokio::{Client, Deleted, FieldValidation, ResourceType, Scope, prelude::*};
use serde_json::{Value, json};
use tokio::net::TcpListener;

async fn secured() -> (ServerHandle, Client) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = ServerConfig { token: Some("s3cret".into()), ..ServerConfig::default() };
    let tls = Tls::generate(&["127.0.0.1".to_owned()]).unwrap();
    let server = serve_tls(config, listener, tls).unwrap();
    let client = from_kubeconfig(&server).await;
    (server, client)
}

async fn from_kubeconfig(server: &ServerHandle) -> Client {
    let path = std::env::temp_dir().join(format!("cloudcoil-{}-{}", std::process::id(), server.address().port()));
    std::fs::File::create(&path).unwrap().write_all(server.kubeconfig().as_bytes()).unwrap();
    let client = Client::try_from_kubeconfig(&path).await.unwrap();
    std::fs::remove_file(path).unwrap();
    client
}

fn map(name: &str, data: Value) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": {"app": name}}, "data": data})).unwrap()
}

#[tokio::test]
async fn objects_are_created_read_changed_and_deleted() {
    let (_server, client) = secured().await;
    let maps = client.api::<ConfigMap>();
    let created = maps.create(&map("a", json!({"x": "1"}))).await.unwrap();
    assert_eq!(created.namespace(), Some("default"));
    assert!(maps.create(&map("a", json!({}))).await.unwrap_err().is_already_exists());

    let mut edited = created.clone();
    edited.data.as_mut().unwrap().insert("y".into(), "2".into());
    let replaced = maps.replace(&edited).await.unwrap();
    assert!(maps.replace(&edited).await.unwrap_err().is_conflict());
    let dry = maps.patch("a", Patch::Merge(json!({"data": {"x": null}}))).dry_run().await.unwrap();
    assert_eq!(dry.data.unwrap().keys().collect::<Vec<_>>(), ["y"]);
    let patch = json!([{"op": "test", "path": "/metadata/uid", "value": created.uid()},
        {"op": "replace", "path": "/data/x", "value": "3"}]);
    let patched = maps.patch("a", Patch::Json(patch)).field_validation(FieldValidation::Strict).await.unwrap();
    assert_eq!(patched.data.as_ref().unwrap()["x"], "3");
    assert_ne!(patched.resource_version(), replaced.resource_version());
    assert_eq!(maps.get("a").await.unwrap(), patched);

    assert!(maps.delete("a").uid("another").await.unwrap_err().is_conflict());
    assert!(matches!(maps.delete("a").await.unwrap(), Deleted::Status(_) | Deleted::Object(_)));
    assert_eq!(maps.get_opt("a").await, Ok(None));
    assert!(maps.delete("a").await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn lists_come_whole_in_pages_and_by_selector() {
    let (_server, client) = secured().await;
    let maps = client.api::<ConfigMap>();
    for name in ["a", "b", "c", "d", "e"] {
        maps.create(&map(name, json!({}))).await.unwrap();
    }
    let names = |maps: Vec<ConfigMap>| maps.iter().map(|map| map.name().to_owned()).collect::<Vec<_>>();
    let list = maps.list().labels("app in (b, d, e)");
    let streamed = list.limit(2).stream().try_collect::<Vec<_>>().await.unwrap();
    assert_eq!(names(streamed), ["b", "d", "e"]);
    let page = maps.list().labels("app").limit(2).page().await.unwrap();
    assert_eq!((names(page.items.clone()), page.remaining_item_count.is_some()), (vec!["a".into(), "b".into()], false));
    let rest = maps.list().labels("app").continue_from(page.continue_token.unwrap()).await.unwrap();
    assert_eq!(names(rest.items), ["c", "d", "e"]);
    let everywhere = maps.list().all_namespaces().fields("metadata.name=a").await.unwrap();
    assert_eq!(names(everywhere.items), ["a"]);
    maps.delete_collection().labels("app!=c,app").await.unwrap();
    assert_eq!(names(maps.list().labels("app").await.unwrap().items), ["c"]);
}

#[tokio::test]
async fn untyped_objects_and_other_namespaces() {
    let (_server, client) = secured().await;
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": "team"}})).unwrap();
    client.api::<Namespace>().create(&namespace).await.unwrap();
    let types = ResourceType::new("", "v1", "ConfigMap", "configmaps", Scope::Namespaced);
    let mut object = Unstructured::new(&types, "a");
    object.set_field("data", json!({"x": "1"}));
    let maps = client.api_for(types).namespace("team");
    let created = maps.create(&object).await.unwrap();
    assert_eq!((created.kind(), created.namespace()), ("ConfigMap", Some("team")));
    let listed = maps.list().await.unwrap().items;
    assert!(listed.iter().any(|item| item.name() == "a" && item.kind() == "ConfigMap"));
    assert!(client.api::<ConfigMap>().get("a").await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn without_the_token_there_is_no_way_in() {
    let (server, _) = secured().await;
    let mut config = cloudcoil_tokio::Config::new(&server.url()).unwrap();
    config.tls.insecure_skip_verify = true;
    let client = Client::try_from_config(&config).unwrap();
    let error = client.api::<ConfigMap>().get("a").await.unwrap_err();
    assert_eq!(error.code(), Some(401), "{error}");
}

#[tokio::test]
async fn plain_http_works_without_credentials() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = serve(ServerConfig::default(), listener).unwrap();
    let client = from_kubeconfig(&server).await;
    assert_eq!(client.default_namespace(), "default");
    client.api::<Namespace>().get("kube-system").await.unwrap();
}

#[tokio::test]
async fn a_server_that_was_restarted_is_reached_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tls = || Tls::generate(&["127.0.0.1".to_owned()]).unwrap();
    let server = serve_tls(ServerConfig::default(), listener, tls()).unwrap();
    let mut config = cloudcoil_tokio::Config::new(&server.url()).unwrap();
    config.tls.insecure_skip_verify = true;
    let client = Client::try_from_config(&config).unwrap();
    client.api::<Namespace>().get("default").await.unwrap();
    server.shutdown().await;
    let error = client.api::<Namespace>().get("default").await.unwrap_err();
    assert!(matches!(error, Error::Network(_)), "{error}");
    let listener = TcpListener::bind(address).await.unwrap();
    let _server = serve_tls(ServerConfig::default(), listener, tls()).unwrap();
    client.api::<Namespace>().get("default").await.unwrap();
}
