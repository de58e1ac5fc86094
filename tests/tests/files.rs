//! Files that could hold up whoever reads them are refused, on every adapter alike.
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
fn a_kubeconfig_that_is_no_file_or_has_no_end_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let (pipe, large) = (folder.path().join("pipe"), folder.path().join("large"));
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("there is a mkfifo");
    assert!(made.success());
    let file = std::fs::File::create(&large).expect("there is room for a file");
    file.set_len(cloudcoil_runtime::MAX_FILE + 1).expect("it takes no room");
    for (adapter, load) in ADAPTERS {
        for (path, why) in [
            (pipe.as_path(), "not a regular file"),
            (Path::new("/dev/zero"), "not a regular file"),
            (folder.path(), "not a regular file"),
            (&large, "larger than 10 MiB"),
        ] {
            let error = load(ConfigSource::from_kubeconfig(path)).expect_err("it is no kubeconfig").to_string();
            assert!(error.contains(why) && error.contains(&path.display().to_string()), "{adapter}: {error}");
        }
    }
}
