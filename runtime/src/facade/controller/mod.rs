//! Controllers: handlers that make the world as objects want it.

mod builder;
mod context;
mod handle;
mod runs;
mod source;
mod startup;
mod task;

use super::{Api, Client, world};

pub use builder::Controller;
pub(crate) use builder::Started;
pub use context::Context;
pub use handle::ControllerHandle;
pub(crate) use runs::Report;
pub(crate) use task::Command;
