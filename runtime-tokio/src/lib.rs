//! Cloudcoil on tokio, hyper and rustls.
//!
//! ```no_run
//! use cloudcoil_tokio::{Client, prelude::*};
//! use cloudcoil_tokio::core::k8s_openapi::api::core::v1::Pod;
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Error> {
//!     let client = Client::try_default().await?;
//!     let pods = client.api::<Pod>();
//!     let mut list = pods.list().labels("app in (web, api)").limit(500).stream();
//!     while let Some(pod) = list.try_next().await? {
//!         println!("{}", pod.name());
//!     }
//!     Ok(())
//! }
//! ```

mod candid;
mod connect;
mod connector;
mod failure;
mod heard;
mod pool;
mod runtime;
mod serve;
mod signal;
mod transport;

pub use connect::{Connect, load_config, view_config};
pub use runtime::TokioRuntime;
pub use signal::shutdown_signal;
pub use transport::HyperTransport;

pub use cloudcoil_runtime::core::config::{Config, ConfigError, ConfigSource};
pub use cloudcoil_runtime::*;

/// The executor, for a client of one's own making.
pub fn runtime() -> TokioRuntime {
    TokioRuntime::new()
}

/// What most programs use.
pub mod prelude {
    pub use cloudcoil_runtime::prelude::*;

    pub use crate::Connect;
}
