//! Controllers: handlers that make the world as objects want it.

mod builder;
mod context;
mod handle;
mod run;
mod source;
mod startup;
mod task;

pub use builder::Controller;
pub use context::Context;
pub use handle::ControllerHandle;
