//! Operators in virtual time: what a simulation does, and what it finds out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cloudcoil_core::k8s_openapi::api::core::v1::{ConfigMap, Secret};
use cloudcoil_core::{Patch, Resource};
use cloudcoil_runtime::{Action, Client, Context, Controller, Informer, Stop};
use cloudcoil_testing::simulation::{Faults, Sim, Simulation};
use futures_util::future::pending;
use serde_json::json;

const LIMIT: Duration = Duration::from_secs(1800);

fn map(name: &str, value: &str) -> ConfigMap {
    let mut map = ConfigMap { data: Some([("key".to_owned(), value.to_owned())].into()), ..Default::default() };
    map.metadata.name = Some(name.into());
    map
}

/// Keeps a Secret in step with each ConfigMap.
async fn mirror(map: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Action, Stop> {
    ctx.ensure(Secret { string_data: None, data: None, type_: Some("Opaque".into()), ..labelled(&map) }).await?;
    Ok(Action::requeue_after(Duration::from_secs(3600)))
}

fn labelled(map: &ConfigMap) -> Secret {
    let mut secret = Secret::default();
    let value = map.data.as_ref().and_then(|data| data.get("key")).cloned().unwrap_or_default();
    secret.metadata.labels = Some([("value".to_owned(), value)].into());
    secret
}

fn mirrors() -> Controller<ConfigMap> {
    Controller::<ConfigMap>::new().owns::<Secret>().workers(2).reconcile(mirror)
}

fn is_mirrored(sim: &mut Sim, name: &str, value: &str) -> bool {
    let secret: Result<Secret, _> = sim.get(name);
    secret.is_ok_and(|secret| secret.label("value") == Some(value))
}

/// The message of the panic that `act` ends with.
fn panic_of(act: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(act)).expect_err("it should have panicked");
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).into()))
        .expect("a message")
}

#[test]
fn an_operator_does_its_work_in_spite_of_faults_restarts_and_pauses() {
    Simulation::seeds(0..12).faults(Faults::all()).run(|sim| {
        let process = sim.install(mirrors);
        sim.create(&map("a", "1"));
        sim.create(&map("b", "1"));
        sim.run_until(LIMIT, |sim| is_mirrored(sim, "a", "1"));
        let pause = Duration::from_secs(sim.random().below(300));
        sim.pause(process, pause);
        let _: ConfigMap = sim.patch("a", None, &Patch::Merge(json!({"data": {"key": "2"}})));
        sim.run_until(LIMIT, |sim| is_mirrored(sim, "a", "2") && is_mirrored(sim, "b", "1"));
        sim.restart(process);
        sim.delete::<Secret>("b");
        sim.run_until(LIMIT, |sim| is_mirrored(sim, "b", "1"));
        sim.run_until(LIMIT, |sim| {
            let secrets = sim.list::<Secret>();
            secrets.iter().map(Resource::name).eq(["a", "b", "kube-root-ca.crt"])
        });
        assert!(sim.stuck().is_empty());
    });
}

#[test]
fn a_process_that_was_killed_does_nothing_any_more() {
    Simulation::seeds([1]).run(|sim| {
        let process = sim.install(mirrors);
        sim.run_for(Duration::from_secs(60));
        sim.kill(process);
        sim.create(&map("a", "1"));
        sim.run_for(LIMIT);
        assert!(!is_mirrored(sim, "a", "1"));
    });
}

#[test]
fn hours_pass_in_no_time_and_the_wall_clock_goes_with_them() {
    Simulation::seeds([1]).run(|sim| {
        sim.install(mirrors);
        let before = sim.now();
        sim.run_for(Duration::from_secs(86_400));
        let after = sim.now();
        assert_eq!(after.mono.since(before.mono), Duration::from_secs(86_400));
        assert_eq!(after.wall.as_micros() - before.wall.as_micros(), 86_400 * 1_000_000);
    });
}

#[test]
fn a_handler_that_awaits_something_foreign_is_named() {
    async fn wait_for_ever(_: Arc<ConfigMap>, _: Context<ConfigMap>) -> Result<(), Stop> {
        pending().await
    }
    let message = panic_of(|| {
        Simulation::seeds([1]).run(|sim| {
            sim.install(|| Controller::<ConfigMap>::new().reconcile(wait_for_ever));
            sim.create(&map("a", "1"));
            sim.run_for(LIMIT);
        });
    });
    assert!(message.contains("ConfigMap default/a"), "{message}");
    let message = panic_of(|| {
        Simulation::seeds([1]).run(|sim| {
            sim.install(|| Controller::<ConfigMap>::new().reconcile(wait_for_ever));
            sim.create(&map("a", "1"));
            sim.run_until(Duration::from_secs(60), |_| false);
        });
    });
    assert!(message.contains("not done after 60s") && message.contains("ConfigMap default/a"), "{message}");
}

#[test]
fn a_handler_that_takes_long_is_not_stuck() {
    async fn slow(_: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<(), Stop> {
        let runtime = ctx.client().runtime();
        runtime.sleep_until(runtime.now().mono + Duration::from_secs(7200)).await;
        Ok(())
    }
    Simulation::seeds([1]).run(|sim| {
        sim.install(|| Controller::<ConfigMap>::new().reconcile(slow));
        sim.create(&map("a", "1"));
        sim.run_for(Duration::from_secs(7000));
        assert!(sim.stuck().is_empty());
    });
}

#[test]
fn a_program_that_does_not_go_by_the_seed_is_found_out() {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let message = panic_of(|| {
        Simulation::seeds([1]).run(|sim| {
            let extra = RUNS.fetch_add(1, Ordering::Relaxed);
            sim.start(move |client: Client| async move {
                for _ in 0..=extra {
                    let _ = client.api::<ConfigMap>().get("a").await;
                }
            });
            sim.run_for(LIMIT);
        });
    });
    assert!(message.contains("not the same"), "{message}");
}

#[test]
fn a_panic_of_the_program_fails_the_test_and_one_of_a_handler_does_not() {
    let message = panic_of(|| {
        Simulation::seeds([1]).run(|sim| {
            sim.start(|_| async { panic!("out of order") });
            sim.run_for(LIMIT);
        });
    });
    assert_eq!(message, "out of order");
    async fn panics_once(map: Arc<ConfigMap>, _: Context<ConfigMap>) -> Result<ConfigMap, Stop> {
        static FIRST: AtomicU64 = AtomicU64::new(0);
        assert!(FIRST.fetch_add(1, Ordering::Relaxed) % 2 == 1, "the first of each run panics");
        let mut map = (*map).clone();
        map.metadata.labels.get_or_insert_default().insert("seen".into(), "yes".into());
        Ok(map)
    }
    Simulation::seeds([1]).run(|sim| {
        sim.install(|| Controller::<ConfigMap>::new().ignore_status_updates().labels("!seen").reconcile(panics_once));
        sim.create(&map("a", "1"));
        sim.run_until(LIMIT, |sim| sim.get::<ConfigMap>("a").unwrap().label("seen").is_some());
    });
}

#[test]
fn an_informer_of_a_program_follows_the_server() {
    Simulation::seeds(0..4).faults(Faults::all()).run(|sim| {
        sim.start(|client| async move {
            let informer = Informer::new(client.api::<ConfigMap>()).start();
            informer.wait_synced(LIMIT).await.unwrap();
            let names = |reader: &cloudcoil_runtime::Reader<ConfigMap>| reader.keys().len();
            let reader = informer.reader();
            while names(&reader) < 3 {
                let runtime = client.runtime();
                runtime.sleep_until(runtime.now().mono + Duration::from_secs(1)).await;
            }
            let api = client.api::<Secret>();
            let mut done = Secret::default();
            done.metadata.name = Some("done".into());
            while api.get_opt("done").await.ok().flatten().is_none() {
                let _ = api.create(&done).await;
            }
        });
        for name in ["a", "b", "c"] {
            sim.run_for(Duration::from_secs(100));
            sim.create(&map(name, "1"));
        }
        sim.run_until(LIMIT, |sim| sim.get::<Secret>("done").is_ok());
    });
}
