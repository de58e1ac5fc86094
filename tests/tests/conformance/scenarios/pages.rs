//! Lists in pages.

use cloudcoil_runtime::Resource;
use serde_json::json;

use super::{event, stored, synced, told};
use crate::scripted::{Answer, in_order};
use crate::stage::{Stage, scenarios};
use crate::world::op::{maps, secrets};

scenarios! {
    ANY {
        pages_follow_each_other_to_the_end,
        a_limit_makes_one_page,
        a_watch_in_pages_sees_everything_once,
        a_token_that_is_none_is_refused,
    }
    SCRIPT {
        every_page_is_asked_for_by_its_token,
        an_expired_token_starts_a_whole_list_anew,
        an_expired_token_of_a_watch_starts_the_list_anew,
        a_page_that_fails_ends_a_loop_with_its_error,
    }
}

fn several(stage: &Stage, count: usize) -> Vec<String> {
    let names: Vec<_> = (0..count).map(|number| format!("s{number:02}")).collect();
    let object = |name: &String| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
    stage
        .api()
        .all(names.iter().map(|name| secrets().create(object(name))))
        .into_iter()
        .for_each(|made| drop(made.unwrap()));
    names
}

fn pages_follow_each_other_to_the_end(stage: &Stage) {
    let names = several(stage, 25);
    let world = stage.api();
    for limit in [1, 7, 25, 100] {
        assert_eq!(world.must(secrets().list().limit(limit)).names(), names);
        assert_eq!(world.must(secrets().objects().limit(limit)).names(), names);
    }
    assert_eq!(world.must(secrets().list()).names(), names);
}

fn a_limit_makes_one_page(stage: &Stage) {
    let names = several(stage, 5);
    let world = stage.api();
    let first = world.must(secrets().page().limit(3)).list();
    let token = first.continue_token.clone().unwrap();
    assert_eq!((first.items.len(), first.remaining_item_count), (3, Some(2)));
    let last = world.must(secrets().page().limit(3).continue_from(&token)).list();
    let both: Vec<_> = first.items.iter().chain(&last.items).map(Resource::name).collect();
    assert_eq!((both, last.continue_token), (names.iter().map(String::as_str).collect(), None));
    assert_eq!(first.resource_version, last.resource_version, "both are of one moment");
}

fn a_watch_in_pages_sees_everything_once(stage: &Stage) {
    let names = several(stage, 10);
    let events = stage.api().watch(secrets().follow().in_pages_of(3));
    assert_eq!(synced(&events), names);
}

fn a_token_that_is_none_is_refused(stage: &Stage) {
    let error = stage.api().fail(maps().page().limit(1).continue_from("nonsense"));
    assert_eq!(error.code(), Some(400), "{error:?}");
}

fn every_page_is_asked_for_by_its_token(stage: &Stage) {
    let pages = || {
        let first = Answer::page("", &[stored("a", 5)], "c1");
        [first, Answer::page("2", &[stored("b", 6)], "c 2"), Answer::page("2", &[stored("c", 7)], "")]
    };
    let play = stage.play(in_order(pages().into_iter().chain(pages())));
    assert_eq!(play.must(maps().list().limit(1)).names(), ["a", "b", "c"]);
    assert_eq!(play.must(maps().objects().limit(1)).names(), ["a", "b", "c"]);
    let asked: Vec<_> = play.seen();
    let tokens: Vec<_> =
        asked.iter().map(|seen| seen.parameter("continue").map(|token| token.replace("%20", "+"))).collect();
    let expected = [None, Some("c1".to_owned()), Some("c+2".to_owned())];
    assert_eq!(tokens, [expected.clone(), expected].concat());
    assert!(asked.iter().all(|seen| seen.parameter("limit") == Some("1")));
}

fn expired() -> Answer {
    Answer::refusal(410, "Expired", "The provided continue parameter is too old")
}

fn an_expired_token_starts_a_whole_list_anew(stage: &Stage) {
    let answers =
        [Answer::page("2", &[stored("a", 5)], "c1"), expired(), Answer::list("9", &[stored("b", 8), stored("c", 9)])];
    let play = stage.play(in_order(answers));
    let list = play.must(maps().list().limit(1)).list();
    let names: Vec<_> = list.items.iter().map(Resource::name).collect();
    assert_eq!((names, list.resource_version.as_deref()), (vec!["b", "c"], Some("9")));
    assert_eq!(play.seen()[2].parameter("continue"), None);
}

fn an_expired_token_of_a_watch_starts_the_list_anew(stage: &Stage) {
    let answers = [
        Answer::page("2", &[stored("a", 1)], "c1"),
        expired(),
        Answer::list("9", &[stored("b", 8)]),
        Answer::watch(&[event("ADDED", "c", 10)]),
    ];
    let play = stage.play(in_order(answers));
    let events = play.watch(maps().follow().in_pages_of(1));
    assert_eq!(synced(&events), ["b"], "nothing is left of the half list");
    assert_eq!(told(&events, 1), ["applied c 10"]);
    let seen = play.wait_for(4);
    assert_eq!((seen[3].is_watch(), seen[3].version()), (true, Some("9")));
}

fn a_page_that_fails_ends_a_loop_with_its_error(stage: &Stage) {
    let answers = [Answer::page("2", &[stored("a", 5)], "c1"), Answer::refusal(403, "Forbidden", "no more")];
    let play = stage.play(in_order(answers));
    let error = play.fail(maps().objects().limit(1));
    assert_eq!((error.code(), play.seen().len()), (Some(403), 2));
}
