//! Many at once.

use std::collections::BTreeSet;

use cloudcoil_runtime::Resource;
use serde_json::json;

use super::{event, map, short, stored, synced, told};
use crate::scripted::{Answer, Seen, Then};
use crate::stage::{Stage, scenarios};
use crate::world::op::{maps, secrets};

scenarios! {
    ANY {
        a_hundred_watches_at_once,
        a_hundred_watches_leave_room_for_calls,
        a_hundred_calls_at_once,
    }
    PLAIN {
        pages_show_one_moment_while_a_thousand_objects_change,
        a_hundred_informers_at_once,
    }
    SCRIPT {
        a_slow_watch_holds_up_no_other,
        a_hundred_dropped_watches_end_a_hundred_connections,
        silent_answers_hold_up_no_others,
    }
}

fn secret(name: &str) -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}})
}

fn a_hundred_watches_at_once(stage: &Stage) {
    let world = stage.api();
    let watches: Vec<_> = (0..100).map(|_| world.watch(secrets().follow())).collect();
    watches.iter().for_each(|events| assert_eq!(synced(events), [""; 0]));
    world.must(secrets().create(secret("a")));
    watches.iter().for_each(|events| assert!(short(&events.good()).starts_with("applied a ")));
}

fn a_hundred_watches_leave_room_for_calls(stage: &Stage) {
    let world = stage.api();
    let watches: Vec<_> = (0..100).map(|_| world.watch(secrets().follow().in_pages_of(500))).collect();
    watches.iter().for_each(|events| assert_eq!(synced(events), [""; 0]));
    let names: Vec<_> = (0..20).map(|number| format!("s{number:02}")).collect();
    for made in world.all(names.iter().map(|name| secrets().create(secret(name)))) {
        made.unwrap();
    }
    assert_eq!(world.must(secrets().list()).names(), names);
    for events in &watches {
        let applied: BTreeSet<_> = (0..names.len()).map(|_| short(&events.good())).collect();
        let mut applied = applied.iter().map(|event| event.split(' ').nth(1).unwrap_or_default());
        assert!(applied.by_ref().eq(names.iter().map(String::as_str)), "each of them once");
    }
}

fn a_hundred_calls_at_once(stage: &Stage) {
    let world = stage.api();
    let names: Vec<_> = (0..100).map(|number| format!("s{number:02}")).collect();
    let made = world.all(names.iter().map(|name| secrets().create(secret(name))));
    for (name, made) in names.iter().zip(made) {
        assert_eq!(made.unwrap().object().name(), name, "every caller gets his own answer");
    }
    let read = world.all(names.iter().map(|name| secrets().get(name)));
    for (name, read) in names.iter().zip(read) {
        assert_eq!(read.unwrap().object().name(), name);
    }
}

fn pages_show_one_moment_while_a_thousand_objects_change(stage: &Stage) {
    let world = stage.api();
    let names: Vec<_> = (0..1000).map(|number| format!("s{number:03}")).collect();
    for made in names.chunks(100).flat_map(|chunk| world.all(chunk.iter().map(|name| secrets().create(secret(name))))) {
        made.unwrap();
    }
    let (mut read, mut token, mut versions) = (Vec::new(), None::<String>, BTreeSet::new());
    for number in 0.. {
        let page = secrets().page().limit(100);
        let page = world.must(token.iter().fold(page, |page, token| page.continue_from(token))).list();
        read.extend(page.items.iter().map(|object| object.name().to_owned()));
        versions.insert(page.resource_version.clone());
        token = page.continue_token;
        if token.is_none() {
            break;
        }
        // One that has been read, one that has not, and one that is new.
        world.must(secrets().delete(&format!("s{:03}", number * 10)));
        world.must(secrets().delete(&format!("s{:03}", 999 - number)));
        world.must(secrets().create(secret(&format!("s5{number:02}x"))));
    }
    assert_eq!((read, versions.len()), (names, 1));
    assert_eq!(world.must(secrets().objects().limit(70)).list().items.len(), 1000 - 2 * 9 + 9);
}

fn a_hundred_informers_at_once(stage: &Stage) {
    let world = stage.api();
    world.must(secrets().create(secret("a")));
    let informers: Vec<_> = (0..100).map(|_| world.inform(secrets().follow())).collect();
    for informing in &informers {
        informing.synced.next().unwrap().unwrap();
        informing.changes.next().unwrap();
    }
    world.must(secrets().create(secret("b")));
    for informing in &informers {
        informing.changes.next().unwrap();
        assert_eq!(informing.reader.keys().len(), 2);
    }
}

/// What a request is for.
fn number(seen: &Seen) -> usize {
    let selector = seen.parameter("labelSelector").unwrap();
    selector.rsplit(['=', 'D']).next().unwrap().parse().unwrap()
}

fn a_slow_watch_holds_up_no_other(stage: &Stage) {
    let play = stage.play(Box::new(|seen| match (seen.is_watch(), number(seen)) {
        (false, _) => Answer::list("10", &[stored("a", 5)]),
        // Half an event, and nothing more.
        (true, 0) => Answer::watch(&[event("MODIFIED", "a", 11)]).broken_off_at(20).then(Then::Silence),
        (true, _) => Answer::watch(&[event("MODIFIED", "a", 11), event("DELETED", "a", 12)]),
    }));
    let follow = |number| maps().follow().in_pages_of(500).labels(&format!("n={number}"));
    let watches: Vec<_> = (0..100).map(|number| play.watch(follow(number))).collect();
    let all = ["restarted", "listed a 5", "synced", "applied a 11", "deleted a 12"];
    for (number, events) in watches.iter().enumerate() {
        let count = if number == 0 { 3 } else { all.len() };
        assert_eq!(told(events, count), all[..count], "{number}");
    }
    play.must(maps().page().labels("n=100"));
    assert_eq!(watches[0].come().len(), 0);
}

fn a_hundred_dropped_watches_end_a_hundred_connections(stage: &Stage) {
    let play = stage.play(Box::new(|seen| if seen.is_watch() { Answer::watch(&[]) } else { Answer::list("10", &[]) }));
    let watches: Vec<_> = (0..100).map(|_| play.watch(maps().follow().in_pages_of(500))).collect();
    watches.iter().for_each(|events| assert_eq!(synced(events), [""; 0]));
    let seen = play.wait_for(200);
    let watched: BTreeSet<_> = seen.iter().filter(|seen| seen.is_watch()).map(|seen| seen.connection).collect();
    assert_eq!(watched.len(), 100, "each watch has a connection of its own");
    drop(watches);
    // So do those of lists that are too many to be kept.
    let mut left: BTreeSet<_> = play.wait_for_left(100).into_iter().collect();
    while !left.is_superset(&watched) {
        left = play.wait_for_left(left.len() + 1).into_iter().collect();
    }
}

fn silent_answers_hold_up_no_others(stage: &Stage) {
    let play = stage.play(Box::new(|seen| match seen.path.ends_with("/silent") {
        true => Answer::silence(),
        false => Answer::json(&stored("a", 5)),
    }));
    let silent: Vec<_> = (0..50).map(|_| play.start(maps().get("silent"))).collect();
    for answer in play.all((0..50).map(|_| maps().get("a"))) {
        assert_eq!(answer.unwrap().value(), stored("a", 5));
    }
    play.must(maps().create(map("a", "1")));
    assert!(silent.iter().all(|flow| flow.come().is_empty()));
}
