//! The client against a real control plane, and the same against the server in memory where it can be: who it is, pages that
//! expire, waits, evictions, and credentials from programs.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "helpers of tests may unwrap where tests may")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloudcoil_apiserver::{ServerConfig, Tls, serve_tls};
use cloudcoil_runtime::core::Evicted;
use cloudcoil_runtime::core::config::{Impersonation, Overrides};
use cloudcoil_testing::ControlPlane;
use cloudcoil_tokio::{ConfigSource, load_config, prelude::*};
use futures_util::future::{join, join_all};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ECDSA_P521_SHA512};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);

/// A kubeconfig in a folder, with one user.
fn kubeconfig(folder: &Path, server: &str, ca: &str, user: &Value) -> ConfigSource {
    let content = json!({
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority-data": STANDARD.encode(ca)}}],
        "users": [{"name": "u", "user": user}],
    });
    std::fs::write(folder.join("config"), content.to_string()).unwrap();
    ConfigSource::from_kubeconfig(folder.join("config"))
}

async fn client(source: ConfigSource) -> Client {
    Client::try_from_config(&load_config(source).await.unwrap()).unwrap()
}

/// The client is who its certificate says, whatever curve its key is on.
async fn every_curve(server: &str, ca: &str, certificate: impl Fn(&str) -> (String, String)) {
    for algorithm in [&PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384, &PKCS_ECDSA_P521_SHA512] {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = certificate(&KeyPair::generate_for(algorithm).unwrap().serialize_pem());
        let user = json!({
            "client-certificate-data": STANDARD.encode(certificate), "client-key-data": STANDARD.encode(key),
        });
        let who = client(kubeconfig(folder.path(), server, ca, &user)).await.whoami().await.unwrap();
        assert_eq!(who.username.as_deref(), Some("carol"), "{algorithm:?}");
        assert!(who.groups.unwrap_or_default().contains(&"team".to_owned()), "{algorithm:?}");
    }
}

#[tokio::test]
async fn certificates_of_every_curve_tell_who_the_client_is() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = serve_tls(ServerConfig::default(), listener, Tls::generate(&[]).unwrap()).unwrap();
    let tls = server.tls().unwrap();
    every_curve(&server.url(), server.ca_pem().unwrap(), |key| {
        let made = tls.client_certificate_for("carol", &["team"], key).unwrap();
        (made.certificate_pem, made.key_pem)
    })
    .await;
    let Some(plane) = ControlPlane::start_or_skip("certificates_of_every_curve_tell_who_the_client_is") else { return };
    every_curve(plane.url(), plane.ca_pem(), |key| {
        let made = plane.client_certificate_for("carol", &["team"], key).unwrap();
        (made.certificate_pem, made.key_pem)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_does_on_a_real_control_plane_what_it_says() {
    let Some(plane) = ControlPlane::start_or_skip("the_client_does_on_a_real_control_plane_what_it_says") else {
        return;
    };
    let plane = Arc::new(plane);
    let admin = Client::try_from_kubeconfig(plane.kubeconfig_path()).await.unwrap();
    impersonation(&plane).await;
    plugin_that_rotates(&plane).await;
    waits(&admin).await;
    eviction(&admin).await;
    pages_that_expire(&admin, &plane).await;
}

async fn impersonation(plane: &ControlPlane) {
    let mut impersonation = Impersonation::default();
    impersonation.user = Some("dave".into());
    impersonation.groups = vec!["ops".into()];
    impersonation.extra = [("reason".to_owned(), vec!["drill".to_owned()])].into_iter().collect();
    let source = ConfigSource::from_kubeconfig(plane.kubeconfig_path())
        .with_overrides(Overrides { impersonation, ..Overrides::default() });
    let who = client(source).await.whoami().await.unwrap();
    assert_eq!(who.username.as_deref(), Some("dave"));
    assert_eq!(who.groups, Some(vec!["ops".to_owned(), "system:authenticated".to_owned()]));
    assert_eq!(who.extra.unwrap_or_default().get("reason"), Some(&vec!["drill".to_owned()]));
}

/// The first token is not accepted: the program is asked for another, once for all who wait.
async fn plugin_that_rotates(plane: &ControlPlane) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("good"), plane.token()).unwrap();
    let script = format!(
        "cd '{}'; echo run >> runs; token=$(cat good); [ $(wc -l < runs) = 1 ] && token=stale; printf '%s' \
         '{{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{{\"token\":\"'\"$token\"'\"}}}}'",
        folder.path().display()
    );
    let user = json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never", "command": "sh", "args": ["-c", script],
    }});
    let client = client(kubeconfig(folder.path(), plane.url(), plane.ca_pem(), &user)).await;
    let maps = client.api::<ConfigMap>();
    let (one, other) =
        join(async { maps.list().page().await }, async { maps.get("kube-root-ca.crt").metadata().await }).await;
    one.unwrap();
    assert!(other.is_ok() || other.unwrap_err().is_not_found());
    assert_eq!(std::fs::read_to_string(folder.path().join("runs")).unwrap().lines().count(), 2);
}

async fn waits(client: &Client) {
    let maps = client.api::<ConfigMap>();
    let waiting = maps.wait_for("late").exists().timeout(PATIENCE);
    let (seen, made) = join(async { waiting.await }, async { maps.create(&map("late", "1")).await }).await;
    assert_eq!((seen.unwrap().predicate, made.unwrap().name()), ("create".to_owned(), "late"));
    let changed = maps.wait_for("late").when("two", |map: &ConfigMap| value(map) == "2").deleted().timeout(PATIENCE);
    let (seen, _) = join(async { changed.await }, async {
        maps.patch("late", Patch::Merge(json!({"data": {"key": "2"}}))).await.unwrap()
    })
    .await;
    assert_eq!(seen.unwrap().predicate, "two");
    let gone = maps.wait_for("late").deleted().timeout(PATIENCE);
    let (seen, _) = join(async { gone.await }, async { maps.delete("late").await.unwrap() }).await;
    assert_eq!(seen.unwrap().predicate, "delete");
    let error = maps.wait_for("never").exists().timeout(Duration::ZERO).await.unwrap_err();
    assert!(matches!(error, Error::TimedOut(_)), "{error:?}");
}

async fn eviction(client: &Client) {
    let pods = client.api::<Pod>();
    let pod = serde_json::from_value(json!({
        "metadata": {"name": "guarded", "labels": {"app": "guarded"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": false},
    }));
    pods.create(&pod.unwrap()).await.unwrap();
    // No node runs it, so no budget holds it back.
    assert!(matches!(pods.evict("guarded").await.unwrap(), Evicted::Accepted(_)));
    assert!(pods.evict("guarded").await.unwrap_err().is_not_found());
}

/// The list goes on from the newest state when its own has expired, and misses nothing that was there all the time.
async fn pages_that_expire(client: &Client, plane: &Arc<ControlPlane>) {
    let maps = client.api::<ConfigMap>();
    let names: Vec<_> = (0..9).map(|number| format!("m{number}")).collect();
    for name in &names {
        maps.create(&map(name, "1")).await.unwrap();
    }
    let mut pages = maps.list().limit(2).stream();
    let mut seen = vec![pages.try_next().await.unwrap().unwrap().name().to_owned()];
    let expiring = plane.clone();
    tokio::task::spawn_blocking(move || expiring.expire_history().unwrap()).await.unwrap();
    while let Some(map) = pages.try_next().await.unwrap() {
        seen.push(map.name().to_owned());
    }
    assert!(names.iter().all(|name| seen.contains(name)), "{seen:?}");
}

fn map(name: &str, value: &str) -> ConfigMap {
    let mut map = ConfigMap { data: Some([("key".to_owned(), value.to_owned())].into()), ..ConfigMap::default() };
    map.metadata_mut().set_name(name);
    map
}

fn value(map: &ConfigMap) -> &str {
    map.data.as_ref().and_then(|data| data.get("key")).map_or("", |value| value)
}

/// As `--goaway-chance` makes API servers do behind load balancers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_are_done_once_each_while_the_server_closes_connections_by_chance() {
    let name = "writes_are_done_once_each_while_the_server_closes_connections_by_chance";
    let builder = ControlPlane::builder().apiserver_flag("goaway-chance", "0.02");
    let Some(plane) = builder.start_or_skip(name) else { return };
    let client = client(ConfigSource::from_kubeconfig(plane.kubeconfig_path())).await;
    let maps = client.api::<ConfigMap>();
    let writers = (0..20).map(|writer| {
        let maps = maps.clone();
        async move {
            for number in 0..25 {
                let mut map = ConfigMap::default();
                map.metadata.name = Some(format!("map-{writer}-{number}"));
                maps.create(&map).await.unwrap();
            }
            for number in 0..25 {
                maps.delete(&format!("map-{writer}-{number}")).await.unwrap();
            }
        }
    });
    join_all(writers).await;
}
