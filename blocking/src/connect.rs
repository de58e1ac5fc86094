//! Clients from configurations.

use std::path::PathBuf;
use std::sync::Arc;

use cloudcoil_runtime::blocking;
use cloudcoil_runtime::blocking::{Client, Error, process_environment};
use cloudcoil_runtime::core::config::{Config, ConfigSource, Kubeconfig, ViewOptions};
use cloudcoil_runtime::read_file;

use crate::UreqTransport;

/// Makes clients that run on threads: in scope with the [`prelude`](crate::prelude), its functions are called as if they were
/// [`Client`]'s own.
pub trait Connect: Sized {
    /// A client for the current context of the kubeconfig, or inside a cluster for the pod's service account.
    ///
    /// Looks at the files in `KUBECONFIG`, else at `~/.kube/config`, else at the service account. Does not connect yet.
    ///
    /// # Errors
    /// [`Error::Config`], naming the file and field at fault.
    fn try_default() -> Result<Self, Error> {
        Self::try_from_config(&load_config(ConfigSource::default())?)
    }

    /// A client for the current context of one kubeconfig file.
    ///
    /// # Errors
    /// As [`try_default`](Self::try_default).
    fn try_from_kubeconfig(path: impl Into<PathBuf>) -> Result<Self, Error> {
        Self::try_from_config(&load_config(ConfigSource::from_kubeconfig(path))?)
    }

    /// A client for a configuration at hand; see [`load_config`].
    ///
    /// # Errors
    /// [`Error::Config`] where TLS cannot be set up as configured.
    fn try_from_config(config: &Config) -> Result<Self, Error>;
}

impl Connect for Client {
    fn try_from_config(config: &Config) -> Result<Self, Error> {
        Ok(Self::new(Arc::new(UreqTransport::new(config)?)).with_default_namespace(&config.namespace))
    }
}

/// The configuration of a file or context, or with [`ConfigSource::default`] the one that the environment leads to.
///
/// # Errors
/// [`Error::Config`], naming the file and field at fault.
pub fn load_config(source: ConfigSource) -> Result<Config, Error> {
    Ok(blocking::load_config(source, process_environment(), read_file)?)
}

/// The kubeconfig files of a source, read and merged, as `kubectl config view` shows them.
///
/// ```no_run
/// # use cloudcoil_blocking::core::config::ViewOptions;
/// # fn example() -> Result<(), cloudcoil_blocking::Error> {
/// let options = ViewOptions { minify: true, flatten: true, raw: false };
/// print!("{}", cloudcoil_blocking::view_config(Default::default(), options)?.to_yaml());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Config`], naming the file and field at fault.
pub fn view_config(source: ConfigSource, options: ViewOptions) -> Result<Kubeconfig, Error> {
    Ok(blocking::view_config(source, process_environment(), options, read_file)?)
}
