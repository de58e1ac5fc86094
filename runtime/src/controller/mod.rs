//! Controllers: handlers that make the world as objects want it.

mod builder;
mod context;
mod handle;
mod outcome;
mod run;
mod source;
mod task;

pub use builder::Controller;
pub use context::Context;
pub use handle::ControllerHandle;
pub use outcome::{Action, IntoOutcome, Stop, Wait, form};
pub use run::outcome;
pub use source::{ChangedKeys, IntoKeys, Mapper, Mapping, primary_inputs};
pub use task::report;
