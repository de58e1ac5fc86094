//! Files without an end are refused, and pipes read, on every adapter alike.
#![cfg(unix)]

use std::path::Path;

use cloudcoil_runtime::core::Error;
use cloudcoil_runtime::core::config::{Config, ConfigSource};
use futures_executor::block_on;

type Load = fn(ConfigSource) -> Result<Config, Error>;

const ADAPTERS: [(&str, Load); 4] = [
    ("tokio", on_tokio),
    ("async-std", |source| block_on(cloudcoil_async_std::load_config(source))),
    ("smol", |source| block_on(cloudcoil_smol::load_config(source))),
    ("blocking", cloudcoil_blocking::load_config),
];

fn on_tokio(source: ConfigSource) -> Result<Config, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("the system has a thread left");
    runtime.block_on(cloudcoil_tokio::load_config(source))
}

#[test]
fn a_kubeconfig_that_has_no_end_is_refused_by_name_and_one_from_a_pipe_is_read() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let (pipe, large) = (folder.path().join("pipe"), folder.path().join("large"));
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("there is a mkfifo");
    assert!(made.success());
    let file = std::fs::File::create(&large).expect("there is room for a file");
    file.set_len(cloudcoil_runtime::MAX_FILE + 1).expect("it takes no room");
    for (adapter, load) in ADAPTERS {
        for (path, why) in [
            (Path::new("/dev/zero"), "larger than 10 MiB"),
            (folder.path(), "directory"),
            (&large, "larger than 10 MiB"),
        ] {
            let error = load(ConfigSource::from_kubeconfig(path)).expect_err("it is no kubeconfig").to_string();
            assert!(error.contains(why) && error.contains(&path.display().to_string()), "{adapter}: {error}");
        }
        let writing = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::write(pipe, KUBECONFIG)
        });
        let config = load(ConfigSource::from_kubeconfig(&pipe)).expect("it is a kubeconfig");
        assert_eq!(config.namespace, "piped", "{adapter}");
        writing.join().expect("it does not panic").expect("it is read to its end");
    }
}

const KUBECONFIG: &str = "
current-context: a
clusters: [{name: a, cluster: {server: 'http://localhost'}}]
contexts: [{name: a, context: {cluster: a, namespace: piped}}]
";
