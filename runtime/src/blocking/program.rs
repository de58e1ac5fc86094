//! Programs that fetch credentials.

use std::io::{self, Read, Write as _};
use std::process::{Child, ChildStderr, ChildStdout, Command as Process, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use cloudcoil_core::config::Secret;
use cloudcoil_core::credentials::{Command, Finished, RunError};

use super::Cancel;

/// A program that runs. Dropping it ends the program.
pub(crate) struct Program {
    child: Arc<Mutex<Child>>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    tell: Sender<Heard>,
    heard: Receiver<Heard>,
}

impl Program {
    /// Once `cancel` is called for, the program is ended.
    pub(crate) fn start(command: Command, cancel: &Cancel) -> Result<Self, RunError> {
        let (stdin, stderr) = match command.is_interactive {
            true => (Stdio::inherit(), Stdio::inherit()),
            false => (Stdio::null(), Stdio::piped()),
        };
        let mut process = Process::new(command.program);
        process.args(command.args).envs(command.env).stdin(stdin).stdout(Stdio::piped()).stderr(stderr);
        let mut child = process.spawn()?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let child = Arc::new(Mutex::new(child));
        let (tell, heard) = mpsc::channel();
        let (ending, cancelled) = (child.clone(), tell.clone());
        cancel.on_cancel(move || {
            end(&ending);
            let _ = cancelled.send(Heard::Cancelled);
        });
        Ok(Self { child, stdout, stderr, tell, heard })
    }

    /// Waits for its end.
    pub(crate) fn attend(mut self) -> Result<Finished, RunError> {
        self.finished().map_err(|error| RunError::Failed(error.to_string().into()))
    }

    fn finished(&mut self) -> io::Result<Finished> {
        let mut open = 0;
        if let Some(stdout) = self.stdout.take() {
            // Whoever writes more has nobody who listens.
            listen(stdout.take(Command::STDOUT as u64 + 1), self.tell.clone(), Heard::Printed)?;
            open += 1;
        }
        if let Some(stderr) = self.stderr.take() {
            listen(stderr, self.tell.clone(), Heard::Said)?;
            open += 1;
        }
        let (mut printed, mut said, mut ended) = (Vec::new(), Vec::new(), None);
        let mut pause = SHORTEST;
        loop {
            if ended.is_none() {
                ended = lock(&self.child).try_wait()?.map(|status| (status, Instant::now() + DRAIN));
            }
            // What it has started may go on, and hold the pipes open: that is not waited for.
            let wait = match ended {
                Some((status, until)) if open == 0 || until <= Instant::now() => {
                    return Ok(Finished { ending: status.into(), stdout: Secret::new(printed), stderr: said });
                }
                Some((_, until)) => until.saturating_duration_since(Instant::now()),
                None => pause,
            };
            match self.heard.recv_timeout(wait) {
                Ok(Heard::Printed(piece)) => printed.extend(piece),
                Ok(Heard::Said(piece)) => hear(&piece, &mut said),
                // Most end now.
                Ok(Heard::End) => (open, pause) = (open - 1, SHORTEST),
                Ok(Heard::Cancelled) => return Err(io::Error::other("nobody waits for it any more")),
                // The pipes say when most programs end; one that has closed them, or handed them on, has to be looked at.
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => pause = LONGEST.min(pause * 2),
            }
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        end(&self.child);
        let _ = lock(&self.child).wait();
    }
}

/// One that has ended by itself is left alone.
fn end(child: &Mutex<Child>) {
    let _ = lock(child).kill();
}

fn lock(child: &Mutex<Child>) -> MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is heard while a program runs.
enum Heard {
    Printed(Vec<u8>),
    Said(Vec<u8>),
    /// One of the two comes to an end.
    End,
    Cancelled,
}

/// Shows it on the standard error of this process, and keeps the end.
fn hear(piece: &[u8], said: &mut Vec<u8>) {
    // Nobody can be told that there is nobody to be told.
    let _ = io::stderr().write_all(piece);
    said.extend_from_slice(piece);
    said.drain(..said.len().saturating_sub(Command::STDERR));
}

/// Reads a pipe to its end, on a thread of its own, which is how a read can be given up.
fn listen(
    mut pipe: impl Read + Send + 'static,
    tell: Sender<Heard>,
    heard: impl Fn(Vec<u8>) -> Heard + Send + 'static,
) -> io::Result<()> {
    let read = move || {
        let mut piece = [0; 4096];
        loop {
            match pipe.read(&mut piece) {
                Ok(length @ 1..) => {
                    if tell.send(heard(piece[..length].to_vec())).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => break,
            }
        }
        drop(pipe);
        let _ = tell.send(Heard::End);
    };
    thread::Builder::new().name("cloudcoil-program".into()).spawn(read).map(drop)
}

/// How long the output of a program that has ended is waited for.
const DRAIN: Duration = Duration::from_secs(1);
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(50);
