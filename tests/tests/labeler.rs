//! The labeler example against a real control plane, on every runtime: it misses nothing, whatever happens to the API server.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "helpers of tests may unwrap where tests may")]
#![expect(clippy::duplicate_mod, reason = "the operator is written once and compiled twice")]

#[path = "../../examples/labeler/asynchronous.rs"]
mod asynchronous;
#[path = "../../examples/labeler/blocking.rs"]
mod blocking;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cloudcoil_testing::ControlPlane;
use cloudcoil_tokio::prelude::*;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use asynchronous::operator::{LABEL, SUFFIX, derived};

/// How long the world may take to become as it should be.
const PATIENCE: Duration = Duration::from_secs(90);

/// What the operator runs on.
#[derive(Clone, Copy, Debug)]
enum On {
    Tokio,
    AsyncStd,
    Smol,
    Threads,
}

#[tokio::test(flavor = "multi_thread")]
async fn the_labeler_misses_nothing_on_a_real_control_plane() {
    misses_nothing(On::Tokio).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_labeler_misses_nothing_on_async_std() {
    misses_nothing(On::AsyncStd).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_labeler_misses_nothing_on_smol() {
    misses_nothing(On::Smol).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_labeler_misses_nothing_on_threads() {
    misses_nothing(On::Threads).await;
}

async fn misses_nothing(on: On) {
    let Some(plane) = ControlPlane::start_or_skip(&format!("the_labeler_misses_nothing on {on:?}")) else { return };
    let plane = Arc::new(plane);
    let client = Client::try_from_kubeconfig(plane.kubeconfig_path()).await.unwrap();
    let maps = client.api::<ConfigMap>();
    for name in ["a", "b", "c"] {
        maps.create(&source(name, "one")).await.unwrap();
    }
    let first = Operator::start(on, plane.kubeconfig_path()).await;
    in_step(&maps, 3, "the objects that were there before the operator").await;

    change(&maps, "a", "two").await;
    maps.create(&source("d", "new")).await.unwrap();
    maps.delete(&format!("b{SUFFIX}")).await.unwrap();
    maps.patch(&format!("c{SUFFIX}"), Patch::Merge(json!({"data": {"key": "spoiled"}}))).await.unwrap();
    in_step(&maps, 4, "changes, an addition, a child deleted and a child spoiled").await;

    on_plane(&plane, |plane| plane.apiserver().restart().unwrap()).await;
    change(&maps, "a", "after the restart").await;
    maps.delete(&format!("d{SUFFIX}")).await.unwrap();
    in_step(&maps, 4, "changes after a restart of the API server").await;

    on_plane(&plane, |plane| assert!(plane.expire_history().unwrap() > 0)).await;
    change(&maps, "b", "after the compaction").await;
    maps.create(&source("e", "after the compaction")).await.unwrap();
    in_step(&maps, 5, "changes after history was compacted").await;

    let second = Operator::start(on, plane.kubeconfig_path()).await;
    for name in ["a", "b", "c", "d", "e"] {
        change(&maps, name, "with two operators").await;
    }
    in_step(&maps, 5, "changes with a second operator at work").await;

    first.stop().await;
    change(&maps, "a", "with the second alone").await;
    in_step(&maps, 5, "changes after the first operator has stopped").await;
    second.stop().await;
}

/// The operator, at work.
enum Operator {
    Task(cloudcoil_tokio::ControllerHandle),
    Threads(cloudcoil_blocking::ControllerHandle),
}

impl Operator {
    /// One that has seen all that there is.
    async fn start(on: On, kubeconfig: &Path) -> Self {
        let kubeconfig = kubeconfig.to_owned();
        let client = match on {
            On::Tokio => Client::try_from_kubeconfig(kubeconfig).await,
            On::AsyncStd => <Client as cloudcoil_async_std::Connect>::try_from_kubeconfig(kubeconfig).await,
            On::Smol => <Client as cloudcoil_smol::Connect>::try_from_kubeconfig(kubeconfig).await,
            On::Threads => {
                let start = move || {
                    use cloudcoil_blocking::{Client, Connect as _};

                    let handle =
                        blocking::operator::controller().start(Client::try_from_kubeconfig(kubeconfig).unwrap());
                    let handle = handle.unwrap();
                    handle.wait_ready(PATIENCE).unwrap();
                    Self::Threads(handle)
                };
                return tokio::task::spawn_blocking(start).await.unwrap();
            }
        };
        let handle = asynchronous::operator::controller().start(client.unwrap()).unwrap();
        handle.wait_ready(PATIENCE).await.unwrap();
        Self::Task(handle)
    }

    async fn stop(self) {
        match self {
            Self::Task(handle) => {
                handle.stop();
                handle.stopped().await.unwrap();
            }
            Self::Threads(handle) => {
                handle.stop();
                tokio::task::spawn_blocking(|| handle.stopped()).await.unwrap().unwrap();
            }
        }
    }
}

/// Does something that blocks to the control plane, while the operator goes on.
async fn on_plane(plane: &Arc<ControlPlane>, act: impl FnOnce(&ControlPlane) + Send + 'static) {
    let plane = plane.clone();
    tokio::task::spawn_blocking(move || act(&plane)).await.unwrap();
}

fn source(name: &str, text: &str) -> ConfigMap {
    let mut map = ConfigMap { data: Some([("key".to_owned(), text.to_owned())].into()), ..ConfigMap::default() };
    map.metadata_mut().set_name(name);
    map.metadata_mut().set_label(LABEL, "true");
    map
}

async fn change(maps: &Api<ConfigMap>, name: &str, text: &str) {
    maps.patch(name, Patch::Merge(json!({"data": {"key": text}}))).await.unwrap();
}

/// Waits until a live list shows that many sources, each with its child in step; looks again at every change.
async fn in_step(maps: &Api<ConfigMap>, sources: usize, after: &str) {
    let mut changes = maps.watch().stream();
    let waiting = async {
        while let Some(change) = changes.next().await {
            // A broken watch is tried again; what counts is the list.
            drop(change);
            if is_in_step(maps, sources).await {
                return;
            }
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    assert!(waited.is_ok(), "not in step after {after}: {:?}", maps.list().await);
}

async fn is_in_step(maps: &Api<ConfigMap>, sources: usize) -> bool {
    let Ok(list) = maps.list().await else { return false };
    let by_name: BTreeMap<&str, &ConfigMap> = list.items.iter().map(|map| (map.name(), map)).collect();
    let labelled: Vec<_> = list.items.iter().filter(|map| map.label(LABEL).is_some()).collect();
    let has_child = |source: &&ConfigMap| {
        by_name.get(format!("{}{SUFFIX}", source.name()).as_str()).is_some_and(|child| {
            let owner = child.controller_owner().map(|owner| owner.uid);
            child.data == derived(source).data && owner.as_deref() == source.uid()
        })
    };
    labelled.len() == sources && labelled.iter().all(has_child)
}
