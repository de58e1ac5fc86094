//! Clients from configurations.

use std::path::PathBuf;
use std::sync::Arc;

use cloudcoil_runtime::core::Error;
use cloudcoil_runtime::core::config::{Config, ConfigSource, Kubeconfig, ViewOptions};
use cloudcoil_runtime::{Client, process_environment};

use crate::TokioRuntime;
use crate::system::read_file;
use crate::transport::HyperTransport;

/// Makes clients that run on tokio: in scope with the [`prelude`](crate::prelude), its functions are called as if they were
/// [`Client`]'s own.
pub trait Connect: Sized {
    /// A client for the current context of the kubeconfig, or inside a cluster for the pod's service account.
    ///
    /// Looks at the files in `KUBECONFIG`, else at `~/.kube/config`, else at the service account. Does not connect yet.
    ///
    /// # Errors
    /// [`Error::Config`], naming the file and field at fault.
    fn try_default() -> impl Future<Output = Result<Self, Error>> + Send;

    /// A client for the current context of one kubeconfig file.
    ///
    /// # Errors
    /// As [`try_default`](Self::try_default).
    fn try_from_kubeconfig(path: impl Into<PathBuf> + Send) -> impl Future<Output = Result<Self, Error>> + Send;

    /// A client for a configuration at hand; see [`load_config`]. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`Error::Config`] where TLS cannot be set up as configured.
    fn try_from_config(config: &Config) -> Result<Self, Error>;
}

impl Connect for Client {
    async fn try_default() -> Result<Self, Error> {
        Self::try_from_config(&load_config(ConfigSource::default()).await?)
    }

    async fn try_from_kubeconfig(path: impl Into<PathBuf> + Send) -> Result<Self, Error> {
        let source = ConfigSource::from_kubeconfig(path);
        Self::try_from_config(&load_config(source).await?)
    }

    fn try_from_config(config: &Config) -> Result<Self, Error> {
        let runtime = TokioRuntime::new();
        let transport = HyperTransport::new(config, runtime.clone())?;
        Ok(Self::new(Arc::new(runtime), Arc::new(transport)).with_default_namespace(&config.namespace))
    }
}

/// The configuration of a file or context, or with [`ConfigSource::default`] the one that the environment leads to.
///
/// # Errors
/// [`Error::Config`], naming the file and field at fault.
pub async fn load_config(source: ConfigSource) -> Result<Config, Error> {
    Ok(cloudcoil_runtime::load_config(source, process_environment(), read_file).await?)
}

/// The kubeconfig files of a source, read and merged, as `kubectl config view` shows them.
///
/// ```no_run
/// # use cloudcoil_tokio::core::config::ViewOptions;
/// # async fn example() -> Result<(), cloudcoil_tokio::core::Error> {
/// let options = ViewOptions { minify: true, flatten: true, raw: false };
/// print!("{}", cloudcoil_tokio::view_config(Default::default(), options).await?.to_yaml());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Config`], naming the file and field at fault.
pub async fn view_config(source: ConfigSource, options: ViewOptions) -> Result<Kubeconfig, Error> {
    Ok(cloudcoil_runtime::view_config(source, process_environment(), options, read_file).await?)
}
