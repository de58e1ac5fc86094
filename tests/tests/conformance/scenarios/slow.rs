//! Servers that take their time.

use std::io::Write as _;
use std::net::TcpListener;
use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use cloudcoil_runtime::Error;

use super::{event, map, stored, told};
use crate::scripted::{Answer, Framing, Then, in_order, listen, request};
use crate::servers::config_of;
use crate::stage::{Stage, scenarios};
use crate::world::op::maps;

scenarios! {
    SCRIPT {
        a_silent_server_is_given_up,
        a_body_that_stops_is_given_up,
        a_body_that_trickles_beyond_the_limit_is_given_up,
        the_time_limit_is_for_all_pages_of_a_call_alone,
        a_watch_is_not_held_to_the_time_limit_of_calls,
        a_call_that_is_given_up_leaves_the_others_alone,
    }
    CONNECTIONS {
        a_head_that_stops_is_given_up,
        a_server_that_closes_its_side_after_the_answer_has_answered,
        what_is_announced_before_the_answer_is_passed_over,
    }
    SOCKETS {
        a_server_that_never_shakes_hands_is_given_up,
        a_server_that_does_not_read_is_given_up,
        a_proxy_that_never_answers_is_given_up,
        a_server_that_resets_at_once_is_a_lost_connection,
    }
    VIRTUAL {
        a_slow_answer_is_waited_for,
        a_slow_watch_is_heard_to_its_end,
        a_half_open_watch_is_noticed_and_resumed,
        a_half_open_list_of_a_watch_is_noticed,
    }
}

const LIMIT: Duration = Duration::from_millis(200);

fn a_silent_server_is_given_up(stage: &Stage) {
    let play = stage.play_with(in_order([]), &stage.settings().timeout(LIMIT));
    assert_eq!(play.fail(maps().get("a")), Error::TimedOut(LIMIT));
    assert_eq!(play.wait_for_left(1), [0]);
}

fn a_head_that_stops_is_given_up(stage: &Stage) {
    let heads = ["H", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"];
    let answers = heads.map(|head| Answer::raw([Bytes::from(head)]).then(Then::Silence));
    let play = stage.play_with(in_order(answers), &stage.settings().once().timeout(LIMIT));
    for (number, head) in heads.iter().enumerate() {
        assert_eq!(play.fail(maps().get("a")), Error::TimedOut(LIMIT), "{head}");
        assert_eq!(play.wait_for_left(number + 1).len(), number + 1);
    }
}

fn a_body_that_stops_is_given_up(stage: &Stage) {
    let framings = [Framing::Length, Framing::Chunked, Framing::UntilClose];
    let stops = |framing| Answer::json(&stored("a", 5)).framed(framing).broken_off_at(100).then(Then::Silence);
    let play = stage.play_with(in_order(framings.map(stops)), &stage.settings().once().timeout(LIMIT));
    for (number, framing) in framings.iter().enumerate() {
        assert_eq!(play.fail(maps().get("a")), Error::TimedOut(LIMIT), "{framing:?}");
        assert_eq!(play.wait_for_left(number + 1)[number], number, "its connection is closed");
    }
}

fn a_body_that_trickles_beyond_the_limit_is_given_up(stage: &Stage) {
    let trickle = Answer::json(&stored("a", 5)).chunked().in_pieces_of(1).pausing(Duration::from_millis(20));
    let play = stage.play_with(in_order([trickle]), &stage.settings().once().timeout(LIMIT));
    assert_eq!(play.fail(maps().get("a")), Error::TimedOut(LIMIT), "although there is always something coming");
    assert_eq!(play.wait_for_left(1), [0]);
}

fn the_time_limit_is_for_all_pages_of_a_call_alone(stage: &Stage) {
    let page = |name, token| Answer::page("10", &[stored(name, 5)], token);
    let answers = [page("a", "next"), Answer::silence(), page("a", "")];
    let play = stage.play_with(in_order(answers), &stage.settings().once().timeout(LIMIT));
    assert_eq!(play.fail(maps().list().limit(1)), Error::TimedOut(LIMIT));
    assert_eq!(play.must(maps().list().limit(1)).names(), ["a"]);
}

fn a_watch_is_not_held_to_the_time_limit_of_calls(stage: &Stage) {
    let changes = [event("ADDED", "b", 11), event("ADDED", "c", 12), event("ADDED", "d", 13)];
    let slow = Answer::watch(&changes).pausing(Duration::from_millis(50));
    let settings = stage.settings().once().timeout(Duration::from_millis(60));
    let play = stage.play_with(in_order([Answer::list("10", &[]), slow]), &settings);
    let events = play.watch(maps().follow().in_pages_of(500));
    assert_eq!(told(&events, 5), ["restarted", "synced", "applied b 11", "applied c 12", "applied d 13"]);
    assert_eq!(play.seen().len(), 2);
}

fn a_call_that_is_given_up_leaves_the_others_alone(stage: &Stage) {
    let play = stage.play(Box::new(|seen| match seen.path.rsplit('/').next() {
        Some("silent") => Answer::silence(),
        Some("stops") => Answer::json(&stored("a", 5)).broken_off_at(50).then(Then::Silence),
        _ => Answer::json(&stored("a", 5)),
    }));
    play.must(maps().get("a"));
    let hasty = play.with(&stage.settings().once().timeout(LIMIT));
    for name in ["silent", "stops"] {
        assert_eq!(hasty.fail(maps().get(name)), Error::TimedOut(LIMIT));
        assert_eq!(play.must(maps().get("a")).value(), stored("a", 5));
    }
    let left = play.wait_for_left(2);
    let seen = play.seen();
    let later = |seen: &&crate::scripted::Seen| seen.path.ends_with("/a");
    assert!(!left.contains(&seen.iter().rfind(later).unwrap().connection), "who was given up is not asked again");
}

fn a_server_that_closes_its_side_after_the_answer_has_answered(stage: &Stage) {
    let play = stage.play(Box::new(|seen| {
        let framing = [Framing::Length, Framing::Chunked][seen.connection % 2];
        let (whole, ending) = (Answer::json(&stored("a", 5)), Bytes::from_static(b"0\r\n\r\n"));
        match framing {
            Framing::Length => whole.then(Then::Finish),
            _ => {
                let (body, length) = (whole.body(), whole.body().len());
                let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
                Answer::raw([format!("{head}{length:x}\r\n").into(), body, "\r\n".into(), ending]).then(Then::Finish)
            }
        }
    }));
    for _ in 0..4 {
        assert_eq!(play.must(maps().get("a")).value(), stored("a", 5));
    }
}

fn what_is_announced_before_the_answer_is_passed_over(stage: &Stage) {
    let body = stored("a", 5).to_string();
    let answer =
        format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let continues = "HTTP/1.1 100 Continue\r\n\r\n".to_owned();
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".to_owned();
    let texts = [
        format!("{continues}{answer}"),
        format!("{hints}{answer}"),
        format!("{continues}{hints}HTTP/1.1 102 Processing\r\n\r\n{hints}{answer}"),
    ];
    let cut = |text: String| {
        let bytes = Bytes::from(text);
        [Answer::raw([bytes.clone()]), Answer::raw((0..bytes.len()).map(|at| bytes.slice(at..=at)).collect::<Vec<_>>())]
    };
    let answers: Vec<_> = texts.into_iter().flat_map(cut).map(|answer| answer.then(Then::End)).collect();
    let count = answers.len();
    let play = stage.play(in_order(answers));
    for number in 0..count {
        let op = if number % 2 == 0 { maps().get("a") } else { maps().create(map("a", "1")) };
        assert_eq!(play.must(op).value(), stored("a", 5), "{number}");
    }
    assert!(play.seen().iter().all(|seen| seen.connection == 0));
}

/// What a call comes to with a server that takes connections, and never does anything.
fn unanswered(stage: &Stage, adjust: impl FnOnce(String) -> cloudcoil_runtime::core::config::Config) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = adjust(listener.local_addr().unwrap().to_string());
    let world = stage.executor().connect(&config, &stage.settings().timeout(LIMIT)).unwrap();
    assert_eq!(world.fail(maps().get("a")), Error::TimedOut(LIMIT));
    let (mut stream, _) = listener.accept().unwrap();
    // All that the client has said ends with the end of its connection.
    let ended = std::io::copy(&mut stream, &mut std::io::sink());
    assert!(ended.is_ok() || ended.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset));
}

fn a_server_that_never_shakes_hands_is_given_up(stage: &Stage) {
    unanswered(stage, |address| config_of(&format!("https://{address}"), None));
}

fn a_proxy_that_never_answers_is_given_up(stage: &Stage) {
    for scheme in ["http", "socks5"] {
        unanswered(stage, |address| {
            let mut config = config_of("https://cluster.invalid", None);
            let proxy = cloudcoil_runtime::core::config::Proxy::parse(&format!("{scheme}://{address}"));
            config.proxy = Some(proxy.unwrap());
            config
        });
    }
}

fn a_server_that_does_not_read_is_given_up(stage: &Stage) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = config_of(&format!("http://{}", listener.local_addr().unwrap()), None);
    let world = stage.executor().connect(&config, &stage.settings().timeout(LIMIT)).unwrap();
    assert_eq!(world.fail(maps().create(map("a", &"x".repeat(15_000_000)))), Error::TimedOut(LIMIT));
}

fn a_server_that_resets_at_once_is_a_lost_connection(stage: &Stage) {
    let (tell, told) = mpsc::channel();
    let address = listen(move |number, mut stream| {
        let seen = request(number, &mut stream)?;
        stream.write_all(b"HTTP/1.1 200 OK\r\n")?;
        socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
        tell.send(seen).map_err(std::io::Error::other)
    });
    let world = stage.client_of(address);
    for op in [maps().get("a"), maps().create(map("a", "1"))] {
        let error = world.fail(op);
        assert!(
            matches!(&error, Error::Network(error) if error.kind == cloudcoil_runtime::core::NetworkErrorKind::Lost),
            "{error:?}"
        );
    }
    assert_eq!(told.try_iter().count(), 2, "each was sent once");
}

fn a_slow_answer_is_waited_for(stage: &Stage) {
    let slow = Answer::json(&stored("a", 5)).cut_at(100).pausing(Duration::from_secs(14));
    let play = stage.play(in_order([slow]));
    assert_eq!(play.must(maps().get("a")).value(), stored("a", 5));
    assert_eq!(play.elapsed().as_secs(), 28);
}

fn a_slow_watch_is_heard_to_its_end(stage: &Stage) {
    // Half an event each 80 seconds: there is always something within the 90 that a watch may be silent.
    let changes = [event("ADDED", "b", 11), event("ADDED", "c", 12)];
    let body = Answer::watch(&changes).body();
    let slow = Answer::watch(&changes).in_pieces_of(body.len().div_ceil(4)).pausing(Duration::from_secs(80));
    let play = stage.play(in_order([Answer::list("10", &[]), slow]));
    let events = play.watch(maps().follow().in_pages_of(500));
    assert_eq!(told(&events, 4), ["restarted", "synced", "applied b 11", "applied c 12"]);
    assert_eq!((play.elapsed().as_secs(), play.seen().len()), (320, 2));
}

fn a_half_open_watch_is_noticed_and_resumed(stage: &Stage) {
    // It falls silent in the middle of an event.
    let broken = Answer::watch(&[event("ADDED", "b", 11), event("ADDED", "c", 12)]);
    let at = broken.body().len() - 10;
    let answers = [
        Answer::list("10", &[]),
        broken.broken_off_at(at).then(Then::Silence),
        Answer::watch(&[event("ADDED", "c", 12)]),
    ];
    let play = stage.play(in_order(answers));
    let events = play.watch(maps().follow().in_pages_of(500));
    assert_eq!(told(&events, 4), ["restarted", "synced", "applied b 11", "applied c 12"]);
    assert_eq!((play.seen()[2].version(), play.wait_for_left(1)), (Some("11"), vec![1]));
    assert!((90..93).contains(&play.elapsed().as_secs()), "{:?}", play.elapsed());
}

fn a_half_open_list_of_a_watch_is_noticed(stage: &Stage) {
    let list = Answer::list("10", &[stored("a", 5)]);
    let half = list.clone().broken_off_at(80).then(Then::Silence);
    let play = stage.play(in_order([half, list, Answer::watch(&[event("ADDED", "b", 11)])]));
    let events = play.watch(maps().follow().in_pages_of(500));
    let mut all = Vec::new();
    while all.last().is_none_or(|event| event != "applied b 11") {
        match events.next().unwrap() {
            Ok(event) => all.push(super::short(&event)),
            Err(error) => assert!(matches!(error, Error::Network(_) | Error::TimedOut(_)), "{error:?}"),
        }
    }
    assert_eq!(all[all.len() - 4..], ["restarted", "listed a 5", "synced", "applied b 11"]);
    assert!(play.elapsed() < Duration::from_secs(5 * 60), "{:?}", play.elapsed());
}
