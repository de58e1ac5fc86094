//! A small kubectl on Cloudcoil: the program that shows its API off, and lets anyone try every verb from a shell.
//!
//! ```text
//! cargo run --example coil -- get pods -A
//! cargo run --example coil -- apply -f web.yaml
//! cargo run --example coil -- follow configmaps
//! cargo run --example coil -- --runtime blocking get pods -A
//! cargo run --example coil -- --help
//! ```
//!
//! The commands are written once, and are there twice: as futures, for tokio, async-std and smol, and for plain
//! threads, without `async` and `.await`. What differs stands in `asynchronous` and `blocking`.
//!
//! Exit codes: 0 when all went well, 1 when the API server or the network said no, 2 for a command line that cannot be
//! understood.
#![expect(clippy::duplicate_mod, reason = "the commands are written once and compiled twice")]

mod args;
mod asynchronous;
mod blocking;
mod durations;
mod fault;
mod files;
mod format;
mod kinds;
mod out;
mod result;
mod structure;
mod table;
mod tabs;
mod template;
mod trace;

use std::io::Write as _;
use std::process::ExitCode;

use args::{Asked, Coil, Runtime};
use asynchronous::Executor;
use fault::Fault;

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
    end(match coil.global.runtime {
        Runtime::Tokio => asynchronous::run(coil, Executor::Tokio),
        Runtime::AsyncStd => asynchronous::run(coil, Executor::AsyncStd),
        Runtime::Smol => asynchronous::run(coil, Executor::Smol),
        Runtime::Blocking => blocking::run(coil),
    })
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
