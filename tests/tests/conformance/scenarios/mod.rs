//! What happens.

mod cancel;
mod compression;
mod connections;
mod credentials;
mod cuts;
mod errors;
mod large;
mod many;
mod operators;
mod pages;
mod proxies;
mod renewals;
mod slow;
mod subresources;
mod traces;
mod verbs;
mod watches;

use cloudcoil_runtime::{Error, Resource, Unstructured, WatchEvent};
use serde_json::{Value, json};

use crate::stage::Scenario;
use crate::world::Flow;

/// All scenarios, by what they are about.
pub(crate) const ALL: &[(&str, &[Scenario])] = &[
    ("cancel", cancel::SCENARIOS),
    ("compression", compression::SCENARIOS),
    ("connections", connections::SCENARIOS),
    ("credentials", credentials::SCENARIOS),
    ("cuts", cuts::SCENARIOS),
    ("errors", errors::SCENARIOS),
    ("large", large::SCENARIOS),
    ("many", many::SCENARIOS),
    ("operators", operators::SCENARIOS),
    ("pages", pages::SCENARIOS),
    ("proxies", proxies::SCENARIOS),
    ("renewals", renewals::SCENARIOS),
    ("slow", slow::SCENARIOS),
    ("subresources", subresources::SCENARIOS),
    ("traces", traces::SCENARIOS),
    ("verbs", verbs::SCENARIOS),
    ("watches", watches::SCENARIOS),
];

/// A ConfigMap with a value.
fn map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": value}})
}

/// A ConfigMap as a server has it.
fn stored(name: &str, version: u32) -> Value {
    let mut map = map(name, "naïve → 完了");
    map["metadata"] =
        json!({"name": name, "namespace": "default", "uid": name, "resourceVersion": version.to_string()});
    map
}

/// An event of a watch.
fn event(kind: &str, name: &str, version: u32) -> Value {
    json!({"type": kind, "object": stored(name, version)})
}

fn bookmark(version: u32) -> Value {
    let metadata = json!({"resourceVersion": version.to_string(), "creationTimestamp": null});
    json!({"type": "BOOKMARK", "object": {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}})
}

/// A field of an object, by its JSON pointer; `null` if there is none.
fn at<'a>(object: &'a Value, pointer: &str) -> &'a Value {
    object.pointer(pointer).unwrap_or(&Value::Null)
}

type Events = Flow<Result<WatchEvent<Unstructured>, Error>>;

/// An event of a watch in short, such as `applied a 12`, with the version of the object.
fn short(event: &WatchEvent<Unstructured>) -> String {
    let (word, object) = match event {
        WatchEvent::Restarted => return "restarted".into(),
        WatchEvent::Synced => return "synced".into(),
        WatchEvent::Listed(object) => ("listed", object),
        WatchEvent::Applied(object) => ("applied", object),
        WatchEvent::Deleted(object) => ("deleted", object),
    };
    format!("{word} {} {}", object.name(), object.resource_version().unwrap_or_default())
}

/// The next events, in short.
#[track_caller]
fn told(events: &Events, count: usize) -> Vec<String> {
    (0..count).map(|_| short(&events.good())).collect()
}

/// The names of what is there, when a watch has told all of it.
#[track_caller]
fn synced(events: &Events) -> Vec<String> {
    let mut names = Vec::new();
    loop {
        match events.good() {
            WatchEvent::Restarted => names.clear(),
            WatchEvent::Listed(object) => names.push(object.name().to_owned()),
            WatchEvent::Synced => break,
            other => panic!("a change before the list is complete: {other:?}"),
        }
    }
    names.sort();
    names
}
