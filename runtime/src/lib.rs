//! The async API of Cloudcoil: clients, informers and controllers over any executor.
//!
//! Everything is decided by the machines of `cloudcoil-core`; this crate runs them. It names no executor: an adapter
//! brings a [`Runtime`] and a [`Transport`], and an operator library needs nothing but this crate.

mod api;
mod client;
mod connect;
mod controller;
mod driver;
mod exchanges;
mod ports;

pub use api::{Api, Create, Delete, DeleteCollection, List, ListStream, PatchRequest, Replace};
pub use client::Client;
pub use connect::{Target, load_config, process_environment};
pub use controller::{Action, IntoOutcome, Stop, Wait, form};
pub use ports::{Body, Runtime, Transport};

pub use cloudcoil_core as core;
pub use cloudcoil_core::{
    Answer, Deleted, Error, FieldValidation, KnownResource, ListVersion, Patch, Propagation, Resource, ResourceKey,
    ResourceList, ResourceType, Scope, Unstructured,
};

/// What most programs use.
pub mod prelude {
    pub use futures_util::{StreamExt, TryStreamExt};

    pub use crate::{Api, Client, Error, KnownResource, Patch, Resource, ResourceKey, Unstructured};
}
