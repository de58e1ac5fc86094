//! Answers that are no good, and what comes of them.

use std::time::Duration;

use bytes::Bytes;
use cloudcoil_runtime::{Error, Evicted, Patch, Resource, Status};
use serde_json::{Value, json};

use super::{map, stored};
use crate::scripted::{Answer, Framing, Script, Then, in_order, refusal};
use crate::stage::{Stage, scenarios};
use crate::world::op::{Op, deployments, maps, pods};

scenarios! {
    ANY {
        a_faulty_object_is_refused_by_its_fields,
        a_type_that_is_not_served_is_not_found,
        a_name_that_cannot_be_one_is_not_sent,
        a_write_to_a_namespace_that_is_not_there_is_not_found,
    }
    SCRIPT {
        refusals_come_as_they_are,
        a_status_fills_in_what_it_lacks,
        web_pages_are_no_objects,
        bodies_that_are_no_objects_are_told_apart,
        another_object_than_was_asked_for_is_taken_as_it_is,
        a_status_where_an_object_should_be_is_no_object,
        a_redirect_is_not_followed,
        reads_are_sent_again_and_writes_are_not,
        writes_are_sent_again_when_they_were_not_taken_up,
        what_is_not_passing_is_not_sent_again,
        a_lost_connection_repeats_reads_alone,
        a_short_answer_repeats_a_read,
        a_dry_run_is_sent_again_as_a_read_is,
        a_budget_is_not_asked_twice,
    }
    CONNECTIONS {
        answers_before_the_answer_are_passed_over,
    }
    VIRTUAL {
        a_server_is_given_the_time_that_it_asks_for,
        retries_end_after_five_with_what_came_last,
        a_wait_that_would_outlast_the_call_ends_it,
        one_time_limit_holds_for_all_attempts,
    }
}

fn a_faulty_object_is_refused_by_its_fields(stage: &Stage) {
    let world = stage.api();
    let mut faulty = map("a", "1");
    faulty["data"]["no key"] = json!("2");
    let error = world.fail(maps().create(faulty));
    let status = error.status().unwrap();
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    assert_eq!(status.details.causes[0].field, "data[no key]");
    let error = world.fail(maps().patch("a", Patch::Merge(json!([]))));
    assert!(matches!(error.code(), Some(400 | 404)), "{error:?}");
}

fn a_type_that_is_not_served_is_not_found(stage: &Stage) {
    let mut gadgets = deployments();
    gadgets.0.plural = "gadgets".into();
    let error = stage.api().fail(gadgets.get("a"));
    assert!(error.is_not_found() && error.status().is_some_and(Status::is_not_served), "{error:?}");
    assert_eq!(stage.api().fail(gadgets.find("a")), error, "that is more than no object");
}

fn a_name_that_cannot_be_one_is_not_sent(stage: &Stage) {
    for name in ["", ".", "..", "a/b"] {
        let error = stage.api().fail(maps().get(name));
        assert!(matches!(error, Error::Misuse(_)), "{name:?}: {error:?}");
    }
    let error = stage.api().fail(maps().get("a").everywhere());
    assert!(matches!(error, Error::Misuse(_)), "{error:?}");
}

fn a_write_to_a_namespace_that_is_not_there_is_not_found(stage: &Stage) {
    let error = stage.api().fail(maps().create(map("a", "1")).within("nowhere"));
    let status = error.status().unwrap();
    assert_eq!(
        (status.code, status.details.kind.as_str(), status.details.name.as_str()),
        (404, "namespaces", "nowhere")
    );
}

fn refusals_come_as_they_are(stage: &Stage) {
    let codes = [
        (400, "BadRequest"),
        (401, "Unauthorized"),
        (403, "Forbidden"),
        (404, "NotFound"),
        (405, "MethodNotAllowed"),
        (406, "NotAcceptable"),
        (409, "Conflict"),
        (410, "Expired"),
        (413, "RequestEntityTooLarge"),
        (415, "UnsupportedMediaType"),
        (422, "Invalid"),
        (429, "TooManyRequests"),
        (500, "InternalError"),
        (503, "ServiceUnavailable"),
        (504, "Timeout"),
    ];
    let play = stage.play(in_order(codes.map(|(code, reason)| Answer::refusal(code, reason, "no, because"))));
    for (code, reason) in codes {
        let error = play.fail(maps().get("a"));
        let status = error.status().unwrap();
        assert_eq!((status.code, status.reason.as_str(), status.message.as_str()), (code, reason, "no, because"));
        assert_eq!(error.code(), Some(code));
        let kinds = (error.is_not_found(), error.is_conflict(), error.is_expired());
        assert_eq!(kinds, (code == 404, code == 409, code == 410), "{code}");
    }
    assert_eq!(play.seen().len(), codes.len(), "each was asked for once");
}

fn a_status_fills_in_what_it_lacks(stage: &Stage) {
    let mut bare = refusal(0, "", "");
    bare.as_object_mut().unwrap().retain(|name, _| name == "kind" || name == "apiVersion");
    let busy = Answer { status: 429, ..Answer::json(&bare) }.header("retry-after", "7");
    let play = stage.play(in_order([Answer { status: 404, ..Answer::json(&bare) }, busy]));
    let error = play.fail(maps().get("a"));
    assert!(error.is_not_found() && error.code() == Some(404), "{error:?}");
    assert_eq!(play.fail(maps().get("a")).retry_after(), Some(Duration::from_secs(7)));
}

fn web_pages_are_no_objects(stage: &Stage) {
    let page = "<html><body><h1>Service Unavailable</h1></body></html>";
    let codes = [200, 404, 502, 503];
    let play = stage.play(in_order(codes.map(|code| Answer::new(code, "text/html", page))));
    for code in codes {
        let Error::Body(error) = play.fail(maps().get("a")) else { panic!("an object?") };
        assert_eq!((error.code, error.problem.to_string().as_str()), (code, "an HTML page"));
        assert!(error.snippet.contains("Service Unavailable"));
    }
}

fn bodies_that_are_no_objects_are_told_apart(stage: &Stage) {
    let whole = stored("a", 5).to_string();
    let bodies: [(Bytes, &str); 8] = [
        ("".into(), "an empty body"),
        (" \n ".into(), "an empty body"),
        (whole.as_bytes()[..whole.len() - 1].to_vec().into(), "a truncated body"),
        ("{".into(), "a truncated body"),
        (b"{\"kind\": \"\xff\"}".to_vec().into(), "a body that is not UTF-8"),
        ("no JSON".into(), "a body that is not a Kubernetes object"),
        ("[]".into(), "a body that is not a Kubernetes object"),
        (format!("{whole}{whole}").into(), "a body that is not a Kubernetes object"),
    ];
    for code in [200, 500] {
        let answers = bodies.clone().map(|(body, _)| Answer::new(code, "application/json", body));
        let play = stage.play(in_order(answers));
        for (body, problem) in &bodies {
            // Of what is no success only an object can be told from a Status.
            let Error::Body(error) = play.fail(maps().get("a")) else { panic!("{code} {body:?} passed for an object") };
            assert_eq!((error.code, error.problem.to_string().as_str()), (code, *problem), "{body:?}");
        }
    }
}

fn another_object_than_was_asked_for_is_taken_as_it_is(stage: &Stage) {
    let bare = json!({"metadata": {"name": "b"}});
    let play = stage.play(in_order([Answer::json(&bare), Answer::json(&json!({"items": [bare]}))]));
    let object = play.must(maps().get("a")).object();
    assert_eq!(
        (object.name(), object.kind(), object.api_version()),
        ("b", "ConfigMap", "v1"),
        "what it is is filled in"
    );
    let listed = play.must(maps().page()).list();
    assert_eq!((listed.items[0].name(), listed.items[0].kind()), ("b", "ConfigMap"));
}

fn a_status_where_an_object_should_be_is_no_object(stage: &Stage) {
    let play =
        stage.play(in_order([Answer::json(&json!({"kind": "ConfigMap"})), Answer::json(&json!({"kind": "Status"}))]));
    let error = play.fail(maps().page());
    assert!(matches!(error, Error::Body(_) | Error::Decode(_)), "an object is no list: {error:?}");
    let error = play.fail(maps().page());
    assert!(matches!(error, Error::Body(_) | Error::Decode(_) | Error::Api(_)), "a Status is no list: {error:?}");
}

fn a_redirect_is_not_followed(stage: &Stage) {
    let codes = [301, 302, 303, 307, 308];
    let redirect = |code| Answer::new(code, "text/plain", "over there").header("location", "/elsewhere");
    let play = stage.play(in_order(codes.map(redirect)));
    for code in codes {
        assert_eq!(play.fail(maps().get("a")).code(), Some(code));
    }
    assert!(play.seen().iter().all(|seen| seen.path.ends_with("/configmaps/a")));
}

/// Answers the first request with each of `faults`, one for each name, and all others well.
fn once(faults: Vec<Answer>) -> Script {
    let mut left: std::collections::BTreeMap<String, Answer> =
        faults.into_iter().enumerate().map(|(number, fault)| (format!("n{number}"), fault)).collect();
    Box::new(move |seen| {
        let of_path = seen.path.rsplit('/').next().unwrap_or_default();
        let of_body =
            || serde_json::from_slice::<Value>(&seen.body).ok()?["metadata"]["name"].as_str().map(str::to_owned);
        let name = if of_path == "configmaps" { of_body().unwrap_or_default() } else { of_path.to_owned() };
        left.remove(&name).unwrap_or_else(|| Answer::json(&stored(&name, 5)))
    })
}

/// What comes of reads, and of writes, that meet these faults once: how they end, and how often each is sent.
fn met(stage: &Stage, faults: &[Answer], op: impl Fn(&str) -> Op) -> Vec<(Result<(), Error>, usize)> {
    let play = stage.play_with(once(faults.to_vec()), &stage.settings().soon());
    let mut sent = 0;
    (0..faults.len())
        .map(|number| {
            let result = play.perform(op(&format!("n{number}"))).map(drop);
            let before = std::mem::replace(&mut sent, play.seen().len());
            (result, sent - before)
        })
        .collect()
}

fn is_again(met: &[(Result<(), Error>, usize)]) -> bool {
    met.iter().all(|(result, sent)| result.is_ok() && *sent == 2)
}

fn is_told(met: &[(Result<(), Error>, usize)]) -> bool {
    met.iter().all(|(result, sent)| result.is_err() && *sent == 1)
}

/// Every verb that changes something.
fn writes() -> [fn(&str) -> Op; 5] {
    [
        |name| maps().create(map(name, "1")),
        |name| maps().replace(map(name, "1")),
        |name| maps().merge(name, json!({})),
        |name| maps().apply("me", map(name, "1")),
        |name| maps().delete(name),
    ]
}

fn reads_are_sent_again_and_writes_are_not(stage: &Stage) {
    let faults = [
        Answer::refusal(408, "Timeout", "slow"),
        Answer::refusal(429, "TooManyRequests", "storage is (re)initializing"),
        Answer::refusal(500, "ServerTimeout", "slow"),
        Answer::new(502, "text/plain", "upstream connect error"),
        Answer::new(503, "text/html", "<html></html>"),
        Answer::new(503, "text/plain", ""),
        Answer::refusal(504, "Timeout", "slow"),
    ];
    let read = met(stage, &faults, |name| maps().get(name));
    assert!(is_again(&read), "{read:?}");
    for write in writes() {
        let written = met(stage, &faults, write);
        assert!(is_told(&written), "{written:?}");
    }
}

fn writes_are_sent_again_when_they_were_not_taken_up(stage: &Stage) {
    let faults = [
        Answer::refusal(429, "TooManyRequests", "busy").header("retry-after", "0"),
        Answer::new(503, "text/plain", "").header("retry-after", "0"),
    ];
    for write in writes().into_iter().chain([(|name| maps().get(name)) as fn(&str) -> Op]) {
        let written = met(stage, &faults, write);
        assert!(is_again(&written), "{written:?}");
    }
}

fn what_is_not_passing_is_not_sent_again(stage: &Stage) {
    let codes = [(400, "BadRequest"), (403, "Forbidden"), (404, "NotFound"), (409, "Conflict"), (410, "Expired")];
    let more = [(422, "Invalid"), (500, "InternalError"), (501, "NotImplemented")];
    let faults: Vec<_> =
        codes.iter().chain(&more).map(|(code, reason)| Answer::refusal(*code, reason, "no, because")).collect();
    for op in writes().into_iter().chain([(|name| maps().get(name)) as fn(&str) -> Op]) {
        let met = met(stage, &faults, op);
        assert!(is_told(&met), "{met:?}");
    }
}

fn a_lost_connection_repeats_reads_alone(stage: &Stage) {
    let whole = || Answer::json(&stored("a", 5));
    let faults =
        [whole().broken_off_at(10), whole().chunked().broken_off_at(20), whole().broken_off_at(30).then(Then::Reset)];
    let read = met(stage, &faults, |name| maps().get(name));
    assert!(is_again(&read), "{read:?}");
    for write in writes() {
        let written = met(stage, &faults, write);
        assert!(is_told(&written), "{written:?}");
        assert!(written.iter().all(|(result, _)| matches!(result, Err(Error::Network(_)))), "{written:?}");
    }
}

fn a_short_answer_repeats_a_read(stage: &Stage) {
    let empty = Answer::new(200, "application/json", "");
    let short = Answer::json(&stored("a", 5)).framed(Framing::UntilClose).broken_off_at(40);
    let read = met(stage, &[empty.clone(), short.clone()], |name| maps().get(name));
    assert!(is_again(&read), "{read:?}");
    let written = met(stage, &[empty, short], |name| maps().merge(name, json!({})));
    assert!(is_told(&written), "{written:?}");
}

fn a_dry_run_is_sent_again_as_a_read_is(stage: &Stage) {
    let faults = [Answer::new(503, "text/plain", ""), Answer::json(&stored("a", 5)).broken_off_at(10)];
    for write in
        [(|name| maps().create(map(name, "1")).dry_run()) as fn(&str) -> Op, |name| maps().delete(name).dry_run()]
    {
        let met = met(stage, &faults, write);
        assert!(is_again(&met), "{met:?}");
    }
}

fn a_budget_is_not_asked_twice(stage: &Stage) {
    let mut status = refusal(429, "TooManyRequests", "Cannot evict pod");
    status["details"] =
        json!({"causes": [{"reason": "DisruptionBudget", "message": "needs 1"}], "retryAfterSeconds": 10});
    let answer = Answer { status: 429, ..Answer::json(&status) }.header("retry-after", "10");
    let play = stage.play_with(in_order([answer]), &stage.settings().soon());
    let Evicted::Refused(refused) = play.must(pods().evict("a")).evicted() else { panic!("it was evicted") };
    assert_eq!(refused.disruption_budget().map(|cause| cause.message.as_str()), Some("needs 1"));
    assert_eq!((refused.retry_after(), play.seen().len()), (Some(Duration::from_secs(10)), 1));
}

fn answers_before_the_answer_are_passed_over(stage: &Stage) {
    let body = stored("a", 5).to_string();
    let early = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n";
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
    let bytes = Bytes::from(format!("{early}{head}{body}"));
    let play = stage.play(Box::new(move |_| Answer::raw([bytes.clone()]).then(Then::End)));
    for _ in 0..2 {
        assert_eq!(play.must(maps().get("a")).value(), stored("a", 5));
    }
}

fn a_server_is_given_the_time_that_it_asks_for(stage: &Stage) {
    let busy = || Answer::refusal(429, "TooManyRequests", "busy");
    let date = || busy().header("date", "Sun, 06 Nov 1994 08:49:37 GMT");
    for asks in [busy().header("retry-after", "5"), date().header("retry-after", "Sun, 06 Nov 1994 08:49:42 GMT")] {
        let play = stage.play_with(in_order([asks, Answer::json(&stored("a", 5))]), &stage.settings());
        play.must(maps().get("a"));
        assert!((5000..5600).contains(&play.elapsed().as_millis()), "{:?}", play.elapsed());
    }
}

fn retries_end_after_five_with_what_came_last(stage: &Stage) {
    let busy = |number: usize| Answer::refusal(503, "ServiceUnavailable", &format!("busy {number}"));
    let play = stage.play_with(in_order((1..10).map(busy)), &stage.settings());
    let error = play.fail(maps().get("a"));
    assert_eq!((error.to_string().contains("busy 6"), play.seen().len()), (true, 6), "{error}");
    // 0.25 s, doubling five times, give or take a fifth.
    assert!((6200..9400).contains(&play.elapsed().as_millis()), "{:?}", play.elapsed());
}

fn a_wait_that_would_outlast_the_call_ends_it(stage: &Stage) {
    let busy = Answer::refusal(429, "TooManyRequests", "busy").header("retry-after", "31");
    let play = stage.play_with(in_order([busy]), &stage.settings());
    let error = play.fail(maps().get("a"));
    assert_eq!((error.code(), play.seen().len()), (Some(429), 1));
    assert!(play.elapsed() < Duration::from_secs(1), "{:?}", play.elapsed());
}

fn one_time_limit_holds_for_all_attempts(stage: &Stage) {
    let busy = || Answer::refusal(429, "TooManyRequests", "busy").header("retry-after", "20");
    let play = stage.play_with(in_order([busy(), Answer::silence()]), &stage.settings());
    assert_eq!(play.fail(maps().get("a")), Error::TimedOut(Duration::from_secs(30)));
    assert_eq!(play.elapsed().as_secs(), 30);
}
