//! Clients from configurations.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use cloudcoil_futures::{Dial, Http1, Io, LocalSystem};
use cloudcoil_runtime::core::Error;
use cloudcoil_runtime::core::config::{Config, ConfigSource, Kubeconfig, ViewOptions};
use cloudcoil_runtime::{Client, Session, System as _, process_environment};
use futures_util::future::BoxFuture;

use crate::SmolRuntime;

/// Makes clients that run on smol: in scope with the [`prelude`](crate::prelude), its functions are called as if they were
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

    /// A client for a configuration at hand; see [`load_config`].
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
        let runtime = Arc::new(SmolRuntime::new());
        let carrier = Http1::new(config, Arc::new(Tcp), runtime.clone())?;
        let session = Session::new(config, runtime.clone(), Arc::new(carrier), Arc::new(LocalSystem))?;
        Ok(Self::new(runtime, Arc::new(session)).with_default_namespace(&config.namespace))
    }
}

/// The configuration of a file or context, or with [`ConfigSource::default`] the one that the environment leads to.
///
/// # Errors
/// [`Error::Config`], naming the file and field at fault.
pub async fn load_config(source: ConfigSource) -> Result<Config, Error> {
    Ok(cloudcoil_runtime::load_config(source, process_environment(), async |path| LocalSystem.read(path).await).await?)
}

/// The kubeconfig files of a source, read and merged, as `kubectl config view` shows them.
///
/// ```no_run
/// # use cloudcoil_smol::core::config::ViewOptions;
/// # async fn example() -> Result<(), cloudcoil_smol::core::Error> {
/// let options = ViewOptions { minify: true, flatten: true, raw: false };
/// print!("{}", cloudcoil_smol::view_config(Default::default(), options).await?.to_yaml());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Config`], naming the file and field at fault.
pub async fn view_config(source: ConfigSource, options: ViewOptions) -> Result<Kubeconfig, Error> {
    let read = async |path| LocalSystem.read(path).await;
    Ok(cloudcoil_runtime::view_config(source, process_environment(), options, read).await?)
}

/// Connects by smol.
struct Tcp;

impl Dial for Tcp {
    fn dial(&self, host: String, port: u16) -> BoxFuture<'static, io::Result<Box<dyn Io>>> {
        Box::pin(async move {
            let stream = smol::net::TcpStream::connect((host.as_str(), port)).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Io>)
        })
    }
}
