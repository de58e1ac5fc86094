//! An operator that keeps a derived ConfigMap in step with each ConfigMap that asks for one.
//!
//! ```text
//! cargo run --example labeler -- dev [--kubeconfig FILE]   # against an API server in memory; needs no cluster
//! cargo run --example labeler -- run                       # against the current kubeconfig's cluster
//! ```

mod dev;
mod operator;

use std::path::PathBuf;
use std::process::ExitCode;

use cloudcoil_tokio::{prelude::*, shutdown_signal};
use tracing_subscriber::filter::LevelFilter;

const USAGE: &str = "\
Usage: labeler dev [--kubeconfig FILE]
       labeler run

dev  starts an API server in memory, creates a few objects and runs the operator
     against it; the kubeconfig is written to FILE, or to a temporary file
run  runs the operator against the cluster of the current kubeconfig
";

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt().with_max_level(LevelFilter::INFO).with_target(false).without_time().init();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        ["dev"] => dev::run(None).await,
        ["dev", "--kubeconfig", file] => dev::run(Some(PathBuf::from(file))).await,
        ["run"] => run().await,
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("labeler: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::try_default().await?;
    Ok(operator::controller().run(client, shutdown_signal()).await?)
}
