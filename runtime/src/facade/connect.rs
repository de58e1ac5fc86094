//! Finding the configuration.

use std::path::PathBuf;

use cloudcoil_core::config::{
    Config, ConfigError, ConfigInput, ConfigLoad, ConfigOutput, ConfigSource, ConfigView, Environment, Kubeconfig,
    ReadError, ViewOptions,
};
use cloudcoil_core::{Machine, Now, Outbox};

use super::world::dual;

/// Loads a configuration; `read` reads a file whole. Warnings go to `tracing`.
///
/// # Errors
/// [`ConfigError`], naming the file and field at fault.
#[dual]
pub async fn load_config(
    source: ConfigSource,
    environment: Environment,
    read: impl AsyncFn(PathBuf) -> Result<Vec<u8>, ReadError>,
) -> Result<Config, ConfigError> {
    drive(ConfigLoad::new(source, environment), read).await
}

/// Reads and merges the kubeconfig files of a source, as `kubectl config view` does; `read` reads a file whole. Warnings go
/// to `tracing`. [`Kubeconfig::to_json`] and [`Kubeconfig::to_yaml`] print the answer.
///
/// # Errors
/// [`ConfigError`], naming the file and field at fault.
#[dual]
pub async fn view_config(
    source: ConfigSource,
    environment: Environment,
    options: ViewOptions,
    read: impl AsyncFn(PathBuf) -> Result<Vec<u8>, ReadError>,
) -> Result<Kubeconfig, ConfigError> {
    drive(ConfigView::new(source, environment, options), read).await
}

#[dual]
async fn drive<T, M: Machine<Input = ConfigInput, Output = ConfigOutput<T>>>(
    mut machine: M,
    read: impl AsyncFn(PathBuf) -> Result<Vec<u8>, ReadError>,
) -> Result<T, ConfigError> {
    let mut out = Outbox::new();
    let mut input = None;
    loop {
        // Loading has no time limits, so any clock will do.
        let _ = machine.step(Now::default(), input.take(), &mut out);
        for output in out.drain() {
            match output {
                ConfigOutput::Read { ticket, path } => {
                    input = Some(ConfigInput::Read { ticket, result: read(path).await });
                }
                ConfigOutput::Warn(warning) => tracing::warn!("{warning}"),
                ConfigOutput::Loaded(result) => return result.map(|loaded| *loaded),
            }
        }
    }
}
