use rustix::process::Signal;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::ControlPlane;
use super::process::Server;
use crate::Error;

/// One process of a [`ControlPlane`], to be stopped, started, paused and resumed.
#[derive(Clone, Copy, Debug)]
pub struct Component<'a> {
    plane: &'a ControlPlane,
    which: Which,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Which {
    Etcd,
    ApiServer,
}

impl<'a> Component<'a> {
    pub(super) fn new(plane: &'a ControlPlane, which: Which) -> Self {
        Self { plane, which }
    }

    /// Starts it on the port it had before, and waits until it is ready. Nothing happens if it runs.
    ///
    /// # Errors
    /// When it ends or is not ready in time; the API server never gets ready while etcd is stopped or paused.
    pub fn start(self) -> Result<(), Error> {
        let mut server = self.server();
        let mut attempt = 1;
        loop {
            server.spawn()?;
            match server.wait_ready(self.plane.ready_within, || self.probe()) {
                Err(error) if error.is_port_taken() && attempt < ATTEMPTS => {
                    attempt += 1;
                    thread::sleep(PORT_PAUSE);
                }
                result => return result,
            }
        }
    }

    /// Asks it to end, as a node that shuts down in order, and waits until it has; after 3 seconds it is killed.
    ///
    /// Both processes take far longer than that while somebody watches through them. Nothing happens if it does not run.
    pub fn stop(self) {
        self.server().stop(STOP_WITHIN);
    }

    /// Kills it, as a crash would. Nothing happens if it does not run.
    pub fn kill(self) {
        self.server().kill();
    }

    /// [`stop`](Self::stop), then [`start`](Self::start).
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn restart(self) -> Result<(), Error> {
        self.stop();
        self.start()
    }

    /// Stops it from running without ending it (SIGSTOP): connections stay open and nothing answers.
    ///
    /// # Errors
    /// When it does not run.
    pub fn pause(self) -> Result<(), Error> {
        self.server().signal(Signal::STOP)
    }

    /// Lets it run again after [`pause`](Self::pause). Nothing happens if it was not paused.
    ///
    /// # Errors
    /// When it does not run.
    pub fn resume(self) -> Result<(), Error> {
        self.server().signal(Signal::CONT)
    }

    /// Whether its process is there, paused or not.
    #[must_use]
    pub fn is_running(self) -> bool {
        self.server().is_running()
    }

    /// The id of its process, while it runs.
    #[must_use]
    pub fn process_id(self) -> Option<u32> {
        self.server().id()
    }

    /// Where it logs to. The file vanishes with the control plane.
    #[must_use]
    pub fn log_path(self) -> PathBuf {
        self.server().log().to_owned()
    }

    /// The last lines of its log, at most 8 KiB.
    #[must_use]
    pub fn log_tail(self) -> String {
        self.server().log_tail()
    }

    fn probe(self) -> Result<(), String> {
        match self.which {
            Which::Etcd => self.plane.etcd.probe(),
            Which::ApiServer => self.plane.apiserver.probe(),
        }
    }

    fn server(self) -> MutexGuard<'a, Server> {
        let server: &'a Mutex<Server> = match self.which {
            Which::Etcd => &self.plane.etcd_server,
            Which::ApiServer => &self.plane.apiserver_server,
        };
        // A panic leaves no half-made state behind: the process runs or it does not.
        server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const STOP_WITHIN: Duration = Duration::from_secs(3);
const ATTEMPTS: u32 = 20;
const PORT_PAUSE: Duration = Duration::from_millis(250);
