//! The same scenarios for every client, on every server: what works in one place works in all.
//!
//! A test is called by what its client runs on, its server, and the scenario, as `blocking::tls::watches::NAME`.
//! To add a scenario, write a function of a [`Stage`] in the file of its area below `scenarios/`, and name it in the list at the top of
//! that file, under the servers that it is for ([`On`](stage::On)). It talks to an API server ([`Stage::api`]), or to one that answers by
//! a script ([`Stage::play`]), with calls as data ([`Op`](world::op::Op)). It must not care which client it has, nor measure time other than
//! virtual time.
//!
//! Names given on the command line choose tests, as they do everywhere. Those on a `real` control plane are left out, and
//! shown as ignored, where there is none; with `CLOUDCOIL_REQUIRE_CONTROL_PLANE=1` that is a failure.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod scenarios;
mod scripted;
mod servers;
mod stage;
mod world;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

use stage::{Place, Scenario, Stage};
use world::Executor;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Most of them wait, and few work.
    arguments.test_threads.get_or_insert(THREADS);
    let mut trials: Vec<_> = tests().map(Test::trial).collect();
    let real = |trial: &&Trial| trial.name().contains(REAL);
    let wants_real = !arguments.list && trials.iter().filter(real).any(|trial| chosen(&arguments, trial.name()));
    if wants_real && !servers::start_real() {
        let leave_out = |trial: Trial| {
            let is_real = trial.name().contains(REAL);
            trial.with_ignored_flag(is_real)
        };
        trials = trials.into_iter().map(leave_out).collect();
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    servers::stop_real();
    conclusion.exit_code()
}

/// Whether a test is chosen by the command line, as far as names tell.
fn chosen(arguments: &Arguments, name: &str) -> bool {
    let fits = |filter: &String| if arguments.exact { name == filter } else { name.contains(filter.as_str()) };
    arguments.filter.as_ref().is_none_or(fits) && !arguments.skip.iter().any(fits)
}

struct Test {
    executor: Option<Executor>,
    place: Place,
    area: &'static str,
    scenario: &'static Scenario,
}

fn tests() -> impl Iterator<Item = Test> {
    let scenarios = scenarios::ALL.iter().flat_map(|(area, list)| list.iter().map(move |scenario| (*area, scenario)));
    scenarios.flat_map(|(area, scenario)| {
        let stages = scenario.on.stages().into_iter();
        stages.map(move |(executor, place)| Test { executor, place, area, scenario })
    })
}

impl Test {
    fn trial(self) -> Trial {
        let Self { executor, place, area, scenario } = self;
        let world = executor.map_or("simulator", Executor::name);
        let name = format!("{world}::{}::{area}::{}", place.name(), scenario.name);
        Trial::test(name, move || {
            (scenario.run)(&Stage::new(executor, place));
            Ok(())
        })
    }
}

const THREADS: usize = 8;
const REAL: &str = "::real::";
