//! A small kubectl on Cloudcoil: the program that shows its API off, and lets anyone try every verb from a shell.
//!
//! ```text
//! cargo run --example coil -- get pods -A
//! cargo run --example coil -- apply -f web.yaml
//! cargo run --example coil -- follow configmaps
//! cargo run --example coil -- --help
//! ```
//!
//! Exit codes: 0 when all went well, 1 when the API server or the network said no, 2 for a command line that cannot be
//! understood.

mod args;
mod change;
mod delete;
mod discover;
mod durations;
mod evict;
mod fault;
mod files;
mod follow;
mod get;
mod kinds;
mod logs;
mod out;
mod patch;
mod result;
mod scale;
mod session;
mod structure;
mod table;
mod tabs;
mod template;
mod trace;
mod wait;
mod watch;

use std::io::Write as _;
use std::process::ExitCode;

use args::{Asked, Coil, Command, ConfigCommand};
use fault::Fault;
use out::Out;
use session::Session;

/// Does what the command line says.
pub fn main() -> ExitCode {
    let coil = match Coil::read(std::env::args_os()) {
        Ok(coil) => coil,
        Err(Asked::Help(help)) => {
            // Help that nobody reads is no fault.
            let _ = help.print().and_then(|()| std::io::stdout().flush());
            return ExitCode::SUCCESS;
        }
        Err(Asked::Wrong(fault)) => return end(Err(fault)),
    };
    if coil.global.verbose.is_some_and(|level| level > 0) {
        trace::start();
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return end(Err(Fault::failed(format!("cannot start: {error}")))),
    };
    let done = runtime.block_on(run(coil));
    // One of its threads may be writing to somebody who does not read.
    runtime.shutdown_background();
    end(done)
}

async fn run(coil: Coil) -> Result<(), Fault> {
    let mut out = Out::new();
    let mut session = Session::new(&coil);
    let done = command(coil.command, &mut session, &mut out).await;
    // What was found before a failure is printed all the same.
    let flushed = out.flush();
    done.and(flushed)
}

async fn command(command: Command, session: &mut Session, out: &mut Out) -> Result<(), Fault> {
    match command {
        Command::Config { command: ConfigCommand::View { raw, output, .. } } => {
            out.print(&session.configuration(raw, output).await?)
        }
        Command::Whoami(args) => discover::whoami(args, session, out).await,
        Command::ApiResources(args) => discover::resources(args, session, out).await,
        Command::Version(args) => discover::version(args, session, out).await,
        Command::Get(args) => get::run(args, session, out).await,
        Command::Follow(args) => follow::run(args, session).await,
        Command::Create(args) => change::create(args, session, out).await,
        Command::Apply(args) => change::apply(args, session, out).await,
        Command::Replace(args) => change::replace(args, session, out).await,
        Command::Delete(args) => delete::run(args, session, out).await,
        Command::Patch(args) => patch::run(args, session, out).await,
        Command::Scale(args) => scale::run(args, session, out).await,
        Command::Wait(args) => wait::run(args, session, out).await,
        Command::Logs(args) => logs::run(args, session, out).await,
        Command::Evict(args) => evict::run(args, session, out).await,
    }
}

fn end(done: Result<(), Fault>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            out::complain(&fault);
            ExitCode::from(fault.code())
        }
    }
}
