//! One server process that cannot outlive the process which started it.
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Error;

/// A program with its arguments and log, running or not.
///
/// It runs in a process group of its own together with a watchdog, a shell that waits for a pipe from this process to
/// close and then kills the group. The kernel closes that pipe however this process ends, so that not even SIGKILL
/// leaves a server behind.
pub(super) struct Server {
    name: &'static str,
    program: PathBuf,
    arguments: Vec<OsString>,
    log: PathBuf,
    running: Option<Running>,
}

struct Running {
    /// The server itself: the shell that starts the watchdog turns into it.
    child: Child,
    /// The pipe that the watchdog waits for; held for what dropping it does.
    _lifeline: ChildStdin,
}

impl Server {
    pub(super) fn new(name: &'static str, program: PathBuf, arguments: Vec<OsString>, log: PathBuf) -> Self {
        Self { name, program, arguments, log, running: None }
    }

    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    pub(super) fn spawn(&mut self) -> Result<(), Error> {
        if self.is_running() {
            return Ok(());
        }
        let failed = |error| Error::io("start", &self.program, error);
        let log = OpenOptions::new().create(true).append(true).open(&self.log);
        let log = log.map_err(|error| Error::io("write", &self.log, error))?;
        let mut command = shell(WATCHED);
        command.arg(&self.program).args(&self.arguments);
        command.stdout(log.try_clone().map_err(failed)?).stderr(log);
        let mut child = command.spawn().map_err(failed)?;
        let lifeline = child.stdin.take().expect("its stdin was asked to be a pipe");
        self.running = Some(Running { child, _lifeline: lifeline });
        Ok(())
    }

    pub(super) fn is_running(&mut self) -> bool {
        self.running.is_some() && self.exited().is_none()
    }

    pub(super) fn id(&mut self) -> Option<u32> {
        if self.is_running() { self.running.as_ref().map(|running| running.child.id()) } else { None }
    }

    /// How it ended, once it has. Its watchdog goes with it.
    pub(super) fn exited(&mut self) -> Option<ExitStatus> {
        let status = self.running.as_mut()?.child.try_wait().ok().flatten()?;
        self.running = None;
        Some(status)
    }

    pub(super) fn signal(&mut self, signal: Signal) -> Result<(), Error> {
        let name = self.name;
        let id = self.id().ok_or(Error::NotRunning { component: name })?;
        kill_process(pid(id), signal).map_err(|error| Error::io("signal", &self.program, error.into()))
    }

    /// Asks it to end, paused or not, and kills it when it has not after `patience`.
    pub(super) fn stop(&mut self, patience: Duration) {
        if self.signal(Signal::TERM).is_err() || self.signal(Signal::CONT).is_err() {
            return self.kill();
        }
        let asked = Instant::now();
        while self.is_running() && asked.elapsed() < patience {
            thread::sleep(POLL);
        }
        self.kill();
    }

    /// Ends it at once, paused or not, with its watchdog, and returns when it has ended.
    pub(super) fn kill(&mut self) {
        if let Some(mut running) = self.running.take() {
            // The leader is not reaped yet, so that its id still names this group and no other.
            let _ = kill_process_group(pid(running.child.id()), Signal::KILL);
            let _ = running.child.wait();
        }
    }

    /// Waits until `probe` succeeds.
    pub(super) fn wait_ready(
        &mut self,
        patience: Duration,
        probe: impl Fn() -> Result<(), String>,
    ) -> Result<(), Error> {
        let started = Instant::now();
        loop {
            let component = self.name;
            if let Some(status) = self.exited() {
                return Err(Error::Exited { component, status: status.to_string(), log: self.log_tail() });
            }
            let Err(last) = probe() else { return Ok(()) };
            if started.elapsed() >= patience {
                return Err(Error::NotReady { component, waited: patience, last, log: self.log_tail() });
            }
            thread::sleep(POLL);
        }
    }

    /// The end of its log, from the start of a line.
    pub(super) fn log_tail(&self) -> String {
        tail(&self.log).unwrap_or_else(|error| format!("(cannot read {}: {error})", self.log.display()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A folder that is removed on drop, and when this process is killed as well.
pub(super) struct Folder {
    folder: tempfile::TempDir,
    sweeper: Child,
}

impl Folder {
    pub(super) fn new() -> Result<Self, Error> {
        let failed = |error| Error::io("make a folder in", &std::env::temp_dir(), error);
        let folder = tempfile::Builder::new().prefix("cloudcoil-control-plane-").tempdir().map_err(failed)?;
        let mut command = shell(SWEEPER);
        command.arg(folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
        let sweeper = command.spawn().map_err(|error| Error::io("start", Path::new("sh"), error))?;
        Ok(Self { folder, sweeper })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn write(&self, name: &str, text: &str) -> Result<PathBuf, Error> {
        let path = self.path().join(name);
        fs::write(&path, text).map_err(|error| Error::io("write", &path, error))?;
        Ok(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.folder.path());
        let _ = kill_process_group(pid(self.sweeper.id()), Signal::KILL);
        let _ = self.sweeper.wait();
    }
}

/// A shell with a script, a process group of its own, and a pipe as its standard input.
fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).process_group(0).stdin(Stdio::piped());
    command
}

fn pid(id: u32) -> Pid {
    i32::try_from(id).ok().and_then(Pid::from_raw).expect("the id of a child process is a positive i32")
}

fn tail(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    match text.split_once('\n') {
        Some((_, whole_lines)) if length > TAIL => Ok(whole_lines.to_owned()),
        _ => Ok(text.into_owned()),
    }
}

/// The watchdog comes first, so that there is no instant at which the server runs without it.
const WATCHED: &str = r#"exec 3<&0 </dev/null
(read -r line <&3; kill -KILL 0) &
exec "$@" 3<&-"#;

/// Sweeps twice, as a server that is just being killed may write once more.
const SWEEPER: &str = r#"read -r line; sleep 1; rm -rf -- "$1"; sleep 2; rm -rf -- "$1""#;

const TAIL: u64 = 8 * 1024;
const POLL: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    fn server(script: &str, folder: &Folder) -> Server {
        let arguments = vec!["-c".into(), script.into()];
        Server::new("script", "sh".into(), arguments, folder.path().join("log"))
    }

    #[test]
    fn an_exit_before_readiness_is_reported_with_the_end_of_the_log() {
        let folder = Folder::new().unwrap();
        let mut server = server("i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done; exit 7", &folder);
        server.spawn().unwrap();
        let error = server.wait_ready(Duration::from_secs(60), || Err("no".to_owned())).unwrap_err();
        let Error::Exited { component: "script", status, log } = error else { panic!("{error:?}") };
        assert!(status.contains('7'), "{status}");
        assert!(log.starts_with("line 1"), "{log}");
        assert!(log.ends_with("line 1999\n"), "{log}");
        assert!(log.len() <= 8 * 1024, "{}", log.len());
    }

    #[test]
    fn what_never_gets_ready_is_reported_with_the_last_probe() {
        let folder = Folder::new().unwrap();
        let mut server = server("exec sleep 600", &folder);
        server.spawn().unwrap();
        let error = server.wait_ready(Duration::ZERO, || Err("refused".to_owned())).unwrap_err();
        assert!(matches!(&error, Error::NotReady { last, .. } if last == "refused"), "{error:?}");
    }

    #[test]
    fn a_paused_process_can_be_stopped() {
        let folder = Folder::new().unwrap();
        let mut server = server("exec sleep 600", &folder);
        server.spawn().unwrap();
        server.signal(Signal::STOP).unwrap();
        let before = Instant::now();
        server.stop(Duration::from_secs(600));
        assert!(!server.is_running());
        assert!(before.elapsed() < Duration::from_secs(300), "it was killed only when patience ran out");
    }

    #[test]
    fn the_watchdog_kills_the_server_when_the_pipe_closes() {
        let folder = Folder::new().unwrap();
        let mut server = server("exec sleep 600", &folder);
        server.spawn().unwrap();
        let Running { mut child, _lifeline } = server.running.take().unwrap();
        drop(_lifeline);
        let status = child.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(Signal::KILL.as_raw()));
    }

    #[test]
    fn a_folder_goes_with_all_that_is_in_it() {
        let folder = Folder::new().unwrap();
        let file = folder.write("a", "b").unwrap();
        drop(folder);
        assert!(!file.parent().unwrap().exists());
    }
}
