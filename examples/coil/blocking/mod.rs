//! The commands on threads, without an executor.

#[expect(clippy::while_let_on_iterator, reason = "a `for` is no way to go through a stream")]
#[path = "../commands/mod.rs"]
mod commands;
mod world;

use crate::args::Coil;
use crate::fault::Fault;

/// Does what the command line says.
pub(crate) fn run(coil: Coil) -> Result<(), Fault> {
    commands::run(coil, world::World)
}
