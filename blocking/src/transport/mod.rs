//! HTTP from threads.

mod connector;
mod failure;
mod http;
mod keeper;
mod program;
mod session;
mod wire;

pub use session::UreqTransport;
