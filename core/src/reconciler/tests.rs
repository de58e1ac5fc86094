use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::laws::{self, Move};
use crate::pass::{PassError, Verdict};
use crate::resource::Scope;

const SEC: Duration = Duration::from_secs(1);

pub(super) fn config(workers: usize) -> ReconcilerConfig {
    let backoff = BackoffPolicy { jitter: 0, ..BackoffPolicy::RECONCILE };
    let widgets = ResourceType::new("example.com", "v1", "Widget", "widgets", Scope::Namespaced);
    let workers = NonZeroUsize::new(workers).unwrap();
    ReconcilerConfig { workers, backoff, resync_period: None, ..ReconcilerConfig::new(widgets) }
}

pub(super) fn key(name: &str) -> ResourceKey {
    ResourceKey::new(Some("ns"), name).unwrap()
}

fn object(name: &str, version: u64, size: u64) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": name, "namespace": "ns", "uid": "u", "resourceVersion": version.to_string()},
        "spec": {"size": size},
    })
}

/// A handler's change of a widget of this version.
fn changed(name: &str, version: u64) -> Outcome {
    Outcome::done().with_change(object(name, version, 1), object(name, version, 2))
}

pub(super) fn answer(ticket: Ticket, code: u16, body: &Value) -> [ReconcilerInput; 3] {
    let (status, headers) = (StatusCode::from_u16(code).unwrap(), HeaderMap::new());
    let bytes = Bytes::from(body.to_string());
    [
        ReconcilerInput::Http(HttpEvent::Responded { ticket, status, headers }),
        ReconcilerInput::Http(HttpEvent::Received { ticket, bytes }),
        ReconcilerInput::Http(HttpEvent::Closed { ticket, result: Ok(()) }),
    ]
}

fn observed(name: &str, version: Option<(&str, u64)>) -> ReconcilerInput {
    let version =
        version.map(|(uid, version)| ObjectVersion { uid: uid.into(), resource_version: version.to_string().into() });
    ReconcilerInput::Observed { key: key(name), version }
}

struct Driven {
    reconciler: Reconciler,
    now: Now,
    out: Outbox<ReconcilerOutput>,
}

/// A reconciler whose caches have synced.
fn synced(config: ReconcilerConfig) -> Driven {
    let mut driven = Driven { reconciler: Reconciler::new(config), now: Now::default(), out: Outbox::new() };
    driven.feed([ReconcilerInput::Synced]);
    driven
}

impl Driven {
    fn feed(&mut self, inputs: impl IntoIterator<Item = ReconcilerInput>) -> &mut Self {
        for input in inputs {
            let _ = self.reconciler.step(self.now, Some(input), &mut self.out);
        }
        self
    }

    fn enqueue(&mut self, names: &[&str]) -> &mut Self {
        self.feed(names.iter().map(|name| ReconcilerInput::Enqueued(key(name))))
    }

    fn ran(&mut self, ticket: Ticket, outcome: Outcome) -> &mut Self {
        self.feed([ReconcilerInput::Ran { ticket, outcome }])
    }

    /// Lets time pass from deadline to deadline.
    fn wait(&mut self, duration: Duration) -> &mut Self {
        let end = self.now.after(duration);
        while let Some(due) = self.reconciler.deadline().filter(|due| due.at <= end.mono) {
            self.now = self.now.after(due.at.since(self.now.mono));
            let _ = self.reconciler.step(self.now, None, &mut self.out);
        }
        self.now = end;
        self
    }

    #[track_caller]
    fn run(&mut self, name: &str) -> Ticket {
        match self.out.pop() {
            Some(ReconcilerOutput::Run { ticket, key: of }) if of == key(name) => ticket,
            other => panic!("no run of {name}: {other:?}"),
        }
    }

    #[track_caller]
    fn sent(&mut self) -> Ticket {
        match self.out.pop() {
            Some(ReconcilerOutput::Http(HttpEffect::Send { ticket, .. })) => ticket,
            other => panic!("no request: {other:?}"),
        }
    }

    #[track_caller]
    fn reconciled(&mut self, name: &str) -> Reconciled {
        match self.out.pop() {
            Some(ReconcilerOutput::Reconciled(reconciled)) if reconciled.key == key(name) => reconciled,
            other => panic!("{name} is not reconciled: {other:?}"),
        }
    }

    #[track_caller]
    fn quiet(&mut self) -> &mut Self {
        assert_eq!(self.out.pop(), None);
        self
    }

    /// Runs a pass that writes version 8 of a widget, up to its end.
    #[track_caller]
    fn write(&mut self, name: &str) {
        let ticket = self.enqueue(&[name]).run(name);
        let request = self.ran(ticket, changed(name, 7)).sent();
        self.feed(answer(request, 200, &object(name, 8, 2)));
        assert_eq!(self.reconciled(name).result, PassResult::Succeeded { requeue_after: None });
    }
}

#[test]
fn passes_begin_when_the_caches_have_synced() {
    let mut driven = Driven { reconciler: Reconciler::new(config(2)), now: Now::default(), out: Outbox::new() };
    driven.enqueue(&["a", "b", "a"]).wait(60 * SEC).quiet();
    assert_eq!((driven.reconciler.status().ready, driven.reconciler.status().queued), (false, 2));
    driven.feed([ReconcilerInput::Synced, ReconcilerInput::Synced]).run("a");
    driven.run("b");
    driven.quiet();
    let status = driven.reconciler.status();
    assert_eq!((status.ready, status.queued, status.processing), (true, 0, 2));
}

#[test]
fn events_during_a_pass_give_one_more_pass() {
    let mut driven = synced(config(2));
    let first = driven.enqueue(&["a", "a", "a"]).run("a");
    driven.quiet().ran(first, Outcome::done()).reconciled("a");
    let second = driven.run("a");
    assert_ne!(first, second);
    driven.quiet().ran(second, Outcome::done()).reconciled("a");
    driven.quiet();
    assert!(driven.reconciler.is_idle());
}

#[test]
fn failures_back_off_and_a_success_starts_over() {
    let mut driven = synced(config(1));
    driven.enqueue(&["a"]);
    for (failures, delay) in [(1, SEC), (2, 2 * SEC), (3, 4 * SEC)] {
        let ticket = driven.run("a");
        let outcome = if failures == 2 { Outcome::panicked("m") } else { Outcome::failed("m") };
        let reconciled = driven.wait(SEC).ran(ticket, outcome).reconciled("a");
        assert_eq!((reconciled.failures, reconciled.again, reconciled.took), (failures, Some(delay), SEC));
        driven.quiet().wait(delay - Duration::from_nanos(1)).quiet().wait(Duration::from_nanos(1));
    }
    let ticket = driven.run("a");
    let reconciled = driven.ran(ticket, Outcome::done().requeue_after(5 * SEC)).reconciled("a");
    assert_eq!((reconciled.failures, reconciled.again), (0, Some(5 * SEC)));
    let ticket = driven.wait(5 * SEC).run("a");
    let reconciled = driven.ran(ticket, Outcome::failed("m").requeue_after(9 * SEC)).reconciled("a");
    assert_eq!((reconciled.failures, reconciled.again), (1, Some(9 * SEC)));
    let ticket = driven.wait(9 * SEC).run("a");
    let reconciled = driven.ran(ticket, Outcome::terminal("m")).reconciled("a");
    assert_eq!((reconciled.failures, reconciled.again), (0, None));
    let status = driven.wait(1000 * SEC).quiet().reconciler.status();
    assert_eq!((status.successes, status.errors, status.terminal_errors), (1, 4, 1));
    assert_eq!((status.duration, status.delayed), (3 * SEC, 0));
}

#[test]
fn an_event_does_not_wait_for_the_retry() {
    let mut driven = synced(config(1));
    let ticket = driven.enqueue(&["a"]).run("a");
    driven.ran(ticket, Outcome::failed("m")).reconciled("a");
    driven.enqueue(&["a"]).run("a");
    driven.wait(60 * SEC).quiet();
}

#[test]
fn waiting_raises_no_backoff() {
    let mut driven = synced(config(1));
    driven.enqueue(&["a"]);
    for _ in 0..5 {
        let ticket = driven.run("a");
        let reconciled = driven.ran(ticket, Outcome::waiting("R", "m").requeue_after(2 * SEC)).reconciled("a");
        assert_eq!((reconciled.failures, reconciled.again), (0, Some(2 * SEC)));
        driven.quiet().wait(2 * SEC);
    }
}

#[test]
fn workers_limit_the_passes_and_a_failing_key_holds_up_no_other() {
    let mut driven = synced(config(2));
    let a = driven.enqueue(&["a", "b", "c", "d"]).run("a");
    let b = driven.run("b");
    driven.quiet().ran(a, Outcome::panicked("m")).reconciled("a");
    let c = driven.run("c");
    driven.quiet().ran(c, Outcome::done()).reconciled("c");
    driven.run("d");
    driven.quiet().ran(b, Outcome::done()).reconciled("b");
    driven.wait(SEC).run("a");
}

#[test]
fn tickets_carry_the_numbers_of_the_lanes_and_are_never_used_twice() {
    let mut driven = synced(ReconcilerConfig { first_machine: 40, ..config(2) });
    let (a, b) = (driven.enqueue(&["a", "b"]).run("a"), driven.run("b"));
    assert_eq!((a.machine(), b.machine()), (40, 41));
    driven.ran(a, Outcome::done()).reconciled("a");
    let again = driven.enqueue(&["a"]).run("a");
    assert_eq!((again.machine(), again == a), (40, false));
    driven.ran(a, Outcome::done()).quiet();
    let other = Tickets::new(3).issue();
    driven.ran(other, Outcome::done()).quiet();
    driven.ran(again, Outcome::done()).reconciled("a");
}

#[test]
fn the_next_pass_waits_until_the_cache_holds_the_write() {
    let mut driven = synced(config(1));
    driven.write("a");
    let b = driven.enqueue(&["a", "b"]).run("b");
    let status = driven.quiet().reconciler.status();
    assert_eq!((status.queued, status.processing), (1, 1));
    driven.feed([observed("a", Some(("u", 7))), observed("b", Some(("u", 9)))]).quiet();
    driven.feed([observed("a", Some(("u", 8)))]).quiet();
    driven.ran(b, Outcome::done()).reconciled("b");
    driven.run("a");
    driven.quiet().wait(60 * SEC).quiet();
}

#[test]
fn a_later_version_another_object_or_none_shows_that_the_cache_has_caught_up() {
    for seen in [Some(("u", 9)), Some(("u", 10)), Some(("v", 1)), None] {
        let mut driven = synced(config(1));
        driven.write("a");
        driven.enqueue(&["a"]).quiet();
        driven.feed([observed("a", seen)]).run("a");
    }
}

#[test]
fn a_write_that_reaches_the_cache_before_its_answer_holds_nothing_up() {
    for seen in [Some(("u", 8)), Some(("u", 12)), None] {
        let mut driven = synced(config(1));
        let ticket = driven.enqueue(&["a"]).run("a");
        let request = driven.ran(ticket, changed("a", 7)).sent();
        driven.feed([observed("a", seen)]).enqueue(&["a"]);
        driven.feed(answer(request, 200, &object("a", 8, 2))).reconciled("a");
        driven.run("a");
    }
}

#[test]
fn a_cache_that_lags_too_long_is_not_waited_for() {
    let mut driven = synced(config(1));
    driven.write("a");
    driven.enqueue(&["a"]).wait(5 * SEC - Duration::from_nanos(1)).quiet().wait(Duration::from_nanos(1));
    assert_eq!(driven.out.pop(), Some(ReconcilerOutput::CacheLagged { key: key("a") }));
    driven.run("a");
    driven.feed([observed("a", Some(("u", 8)))]).quiet();

    let mut never = synced(ReconcilerConfig { cache_timeout: Duration::ZERO, ..config(1) });
    never.write("a");
    never.enqueue(&["a"]).run("a");
}

#[test]
fn a_requeue_waits_for_the_cache_too() {
    let mut driven = synced(config(1));
    let ticket = driven.enqueue(&["a"]).run("a");
    let request = driven.ran(ticket, changed("a", 7).requeue_after(SEC)).sent();
    driven.feed(answer(request, 200, &object("a", 8, 2))).reconciled("a");
    driven.wait(2 * SEC).quiet().feed([observed("a", Some(("u", 8)))]).run("a");
}

#[test]
fn a_conflict_is_no_error_and_comes_again_soon() {
    let mut driven = synced(config(1));
    let ticket = driven.enqueue(&["a"]).run("a");
    let request = driven.ran(ticket, changed("a", 7)).sent();
    let body = json!({"kind": "Status", "status": "Failure", "code": 422, "reason": "Invalid", "details": {}});
    let reconciled = driven.feed(answer(request, 422, &body)).reconciled("a");
    assert_eq!((reconciled.result, reconciled.again), (PassResult::Conflict, Some(SEC)));
    driven.feed([observed("a", Some(("u", 9)))]).enqueue(&["a"]).run("a");
    let status = driven.reconciler.status();
    assert_eq!((status.conflicts, status.errors), (1, 0));
}

#[test]
fn a_pass_that_takes_too_long_is_stopped_and_its_key_waits_for_the_handler() {
    let mut slow = config(1);
    slow.pass.timeout = Some(5 * SEC);
    let mut driven = synced(slow);
    let ticket = driven.enqueue(&["a"]).run("a");
    driven.wait(5 * SEC);
    assert_eq!(driven.out.pop(), Some(ReconcilerOutput::Cancel { ticket }));
    driven.enqueue(&["a"]).wait(60 * SEC).quiet();
    let reconciled = driven.ran(ticket, Outcome::new(Verdict::Cancelled)).reconciled("a");
    assert_eq!(reconciled.result, PassResult::Failed(PassError::TimedOut(5 * SEC)));
    driven.run("a");
}

#[test]
fn a_drain_works_off_what_is_ready() {
    let mut driven = synced(config(1));
    let a = driven.enqueue(&["a", "b", "a"]).run("a");
    driven.feed([ReconcilerInput::EnqueuedAfter(key("later"), SEC), ReconcilerInput::ShutDown { drain: true }]);
    assert!(!driven.reconciler.status().ready);
    driven.enqueue(&["c"]).quiet();
    let reconciled = driven.ran(a, Outcome::done().requeue_after(SEC)).reconciled("a");
    assert_eq!(reconciled.again, None);
    let b = driven.run("b");
    driven.ran(b, Outcome::failed("m")).reconciled("b");
    let a = driven.run("a");
    driven.ran(a, Outcome::done()).reconciled("a");
    assert_eq!(driven.out.pop(), Some(ReconcilerOutput::Stopped));
    driven.enqueue(&["a"]).ran(a, Outcome::done()).feed([ReconcilerInput::ShutDown { drain: false }]).quiet();
    assert_eq!(driven.reconciler.deadline(), None);
}

#[test]
fn a_drain_waits_for_the_cache_as_long_as_a_pass_would() {
    let mut driven = synced(config(1));
    driven.write("a");
    driven.enqueue(&["a"]).feed([ReconcilerInput::ShutDown { drain: true }]).quiet();
    let ticket = driven.feed([observed("a", Some(("u", 8)))]).run("a");
    driven.ran(ticket, Outcome::done()).reconciled("a");
    assert_eq!(driven.out.pop(), Some(ReconcilerOutput::Stopped));

    let mut unasked = synced(config(1));
    unasked.write("a");
    unasked.feed([ReconcilerInput::ShutDown { drain: true }]);
    assert_eq!((unasked.out.pop(), unasked.reconciler.deadline()), (Some(ReconcilerOutput::Stopped), None));
}

#[test]
fn a_drain_that_takes_too_long_cancels_what_runs() {
    let mut driven = synced(config(2));
    let (a, b) = (driven.enqueue(&["a", "b", "c"]).run("a"), driven.run("b"));
    let request = driven.ran(b, changed("b", 7)).sent();
    driven.feed([ReconcilerInput::ShutDown { drain: true }]).wait(10 * SEC - Duration::from_nanos(1)).quiet();
    driven.wait(Duration::from_nanos(1));
    assert_eq!(driven.out.pop(), Some(ReconcilerOutput::Cancel { ticket: a }));
    assert_eq!(driven.out.pop(), Some(ReconcilerOutput::Http(HttpEffect::Cancel { ticket: request })));
    assert_eq!(driven.reconciled("b").result, PassResult::Cancelled);
    driven.wait(60 * SEC).quiet();
    assert_eq!(driven.ran(a, Outcome::failed("stopped")).reconciled("a").result, PassResult::Cancelled);
    assert_eq!(driven.out.pop(), Some(ReconcilerOutput::Stopped));
    assert_eq!(driven.quiet().reconciler.status().cancellations, 2);
}

#[test]
fn a_shutdown_without_a_drain_cancels_at_once() {
    for drain_first in [false, true] {
        let mut driven = synced(config(1));
        let ticket = driven.enqueue(&["a", "b"]).run("a");
        if drain_first {
            driven.feed([ReconcilerInput::ShutDown { drain: true }]).quiet();
        }
        driven.feed([ReconcilerInput::ShutDown { drain: false }]);
        assert_eq!(driven.out.pop(), Some(ReconcilerOutput::Cancel { ticket }));
        driven.quiet().ran(ticket, Outcome::new(Verdict::Cancelled)).reconciled("a");
        assert_eq!((driven.out.pop(), driven.out.pop()), (Some(ReconcilerOutput::Stopped), None));
    }
}

#[test]
fn a_shutdown_with_nothing_under_way_ends_at_once() {
    for drain in [false, true] {
        for sync in [false, true] {
            let reconciler = Reconciler::new(config(1));
            let mut driven = Driven { reconciler, now: Now::default(), out: Outbox::new() };
            if sync {
                driven.feed([ReconcilerInput::Synced]);
            } else {
                driven.enqueue(&["a"]);
            }
            driven.feed([ReconcilerInput::ShutDown { drain }]);
            assert_eq!(driven.out.pop(), Some(ReconcilerOutput::Stopped), "drain {drain}, synced {sync}");
            driven.feed([ReconcilerInput::Synced]).quiet();
        }
    }
}

#[test]
fn every_key_is_looked_at_again_from_time_to_time() {
    let mut driven = synced(ReconcilerConfig { resync_period: Some(100 * SEC), ..config(1) });
    driven.wait(89 * SEC).quiet().wait(21 * SEC);
    assert_eq!(driven.out.pop(), Some(ReconcilerOutput::Resync));
    let times = driven.quiet().wait(10_000 * SEC).out.drain().count();
    assert!((95..=105).contains(&times), "{times}");
    driven.feed([ReconcilerInput::ShutDown { drain: true }]);
    assert_eq!(driven.out.pop(), Some(ReconcilerOutput::Stopped));
    driven.wait(1000 * SEC).quiet();
}

fn inputs() -> impl Strategy<Value = Vec<Move<ReconcilerInput>>> {
    let ticket = |lane: u32, number: usize| {
        let mut tickets = Tickets::new(lane);
        (0..number).map(|_| tickets.issue()).last().unwrap()
    };
    let names = || proptest::sample::select(vec!["a", "b", "c"]);
    let outcomes = vec![Outcome::done(), Outcome::failed("m"), changed("a", 7), Outcome::done().requeue_after(SEC)];
    prop_oneof![
        4 => names().prop_map(|name| vec![ReconcilerInput::Enqueued(key(name))]),
        4 => (0..2_u32, 1..8_usize, proptest::sample::select(outcomes)).prop_map(move |(lane, number, outcome)| {
            vec![ReconcilerInput::Ran { ticket: ticket(lane, number), outcome }]
        }),
        2 => (0..2_u32, 1..8_usize).prop_map(move |(lane, number)| {
            answer(ticket(lane, number), 200, &object("a", 8, 2)).to_vec()
        }),
        2 => (names(), 7..10_u64).prop_map(|(name, version)| vec![observed(name, Some(("u", version)))]),
    ]
    .prop_map(|inputs| inputs.into_iter().map(Move::Input).collect())
    .boxed()
    .prop_union((0..8_u32).prop_map(|seconds| vec![Move::Wait(seconds * SEC)]).boxed())
}

proptest! {
    #[test]
    fn the_laws_hold(script in vec(inputs(), 0..40), seed: u64) {
        let script: Vec<_> = [Move::Input(ReconcilerInput::Synced)].into_iter().chain(script.concat()).collect();
        let mut config = ReconcilerConfig { seed, resync_period: Some(20 * SEC), ..config(2) };
        config.pass.timeout = Some(10 * SEC);
        let make = || Reconciler::new(config.clone());
        laws::same_inputs_same_outputs(make, &script);
        let old = Tickets::new(2).issue();
        let mut stale = answer(old, 200, &object("a", 8, 2)).to_vec();
        stale.extend([ReconcilerInput::Ran { ticket: old, outcome: Outcome::done() }, observed("z", None)]);
        laws::stale_inputs_change_nothing(make, &script[1..], &stale);
        laws::stale_inputs_change_nothing(make, &script, &stale);

        let mut ended = make();
        let mut now = Now::default();
        let mut running = Vec::new();
        let shut_down = [Move::Input(ReconcilerInput::ShutDown { drain: false })];
        for step in script.iter().cloned().chain(shut_down) {
            let mut out = Outbox::new();
            let input = match step {
                Move::Wait(duration) => { now = now.after(duration); None }
                Move::Input(input) => Some(input),
            };
            let _ = ended.step(now, input, &mut out);
            running.extend(out.into_iter().filter_map(|output| match output {
                ReconcilerOutput::Run { ticket, .. } => Some(ticket),
                _ => None,
            }));
        }
        for ticket in running {
            let ran = ReconcilerInput::Ran { ticket, outcome: Outcome::done() };
            let _ = ended.step(now, Some(ran), &mut Outbox::new());
        }
        laws::ended_stays_ended(&mut ended, &[], &script);
    }
}
