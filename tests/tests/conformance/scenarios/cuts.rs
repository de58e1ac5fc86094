//! Answers that come in pieces, or not to their end: cut at every byte.

use std::collections::BTreeMap;

use bytes::Bytes;
use cloudcoil_runtime::core::NetworkErrorKind;
use cloudcoil_runtime::{Error, Resource};
use serde_json::{Value, json};

use super::{Events, stored, told};
use crate::scripted::{Answer, Framing, Play, Script, Seen, Then};
use crate::stage::{Place, Stage, scenarios};
use crate::world::op::{maps, pods};

scenarios! {
    SCRIPT {
        a_list_may_come_byte_by_byte,
        a_list_may_be_cut_at_every_byte,
        a_list_that_breaks_off_at_any_byte_is_an_error,
        a_watch_may_come_byte_by_byte,
        a_watch_may_be_cut_at_every_byte,
        a_watch_that_breaks_off_at_any_byte_loses_and_doubles_nothing,
        an_answer_without_a_length_ends_with_its_connection,
        a_log_may_be_cut_at_every_byte,
        a_followed_log_may_be_cut_at_every_byte,
    }
    CONNECTIONS {
        heads_and_chunks_may_be_cut_at_every_byte,
        an_answer_that_breaks_off_anywhere_is_an_error,
        what_is_no_http_is_a_failure_of_the_protocol,
    }
}

/// As small as can be, with a character of several bytes: it is cut at every one of them.
fn small(name: &str, version: u32) -> Value {
    json!({"data": {"k": "→"}, "metadata": {"name": name, "resourceVersion": version.to_string()}})
}

fn list() -> Answer {
    Answer::json(&json!({"metadata": {"resourceVersion": "10"}, "items": [small("a", 5), small("b", 7)]}))
}

/// Reads a list for each number below `count`, several at once, from a server that answers by number.
fn lists(
    stage: &Stage,
    count: usize,
    answer: impl Fn(usize) -> Answer + Send + 'static,
) -> Vec<Result<Vec<String>, Error>> {
    let play = stage.play(Box::new(move |seen| answer(number(seen))));
    let numbers: Vec<_> = (0..count).collect();
    let read = |at: &usize| maps().page().labels(&format!("cut={at}"));
    let replies = numbers.chunks(AT_ONCE).flat_map(|chunk| play.all(chunk.iter().map(read)));
    replies.map(|reply| reply.map(|reply| reply.names())).collect()
}

/// What a request is for.
fn number(seen: &Seen) -> usize {
    let selector = seen.parameter("labelSelector").unwrap();
    selector.rsplit(['=', 'D']).next().unwrap().parse().unwrap()
}

fn a_list_may_come_byte_by_byte(stage: &Stage) {
    let framings = [Framing::Length, Framing::Chunked, Framing::UntilClose];
    for read in lists(stage, 3, move |at| list().framed(framings[at]).in_pieces_of(1)) {
        assert_eq!(read.unwrap(), ["a", "b"]);
    }
}

fn a_list_may_be_cut_at_every_byte(stage: &Stage) {
    for (at, read) in lists(stage, list().body().len(), |at| list().chunked().cut_at(at)).into_iter().enumerate() {
        assert_eq!(read.as_deref(), Ok(&["a".to_owned(), "b".to_owned()][..]), "cut at {at}");
    }
}

fn a_list_that_breaks_off_at_any_byte_is_an_error(stage: &Stage) {
    let length = list().body().len();
    for framing in [Framing::Length, Framing::Chunked] {
        for (at, read) in lists(stage, length, move |at| list().framed(framing).broken_off_at(at)).iter().enumerate() {
            let Err(Error::Network(error)) = read else { panic!("broken off at {at}: {read:?}") };
            assert_eq!(error.kind, NetworkErrorKind::Lost, "broken off at {at}: {error:?}");
        }
    }
    for (at, read) in lists(stage, length, |at| list().framed(Framing::UntilClose).broken_off_at(at)).iter().enumerate()
    {
        let Err(Error::Body(error)) = read else { panic!("broken off at {at}: {read:?}") };
        let problem = if at == 0 { "an empty body" } else { "a truncated body" };
        assert_eq!((error.code, error.problem.to_string().as_str()), (200, problem), "broken off at {at}");
    }
}

/// What happens to the objects of [`list`], from version 10 on.
fn changes() -> Vec<(u32, Value)> {
    let event = |kind: &str, name, version| (version, json!({"type": kind, "object": small(name, version)}));
    vec![
        event("MODIFIED", "a", 11),
        event("DELETED", "b", 12),
        (14, json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "14"}}})),
        event("ADDED", "c", 15),
    ]
}

const TOLD: [&str; 7] =
    ["restarted", "listed a 5", "listed b 7", "synced", "applied a 11", "deleted b 12", "applied c 15"];

/// The changes after a version.
fn since(version: &str) -> Answer {
    let version: u32 = version.parse().unwrap();
    let changes: Vec<_> = changes().into_iter().filter(|(at, _)| *at > version).map(|(_, change)| change).collect();
    Answer::watch(&changes)
}

/// A server whose first watch for a number is answered by `first`; all others are good.
fn watched(first: impl Fn(usize, Answer) -> Answer + Send + 'static) -> Script {
    let mut watches = BTreeMap::<usize, usize>::new();
    Box::new(move |seen| {
        if !seen.is_watch() {
            return list();
        }
        let (number, answer) = (number(seen), since(seen.version().unwrap()));
        let count = watches.entry(number).or_default();
        *count += 1;
        if *count == 1 { first(number, answer) } else { answer }
    })
}

fn watches(play: &Play, numbers: &[usize]) -> Vec<(usize, Events)> {
    let watch = |at: &usize| (*at, play.watch(maps().follow().in_pages_of(500).labels(&format!("cut={at}"))));
    numbers.iter().map(watch).collect()
}

fn a_watch_may_come_byte_by_byte(stage: &Stage) {
    let play = stage.play(watched(|_, answer| answer.in_pieces_of(1)));
    for (_, events) in watches(&play, &[0]) {
        assert_eq!(told(&events, TOLD.len()), TOLD);
    }
}

fn a_watch_may_be_cut_at_every_byte(stage: &Stage) {
    let play = stage.play(watched(|at, answer| answer.cut_at(at)));
    let numbers: Vec<_> = (0..since("10").body().len()).collect();
    for chunk in numbers.chunks(AT_ONCE) {
        for (at, events) in watches(&play, chunk) {
            assert_eq!(told(&events, TOLD.len()), TOLD, "cut at {at}");
        }
    }
    assert_eq!(play.seen().len(), 2 * numbers.len(), "one list and one watch each");
}

fn a_watch_that_breaks_off_at_any_byte_loses_and_doubles_nothing(stage: &Stage) {
    let play = stage.play(watched(|number, answer| {
        let then = [Then::Close, Then::Reset, Then::End][number % 3];
        answer.broken_off_at(number / 3).then(then)
    }));
    // Every end at every byte, or over sockets one of the ends, in turn.
    let length = since("10").body().len();
    let numbers: Vec<_> = match stage.place {
        Place::Simulated => (0..3 * length).collect(),
        _ => (0..length).map(|at| 3 * at + at % 3).collect(),
    };
    for chunk in numbers.chunks(4 * AT_ONCE) {
        for (number, events) in watches(&play, chunk) {
            assert_eq!(told(&events, TOLD.len()), TOLD, "broken off at {}", number / 3);
        }
    }
}

fn an_answer_without_a_length_ends_with_its_connection(stage: &Stage) {
    let play = stage.play(Box::new(|_| Answer::json(&stored("a", 5)).framed(Framing::UntilClose).then(Then::Close)));
    assert_eq!(play.must(maps().get("a")).object().name(), "a");
}

const LOG: &str = "one\nzwei ü\r\n\n完了\nlast";

fn a_log_may_be_cut_at_every_byte(stage: &Stage) {
    let mut at = 0..LOG.len();
    let play = stage.play(Box::new(move |_| Answer::new(200, "text/plain", LOG).chunked().cut_at(at.next().unwrap())));
    for at in 0..LOG.len() {
        assert_eq!(play.must(pods().log("a")).text(), LOG, "cut at {at}");
    }
}

fn a_followed_log_may_be_cut_at_every_byte(stage: &Stage) {
    let mut at = 0..LOG.len();
    let play = stage.play(Box::new(move |_| Answer::new(200, "text/plain", LOG).chunked().cut_at(at.next().unwrap())));
    for at in 0..LOG.len() {
        let lines = play.lines(pods().log("a"));
        let all: Vec<_> = std::iter::from_fn(|| lines.next()).map(Result::unwrap).collect();
        assert_eq!(all, ["one", "zwei ü", "", "完了", "last"], "cut at {at}");
    }
}

/// A whole answer as bytes, with and without chunks.
fn raw() -> [Vec<u8>; 2] {
    let body = stored("a", 5).to_string();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
    let plain = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes();
    let chunk = |bytes: &[u8]| [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
    let chunks: Vec<u8> = body.as_bytes().chunks(50).flat_map(chunk).collect();
    [plain, [format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes(), &chunks, b"0\r\n\r\n"].concat()]
}

fn heads_and_chunks_may_be_cut_at_every_byte(stage: &Stage) {
    for answer in raw() {
        let length = answer.len();
        let answer = Bytes::from(answer);
        // The last one comes byte by byte.
        let pieces = move |at: usize| match at {
            0 => (0..length).map(|at| answer.slice(at..=at)).collect(),
            at => vec![answer.slice(..at), answer.slice(at..)],
        };
        let mut at = 0..length;
        let play = stage.play(Box::new(move |_| Answer::raw(pieces(at.next().unwrap())).then(Then::End)));
        for at in 0..length {
            assert_eq!(play.must(maps().get("a")).value(), stored("a", 5), "cut at {at}");
        }
        assert!(play.seen().iter().all(|seen| seen.connection == 0), "one connection does for all of them");
    }
}

fn an_answer_that_breaks_off_anywhere_is_an_error(stage: &Stage) {
    for answer in raw() {
        let answer = Bytes::from(answer);
        // The line after the last chunk says nothing: ureq takes the answer for whole without it, and the others do not.
        let length = if answer.ends_with(b"0\r\n\r\n") { answer.len() - 2 } else { answer.len() };
        let mut at = 0..length;
        let play = stage.play(Box::new(move |_| Answer::raw([answer.slice(..at.next().unwrap())])));
        for at in 0..length {
            let Error::Network(error) = play.fail(maps().get("a")) else { panic!("broken off at {at}") };
            assert_eq!(error.kind, NetworkErrorKind::Lost, "broken off at {at}: {error:?}");
        }
    }
}

fn what_is_no_http_is_a_failure_of_the_protocol(stage: &Stage) {
    let play = stage.play(Box::new(|_| Answer::raw([Bytes::from_static(b"SSH-2.0-OpenSSH\r\n\r\n")])));
    let Error::Network(error) = play.fail(maps().get("a")) else { panic!("no failure of the network") };
    assert_eq!(error.kind, NetworkErrorKind::Protocol, "{error:?}");
}

/// How many are under way at once.
const AT_ONCE: usize = 16;
