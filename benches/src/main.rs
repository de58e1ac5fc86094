//! Prints one line a row: name, ours, the peer's, ratio. Both sides take turns, so that a busy machine slows both.

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cloudcoil_benches::heap::{self, Heap};
use cloudcoil_benches::{ours, peer, pods};
use serde_json::{Value, json};

fn main() {
    println!("{:<46} {:>12} {:>12} {:>7}", "", "ours", "kube", "ratio");
    watch();
    list();
    queue();
    diff();
}

fn watch() {
    let chunks = chunks(&Bytes::from(pods::watch(EVENTS)), CHUNK);
    assert_eq!(ours::watch_to_store(&chunks).store().len(), pods::PODS - 100);
    assert_eq!(peer::watch_to_store(&chunks).len(), pods::PODS - 100);
    let (ours, kube) =
        (|| drop(black_box(ours::watch_to_store(&chunks))), || drop(black_box(peer::watch_to_store(&chunks))));
    times("watch: 20,000 events into a store", ours, kube);
    let ours = heap::measure(|| ours::watch_to_store(&chunks));
    bytes("watch", ours, heap::measure(|| peer::watch_to_store(&chunks)));
}

fn list() {
    let body = Bytes::from(pods::list(pods::PODS));
    let chunks = chunks(&body, CHUNK);
    assert_eq!(ours::list_to_store(&chunks).store().len(), pods::PODS);
    assert_eq!(peer::list_to_store(&body).len(), pods::PODS);
    let (ours, kube) =
        (|| drop(black_box(ours::list_to_store(&chunks))), || drop(black_box(peer::list_to_store(&body))));
    times("list: 10,000 Pods into a store", ours, kube);
    let ours = heap::measure(|| ours::list_to_store(&chunks));
    bytes("list", ours, heap::measure(|| peer::list_to_store(&body)));
}

fn queue() {
    let names: Vec<String> = (0..100_000).map(|n| format!("object-{n:06}")).collect();
    assert_eq!((ours::queue(&names), peer::queue(&names)), (names.len(), names.len()));
    times(
        "queue: 100,000 keys in and out",
        || {
            black_box(ours::queue(&names));
        },
        || {
            black_box(peer::queue(&names));
        },
    );
}

fn diff() {
    let (old, new) = statuses();
    assert_eq!(ours::diff(&old, &new), peer::diff(&old, &new));
    let many = |diff: fn(&Value, &Value) -> usize| {
        let (old, new) = (&old, &new);
        move || {
            for _ in 0..2_000 {
                black_box(diff(black_box(old), black_box(new)));
            }
        }
    };
    times("diff: a Pod's status, 2,000 times", many(ours::diff), many(peer::diff));
    let many_equal = |diff: fn(&Value, &Value) -> usize| {
        let old = &old;
        move || {
            for _ in 0..2_000 {
                black_box(diff(black_box(old), black_box(old)));
            }
        }
    };
    times("diff: nothing changed, 2,000 times", many_equal(ours::diff), many_equal(peer::diff));
}

/// A Pod before and after its containers became ready.
fn statuses() -> (Value, Value) {
    let old: Value = serde_json::from_str(&pods::pod(1, 1)).expect("a valid Pod");
    let mut new = old.clone();
    new["metadata"]["resourceVersion"] = json!("2");
    new["status"]["phase"] = json!("Failed");
    new["status"]["message"] = json!("evicted");
    new["status"]["reason"] = json!("Evicted");
    new["status"]["hostIP"] = json!("10.0.0.9");
    new["status"]["podIP"] = json!("10.1.0.9");
    if let Some(status) = new["status"].as_object_mut() {
        status.remove("startTime");
        status.remove("qosClass");
    }
    (old, new)
}

/// The median times of both, which take turns, and the median of the ratios of the turns.
fn times(name: &str, ours: impl Fn(), kube: impl Fn()) {
    let rounds: Vec<(Duration, Duration)> = (0..=ROUNDS).map(|_| (time(&ours), time(&kube))).skip(1).collect();
    let median = |figure: fn(&(Duration, Duration)) -> f64| {
        let mut figures: Vec<f64> = rounds.iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures[figures.len() / 2]
    };
    let (ours, kube) = (median(|round| round.0.as_secs_f64()), median(|round| round.1.as_secs_f64()));
    let ratio = median(|round| round.0.as_secs_f64() / round.1.as_secs_f64());
    println!("{name:<46} {:>9.1} ms {:>9.1} ms {ratio:>7.2}", ours * 1e3, kube * 1e3);
}

fn time(work: impl Fn()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn bytes(name: &str, ours: Heap, kube: Heap) {
    for (what, ours, kube) in [("peak", ours.peak, kube.peak), ("retained", ours.retained, kube.retained)] {
        let (ours, kube) = (ours as f64 / 1e6, kube as f64 / 1e6);
        println!("{:<46} {ours:>9.1} MB {kube:>9.1} MB {:>7.2}", format!("{name}: {what} bytes"), ours / kube);
    }
}

fn chunks(body: &Bytes, size: usize) -> Vec<Bytes> {
    (0..body.len()).step_by(size).map(|from| body.slice(from..body.len().min(from + size))).collect()
}

const EVENTS: usize = 20_000;
const CHUNK: usize = 8 << 10;
const ROUNDS: usize = 5;
