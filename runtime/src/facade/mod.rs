//! The API that users see, written once and compiled twice: for tasks, below the root of this crate, and for threads, below
//! [`blocking`](crate::blocking).
//!
//! What differs between the two has the same names in both, and is found in `world`: how a machine is driven, what waits and
//! what is started, and what streams are.

mod api;
mod client;
mod connect;
mod controller;
mod discovery;
mod exchange;
mod informer;
mod manifest;
mod plain;

// Whichever of the two this is.
use super as world;

pub use api::{
    Api, Create, Delete, DeleteCollection, Evict, Get, List, Logs, PatchRequest, Replace, Save, SetReplicas,
    Subresource, SubresourceWrite, WaitRequest, Watch,
};
pub(crate) use api::{Lines, Listing, Reading, Tabulating, Watching};
pub use client::Client;
pub use connect::{load_config, view_config};
pub(crate) use controller::{Command, Report, Started};
pub use controller::{Context, Controller, ControllerHandle};
pub use discovery::Discovery;
pub(crate) use discovery::{Flight, Wanted, ask, lock};
pub(crate) use exchange::exchange;
pub use informer::{Informer, InformerHandle};
pub(crate) use manifest::Installing;
pub use manifest::{ManifestRequest, Manifests};
pub(crate) use plain::Plain;
