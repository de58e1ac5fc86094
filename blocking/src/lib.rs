//! Cloudcoil on plain threads, ureq and rustls: no executor, no `async`.
//!
//! ```no_run
//! use cloudcoil_blocking::{Client, prelude::*};
//! use cloudcoil_blocking::core::k8s_openapi::api::core::v1::Pod;
//!
//! fn main() -> Result<(), Error> {
//!     let client = Client::try_default()?;
//!     for pod in client.api::<Pod>().list().all_namespaces() {
//!         println!("{}", pod?.name());
//!     }
//!     Ok(())
//! }
//! ```
//!
//! All nouns are those of [`cloudcoil_runtime::blocking`]; this crate brings the connections.

mod connect;
mod serve;
mod signal;
mod transport;

pub use connect::{Connect, load_config, view_config};
pub use serve::listen;
pub use signal::{is_shutdown_requested, shutdown_signal};
pub use transport::UreqTransport;

pub use cloudcoil_runtime::blocking::listener::{ListenHandle, RequestHandler};
pub use cloudcoil_runtime::blocking::*;
pub use cloudcoil_runtime::core::config::{Config, ConfigError, ConfigSource};

/// What most programs use.
pub mod prelude {
    pub use cloudcoil_runtime::blocking::prelude::*;

    pub use crate::Connect;
}
