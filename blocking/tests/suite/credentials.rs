//! Programs and files that credentials come from.
#![cfg(unix)]

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cloudcoil_blocking::core::{NetworkError, NetworkErrorKind};
use cloudcoil_blocking::{
    Cancel, Client, Config, ConfigSource, Connect as _, Error, Transport as _, UreqTransport, load_config,
};
use http::{Request, StatusCode};
use tempfile::TempDir;

use crate::server::{Authority, Seen, authority, issued, ok, serve, tls};

/// A folder with a kubeconfig, and a program beside it that prints `out` and counts its runs.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    fn prints(&self, status: &str) {
        let version = "client.authentication.k8s.io/v1";
        self.write("out", &format!("apiVersion: {version}\nkind: ExecCredential\nstatus: {status}\n"));
    }

    /// The user runs a shell script, in which `$here` is this folder.
    fn program(&self, server: SocketAddr, ca: &Authority, script: &str) -> Config {
        self.write("script", &format!("here='{}'\necho run >>\"$here/runs\"\n{script}\n", self.0.path().display()));
        let script = self.path("script");
        let exec = format!(
            "exec: {{apiVersion: client.authentication.k8s.io/v1, command: sh, args: ['{}'], interactiveMode: Never}}",
            script.display()
        );
        self.config(server, ca, &exec)
    }

    fn config(&self, server: SocketAddr, ca: &Authority, user: &str) -> Config {
        self.write("ca.pem", &ca.pem());
        let kubeconfig = format!(
            "{{current-context: c, contexts: [{{name: c, context: {{cluster: p, user: u}}}}],
              clusters: [{{name: p, cluster: {{server: 'https://{server}', certificate-authority: ca.pem}}}}],
              users: [{{name: u, user: {{{user}}}}}]}}"
        );
        self.write("config", &kubeconfig);
        load_config(ConfigSource::from_kubeconfig(self.path("config"))).unwrap()
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.path("runs")).unwrap_or_default().lines().count()
    }

    fn is_up(&self) -> bool {
        self.path("up").exists()
    }

    fn await_up(&self) {
        while !self.is_up() {
            thread::yield_now();
        }
    }
}

/// A server that takes one token, which can be changed, and answers all others 401.
fn server(ca: &Authority, taken: &Arc<Mutex<&'static str>>) -> (SocketAddr, Seen) {
    let taken = taken.clone();
    serve(Some(tls(ca, "127.0.0.1", None)), move |head| {
        match head.to_lowercase().contains(&format!("\r\nauthorization: bearer {}\r\n", taken.lock().unwrap())) {
            true => ok("hello"),
            false => b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\nno".to_vec(),
        }
    })
}

fn post(transport: &UreqTransport) -> Result<StatusCode, NetworkError> {
    let request = Request::post("/x").body(Bytes::from_static(b"body")).unwrap();
    let (head, body) = transport.send(request, &Cancel::new())?.into_parts();
    body.collect::<Result<Vec<_>, _>>().unwrap();
    Ok(head.status)
}

/// Ten requests at once.
fn posts(transport: &UreqTransport) -> Vec<StatusCode> {
    thread::scope(|scope| {
        let threads = [(); 10].map(|()| scope.spawn(|| post(transport).unwrap()));
        threads.map(|thread| thread.join().unwrap()).to_vec()
    })
}

/// Prints what `out` holds now.
const CAT: &str = "cat \"$here/out\"";

#[test]
fn a_program_that_rotates_is_run_once_for_ten_requests_and_once_more_after_a_401() {
    let (folder, ca, taken) = (Folder::new(), authority(), Arc::new(Mutex::new("token-one")));
    let (address, seen) = server(&ca, &taken);
    folder.prints("{token: token-one, expirationTimestamp: '2099-01-01T00:00:00Z'}");
    let transport = UreqTransport::new(&folder.program(address, &ca, CAT)).unwrap();
    assert_eq!(posts(&transport), [StatusCode::OK; 10]);
    assert_eq!(folder.runs(), 1);
    folder.prints("{token: token-two}");
    *taken.lock().unwrap() = "token-two";
    assert_eq!(posts(&transport), [StatusCode::OK; 10]);
    assert_eq!(folder.runs(), 2);
    assert!(seen.requests().len() <= 30);
    *taken.lock().unwrap() = "token-three";
    let before = seen.requests().len();
    assert_eq!(post(&transport), Ok(StatusCode::UNAUTHORIZED), "the second 401 is the answer");
    assert_eq!((folder.runs(), seen.requests().len() - before), (3, 2));
}

#[test]
fn a_program_that_fails_is_named_with_what_it_said() {
    let (folder, ca, taken) = (Folder::new(), authority(), Arc::new(Mutex::new("t")));
    let (address, seen) = server(&ca, &taken);
    let failure = |config: &Config| {
        let error = post(&UreqTransport::new(config).unwrap()).unwrap_err();
        assert_eq!(error.kind, NetworkErrorKind::Credentials);
        error.to_string().rsplit_once(": ").map(|(_, problem)| problem.to_owned()).unwrap()
    };
    for (script, problem) in [
        ("echo s3cret; echo 'log in first' >&2; exit 3", "log in first"),
        ("kill -9 $$", "was ended by signal 9"),
        ("true", "printed nothing"),
        ("exec >&-; sleep 0.1; exit 4", "failed with exit code 4"),
        ("yes", "printed more than 1048576 bytes"),
    ] {
        assert_eq!(failure(&folder.program(address, &ca, script)), problem, "{script}");
    }
    for (command, problem) in
        [("no-such-program-here", "no such program"), ("./config", "not a program that may be run")]
    {
        let exec = format!(
            "exec: {{apiVersion: client.authentication.k8s.io/v1, command: {command}, interactiveMode: Never}}"
        );
        assert_eq!(failure(&folder.config(address, &ca, &exec)), problem);
    }
    assert!(seen.requests().is_empty());
}

/// A program that holds one end of a pipe as long as it lives.
const HANGS: &str = "exec 3>\"$here/alive\"\necho alive >&3\necho >\"$here/up\"\nexec sleep 600";

/// Whether the program that hangs has ended, is known when this thread ends.
fn alive(folder: &Folder) -> thread::JoinHandle<String> {
    let fifo = folder.path("alive");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    thread::spawn(move || fs::read_to_string(fifo).unwrap())
}

#[test]
fn a_program_runs_on_for_whoever_still_waits_and_no_longer() {
    let (folder, ca, taken) = (Folder::new(), authority(), Arc::new(Mutex::new("t")));
    let (address, seen) = server(&ca, &taken);
    let ended = alive(&folder);
    let transport = UreqTransport::new(&folder.program(address, &ca, HANGS)).unwrap();
    let (tell, told) = mpsc::channel();
    let cancels = [(); 2].map(|()| Cancel::new());
    thread::scope(|scope| {
        for cancel in &cancels {
            let (tell, transport) = (tell.clone(), &transport);
            scope.spawn(move || {
                let request = Request::get("/x").body(Bytes::new()).unwrap();
                tell.send(transport.send(request, cancel).err().unwrap().kind).unwrap();
            });
        }
        folder.await_up();
        for cancel in &cancels {
            assert!(!ended.is_finished());
            cancel.cancel();
            assert_eq!(told.recv(), Ok(NetworkErrorKind::Connect));
        }
    });
    assert!(ended.join().unwrap().len() <= "alive\n".len(), "the pipe has been closed");
    assert_eq!((folder.runs(), seen.requests().len()), (1, 0));
}

#[test]
fn a_call_whose_time_is_up_ends_the_program_it_waits_for() {
    let (folder, ca, taken) = (Folder::new(), authority(), Arc::new(Mutex::new("t")));
    let (address, _) = server(&ca, &taken);
    let ended = alive(&folder);
    let client = Client::try_from_config(&folder.program(address, &ca, HANGS)).unwrap();
    let limit = Duration::from_millis(300);
    let answer = client.with_timeout(Some(limit)).request(Request::get("/x").body(Bytes::new()).unwrap());
    assert_eq!(answer, Err(Error::TimedOut(limit)));
    if folder.is_up() {
        ended.join().unwrap();
    }
}

#[test]
fn what_a_program_has_started_is_not_waited_for() {
    let (folder, ca, taken) = (Folder::new(), authority(), Arc::new(Mutex::new("t")));
    let (address, _) = server(&ca, &taken);
    folder.prints("{token: t}");
    let config = folder.program(address, &ca, &format!("sleep 600 &\necho $! >\"$here/pid\"\n{CAT}"));
    let before = Instant::now();
    assert_eq!(post(&UreqTransport::new(&config).unwrap()), Ok(StatusCode::OK));
    assert!(before.elapsed() < Duration::from_secs(300));
    let pid = fs::read_to_string(folder.path("pid")).unwrap();
    assert!(std::process::Command::new("kill").arg(pid.trim()).status().unwrap().success(), "it was still there");
}

#[test]
fn a_rotated_token_file_is_read_when_its_token_is_rejected() {
    let (folder, ca, taken) = (Folder::new(), authority(), Arc::new(Mutex::new("abc")));
    let (address, seen) = server(&ca, &taken);
    folder.write("tok", "abc\n");
    let transport = UreqTransport::new(&folder.config(address, &ca, "tokenFile: tok")).unwrap();
    assert_eq!(post(&transport), Ok(StatusCode::OK));
    folder.write("tok", "def\r\n");
    *taken.lock().unwrap() = "def";
    assert_eq!(post(&transport), Ok(StatusCode::OK));
    fs::remove_file(folder.path("tok")).unwrap();
    assert_eq!(post(&transport), Ok(StatusCode::OK));
    *taken.lock().unwrap() = "ghi";
    assert_eq!(post(&transport), Ok(StatusCode::UNAUTHORIZED));
    assert_eq!(seen.requests().len(), 5, "what cannot be replaced is not sent again");
}

#[test]
fn a_rotated_client_certificate_opens_a_new_connection() {
    let (folder, ca, clients) = (Folder::new(), authority(), authority());
    let taken = Arc::new(Mutex::new("one"));
    let known = taken.clone();
    let (address, seen) = serve(Some(tls(&ca, "127.0.0.1", Some(&clients))), move |head| {
        match head.to_lowercase().contains(&format!("\r\nauthorization: bearer {}\r\n", known.lock().unwrap())) {
            true => ok("hello"),
            false => b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n".to_vec(),
        }
    });
    let prints = |token: &str| {
        let (certificate, key) = issued(&clients, "me");
        let (certificate, key) = (certificate.pem(), key.serialize_pem());
        folder.prints(&format!("{{token: {token}, clientCertificateData: {certificate:?}, clientKeyData: {key:?}}}"));
    };
    prints("one");
    let transport = UreqTransport::new(&folder.program(address, &ca, CAT)).unwrap();
    assert_eq!([post(&transport), post(&transport)], [Ok(StatusCode::OK), Ok(StatusCode::OK)]);
    assert_eq!((seen.connections(), folder.runs()), (1, 1));
    prints("two");
    *taken.lock().unwrap() = "two";
    assert_eq!([post(&transport), post(&transport)], [Ok(StatusCode::OK), Ok(StatusCode::OK)]);
    assert_eq!((seen.connections(), folder.runs()), (2, 2));
    folder.prints("{clientCertificateData: nonsense, clientKeyData: nonsense}");
    *taken.lock().unwrap() = "three";
    let error = post(&transport).unwrap_err();
    assert!(error.message.contains("clientCertificateData that sh printed"), "{error}");
}
