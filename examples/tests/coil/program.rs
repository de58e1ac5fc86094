//! Runs the program.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::LazyLock;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use tempfile::TempDir;

/// What the program runs on, as its option has it.
pub(crate) type Runtime = &'static str;

/// All that it can run on; the first is the default.
pub(crate) const RUNTIMES: [Runtime; 4] = ["tokio", "async-std", "smol", "blocking"];

/// Makes a test on each runtime of every function that is named, and takes one.
macro_rules! on_each_runtime {
    ($($name:ident),+ $(,)?) => {
        mod on_tokio {
            $(#[test] fn $name() { super::$name("tokio"); })+
        }
        mod on_async_std {
            $(#[test] fn $name() { super::$name("async-std"); })+
        }
        mod on_smol {
            $(#[test] fn $name() { super::$name("smol"); })+
        }
        mod on_threads {
            $(#[test] fn $name() { super::$name("blocking"); })+
        }
    };
}
pub(crate) use on_each_runtime;

/// Whoever starts tests in the background has them ignore interrupts, and what they start would as well. What is handled, though,
/// is as it was in a program that begins.
static INTERRUPTIBLE: LazyLock<()> = LazyLock::new(|| ctrlc::set_handler(|| std::process::exit(130)).unwrap());

/// A folder with a kubeconfig, in which the program runs.
pub(crate) struct Home {
    pub(crate) folder: TempDir,
    runtime: Runtime,
}

/// How a run ended.
#[derive(Debug, PartialEq)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Home {
    pub(crate) fn new(runtime: Runtime, kubeconfig: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config"), kubeconfig).unwrap();
        Self { folder, runtime }
    }

    /// A kubeconfig for a server without TLS.
    pub(crate) fn plain(runtime: Runtime, url: &str) -> Self {
        let kubeconfig = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: k, cluster: {{server: '{url}'}}}}]\n\
             contexts: [{{name: c, context: {{cluster: k}}}}]\n"
        );
        Self::new(runtime, &kubeconfig)
    }

    /// A file in the folder.
    pub(crate) fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        LazyLock::force(&INTERRUPTIBLE);
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.folder.path());
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"] {
            command.env_remove(name);
        }
        command.env("KUBECONFIG", self.folder.path().join("config")).env("HOME", self.folder.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The program on its runtime.
    pub(crate) fn program(&self, arguments: &[&str]) -> Command {
        self.command(&coil(), &[&["--runtime", self.runtime], arguments].concat())
    }

    pub(crate) fn coil(&self, arguments: &[&str]) -> Ended {
        self.pipe(arguments, "")
    }

    pub(crate) fn pipe(&self, arguments: &[&str], input: &str) -> Ended {
        finish(self.program(arguments), input)
    }

    /// Starts the program and reads its lines as they come.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        Running::new(self.program(arguments).spawn().unwrap())
    }
}

pub(crate) fn finish(mut command: Command, input: &str) -> Ended {
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A program that ends without reading its input is told by what it says.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// The program while it runs.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    pub(crate) fn new(mut child: Child) -> Self {
        let stdout = child.stdout.take().unwrap();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    /// The next line.
    pub(crate) fn line(&mut self) -> String {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(error) => {
                let _ = self.child.kill();
                let mut stderr = String::new();
                let _ = self.child.stderr.take().unwrap().read_to_string(&mut stderr);
                panic!("no line came ({error}); on stderr: {stderr}");
            }
        }
    }

    /// The next lines.
    pub(crate) fn lines(&mut self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.line()).collect()
    }

    /// All further lines; it must end well.
    pub(crate) fn lines_to_end(self) -> Vec<String> {
        let ended = self.end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.stdout.lines().map(ToOwned::to_owned).collect()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status();
        assert!(sent.unwrap().success());
    }

    /// Waits for its end.
    pub(crate) fn end(self) -> Ended {
        let Self { mut child, lines } = self;
        let code = child.wait().unwrap().code();
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        let stdout = lines.iter().fold(String::new(), |mut text, line| {
            let _ = writeln!(text, "{line}");
            text
        });
        Ended { code, stdout, stderr }
    }
}

/// What the program prints, for a reader of one's own.
pub(crate) fn stdout(child: &mut Child) -> BufReader<ChildStdout> {
    BufReader::new(child.stdout.take().unwrap())
}

/// The program.
pub(crate) fn coil() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_coil"))
}

/// How long anything may take that is not to be waited for at all.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
