//! The program on plain threads.

#[path = "program.rs"]
mod program;

use std::path::Path;

use cloudcoil_blocking::{Client, Connect as _};
use cloudcoil_core::Error;

use crate::blocking::facade::dual;
use crate::blocking::operator::controller;
use crate::{Done, Work};

#[derive(Clone, Copy)]
struct World;

/// Runs the operator until the process is asked to end.
pub(crate) fn run(work: &Work) -> Done {
    program::run(work, World)
}

impl World {
    /// A client for a kubeconfig, or for what the environment leads to.
    fn client(self, kubeconfig: Option<&Path>) -> Result<Client, Error> {
        match kubeconfig {
            None => Client::try_default(),
            Some(file) => Client::try_from_kubeconfig(file),
        }
    }

    /// Returns when the process is asked to end.
    fn stop(self) -> fn() {
        cloudcoil_blocking::shutdown_signal
    }
}
