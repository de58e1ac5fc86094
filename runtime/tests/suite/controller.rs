//! Controllers, against the in-memory API server.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloudcoil_core::Requests;
use cloudcoil_runtime::{
    Action, Api, Client, Context, Controller, Error, Patch, Resource, ResourceKey, ResourceType, Runtime as _, Scope,
    Stop, Wait,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::common::Virtual;

const SECOND: Duration = Duration::from_secs(1);

fn world() -> (Virtual, Cluster, Client) {
    let runtime = Virtual::new();
    let cluster = Cluster::new(&runtime);
    let client = cluster.client();
    (runtime, cluster, client)
}

fn object<K: Resource>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

fn map(name: &str) -> ConfigMap {
    object(json!({"metadata": {"name": name}, "data": {"x": "1"}}))
}

async fn create<K: Resource>(api: &Api<K>, object: K) -> K {
    api.create(&object).await.unwrap()
}

/// What handlers have seen, and when.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn write(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

fn merge(value: Value) -> Patch {
    Patch::Merge(value)
}

/// Keeps a Secret beside each ConfigMap.
fn copier() -> Controller<ConfigMap> {
    let others = "metadata.name!=kube-root-ca.crt";
    Controller::<ConfigMap>::new().fields(others).owns::<Secret>().reconcile(
        async |map: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            let mut secret = Secret::default();
            secret.metadata.labels = Some([("copy".to_owned(), map.data.as_ref().unwrap()["x"].clone())].into());
            ctx.ensure(secret).await?;
            Ok::<_, Stop>(())
        },
    )
}

#[test]
fn a_child_follows_its_owner_and_is_repaired() {
    let (runtime, cluster, client) = world();
    let (maps, secrets) = (client.api::<ConfigMap>(), client.api::<Secret>());
    runtime.run(async {
        create(&maps, map("a")).await;
        let controller = copier().start(client.clone()).unwrap();
        controller.wait_ready(60 * SECOND).await.unwrap();
        runtime.sleep(SECOND).await;
        let copy = async || secrets.get("a").await.unwrap().label("copy").map(ToOwned::to_owned);
        assert_eq!(copy().await.as_deref(), Some("1"));
        let owner = secrets.get("a").await.unwrap().controller_owner().unwrap();
        assert_eq!((owner.kind.as_str(), owner.name.as_str()), ("ConfigMap", "a"));

        create(&maps, map("b")).await;
        maps.patch("a", merge(json!({"data": {"x": "2"}}))).await.unwrap();
        runtime.sleep(SECOND).await;
        assert_eq!((copy().await.as_deref(), secrets.get("b").await.is_ok()), (Some("2"), true));
        secrets.patch("a", merge(json!({"metadata": {"labels": {"copy": "x", "mine": "y"}}}))).await.unwrap();
        runtime.sleep(SECOND).await;
        assert_eq!(copy().await.as_deref(), Some("2"));
        assert_eq!(secrets.get("a").await.unwrap().label("mine"), Some("y"), "what is not mentioned stays");
        secrets.delete("a").await.unwrap();
        runtime.sleep(SECOND).await;
        assert_eq!(copy().await.as_deref(), Some("2"));

        cluster.written();
        runtime.sleep(Duration::from_secs(3600)).await;
        assert_eq!(cluster.written(), [""; 0], "what is as it should be is not written");
        assert!(controller.status().successes > 20, "every object is looked at now and then");
        controller.stop();
        controller.stopped().await.unwrap();
        assert_eq!(cluster.watches(), 0);
    });
}

#[test]
fn nothing_is_missed_while_watches_break() {
    let (runtime, cluster, client) = world();
    let (maps, secrets) = (client.api::<ConfigMap>(), client.api::<Secret>());
    runtime.run(async {
        let controller = copier().workers(4).start(client.clone()).unwrap();
        for round in 0..20 {
            create(&maps, map(&format!("m{round}"))).await;
            cluster.break_watches();
            maps.patch("m0", merge(json!({"data": {"x": format!("{round}")}}))).await.unwrap();
            secrets.delete("m0").await.map(drop).unwrap_or_default();
            runtime.sleep(Duration::from_millis(300 * round)).await;
        }
        runtime.sleep(120 * SECOND).await;
        let maps = maps.list().fields("metadata.name!=kube-root-ca.crt").await.unwrap().items;
        let secrets = secrets.list().await.unwrap().items;
        assert_eq!(secrets.len(), maps.len());
        assert!(secrets.iter().any(|secret| secret.label("copy") == Some("19")));
        drop(controller);
        runtime.sleep(SECOND).await;
        assert_eq!(cluster.watches(), 0, "a handle that is dropped stops its controller");
    });
}

#[test]
fn a_returned_object_is_written_once_and_its_status_apart() {
    let (runtime, cluster, client) = world();
    let deployments = client.api::<Deployment>();
    let log = Log::default();
    let seen = log.clone();
    let controller = Controller::<Deployment>::new().reconcile(move |old: Arc<Deployment>, _: Context<Deployment>| {
        let seen = seen.clone();
        async move {
            seen.write(format!("{:?}", old.label("seen")));
            let mut new = Deployment::clone(&old);
            new.metadata_mut().set_label("seen", "yes");
            new.status.get_or_insert_default().observed_generation = old.metadata.generation;
            Ok::<_, Stop>(new)
        }
    });
    runtime.run(async {
        let spec = json!({"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]}}});
        create(&deployments, object(json!({"metadata": {"name": "d"}, "spec": spec}))).await;
        cluster.written();
        let controller = controller.start(client.clone()).unwrap();
        runtime.sleep(10 * SECOND).await;
        let path = "/apis/apps/v1/namespaces/default/deployments/d";
        assert_eq!(cluster.written(), [format!("PATCH {path}"), format!("PATCH {path}/status")]);
        assert_eq!(log.take(), ["None", "Some(\"yes\")"], "the second pass sees what the first has written");
        let stored = deployments.get("d").await.unwrap();
        assert_eq!(stored.label("seen"), Some("yes"));
        assert_eq!(stored.status.unwrap().observed_generation, Some(1));
        assert_eq!(controller.status().conflicts + controller.status().errors, 0);
    });
}

#[test]
fn a_write_of_somebody_else_meanwhile_starts_the_pass_over() {
    let (runtime, _cluster, client) = world();
    let maps = client.api::<ConfigMap>();
    let (log, other) = (Log::default(), maps.clone());
    let seen = log.clone();
    let controller = Controller::<ConfigMap>::new().fields("metadata.name=a").reconcile(
        move |old: Arc<ConfigMap>, _: Context<ConfigMap>| {
            let (seen, other) = (seen.clone(), other.clone());
            async move {
                let x = old.data.as_ref().unwrap()["x"].clone();
                seen.write(x.clone());
                if x == "1" {
                    other.patch("a", merge(json!({"data": {"x": "2"}}))).await?;
                }
                let mut new = ConfigMap::clone(&old);
                new.data.as_mut().unwrap().insert("y".into(), x);
                Ok::<_, Stop>(new)
            }
        },
    );
    runtime.run(async {
        create(&maps, map("a")).await;
        let controller = controller.start(client.clone()).unwrap();
        runtime.sleep(30 * SECOND).await;
        assert_eq!(maps.get("a").await.unwrap().data.unwrap()["y"], "2");
        assert_eq!(log.take()[..2], ["1", "2"]);
        assert_eq!((controller.status().conflicts, controller.status().errors), (1, 0));
    });
}

/// When the handler of one object ran, in seconds from the first run, if each run ends like this.
fn runs<F>(
    how: impl Fn(usize) -> F + Send + Sync + 'static,
    limit: Duration,
) -> (Vec<u64>, cloudcoil_runtime::ReconcilerStatus)
where
    F: Future<Output = Result<Action, Stop>> + Send + 'static,
{
    let (runtime, _cluster, client) = world();
    let maps = client.api::<ConfigMap>();
    let times = Arc::new(Mutex::new(Vec::new()));
    let (clock, told, how) = (runtime.clone(), times.clone(), Arc::new(how));
    let controller = Controller::<ConfigMap>::new().fields("metadata.name=a").resync_period(None).reconcile(
        move |_: Arc<ConfigMap>, _: Context<ConfigMap>| {
            told.lock().unwrap().push(clock.elapsed());
            let (run, how) = (told.lock().unwrap().len(), how.clone());
            async move { how(run).await }
        },
    );
    let status = runtime.run(async {
        create(&maps, map("a")).await;
        let controller = controller.start(client.clone()).unwrap();
        runtime.sleep(limit).await;
        controller.status()
    });
    let times = times.lock().unwrap();
    (times.iter().map(|time| (*time - times[0] + SECOND / 2).as_secs()).collect(), status)
}

#[test]
fn failures_come_again_with_growing_delays_and_panics_are_failures() {
    let (times, status) = runs(async |_| Err(Stop::failed("no")), 100 * SECOND);
    assert_eq!(times.len(), 7, "{times:?}");
    for (one, other) in
        times.windows(2).zip(times[1..].windows(2)).map(|(one, other)| (one[1] - one[0], other[1] - other[0]))
    {
        assert!(other + 1 >= 2 * one - one / 4 && other <= 2 * one + one / 2 + 1, "{times:?}");
    }
    assert_eq!(status.errors, 7);
    let (times, status) =
        runs(async |run| if run < 3 { panic!("planted") } else { Ok(Action::await_change()) }, 100 * SECOND);
    assert_eq!((times.len(), status.errors, status.successes), (3, 2, 1));
    let (times, _) = runs(async |_| Err("x".parse::<u32>().unwrap_err().into()), 10 * SECOND);
    assert!(times.len() > 2);
}

#[test]
fn terminal_failures_and_content_handlers_do_not_come_again() {
    let (times, status) = runs(async |_| Err(Stop::terminal("never")), 1000 * SECOND);
    assert_eq!((times, status.terminal_errors), (vec![0], 1));
    let (times, _) = runs(async |_| Ok(Action::await_change()), 1000 * SECOND);
    assert_eq!(times, [0]);
}

#[test]
fn waits_and_requeues_come_again_when_they_ask_to() {
    let (times, status) = runs(async |_| Err(Wait::new("Soon").after(10 * SECOND).into()), 35 * SECOND);
    assert_eq!((times, status.errors), (vec![0, 10, 20, 30], 0));
    let (times, _) = runs(async |_| Ok(Action::requeue_after(7 * SECOND)), 20 * SECOND);
    assert_eq!(times, [0, 7, 14]);
}

#[test]
fn a_pass_that_takes_too_long_is_cancelled_and_retried() {
    let (runtime, _cluster, client) = world();
    let maps = client.api::<ConfigMap>();
    let (started, dropped) = (Log::default(), Log::default());
    let (begin, end) = (started.clone(), dropped.clone());
    let controller = Controller::<ConfigMap>::new().fields("metadata.name=a").reconcile_timeout(5 * SECOND).reconcile(
        move |_: Arc<ConfigMap>, _: Context<ConfigMap>| {
            begin.write("begin");
            let held = Held(end.clone());
            async move {
                let _held = held;
                std::future::pending::<Result<(), Stop>>().await
            }
        },
    );
    runtime.run(async {
        create(&maps, map("a")).await;
        let controller = controller.start(client.clone()).unwrap();
        runtime.sleep(9 * SECOND).await;
        assert_eq!((started.take().len(), dropped.take().len(), controller.status().errors), (2, 1, 1));
    });
}

struct Held(Log);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.write("dropped");
    }
}

#[test]
fn mappers_see_both_states_of_an_update() {
    let (runtime, _cluster, client) = world();
    let (maps, secrets) = (client.api::<ConfigMap>(), client.api::<Secret>());
    let log = Log::default();
    let seen = log.clone();
    let controller = Controller::<ConfigMap>::new()
        .labels("watched")
        .watch::<Secret, _>(|secret| {
            secret.label("about").map(|name| ResourceKey::new(secret.namespace(), name)).transpose()
        })
        .reconcile(move |map: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            seen.write(map.name());
            async move {
                assert_eq!(ctx.cached::<ConfigMap>()?.len(), 2, "what is not selected is not held");
                assert!(ctx.cached::<Secret>()?.has_synced());
                assert!(matches!(ctx.cached::<Namespace>(), Err(Error::Misuse(_))));
                Ok::<_, Stop>(())
            }
        });
    runtime.run(async {
        for name in ["a", "b", "c"] {
            let mut map = map(name);
            if name != "c" {
                map.metadata_mut().set_label("watched", "");
            }
            create(&maps, map).await;
        }
        create(&secrets, object(json!({"metadata": {"name": "s", "labels": {"about": "a"}}}))).await;
        let controller = controller.start(client.clone()).unwrap();
        runtime.sleep(10 * SECOND).await;
        let mut first = log.take();
        first.sort();
        assert_eq!(first, ["a", "b"], "each once, with what the first lists say");
        secrets.patch("s", merge(json!({"metadata": {"labels": {"about": "b"}}}))).await.unwrap();
        runtime.sleep(10 * SECOND).await;
        assert_eq!(log.take(), ["a", "b"]);
        secrets.patch("s", merge(json!({"metadata": {"labels": {"about": "c"}}}))).await.unwrap();
        runtime.sleep(10 * SECOND).await;
        assert_eq!(log.take(), ["b"], "an object that is not selected is not reconciled");
        assert_eq!(controller.status().errors, 0);
    });
}

#[test]
fn a_mapper_that_fails_or_panics_stops_the_controller() {
    for fault in ["error", "panic"] {
        let (runtime, cluster, client) = world();
        let secrets = client.api::<Secret>();
        let controller = Controller::<ConfigMap>::new()
            .watch::<Secret, _>(move |secret| match (secret.name(), fault) {
                ("bad", "error") => "x".parse::<u32>().map(|_| None),
                ("bad", _) => panic!("planted"),
                _ => Ok(None),
            })
            .reconcile(async |_: Arc<ConfigMap>, _: Context<ConfigMap>| Ok::<_, Stop>(()));
        runtime.run(async {
            let controller = controller.start(client.clone()).unwrap();
            controller.wait_ready(10 * SECOND).await.unwrap();
            create(&secrets, object(json!({"metadata": {"name": "bad"}}))).await;
            let error = controller.stopped().await.unwrap_err();
            assert!(matches!(&error, Error::Stopped(why) if why.contains("default/bad")), "{error}");
            assert_eq!(cluster.watches(), 0);
        });
    }
}

#[test]
fn as_many_workers_as_asked_for_and_one_for_each_key() {
    let (runtime, _cluster, client) = world();
    let maps = client.api::<ConfigMap>();
    let (busy, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let keys = Arc::new(Mutex::new(std::collections::BTreeSet::new()));
    let (clock, now, peak) = (runtime.clone(), busy.clone(), most.clone());
    let controller = Controller::<ConfigMap>::new().fields("metadata.name!=kube-root-ca.crt").workers(3).reconcile(
        move |map: Arc<ConfigMap>, _: Context<ConfigMap>| {
            let (clock, now, peak, keys) = (clock.clone(), now.clone(), peak.clone(), keys.clone());
            async move {
                assert!(keys.lock().unwrap().insert(map.name().to_owned()), "two at once");
                peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                clock.sleep(SECOND).await;
                now.fetch_sub(1, Ordering::SeqCst);
                keys.lock().unwrap().remove(map.name());
                Ok::<_, Stop>(())
            }
        },
    );
    runtime.run(async {
        let controller = controller.start(client.clone()).unwrap();
        for i in 0..10 {
            create(&maps, map(&format!("m{i}"))).await;
        }
        runtime.sleep(SECOND / 2).await;
        for i in 0..10 {
            controller.enqueue(ResourceKey::new(Some("default"), &format!("m{i}")).unwrap());
        }
        runtime.sleep(30 * SECOND).await;
        assert_eq!((most.load(Ordering::SeqCst), busy.load(Ordering::SeqCst)), (3, 0));
        assert_eq!(controller.status().errors, 0);
    });
}

#[test]
fn no_handler_runs_before_all_caches_have_synced() {
    let (runtime, cluster, client) = world();
    let maps = client.api::<ConfigMap>();
    let log = Log::default();
    let seen = log.clone();
    let missing = ResourceType::new("example.com", "v1", "Widget", "widgets", Scope::Namespaced);
    let controller = Controller::<ConfigMap>::new()
        .owns_with::<Secret>(move |informer| {
            informer.configure(move |config| {
                config.watch.requests = Requests::new(missing, Some("default"));
            })
        })
        .sync_timeout(30 * SECOND)
        .reconcile(move |map: Arc<ConfigMap>, _: Context<ConfigMap>| {
            seen.write(map.name());
            async { Ok::<_, Stop>(()) }
        });
    runtime.run(async {
        create(&maps, map("a")).await;
        let controller = controller.start(client.clone()).unwrap();
        assert_eq!(controller.wait_ready(20 * SECOND).await, Err(Error::TimedOut(20 * SECOND)));
        let error = controller.stopped().await.unwrap_err();
        assert!(matches!(&error, Error::Stopped(why) if why.contains("secrets") && why.contains("404")), "{error}");
        assert_eq!((log.take(), cluster.watches()), (vec![], 0));
        assert_eq!(runtime.elapsed(), 30 * SECOND);
    });
}

#[test]
fn an_unreachable_server_is_waited_for() {
    let (runtime, cluster, client) = world();
    cluster.set_unreachable(true);
    runtime.run(async {
        let controller = copier().start(client.clone()).unwrap();
        runtime.sleep(60 * SECOND).await;
        assert!(!controller.is_ready());
        cluster.set_unreachable(false);
        controller.wait_ready(60 * SECOND).await.unwrap();
    });
}

#[test]
fn a_stop_lets_running_handlers_end_within_its_time() {
    for (takes, ended) in [(5, true), (50, false)] {
        let (runtime, _cluster, client) = world();
        let maps = client.api::<ConfigMap>();
        let (log, dropped) = (Log::default(), Log::default());
        let (seen, end, clock) = (log.clone(), dropped.clone(), runtime.clone());
        let controller = Controller::<ConfigMap>::new().fields("metadata.name=a").reconcile(
            move |_: Arc<ConfigMap>, _: Context<ConfigMap>| {
                let (seen, clock, held) = (seen.clone(), clock.clone(), Held(end.clone()));
                async move {
                    let _held = held;
                    clock.sleep(takes * SECOND).await;
                    seen.write("ended");
                    Ok::<_, Stop>(())
                }
            },
        );
        runtime.run(async {
            create(&maps, map("a")).await;
            let stop = Box::pin(runtime.sleep(2 * SECOND));
            controller.run(client.clone(), stop).await.unwrap();
            assert_eq!((log.take().len(), dropped.take().len()), (usize::from(ended), 1));
            assert!(runtime.elapsed() <= 13 * SECOND);
        });
    }
}

#[test]
fn dropping_a_run_cancels_its_handlers() {
    let (runtime, cluster, client) = world();
    let maps = client.api::<ConfigMap>();
    let dropped = Log::default();
    let end = dropped.clone();
    let controller = Controller::<ConfigMap>::new().fields("metadata.name=a").reconcile(
        move |_: Arc<ConfigMap>, _: Context<ConfigMap>| {
            let held = Held(end.clone());
            async move {
                let _held = held;
                std::future::pending::<Result<(), Stop>>().await
            }
        },
    );
    runtime.run(async {
        create(&maps, map("a")).await;
        let run = Box::pin(controller.run(client.clone(), std::future::pending()));
        let limit = runtime.sleep_until(runtime.now().mono + 5 * SECOND);
        drop(futures_util::future::select(run, limit).await);
        runtime.sleep(SECOND).await;
        assert_eq!((dropped.take().len(), cluster.watches()), (1, 0));
    });
}

#[test]
fn dropping_a_run_while_its_caches_sync_stops_them() {
    let (runtime, cluster, client) = world();
    let missing = ResourceType::new("example.com", "v1", "Widget", "widgets", Scope::Namespaced);
    let controller = copier().owns_with::<Secret>(move |informer| {
        informer.configure(move |config| config.watch.requests = Requests::new(missing, Some("default")))
    });
    runtime.run(async {
        let run = Box::pin(controller.run(client.clone(), std::future::pending()));
        let limit = runtime.sleep_until(runtime.now().mono + 5 * SECOND);
        let unfinished = futures_util::future::select(run, limit).await;
        assert_ne!(cluster.watches(), 0);
        drop(unfinished);
        runtime.sleep(SECOND).await;
        assert_eq!(cluster.watches(), 0);
    });
}

#[test]
fn a_cache_that_cannot_be_set_up_stops_the_controller_and_says_why() {
    let (runtime, cluster, client) = world();
    let controller = copier().owns_with::<Secret>(|_| panic!("no such index"));
    runtime.run(async {
        let error = controller.start(client.clone()).unwrap().stopped().await.unwrap_err();
        assert!(matches!(&error, Error::Stopped(why) if why.contains("no such index")), "{error}");
        assert_eq!(cluster.watches(), 0);
    });
}

#[test]
fn a_controller_without_handler_or_workers_is_a_mistake() {
    let (runtime, _cluster, client) = world();
    runtime.run(async {
        let result = Controller::<ConfigMap>::new().run(client.clone(), std::future::pending()).await;
        assert!(matches!(result, Err(Error::Misuse(_))));
        assert!(matches!(copier().workers(0).start(client.clone()), Err(Error::Misuse(_))));
    });
}

#[test]
fn a_child_of_somebody_else_or_elsewhere_is_refused() {
    let (runtime, cluster, client) = world();
    let (maps, secrets) = (client.api::<ConfigMap>(), client.api::<Secret>());
    runtime.run(async {
        create(&secrets, object(json!({"metadata": {"name": "a"}}))).await;
        create(&maps, map("a")).await;
        let controller = copier().start(client.clone()).unwrap();
        runtime.sleep(10 * SECOND).await;
        assert!(controller.status().errors > 1);
        assert_eq!(secrets.get("a").await.unwrap().label("copy"), None);
        secrets.delete("a").await.unwrap();
        runtime.sleep(120 * SECOND).await;
        assert_eq!(secrets.get("a").await.unwrap().label("copy"), Some("1"));
        drop(controller);

        cluster.written();
        let elsewhere = Controller::<ConfigMap>::new().fields("metadata.name=a").reconcile(
            async |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
                ctx.ensure::<Secret>(object(json!({"metadata": {"namespace": "kube-system"}}))).await?;
                Ok::<_, Stop>(())
            },
        );
        let controller = elsewhere.start(client.clone()).unwrap();
        runtime.sleep(100 * SECOND).await;
        assert_eq!((controller.status().terminal_errors, cluster.written()), (1, vec![]));
    });
}

#[test]
fn a_child_that_changes_just_when_it_is_written_is_read_again() {
    let (runtime, cluster, client) = world();
    let (maps, secrets) = (client.api::<ConfigMap>(), client.api::<Secret>());
    runtime.run(async {
        let owner = create(&maps, map("a")).await;
        let reference =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": owner.uid(), "controller": true});
        let rival: Secret = object(json!({"metadata": {"name": "a", "ownerReferences": [reference]}}));
        cluster.interfere("POST", secrets.requests().create(&rival, &Default::default()).unwrap());
        let patch = merge(json!({"metadata": {"labels": {"other": "x"}}}));
        cluster.interfere("PATCH", secrets.requests().patch("a", None, &patch, &Default::default()).unwrap());
        let controller = copier().start(client.clone()).unwrap();
        runtime.sleep(SECOND / 2).await;
        let secret = secrets.get("a").await.unwrap();
        assert_eq!((secret.label("copy"), secret.label("other")), (Some("1"), Some("x")));
        assert_eq!((controller.status().errors, controller.status().conflicts), (0, 0));
        let path = "/api/v1/namespaces/default/secrets";
        let written = cluster.written()[1..4].to_vec();
        assert_eq!(written, [format!("POST {path}"), format!("PATCH {path}/a"), format!("PATCH {path}/a")]);
    });
}

#[test]
fn status_updates_can_be_ignored() {
    let (runtime, _cluster, client) = world();
    let deployments = client.api::<Deployment>();
    let log = Log::default();
    let seen = log.clone();
    let controller = Controller::<Deployment>::new().ignore_status_updates().reconcile(
        move |deployment: Arc<Deployment>, _: Context<Deployment>| {
            seen.write(format!("{:?}", deployment.generation()));
            async { Ok::<_, Stop>(()) }
        },
    );
    runtime.run(async {
        let spec = json!({"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata":
            {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}});
        create(&deployments, object(json!({"metadata": {"name": "d"}, "spec": spec}))).await;
        let _controller = controller.start(client.clone()).unwrap();
        runtime.sleep(SECOND).await;
        deployments.patch_status("d", merge(json!({"status": {"replicas": 3}}))).await.unwrap();
        runtime.sleep(SECOND).await;
        assert_eq!(log.take(), ["Some(1)"]);
        deployments.patch("d", merge(json!({"spec": {"replicas": 2}}))).await.unwrap();
        runtime.sleep(SECOND).await;
        deployments.patch("d", merge(json!({"metadata": {"annotations": {"a": "b"}}}))).await.unwrap();
        runtime.sleep(SECOND).await;
        assert_eq!(log.take(), ["Some(2)", "Some(2)"]);
    });
}

#[test]
fn an_object_that_does_not_fit_its_type_waits_for_its_next_event() {
    let (runtime, _cluster, client) = world();
    let log = Log::default();
    let seen = log.clone();
    // ConfigMaps seen as Secrets: their data are no base64.
    let maps = client.api::<ConfigMap>();
    let types = maps.resource_type().clone();
    let controller = Controller::<Secret>::of(types).reconcile(move |secret: Arc<Secret>, _: Context<Secret>| {
        seen.write(secret.name());
        async { Ok::<_, Stop>(()) }
    });
    runtime.run(async {
        create(&maps, object(json!({"metadata": {"name": "bad"}, "data": {"x": "!"}}))).await;
        create(&maps, object(json!({"metadata": {"name": "good"}}))).await;
        let controller = controller.fields("metadata.name!=kube-root-ca.crt").start(client.clone()).unwrap();
        runtime.sleep(100 * SECOND).await;
        assert_eq!(log.take().len(), 0, "a kind that is another's does not fit at all");
        assert!(controller.status().terminal_errors >= 2);
    });
}

#[test]
fn children_lead_to_the_very_object_that_controls_them() {
    let (runtime, _cluster, client) = world();
    let (maps, secrets) = (client.api::<ConfigMap>(), client.api::<Secret>());
    let log = Log::default();
    let seen = log.clone();
    let controller = Controller::<ConfigMap>::new().fields("metadata.name=a").owns::<Secret>().reconcile(
        move |map: Arc<ConfigMap>, _: Context<ConfigMap>| {
            seen.write(map.name());
            async { Ok::<_, Stop>(()) }
        },
    );
    runtime.run(async {
        let owner = create(&maps, map("a")).await;
        let _controller = controller.start(client.clone()).unwrap();
        runtime.sleep(SECOND).await;
        assert_eq!(log.take(), ["a"]);
        for (name, uid, controls, leads) in [
            ("own", owner.uid().unwrap(), true, 1),
            ("stale", "other", true, 0),
            ("mere", owner.uid().unwrap(), false, 0),
        ] {
            let owner =
                json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": uid, "controller": controls});
            create(&secrets, object(json!({"metadata": {"name": name, "ownerReferences": [owner]}}))).await;
            runtime.sleep(SECOND).await;
            assert_eq!(log.take().len(), leads, "{name}");
        }
    });
}
