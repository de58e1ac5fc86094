//! Answers in gzip.

use std::io::Write as _;

use bytes::Bytes;
use cloudcoil_runtime::core::NetworkErrorKind;
use cloudcoil_runtime::core::error::BodyProblem;
use cloudcoil_runtime::{Error, Resource};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use super::{event, stored, told};
use crate::scripted::{Answer, Framing, Play, Then, in_order};
use crate::stage::{Stage, scenarios};
use crate::world::op::maps;

scenarios! {
    SCRIPT {
        compressed_answers_are_asked_for_and_read,
        a_compressed_answer_may_come_byte_by_byte,
        a_compressed_answer_may_be_cut_at_every_byte,
        a_compressed_answer_that_breaks_off_is_an_error,
        refusals_may_be_compressed,
        several_members_are_one_body,
        what_fails_its_own_check_is_an_error,
        what_follows_the_last_member_is_an_error_unless_it_is_nothing,
        a_watch_tells_every_event_as_it_is_flushed,
        a_compressed_watch_that_breaks_off_resumes,
        what_is_not_gzip_is_left_alone,
    }
    CONNECTIONS {
        a_connection_serves_on_after_a_compressed_answer,
    }
    PLAIN {
        compression_can_be_turned_off,
        a_small_body_that_becomes_large_is_given_up,
    }
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

/// A body as it is, said to be in gzip.
fn encoded(body: impl Into<Bytes>) -> Answer {
    Answer::new(200, "application/json", body).header("content-encoding", "gzip")
}

fn compressed() -> Answer {
    encoded(gzip(&plain()))
}

fn plain() -> Vec<u8> {
    stored("a", 5).to_string().into_bytes()
}

#[track_caller]
fn assert_read(play: &Play, about: &str) {
    assert_eq!(play.perform(maps().get("a")).map(|reply| reply.value()), Ok(stored("a", 5)), "{about}");
}

#[track_caller]
fn assert_malformed(play: &Play, about: &str) {
    match play.fail(maps().get("a")) {
        Error::Network(error) if error.kind == NetworkErrorKind::Protocol => {}
        other => panic!("{about}: {other:?}"),
    }
}

fn compressed_answers_are_asked_for_and_read(stage: &Stage) {
    let list = Answer::list("10", &[stored("a", 5), stored("b", 7)]);
    let list = encoded(gzip(&list.body()));
    let answers = [Framing::Length, Framing::Chunked, Framing::UntilClose].map(|framing| compressed().framed(framing));
    let play = stage.play(in_order(answers.into_iter().chain([list, compressed().header("content-encoding", "GZip")])));
    for framing in ["with a length", "in chunks", "until its connection ends"] {
        assert_read(&play, framing);
    }
    assert_eq!(play.must(maps().list()).names(), ["a", "b"]);
    assert_read(&play, "in other letters");
    assert!(play.seen().iter().all(|seen| seen.header("accept-encoding") == Some("gzip")));
}

fn a_compressed_answer_may_come_byte_by_byte(stage: &Stage) {
    let answers = [Framing::Length, Framing::Chunked, Framing::UntilClose];
    let play = stage.play(in_order(answers.map(|framing| compressed().framed(framing).in_pieces_of(1))));
    for framing in answers {
        assert_read(&play, &format!("{framing:?}"));
    }
}

fn a_compressed_answer_may_be_cut_at_every_byte(stage: &Stage) {
    let length = compressed().body().len();
    let play = stage.play(in_order((0..length).map(|at| compressed().chunked().cut_at(at))));
    for at in 0..length {
        assert_read(&play, &format!("cut at {at}"));
    }
}

fn a_compressed_answer_that_breaks_off_is_an_error(stage: &Stage) {
    let body = compressed().body();
    let ended = |at: usize| encoded(body.slice(..at)).chunked();
    let play = stage.play(in_order((0..body.len()).map(ended)));
    // A body without a byte is nothing, compressed or not.
    let Error::Body(error) = play.fail(maps().get("a")) else { panic!("a body?") };
    assert_eq!((error.code, error.problem), (200, BodyProblem::Empty));
    for at in 1..body.len() {
        assert_malformed(&play, &format!("ended at {at}"));
    }
    let cut = (0..body.len()).step_by(20).map(|at| compressed().broken_off_at(at));
    let play = stage.play(in_order(cut.clone()));
    for at in cut.map(|answer| answer.body().len()) {
        let Error::Network(error) = play.fail(maps().get("a")) else { panic!("broken off at {at}") };
        assert_eq!(error.kind, NetworkErrorKind::Lost, "broken off at {at}: {error:?}");
    }
}

fn a_connection_serves_on_after_a_compressed_answer(stage: &Stage) {
    let play = stage.play(Box::new(|_| compressed()));
    for _ in 0..5 {
        assert_read(&play, "one after the other");
    }
    assert!(play.seen().iter().all(|seen| seen.connection == 0));
}

fn refusals_may_be_compressed(stage: &Stage) {
    let refusal = Answer::refusal(403, "Forbidden", "no, because");
    let body = gzip(&refusal.body());
    let play = stage.play(in_order([Answer { status: 403, ..encoded(body) }]));
    let error = play.fail(maps().get("a"));
    assert_eq!(error.status().map(|status| (status.code, status.message.as_str())), Some((403, "no, because")));
}

fn several_members_are_one_body(stage: &Stage) {
    let plain = plain();
    let members = |size: usize| plain.chunks(size).flat_map(gzip).collect::<Vec<_>>();
    let with_empty = [gzip(b""), gzip(&plain), gzip(b"")].concat();
    let play = stage.play(in_order([members(100), members(1), with_empty].map(encoded)));
    for about in ["of 100 bytes", "of one byte", "with empty ones"] {
        assert_read(&play, about);
    }
}

fn what_fails_its_own_check_is_an_error(stage: &Stage) {
    let good = gzip(&plain());
    // The last eight bytes are a checksum and a length; the first two say what this is.
    let wrong = (good.len() - 8..good.len()).chain([0, 1, 2, 12]).map(|at| {
        let mut wrong = good.clone();
        wrong[at] ^= 0x55;
        (at, wrong)
    });
    let wrong: Vec<_> = wrong.collect();
    let play = stage.play(in_order(wrong.iter().map(|(_, body)| encoded(body.clone())).collect::<Vec<_>>()));
    for (at, _) in wrong {
        assert_malformed(&play, &format!("wrong at {at}"));
    }
}

fn what_follows_the_last_member_is_an_error_unless_it_is_nothing(stage: &Stage) {
    let with = |rest: &[u8]| encoded([&gzip(&plain())[..], rest].concat());
    let play = stage.play(in_order([with(&[0; 512]), with(b"garbage"), with(&[0x1f]), with(&[0x1f, 0x8b, 8])]));
    assert_read(&play, "zeros fill a block");
    for about in ["garbage", "half a member", "more of a member"] {
        assert_malformed(&play, about);
    }
}

/// A watch in gzip, with a flush behind every event.
fn flushed(events: &[Value]) -> Answer {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let mut pieces = Vec::new();
    for event in events {
        writeln!(encoder, "{event}").unwrap();
        encoder.flush().unwrap();
        pieces.push(Bytes::from(std::mem::take(encoder.get_mut())));
    }
    Answer { pieces, ..Answer::watch(&[]) }.header("content-encoding", "gzip")
}

fn list() -> Answer {
    encoded(gzip(&Answer::list("10", &[stored("a", 5)]).body()))
}

fn changes() -> Vec<Value> {
    vec![event("MODIFIED", "a", 11), event("ADDED", "b", 12), event("DELETED", "a", 13)]
}

const TOLD: [&str; 6] = ["restarted", "listed a 5", "synced", "applied a 11", "applied b 12", "deleted a 13"];

fn a_watch_tells_every_event_as_it_is_flushed(stage: &Stage) {
    let play = stage.play(in_order([list(), flushed(&changes())]));
    let events = play.watch(maps().follow().in_pages_of(500));
    assert_eq!(told(&events, TOLD.len()), TOLD, "although the stream goes on");
    let play = stage.play(in_order([list(), flushed(&changes()).in_pieces_of(1)]));
    let events = play.watch(maps().follow().in_pages_of(500));
    assert_eq!(told(&events, TOLD.len()), TOLD, "byte by byte");
}

fn a_compressed_watch_that_breaks_off_resumes(stage: &Stage) {
    for then in [Then::End, Then::Close, Then::Reset] {
        let first = flushed(&changes()[..1]).then(then);
        let play = stage.play(in_order([list(), first, flushed(&changes()[1..])]));
        let events = play.watch(maps().follow().in_pages_of(500));
        assert_eq!(told(&events, TOLD.len()), TOLD);
        assert_eq!(play.seen()[2].version(), Some("11"));
    }
}

fn what_is_not_gzip_is_left_alone(stage: &Stage) {
    let plainly = |encoding| Answer::json(&stored("a", 5)).header("content-encoding", encoding);
    let play = stage.play(in_order([
        plainly("identity"),
        Answer::new(200, "application/json", vec![0x8b, 0xff, 3]).header("content-encoding", "br"),
    ]));
    assert_read(&play, "identity is no encoding");
    let Error::Body(error) = play.fail(maps().get("a")) else { panic!("who would know that encoding?") };
    assert_eq!((error.code, error.problem), (200, BodyProblem::NotUtf8));
}

fn compression_can_be_turned_off(stage: &Stage) {
    let play = stage.play_as(Box::new(|_| Answer::json(&stored("a", 5))), |config| config.disable_compression = true);
    assert_eq!(play.must(maps().get("a")).object().name(), "a");
    assert_eq!(play.seen()[0].header("accept-encoding"), None);
}

fn a_small_body_that_becomes_large_is_given_up(stage: &Stage) {
    // An event of 17 MB, where the limit is 16, and behind it others.
    let long =
        format!(r#"{{"type":"ADDED","object":{{"kind":"ConfigMap","data":{{"key":"{}"}}}}}}"#, "x".repeat(17 << 20));
    let lines: String = changes().iter().map(|change| format!("{change}\n")).collect();
    let bomb = gzip(format!("{long}\n{lines}").as_bytes());
    assert!(bomb.len() < 20_000, "{}", bomb.len());
    let watch = Answer { pieces: vec![bomb.into()], ..Answer::watch(&[]) }.header("content-encoding", "gzip");
    let play = stage.play(in_order([list(), watch]));
    let events = play.watch(maps().follow().in_pages_of(500));
    assert_eq!(told(&events, 3), TOLD[..3]);
    let error = events.next().unwrap().unwrap_err();
    assert!(matches!(&error, Error::Decode(error) if error.message.contains("longer than the limit")), "{error:?}");
    assert_eq!(told(&events, 3), TOLD[3..], "the others are no worse for it");
}
