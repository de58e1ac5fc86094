//! The same requests to the in-memory API server and to a real one, over TLS, and their answers compared.
//!
//! The requests are in `data`, one list for each scenario; see [`scenario::Step`] for what a step can say. A step whose
//! answers are known to differ says why, and must go on differing. Needs a [`ControlPlane`].
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "helpers of tests may unwrap where tests may")]

mod answer;
mod identity;
mod scenario;
mod side;

use std::fmt::Write as _;

use answer::differences;
use cloudcoil_testing::ControlPlane;
use scenario::{Scenario, scenarios};
use side::{Side, Sides};
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread")]
async fn the_in_memory_server_answers_as_a_real_one() {
    let test = "the_in_memory_server_answers_as_a_real_one";
    let Some(plane) = side::real(ControlPlane::builder(), test) else { return };
    let sides = Sides::start(plane).await;
    let all = scenarios();
    assert!(all.len() >= 90, "only {} scenarios are there", all.len());
    let (mut running, mut report) = (JoinSet::new(), Report::default());
    for (index, scenario) in all.into_iter().enumerate() {
        let (real, memory) = (sides.real.clone(), sides.memory.clone());
        running.spawn(compare(real, memory, scenario, format!("scenario-{index}")));
        // A few at a time, so that nobody waits long enough to give up.
        if running.len() >= 4 {
            report.add(running.join_next().await.unwrap().unwrap());
        }
    }
    while let Some(compared) = running.join_next().await {
        report.add(compared.unwrap());
    }
    eprintln!("{} scenarios, {} steps, {} known differences", report.scenarios, report.steps, report.known);
    assert!(report.faults.is_empty(), "{}", report.faults);
}

#[derive(Default)]
struct Report {
    scenarios: usize,
    steps: usize,
    known: usize,
    faults: String,
}

impl Report {
    fn add(&mut self, other: Self) {
        self.scenarios += other.scenarios;
        self.steps += other.steps;
        self.known += other.known;
        self.faults += &other.faults;
    }
}

async fn compare(real: Side, memory: Side, scenario: Scenario, namespace: String) -> Report {
    let (real, memory) = (real.anew().await, memory.anew().await);
    let (real, memory) = tokio::join!(real.play(&scenario, &namespace), memory.play(&scenario, &namespace));
    let mut report = Report { scenarios: 1, steps: scenario.steps.len(), ..Report::default() };
    for (index, step) in scenario.steps.iter().enumerate() {
        let found = differences(&real[index], &memory[index]);
        let known = |line: &String| step.differs.keys().any(|place| line.starts_with(place));
        let unknown: Vec<_> = found.iter().filter(|line| !known(line)).collect();
        let gone = step.differs.iter().filter(|(place, _)| !found.iter().any(|line| line.starts_with(*place)));
        report.known += found.len() - unknown.len();
        let title = format!("{} [{index}] {}", scenario.name, step.request);
        for line in unknown {
            let _ = writeln!(report.faults, "{title} differs at {line}");
        }
        for (place, reason) in gone {
            let _ = writeln!(report.faults, "{title} no longer differs at {place:?}, though it says: {reason}");
        }
    }
    report
}
