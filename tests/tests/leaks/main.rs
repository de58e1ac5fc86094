//! What clients leave behind when they are gone: no thread, no open file, no task.
//!
//! Alone in its process, and one test after the other on one thread, as what is counted is the process's.

#![cfg_attr(not(target_os = "linux"), expect(unused, reason = "threads and files can be counted on Linux alone"))]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod asynchronous;
mod counts;
mod servers;
mod threads;

use std::process::ExitCode;

use cloudcoil_runtime::core::config::Config;
use cloudcoil_tests::cluster::Cluster;
use libtest_mimic::{Arguments, Trial};

use counts::Counts;
use servers::{cluster, other_authority, silent, vacant};

/// Lives of clients, on an executor or on threads. Each ends with everything given up that it began with.
trait World {
    /// How many tasks are alive.
    fn tasks(&self) -> usize;

    /// A call, and a watch that is dropped in the midst of it, in one of several ways.
    fn live(&self, config: &Config, number: usize);

    /// An informer and a controller.
    fn operate(&self, config: &Config);

    /// A call, a watch, an informer and a controller of a server with which no exchange comes to an end. The call is given up soon.
    fn fail(&self, config: &Config);
}

/// Something that happens to a client, so many times.
struct Case {
    name: &'static str,
    times: usize,
    /// What a run needs, which lasts as long as it is run.
    prepare: fn() -> Run,
}

type Start = fn() -> Box<dyn World>;
type Run = Box<dyn Fn(&dyn World, usize)>;

const CASES: [Case; 6] = [
    Case { name: "a_thousand_lives_over_tcp", times: 1000, prepare: || lives(cluster(false)) },
    Case { name: "a_thousand_lives_over_tls", times: 1000, prepare: || lives(cluster(true)) },
    Case { name: "refused_connections", times: 200, prepare: || failures(vacant()) },
    Case { name: "servers_that_are_not_trusted", times: 100, prepare: untrusted },
    Case { name: "servers_that_say_nothing", times: 50, prepare: || failures(silent("http")) },
    Case { name: "handshakes_that_do_not_end", times: 50, prepare: || failures(silent("https")) },
];

fn lives(cluster: Cluster) -> Run {
    Box::new(move |world, number| {
        world.live(&cluster.config(), number);
        if number.is_multiple_of(50) {
            world.operate(&cluster.config());
        }
    })
}

fn failures(config: Config) -> Run {
    Box::new(move |world, _| world.fail(&config))
}

fn untrusted() -> Run {
    let cluster = cluster(true);
    let mut config = cluster.config();
    config.tls.ca = Some(other_authority());
    Box::new(move |world, _| {
        let _cluster = &cluster;
        world.fail(&config);
    })
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let worlds: [(&str, Start); 4] = [
        ("tokio", asynchronous::on_tokio),
        ("async_std", asynchronous::on_async_std),
        ("smol", asynchronous::on_smol),
        ("blocking", threads::on_threads),
    ];
    let mut trials = Vec::new();
    for (name, world) in worlds {
        for case in CASES {
            let trial = Trial::test(format!("{name}::{}", case.name), move || {
                case.run(&*world());
                Ok(())
            });
            trials.push(trial.with_ignored_flag(cfg!(not(target_os = "linux"))));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

impl Case {
    /// Everything is as it was before, soon after the last life.
    fn run(&self, world: &dyn World) {
        let run = (self.prepare)();
        let count = || Counts::of(world.tasks());
        // What is made once and kept for the next time, such as the threads of an executor.
        (0..WARM_UP).for_each(|number| run(world, number));
        let before = counts::resting(count);
        (0..self.times).for_each(|number| run(world, number));
        let after = counts::until(count, |now| now.is_within(&before));
        assert!(
            after.is_within(&before),
            "{} lives have left something behind: {before:?} before, {after:?} after",
            self.times
        );
    }
}

const WARM_UP: usize = 3;
