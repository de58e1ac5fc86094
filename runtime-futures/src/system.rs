//! The files and programs of this machine.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::process::Stdio;

use cloudcoil_core::config::{ReadError, Secret};
use cloudcoil_core::credentials::{Command, Finished, RunError};
use cloudcoil_runtime::System;
use futures_util::future::{BoxFuture, join};
use futures_util::io::{AsyncRead, AsyncReadExt as _};

/// Reads files on threads that may wait, and runs programs as children of this process.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is one system, and nothing to set")]
pub struct LocalSystem;

impl System for LocalSystem {
    fn read(&self, path: PathBuf) -> BoxFuture<'static, Result<Vec<u8>, ReadError>> {
        Box::pin(blocking::unblock(move || Ok(std::fs::read(path)?)))
    }

    fn run(&self, command: Command) -> BoxFuture<'static, Result<Finished, RunError>> {
        Box::pin(run(command))
    }

    fn has_terminal(&self) -> bool {
        io::stdin().is_terminal()
    }
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
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr) = join(read(stdout, Command::STDOUT), read(stderr, Command::STDERR)).await;
    let status = child.status().await.map_err(|error| RunError::Failed(error.to_string().into()))?;
    Ok(Finished { ending: status.into(), stdout: Secret::new(stdout), stderr })
}

/// What a program writes, as much of it as is of use; the rest is read too, or the program would wait.
async fn read(pipe: Option<impl AsyncRead + Unpin>, limit: usize) -> Vec<u8> {
    let mut kept = Vec::new();
    let Some(mut pipe) = pipe else { return kept };
    let mut buffer = [0; 4096];
    // A program that breaks off is judged by how it ends.
    while let Ok(length @ 1..) = pipe.read(&mut buffer).await {
        kept.extend_from_slice(&buffer[..length.min(limit.saturating_sub(kept.len()))]);
    }
    kept
}
