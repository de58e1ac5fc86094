//! `coil follow` and `coil get` against a server that plays faults: what was asked for and what was printed, in order.

use std::io::{BufRead as _, Read as _};
use std::time::Duration;

use serde_json::{Value, json};

use crate::program::{Ended, Home, Running, Runtime, on_each_runtime, stdout};
use crate::script::{
    Act, GROUPS, Script, answer, chunk, chunk_bytes, chunked, json as body, last_chunk, refusal, with_headers,
};

on_each_runtime!(
    every_line_has_the_same_keys_in_the_same_order,
    a_streaming_list_is_taken_when_it_is_served,
    one_byte_at_a_time_is_the_same,
    gone_in_each_form_leads_to_a_new_list_and_what_was_missed_is_told,
    a_page_that_has_expired_is_no_half_list,
    sparse_bodies_are_read_as_what_they_are,
    what_is_no_answer_is_told_and_tried_again,
    a_server_that_asks_to_wait_is_given_time,
    a_watch_that_is_cut_in_the_middle_goes_on_where_it_was,
    one_odd_object_is_told_and_hides_no_other,
    a_reader_who_goes_away_ends_it_quietly,
    sigint_ends_it_as_well,
    a_group_that_cannot_be_had_hides_no_other,
    pages_are_one_table_and_an_expired_one_starts_it_anew,
    a_table_in_single_bytes_is_the_same,
    compressed_answers_are_read,
    warnings_of_the_server_go_to_stderr,
    reads_are_tried_again_while_the_time_lasts,
    what_stays_wrong_is_told_in_one_line,
    nothing_to_connect_to_is_told_in_one_line,
    verbose_tells_requests_and_what_is_tried_again,
    a_list_without_tables_and_without_items_is_empty,
    a_watched_table_tells_changes_and_finds_those_it_has_missed,
);

pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";

pub(crate) fn object(name: &str, version: u32) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"default","uid":"u-{name}","resourceVersion":"{version}"}}}}"#
    )
}

pub(crate) fn list(version: u32, items: &[String]) -> Vec<Act> {
    body(&list_text(version, "", items))
}

fn list_text(version: u32, token: &str, items: &[String]) -> String {
    let items = items.join(",");
    format!(
        r#"{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{{"resourceVersion":"{version}","continue":"{token}"}},"items":[{items}]}}"#
    )
}

pub(crate) fn event(kind: &str, object: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

/// Streaming lists are not served here: pages are asked for instead.
pub(crate) fn no_stream() -> Vec<Act> {
    refusal("422 Unprocessable Entity", "Invalid", "sendInitialEvents is forbidden")
}

/// A watch that says this and then nothing, but stays.
pub(crate) fn watch(events: &[String]) -> Vec<Act> {
    let mut acts = vec![chunked()];
    acts.extend(events.iter().map(|event| chunk(event)));
    acts.push(Act::Hang);
    acts
}

/// A watch that says this and then ends.
fn short_watch(events: &[String]) -> Vec<Act> {
    let mut acts = watch(events);
    acts.pop();
    acts.push(last_chunk());
    acts
}

pub(crate) struct Following {
    script: Script,
    running: Running,
    _home: Home,
}

fn follow(runtime: Runtime, script: Script) -> Following {
    let home = Home::plain(runtime, &script.url);
    Following::new(script, home)
}

impl Following {
    pub(crate) fn new(script: Script, home: Home) -> Self {
        Self { running: home.start(&["follow", "configmaps"]), script, _home: home }
    }

    /// The next lines in a few words, such as `added a 1`; of an error its message follows.
    pub(crate) fn told(&mut self, count: usize) -> Vec<String> {
        self.running.lines(count).iter().map(|line| tell(line)).collect()
    }

    /// Ends it, and checks that nothing else was said.
    pub(crate) fn end(self) -> Script {
        self.running.signal("TERM");
        let ended = self.running.end();
        assert_eq!(ended, Ended { code: Some(0), stdout: String::new(), stderr: String::new() });
        self.script
    }
}

fn tell(line: &str) -> String {
    let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["event", "message", "name", "namespace", "resourceVersion", "uid"], "{line}");
    let text = |key: &str| value[key].as_str().map(|text| format!(" {text}")).unwrap_or_default();
    let event = value["event"].as_str().unwrap();
    format!("{event}{}{}{}", text("name"), text("resourceVersion"), text("message"))
}

fn every_line_has_the_same_keys_in_the_same_order(runtime: Runtime) {
    let script = Script::new();
    script.on(MAPS, [no_stream(), list(5, &[object("a", 1)]), watch(&[])]);
    let mut following = follow(runtime, script);
    assert_eq!(
        following.running.lines(2),
        [
            r#"{"event":"added","namespace":"default","name":"a","uid":"u-a","resourceVersion":"1","message":null}"#,
            r#"{"event":"synced","namespace":null,"name":null,"uid":null,"resourceVersion":null,"message":null}"#,
        ]
    );
    following.script.wait(3);
    let script = following.end();
    assert_eq!(script.asked(), ["stream", "list limit=500", "watch rv=5"]);
}

fn a_streaming_list_is_taken_when_it_is_served(runtime: Runtime) {
    let script = Script::new();
    let bookmark = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}"#;
    script.on(
        MAPS,
        [watch(&[event("ADDED", &object("a", 1)), event("BOOKMARK", bookmark), event("ADDED", &object("b", 10))])],
    );
    let mut following = follow(runtime, script);
    assert_eq!(following.told(3), ["added a 1", "synced", "added b 10"]);
    assert_eq!(following.end().asked(), ["stream"]);
}

fn one_byte_at_a_time_is_the_same(runtime: Runtime) {
    let script = Script::new();
    let text = list_text(5, "", &[object("naïve-完了", 1), object("b", 2)]);
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", text.len());
    let mut events = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    // Chunks are cut within an event, and within a character.
    let text_of_events =
        format!("{}\r\n\r\n{}", event("MODIFIED", &object("naïve-完了", 6)), event("DELETED", &object("b", 7)));
    for piece in text_of_events.as_bytes().chunks(7) {
        events.extend(format!("{:x}\r\n", piece.len()).into_bytes());
        events.extend_from_slice(piece);
        events.extend_from_slice(b"\r\n");
    }
    script.on(
        MAPS,
        [
            no_stream(),
            vec![Act::Trickle([head.as_bytes(), text.as_bytes()].concat())],
            vec![Act::Trickle(events), Act::Hang],
        ],
    );
    let mut following = follow(runtime, script);
    assert_eq!(following.told(5), ["added b 2", "added naïve-完了 1", "synced", "updated naïve-完了 6", "deleted b 7"]);
    following.end();
}

fn gone_in_each_form_leads_to_a_new_list_and_what_was_missed_is_told(runtime: Runtime) {
    let gone = |status: &str| watch(&[event("ERROR", status)]);
    let forms = [
        refusal("410 Gone", "Expired", "too old resource version"),
        refusal("410 Gone", "Gone", "gone"),
        answer("410 Gone", "text/plain", b"gone"),
        gone(r#"{"kind":"Status","status":"Failure","message":"too old","reason":"Expired","code":410}"#),
        gone(r#"{"kind":"Status","status":"Failure","reason":"Gone"}"#),
        gone(r#"{"kind":"Status","status":"Failure","code":410}"#),
    ];
    for (index, form) in forms.into_iter().enumerate() {
        let script = Script::new();
        script.on(
            MAPS,
            [
                no_stream(),
                list(5, &[object("a", 1), object("b", 2)]),
                form,
                list(9, &[object("b", 2), object("c", 8)]),
                watch(&[]),
            ],
        );
        let mut following = follow(runtime, script);
        let told = following.told(6);
        let told: Vec<&String> = told.iter().filter(|line| !line.starts_with("error")).collect();
        following.script.wait(5);
        let (asked, rest) = (following.script.asked(), told.len());
        assert_eq!(asked, ["stream", "list limit=500", "watch rv=5", "list limit=500", "watch rv=9"], "form {index}");
        assert!(rest >= 5, "form {index}: {told:?}");
        assert_eq!(told[..3], ["added a 1", "added b 2", "synced"], "form {index}");
        assert!(
            told[3..].contains(&&"deleted a 1".to_owned()) && told[3..].contains(&&"added c 8".to_owned()),
            "form {index}: {told:?}"
        );
        following.end();
    }
}

fn a_page_that_has_expired_is_no_half_list(runtime: Runtime) {
    let script = Script::new();
    script.on(
        MAPS,
        [
            no_stream(),
            body(&list_text(5, "c1", &[object("a", 1)])),
            refusal("410 Gone", "Expired", "the provided continue parameter is too old"),
            list(7, &[object("a", 1), object("b", 6)]),
            watch(&[]),
        ],
    );
    let mut following = follow(runtime, script);
    let mut told = Vec::new();
    while told.last().is_none_or(|line| line != "synced") {
        told.extend(following.told(1));
    }
    told.retain(|line| !line.starts_with("error"));
    assert_eq!(told, ["added a 1", "added b 6", "synced"]);
    following.script.wait(5);
    let asked = following.end().asked();
    assert_eq!(asked[..3], ["stream", "list limit=500", "list limit=500 continue=c1"]);
    assert_eq!(asked[4], "watch rv=7");
}

fn sparse_bodies_are_read_as_what_they_are(runtime: Runtime) {
    let script = Script::new();
    let sparse = r#"{"kind":"ConfigMapList","metadata":{"resourceVersion":"5","continue":null},"items":null}"#;
    let bookmark = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"7","creationTimestamp":null,"annotations":null},"data":null}"#;
    script.on(
        MAPS,
        [
            no_stream(),
            body(sparse),
            short_watch(&["\n".to_owned(), event("BOOKMARK", bookmark), event("BOOKMARK", r#"{"metadata":null}"#)]),
            watch(&[event("ADDED", &object("a", 8)), event("NOVEL", "{}"), event("ADDED", &object("b", 9))]),
        ],
    );
    let mut following = follow(runtime, script);
    assert_eq!(following.told(3), ["synced", "added a 8", "added b 9"]);
    assert_eq!(following.end().asked(), ["stream", "list limit=500", "watch rv=5", "watch rv=7"]);
}

fn what_is_no_answer_is_told_and_tried_again(runtime: Runtime) {
    let forms: [(Vec<Act>, &str); 5] = [
        (answer("503 Service Unavailable", "text/html", b"<html>busy</html>"), "HTTP 503 with an HTML page"),
        (answer("200 OK", "text/html", b"<html>log in</html>"), "HTTP 200 with an HTML page"),
        (answer("500 Internal Server Error", "text/plain", b""), "HTTP 500 with an empty body"),
        (
            answer("500 Internal Server Error", "application/json", b"\xff\xfe{"),
            "HTTP 500 with a body that is not UTF-8",
        ),
        (
            answer("200 OK", "application/json", b"{\"kind\":\"ConfigMapList\",\"items\":[{"),
            "HTTP 200 with a truncated body",
        ),
    ];
    for (form, message) in forms {
        let script = Script::new();
        script.on(MAPS, [no_stream(), form, list(5, &[object("a", 1)]), watch(&[])]);
        let mut following = follow(runtime, script);
        let told = following.told(3);
        assert!(told[0].starts_with(&format!("error {message}")), "{message}: {told:?}");
        assert_eq!(told[1..], ["added a 1", "synced"], "{message}");
        following.end();
    }
}

fn a_server_that_asks_to_wait_is_given_time(runtime: Runtime) {
    let script = Script::new();
    let busy = with_headers("429 Too Many Requests", "Retry-After: 2\r\n", b"slow down");
    script.on(MAPS, [no_stream(), busy, list(5, &[]), watch(&[])]);
    let mut following = follow(runtime, script);
    let told = following.told(2);
    assert!(told[0].starts_with("error ") && told[1] == "synced", "{told:?}");
    let heard = following.end().heard();
    assert!(heard[2].at - heard[1].at >= Duration::from_secs(2));
}

fn a_watch_that_is_cut_in_the_middle_goes_on_where_it_was(runtime: Runtime) {
    let script = Script::new();
    let half = chunk_bytes(&event("ADDED", &object("c", 7)));
    script.on(
        MAPS,
        [
            no_stream(),
            list(5, &[object("a", 1)]),
            vec![
                chunked(),
                chunk(&event("ADDED", &object("b", 6))),
                Act::Write(half[..20].to_vec()),
                Act::Await("told"),
                Act::Reset,
            ],
            watch(&[event("ADDED", &object("c", 7))]),
        ],
    );
    let mut following = follow(runtime, script);
    assert_eq!(following.told(3), ["added a 1", "synced", "added b 6"]);
    following.script.open("told");
    let mut told = following.told(1);
    while told.last().is_some_and(|line| line.starts_with("error")) {
        told = following.told(1);
    }
    assert_eq!(told, ["added c 7"]);
    assert_eq!(following.end().asked(), ["stream", "list limit=500", "watch rv=5", "watch rv=6"]);
}

fn one_odd_object_is_told_and_hides_no_other(runtime: Runtime) {
    let script = Script::new();
    let odd = r#"{"metadata":{"name":"odd","namespace":"default","labels":7,"resourceVersion":"3"}}"#.to_owned();
    script.on(
        MAPS,
        [
            no_stream(),
            list(5, &[object("a", 1), "[1]".to_owned(), object("b", 2)]),
            watch(&[event("ADDED", &odd), event("ADDED", &object("c", 6))]),
        ],
    );
    let mut following = follow(runtime, script);
    let mut told = Vec::new();
    while told.last().is_none_or(|line| line != "added c 6") {
        told.extend(following.told(1));
    }
    assert!(told.iter().any(|line| line.starts_with("error")), "{told:?}");
    let rest: Vec<_> = told.iter().filter(|line| !line.starts_with("error") && !line.contains("odd")).collect();
    assert_eq!(rest, ["added a 1", "added b 2", "synced", "added c 6"], "{told:?}");
    following.end();
}

fn a_reader_who_goes_away_ends_it_quietly(runtime: Runtime) {
    let script = Script::new();
    script.on(
        MAPS,
        [
            no_stream(),
            list(5, &[object("a", 1)]),
            vec![chunked(), Act::Await("deaf"), chunk(&event("ADDED", &object("b", 6))), Act::Hang],
        ],
    );
    let home = Home::plain(runtime, &script.url);
    let mut child = home.program(&["follow", "cm"]).spawn().unwrap();
    let mut reader = stdout(&mut child);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert_eq!(tell(&line), "added a 1");
    script.wait(3);
    drop(reader);
    script.open("deaf");
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((child.wait().unwrap().code(), stderr.as_str()), (Some(0), ""));
}

fn sigint_ends_it_as_well(runtime: Runtime) {
    let script = Script::new();
    script.on(MAPS, [no_stream(), list(5, &[]), watch(&[])]);
    let mut following = follow(runtime, script);
    assert_eq!(following.told(1), ["synced"]);
    following.running.signal("INT");
    assert_eq!(following.running.end().code, Some(0));
}

fn get(runtime: Runtime, script: &Script, arguments: &[&str]) -> Ended {
    let home = Home::plain(runtime, &script.url);
    home.coil(&[&["get", "configmaps"], arguments].concat())
}

pub(crate) fn printed(stdout: &str) -> Ended {
    Ended { code: Some(0), stdout: stdout.to_owned(), stderr: String::new() }
}

pub(crate) fn table(token: &str, rows: &[&str]) -> Vec<Act> {
    body(&table_text(token, rows))
}

pub(crate) fn table_text(token: &str, rows: &[&str]) -> String {
    let row = |name: &&str| json!({"cells": [name, "1"], "object": {"metadata": {"name": name}}});
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": "5", "continue": token},
        "columnDefinitions": [{"name": "Name", "type": "string"}, {"name": "Data", "type": "string"}],
        "rows": rows.iter().map(row).collect::<Vec<_>>(),
    })
    .to_string()
}

fn pages_are_one_table_and_an_expired_one_starts_it_anew(runtime: Runtime) {
    let script = Script::new();
    script.on(MAPS, [table("c1", &["a"]), table("c2", &["b"]), table("", &["c"])]);
    assert_eq!(get(runtime, &script, &["--chunk-size=1"]), printed("NAME   DATA\na      1\nb      1\nc      1\n"));
    assert_eq!(script.asked(), ["list limit=1", "list limit=1 continue=c1", "list limit=1 continue=c2"]);

    let script = Script::new();
    script.on(MAPS, [table("c1", &["a"]), refusal("410 Gone", "Expired", "too old"), table("", &["b"])]);
    assert_eq!(get(runtime, &script, &[]), printed("NAME   DATA\nb      1\n"));
    assert_eq!(script.asked(), ["list limit=500", "list limit=500 continue=c1", "list"]);
}

fn a_table_in_single_bytes_is_the_same(runtime: Runtime) {
    let script = Script::new();
    let mut bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for piece in table_text("", &["naïve-完了"]).as_bytes().chunks(5) {
        bytes.extend(format!("{:x}\r\n", piece.len()).into_bytes());
        bytes.extend_from_slice(piece);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    script.on(MAPS, [vec![Act::Trickle(bytes)]]);
    assert_eq!(get(runtime, &script, &[]), printed("NAME       DATA\nnaïve-完了   1\n"));
}

/// A gzip file whose content is stored as it is.
fn gzipped(content: &[u8]) -> Vec<u8> {
    let checksum = !content.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| if sum & 1 == 1 { (sum >> 1) ^ 0xEDB8_8320 } else { sum >> 1 })
    });
    let length = u16::try_from(content.len()).unwrap();
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    file.extend_from_slice(&length.to_le_bytes());
    file.extend_from_slice(&(!length).to_le_bytes());
    file.extend_from_slice(content);
    file.extend_from_slice(&checksum.to_le_bytes());
    file.extend_from_slice(&u32::from(length).to_le_bytes());
    file
}

fn compressed_answers_are_read(runtime: Runtime) {
    let script = Script::new();
    let body = gzipped(table_text("", &["a"]).as_bytes());
    script.on(MAPS, [with_headers("200 OK", "Content-Type: application/json\r\nContent-Encoding: gzip\r\n", &body)]);
    assert_eq!(get(runtime, &script, &[]), printed("NAME   DATA\na      1\n"));
}

fn warnings_of_the_server_go_to_stderr(runtime: Runtime) {
    let script = Script::new();
    let headers = "Warning: 299 - \"v1 Novel is deprecated\"\r\nWarning: 299 - \"twice\", 299 - \"thrice\"\r\n";
    script.on(MAPS, [with_headers("200 OK", headers, table_text("", &["a"]).as_bytes())]);
    let ended = get(runtime, &script, &[]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "NAME   DATA\na      1\n"));
    assert_eq!(ended.stderr, "Warning: v1 Novel is deprecated\nWarning: twice\nWarning: thrice\n");
}

fn reads_are_tried_again_while_the_time_lasts(runtime: Runtime) {
    for busy in [
        answer("503 Service Unavailable", "text/html", b"<html>busy</html>"),
        with_headers("429 Too Many Requests", "Retry-After: 1\r\n", b""),
        vec![Act::Reset],
    ] {
        let script = Script::new();
        script.on(MAPS, [busy, table("", &["a"])]);
        assert_eq!(get(runtime, &script, &[]), printed("NAME   DATA\na      1\n"));
        assert_eq!(script.asked().len(), 2);
    }
}

fn what_stays_wrong_is_told_in_one_line(runtime: Runtime) {
    for (form, message) in [
        (answer("200 OK", "text/html", b"<html>log in</html>"), "HTTP 200 with an HTML page"),
        (answer("200 OK", "application/json", b"\xff{}"), "HTTP 200 with a body that is not UTF-8"),
        (answer("200 OK", "application/json", b"{\"kind\":\"Tab"), "HTTP 200 with a truncated body"),
        (answer("200 OK", "application/json", b""), "HTTP 200 with an empty body"),
        (refusal("403 Forbidden", "Forbidden", "configmaps is forbidden"), "configmaps is forbidden (Forbidden) [403]"),
        (vec![Act::Hang], "no answer within 2s"),
    ] {
        let script = Script::new();
        script.on(MAPS, [form]);
        let ended = get(runtime, &script, &["--timeout", "2s"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{message}: {ended:?}");
        assert!(ended.stderr.starts_with(&format!("error: {message}")), "{message}: {ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    }
}

fn nothing_to_connect_to_is_told_in_one_line(runtime: Runtime) {
    let ended = Home::plain(runtime, "http://127.0.0.1:1").coil(&["get", "cm", "--timeout=1s"]);
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.lines().count()), (Some(1), "", 1), "{ended:?}");
    assert!(ended.stderr.starts_with("error: "), "{ended:?}");
}

fn verbose_tells_requests_and_what_is_tried_again(runtime: Runtime) {
    let script = Script::new();
    script.on(MAPS, [with_headers("429 Too Many Requests", "Retry-After: 1\r\n", b""), table("", &["a"])]);
    let ended = get(runtime, &script, &["-v"]);
    let lines: Vec<&str> =
        ended.stderr.lines().filter(|line| !line.contains("/api ") && !line.contains("/apis ")).collect();
    assert_eq!(lines.len(), 3, "{ended:?}");
    assert!(lines[0].starts_with(&format!("GET {MAPS}?limit=500 429 ")), "{ended:?}");
    assert!(lines[1].contains("retrying") && lines[1].contains("after=1."), "{ended:?}");
    assert!(lines[2].starts_with(&format!("GET {MAPS}?limit=500 200 ")), "{ended:?}");
}

fn a_list_without_tables_and_without_items_is_empty(runtime: Runtime) {
    let script = Script::new();
    script.on(MAPS, [body(r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":null,"items":null}"#)]);
    let nothing =
        Ended { code: Some(0), stdout: String::new(), stderr: "No resources found in default namespace.\n".into() };
    assert_eq!(get(runtime, &script, &[]), nothing);
    let value: Value = serde_json::from_str(&get(runtime, &script, &["-o", "json"]).stdout).unwrap();
    assert_eq!(value, json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": []}));
}

fn a_watched_table_tells_changes_and_finds_those_it_has_missed(runtime: Runtime) {
    let row = |name: &str, version: &str| {
        json!({"kind": "Table", "rows": [{"cells": [name, version], "object": {"metadata": {"name": name, "resourceVersion": version}}}]})
            .to_string()
    };
    let listed = |rows: &[(&str, &str)], version: &str| {
        let rows: Vec<Value> = rows
            .iter()
            .map(|(name, version)| json!({"cells": [name, version], "object": {"metadata": {"name": name, "resourceVersion": version}}}))
            .collect();
        let columns = json!([{"name": "Name"}, {"name": "Data"}]);
        body(&json!({"kind": "Table", "metadata": {"resourceVersion": version}, "columnDefinitions": columns, "rows": rows}).to_string())
    };
    let script = Script::new();
    script.on(
        MAPS,
        [
            listed(&[("a", "1"), ("b", "2")], "5"),
            short_watch(&[event("MODIFIED", &row("a", "6"))]),
            watch(&[event("ERROR", r#"{"kind":"Status","reason":"Expired","code":410}"#)]),
            listed(&[("a", "6"), ("b", "8")], "9"),
            watch(&[event("ADDED", &row("long-name", "10"))]),
        ],
    );
    let home = Home::plain(runtime, &script.url);
    let mut running = home.start(&["get", "cm", "-w"]);
    assert_eq!(running.lines(6), ["NAME   DATA", "a      1", "b      2", "a      6", "b      8", "long-name   10"]);
    running.signal("KILL");
    running.end();
    assert_eq!(script.asked(), ["list limit=500", "watch rv=5", "watch rv=6", "list limit=500", "watch rv=9"]);
}

fn a_group_that_cannot_be_had_hides_no_other(runtime: Runtime) {
    let script = Script::new();
    let stale = r#"{"metadata":{"name":"broken.example.com"},"versions":[{"version":"v1","freshness":"Stale"}]}"#;
    script.on("/apis", [body(&GROUPS.replace("[]", &format!("[{stale}]")))]);
    script.on("/apis/broken.example.com/v1", [answer("503 Service Unavailable", "text/plain", b"service unavailable")]);
    script.on(MAPS, [table("", &["a"])]);
    assert_eq!(get(runtime, &script, &[]), printed("NAME   DATA\na      1\n"));
    let home = Home::plain(runtime, &script.url);
    let known = home.coil(&["api-resources", "-o", "name"]);
    assert_eq!(
        (known.code, known.stdout.as_str(), known.stderr.lines().count()),
        (Some(1), "configmaps\n", 1),
        "{known:?}"
    );
    let unknown = home.coil(&["get", "novels"]);
    assert_eq!(
        (unknown.code, unknown.stdout.as_str(), unknown.stderr.lines().count()),
        (Some(1), "", 1),
        "{unknown:?}"
    );
    for ended in [known, unknown] {
        assert!(ended.stderr.contains("broken.example.com/v1"), "{ended:?}");
    }
}
