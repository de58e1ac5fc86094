//! The program as a future, on any of the executors.

#[path = "program.rs"]
mod program;

use std::path::Path;

use cloudcoil_core::Error;
use cloudcoil_runtime::Client;

use crate::asynchronous::facade::dual;
use crate::asynchronous::operator::controller;
use crate::{Done, Work};

/// What futures run on.
#[derive(Clone, Copy)]
pub(crate) enum Executor {
    Tokio,
    AsyncStd,
    Smol,
}

use Executor as World;

/// Runs the operator until the process is asked to end.
pub(crate) fn run(work: &Work, executor: Executor) -> Done {
    match executor {
        Executor::Tokio => tokio::runtime::Runtime::new()?.block_on(program::run(work, executor)),
        Executor::AsyncStd => async_std::task::block_on(program::run(work, executor)),
        Executor::Smol => smol::block_on(program::run(work, executor)),
    }
}

impl Executor {
    /// A client for a kubeconfig, or for what the environment leads to.
    async fn client(self, kubeconfig: Option<&Path>) -> Result<Client, Error> {
        match (self, kubeconfig) {
            (Self::Tokio, None) => <Client as cloudcoil_tokio::Connect>::try_default().await,
            (Self::Tokio, Some(file)) => <Client as cloudcoil_tokio::Connect>::try_from_kubeconfig(file).await,
            (Self::AsyncStd, None) => <Client as cloudcoil_async_std::Connect>::try_default().await,
            (Self::AsyncStd, Some(file)) => <Client as cloudcoil_async_std::Connect>::try_from_kubeconfig(file).await,
            (Self::Smol, None) => <Client as cloudcoil_smol::Connect>::try_default().await,
            (Self::Smol, Some(file)) => <Client as cloudcoil_smol::Connect>::try_from_kubeconfig(file).await,
        }
    }

    /// Ends when the process is asked to end.
    async fn stop(self) {
        match self {
            Self::Tokio => cloudcoil_tokio::shutdown_signal().await,
            Self::AsyncStd => cloudcoil_async_std::shutdown_signal().await,
            Self::Smol => cloudcoil_smol::shutdown_signal().await,
        }
    }
}
