use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use cloudcoil_blocking::core::k8s_openapi::api::core::v1::{ConfigMap, Secret};
use cloudcoil_blocking::{
    Action, Client, Config, Connect as _, Context, Controller, Error, Patch, Resource as _, ResourceKey, Stop,
    WatchEvent,
};
use serde_json::json;

use crate::common::{Cluster, is_closed, map, raw, read_head, value};

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// The first state of an object for which `holds`.
fn eventually(client: &Client, name: &str, holds: impl Fn(&ConfigMap) -> bool) -> ConfigMap {
    let events = client.api::<ConfigMap>().watch().fields(format!("metadata.name={name}"));
    let mut maps = events.into_iter().filter_map(|event| match event.unwrap() {
        WatchEvent::Listed(map) | WatchEvent::Applied(map) => Some(map),
        _ => None,
    });
    maps.find(holds).unwrap()
}

fn label(map: Arc<ConfigMap>, _: Context<ConfigMap>) -> Result<Option<ConfigMap>, Stop> {
    let mut labelled = (*map).clone();
    let labels = labelled.metadata.labels.get_or_insert_default();
    Ok(labels
        .insert("seen".to_owned(), value(&map).to_owned())
        .is_none_or(|before| before != value(&map))
        .then_some(labelled))
}

fn seen(map: &ConfigMap) -> Option<&str> {
    map.metadata.labels.as_ref()?.get("seen").map(|seen| &**seen)
}

#[test]
fn a_controller_labels_objects_as_they_change_and_stops() -> Result<(), Error> {
    for cluster in [Cluster::start(), Cluster::start_tls()] {
        let client = cluster.client();
        let api = client.api::<ConfigMap>();
        api.create(&map("early", "1")).send()?;
        let handle = Controller::new().labels("test").workers(4).reconcile(label).start(client.clone())?;
        handle.wait_ready(PATIENCE)?;
        eventually(&client, "early", |map| seen(map) == Some("1"));
        for number in 0..20 {
            api.create(&map(&format!("m{number}"), "1")).send()?;
        }
        api.patch("early", Patch::Merge(json!({"data": {"key": "2"}}))).send()?;
        eventually(&client, "early", |map| seen(map) == Some("2"));
        for number in 0..20 {
            eventually(&client, &format!("m{number}"), |map| seen(map) == Some("1"));
        }
        handle.stop();
        handle.stopped()?;
    }
    Ok(())
}

fn copy(map: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<(), Stop> {
    let mut copy = Secret::default();
    copy.metadata.name = Some(format!("{}-copy", map.name()));
    copy.string_data = map.data.clone();
    ctx.ensure(copy)?;
    Ok(())
}

#[test]
fn children_are_ensured_and_their_loss_is_made_good() -> Result<(), Error> {
    let cluster = Cluster::start();
    let client = cluster.client();
    client.api::<ConfigMap>().create(&map("a", "1")).send()?;
    let stop = mpsc::channel::<()>();
    let controller = Controller::<ConfigMap>::new().labels("test").owns::<Secret>().reconcile(copy);
    let secrets = client.api::<Secret>();
    std::thread::scope(|scope| {
        let (client, stopped) = (client.clone(), stop.1);
        let running = scope.spawn(move || controller.run(client, move || assert!(stopped.recv().is_err())));
        let mut events = secrets.watch().fields("metadata.name=a-copy").iter();
        let mut uid = || {
            events.find_map(|event| match event.unwrap() {
                WatchEvent::Listed(secret) | WatchEvent::Applied(secret) => secret.metadata.uid,
                _ => None,
            })
        };
        let first = uid();
        secrets.delete("a-copy").send()?;
        assert_ne!(uid(), first);
        drop(stop.0);
        running.join().unwrap()
    })
}

#[test]
fn panics_and_failures_are_retried() -> Result<(), Error> {
    let cluster = Cluster::start();
    let client = cluster.client();
    client.api::<ConfigMap>().create(&map("a", "1")).send()?;
    let (passes, (done, is_done)) = (AtomicUsize::new(0), mpsc::channel());
    let mut backoff = cloudcoil_blocking::BackoffPolicy::RECONCILE;
    backoff.first = Duration::from_millis(1);
    let handle = Controller::<ConfigMap>::new()
        .labels("test")
        .backoff(backoff)
        .reconcile(move |_, _| match passes.fetch_add(1, Ordering::SeqCst) {
            0 => panic!("the first pass"),
            1 => Err("x".parse::<u32>().unwrap_err().into()),
            _ => {
                done.send(()).unwrap();
                Ok(Action::await_change())
            }
        })
        .start(client)?;
    is_done.recv().unwrap();
    let status = handle.status();
    assert_eq!(status.errors, 2);
    handle.stop();
    handle.stopped()
}

#[test]
fn a_pass_whose_time_is_up_ends_in_its_request_and_the_controller_waits_for_it() -> Result<(), Error> {
    let cluster = Cluster::start();
    let client = cluster.client();
    client.api::<ConfigMap>().create(&map("a", "1")).send()?;
    // A server that never answers.
    let silent = raw(|_, mut stream| {
        read_head(&mut stream);
        assert!(is_closed(&mut stream));
    });
    let silent = Client::try_from_config(&Config::new(&format!("http://{silent}")).unwrap())?.with_timeout(None);
    let results = Arc::new(Mutex::new(Vec::new()));
    let (said, (ended, is_ended)) = (results.clone(), mpsc::channel());
    let handle = Controller::<ConfigMap>::new()
        .labels("test")
        .reconcile_timeout(Duration::from_millis(20))
        .reconcile(move |_, ctx: Context<ConfigMap>| {
            let result = ctx.adopt(&silent).api::<ConfigMap>().get("x").send();
            said.lock().unwrap().push((result.unwrap_err(), ctx.is_cancelled()));
            let _ = ended.send(());
            Ok(())
        })
        .start(client)?;
    is_ended.recv().unwrap();
    handle.stop();
    handle.stopped()?;
    assert_eq!(results.lock().unwrap()[0], (Error::Cancelled, true));
    Ok(())
}

#[test]
fn what_cannot_start_says_so() -> Result<(), Error> {
    let cluster = Cluster::start();
    let client = cluster.client();
    assert!(matches!(Controller::<ConfigMap>::new().start(client.clone()), Err(Error::Misuse(_))));
    let silent = raw(|_, mut stream| {
        read_head(&mut stream);
        assert!(is_closed(&mut stream));
    });
    let silent = Client::try_from_config(&Config::new(&format!("http://{silent}")).unwrap())?;
    let late = Controller::new().reconcile(label).sync_timeout(Duration::from_millis(10)).start(silent.clone())?;
    assert!(matches!(late.stopped(), Err(Error::Stopped(_))));
    let abandoned = Controller::new().reconcile(label).start(silent)?;
    abandoned.stop();
    abandoned.stopped()?;
    let failing = Controller::<ConfigMap>::new()
        .reconcile(label)
        .watch::<ConfigMap, _>(|_| -> ResourceKey { panic!("no key comes of this") })
        .start(client)?;
    assert!(matches!(failing.stopped(), Err(Error::Stopped(_))));
    Ok(())
}
