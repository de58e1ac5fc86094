//! Lists that come as the beginning of a watch.

use super::*;

#[test]
fn a_streaming_list_is_complete_at_its_bookmark_and_goes_on_as_a_watch() {
    let mut peer = Peer::new(config());
    let (ticket, uri) = peer.open();
    assert!(
        uri.contains("sendInitialEvents=true&resourceVersionMatch=NotOlderThan") && !uri.contains("resourceVersion=")
    );
    peer.send(ticket, &(event("ADDED", &pod("a", 3)) + &event("ADDED", &pod("b", 2))));
    peer.send(ticket, &event("BOOKMARK", &json!({"metadata": {"resourceVersion": "4"}})));
    assert_eq!(peer.said(), ["restarted", "listed a@3", "listed b@2"]);
    peer.send(ticket, &(initial_end(9) + &event("ADDED", &pod("c", 10))));
    assert_eq!(peer.said(), ["synced 9", "applied c@10"]);
    peer.close(ticket);
    let (_, again) = peer.open();
    assert!(again.contains("resourceVersion=10") && !again.contains("sendInitialEvents"), "{again}");
}

#[test]
fn a_server_without_streaming_lists_is_asked_for_pages_from_then_on() {
    let mut peer = Peer::new(config());
    peer.answer(422, &status(422, "Invalid", "sendInitialEvents: Forbidden").to_string());
    peer.answer(200, &list("5", "", &[]));
    assert_eq!(peer.said(), ["restarted", "restarted", "synced 5"]);
    let (ticket, _) = peer.open();
    peer.send(ticket, &event("ERROR", &status(410, "Expired", "")));
    let (_, _, again) = peer.request();
    assert_eq!(again, "/api/v1/namespaces/ns/pods?limit=500");
}

#[test]
fn a_streaming_list_that_never_ends_gives_way_to_pages_that_are_remembered() {
    let mut peer = Peer::new(config());
    for _ in 0..2 {
        let (ticket, uri) = peer.open();
        assert!(uri.contains("sendInitialEvents"), "{uri}");
        peer.send(ticket, &event("ADDED", &pod("a", 3)));
    }
    let (at, uri) = peer.answer(200, &list("5", "", &[pod("a", 3)]));
    assert_eq!(uri, "/api/v1/namespaces/ns/pods?limit=500");
    assert!(at < Time::from_secs(60), "{at:?}");
    assert_eq!(peer.cancelled.len(), 2);
}

#[test]
fn a_streaming_list_that_sends_changes_for_ever_and_no_end_is_given_up_too() {
    let mut peer = Peer::new(config());
    for _ in 0..2 {
        let (ticket, _) = peer.open();
        for version in 0.. {
            peer.wait(Duration::from_secs(5));
            if peer.cancelled.last() == Some(&ticket) {
                break;
            }
            assert!(version < 100, "it is never given up");
            peer.send(ticket, &event("ADDED", &pod("a", version)));
        }
    }
    let (.., uri) = peer.request();
    assert!(!uri.contains("watch"), "{uri}");
}

#[test]
fn a_streaming_list_that_breaks_off_starts_over() {
    let mut peer = Peer::new(config());
    let (ticket, _) = peer.open();
    peer.send(ticket, &event("ADDED", &pod("a", 3)));
    peer.lose(ticket);
    let (ticket, uri) = peer.open();
    assert!(uri.contains("sendInitialEvents"), "{uri}");
    peer.send(ticket, &(event("ADDED", &pod("b", 3)) + &initial_end(9)));
    assert_eq!(
        peer.said(),
        ["restarted", "listed a@3", "failed connection lost: reset", "restarted", "listed b@3", "synced 9"]
    );
}

#[test]
fn streaming_lists_that_break_off_again_and_again_give_way_to_pages() {
    let mut peer = Peer::new(config());
    for word in ["", "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"items\":[]}\n"] {
        let (ticket, _) = peer.open();
        peer.send(ticket, word);
        if word.is_empty() {
            peer.lose(ticket);
        }
    }
    let (.., uri) = peer.request();
    assert!(!uri.contains("watch"), "{uri}");
    let mut peer = Peer::new(config());
    let (ticket, _) = peer.open();
    peer.send(ticket, &event("ERROR", &json!({"kind": "Status", "reason": "Invalid", "message": "no"})));
    let (.., uri) = peer.request();
    assert!(!uri.contains("watch"), "{uri}");
}
