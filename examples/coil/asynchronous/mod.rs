//! The commands as futures, on any of the executors.

#[path = "../commands/mod.rs"]
mod commands;
mod executor;
mod world;

pub(crate) use executor::Executor;

use crate::args::Coil;
use crate::fault::Fault;

/// Does what the command line says, on an executor.
pub(crate) fn run(coil: Coil, executor: Executor) -> Result<(), Fault> {
    executor.block_on(commands::run(coil, world::World(executor)))
}
