//! Machines, a faulty network and an API server in virtual time.

mod network;
mod world;

pub use network::Faults;
pub use world::{Process, Trace, World};
