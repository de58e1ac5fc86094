//! Properties: what lists and watches tell is what the server holds, and the laws of machines.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cloudcoil_apiserver::kinds::Kinds;
use cloudcoil_apiserver::{ApiServer, ServerConfig, ServerInput};
use cloudcoil_core::laws::{self, Move};
use cloudcoil_core::{Now, Ticket, Tickets};
use common::{World, names, request};
use proptest::prelude::*;
use serde_json::{Value, json};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// What a script does.
#[derive(Clone, Debug)]
enum Step {
    Create(u8, bool),
    Change(u8, u8),
    Select(u8, bool),
    Finalize(u8, bool),
    Delete(u8),
    DeleteAll,
    Compact(u8),
    Freeze,
    Thaw,
    Wait(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let name = 0_u8..5;
    prop_oneof![
        4 => (name.clone(), any::<bool>()).prop_map(|(name, selected)| Step::Create(name, selected)),
        4 => (name.clone(), 0_u8..3).prop_map(|(name, data)| Step::Change(name, data)),
        2 => (name.clone(), any::<bool>()).prop_map(|(name, selected)| Step::Select(name, selected)),
        2 => (name.clone(), any::<bool>()).prop_map(|(name, held)| Step::Finalize(name, held)),
        3 => name.prop_map(Step::Delete),
        1 => Just(Step::DeleteAll),
        1 => any::<u8>().prop_map(Step::Compact),
        1 => Just(Step::Freeze),
        1 => Just(Step::Thaw),
        1 => any::<u8>().prop_map(Step::Wait),
    ]
}

fn perform(world: &mut World, step: &Step) {
    let path = |name: &u8| format!("{SECRETS}/s{name}");
    match step {
        Step::Create(name, selected) => {
            let labels = if *selected { json!({"on": "yes"}) } else { json!({}) };
            world.call("POST", SECRETS, Some(json!({"metadata": {"name": format!("s{name}"), "labels": labels}})));
        }
        Step::Change(name, data) => {
            world.call("PATCH", &path(name), Some(json!({"metadata": {"annotations": {"a": data.to_string()}}})));
        }
        Step::Select(name, selected) => {
            let on = if *selected { json!("yes") } else { Value::Null };
            world.call("PATCH", &path(name), Some(json!({"metadata": {"labels": {"on": on}}})));
        }
        Step::Finalize(name, held) => {
            let finalizers = if *held { json!(["x.y/z"]) } else { Value::Null };
            world.call("PATCH", &path(name), Some(json!({"metadata": {"finalizers": finalizers}})));
        }
        Step::Delete(name) => drop(world.call("DELETE", &path(name), None)),
        Step::DeleteAll => drop(world.call("DELETE", SECRETS, None)),
        Step::Compact(back) => {
            let revision = world.server.revision().saturating_sub(u64::from(*back) / 16);
            world.server.compact(revision);
        }
        Step::Freeze => world.server.freeze(),
        Step::Thaw => world.act(|server, now, out| server.thaw(now, out)),
        Step::Wait(seconds) => world.wait(Duration::from_secs((*seconds).into())),
    }
}

/// What a client knows that lists and watches, and lists again when a watch cannot go on.
struct Client {
    query: &'static str,
    known: BTreeMap<String, Value>,
    version: String,
    watch: Option<Ticket>,
}

impl Client {
    fn new(query: &'static str) -> Self {
        Self { query, known: BTreeMap::new(), version: String::new(), watch: None }
    }

    /// Lists in pages of two, and watches from there.
    fn begin(&mut self, world: &mut World) {
        self.known.clear();
        let mut token = String::new();
        loop {
            let (code, page) = world.get(&format!("{SECRETS}?limit=2&continue={token}{}", self.query));
            if code == 410 {
                self.known.clear();
                token.clear();
                continue;
            }
            assert_eq!(code, 200, "{page}");
            for item in page["items"].as_array().unwrap() {
                let name = item["metadata"]["name"].as_str().unwrap().to_owned();
                assert!(self.known.insert(name, item.clone()).is_none(), "no object is on two pages");
            }
            page["metadata"]["resourceVersion"].as_str().unwrap().clone_into(&mut self.version);
            match page["metadata"]["continue"].as_str() {
                Some(next) => next.clone_into(&mut token),
                None => break,
            }
        }
        self.resume(world);
    }

    fn resume(&mut self, world: &mut World) {
        let path = format!("{SECRETS}?watch=1&resourceVersion={}&allowWatchBookmarks=true{}", self.version, self.query);
        self.watch = Some(world.watch(&path));
    }

    /// Takes in what the watch has told.
    fn hear(&mut self, world: &mut World) {
        let Some(watch) = self.watch else { return self.begin(world) };
        for event in world.events(watch) {
            let (kind, mut object) = (event["type"].as_str().unwrap(), event["object"].clone());
            if kind == "ERROR" {
                assert_eq!(object["code"], 410);
                return self.begin(world);
            }
            let version = object["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
            let number = |text: &str| text.parse::<u64>().unwrap();
            let ahead = number(&version) > number(&self.version) || kind == "BOOKMARK" && version == self.version;
            assert!(ahead, "{kind} {version} does not come after {}", self.version);
            self.version = version;
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            if let Some(object) = object.as_object_mut() {
                object.remove("kind");
                object.remove("apiVersion");
            }
            match kind {
                "ADDED" => assert!(self.known.insert(name, object).is_none(), "what is added was not there"),
                "MODIFIED" => assert!(self.known.insert(name, object).is_some(), "what is changed was there"),
                "DELETED" => assert!(self.known.remove(&name).is_some(), "what is deleted was there"),
                "BOOKMARK" => {}
                other => panic!("{other}"),
            }
        }
        if world.reply(watch).closed {
            self.resume(world);
        }
    }

    fn check(&self, world: &mut World) {
        let (code, list) = world.get(&format!("{SECRETS}?{}", self.query.trim_start_matches('&')));
        assert_eq!(code, 200);
        let held: Vec<_> = list["items"].as_array().unwrap().iter().collect();
        assert_eq!(self.known.values().collect::<Vec<_>>(), held);
    }
}

fn config(kinds: &Arc<Kinds>, history: usize) -> ServerConfig {
    ServerConfig { kinds: Arc::clone(kinds), history, ..ServerConfig::default() }
}

#[test]
fn who_lists_and_watches_knows_what_the_server_holds() {
    let kinds = Arc::new(Kinds::builtin());
    let script = proptest::collection::vec(step(), 1..60);
    proptest!(ProptestConfig::with_cases(100), |(steps in script, history in 1_usize..40, heard in any::<u64>())| {
        let mut world = World::with(config(&kinds, history));
        let mut clients = [Client::new(""), Client::new("&labelSelector=on%3Dyes")];
        for client in &mut clients {
            client.begin(&mut world);
        }
        for (index, step) in steps.iter().enumerate() {
            perform(&mut world, step);
            for client in clients.iter_mut().filter(|_| heard >> (index % 64) & 1 == 1) {
                client.hear(&mut world);
            }
        }
        perform(&mut world, &Step::Thaw);
        for client in &mut clients {
            client.hear(&mut world);
            // A watch that failed or ended has been begun anew, and tells what is missing now.
            client.hear(&mut world);
            client.check(&mut world);
        }
    });
}

#[test]
fn a_list_at_a_version_is_the_list_of_its_time() {
    let kinds = Arc::new(Kinds::builtin());
    proptest!(ProptestConfig::with_cases(100), |(steps in proptest::collection::vec(step(), 1..40))| {
        let mut world = World::with(config(&kinds, 1000));
        let mut lists = Vec::new();
        for step in steps.iter().filter(|step| !matches!(step, Step::Compact(_) | Step::Freeze)) {
            perform(&mut world, step);
            lists.push(world.get(SECRETS).1);
        }
        for list in lists {
            let version = list["metadata"]["resourceVersion"].as_str().unwrap();
            let (_, then) = world.get(&format!("{SECRETS}?resourceVersion={version}&resourceVersionMatch=Exact"));
            prop_assert_eq!(names(&then), names(&list));
            prop_assert_eq!(then, list);
        }
    });
}

/// Inputs of a script for the machine alone, with tickets of its own.
fn inputs(steps: &[(u8, u8)]) -> Vec<Move<ServerInput>> {
    let mut tickets = Tickets::new(1);
    let mut open = Vec::new();
    let mut moves = Vec::new();
    for (kind, number) in steps {
        let secret = json!({"metadata": {"name": format!("s{}", number % 4)}}).to_string();
        let (method, path, body) = match kind {
            0 | 1 => ("POST", SECRETS.to_owned(), secret),
            2 => ("DELETE", format!("{SECRETS}/s{}", number % 4), String::new()),
            3 => ("GET", format!("{SECRETS}?watch=1&allowWatchBookmarks=1&timeoutSeconds={number}"), String::new()),
            4 => ("GET", format!("{SECRETS}?resourceVersion={number}"), String::new()),
            5 => ("POST", "/api/v1/namespaces".to_owned(), json!({"metadata": {"generateName": "n"}}).to_string()),
            6 => {
                if let Some(ticket) = open.pop() {
                    moves.push(Move::Input(ServerInput::Cancelled { ticket }));
                }
                continue;
            }
            _ => {
                moves.push(Move::Wait(Duration::from_secs((*number).into())));
                continue;
            }
        };
        let ticket = tickets.issue();
        open.push(ticket);
        let request = request(method, &path, "application/json", Bytes::from(body)).into();
        moves.push(Move::Input(ServerInput::Requested { ticket, request }));
    }
    moves
}

#[test]
fn the_laws_of_machines_hold() {
    let kinds = Arc::new(Kinds::builtin());
    let make = || ApiServer::new(config(&kinds, 20), Now::default());
    let stale = Tickets::new(9).issue();
    let script = proptest::collection::vec((0_u8..8, any::<u8>()), 0..30);
    proptest!(ProptestConfig::with_cases(60), |(steps in script)| {
        let moves = inputs(&steps);
        laws::same_inputs_same_outputs(make, &moves);
        laws::stale_inputs_change_nothing(make, &moves, &[ServerInput::Cancelled { ticket: stale }]);
    });
}

#[test]
fn another_seed_gives_other_uids() {
    let uid = |seed| {
        let mut world = World::with(ServerConfig { seed, ..ServerConfig::default() });
        world.create(SECRETS, common::map("a"))["metadata"]["uid"].clone()
    };
    assert_eq!(uid(1), uid(1));
    assert_ne!(uid(1), uid(2));
}

#[test]
fn the_server_can_be_looked_into() {
    use cloudcoil_core::k8s_openapi::api::core::v1::Secret;
    use cloudcoil_core::{KnownResource, Resource};
    let mut world = World::new();
    world.create(SECRETS, common::map("a"));
    let secrets = Secret::resource_type();
    let objects = world.server.objects(&secrets);
    assert_eq!(objects.iter().map(Resource::name).collect::<Vec<_>>(), ["a"]);
    assert_eq!((objects[0].kind(), objects[0].api_version()), ("Secret", "v1"));
    assert_eq!(world.server.object(&secrets, "default", "a"), Some(objects[0].clone()));
    assert_eq!(world.server.object(&secrets, "default", "b"), None);
}
