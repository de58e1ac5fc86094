//! What is given up ends at once.

use super::{stored, told};
use crate::scripted::{Answer, in_order};
use crate::stage::{Stage, scenarios};
use crate::world::op::maps;

scenarios! {
    SCRIPT {
        a_dropped_watch_closes_its_connection,
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
