//! What adapters share whose executors speak `futures-io`: HTTP/1.1 and TLS, files, programs and signals.
//!
//! An adapter says how to [`Dial`]; [`Http1`] makes exchanges of that, with connections that are kept, encrypted as a
//! [`Config`](cloudcoil_core::config::Config) wants it, and closed at once when nobody waits for their answer any more.

mod clock;
mod http1;
mod serve;
mod signal;
mod system;

pub use clock::Clock;
pub use http1::{Dial, Http1, Io, prepare};
pub use serve::listen;
pub use signal::shutdown_signal;
pub use system::{LocalSystem, read_file};
