//! The files and programs of this machine.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

use async_io::Timer;
use cloudcoil_core::config::{ReadError, Secret};
use cloudcoil_core::credentials::{Command, Finished, RunError};
use cloudcoil_runtime::System;
use futures_util::future::{BoxFuture, Either, join, select};
use futures_util::io::{AsyncRead, AsyncReadExt as _};

/// Reads files on threads that may wait, and runs programs as children of this process.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is one system, and nothing to set")]
pub struct LocalSystem;

impl System for LocalSystem {
    fn read(&self, path: PathBuf) -> BoxFuture<'static, Result<Vec<u8>, ReadError>> {
        Box::pin(read_file(path))
    }

    fn run(&self, command: Command) -> BoxFuture<'static, Result<Finished, RunError>> {
        Box::pin(run(command))
    }

    fn has_terminal(&self) -> bool {
        io::stdin().is_terminal()
    }
}

/// Reads a file whole.
///
/// # Errors
/// [`ReadError`], as the system has it.
pub async fn read_file(path: PathBuf) -> Result<Vec<u8>, ReadError> {
    blocking::unblock(move || cloudcoil_runtime::read_file(&path)).await
}

async fn run(command: Command) -> Result<Finished, RunError> {
    let interactive = command.is_interactive;
    let mut child = async_process::Command::new(&command.program)
        .args(&command.args)
        .envs(command.env.iter().map(|(name, value)| (name, value)))
        .stdin(if interactive { Stdio::inherit() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(if interactive { Stdio::inherit() } else { Stdio::piped() })
        .kill_on_drop(true)
        .spawn()?;
    let (mut printed, mut said) = (Vec::new(), Vec::new());
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let status = {
        let mut pipes = pin!(join(collect(stdout, &mut printed), pass_through(stderr, &mut said)));
        match select(pin!(child.status()), &mut pipes).await {
            Either::Right((_, waiting)) => waiting.await,
            Either::Left((status, _)) => {
                // What it has started may go on, and hold the pipes open: that is not waited for.
                select(Timer::after(DRAIN), pipes).await;
                status
            }
        }
    };
    let status = status.map_err(|error| RunError::Failed(error.to_string().into()))?;
    Ok(Finished { ending: status.into(), stdout: Secret::new(printed), stderr: said })
}

/// Reads to the end, or one byte more than is allowed; whoever writes more then has nobody who listens.
async fn collect(stdout: Option<impl AsyncRead + Unpin>, printed: &mut Vec<u8>) {
    let Some(stdout) = stdout else { return };
    // Half of what was printed is told from the whole by whoever reads it.
    let _ = stdout.take(Command::STDOUT as u64 + 1).read_to_end(printed).await;
}

/// Shows everything on the standard error of this process, and keeps the end.
async fn pass_through(stderr: Option<impl AsyncRead + Unpin>, said: &mut Vec<u8>) {
    let Some(mut stderr) = stderr else { return };
    let mut piece = [0; 4096];
    while let Ok(length @ 1..) = stderr.read(&mut piece).await {
        // Nobody can be told that there is nobody to be told.
        let _ = io::stderr().write_all(&piece[..length]);
        said.extend_from_slice(&piece[..length]);
        said.drain(..said.len().saturating_sub(Command::STDERR));
    }
}

/// How long the output of a program that has ended is waited for.
const DRAIN: Duration = Duration::from_secs(1);
