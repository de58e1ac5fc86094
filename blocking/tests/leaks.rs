//! What clients and watches leave behind: nothing. Alone in its process, as it counts that one's threads and files.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[path = "suite/common.rs"]
#[expect(dead_code, reason = "the suite uses the rest")]
mod common;

use std::thread;

use cloudcoil_blocking::core::k8s_openapi::api::core::v1::ConfigMap;
use cloudcoil_blocking::{Client, Controller, Error, Informer, WatchEvent};

use common::{Cluster, map};

/// How many threads and files this process has.
fn open() -> (usize, usize) {
    let count = |path| std::fs::read_dir(path).unwrap().count();
    (count("/proc/self/task"), count("/proc/self/fd"))
}

/// The life of a client and of a watch, which ends in one of three ways.
fn live(client: &Client, number: usize) -> Result<(), Error> {
    let maps = client.api::<ConfigMap>();
    maps.get("a").send()?;
    let mut events = maps.watch().iter();
    while events.next().unwrap()? != WatchEvent::Synced {}
    match number % 3 {
        0 => drop(events),
        1 => {
            events.stop_handle().stop();
            assert!(events.next().is_none());
        }
        _ => {
            let stop = events.stop_handle();
            let stopping = thread::spawn(move || stop.stop());
            assert!(events.next().is_none());
            stopping.join().unwrap();
        }
    }
    Ok(())
}

/// The life of an informer and of a controller.
fn operate(client: &Client) -> Result<(), Error> {
    let informer = Informer::<ConfigMap>::new(client).start();
    informer.stop();
    informer.stopped();
    let controller = Controller::<ConfigMap>::new().reconcile(|_, _| Ok(())).start(client.clone())?;
    controller.stop();
    controller.stopped()
}

#[test]
fn a_thousand_lives_of_clients_and_watches_leave_no_thread_and_no_socket() {
    let clusters = [Cluster::start(), Cluster::start_tls()];
    let alive = |number: usize| {
        let client = clusters[usize::from(number.is_multiple_of(20))].client();
        live(&client, number).unwrap();
        if number.is_multiple_of(50) {
            operate(&client).unwrap();
        }
    };
    for cluster in &clusters {
        cluster.client().api::<ConfigMap>().create(&map("a", "")).send().unwrap();
    }
    (0..3).for_each(alive);
    let before = settled(None);
    (0..1000).for_each(alive);
    assert_eq!(settled(Some(before)), before);
}

/// What is open when the servers, which are in this process too, have noticed that their clients are gone.
fn settled(expected: Option<(usize, usize)>) -> (usize, usize) {
    let (mut last, mut same) = (open(), 0);
    for _ in 0..1_000_000 {
        thread::yield_now();
        let now = open();
        same = if now == last { same + 1 } else { 0 };
        last = now;
        if expected.map_or(same > 2000, |expected| expected == now) {
            break;
        }
    }
    last
}
