//! Machines, a faulty network and an API server in virtual time.
//!
//! [`Simulation`] runs operators as they are, handlers and all; [`World`] is the same for whoever has machines of their own.

mod host;
mod network;
mod sim;
mod world;

pub use host::{Host, Stuck};
pub use network::Faults;
pub use sim::{ProcessId, Sim, Simulation};
pub use world::{Process, Trace, World};
