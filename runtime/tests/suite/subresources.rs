//! Scale, eviction, logs and other parts of objects: requests against a script, behaviour against the in-memory server.

use std::time::Duration;

use cloudcoil_runtime::{Error, Evicted, ListVersion, Patch, Propagation, Resource as _, TableEvent};
use futures_util::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ServiceAccount};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::common::{Piece, Reply, Server, Virtual, json};

fn deployment(replicas: u32) -> Deployment {
    let template =
        json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template});
    serde_json::from_value(json!({"metadata": {"name": "web", "namespace": "default"}, "spec": spec})).unwrap()
}

fn pod(name: &str) -> Pod {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}}))
    .unwrap()
}

#[test]
fn scaling_answers_with_the_object_as_it_is_then() {
    let runtime = Virtual::new();
    let cluster = Cluster::new(&runtime);
    runtime.run(async {
        let deployments = cluster.client().api::<Deployment>();
        let created = deployments.create(&deployment(1)).await.unwrap();
        let scaled = deployments.set_replicas("web", 3).await.unwrap();
        assert_eq!(scaled.spec.replicas, Some(3));
        assert_ne!(scaled.resource_version(), created.resource_version());
        assert_eq!(deployments.set_replicas("web", 9).dry_run().await.unwrap().spec.replicas, Some(3));
        assert!(deployments.set_replicas("gone", 1).await.unwrap_err().is_not_found());

        let mut scale = deployments.scale("web").get().await.unwrap();
        assert_eq!(scale.spec.as_ref().unwrap().replicas, Some(3));
        scale.spec.as_mut().unwrap().replicas = Some(0);
        let replaced = deployments.scale("web").replace(&scale).await.unwrap();
        assert_eq!(replaced.spec.unwrap().replicas.unwrap_or(0), 0);
        assert!(deployments.scale("web").replace(&scale).await.unwrap_err().is_conflict(), "the version is old");
        let patch = Patch::Merge(json!({"spec": {"replicas": 5}}));
        assert_eq!(deployments.scale("web").patch(patch).await.unwrap().spec.unwrap().replicas, Some(5));
    });
}

#[test]
fn an_eviction_deletes_or_says_which_budget_is_against_it() {
    let runtime = Virtual::new();
    let cluster = Cluster::new(&runtime);
    runtime.run(async {
        let pods = cluster.client().api::<Pod>();
        pods.create(&pod("a")).await.unwrap();
        assert!(pods.evict("a").dry_run().await.unwrap().is_accepted());
        pods.get("a").await.unwrap();
        assert!(pods.evict("a").grace_period(Duration::ZERO).await.unwrap().is_accepted());
        assert!(pods.get("a").await.unwrap_err().is_not_found());
        assert!(pods.evict("a").await.unwrap_err().is_not_found());

        pods.create(&pod("b")).await.unwrap();
        let status = Patch::Merge(json!({"status": {"phase": "Running"}}));
        pods.patch_status("b", status).await.unwrap();
        let budgets = cluster.client().api::<k8s_openapi::api::policy::v1::PodDisruptionBudget>();
        let budget = json!({"metadata": {"name": "web"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
        budgets.create(&serde_json::from_value(budget).unwrap()).await.unwrap();
        match pods.evict("b").propagation(Propagation::Background).await.unwrap() {
            Evicted::Refused(refusal) => assert!(refusal.disruption_budget().is_some(), "{refusal:?}"),
            accepted @ Evicted::Accepted(_) => panic!("{accepted:?}"),
        }
        pods.get("b").await.unwrap();
    });
    assert_eq!(cluster.written().iter().filter(|line| line.ends_with("/b/eviction")).count(), 1, "it is sent once");
}

#[test]
fn a_token_is_asked_for_with_its_type() {
    let runtime = Virtual::new();
    let server =
        Server::new(&runtime, |_| Some(json(201, json!({"status": {"token": "t", "expirationTimestamp": null}}))));
    let accounts = server.client().api::<ServiceAccount>();
    let token = runtime
        .run(async { accounts.subresource::<Value>("a", "token").create(&TokenRequest::default()).await.unwrap() });
    assert_eq!(token["status"]["token"], "t");
    let seen = &server.seen()[0];
    assert_eq!((&*seen.method, &*seen.uri), ("POST", "/api/v1/namespaces/ns/serviceaccounts/a/token"));
    assert_eq!(seen.body["kind"], "TokenRequest");
}

#[test]
fn one_object_is_read_as_metadata_or_as_a_table() {
    let runtime = Virtual::new();
    let cluster = Cluster::new(&runtime);
    runtime.run(async {
        let pods = cluster.client().api::<Pod>();
        for name in ["a", "b"] {
            pods.create(&pod(name)).await.unwrap();
        }
        let metadata = pods.get("a").metadata().await.unwrap();
        assert_eq!((metadata.kind(), metadata.name(), metadata.field("spec")), ("PartialObjectMetadata", "a", None));
        let list = pods.list().metadata().await.unwrap();
        assert!(list.items.iter().all(|item| item.kind() == "PartialObjectMetadata" && item.field("spec").is_none()));
        assert_eq!(list.items.len(), 2);

        let table = pods.get("a").version(ListVersion::Any).table().await.unwrap();
        assert_eq!((&*table.columns[0].name, table.rows[0].text(0)), ("Name", "a".to_owned()));
        let table = pods.list().table().await.unwrap();
        let names: Vec<_> = table.rows.iter().map(|row| row.object.as_ref().unwrap().name()).collect();
        assert_eq!((names, table.resource_version.is_some()), (vec!["a", "b"], true));
        let page = pods.list().limit(1).table().await.unwrap();
        let rest = pods.list().limit(1).continue_from(page.continue_token.unwrap()).table().await.unwrap();
        assert_eq!(rest.rows[0].text(0), "b");
        assert!(pods.get("none").table().await.unwrap_err().is_not_found());
    });
}

fn log(pieces: impl IntoIterator<Item = Piece>) -> Reply {
    Reply { code: 200, headers: vec![("content-type", "text/plain".to_owned())], pieces: pieces.into_iter().collect() }
}

fn bytes(text: &'static [u8]) -> Piece {
    Piece::Bytes(text.into())
}

#[test]
fn a_log_is_read_whole_or_line_by_line_however_it_is_cut() {
    let runtime = Virtual::new();
    let full = || log([bytes(b"one\r\nna\xc3"), bytes(b"\xafve\n\nlast"), Piece::End]);
    let server = Server::script(&runtime, [full(), full(), full()]);
    let pods = server.client().api::<Pod>();
    runtime.run(async {
        assert_eq!(pods.logs("a").tail_lines(5).await.unwrap(), "one\r\nnaïve\n\nlast");
        let lines: Vec<_> = pods.logs("a").container("c").lines().try_collect().await.unwrap();
        assert_eq!(lines, ["one", "naïve", "", "last"]);
        let pieces: Vec<_> = pods.logs("a").previous().bytes().try_collect::<Vec<_>>().await.unwrap();
        assert_eq!(pieces.len(), 2);
    });
    let path = "/api/v1/namespaces/ns/pods/a/log";
    assert_eq!(
        server.uris(),
        [format!("{path}?tailLines=5"), format!("{path}?container=c"), format!("{path}?previous=true")]
    );
    assert_eq!(server.open(), 0);
}

#[test]
fn a_followed_log_waits_for_days_and_closes_when_it_is_dropped() {
    let runtime = Virtual::new();
    let day = Duration::from_secs(86_400);
    let server = Server::script(&runtime, [log([Piece::Wait(day), bytes(b"late\n"), bytes(b"open")])]);
    let mut lines = server.client().api::<Pod>().logs("a").follow().lines();
    runtime.run(async {
        assert_eq!(lines.next().await.unwrap().unwrap(), "late");
        assert!(futures_util::poll!(lines.next()).is_pending());
    });
    assert_eq!((runtime.elapsed(), server.open()), (day, 1));
    drop(lines);
    assert_eq!(server.open(), 0);
}

#[test]
fn a_log_that_is_refused_breaks_or_makes_no_sense_is_an_error() {
    let runtime = Virtual::new();
    let refusal =
        json!({"kind": "Status", "code": 400, "reason": "BadRequest", "message": "a container name must be specified"});
    let server =
        Server::script(&runtime, [json(400, refusal), log([bytes(b"one\ntw"), Piece::Break]), log([bytes(b"silent")])]);
    let pods = server.client().api::<Pod>();
    runtime.run(async {
        assert!(matches!(pods.logs("a").await, Err(Error::Api(status)) if status.reason == "BadRequest"));
        let lines: Vec<_> = pods.logs("a").follow().lines().collect().await;
        assert!(matches!(&lines[..], [Ok(one), Ok(two), Err(Error::Network(_))] if one == "one" && two == "tw"));
        assert!(matches!(pods.logs("a").await, Err(Error::TimedOut(_))), "a log that is not followed has a limit");
        let both = pods.logs("a").since_seconds(5).since_time(cloudcoil_core::UnixTime::from_secs(1));
        assert!(matches!(both.await, Err(Error::Misuse(_))));
        let lines: Vec<_> = pods.logs("a").limit_bytes(0).lines().collect().await;
        assert!(matches!(&lines[..], [Err(Error::Misuse(_))]));
    });
    assert_eq!((server.uris().len(), server.open()), (3, 0), "misuse is not sent");
}

#[test]
fn an_object_that_was_read_is_applied_without_what_is_the_servers() {
    let runtime = Virtual::new();
    let server = Server::new(&runtime, |_| Some(json(200, json!({"metadata": {"name": "a"}}))));
    let read = json!({"metadata": {"name": "a", "namespace": "ns", "managedFields": [{"manager": "x"}], "creationTimestamp": null},
        "data": {"k": "v"}});
    let widgets = cloudcoil_runtime::ResourceType::new(
        "example.com",
        "v1",
        "Widget",
        "widgets",
        cloudcoil_runtime::Scope::Namespaced,
    );
    runtime.run(async {
        server.client().api_for(widgets).apply("me", &serde_json::from_value(read.clone()).unwrap()).await.unwrap();
        let map: ConfigMap = serde_json::from_value(read).unwrap();
        server.client().api::<ConfigMap>().apply("me", &map).force().await.unwrap();
    });
    for (seen, (api_version, kind)) in server.seen().iter().zip([("example.com/v1", "Widget"), ("v1", "ConfigMap")]) {
        let metadata = json!({"name": "a", "namespace": "ns"});
        let body = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "data": {"k": "v"}});
        assert_eq!((&*seen.content_type, &seen.body), ("application/apply-patch+yaml", &body));
    }
}

#[test]
fn a_watched_table_shows_what_exists_and_each_change() {
    let runtime = Virtual::new();
    let cluster = Cluster::new(&runtime);
    runtime.run(async {
        let pods = cluster.client().api::<Pod>();
        pods.create(&pod("a")).await.unwrap();
        let mut tables = pods.list().watch_table();
        let mut next = async || match tables.next().await.unwrap().unwrap() {
            TableEvent::Listed(table) => format!("listed {} of {}", table.rows[0].text(0), table.columns[0].name),
            TableEvent::Applied(table) => format!("applied {}", table.rows[0].text(0)),
            TableEvent::Deleted(table) => format!("deleted {}", table.rows[0].text(0)),
            TableEvent::Failed(error) => panic!("{error}"),
        };
        assert_eq!(next().await, "listed a of Name");
        pods.create(&pod("b")).await.unwrap();
        assert_eq!(next().await, "applied b");
        cluster.break_watches();
        pods.delete("a").grace_period(Duration::ZERO).await.unwrap();
        assert_eq!(next().await, "applied a", "it is going");
        assert_eq!(next().await, "deleted a");
        drop(tables);
        assert_eq!(cluster.watches(), 0);
    });
}
