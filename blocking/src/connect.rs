//! Clients from configurations.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cloudcoil_core::config::{Config, ConfigInput, ConfigLoad, ConfigOutput, ConfigSource, Environment, ReadError};
use cloudcoil_core::{Error, Machine as _, Now, Outbox};
use cloudcoil_runtime::process_environment;

use crate::{Client, UreqTransport};

impl Client {
    /// A client for the current context of the kubeconfig, or inside a cluster for the pod's service account.
    ///
    /// Looks at the files in `KUBECONFIG`, else at `~/.kube/config`, else at the service account. Does not connect yet.
    ///
    /// # Errors
    /// [`Error::Config`], naming the file and field at fault.
    pub fn try_default() -> Result<Self, Error> {
        Self::try_from_config(&load_config(ConfigSource::default())?)
    }

    /// A client for the current context of one kubeconfig file.
    ///
    /// # Errors
    /// As [`try_default`](Self::try_default).
    pub fn try_from_kubeconfig(path: impl Into<PathBuf>) -> Result<Self, Error> {
        Self::try_from_config(&load_config(ConfigSource { path: Some(path.into()), ..ConfigSource::default() })?)
    }

    /// A client for a configuration at hand; see [`load_config`].
    ///
    /// # Errors
    /// [`Error::Config`] where TLS cannot be set up as configured.
    pub fn try_from_config(config: &Config) -> Result<Self, Error> {
        Ok(Self::new(Arc::new(UreqTransport::new(config)?)).with_default_namespace(&config.namespace))
    }
}

/// The configuration of a file or context, or with [`ConfigSource::default`] the one that the environment leads to.
///
/// # Errors
/// [`Error::Config`], naming the file and field at fault.
pub fn load_config(source: ConfigSource) -> Result<Config, Error> {
    load(source, process_environment(), read_file)
}

fn load(
    source: ConfigSource,
    environment: Environment,
    read: impl Fn(&Path) -> Result<Vec<u8>, ReadError>,
) -> Result<Config, Error> {
    let mut load = ConfigLoad::new(source, environment);
    let mut out = Outbox::new();
    let mut input = None;
    loop {
        // Loading has no time limits, so any clock will do.
        let _ = load.step(Now::default(), input.take(), &mut out);
        for output in out.drain() {
            match output {
                ConfigOutput::Read { ticket, path } => {
                    input = Some(ConfigInput::Read { ticket, result: read(&path) });
                }
                ConfigOutput::Warn(warning) => tracing::warn!("{warning}"),
                ConfigOutput::Loaded(result) => return Ok(*result?),
            }
        }
    }
}

/// Reads a file whole.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, ReadError> {
    Ok(std::fs::read(path)?)
}
