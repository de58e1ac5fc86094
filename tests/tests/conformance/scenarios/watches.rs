//! Watches: what they tell, and where they go on.

use std::time::Duration;

use cloudcoil_runtime::{Change, Error, Object, ResourceKey, WatchEvent};
use serde_json::json;

use super::{bookmark, event, map, short, stored, synced, told};
use crate::scripted::{Answer, Seen, Then, in_order, refusal};
use crate::stage::{Stage, scenarios};
use crate::world::Informing;
use crate::world::op::{maps, secrets};

scenarios! {
    ANY {
        a_watch_tells_what_is_there_and_then_every_change,
        what_ceases_to_match_is_deleted_for_the_watch,
        a_watch_of_all_namespaces_sees_this_one,
    }
    MEMORY {
        a_watch_that_the_server_ends_goes_on_without_a_gap,
        a_watch_whose_place_is_forgotten_lists_anew,
    }
    SCRIPT {
        a_watch_resumes_where_it_broke_off,
        bookmarks_move_the_place_where_it_resumes,
        an_expired_watch_lists_anew,
        an_expiry_within_the_stream_lists_anew,
        a_failure_within_the_stream_resumes_without_a_list,
        unknown_kinds_of_events_are_passed_over,
        a_streaming_list_is_complete_when_the_server_says_so,
        a_server_without_streaming_lists_is_asked_for_pages,
        a_refusal_is_told_and_the_watch_goes_on,
        a_line_that_is_no_event_does_not_end_the_watch,
        an_event_without_an_object_is_told_and_passed_over,
        lines_may_end_as_they_like,
        an_answer_that_is_no_watch_is_asked_for_again,
        a_streaming_list_that_breaks_off_is_begun_anew,
        an_informer_is_told_what_went_while_nobody_watched,
        an_informer_hears_of_nothing_twice,
        many_pages_and_their_watch_are_of_one_version,
    }
    VIRTUAL {
        a_silent_watch_is_resumed_after_90_seconds,
        a_silent_streaming_list_is_given_up_after_15_seconds,
        a_watch_waits_as_long_as_the_server_asks,
        failures_wait_longer_and_longer,
        a_watch_that_ends_at_once_is_not_asked_for_without_end,
        a_version_that_the_server_does_not_have_yet_is_asked_for_once_a_second,
        a_watch_that_nobody_answers_is_asked_for_again,
    }
}

fn a_watch_tells_what_is_there_and_then_every_change(stage: &Stage) {
    let world = stage.api();
    for name in ["a", "b"] {
        world.must(secrets().create(secret(name, "web")));
    }
    let events = world.watch(secrets().follow());
    assert_eq!(synced(&events), ["a", "b"]);
    let made = world.must(secrets().create(secret("c", "web"))).object();
    assert_eq!(events.good(), WatchEvent::Applied(trimmed(made)));
    let changed = world.must(secrets().merge("a", json!({"stringData": {"key": "1"}}))).object();
    assert_eq!(events.good(), WatchEvent::Applied(trimmed(changed)));
    world.must(secrets().delete("b"));
    assert!(short(&events.good()).starts_with("deleted b "));
}

fn what_ceases_to_match_is_deleted_for_the_watch(stage: &Stage) {
    let world = stage.api();
    world.must(secrets().create(secret("a", "web")));
    world.must(secrets().create(secret("b", "api")));
    let events = world.watch(secrets().follow().labels("app=web"));
    assert_eq!(synced(&events), ["a"]);
    world.must(secrets().merge("a", json!({"metadata": {"labels": {"app": "api"}}})));
    assert!(short(&events.good()).starts_with("deleted a "));
    world.must(secrets().merge("b", json!({"metadata": {"labels": {"app": "web"}}})));
    assert!(short(&events.good()).starts_with("applied b "));
    let events = world.watch(secrets().follow().fields("metadata.name=b"));
    assert_eq!(synced(&events), ["b"]);
}

fn a_watch_of_all_namespaces_sees_this_one(stage: &Stage) {
    let world = stage.api();
    let label = format!("stage={}", stage.namespace);
    let mut labelled = map("a", "1");
    labelled["metadata"]["labels"] = json!({"stage": stage.namespace});
    world.must(maps().create(labelled));
    let events = world.watch(maps().follow().everywhere().labels(&label).in_pages_of(1));
    assert_eq!(synced(&events), ["a"]);
}

fn a_watch_that_the_server_ends_goes_on_without_a_gap(stage: &Stage) {
    let world = stage.api();
    let events = world.watch(secrets().follow());
    assert_eq!(synced(&events), [""; 0]);
    for name in ["a", "b", "c"] {
        stage.with_server(|server, _, out| server.close_watches(out));
        world.must(secrets().create(secret(name, "web")));
        assert!(short(&events.good()).starts_with(&format!("applied {name} ")), "no list, nothing twice");
    }
}

fn a_watch_whose_place_is_forgotten_lists_anew(stage: &Stage) {
    let world = stage.api();
    world.must(secrets().create(secret("a", "web")));
    world.must(secrets().create(secret("b", "web")));
    let events = world.watch(secrets().follow());
    assert_eq!(synced(&events), ["a", "b"]);
    stage.with_server(|server, _, out| {
        server.freeze();
        server.close_watches(out);
    });
    world.must(secrets().delete("a"));
    world.must(secrets().create(secret("c", "web")));
    stage.with_server(|server, now, out| {
        server.compact(server.revision());
        server.thaw(now, out);
        server.close_watches(out);
    });
    assert!(matches!(events.good(), WatchEvent::Restarted));
    assert_eq!(synced(&events), ["b", "c"], "what is gone is missing in the new list");
}

/// The list with which scripted watches begin.
fn list() -> Answer {
    Answer::list("10", &[stored("a", 5)])
}

const LISTED: [&str; 3] = ["restarted", "listed a 5", "synced"];

/// The versions of the watches.
fn resumed(seen: &[Seen]) -> Vec<&str> {
    seen.iter().filter(|seen| seen.is_watch()).filter_map(Seen::version).collect()
}

fn a_watch_resumes_where_it_broke_off(stage: &Stage) {
    let broken = |version, then| Answer::watch(&[event("MODIFIED", "a", version)]).then(then);
    let answers = [list(), broken(11, Then::Reset), broken(12, Then::Close), broken(13, Then::End)];
    let answers = answers.into_iter().chain([Answer::watch(&[event("DELETED", "a", 14)])]);
    let play = stage.play(in_order(answers));
    let events = play.watch(maps().follow().in_pages_of(500));
    assert_eq!(told(&events, 3), LISTED);
    assert_eq!(told(&events, 4), ["applied a 11", "applied a 12", "applied a 13", "deleted a 14"]);
    assert_eq!(resumed(&play.seen()), ["10", "11", "12", "13"]);
}

fn bookmarks_move_the_place_where_it_resumes(stage: &Stage) {
    let mut thin = bookmark(30);
    thin["object"]["metadata"]["annotations"] = json!(null);
    let mut empty = bookmark(0);
    empty["object"]["metadata"]["resourceVersion"] = json!("");
    let answers = [
        list(),
        Answer::watch(&[event("ADDED", "b", 11), bookmark(20)]).then(Then::End),
        Answer::watch(&[thin, empty]).then(Then::End),
        Answer::watch(&[event("ADDED", "c", 31)]),
    ];
    let play = stage.play(in_order(answers));
    let events = play.watch(maps().follow().in_pages_of(500));
    assert_eq!(told(&events, 5)[3..], ["applied b 11", "applied c 31"]);
    assert_eq!(resumed(&play.seen()), ["10", "20", "30"]);
}

fn an_expired_watch_lists_anew(stage: &Stage) {
    let answers = [
        list(),
        Answer::refusal(410, "Expired", "too old resource version: 10 (20)"),
        Answer::list("20", &[stored("b", 15)]),
        Answer::watch(&[event("ADDED", "c", 21)]),
    ];
    let play = stage.play(in_order(answers));
    let events = play.watch(maps().follow().in_pages_of(500));
    assert_eq!(told(&events, 3), LISTED);
    assert_eq!(told(&events, 4), ["restarted", "listed b 15", "synced", "applied c 21"]);
    assert_eq!(resumed(&play.seen()), ["10", "20"]);
}

fn an_expiry_within_the_stream_lists_anew(stage: &Stage) {
    let expiry = |status| json!({"type": "ERROR", "object": status});
    let whole = refusal(410, "Expired", "too old resource version: 10 (20)");
    let gone = refusal(410, "Gone", "too old resource version: 10 (20)");
    let mut no_code = whole.clone();
    no_code.as_object_mut().unwrap().remove("code");
    for status in [whole, gone, no_code] {
        let answers = [
            list(),
            Answer::watch(&[event("MODIFIED", "a", 11), expiry(status)]),
            Answer::list("20", &[stored("b", 15)]),
            Answer::watch(&[event("ADDED", "c", 21)]),
        ];
        let play = stage.play(in_order(answers));
        let events = play.watch(maps().follow().in_pages_of(500));
        assert_eq!(told(&events, 4)[3], "applied a 11");
        assert_eq!(told(&events, 4), ["restarted", "listed b 15", "synced", "applied c 21"]);
    }
}

fn a_failure_within_the_stream_resumes_without_a_list(stage: &Stage) {
    let failure = refusal(500, "InternalError", "etcdserver: leader changed");
    let answers = [
        list(),
        Answer::watch(&[event("MODIFIED", "a", 11), json!({"type": "ERROR", "object": failure})]),
        Answer::watch(&[event("MODIFIED", "a", 12)]),
    ];
    let play = stage.play(in_order(answers));
    let events = play.watch(maps().follow().in_pages_of(500));
    assert_eq!(told(&events, 5)[3..], ["applied a 11", "applied a 12"]);
    assert_eq!(resumed(&play.seen()), ["10", "11"]);
}

fn unknown_kinds_of_events_are_passed_over(stage: &Stage) {
    let odd = json!({"type": "SYNCED", "object": {"kind": "Odd", "apiVersion": "v9"}});
    let answers = [list(), Answer::watch(&[odd, event("ADDED", "b", 12)])];
    let play = stage.play(in_order(answers));
    let events = play.watch(maps().follow().in_pages_of(500));
    assert_eq!(told(&events, 4)[3], "applied b 12");
}

/// A bookmark that ends a streaming list.
fn end_of_list(version: u32) -> serde_json::Value {
    let mut end = bookmark(version);
    end["object"]["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    end
}

fn a_streaming_list_is_complete_when_the_server_says_so(stage: &Stage) {
    let events =
        [event("ADDED", "a", 5), bookmark(8), event("ADDED", "b", 7), end_of_list(10), event("ADDED", "c", 11)];
    let play = stage.play(in_order([Answer::watch(&events)]));
    let events = play.watch(maps().follow());
    assert_eq!(told(&events, 5), ["restarted", "listed a 5", "listed b 7", "synced", "applied c 11"]);
    let seen = play.seen();
    assert_eq!((seen.len(), seen[0].parameter("sendInitialEvents")), (1, Some("true")));
    assert_eq!(seen[0].parameter("resourceVersionMatch"), Some("NotOlderThan"));
}

fn a_server_without_streaming_lists_is_asked_for_pages(stage: &Stage) {
    let refused = || Answer::refusal(422, "Invalid", "sendInitialEvents: Forbidden");
    let play = stage.play(in_order([refused(), list(), Answer::watch(&[event("ADDED", "b", 11)])]));
    let events = play.watch(maps().follow());
    let all: Vec<_> = told(&events, 5).into_iter().filter(|event| event != "restarted").collect();
    assert_eq!(all[..3], ["listed a 5", "synced", "applied b 11"]);
    let seen = play.seen();
    assert_eq!((seen[1].is_watch(), seen[1].parameter("limit")), (false, Some("500")));
}

fn a_refusal_is_told_and_the_watch_goes_on(stage: &Stage) {
    let answers = [
        Answer::refusal(403, "Forbidden", "no, because"),
        list(),
        Answer::refusal(403, "Forbidden", "no more"),
        Answer::watch(&[event("ADDED", "b", 11)]),
    ];
    let play = stage.play(in_order(answers));
    let events = play.watch(maps().follow().in_pages_of(500));
    assert_eq!(told(&events, 1), ["restarted"]);
    let error = events.next().unwrap().unwrap_err();
    assert_eq!((error.code(), error.to_string().contains("no, because")), (Some(403), true));
    assert_eq!(told(&events, 3), LISTED);
    assert_eq!(events.next().unwrap().unwrap_err().code(), Some(403));
    assert_eq!(told(&events, 1), ["applied b 11"]);
}

fn a_silent_watch_is_resumed_after_90_seconds(stage: &Stage) {
    let answers = [list(), Answer::watch(&[event("ADDED", "b", 11)]), Answer::watch(&[event("ADDED", "c", 12)])];
    let play = stage.play(in_order(answers));
    let events = play.watch(maps().follow().in_pages_of(500));
    assert_eq!(told(&events, 4)[3], "applied b 11");
    let before = play.elapsed();
    assert_eq!(told(&events, 1), ["applied c 12"]);
    let silent = play.elapsed() - before;
    assert!((90..92).contains(&silent.as_secs()), "{silent:?}");
    assert_eq!((resumed(&play.seen()), play.wait_for_left(1)), (vec!["10", "11"], vec![1]));
}

fn a_silent_streaming_list_is_given_up_after_15_seconds(stage: &Stage) {
    let begun = || Answer::watch(&[event("ADDED", "a", 5)]);
    let answers = [begun(), begun(), list(), Answer::watch(&[event("ADDED", "b", 11)])];
    let play = stage.play(in_order(answers));
    let events = play.watch(maps().follow());
    let mut all = Vec::new();
    while all.last().is_none_or(|event| event != "applied b 11") {
        all.extend(told(&events, 1));
    }
    let elapsed = play.elapsed();
    assert!((30..40).contains(&elapsed.as_secs()), "{elapsed:?}");
    assert_eq!(all[all.len() - 4..], ["restarted", "listed a 5", "synced", "applied b 11"]);
    let streaming: Vec<_> = play.seen().iter().map(|seen| seen.parameter("sendInitialEvents").is_some()).collect();
    assert_eq!(streaming, [true, true, false, false], "after two that were not completed come pages");
}

fn a_watch_waits_as_long_as_the_server_asks(stage: &Stage) {
    let busy = || Answer::refusal(429, "TooManyRequests", "busy").header("retry-after", "100");
    let play = stage.play(in_order([list(), busy(), Answer::watch(&[event("ADDED", "b", 11)])]));
    let events = play.watch(maps().follow().in_pages_of(500));
    assert_eq!(told(&events, 4)[3], "applied b 11");
    assert!((100..112).contains(&play.elapsed().as_secs()), "{:?}", play.elapsed());
    assert!(play.elapsed() > Duration::from_secs(100));
}

fn a_line_that_is_no_event_does_not_end_the_watch(stage: &Stage) {
    let whole = event("MODIFIED", "a", 11).to_string();
    let odd = [&whole[..40], "no JSON", "[]", "{}", r#"{"type":"ADDED"}"#, "\u{1}"];
    for line in odd {
        let stumble = Answer::new(200, "application/json", format!("{whole}\n{line}\n")).chunked().then(Then::Silence);
        let play = stage.play(in_order([list(), stumble, Answer::watch(&[event("MODIFIED", "a", 12)])]));
        let events = play.watch(maps().follow().in_pages_of(500));
        assert_eq!(told(&events, 4)[3], "applied a 11", "{line}");
        assert_eq!(told(&events, 1), ["applied a 12"], "{line}");
        assert_eq!(resumed(&play.seen()), ["10", "11"], "{line}");
    }
}

fn an_event_without_an_object_is_told_and_passed_over(stage: &Stage) {
    let nothing = json!({"type": "ADDED", "object": null});
    let watch = Answer::watch(&[event("MODIFIED", "a", 11), nothing, event("MODIFIED", "a", 12)]);
    let play = stage.play(in_order([list(), watch]));
    let events = play.watch(maps().follow().in_pages_of(500));
    assert_eq!(told(&events, 4)[3], "applied a 11");
    assert!(matches!(events.next(), Some(Err(Error::Decode(_)))));
    assert_eq!((told(&events, 1), resumed(&play.seen())), (vec!["applied a 12".to_owned()], vec!["10"]));
}

fn lines_may_end_as_they_like(stage: &Stage) {
    let [one, other, last] = [11, 12, 13].map(|version| event("MODIFIED", "a", version).to_string());
    let body = format!("\r\n{one}\r\n\n \n{other}\n\n{last}");
    let watch = Answer::new(200, "application/json;stream=watch", body).chunked();
    let play = stage.play(in_order([list(), watch, Answer::watch(&[event("DELETED", "a", 14)])]));
    let events = play.watch(maps().follow().in_pages_of(500));
    assert_eq!(told(&events, 7)[3..], ["applied a 11", "applied a 12", "applied a 13", "deleted a 14"]);
    assert_eq!(resumed(&play.seen()), ["10", "13"], "a last line needs no end");
}

fn an_answer_that_is_no_watch_is_asked_for_again(stage: &Stage) {
    let page = "<html><body>Bad Gateway</body></html>";
    let faults = [
        Answer::new(200, "text/html", page),
        Answer::new(502, "text/html", page),
        Answer::new(200, "application/json", ""),
        Answer::new(503, "text/plain", ""),
        Answer::json(&json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {}, "items": []})),
    ];
    for fault in faults {
        let code = fault.status;
        let play = stage.play(in_order([list(), fault, Answer::watch(&[event("ADDED", "b", 11)])]));
        let events = play.watch(maps().follow().in_pages_of(500));
        assert_eq!(told(&events, 4)[3], "applied b 11", "{code}");
        assert_eq!(resumed(&play.seen()), ["10", "10"], "{code}");
    }
}

fn a_streaming_list_that_breaks_off_is_begun_anew(stage: &Stage) {
    let half = Answer::watch(&[event("ADDED", "a", 5), event("ADDED", "gone", 6)]).then(Then::Close);
    let whole = Answer::watch(&[event("ADDED", "a", 5), end_of_list(10)]);
    let play = stage.play(in_order([half, whole]));
    let events = play.watch(maps().follow());
    assert_eq!(told(&events, 3), ["restarted", "listed a 5", "listed gone 6"]);
    assert_eq!(told(&events, 3), ["restarted", "listed a 5", "synced"], "nothing is left of the half list");
    assert!(play.seen().iter().all(|seen| seen.parameter("sendInitialEvents") == Some("true")));
}

fn key(name: &str) -> ResourceKey {
    ResourceKey::new(Some("default"), name).unwrap()
}

fn heard(informing: &Informing) -> String {
    let version = |object: &Object| format!("{} {}", object.name(), object.resource_version().unwrap_or_default());
    match informing.changes.next().unwrap() {
        Change::Added(object) => format!("added {}", version(&object)),
        Change::Updated { old, new } => format!("updated {} to {}", version(&old), version(&new)),
        Change::Deleted(object) => format!("deleted {}", version(&object)),
    }
}

fn an_informer_is_told_what_went_while_nobody_watched(stage: &Stage) {
    let mut replaced = stored("c", 18);
    replaced["metadata"]["uid"] = json!("another");
    let answers = [
        Answer::list("10", &[stored("a", 5), stored("b", 6), stored("c", 7)]),
        Answer::refusal(410, "Expired", "too old resource version: 10 (20)"),
        Answer::list("20", &[stored("b", 15), replaced]),
        Answer::watch(&[event("ADDED", "d", 21)]),
    ];
    let play = stage.play(in_order(answers));
    let informing = play.inform(maps().follow().everywhere().in_pages_of(500));
    let mut all: Vec<_> = (0..3).map(|_| heard(&informing)).collect();
    assert_eq!(all, ["added a 5", "added b 6", "added c 7"]);
    informing.synced.next().unwrap().unwrap();
    all = (0..4).map(|_| heard(&informing)).collect();
    all.sort();
    assert_eq!(all, ["added c 18", "deleted a 5", "deleted c 7", "updated b 6 to b 15"]);
    assert_eq!(heard(&informing), "added d 21");
    assert_eq!(informing.reader.keys(), [key("b"), key("c"), key("d")]);
}

fn an_informer_hears_of_nothing_twice(stage: &Stage) {
    let again =
        [event("MODIFIED", "a", 5), event("ADDED", "a", 5), event("MODIFIED", "a", 11), event("DELETED", "b", 12)];
    let play = stage.play(in_order([
        list(),
        Answer::watch(&again).then(Then::End),
        Answer::watch(&[event("ADDED", "b", 13)]),
    ]));
    let informing = play.inform(maps().follow().everywhere().in_pages_of(500));
    let all: Vec<_> = (0..3).map(|_| heard(&informing)).collect();
    assert_eq!(all, ["added a 5", "updated a 5 to a 11", "added b 13"], "what was not there cannot go");
    assert!(informing.changes.come().is_empty());
}

fn many_pages_and_their_watch_are_of_one_version(stage: &Stage) {
    let pages =
        (1..10).map(|number| Answer::page("10", &[stored(&format!("n{number}"), number)], &format!("token-{number}")));
    let answers = pages.chain([Answer::page("10", &[], ""), Answer::watch(&[event("ADDED", "z", 11)])]);
    let play = stage.play(in_order(answers));
    let events = play.watch(maps().follow().in_pages_of(1));
    assert_eq!(synced(&events).len(), 9);
    assert_eq!(told(&events, 1), ["applied z 11"]);
    let seen = play.seen();
    let tokens: Vec<_> = seen[1..10].iter().map(|seen| seen.parameter("continue").unwrap().to_owned()).collect();
    assert_eq!(tokens, (1..10).map(|number| format!("token-{number}")).collect::<Vec<_>>());
    assert!(seen[1..10].iter().all(|seen| seen.version().is_none()), "a token says the version itself");
    assert_eq!(resumed(&seen), ["10"]);
}

fn failures_wait_longer_and_longer(stage: &Stage) {
    let busy = || Answer::refusal(500, "InternalError", "etcdserver: leader changed");
    let play = stage.play(in_order((0..10).map(|_| busy()).chain([list()])));
    let events = play.watch(maps().follow().in_pages_of(500));
    while short(&events.good()) != "synced" {}
    // 0.8 s doubling to 60 s, give or take a fifth: 0.8 + 1.6 + … + 51.2 + three times 60 at the most.
    let elapsed = play.elapsed().as_secs();
    assert!((200..300).contains(&elapsed), "{elapsed}");
    assert_eq!(play.wait_for(12).len(), 12, "ten failures, the list, and its watch");
}

fn a_watch_that_ends_at_once_is_not_asked_for_without_end(stage: &Stage) {
    let nothing = || Answer::watch(&[]).then(Then::End);
    let answers =
        [list()].into_iter().chain((0..10).map(|_| nothing())).chain([Answer::watch(&[event("ADDED", "b", 11)])]);
    let play = stage.play(in_order(answers));
    let events = play.watch(maps().follow().in_pages_of(500));
    assert_eq!(told(&events, 4)[3], "applied b 11");
    assert!(play.elapsed().as_secs() >= 9, "{:?}", play.elapsed());
    assert_eq!(resumed(&play.seen()), ["10"; 11]);
}

fn a_version_that_the_server_does_not_have_yet_is_asked_for_once_a_second(stage: &Stage) {
    let mut status = refusal(504, "Timeout", "Too large resource version: 10, current: 5");
    status["details"] =
        json!({"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]});
    let early = || Answer { status: 504, ..Answer::json(&status) };
    let play = stage.play(in_order([list(), early(), early(), Answer::watch(&[event("ADDED", "b", 11)])]));
    let events = play.watch(maps().follow().in_pages_of(500));
    let all = told(&events, 4);
    assert_eq!(all[3], "applied b 11");
    assert!(play.elapsed().as_secs() >= 2, "{:?}", play.elapsed());
}

fn a_watch_that_nobody_answers_is_asked_for_again(stage: &Stage) {
    let play = stage.play(in_order([list(), Answer::silence(), Answer::watch(&[event("ADDED", "b", 11)])]));
    let events = play.watch(maps().follow().in_pages_of(500));
    assert_eq!(told(&events, 4)[3], "applied b 11");
    assert!((60..63).contains(&play.elapsed().as_secs()), "{:?}", play.elapsed());
    assert_eq!(play.wait_for_left(1), [1]);
}

fn secret(name: &str, app: &str) -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": {"app": app}}})
}

/// As a watch tells of it: without its managed fields.
fn trimmed(mut object: cloudcoil_runtime::Unstructured) -> cloudcoil_runtime::Unstructured {
    let mut fields = object.fields().clone();
    if let Some(metadata) = fields.get_mut("metadata").and_then(serde_json::Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object = fields.into();
    object
}
