//! The files and programs of this machine.

use std::io::{self, IsTerminal as _};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::thread;

use cloudcoil_core::config::ReadError;
use cloudcoil_core::credentials::{Command, Finished, RunError};
use futures_channel::oneshot;
use futures_util::future::BoxFuture;

use crate::blocking::program::Program;
use crate::blocking::{self, Cancel};
use crate::{System, read_file, reread_file};

/// Reads files, resolves names, and runs programs as children of this process, for tasks and for threads. What tasks wait for is done on a thread of
/// its own, so that no executor's is blocked.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is one system, and nothing to set")]
pub struct LocalSystem;

impl LocalSystem {
    /// As [`read_file`](crate::read_file), for tasks.
    ///
    /// # Errors
    /// As there.
    pub async fn read_file(path: PathBuf) -> Result<Vec<u8>, ReadError> {
        content(move || read_file(path)).await
    }

    /// The addresses of a host's name, in the order in which they are to be tried.
    ///
    /// # Errors
    /// As the system has it.
    pub async fn resolve(host: String, port: u16) -> io::Result<impl Iterator<Item = SocketAddr>> {
        // What is an address already needs no thread.
        if let Ok(ip) = host.parse::<IpAddr>() {
            return Ok(vec![(ip, port).into()].into_iter());
        }
        aside("cloudcoil-name", move || (host, port).to_socket_addrs())
            .await
            .map_err(|why| io::Error::other(String::from(why)))?
    }
}

impl System for LocalSystem {
    fn read(&self, path: PathBuf) -> BoxFuture<'static, Result<Vec<u8>, ReadError>> {
        Box::pin(content(move || reread_file(path)))
    }

    fn run(&self, command: Command) -> BoxFuture<'static, Result<Finished, RunError>> {
        Box::pin(async move {
            let ending = Ending(Cancel::new());
            let program = Program::start(command, &ending.0)?;
            let attended = aside("cloudcoil-program", move || program.attend()).await;
            attended.unwrap_or_else(|why| Err(RunError::Failed(why)))
        })
    }

    fn has_terminal(&self) -> bool {
        io::stdin().is_terminal()
    }
}

impl blocking::System for LocalSystem {
    fn read(&self, path: PathBuf) -> Result<Vec<u8>, ReadError> {
        reread_file(path)
    }

    fn run(&self, command: Command, cancel: &Cancel) -> Result<Finished, RunError> {
        Program::start(command, cancel)?.attend()
    }

    fn has_terminal(&self) -> bool {
        io::stdin().is_terminal()
    }
}

/// Ends a program with the future that waits for it.
struct Ending(Cancel);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

async fn content(read: impl FnOnce() -> Result<Vec<u8>, ReadError> + Send + 'static) -> Result<Vec<u8>, ReadError> {
    aside("cloudcoil-file", read).await.unwrap_or_else(|why| Err(ReadError::Failed(why)))
}

/// What comes of work on a thread of its own, or why nothing does.
async fn aside<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Box<str>> {
    let (tell, told) = oneshot::channel();
    // Nobody may want to know.
    let worked = thread::Builder::new().name(name.into()).spawn(move || drop(tell.send(work())));
    worked.map_err(|error| format!("the system refuses a thread: {error}"))?;
    told.await.map_err(|_| "it panicked".into())
}
