//! Server-side apply, field ownership and validation by schema: a real control plane and the server in memory are sent the
//! same requests and must answer alike.
//!
//! The requests are in `scenarios.txt`, and made up by seed in `made_up.rs`.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at what it does not expect")]

mod alike;
mod made_up;
mod servers;

use std::fmt::Write as _;

use alike::{differences, normal};
use cloudcoil_testing::ControlPlane;
use servers::{Answer, InMemory, Real, Request, Server};

const SCENARIOS: &str = include_str!("scenarios.txt");
const WIDGETS: &str = include_str!("widgets.json");

/// What is sent in a namespace of its own.
pub(crate) struct Scenario {
    name: String,
    lines: Vec<String>,
}

#[test]
fn the_server_in_memory_answers_as_a_real_one() {
    let Some(plane) = ControlPlane::start_or_skip("the_server_in_memory_answers_as_a_real_one") else { return };
    let (mut real, mut memory) = (Real::new(&plane), InMemory::new());
    for server in [&mut real as &mut dyn Server, &mut memory] {
        server.define(WIDGETS);
    }
    let mut scenarios = scenarios(SCENARIOS);
    let written: usize = scenarios.iter().map(|scenario| scenario.lines.len()).sum();
    assert!(scenarios.len() >= 30 && written >= 200, "{} scenarios of {written} requests", scenarios.len());
    scenarios.extend((0..made_up::SEEDS).flat_map(made_up::scenarios));
    let mut complaints = String::new();
    for (index, scenario) in scenarios.iter().enumerate() {
        let namespace = format!("scenario-{index}");
        let [expected, found] =
            [&mut real as &mut dyn Server, &mut memory].map(|server| run(server, scenario, &namespace));
        for ((line, expected), found) in scenario.lines.iter().zip(&expected).zip(&found) {
            let different = differences(expected, found);
            if !different.is_empty() {
                let _ = writeln!(complaints, "{}: {line}\n{}", scenario.name, different.join("\n"));
                break;
            }
        }
    }
    assert!(complaints.is_empty(), "{complaints}");
}

/// What a server answers to each line, in its normal form.
fn run(server: &mut dyn Server, scenario: &Scenario, namespace: &str) -> Vec<serde_json::Value> {
    server.make_namespace(namespace);
    let mut version = String::new();
    let mut answers = Vec::new();
    for line in &scenario.lines {
        let answer: Answer = server.send(&Request::parse(line, namespace, &version));
        if let Some(found) = answer.body["metadata"]["resourceVersion"].as_str().filter(|text| !text.is_empty()) {
            found.clone_into(&mut version);
        }
        answers.push(normal(&answer, namespace));
    }
    answers
}

fn scenarios(text: &str) -> Vec<Scenario> {
    let mut scenarios: Vec<Scenario> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix("== ") {
            scenarios.push(Scenario { name: name.to_owned(), lines: Vec::new() });
            continue;
        }
        let lines = &mut scenarios.last_mut().expect("a scenario begins with its name").lines;
        match line.strip_prefix(' ') {
            Some(more) => {
                let before = lines.last_mut().expect("a line goes on from another");
                before.push('\n');
                before.push_str(more);
            }
            None => lines.push(line.to_owned()),
        }
    }
    scenarios
}

#[test]
fn scenarios_are_read_and_differences_found() {
    let found = scenarios("# note\n== one\nget cm/a\npost cm/a !a:\n  b\n\n== two\nget cm/b\n");
    let lines: Vec<_> = found.iter().map(|scenario| (scenario.name.as_str(), scenario.lines.join("|"))).collect();
    assert_eq!(lines, [("one", "get cm/a|post cm/a !a:\n b".to_owned()), ("two", "get cm/b".to_owned())]);
    let (one, two) = (serde_json::json!({"a": [1, {"b": 2}]}), serde_json::json!({"a": [1, {"b": 3}], "c": 1}));
    assert_eq!(differences(&one, &one), Vec::<String>::new());
    assert_eq!(differences(&one, &two).len(), 2);
}
