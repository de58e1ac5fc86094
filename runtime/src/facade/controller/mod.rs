//! Controllers: handlers that make the world as objects want it.

mod builder;
mod context;
mod handle;
mod source;
mod startup;
mod task;

use super::{Api, Client, world};

pub use builder::Controller;
pub(crate) use builder::Started;
pub use context::Context;
pub(crate) use context::{Pass, Readers};
pub use handle::ControllerHandle;
pub(crate) use task::Command;
