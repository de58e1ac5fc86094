//! Traces: what machines hear and say is the same on tokio over TCP, and wherever else the same happens, apart from times.

use std::sync::mpsc::channel;

use cloudcoil_runtime::Recorder;
use cloudcoil_runtime::core::record::Trace;
use serde_json::{Value, json};

use super::{bookmark, event, map, short, stored, told};
use crate::scripted::{Answer, Script, Seen, Then, in_order, refusal};
use crate::servers::config_of;
use crate::stage::{Place, Stage, scenarios};
use crate::world::op::{Op, Operator, Until, maps, pods};
use crate::world::{Executor, Settings};

scenarios! {
    MEMORY {
        verbs_leave_the_same_trace,
        pages_leave_the_same_trace,
        waits_leave_the_same_trace,
        manifests_leave_the_same_trace,
    }
    SCRIPT {
        retries_leave_the_same_trace,
        answers_in_pieces_leave_the_same_trace,
        a_log_leaves_the_same_trace,
        a_watch_that_resumes_leaves_the_same_trace,
        a_watch_that_lists_anew_leaves_the_same_trace,
        an_informer_leaves_the_same_trace,
        a_pass_that_writes_leaves_the_same_trace,
        another_trace_is_told_apart,
    }
    SOCKETS {
        refusals_to_connect_leave_the_same_trace,
    }
}

/// A scenario, with a client that is recorded as the settings say.
type Act = fn(&Stage, Settings);

/// What `act` leaves behind on a stage of its own.
fn trace(stage: &Stage, act: Act) -> Trace {
    let recorder = Recorder::new().seeded(SEED);
    act(stage, Settings::within("default").recorded(recorder.clone()));
    recorder.trace()
}

/// Does the same on tokio over TCP, and compares.
#[track_caller]
fn alike(stage: &Stage, act: Act) {
    // What is asked at once is answered in any order.
    let in_order = |trace: Trace| trace.only(|machine| machine.kind != "Discovery");
    let (here, tokio) = (trace(stage, act), trace(&Stage::new(Some(Executor::Tokio), Place::Tcp), act));
    let (here, tokio) = (in_order(here), in_order(tokio));
    assert!(!tokio.is_empty(), "nothing was recorded");
    if let Some(difference) = tokio.difference(&here) {
        panic!("not as on tokio, {difference}\n\nAll of it:\n{}", here.lines().join("\n"));
    }
}

fn verbs_leave_the_same_trace(stage: &Stage) {
    alike(stage, |stage, settings| {
        let world = stage.client(&settings);
        world.must(maps().create(map("a", "1")).manager("suite"));
        assert!(world.fail(maps().create(map("a", "1")).manager("suite")).is_already_exists());
        let read = world.must(maps().get("a")).value();
        world.must(maps().merge("a", json!({"data": {"more": "2"}})).manager("suite"));
        assert!(world.fail(maps().replace(read)).is_conflict());
        world.must(maps().apply("suite", map("b", "1")));
        world.must(maps().list());
        world.must(maps().metadata("a"));
        world.must(maps().find("none"));
        world.must(maps().delete("a"));
        assert!(world.fail(maps().get("a")).is_not_found());
        world.must(Op::version());
    });
}

fn pages_leave_the_same_trace(stage: &Stage) {
    alike(stage, |stage, settings| {
        let world = stage.client(&settings);
        (0..9).for_each(|number| drop(world.must(maps().create(map(&format!("m{number}"), "1")).manager("suite"))));
        world.must(maps().objects().limit(2));
        world.must(maps().list().limit(4));
    });
}

fn waits_leave_the_same_trace(stage: &Stage) {
    alike(stage, |stage, settings| {
        let world = stage.client(&settings);
        world.must(maps().create(map("a", "1")).manager("suite"));
        world.must(maps().wait_for("a", Until::Exists, std::time::Duration::from_secs(60)));
        world.must(maps().delete("a"));
        world.must(maps().wait_for("a", Until::Deleted, std::time::Duration::from_secs(60)));
    });
}

fn manifests_leave_the_same_trace(stage: &Stage) {
    alike(stage, |stage, settings| {
        let text = json!({"apiVersion": "v1", "kind": "List", "items": [map("a", "1"), map("b", "2")]}).to_string();
        let world = stage.client(&settings);
        world.must(Op::apply_manifest(&text));
        world.must(Op::delete_manifest(&text));
    });
}

/// Answers that make a client try once more, and one that does not.
fn failing() -> Script {
    let busy = || Answer::refusal(503, "ServiceUnavailable", "busy").header("retry-after", "0");
    let broken = Answer::json(&stored("a", 5)).broken_off_at(20);
    in_order([busy(), broken, busy(), Answer::json(&stored("a", 5))])
}

fn retries_leave_the_same_trace(stage: &Stage) {
    alike(stage, |stage, settings| {
        stage.play_with(failing(), &settings).must(maps().get("a"));
    });
}

fn answers_in_pieces_leave_the_same_trace(stage: &Stage) {
    alike(stage, |stage, settings| {
        let answer = |size| Answer::json(&stored("a", 5)).chunked().in_pieces_of(size);
        let play = stage.play_with(in_order([answer(1), answer(7), answer(1000)]), &settings);
        (0..3).for_each(|_| drop(play.must(maps().get("a"))));
    });
}

fn a_log_leaves_the_same_trace(stage: &Stage) {
    alike(stage, |stage, settings| {
        let log = Answer::new(200, "text/plain", "one\ntwo\nthree\n").chunked().in_pieces_of(4);
        stage.play_with(in_order([log]), &settings).must(pods().log("a"));
    });
}

/// The list with which watches begin.
fn list() -> Answer {
    Answer::list("10", &[stored("a", 5)])
}

fn a_watch_that_resumes_leaves_the_same_trace(stage: &Stage) {
    alike(stage, |stage, settings| {
        let broken = |version, then| Answer::watch(&[event("MODIFIED", "a", version)]).then(then);
        let answers = [list(), broken(11, Then::Close), broken(12, Then::End)];
        let last = Answer::watch(&[bookmark(20), event("DELETED", "a", 21)]);
        let play = stage.play_with(in_order(answers.into_iter().chain([last])), &settings);
        let events = play.watch(maps().follow().in_pages_of(500));
        assert_eq!(told(&events, 6)[3..], ["applied a 11", "applied a 12", "deleted a 21"]);
    });
}

fn a_watch_that_lists_anew_leaves_the_same_trace(stage: &Stage) {
    alike(stage, |stage, settings| {
        let gone = json!({"type": "ERROR", "object": refusal(410, "Expired", "too old")});
        let answers = [
            list(),
            Answer::refusal(410, "Expired", "too old"),
            list(),
            Answer::watch(&[event("MODIFIED", "a", 11), gone]),
            Answer::list("30", &[stored("b", 25)]),
            Answer::watch(&[event("MODIFIED", "b", 31)]),
        ];
        let play = stage.play_with(in_order(answers), &settings);
        let events = play.watch(maps().follow().in_pages_of(500));
        while short(&events.good()) != "applied b 31" {}
    });
}

fn an_informer_leaves_the_same_trace(stage: &Stage) {
    alike(stage, |stage, settings| {
        let changes = [event("MODIFIED", "a", 11), event("ADDED", "b", 12), event("DELETED", "a", 13)];
        let play = stage.play_with(in_order([list(), Answer::watch(&changes)]), &settings);
        let informing = play.inform(maps().follow().in_pages_of(500));
        informing.synced.next().unwrap().unwrap();
        (0..4).for_each(|_| drop(informing.changes.next().unwrap()));
    });
}

/// Everything that a controller of one object asks for.
fn operating() -> Script {
    let mut labelled = stored("a", 11);
    labelled["metadata"]["labels"] = json!({"seen": "yes"});
    let mut complete = bookmark(10);
    complete["object"]["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    Box::new(move |seen: &Seen| match seen.is_watch() {
        true => Answer::watch(&[event("ADDED", "a", 5), complete.clone()]),
        false => Answer::json(&labelled),
    })
}

fn a_pass_that_writes_leaves_the_same_trace(stage: &Stage) {
    alike(stage, |stage, settings| {
        let (tell, over) = channel();
        let recorder = settings.recorder.clone().unwrap().telling(move |step| {
            if step.outputs.iter().any(|said| said.name() == "Reconciled") {
                tell.send(()).unwrap();
            }
        });
        let play = stage.play_with(operating(), &settings.recorded(recorder));
        let running = play.operate(Operator::Labels);
        play.waits().next(&over).unwrap();
        running.stop().unwrap();
    });
}

fn another_trace_is_told_apart(stage: &Stage) {
    let get = |stage: &Stage, object: Value| {
        let recorder = Recorder::new().seeded(SEED);
        let settings = Settings::within("default").recorded(recorder.clone());
        stage.play_with(in_order([Answer::json(&object)]), &settings).must(maps().get("a"));
        recorder.trace()
    };
    let (one, other) = (get(stage, stored("a", 5)), get(stage, stored("a", 6)));
    let difference = one.difference(&other).expect("the bodies are not the same");
    assert!(difference.here.unwrap().starts_with("Call 1 < Received #1, "), "the rest is");
    assert_eq!(one.difference(&get(stage, stored("a", 5))), None);
}

fn refusals_to_connect_leave_the_same_trace(stage: &Stage) {
    alike(stage, |stage, settings| {
        let vacant = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let config = config_of(&format!("http://{vacant}"), None);
        stage.executor().connect(&config, &settings.once()).unwrap().fail(maps().get("a"));
    });
}

const SEED: u64 = 7;
