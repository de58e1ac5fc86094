//! Cloudcoil on async-std, surf and rustls.
//!
//! async-std is discontinued, and its authors point to smol: a new program has no reason to begin with it. This adapter is for those
//! that are there already.
//!
//! ```no_run
//! use cloudcoil_async_std::{Client, prelude::*};
//! use cloudcoil_async_std::core::k8s_openapi::api::core::v1::Pod;
//!
//! fn main() -> Result<(), Error> {
//!     async_std::task::block_on(async {
//!         let client = Client::try_default().await?;
//!         let mut list = client.api::<Pod>().list().limit(500).stream();
//!         while let Some(pod) = list.try_next().await? {
//!             println!("{}", pod.name());
//!         }
//!         Ok(())
//!     })
//! }
//! ```

mod backend;
mod connect;
mod runtime;

pub use cloudcoil_futures::shutdown_signal;
pub use connect::{Connect, load_config, view_config};
pub use runtime::AsyncStdRuntime;

pub use cloudcoil_runtime::core::config::{Config, ConfigError, ConfigSource};
pub use cloudcoil_runtime::*;

/// The executor, for a client of one's own making.
pub fn runtime() -> AsyncStdRuntime {
    AsyncStdRuntime::new()
}

/// What most programs use.
pub mod prelude {
    pub use cloudcoil_runtime::prelude::*;

    pub use crate::Connect;
}
