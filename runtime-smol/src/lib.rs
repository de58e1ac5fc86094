//! Cloudcoil on smol and rustls.
//!
//! ```no_run
//! use cloudcoil_smol::{Client, prelude::*};
//! use cloudcoil_smol::core::k8s_openapi::api::core::v1::Pod;
//!
//! fn main() -> Result<(), Error> {
//!     smol::block_on(async {
//!         let client = Client::try_default().await?;
//!         let mut list = client.api::<Pod>().list().limit(500).stream();
//!         while let Some(pod) = list.try_next().await? {
//!             println!("{}", pod.name());
//!         }
//!         Ok(())
//!     })
//! }
//! ```

mod connect;
mod runtime;

pub use cloudcoil_futures::shutdown_signal;
pub use connect::{Connect, load_config, view_config};
pub use runtime::SmolRuntime;

pub use cloudcoil_runtime::core::config::{Config, ConfigError, ConfigSource};
pub use cloudcoil_runtime::*;

/// The executor, for a client of one's own making.
pub fn runtime() -> SmolRuntime {
    SmolRuntime::new()
}

/// What most programs use.
pub mod prelude {
    pub use cloudcoil_runtime::prelude::*;

    pub use crate::Connect;
}
