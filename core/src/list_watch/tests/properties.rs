//! What holds whatever a server does.

use proptest::prelude::*;

use super::*;
use crate::laws::{self, Move};

/// What a server may do next to whatever is asked.
#[derive(Clone, Debug)]
enum Turn {
    Head(u16),
    Send(Vec<u8>),
    Close(bool),
    Wait(u64),
}

fn turn() -> impl Strategy<Value = Turn> {
    let texts = prop_oneof![
        Just(event("ADDED", &pod("a", 6))),
        Just(event("DELETED", &pod("a", 7))),
        Just(initial_end(9)),
        Just(event("ERROR", &status(410, "Expired", ""))),
        Just(event("ERROR", &status(500, "InternalError", ""))),
        Just(list("5", "", &[pod("a", 1)])),
        Just(list("5", "c1", &[pod("b", 1)])),
        Just(status(429, "TooManyRequests", "").to_string()),
        Just("<html>".to_owned()),
    ];
    prop_oneof![
        2 => prop::sample::select(vec![200, 200, 200, 410, 429, 503, 404, 422]).prop_map(Turn::Head),
        4 => texts.prop_map(|text| Turn::Send(text.into_bytes())),
        2 => any::<bool>().prop_map(Turn::Close),
        2 => prop::sample::select(vec![1, 500, 20_000, 120_000, 700_000]).prop_map(Turn::Wait),
    ]
}

/// The turns as inputs that answer the request which is open at that point.
fn script(make: impl Fn() -> ListWatch, turns: &[Turn]) -> Vec<Move<WatchInput>> {
    let mut script = Vec::new();
    let mut ticket = None;
    for turn in turns {
        let trace = laws::run(&mut make(), script.iter().cloned());
        for output in trace.into_iter().flat_map(|(_, outputs, _)| outputs) {
            if let WatchOutput::Http(HttpEffect::Send { ticket: sent, .. }) = output {
                ticket = Some(sent);
            }
        }
        let Some(ticket) = ticket else { continue };
        let error = NetworkError::new(NetworkErrorKind::Lost, "reset");
        script.push(match turn {
            Turn::Wait(millis) => Move::Wait(Duration::from_millis(*millis)),
            Turn::Head(code) => {
                let status = StatusCode::from_u16(*code).unwrap();
                Move::Input(WatchInput::Http(HttpEvent::Responded { ticket, status, headers: HeaderMap::new() }))
            }
            Turn::Send(bytes) => {
                Move::Input(WatchInput::Http(HttpEvent::Received { ticket, bytes: bytes.clone().into() }))
            }
            Turn::Close(ok) => {
                let result = if *ok { Ok(()) } else { Err(error) };
                Move::Input(WatchInput::Http(HttpEvent::Closed { ticket, result }))
            }
        });
    }
    script
}

fn stale() -> Vec<WatchInput> {
    let ticket = Tickets::new(99).issue();
    let bytes = Bytes::from(event("ADDED", &pod("stale", 1)));
    [
        HttpEvent::Responded { ticket, status: StatusCode::OK, headers: HeaderMap::new() },
        HttpEvent::Received { ticket, bytes },
        HttpEvent::Closed { ticket, result: Ok(()) },
    ]
    .map(WatchInput::Http)
    .to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_laws_of_machines_hold(turns in prop::collection::vec(turn(), 0..25), streaming: bool, seed: u64) {
        let make = || ListWatch::new(WatchConfig { streaming, ..config() }, 1, seed);
        let script = script(make, &turns);
        laws::same_inputs_same_outputs(make, &script);
        laws::stale_inputs_change_nothing(make, &script, &stale());
        let stopped: Vec<_> = script.iter().cloned().chain([Move::Input(WatchInput::Stopped)]).collect();
        laws::ended_stays_ended(&mut make(), &stopped, &script);
    }

    #[test]
    fn how_the_bytes_are_cut_changes_nothing(turns in prop::collection::vec(turn(), 0..25), streaming: bool, size in 1..40_usize) {
        let make = || ListWatch::new(WatchConfig { streaming, ..config() }, 1, 3);
        let whole = script(make, &turns);
        let mut cut = Vec::new();
        for step in &whole {
            match step {
                Move::Input(WatchInput::Http(HttpEvent::Received { ticket, bytes })) => cut.extend(
                    bytes.chunks(size).map(|piece| {
                        let bytes = Bytes::copy_from_slice(piece);
                        Move::Input(WatchInput::Http(HttpEvent::Received { ticket: *ticket, bytes }))
                    }),
                ),
                step => cut.push(step.clone()),
            }
        }
        let said = |script: Vec<Move<WatchInput>>| -> Vec<_> {
            laws::run(&mut make(), script).into_iter().flat_map(|(at, said, _)| said.into_iter().map(move |said| (at, said))).collect()
        };
        prop_assert_eq!(said(whole), said(cut));
    }
}
