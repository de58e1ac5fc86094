//! The pure core of Cloudcoil: every decision of a Kubernetes client and operator framework, and no I/O.
//!
//! Nothing here reads a clock, opens a socket or a file, starts a thread or is `async`. Flows are
//! [`Machine`]s: an adapter hands them finished effects and the time, and performs what they ask for.

pub mod backoff;
pub mod laws;
pub mod machine;
pub mod time;

pub use backoff::{Backoff, BackoffPolicy, Random};
pub use machine::{Deadline, Machine, Outbox, Ticket, Tickets};
pub use time::{Now, Time, UnixTime};

pub use k8s_openapi;
