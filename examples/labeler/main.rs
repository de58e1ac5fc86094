//! An operator that keeps a derived ConfigMap in step with each ConfigMap that asks for one.
//!
//! ```text
//! cargo run --example labeler -- dev [--kubeconfig FILE]   # against an API server in memory; needs no cluster
//! cargo run --example labeler -- run                       # against the current kubeconfig's cluster
//! cargo run --example labeler -- dev --runtime blocking    # the same on plain threads
//! ```
//!
//! `operator.rs` is the operator. It is written once, and is there twice: with an `async fn`, for tokio, async-std and smol,
//! and with the same function on plain threads, without `async` and `.await`.
#![expect(clippy::duplicate_mod, reason = "the operator is written once and compiled twice")]

mod arguments;
mod asynchronous;
mod blocking;
mod on_executors;
mod on_threads;
mod server;

use std::error::Error;
use std::process::ExitCode;

use arguments::{Work, arguments};
use on_executors::Executor;
use tracing_subscriber::filter::LevelFilter;

const USAGE: &str = "\
Usage: labeler dev [--kubeconfig FILE] [--runtime NAME]
       labeler run [--runtime NAME]

dev  starts an API server in memory, creates a few objects and runs the operator
     against it; the kubeconfig is written to FILE, or to a temporary file
run  runs the operator against the cluster of the current kubeconfig

--runtime  what the operator runs on: tokio (unless it is said), async-std,
           blocking or smol
";

fn main() -> ExitCode {
    tracing_subscriber::fmt().with_max_level(LevelFilter::INFO).with_target(false).without_time().init();
    let (work, runtime) = match arguments(std::env::args().skip(1)) {
        Ok(known) => known,
        Err(problem) => {
            eprint!("labeler: {problem}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let done = match runtime.as_str() {
        "tokio" => on_executors::run(&work, Executor::Tokio),
        "async-std" => on_executors::run(&work, Executor::AsyncStd),
        "smol" => on_executors::run(&work, Executor::Smol),
        _ => on_threads::run(&work),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("labeler: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What a program ends with.
type Done = Result<(), Box<dyn Error>>;
