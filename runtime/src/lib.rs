//! The API of Cloudcoil that users see: clients, informers and controllers over any executor, and [on plain threads](blocking).
//!
//! Everything is decided by the machines of `cloudcoil-core`; this crate runs them. It names no executor: an adapter
//! brings a [`Runtime`] and a [`Transport`], and an operator library needs nothing but this crate.

#![expect(clippy::duplicate_mod, reason = "the facade is written once, and compiled for tasks and for threads")]

pub mod blocking;
mod clock;
mod connect;
mod driver;
mod exchanges;
mod facade;
mod files;
mod flight;
mod latch;
mod link;
pub mod listener;
mod plain;
mod ports;
mod run;
mod send;
mod session;
mod streams;
mod system;

use cloudcoil_dual::asynchronous as dual;

pub use facade::*;
pub use files::{MAX_FILE, read_file, reread_file};
pub use plain::nouns::*;
pub use ports::{Body, Carrier, Listener, Runtime, System, Transport};
pub use session::Session;
pub use streams::{ListStream, LogBytes, LogText, ManifestStream, TableStream, WatchStream};
pub use system::LocalSystem;

/// What most programs use.
pub mod prelude {
    pub use futures_util::{StreamExt, TryStreamExt};

    pub use crate::{
        Action, Api, Client, Context, Controller, Error, Informer, KnownResource, Patch, Resource, ResourceKey, Stop,
        Unstructured, Wait, WatchEvent,
    };
}
