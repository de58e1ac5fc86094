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

mod asynchronous;
mod blocking;
mod on_executors;
mod on_threads;
mod server;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

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

/// What the operator works on.
enum Work {
    /// The cluster of the current kubeconfig.
    Run,
    /// A server in memory, whose kubeconfig goes to a file.
    Dev(Option<PathBuf>),
}

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

/// What is to be done, and on what; options stand before or after the word.
fn arguments(mut arguments: impl Iterator<Item = String>) -> Result<(Work, String), String> {
    let (mut word, mut kubeconfig, mut runtime) = (None, None, None);
    while let Some(argument) = arguments.next() {
        let (name, inline) = match argument.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name.to_owned(), Some(value.to_owned())),
            _ => (argument, None),
        };
        let mut value = || inline.clone().or_else(|| arguments.next()).ok_or_else(|| format!("{name} needs a value"));
        match name.as_str() {
            "--kubeconfig" => kubeconfig = Some(PathBuf::from(value()?)),
            "--runtime" => runtime = Some(value()?),
            "dev" | "run" if word.is_none() => word = Some(name),
            _ => return Err(format!("{name:?} is not understood")),
        }
    }
    let runtime = runtime.unwrap_or_else(|| RUNTIMES[0].to_owned());
    if !RUNTIMES.contains(&runtime.as_str()) {
        return Err(format!("there is no runtime {runtime:?}: choose {}", RUNTIMES.join(", ")));
    }
    match (word.as_deref(), kubeconfig) {
        (Some("dev"), file) => Ok((Work::Dev(file), runtime)),
        (Some(_), None) => Ok((Work::Run, runtime)),
        (Some(_), Some(_)) => Err("--kubeconfig is where dev writes to; run goes by KUBECONFIG".to_owned()),
        (None, _) => Err("say what to do: dev or run".to_owned()),
    }
}

/// What a program ends with.
type Done = Result<(), Box<dyn Error>>;

const RUNTIMES: [&str; 4] = ["tokio", "async-std", "blocking", "smol"];

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<(Work, String), String> {
        arguments(line.split_whitespace().map(ToOwned::to_owned))
    }

    #[test]
    fn options_stand_before_or_after_what_is_to_be_done() {
        for line in ["dev --kubeconfig f --runtime smol", "--runtime=smol dev --kubeconfig=f"] {
            let (Work::Dev(Some(file)), runtime) = read(line).unwrap() else { panic!("{line}") };
            assert_eq!((file, runtime.as_str()), ("f".into(), "smol"), "{line}");
        }
        assert!(matches!(read("run"), Ok((Work::Run, runtime)) if runtime == "tokio"));
    }

    #[test]
    fn mistakes_are_told() {
        for (line, part) in [
            ("", "dev or run"),
            ("dev run", "\"run\""),
            ("run --kubeconfig f", "KUBECONFIG"),
            ("dev --runtime", "needs a value"),
            ("dev --runtime novel", "choose tokio, async-std, blocking, smol"),
        ] {
            assert!(read(line).is_err_and(|problem| problem.contains(part)), "{line}");
        }
    }
}
