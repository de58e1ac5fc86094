//! What can be asked of pods besides reading and writing them: logs and time to end.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod common;

use std::time::Duration;

use bytes::Bytes;
use cloudcoil_apiserver::{LogSource, ServerInput};
use cloudcoil_core::Ticket;
use common::{World, refusal, request};
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";

/// A world with a pod of two containers.
fn world() -> World {
    let mut world = World::new();
    world.create(PODS, pod("p", &["a", "b"]));
    world
}

fn pod(name: &str, containers: &[&str]) -> Value {
    let containers: Value = containers.iter().map(|name| json!({"name": name, "image": "i"})).collect();
    json!({"metadata": {"name": name}, "spec": {"nodeName": "n", "containers": containers}})
}

fn source(container: &str) -> LogSource {
    LogSource::new("default", "p", container)
}

fn write(world: &mut World, container: &str, text: &str) -> bool {
    world.act(|server, now, out| server.append_log(now, &source(container), text, out))
}

fn log(world: &mut World, query: &str) -> (u16, String) {
    let reply = world.exchange(request("GET", &format!("{PODS}/p/log?{query}"), "", Bytes::new()));
    (reply.code, String::from_utf8(reply.body).unwrap())
}

fn follow(world: &mut World, query: &str) -> Ticket {
    world.send(request("GET", &format!("{PODS}/p/log?follow=true&{query}"), "", Bytes::new()))
}

fn heard(world: &World, ticket: Ticket) -> (String, bool) {
    let reply = world.reply(ticket);
    (String::from_utf8(reply.body.clone()).unwrap(), reply.closed)
}

#[test]
fn a_log_is_cut_as_asked_for() {
    let mut world = world();
    for line in ["one\n", "two\n"] {
        assert!(write(&mut world, "a", line));
        world.wait(Duration::from_secs(10));
    }
    assert!(write(&mut world, "a", "thr"));
    assert!(write(&mut world, "a", "ee\nfour"));
    let mut text = |query: &str| log(&mut world, &format!("container=a&{query}")).1;
    assert_eq!(text(""), "one\ntwo\nthree\nfour");
    assert_eq!(text("tailLines=2"), "three\nfour");
    assert_eq!(text("tailLines=0"), "");
    assert_eq!(text("limitBytes=5"), "one\nt");
    assert_eq!(text("sinceSeconds=10"), "two\nthree\nfour");
    assert_eq!(text("sinceTime=2026-01-02T03:04:15Z"), "two\nthree\nfour");
    assert_eq!(text("tailLines=1&timestamps=true"), "2026-01-02T03:04:25.000000Z four");
    assert_eq!(text("sinceTime=2999-01-01T00:00:00Z"), "");
}

#[test]
fn limits_never_cut_a_character() {
    let mut world = world();
    write(&mut world, "a", "aé\n");
    assert_eq!(log(&mut world, "container=a&limitBytes=2").1, "a");
}

#[test]
fn who_follows_hears_what_comes_until_the_container_ends() {
    let mut world = world();
    write(&mut world, "a", "one\n");
    let all = follow(&mut world, "container=a");
    let stamped = follow(&mut world, "container=a&timestamps=true&tailLines=0");
    let short = follow(&mut world, "container=a&limitBytes=6");
    let stopped = follow(&mut world, "container=a");
    world.step(Some(ServerInput::Cancelled { ticket: stopped }));
    write(&mut world, "b", "of another\n");
    write(&mut world, "a", "tw");
    write(&mut world, "a", "o\nthree\n");
    assert_eq!(heard(&world, all), ("one\ntwo\nthree\n".to_owned(), false));
    let stamp = "2026-01-02T03:04:05.000000Z";
    assert_eq!(heard(&world, stamped).0, format!("{stamp} two\n{stamp} three\n"));
    assert_eq!(heard(&world, short), ("one\ntw".to_owned(), true));
    assert_eq!(heard(&world, stopped), ("one\n".to_owned(), false));
    assert!(world.act(|server, _, out| server.finish_log(&source("a"), out)));
    assert!(heard(&world, all).1 && heard(&world, stamped).1);
    let late = follow(&mut world, "container=a");
    assert_eq!(heard(&world, late), ("one\ntwo\nthree\n".to_owned(), true));
}

#[test]
fn a_restarted_container_has_a_previous_log() {
    let mut world = world();
    write(&mut world, "a", "before\n");
    let refused = log(&mut world, "container=a&previous=true");
    assert!(refused.0 == 400 && refused.1.contains("previous terminated container"), "{refused:?}");
    let follower = follow(&mut world, "container=a");
    assert!(world.act(|server, _, out| server.restart_log(&source("a"), out)));
    write(&mut world, "a", "after\n");
    assert_eq!(heard(&world, follower), ("before\n".to_owned(), true));
    assert_eq!(log(&mut world, "container=a&previous=true").1, "before\n");
    assert_eq!(log(&mut world, "container=a").1, "after\n");
}

#[test]
fn a_log_goes_with_its_pod() {
    let mut world = world();
    write(&mut world, "a", "text\n");
    let follower = follow(&mut world, "container=a");
    world.call("DELETE", &format!("{PODS}/p?gracePeriodSeconds=0"), None);
    assert_eq!(heard(&world, follower), ("text\n".to_owned(), true));
    assert!(!write(&mut world, "a", "nobody\n"), "there is no such pod");
    world.create(PODS, pod("p", &["a"]));
    assert!(!write(&mut world, "b", "nobody\n"), "there is no such container");
    let waiting = world.get(&format!("{PODS}/p/log"));
    let message = "container \"a\" in pod \"p\" is waiting to start: ContainerCreating";
    assert_eq!(refusal(&waiting), (400, "BadRequest", message));
}

#[test]
fn a_pod_that_is_replaced_is_not_ended_by_the_time_of_the_first() {
    let mut world = world();
    world.call("DELETE", &format!("{PODS}/p?gracePeriodSeconds=10"), None);
    world.call("DELETE", &format!("{PODS}/p?gracePeriodSeconds=0"), None);
    world.create(PODS, pod("p", &["a"]));
    world.wait(Duration::from_secs(20));
    assert!(world.exists(&format!("{PODS}/p")));
}

#[test]
fn a_shorter_time_to_end_is_kept() {
    let mut world = world();
    world.call("DELETE", &format!("{PODS}/p?gracePeriodSeconds=100"), None);
    let pod = world.call("DELETE", &format!("{PODS}/p?gracePeriodSeconds=5"), None).1;
    assert_eq!(pod["metadata"]["deletionTimestamp"], "2026-01-02T03:04:10Z");
    world.wait(Duration::from_secs(4));
    assert!(world.exists(&format!("{PODS}/p")));
    world.wait(Duration::from_secs(2));
    assert!(!world.exists(&format!("{PODS}/p")));
}

#[test]
fn a_finalizer_outlasts_the_time_to_end() {
    let mut world = world();
    world.patch(&format!("{PODS}/p"), json!({"metadata": {"finalizers": ["example.com/f"]}}));
    world.call("DELETE", &format!("{PODS}/p?gracePeriodSeconds=5"), None);
    world.wait(Duration::from_secs(60));
    let pod = world.get(&format!("{PODS}/p")).1;
    assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], 0);
    world.patch(&format!("{PODS}/p"), json!({"metadata": {"finalizers": null}}));
    assert!(!world.exists(&format!("{PODS}/p")));
}

#[test]
fn odd_grace_periods_are_survived() {
    for seconds in [i64::MAX, i64::MIN, 1 << 40] {
        let mut world = world();
        let (code, _) = world.call("DELETE", &format!("{PODS}/p"), Some(json!({"gracePeriodSeconds": seconds})));
        assert_eq!(code, 200, "{seconds}");
        world.wait(Duration::from_secs(60));
        assert_eq!(world.exists(&format!("{PODS}/p")), seconds > 0, "{seconds}");
    }
}

#[test]
fn a_namespace_waits_for_its_pods() {
    let mut world = World::new();
    world.create("/api/v1/namespaces", json!({"metadata": {"name": "x"}}));
    world.create("/api/v1/namespaces/x/pods", pod("p", &["a"]));
    world.call("DELETE", "/api/v1/namespaces/x", None);
    world.wait(Duration::from_secs(20));
    assert!(world.exists("/api/v1/namespaces/x"));
    world.wait(Duration::from_secs(20));
    assert!(!world.exists("/api/v1/namespaces/x"));
}
