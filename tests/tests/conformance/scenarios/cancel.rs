//! What is given up ends at once.

use super::{event, map, stored, synced, told};
use crate::scripted::{Answer, Play, Seen, Then, in_order};
use crate::stage::{Stage, scenarios};
use crate::world::op::{Op, Operator, maps};

scenarios! {
    SCRIPT {
        a_dropped_watch_closes_its_connection,
        a_watch_that_is_dropped_in_the_middle_of_an_event_closes_its_connection,
        a_watch_that_is_dropped_before_its_list_is_there_closes_its_connection,
        a_dropped_informer_closes_its_connection,
        a_stopped_controller_closes_its_connections,
        dropped_watches_leave_calls_and_other_watches_alone,
        a_dropped_log_closes_its_connection,
    }
    FUTURES {
        a_call_that_is_dropped_before_its_answer_closes_its_connection,
        a_call_that_is_dropped_within_its_answer_closes_its_connection,
        a_list_that_is_dropped_between_pages_asks_for_no_more,
        a_dropped_call_leaves_the_others_alone,
        a_dropped_wait_closes_its_connection,
    }
}

fn a_dropped_watch_closes_its_connection(stage: &Stage) {
    let play = stage.play(in_order([Answer::list("10", &[stored("a", 5)]), Answer::watch(&[])]));
    let events = play.watch(maps().follow().in_pages_of(500));
    assert_eq!(told(&events, 3), ["restarted", "listed a 5", "synced"]);
    let watch = play.wait_for(2)[1].connection;
    drop(events);
    assert_eq!(play.wait_for_left(1), [watch], "the server sees the end of the connection");
}

fn a_watch_that_is_dropped_in_the_middle_of_an_event_closes_its_connection(stage: &Stage) {
    let half = Answer::watch(&[event("ADDED", "b", 11), event("ADDED", "c", 12)]);
    let at = half.body().len() - 20;
    let play = stage.play(in_order([Answer::list("10", &[]), half.broken_off_at(at).then(Then::Silence)]));
    let events = play.watch(maps().follow().in_pages_of(500));
    assert_eq!(told(&events, 3), ["restarted", "synced", "applied b 11"]);
    let watch = play.wait_for(2)[1].connection;
    drop(events);
    assert_eq!(play.wait_for_left(1), [watch]);
}

fn a_watch_that_is_dropped_before_its_list_is_there_closes_its_connection(stage: &Stage) {
    let half = Answer::list("10", &[stored("a", 5)]).broken_off_at(50).then(Then::Silence);
    let play = stage.play(in_order([half]));
    let events = play.watch(maps().follow().in_pages_of(500));
    assert_eq!(told(&events, 1), ["restarted"]);
    play.wait_for(1);
    drop(events);
    assert_eq!(play.wait_for_left(1), [0]);
    assert_eq!(play.seen().len(), 1);
}

/// Lists nothing, and watches that never say anything. What is asked for otherwise is there.
fn quiet(seen: &Seen) -> Answer {
    let is_list = ["configmaps", "secrets"].iter().any(|plural| seen.path.ends_with(plural)) && seen.method == "GET";
    match (seen.is_watch(), seen.parameter("sendInitialEvents")) {
        (true, Some(_)) => Answer::refusal(422, "Invalid", "sendInitialEvents: Forbidden"),
        (true, None) => Answer::watch(&[]),
        (false, _) if is_list => Answer::list("10", &[]),
        (false, _) => Answer::json(&stored("a", 5)),
    }
}

/// The connections of the watches so far, when there are so many.
#[track_caller]
fn watches(play: &Play, count: usize) -> Vec<usize> {
    let is_quiet = |seen: &&Seen| seen.is_watch() && seen.parameter("sendInitialEvents").is_none();
    for requests in 0.. {
        let seen = play.wait_for(requests);
        let watches: Vec<_> = seen.iter().filter(is_quiet).map(|seen| seen.connection).collect();
        if watches.len() >= count {
            return watches;
        }
    }
    unreachable!("it waits for ever, or is stuck")
}

fn a_dropped_informer_closes_its_connection(stage: &Stage) {
    let play = stage.play(Box::new(quiet));
    let informing = play.inform(maps().follow());
    informing.synced.next().unwrap().unwrap();
    let watches = watches(&play, 1);
    drop(informing);
    assert_eq!(play.wait_for_left(1), watches);
}

fn a_stopped_controller_closes_its_connections(stage: &Stage) {
    let play = stage.play(Box::new(quiet));
    let running = play.operate(Operator::KeepsChild);
    let mut watches = watches(&play, 2);
    running.stop().unwrap();
    let mut left = play.wait_for_left(2);
    left.sort_unstable();
    watches.sort_unstable();
    assert_eq!(left, watches, "that of its objects, and that of what they own");
}

fn dropped_watches_leave_calls_and_other_watches_alone(stage: &Stage) {
    let play = stage.play(Box::new(|seen| match (seen.is_watch(), seen.query.contains("stays")) {
        (true, true) => Answer::watch(&[event("ADDED", "b", 11)]),
        _ => quiet(seen),
    }));
    let goes = play.watch(maps().follow().in_pages_of(500));
    assert_eq!(synced(&goes), [""; 0]);
    let stays = play.watch(maps().follow().in_pages_of(500).labels("stays=yes"));
    assert_eq!(told(&stays, 3), ["restarted", "synced", "applied b 11"]);
    drop(goes);
    let left = play.wait_for_left(1);
    for _ in 0..3 {
        play.must(maps().get("a"));
        play.must(maps().create(map("a", "1")));
    }
    assert!(stays.come().is_empty());
    let seen = play.seen();
    assert!(seen.iter().rev().take(6).all(|seen| !left.contains(&seen.connection)), "what is closed is not used");
    drop(stays);
    assert_eq!(play.wait_for_left(2).len(), 2);
}

fn a_dropped_log_closes_its_connection(stage: &Stage) {
    let log =
        Answer { pieces: vec!["one\ntwo\nhal".into()], ..Answer::watch(&[]) }.header("content-type", "text/plain");
    let play = stage.play(in_order([log]));
    let lines = play.lines(crate::world::op::pods().log("a"));
    assert_eq!((lines.good(), lines.good()), ("one".to_owned(), "two".to_owned()));
    drop(lines);
    assert_eq!(play.wait_for_left(1), [0]);
}

/// Drops a call when the server has heard of it.
#[track_caller]
fn drop_when_heard(play: &Play, op: Op) {
    let heard = play.seen().len();
    let call = play.start(op);
    play.wait_for(heard + 1);
    drop(call);
}

fn a_call_that_is_dropped_before_its_answer_closes_its_connection(stage: &Stage) {
    let play = stage.play(in_order([Answer::silence(), Answer::silence(), Answer::json(&stored("a", 5))]));
    drop_when_heard(&play, maps().get("a"));
    assert_eq!(play.wait_for_left(1), [0]);
    drop_when_heard(&play, maps().create(map("a", "1")));
    assert_eq!(play.wait_for_left(2), [0, 1]);
    play.must(maps().get("a"));
    assert_eq!(play.seen().len(), 3, "nothing is sent again for nobody");
}

fn a_call_that_is_dropped_within_its_answer_closes_its_connection(stage: &Stage) {
    let half = || Answer::json(&stored("a", 5)).broken_off_at(100).then(Then::Silence);
    let play = stage.play(in_order([half(), half().chunked(), Answer::json(&stored("a", 5))]));
    drop_when_heard(&play, maps().get("a"));
    assert_eq!(play.wait_for_left(1), [0]);
    drop_when_heard(&play, maps().get("a"));
    assert_eq!(play.wait_for_left(2), [0, 1]);
    assert_eq!(play.must(maps().get("a")).value(), stored("a", 5), "and not the rest of what was dropped");
}

fn a_list_that_is_dropped_between_pages_asks_for_no_more(stage: &Stage) {
    let page = |token| Answer::page("10", &[stored("a", 5)], token);
    let play = stage.play(in_order([page("1"), page("2"), Answer::silence(), page("")]));
    let list = play.start(maps().objects().limit(1));
    let third = play.wait_for(3)[2].connection;
    drop(list);
    assert_eq!(play.wait_for_left(1), [third]);
    assert_eq!(play.must(maps().objects().limit(1)).names(), ["a"]);
    assert_eq!(play.seen().len(), 4);
}

fn a_dropped_call_leaves_the_others_alone(stage: &Stage) {
    let play = stage.play(Box::new(|seen| match seen.path.ends_with("/silent") {
        true => Answer::silence(),
        false => quiet(seen),
    }));
    let events = play.watch(maps().follow().in_pages_of(500));
    assert_eq!(synced(&events), [""; 0]);
    let other = play.start(maps().get("silent"));
    let other_connection = play.wait_for(3)[2].connection;
    for round in 1..=10 {
        drop_when_heard(&play, maps().get("silent"));
        assert_eq!(play.wait_for_left(round).len(), round);
        play.must(maps().get("a"));
    }
    let watch = watches(&play, 1)[0];
    let left = play.wait_for_left(10);
    assert!(!left.contains(&other_connection) && !left.contains(&watch), "{left:?}");
    assert!(other.come().is_empty() && events.come().is_empty());
}

fn a_dropped_wait_closes_its_connection(stage: &Stage) {
    let play = stage.play(Box::new(|seen| match seen.is_watch() {
        true => quiet(seen),
        false => Answer::list("10", &[]),
    }));
    let hour = std::time::Duration::from_secs(3600);
    let wait = play.start(maps().wait_for("a", crate::world::op::Until::Exists, hour));
    let watches = watches(&play, 1);
    drop(wait);
    assert_eq!(play.wait_for_left(1), watches);
}
