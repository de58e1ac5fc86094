//! What differs from executor to executor.

use cloudcoil_core::Error;
use cloudcoil_core::config::{Config, ConfigSource, Kubeconfig, ViewOptions};
use cloudcoil_runtime::Client;

use crate::fault::Fault;

/// What futures run on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Executor {
    Tokio,
    AsyncStd,
    Smol,
}

impl Executor {
    /// Runs a command to its end.
    pub(crate) fn block_on(self, command: impl Future<Output = Result<(), Fault>>) -> Result<(), Fault> {
        match self {
            Self::AsyncStd => async_std::task::block_on(command),
            Self::Smol => smol::block_on(command),
            Self::Tokio => {
                let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
                let runtime = runtime.map_err(|error| Fault::failed(format!("cannot start: {error}")))?;
                let done = runtime.block_on(command);
                // One of its threads may be writing to somebody who does not read.
                runtime.shutdown_background();
                done
            }
        }
    }

    pub(super) async fn load_config(self, source: ConfigSource) -> Result<Config, Error> {
        match self {
            Self::Tokio => cloudcoil_tokio::load_config(source).await,
            Self::AsyncStd => cloudcoil_async_std::load_config(source).await,
            Self::Smol => cloudcoil_smol::load_config(source).await,
        }
    }

    pub(super) async fn view_config(self, source: ConfigSource, options: ViewOptions) -> Result<Kubeconfig, Error> {
        match self {
            Self::Tokio => cloudcoil_tokio::view_config(source, options).await,
            Self::AsyncStd => cloudcoil_async_std::view_config(source, options).await,
            Self::Smol => cloudcoil_smol::view_config(source, options).await,
        }
    }

    pub(super) fn client(self, config: &Config) -> Result<Client, Error> {
        match self {
            Self::Tokio => cloudcoil_tokio::Connect::try_from_config(config),
            Self::AsyncStd => cloudcoil_async_std::Connect::try_from_config(config),
            Self::Smol => cloudcoil_smol::Connect::try_from_config(config),
        }
    }

    pub(super) async fn shutdown_signal(self) {
        match self {
            Self::Tokio => cloudcoil_tokio::shutdown_signal().await,
            Self::AsyncStd => cloudcoil_async_std::shutdown_signal().await,
            Self::Smol => cloudcoil_smol::shutdown_signal().await,
        }
    }
}
