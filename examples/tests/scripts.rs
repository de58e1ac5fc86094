//! The examples but for coil, against the API server in memory: what they print, and how they end.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "helpers of tests may unwrap where tests may")]

// Examples are built as programs, so what of them has tests is tested here.
#[path = "../labeler/arguments.rs"]
mod arguments;

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use cloudcoil_apiserver::{ServerConfig, ServerHandle, serve};
use cloudcoil_blocking::core::k8s_openapi::api::apps::v1::Deployment;
use cloudcoil_blocking::core::k8s_openapi::api::core::v1::{ConfigMap, Event, Pod};
use cloudcoil_blocking::{Client, Connect as _, KnownResource, Patch};
use serde_json::{Value, from_value, json};

/// A server in memory, and a client of it.
struct Cluster {
    folder: tempfile::TempDir,
    client: Client,
    _server: ServerHandle,
    // Ends last.
    _runtime: tokio::runtime::Runtime,
}

impl Cluster {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let server = runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            serve(ServerConfig::default(), listener).unwrap()
        });
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config"), server.kubeconfig()).unwrap();
        let client = Client::try_from_kubeconfig(folder.path().join("config")).unwrap();
        Self { folder, client, _server: server, _runtime: runtime }
    }

    fn create<K: KnownResource>(&self, object: Value) {
        self.client.api::<K>().create(&from_value(object).unwrap()).send().unwrap();
    }

    fn pod(&self, name: &str, app: &str) {
        let spec = json!({"containers": [{"name": "c", "image": "i"}]});
        self.create::<Pod>(json!({"metadata": {"name": name, "labels": {"app": app}}, "spec": spec}));
    }

    fn event(&self, name: &str, message: &str) {
        let about = json!({"kind": "Pod", "name": "web", "namespace": "default"});
        self.create::<Event>(json!({
            "metadata": {"name": name}, "involvedObject": about, "reason": "Seen", "message": message, "type": "Normal",
        }));
    }

    fn start(&self, example: &str, arguments: &[&str]) -> Running {
        let mut command = Command::new(program(example));
        command.args(arguments).env("KUBECONFIG", self.folder.path().join("config"));
        Running::new(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap())
    }
}

/// A script while it runs.
struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    fn new(mut child: Child) -> Self {
        let (stdout, (sender, lines)) = (child.stdout.take().unwrap(), channel());
        thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).all(|line| sender.send(line).is_ok());
        });
        Self { child, lines }
    }

    /// The next line.
    fn line(&mut self) -> String {
        self.lines.recv_timeout(PATIENCE).unwrap_or_else(|error| {
            let _ = self.child.kill();
            panic!("no line came: {error}")
        })
    }

    /// All lines that are left, and the exit code.
    fn end(mut self) -> (Vec<String>, Option<i32>) {
        let lines = self.lines.iter().collect();
        (lines, self.child.wait().unwrap().code())
    }
}

/// `cargo test` puts examples beside its tests, unless it is asked for one test alone.
fn program(example: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let folder = own.parent().and_then(|deps| deps.parent()).unwrap();
    let path = folder.join("examples").join(example);
    if !path.exists() {
        let profile = folder.file_name().unwrap().to_str().unwrap();
        let profile = if profile == "debug" { "dev" } else { profile };
        let arguments = ["build", "--quiet", "--offline", "--example", example, "--profile", profile];
        let built = Command::new(env!("CARGO")).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).status();
        assert!(built.unwrap().success());
    }
    path
}

#[test]
fn a_list_prints_the_pods_that_a_selector_picks() {
    let cluster = Cluster::new();
    cluster.pod("web", "shop");
    cluster.pod("db", "store");
    cluster
        .client
        .api::<Pod>()
        .patch_status("web", Patch::Merge(json!({"status": {"phase": "Running"}})))
        .send()
        .unwrap();
    assert_eq!(
        cluster.start("list", &[]).end(),
        (vec!["default/db Pending".to_owned(), "default/web Running".to_owned()], Some(0))
    );
    assert_eq!(cluster.start("list", &["app=shop"]).end(), (vec!["default/web Running".to_owned()], Some(0)));
    let (lines, code) = cluster.start("list", &["app=("]).end();
    assert_eq!((lines.is_empty(), code), (true, Some(1)));
}

#[test]
fn events_are_followed_until_a_signal_comes() {
    let cluster = Cluster::new();
    cluster.event("one", "before");
    let mut events = cluster.start("events", &[]);
    assert_eq!(events.line(), "Pod web: Seen: before");
    cluster.event("two", "meanwhile");
    assert_eq!(events.line(), "Pod web: Seen: meanwhile");
    let sent = Command::new("kill").arg("-TERM").arg(events.child.id().to_string()).status();
    assert!(sent.unwrap().success());
    assert_eq!(events.end(), (Vec::new(), Some(0)));
}

#[test]
fn a_rollout_is_waited_for_until_its_new_pods_are_available() {
    let cluster = Cluster::new();
    let containers = json!([{"name": "web", "image": "web:1"}, {"name": "log", "image": "log:1"}]);
    let labels = json!({"app": "web"});
    cluster.create::<Deployment>(json!({"metadata": {"name": "web"}, "spec": {
        "replicas": 2, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
    }}));
    let deployments = cluster.client.api::<Deployment>();
    let report = |generation: i64, available: i32| {
        let status = json!({
            "observedGeneration": generation, "replicas": 2, "updatedReplicas": 2, "availableReplicas": available,
        });
        deployments.patch_status("web", Patch::Merge(json!({"status": status}))).send().unwrap();
    };
    // What was rolled out before does not count.
    report(1, 2);
    let mut rollout = cluster.start("rollout", &["web", "web", "web:2"]);
    assert_eq!(rollout.line(), "web: waiting for generation 2");
    let template = deployments.get("web").send().unwrap().spec.template.spec.unwrap();
    let images: Vec<_> = template.containers.iter().filter_map(|container| container.image.as_deref()).collect();
    assert_eq!(images, ["web:2", "log:1"]);
    report(2, 1);
    report(2, 2);
    assert_eq!(rollout.end(), (vec!["web: rolled out".to_owned()], Some(0)));
    assert_eq!(cluster.start("rollout", &["none", "web", "web:2"]).end(), (Vec::new(), Some(1)));
    assert_eq!(cluster.start("rollout", &[]).end(), (Vec::new(), Some(2)));
}

/// What is printed of the operator's passes comes in any order.
#[test]
fn the_labeler_works_and_ends_on_every_runtime() {
    let work = |runtime: &str| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        let mut command = Command::new(program("labeler"));
        command.args(["dev", "--runtime", runtime, "--kubeconfig"]).arg(&file);
        let mut running = Running::new(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap());
        let mut said = Vec::new();
        let mut waiting = vec!["default/greeting is in step", "default/colors is in step"];
        while !waiting.is_empty() {
            let line = running.line();
            waiting.retain(|pass| !line.ends_with(pass));
            said.push(line);
        }
        let maps = Client::try_from_kubeconfig(&file).unwrap().api::<ConfigMap>();
        let change = json!({"data": {"hello": "you"}});
        maps.patch("greeting", Patch::Merge(change)).send().unwrap();
        let shouted =
            |map: &ConfigMap| map.data.as_ref().is_some_and(|data| data.get("hello").is_some_and(|it| it == "YOU"));
        maps.wait_for("greeting-derived").when("shouted", shouted).timeout(PATIENCE).send().unwrap();
        let sent = Command::new("kill").arg("-INT").arg(running.child.id().to_string()).status();
        assert!(sent.unwrap().success());
        let (rest, code) = running.end();
        assert_eq!(code, Some(0), "{runtime}");
        said.extend(rest);
        said.retain(|line| !line.contains("http://") && !line.contains("KUBECONFIG"));
        BTreeSet::from_iter(said)
    };
    let expected = work("tokio");
    for runtime in ["async-std", "smol", "blocking"] {
        assert_eq!(work(runtime), expected, "{runtime}");
    }
}

const PATIENCE: Duration = Duration::from_secs(60);
