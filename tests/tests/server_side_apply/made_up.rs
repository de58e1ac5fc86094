//! Applies and updates by a few managers, made up by seed.

use cloudcoil_core::Random;
use serde_json::{Value, json};

use crate::Scenario;

/// How many times something is made up for each kind.
pub(crate) const SEEDS: u64 = 12;

/// How much is made up at a time.
const REQUESTS: usize = 9;

/// Makes the body of an apply or update up.
type Body = fn(&mut Random) -> Value;

/// One scenario for each kind.
pub(crate) fn scenarios(seed: u64) -> Vec<Scenario> {
    let kinds: [(&str, Body); 4] = [("cm", config_map), ("deploy", deployment), ("svc", service), ("widget", widget)];
    let make = |(index, (kind, body)): (usize, (&str, Body))| {
        let mut random = Random::new(seed * 16 + index as u64);
        let lines = (0..REQUESTS).map(|turn| line(&mut random, kind, body, turn)).collect();
        Scenario { name: format!("{kind} made up of seed {seed}"), lines }
    };
    kinds.into_iter().enumerate().map(make).collect()
}

/// The first request creates the object.
fn line(random: &mut Random, kind: &str, body: Body, turn: usize) -> String {
    let manager = one(random, &["x", "y", "z"]);
    let what = body(random);
    match pick(random, 6) {
        0 if turn > 0 => format!("merge {kind}/a?fieldManager={manager} !{what}"),
        1 | 2 => format!("apply {kind}/a?fieldManager={manager}&force=true {what}"),
        _ => format!("apply {kind}/a?fieldManager={manager} {what}"),
    }
}

fn pick(random: &mut Random, below: usize) -> usize {
    usize::try_from(random.below(below as u64)).unwrap()
}

fn one(random: &mut Random, words: &[&'static str]) -> &'static str {
    words[pick(random, words.len())]
}

fn coin(random: &mut Random) -> bool {
    pick(random, 2) == 0
}

/// Some of these, each with a value of a few.
fn some(random: &mut Random, names: &[&str], mut value: impl FnMut(&mut Random) -> Value) -> Value {
    let mut map = json!({});
    for name in names {
        if coin(random) {
            map[*name] = value(random);
        }
    }
    map
}

fn word(random: &mut Random) -> Value {
    Value::from(one(random, &["", "1", "2"]))
}

fn metadata(random: &mut Random) -> Value {
    let mut metadata = json!({});
    if coin(random) {
        metadata["labels"] = some(random, &["a", "b"], word);
    }
    if pick(random, 4) == 0 {
        metadata["annotations"] = some(random, &["c"], word);
    }
    if pick(random, 4) == 0 {
        let all = ["example.com/a", "example.com/b"];
        let chosen: Vec<_> = all.into_iter().filter(|_| coin(random)).collect();
        metadata["finalizers"] = json!(chosen);
    }
    metadata
}

fn config_map(random: &mut Random) -> Value {
    let mut map = json!({"metadata": metadata(random)});
    if coin(random) {
        map["data"] = some(random, &["a", "b", "c"], word);
    }
    map
}

fn deployment(random: &mut Random) -> Value {
    let mut containers = vec![container(random, "c")];
    for name in ["d", "e"] {
        if coin(random) {
            let at = pick(random, containers.len() + 1);
            containers.insert(at, container(random, name));
        }
    }
    let mut pod = json!({"containers": containers});
    if coin(random) {
        pod["volumes"] = json!([{"name": "v", "emptyDir": {}}]);
    }
    if coin(random) {
        pod["nodeSelector"] = some(random, &["n", "m"], word);
    }
    let mut spec = json!({"selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": pod}});
    if coin(random) {
        spec["replicas"] = json!(pick(random, 3));
    }
    if pick(random, 4) == 0 {
        spec["paused"] = json!(coin(random));
    }
    json!({"metadata": metadata(random), "spec": spec})
}

fn container(random: &mut Random, name: &str) -> Value {
    let mut container = json!({"name": name, "image": one(random, &["i:1", "i:2"])});
    if coin(random) {
        let env: Vec<_> = ["A", "B"].into_iter().filter(|_| coin(random)).collect();
        container["env"] = env.iter().map(|name| json!({"name": name, "value": word(random)})).collect();
    }
    if coin(random) {
        // Ports that two containers have are warned of, and two of the same name refused.
        let port = u64::from(name.as_bytes()[0]) * 10 + random.below(2);
        container["ports"] = json!([{"containerPort": port, "name": format!("p{port}")}]);
    }
    if coin(random) {
        container["args"] = json!([word(random)]);
    }
    if coin(random) {
        container["resources"] =
            json!({"limits": some(random, &["cpu", "memory"], |random| json!(one(random, &["1", "2"])))});
    }
    container
}

fn service(random: &mut Random) -> Value {
    let mut ports = vec![json!({"name": "p", "port": 80 + pick(random, 2)})];
    if coin(random) {
        ports.insert(pick(random, 2), json!({"name": "q", "port": 90, "protocol": one(random, &["TCP", "UDP"])}));
    }
    let mut spec = json!({"ports": ports});
    if coin(random) {
        spec["selector"] = some(random, &["a", "b"], word);
    }
    if coin(random) {
        spec["sessionAffinity"] = json!(one(random, &["None", "ClientIP"]));
    }
    json!({"metadata": metadata(random), "spec": spec})
}

fn widget(random: &mut Random) -> Value {
    let mut spec = json!({"size": 1 + pick(random, 2)});
    if coin(random) {
        let tags: Vec<_> = ["a", "b", "c"].into_iter().filter(|_| coin(random)).collect();
        spec["tags"] = json!(tags);
    }
    if coin(random) {
        let ports = [json!({"port": 1}), json!({"port": 1, "protocol": "UDP"}), json!({"port": 2, "name": "n"})];
        let ports: Vec<_> = ports.into_iter().filter(|_| coin(random)).collect();
        spec["ports"] = json!(ports);
    }
    for field in ["options", "whole"] {
        if coin(random) {
            spec[field] = some(random, &["a", "b"], |random| json!(one(random, &["1", "2"])));
        }
    }
    if coin(random) {
        spec["free"] = json!({"x": some(random, &["y", "z"], word), "l": [pick(random, 2)]});
    }
    if coin(random) {
        spec["items"] = json!([{"name": word(random)}]);
    }
    if coin(random) {
        spec["color"] = json!(one(random, &["red", "green"]));
    }
    json!({"metadata": metadata(random), "spec": spec})
}
