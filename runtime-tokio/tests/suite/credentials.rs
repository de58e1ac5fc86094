//! Programs and files that credentials come from.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use cloudcoil_tokio::core::NetworkErrorKind;
use cloudcoil_tokio::{Config, ConfigSource, HyperTransport, TokioRuntime, Transport as _, load_config};
use futures_util::TryStreamExt as _;
use futures_util::future::join_all;
use http::{Request, StatusCode};
use rcgen::{CertifiedIssuer, KeyPair};
use tempfile::TempDir;

use crate::server::{Server, answer, whole};
use crate::tls::{authority, issued, server_config};

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
    async fn program(&self, server: &Server, ca: &str, script: &str) -> Config {
        self.write("script", &format!("here='{}'\necho run >>\"$here/runs\"\n{script}\n", self.0.path().display()));
        let script = self.path("script");
        let exec = format!(
            "exec: {{apiVersion: client.authentication.k8s.io/v1, command: sh, args: ['{}'], interactiveMode: Never,
             env: [{{name: FROM_CONFIG, value: set}}], provideClusterInfo: true}}",
            script.display()
        );
        self.config(server, ca, &exec).await
    }

    async fn config(&self, server: &Server, ca: &str, user: &str) -> Config {
        self.write("ca.pem", ca);
        let kubeconfig = format!(
            "{{current-context: c, contexts: [{{name: c, context: {{cluster: p, user: u}}}}],
              clusters: [{{name: p, cluster: {{server: 'https://{}', certificate-authority: ca.pem}}}}],
              users: [{{name: u, user: {{{user}}}}}]}}",
            server.address
        );
        self.write("config", &kubeconfig);
        load_config(ConfigSource::from_kubeconfig(self.path("config"))).await.unwrap()
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.path("runs")).unwrap_or_default().lines().count()
    }
}

/// A server that takes one `Authorization`, which can be changed, and answers all others 401.
async fn server(ca: &CertifiedIssuer<'static, KeyPair>, taken: &Arc<Mutex<&'static str>>) -> Server {
    let (made, taken) = (issued(ca, "127.0.0.1"), taken.clone());
    answer(Some(server_config(&made, None, &["h2", "http/1.1"])), move |request| {
        let header = request.headers().get("authorization").map(|header| header.to_str().unwrap().to_owned());
        let status = match header.as_deref() == Some(*taken.lock().unwrap()) {
            true => StatusCode::OK,
            false => StatusCode::UNAUTHORIZED,
        };
        http::Response::builder().status(status).body(whole("hello")).unwrap()
    })
    .await
}

fn transport(config: &Config) -> HyperTransport {
    HyperTransport::new(config, TokioRuntime::new()).unwrap()
}

async fn post(transport: &HyperTransport) -> StatusCode {
    let response = transport.send(Request::post("/x").body(Bytes::from_static(b"body")).unwrap()).await.unwrap();
    let status = response.status();
    let _: Vec<Bytes> = response.into_body().try_collect().await.unwrap();
    status
}

/// Prints what `out` holds now.
const CAT: &str = "cat \"$here/out\"";

#[tokio::test]
async fn a_program_that_rotates_is_run_once_for_ten_requests_and_once_more_after_a_401() {
    let (folder, ca, taken) = (Folder::new(), authority(), Arc::new(Mutex::new("Bearer token-one")));
    let server = server(&ca, &taken).await;
    folder.prints("{token: token-one, expirationTimestamp: '2099-01-01T00:00:00Z'}");
    let transport = transport(&folder.program(&server, &ca.pem(), CAT).await);
    assert_eq!(join_all((0..10).map(|_| post(&transport))).await, [StatusCode::OK; 10]);
    assert_eq!(folder.runs(), 1);
    folder.prints("{token: token-two}");
    *taken.lock().unwrap() = "Bearer token-two";
    assert_eq!(join_all((0..10).map(|_| post(&transport))).await, [StatusCode::OK; 10]);
    assert_eq!(folder.runs(), 2);
    assert!(server.requests().len() <= 30);
    *taken.lock().unwrap() = "Bearer token-three";
    let before = server.requests().len();
    assert_eq!(post(&transport).await, StatusCode::UNAUTHORIZED, "the second 401 is the answer");
    assert_eq!((folder.runs(), server.requests().len() - before), (3, 2));
}

#[tokio::test]
async fn a_program_is_told_what_it_has_to_know() {
    let (folder, ca, taken) = (Folder::new(), authority(), Arc::new(Mutex::new("Bearer t")));
    let server = server(&ca, &taken).await;
    folder.prints("{token: t}");
    let script = format!(
        "printf '%s|%s|%s' \"$FROM_CONFIG\" \"$HOME\" \"$KUBERNETES_EXEC_INFO\" >\"$here/told\"\ncat >\"$here/stdin\"\n{CAT}"
    );
    assert_eq!(post(&transport(&folder.program(&server, &ca.pem(), &script).await)).await, StatusCode::OK);
    let told = fs::read_to_string(folder.path("told")).unwrap();
    let mut parts = told.splitn(3, '|');
    assert_eq!((parts.next(), parts.next()), (Some("set"), Some(std::env::var("HOME").unwrap_or_default().as_str())));
    let info: serde_json::Value = serde_json::from_str(parts.next().unwrap()).unwrap();
    assert_eq!(info["spec"]["cluster"]["server"], format!("https://{}", server.address));
    assert!(info["spec"]["cluster"]["certificate-authority-data"].is_string());
    assert_eq!(info["spec"]["interactive"], false);
    assert_eq!(fs::read_to_string(folder.path("stdin")).unwrap(), "", "there is nothing to read");
}

#[tokio::test]
async fn a_program_that_fails_is_named_with_what_it_said() {
    let (folder, ca, taken) = (Folder::new(), authority(), Arc::new(Mutex::new("Bearer t")));
    let server = server(&ca, &taken).await;
    let failure = async |folder: &Folder, script: &str| {
        let config = folder.program(&server, &ca.pem(), script).await;
        let sent = transport(&config).send(Request::get("/x").body(Bytes::new()).unwrap()).await;
        let error = sent.err().unwrap();
        assert_eq!(error.kind, NetworkErrorKind::Credentials);
        error.to_string().rsplit_once("sh: ").unwrap().1.to_owned()
    };
    assert_eq!(
        failure(&folder, "echo s3cret; echo 'log in first' >&2; exit 3").await,
        "failed with exit code 3: log in first"
    );
    assert_eq!(failure(&folder, "kill -9 $$").await, "was ended by signal 9");
    assert_eq!(failure(&folder, "true").await, "printed nothing");
    assert_eq!(failure(&folder, "yes").await, "printed more than 1048576 bytes");
    assert!(server.requests().is_empty());
    for (command, problem) in
        [("no-such-program-here", "no such program; ask a friend"), ("./config", "not a program that may be run")]
    {
        let exec = format!(
            "exec: {{apiVersion: client.authentication.k8s.io/v1, command: {command}, interactiveMode: Never, installHint: ask a friend}}"
        );
        let config = folder.config(&server, &ca.pem(), &exec).await;
        let error = transport(&config).send(Request::get("/x").body(Bytes::new()).unwrap()).await.err().unwrap();
        assert!(error.to_string().ends_with(problem), "{error}");
    }
}

#[tokio::test]
async fn a_program_is_ended_when_nobody_waits_for_it() {
    let (folder, ca, taken) = (Folder::new(), authority(), Arc::new(Mutex::new("Bearer t")));
    let server = server(&ca, &taken).await;
    let fifo = folder.path("alive");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    // The program holds one end of the pipe as long as it lives.
    let transport = transport(
        &folder
            .program(&server, &ca.pem(), "exec 3>\"$here/alive\"\necho alive >&3\nread nothing <\"$here/alive\"")
            .await,
    );
    let request =
        tokio::spawn(async move { transport.send(Request::get("/x").body(Bytes::new()).unwrap()).await.map(drop) });
    let heard = tokio::task::spawn_blocking(move || read_to_end(&fifo));
    while folder.runs() == 0 {
        tokio::task::yield_now().await;
    }
    request.abort();
    assert!(request.await.is_err());
    assert!(heard.await.unwrap().len() <= "alive\n".len(), "the pipe has been closed");
}

fn read_to_end(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[tokio::test]
async fn what_a_program_has_started_is_not_waited_for() {
    let (folder, ca, taken) = (Folder::new(), authority(), Arc::new(Mutex::new("Bearer t")));
    let server = server(&ca, &taken).await;
    folder.prints("{token: t}");
    let config = folder.program(&server, &ca.pem(), &format!("sleep 600 &\necho $! >\"$here/pid\"\n{CAT}")).await;
    assert_eq!(post(&transport(&config)).await, StatusCode::OK);
    let pid = fs::read_to_string(folder.path("pid")).unwrap();
    assert!(std::process::Command::new("kill").arg(pid.trim()).status().unwrap().success(), "it was still there");
}

#[tokio::test]
async fn a_rotated_token_file_is_read_when_its_token_is_rejected() {
    let (folder, ca, taken) = (Folder::new(), authority(), Arc::new(Mutex::new("Bearer abc")));
    let server = server(&ca, &taken).await;
    folder.write("tok", "abc\n");
    let transport = transport(&folder.config(&server, &ca.pem(), "tokenFile: tok").await);
    assert_eq!(post(&transport).await, StatusCode::OK);
    folder.write("tok", "def\r\n");
    *taken.lock().unwrap() = "Bearer def";
    assert_eq!(post(&transport).await, StatusCode::OK);
    fs::remove_file(folder.path("tok")).unwrap();
    assert_eq!(post(&transport).await, StatusCode::OK);
    *taken.lock().unwrap() = "Bearer ghi";
    assert_eq!(post(&transport).await, StatusCode::UNAUTHORIZED);
    assert_eq!(server.requests().len(), 5, "what cannot be replaced is not sent again");
}

#[tokio::test]
async fn a_rotated_client_certificate_opens_a_new_connection_and_the_old_one_closes() {
    let (folder, ca, clients) = (Folder::new(), authority(), authority());
    let taken = Arc::new(Mutex::new("Bearer one"));
    let (made, known) = (issued(&ca, "127.0.0.1"), taken.clone());
    let server = answer(Some(server_config(&made, Some(clients.as_ref()), &["h2"])), move |request| {
        let is_known = request.headers()["authorization"] == *known.lock().unwrap();
        let status = if is_known { StatusCode::OK } else { StatusCode::UNAUTHORIZED };
        http::Response::builder().status(status).body(whole("hello")).unwrap()
    })
    .await;
    let prints = |token: &str| {
        let made = issued(&clients, "me");
        let (certificate, key) = (made.certificate.pem(), made.key.serialize_pem());
        folder.prints(&format!("{{token: {token}, clientCertificateData: {certificate:?}, clientKeyData: {key:?}}}"));
    };
    prints("one");
    let transport = transport(&folder.program(&server, &ca.pem(), CAT).await);
    assert_eq!((post(&transport).await, post(&transport).await), (StatusCode::OK, StatusCode::OK));
    assert_eq!((server.connections(), folder.runs()), (1, 1));
    prints("two");
    *taken.lock().unwrap() = "Bearer two";
    assert_eq!((post(&transport).await, post(&transport).await), (StatusCode::OK, StatusCode::OK));
    assert_eq!((server.connections(), folder.runs()), (2, 2));
    server.closed(1).await;
    folder.prints("{clientCertificateData: nonsense, clientKeyData: nonsense}");
    *taken.lock().unwrap() = "Bearer three";
    let error = transport.send(Request::get("/x").body(Bytes::new()).unwrap()).await.err().unwrap();
    assert!(error.message.contains("clientCertificateData that sh printed"), "{error}");
}
