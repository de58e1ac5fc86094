use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;

use super::model::queue_ops;
use super::*;
use crate::laws::{self, Move};
use crate::time::Time;

type Input = QueueInput<&'static str>;
type Output = QueueOutput<&'static str>;

use QueueInput::{Added, AddedAfter, Done, Forgotten, Held, Opened, Released, ShutDown};
use QueueOutput::{Drained, NotProcessing, Start};

const SEC: Duration = Duration::from_secs(1);

fn config(workers: usize) -> QueueConfig {
    let backoff = BackoffPolicy { jitter: 0, ..BackoffPolicy::RECONCILE };
    QueueConfig { workers: NonZeroUsize::new(workers).unwrap(), backoff, seed: 0 }
}

const fn retried(key: &'static str) -> Input {
    QueueInput::Retried { key, after: None }
}

fn at(seconds: u64) -> Now {
    Now::default().after(Duration::from_secs(seconds))
}

/// At so many seconds an input gives outputs, and a deadline in seconds.
type Row<'a> = (u64, Option<Input>, &'a [Output], Option<u64>);

fn check(mut queue: WorkQueue<&'static str>, rows: &[Row<'_>]) {
    for (row, (seconds, input, outputs, deadline)) in rows.iter().enumerate() {
        let mut out = Outbox::new();
        let due = queue.step(at(*seconds), input.clone(), &mut out);
        assert_eq!(out.into_iter().collect::<Vec<_>>(), *outputs, "outputs of row {row}");
        assert_eq!(due.map(|due| due.at), deadline.map(Time::from_secs), "deadline of row {row}");
    }
}

#[test]
fn an_add_during_processing_gives_exactly_one_more_pass() {
    check(
        WorkQueue::new(config(1)),
        &[
            (0, Some(Added("a")), &[Start("a")], None),
            (0, Some(Added("a")), &[], None),
            (0, Some(Added("a")), &[], None),
            (1, Some(Done("a")), &[Start("a")], None),
            (2, Some(Done("a")), &[], None),
        ],
    );
}

#[test]
fn keys_start_in_the_order_in_which_they_became_ready() {
    check(
        WorkQueue::new(config(2)),
        &[
            (0, Some(AddedAfter("late", SEC)), &[], Some(1)),
            (0, Some(Added("a")), &[Start("a")], Some(1)),
            (0, Some(Added("b")), &[Start("b")], Some(1)),
            (0, Some(Added("c")), &[], Some(1)),
            (0, Some(Added("a")), &[], Some(1)),
            (1, Some(Added("d")), &[], None),
            (1, Some(Done("a")), &[Start("c")], None),
            (1, Some(Done("b")), &[Start("late")], None),
            (1, Some(Done("c")), &[Start("d")], None),
            (1, Some(Done("late")), &[Start("a")], None),
        ],
    );
}

#[test]
fn an_add_overtakes_the_delay_of_its_key() {
    check(
        WorkQueue::new(config(1)),
        &[
            (0, Some(AddedAfter("a", SEC)), &[], Some(1)),
            (0, Some(Added("a")), &[Start("a")], None),
            (0, Some(retried("a")), &[], Some(1)),
            (0, Some(Added("a")), &[], None),
            (0, Some(Done("a")), &[Start("a")], None),
        ],
    );
}

#[test]
fn of_several_delays_the_shortest_counts() {
    check(
        WorkQueue::new(config(1)),
        &[
            (0, Some(AddedAfter("a", 9 * SEC)), &[], Some(9)),
            (0, Some(AddedAfter("a", 5 * SEC)), &[], Some(5)),
            (1, Some(AddedAfter("a", 7 * SEC)), &[], Some(5)),
            (5, None, &[Start("a")], None),
        ],
    );
}

#[test]
fn a_delay_that_ends_during_processing_gives_one_more_pass() {
    check(
        WorkQueue::new(config(1)),
        &[
            (0, Some(Added("a")), &[Start("a")], None),
            (0, Some(AddedAfter("a", SEC)), &[], Some(1)),
            (1, None, &[], None),
            (2, Some(Done("a")), &[Start("a")], None),
            (2, Some(AddedAfter("a", 5 * SEC)), &[], Some(7)),
            (3, Some(Done("a")), &[], Some(7)),
            (7, None, &[Start("a")], None),
        ],
    );
}

#[test]
fn delays_of_centuries_are_legal() {
    let centuries = Duration::from_secs(300 * 365 * 24 * 3600);
    let mut queue = WorkQueue::new(config(1));
    let mut out = Outbox::new();
    for delay in [Duration::MAX, centuries, Duration::from_nanos(u64::MAX)] {
        let due = queue.step(at(1), Some(AddedAfter("a", delay)), &mut out);
        assert!(due.is_some_and(|due| due.at > at(1).mono + centuries / 2) && out.is_empty());
    }
    let _ = queue.step(at(1), Some(Added("a")), &mut out);
    assert_eq!(out.pop(), Some(Start("a")));
}

#[test]
fn retries_back_off_until_the_key_is_forgotten() {
    let mut queue = WorkQueue::new(config(1));
    let (mut now, mut delays) = (at(0), Vec::new());
    for _ in 0..8 {
        let due = queue.step(now, Some(retried("a")), &mut Outbox::new()).unwrap();
        delays.push((due.at - now.mono).as_secs());
        now = now.after(due.at - now.mono);
        let _ = queue.step(now, Some(Done("a")), &mut Outbox::new());
    }
    assert_eq!(delays, [1, 2, 4, 8, 16, 32, 60, 60]);
    assert_eq!(queue.num_retries(&"a"), 8);
    let _ = queue.step(now, Some(Forgotten("a")), &mut Outbox::new());
    assert_eq!((queue.num_retries(&"a"), queue.retry(now, &"a", None)), (0, Some(SEC)));
}

#[test]
fn a_retry_waits_at_least_as_long_as_the_server_asks() {
    let mut queue = WorkQueue::new(config(1));
    assert_eq!(queue.retry(at(0), &"a", Some(5 * SEC)), Some(5 * SEC));
    assert_eq!(queue.retry(at(0), &"b", Some(SEC / 2)), Some(SEC));
}

#[test]
fn retries_are_spread_by_ten_percent_and_repeat_with_the_seed() {
    let delays = |seed| -> Vec<Duration> {
        let mut queue = WorkQueue::new(QueueConfig { seed, ..QueueConfig::default() });
        (0..200).map(|key| queue.retry(at(0), &key, None).unwrap()).collect()
    };
    let within = |delay: &Duration| (900..=1100).contains(&delay.as_millis());
    assert!(delays(1).iter().all(within));
    assert!(delays(1).iter().collect::<BTreeSet<_>>().len() > 100);
    assert_eq!(delays(1), delays(1));
    assert_ne!(delays(1), delays(2));
}

#[test]
fn done_without_a_start_is_reported_and_changes_nothing() {
    check(
        WorkQueue::new(config(1)),
        &[
            (0, Some(Done("a")), &[NotProcessing("a")], None),
            (0, Some(Added("a")), &[Start("a")], None),
            (0, Some(Added("b")), &[], None),
            (0, Some(Done("b")), &[NotProcessing("b")], None),
            (0, Some(Done("a")), &[Start("b")], None),
            (0, Some(Done("a")), &[NotProcessing("a")], None),
        ],
    );
}

#[test]
fn a_drain_works_off_what_is_ready_and_drops_what_is_delayed() {
    check(
        WorkQueue::new(config(1)),
        &[
            (0, Some(Added("a")), &[Start("a")], None),
            (0, Some(Added("a")), &[], None),
            (0, Some(Added("b")), &[], None),
            (0, Some(AddedAfter("c", SEC)), &[], Some(1)),
            (0, Some(ShutDown { drain: true }), &[], None),
            (0, Some(Added("d")), &[], None),
            (0, Some(retried("a")), &[], None),
            (0, Some(Done("a")), &[Start("b")], None),
            (0, Some(Done("b")), &[Start("a")], None),
            (9, Some(Done("a")), &[Drained], None),
            (9, Some(Added("a")), &[], None),
            (9, Some(Done("a")), &[], None),
            (9, Some(ShutDown { drain: true }), &[], None),
        ],
    );
}

#[test]
fn a_drain_can_be_cut_short() {
    check(
        WorkQueue::new(config(1)),
        &[
            (0, Some(Added("a")), &[Start("a")], None),
            (0, Some(Added("a")), &[], None),
            (0, Some(Added("b")), &[], None),
            (0, Some(ShutDown { drain: true }), &[], None),
            (0, Some(ShutDown { drain: false }), &[], None),
            (0, Some(ShutDown { drain: true }), &[], None),
            (0, Some(Done("a")), &[Drained], None),
        ],
    );
    check(WorkQueue::new(config(1)), &[(0, Some(ShutDown { drain: true }), &[Drained], None)]);
}

#[test]
fn a_closed_queue_takes_keys_and_starts_none_until_opened() {
    check(
        WorkQueue::closed(config(2)),
        &[
            (0, Some(Added("a")), &[], None),
            (0, Some(AddedAfter("b", SEC)), &[], Some(1)),
            (1, None, &[], None),
            (2, Some(Opened), &[Start("a"), Start("b")], None),
        ],
    );
    check(
        WorkQueue::closed(config(1)),
        &[(0, Some(Added("a")), &[], None), (0, Some(ShutDown { drain: true }), &[Drained], None)],
    );
}

#[test]
fn a_held_key_waits_for_its_release_while_others_start() {
    let mut queue = WorkQueue::new(config(1));
    let mut out = Outbox::new();
    for input in [Added("a"), Added("b")] {
        let _ = queue.step(at(0), Some(input), &mut out);
    }
    for input in [Held("a"), Done("a"), Added("a"), AddedAfter("a", SEC), Done("b")] {
        let _ = queue.step(at(0), Some(input), &mut out);
    }
    assert_eq!(out.drain().collect::<Vec<_>>(), [Start("a"), Start("b")]);
    assert_eq!((queue.depth(), queue.processing(), queue.is_idle()), (1, 0, false));
    let _ = queue.step(at(0), Some(ShutDown { drain: true }), &mut out);
    assert!(out.is_empty(), "a drain waits for a held key that was asked for");
    let _ = queue.step(at(0), Some(Released("a")), &mut out);
    assert_eq!(out.pop(), Some(Start("a")));
    let _ = queue.step(at(0), Some(Done("a")), &mut out);
    assert_eq!(out.pop(), Some(Drained));
}

#[test]
fn a_delay_that_ends_while_the_key_is_held_waits_for_the_release() {
    let mut queue = WorkQueue::new(config(1));
    let mut out = Outbox::new();
    let _ = queue.step(at(0), Some(Added("a")), &mut out);
    for (seconds, input) in [(0, Some(Held("a"))), (0, Some(AddedAfter("a", SEC))), (0, Some(Done("a"))), (1, None)] {
        let _ = queue.step(at(seconds), input, &mut out);
    }
    assert_eq!((out.pop(), out.pop(), queue.depth()), (Some(Start("a")), None, 1));
    let _ = queue.step(at(1), Some(Released("a")), &mut out);
    assert_eq!(out.pop(), Some(Start("a")));
}

#[test]
fn nothing_is_kept_of_a_key_that_is_done_with() {
    let mut queue = WorkQueue::new(config(1));
    for key in 0..1000 {
        for input in [Added(key), QueueInput::Retried { key, after: None }, Forgotten(key)] {
            let _ = queue.step(at(0), Some(input), &mut Outbox::new());
        }
        let _ = queue.step(at(0), Some(Added(key)), &mut Outbox::new());
        for _ in 0..2 {
            let _ = queue.step(at(0), Some(Done(key)), &mut Outbox::new());
        }
    }
    assert!(queue.is_idle());
    assert_eq!(queue.index.slots(), 1);
}

/// All but one in four share a hash.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Clash(u8);

impl Hash for Clash {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u8(u8::from(self.0 == 3));
    }
}

fn clash(input: QueueInput<u8>) -> QueueInput<Clash> {
    match input {
        Opened => Opened,
        Added(key) => Added(Clash(key)),
        AddedAfter(key, delay) => AddedAfter(Clash(key), delay),
        QueueInput::Retried { key, after } => QueueInput::Retried { key: Clash(key), after },
        Done(key) => Done(Clash(key)),
        Forgotten(key) => Forgotten(Clash(key)),
        Held(key) => Held(Clash(key)),
        Released(key) => Released(Clash(key)),
        ShutDown { drain } => ShutDown { drain },
    }
}

fn inputs() -> impl Strategy<Value = Move<QueueInput<u8>>> {
    let millis = (0..5_000_u64).prop_map(Duration::from_millis);
    prop_oneof![
        6 => (0..5_u8).prop_map(|key| Move::Input(Added(key))),
        3 => (0..5_u8, millis.clone()).prop_map(|(key, delay)| Move::Input(AddedAfter(key, delay))),
        3 => (0..5_u8).prop_map(|key| Move::Input(QueueInput::Retried { key, after: None })),
        6 => (0..5_u8).prop_map(|key| Move::Input(Done(key))),
        1 => (0..5_u8).prop_map(|key| Move::Input(Forgotten(key))),
        1 => (0..5_u8).prop_map(|key| Move::Input(Held(key))),
        1 => (0..5_u8).prop_map(|key| Move::Input(Released(key))),
        4 => millis.prop_map(Move::Wait),
    ]
}

proptest! {
    #[test]
    fn the_queue_does_what_its_model_does(data in vec(any::<u8>(), 0..800)) {
        queue_ops(&data);
    }

    /// Keys that share a hash, and those that do not, are told apart alike.
    #[test]
    fn the_order_of_hashes_shows_nowhere(script in vec(inputs(), 0..60)) {
        let config = QueueConfig::default();
        let plain = laws::run(&mut WorkQueue::new(config), script.iter().cloned());
        let clashing = script.into_iter().map(|step| match step {
            Move::Wait(duration) => Move::Wait(duration),
            Move::Input(input) => Move::Input(clash(input)),
        });
        for ((_, plain, _), (_, clashing, _)) in plain.into_iter().zip(laws::run(&mut WorkQueue::new(config), clashing)) {
            let plain: Vec<_> = plain.into_iter().map(|output| match output {
                Start(key) => Start(Clash(key)),
                NotProcessing(key) => NotProcessing(Clash(key)),
                Drained => Drained,
            }).collect();
            prop_assert_eq!(plain, clashing);
        }
    }

    #[test]
    fn the_laws_hold(script in vec(inputs(), 0..60), seed: u64) {
        let config = QueueConfig { seed, ..QueueConfig::default() };
        let make = || WorkQueue::new(config);
        laws::same_inputs_same_outputs(make, &script);
        // 9 is never added, so what is said of it is old.
        laws::stale_inputs_change_nothing(make, &script, &[Forgotten(9), Held(9), Released(9), Opened]);
        let ending: Vec<_> = script.iter().cloned()
            .chain([Move::Input(ShutDown { drain: false })])
            .chain((0..5).map(|key| Move::Input(Done(key))))
            .collect();
        laws::ended_stays_ended(&mut make(), &ending, &script);
    }

    /// Nothing is lost: whatever happens, a key starts after it was last asked for.
    #[test]
    fn a_key_starts_after_it_was_last_added(script in vec(inputs(), 0..60), seed: u64) {
        let mut queue = WorkQueue::new(QueueConfig { seed, ..QueueConfig::default() });
        let (mut owed, mut now) = (BTreeSet::new(), Now::default());
        let finish = (0..40).flat_map(|_| (0..5).flat_map(|key| [Released(key), Done(key)].map(Move::Input)));
        for step in script.into_iter().chain([Move::Wait(100 * SEC)]).chain(finish) {
            let mut out = Outbox::new();
            match step {
                Move::Wait(duration) => {
                    now = now.after(duration);
                    let _ = queue.step(now, None, &mut out);
                }
                Move::Input(input) => {
                    if let Added(key) | AddedAfter(key, _) = input {
                        owed.insert(key);
                    }
                    let _ = queue.step(now, Some(input), &mut out);
                }
            }
            for output in out {
                if let Start(key) = output {
                    owed.remove(&key);
                }
            }
        }
        prop_assert!(owed.is_empty(), "never started: {owed:?}");
        prop_assert!(queue.is_idle());
    }
}
