//! The same API on plain threads: no executor, no `async`.
//!
//! The nouns are those of the root of this crate, and so are all decisions. What is awaited there blocks here, what is a stream
//! there is an iterator here, and an `async fn` is a function. An adapter brings a [`Transport`].
//!
//! ```no_run
//! use cloudcoil_runtime::blocking::{Client, Error, Resource};
//! use cloudcoil_core::k8s_openapi::api::core::v1::Pod;
//!
//! fn names(client: &Client) -> Result<(), Error> {
//!     for pod in client.api::<Pod>().list().labels("app in (web, api)") {
//!         println!("{}", pod?.name());
//!     }
//!     Ok(())
//! }
//! ```
//!
//! # Threads
//! A request has a thread of its own while it is under way, so that it can be given up however it is blocked. A watch that
//! is dropped or stopped closes its connection at once.

mod cancel;
mod clock;
mod driver;
mod exchanges;
#[path = "../facade/mod.rs"]
mod facade;
mod flight;
mod group;
mod iterators;
mod latch;
mod link;
pub mod listener;
mod logs;
mod ports;
pub(crate) mod program;
mod run;
mod session;
mod stop;

use cloudcoil_dual::blocking as dual;

pub use cancel::Cancel;
pub use clock::Clock;
pub use facade::*;
pub use iterators::{ListStream, ManifestStream, TableStream, WatchStream};
pub use logs::{LogBytes, LogText};
pub use ports::{Body, Carrier, System, Transport};
pub use session::Session;
pub use stop::StopHandle;

pub use crate::plain::nouns::*;

/// What most programs use.
pub mod prelude {
    pub use super::{
        Action, Api, Client, Context, Controller, Error, Informer, KnownResource, Patch, Resource, ResourceKey, Stop,
        Unstructured, Wait, WatchEvent,
    };
}
