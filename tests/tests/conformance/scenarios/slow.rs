//! Servers that take their time.

use std::time::Duration;

use cloudcoil_runtime::Error;

use super::stored;
use crate::scripted::{Answer, in_order};
use crate::stage::{Stage, scenarios};
use crate::world::op::maps;

scenarios! {
    SCRIPT {
        a_silent_server_is_given_up,
    }
    VIRTUAL {
        a_slow_answer_is_waited_for,
    }
}

fn a_silent_server_is_given_up(stage: &Stage) {
    let limit = Duration::from_millis(200);
    let play = stage.play_with(in_order([]), &stage.settings().timeout(limit));
    assert_eq!(play.fail(maps().get("a")), Error::TimedOut(limit));
    assert_eq!(play.wait_for_left(1), [0]);
}

fn a_slow_answer_is_waited_for(stage: &Stage) {
    let slow = Answer::json(&stored("a", 5)).cut_at(100).pausing(Duration::from_secs(14));
    let play = stage.play(in_order([slow]));
    assert_eq!(play.must(maps().get("a")).value(), stored("a", 5));
    assert_eq!(play.elapsed().as_secs(), 28);
}
