//! How watches end, and what comes after.

use super::*;

/// The times between the next `count` requests, all of which are watches that `answer` deals with.
fn gaps(peer: &mut Peer, count: usize, mut answer: impl FnMut(&mut Peer, Ticket)) -> Vec<Duration> {
    let mut gaps = Vec::new();
    for _ in 0..count {
        let before = peer.now.mono;
        let (at, ticket, uri) = peer.request();
        assert!(uri.contains("watch=true"), "{uri}");
        gaps.push(at.since(before));
        answer(peer, ticket);
    }
    gaps
}

#[test]
fn a_bookmark_that_gets_no_further_is_no_progress() {
    let (mut peer, ticket) = watching(paged());
    let stuck =
        event("BOOKMARK", &json!({"metadata": {"resourceVersion": "5"}})) + &event("ERROR", &status(500, "", "x"));
    peer.send(ticket, &stuck);
    gaps(&mut peer, 2, |peer, ticket| {
        peer.head(ticket, 200, &[]);
        peer.send(ticket, &stuck);
    });
    let (.., uri) = peer.request();
    assert!(!uri.contains("watch"), "the same place is asked for without end: {uri}");
    let (mut peer, ticket) = watching(paged());
    peer.close(ticket);
    let gaps = gaps(&mut peer, 8, |peer, ticket| {
        peer.head(ticket, 200, &[]);
        peer.send(ticket, &event("ADDED", &pod("a", 5)));
        peer.lose(ticket);
    });
    assert!(gaps.last() > Some(&Duration::from_secs(30)), "{gaps:?}");
}

#[test]
fn an_overloaded_server_is_not_asked_for_a_list_on_top() {
    let (mut peer, ticket) = watching(paged());
    peer.lose(ticket);
    for code in [503, 429, 500, 403, 401, 503, 502, 504] {
        gaps(&mut peer, 1, |peer, ticket| {
            peer.head(ticket, code, &[]);
            peer.close(ticket);
        });
    }
    let (.., uri) = peer.request();
    assert!(uri.contains("resourceVersion=5"), "{uri}");
}

#[test]
fn a_watch_of_a_type_that_is_gone_leads_to_a_list() {
    let (mut peer, ticket) = watching(paged());
    peer.close(ticket);
    let (_, uri) = peer.answer(404, &status(404, "NotFound", "no").to_string());
    assert!(uri.contains("watch"), "{uri}");
    let (.., uri) = peer.request();
    assert!(!uri.contains("watch"), "{uri}");
}

#[test]
fn quiet_watches_that_end_in_order_are_resumed_at_once() {
    let (mut peer, ticket) = watching(paged());
    peer.wait(Duration::from_secs(3));
    peer.close(ticket);
    let gaps = gaps(&mut peer, 10, |peer, ticket| {
        peer.head(ticket, 200, &[]);
        peer.wait(Duration::from_secs(3));
        peer.close(ticket);
    });
    assert_eq!(gaps, [Duration::ZERO; 10]);
    assert_eq!(peer.said(), Vec::<String>::new());
}

#[test]
fn quiet_watches_that_something_between_resets_are_resumed_within_a_second() {
    let (mut peer, ticket) = watching(paged());
    peer.wait(Duration::from_secs(15));
    peer.lose(ticket);
    let gaps = gaps(&mut peer, 10, |peer, ticket| {
        peer.head(ticket, 200, &[]);
        peer.wait(Duration::from_secs(15));
        peer.lose(ticket);
    });
    assert!(gaps.iter().all(|gap| *gap <= Duration::from_secs(1)), "{gaps:?}");
}

#[test]
fn a_line_that_is_no_event_is_passed_by_a_list_when_it_comes_again() {
    let (mut peer, ticket) = watching(paged());
    let broken = "{\"type\":\"ADDED\",\"object\":{\"metadata\":{,}}}\n";
    peer.send(ticket, broken);
    gaps(&mut peer, 2, |peer, ticket| {
        peer.head(ticket, 200, &[]);
        peer.send(ticket, broken);
    });
    let (.., uri) = peer.request();
    assert!(!uri.contains("watch"), "{uri}");
}

#[test]
fn a_connection_that_breaks_in_the_middle_of_an_event_is_only_lost() {
    let (mut peer, ticket) = watching(paged());
    peer.close(ticket);
    gaps(&mut peer, 10, |peer, ticket| {
        peer.head(ticket, 200, &[]);
        peer.send(ticket, "{\"type\":\"ADDED\",\"object\":{\"meta");
        peer.close(ticket);
    });
    let (.., uri) = peer.request();
    assert!(uri.contains("resourceVersion=5"), "{uri}");
}

#[test]
fn a_server_cannot_put_off_a_request_for_ever() {
    let mut peer = Peer::new(paged());
    let (_, ticket, _) = peer.request();
    peer.head(ticket, 503, &[(header::RETRY_AFTER, "4000000000")]);
    peer.close(ticket);
    let (at, ..) = peer.request();
    assert_eq!(at, Time::from_secs(600));
}

#[test]
fn a_failure_says_when_it_is_tried_again() {
    let too_large = status(504, "Timeout", "Too large resource version: 5, current: 3").to_string();
    let mut machine = ListWatch::new(paged(), 1, 7);
    let mut out = Outbox::new();
    let _ = machine.step(Now::default(), None, &mut out);
    let ticket = machine.ticket().unwrap();
    for event in [
        HttpEvent::Responded { ticket, status: StatusCode::GATEWAY_TIMEOUT, headers: HeaderMap::new() },
        HttpEvent::Received { ticket, bytes: too_large.into() },
        HttpEvent::Closed { ticket, result: Ok(()) },
    ] {
        let _ = machine.step(Now::default(), Some(WatchInput::Http(event)), &mut out);
    }
    let said = out.into_iter().find_map(|output| match output {
        WatchOutput::Event(WatchEvent::Failed { retry_in, .. }) => Some(retry_in),
        _ => None,
    });
    let until = machine.deadline().unwrap().at.since(Time::ZERO);
    assert_eq!(said, Some(until));
    assert!(until >= Duration::from_secs(1), "a version that is not there yet is asked for too soon: {until:?}");
}

#[test]
fn watches_that_expire_again_and_again_are_a_failure() {
    let mut peer = Peer::new(paged());
    for _ in 0..3 {
        peer.answer(200, &list("5", "", &[]));
        peer.answer(410, &status(410, "Expired", "too old").to_string());
    }
    assert!(peer.said().iter().any(|said| said.starts_with("failed too old")));
}

#[test]
fn a_refusal_that_stops_half_way_keeps_its_code() {
    let mut peer = Peer::new(paged());
    let (_, ticket, _) = peer.request();
    peer.head(ticket, 403, &[]);
    peer.send(ticket, "{\"kind\":");
    peer.request();
    assert!(peer.said()[1].starts_with("failed HTTP 403 with a truncated body"));
    assert_eq!(peer.cancelled, [ticket]);
}

#[test]
fn events_in_no_order_do_not_say_where_to_go_on() {
    for version in ["", "0"] {
        let mut peer = Peer::new(paged());
        peer.answer(200, &list(version, "", &[]));
        let (ticket, uri) = peer.open();
        assert!(!uri.contains("resourceVersion"), "{uri}");
        peer.send(ticket, &(event("ADDED", &pod("a", 9)) + &event("ADDED", &pod("b", 3))));
        peer.wait(Duration::from_secs(5));
        peer.close(ticket);
        let (.., uri) = peer.request();
        assert!(!uri.contains("watch"), "what came between 3 and 9 would be missed: {uri}");
        let (mut peer, bookmark) = (Peer::new(paged()), json!({"metadata": {"resourceVersion": "12"}}));
        peer.answer(200, &list(version, "", &[]));
        let (ticket, _) = peer.open();
        peer.send(ticket, &(event("ADDED", &pod("a", 9)) + &event("BOOKMARK", &bookmark)));
        peer.wait(Duration::from_secs(5));
        peer.close(ticket);
        assert!(peer.open().1.contains("resourceVersion=12"));
    }
}
