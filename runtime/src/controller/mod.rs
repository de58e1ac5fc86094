//! Controllers: handlers that make the world as objects want it.

mod outcome;

pub use outcome::{Action, IntoOutcome, Stop, Wait, form};
