//! What adapters share whose executors speak `futures-io`: HTTP/1.1 and TLS, clocks and signals.
//!
//! An adapter says how to [`Dial`]; [`Http1`] makes exchanges of that, with connections that are kept, encrypted as a
//! [`Config`](cloudcoil_core::config::Config) wants it, and closed at once when nobody waits for their answer any more.

mod clock;
mod http1;
mod serve;
mod signal;

pub use clock::Clock;
pub use cloudcoil_runtime::LocalSystem;
pub use http1::{Dial, Http1, Io, prepare};
pub use serve::listen;
pub use signal::shutdown_signal;
