//! Who a client is: tokens, and programs that fetch them.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloudcoil_apiserver::ServerConfig;
use cloudcoil_runtime::core::config::{Config, ConfigSource};
use serde_json::json;

use crate::servers::{Cluster, in_memory};
use crate::stage::{Stage, scenarios};
use crate::world::op::maps;

scenarios! {
    SOCKETS {
        a_rejected_token_is_fetched_anew_once_for_all_who_wait,
        a_program_that_leaves_something_behind_is_not_waited_for,
    }
}

/// A server that knows nobody but who has this token.
fn guarded(token: &str) -> Cluster {
    Cluster::start(true, ServerConfig { token: Some(token.to_owned()), ..in_memory() })
}

/// What a kubeconfig says whose user runs a shell script, in its folder.
fn plugin(folder: &Path, cluster: &Cluster, script: &str) -> Config {
    let ca = STANDARD.encode(cluster.handle().ca_pem().unwrap_or_default());
    let kubeconfig = json!({
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": cluster.handle().url(), "certificate-authority-data": ca}}],
        "users": [{"name": "u", "user": {"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
            "command": "sh", "args": ["-c", format!("cd {}; {script}", folder.display())],
        }}}],
    });
    std::fs::write(folder.join("config"), kubeconfig.to_string()).unwrap();
    cloudcoil_blocking::load_config(ConfigSource::from_kubeconfig(folder.join("config"))).unwrap()
}

/// What prints a credential with this token, which the shell may still have to make.
fn credential(token: &str) -> String {
    let head = r#"{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": ""#;
    format!("echo '{head}'{token}'\"}}}}'")
}

fn a_rejected_token_is_fetched_anew_once_for_all_who_wait(stage: &Stage) {
    let folder = tempfile::tempdir().unwrap();
    let cluster = guarded("token-2");
    // Each run counts itself, and gives out a token of that number.
    let script = format!("echo run >> runs; {}", credential("token-$(wc -l < runs | tr -d ' ')"));
    let config = plugin(folder.path(), &cluster, &script);
    let world = stage.executor().connect(&config, &stage.settings()).unwrap();
    world.all((0..10).map(|_| maps().page())).into_iter().for_each(|answer| drop(answer.unwrap()));
    let runs = std::fs::read_to_string(folder.path().join("runs")).unwrap();
    assert_eq!(runs.lines().count(), 2, "one run for the first token, and one after it was rejected");
}

fn a_program_that_leaves_something_behind_is_not_waited_for(stage: &Stage) {
    let folder = tempfile::tempdir().unwrap();
    let cluster = guarded("token");
    // What is left behind holds the program's output open until this test writes to the pipe, which is when all is over.
    let script = format!("mkfifo gate; cat gate & {}", credential("token"));
    let config = plugin(folder.path(), &cluster, &script);
    let world = stage.executor().connect(&config, &stage.settings()).unwrap();
    let listed = world.perform(maps().page());
    std::fs::write(folder.path().join("gate"), "over").unwrap();
    listed.unwrap();
}
