//! The async API of Cloudcoil: clients, informers and controllers over any executor.
//!
//! Everything is decided by the machines of `cloudcoil-core`; this crate runs them. It names no executor: an adapter
//! brings a [`Runtime`] and a [`Transport`], and an operator library needs nothing but this crate.

mod api;
mod client;
mod connect;
mod controller;
mod discovery;
mod driver;
mod exchanges;
mod informer;
mod latch;
pub mod listener;
mod manifest;
mod panics;
pub mod parts;
mod ports;
mod record;
mod send;
mod session;
mod shared;
mod warnings;

pub use api::{
    Api, Awaited, Create, Delete, DeleteCollection, Evict, Get, List, ListStream, LogBytes, LogText, Logs,
    PatchRequest, Replace, Save, SetReplicas, Subresource, SubresourceWrite, TableStream, WaitRequest, Watch,
    WatchEvent, WatchStream,
};
pub use client::Client;
pub use connect::{load_config, process_environment, view_config};
pub use controller::{Action, Context, Controller, ControllerHandle, IntoKeys, IntoOutcome, Stop, Wait, form};
pub use discovery::Discovery;
pub use informer::{Change, Informer, InformerHandle, InformerStatus, Reader};
pub use manifest::{ManifestRequest, ManifestStream, Manifests};
pub use ports::{Body, Carrier, Listener, Runtime, System, Transport};
pub use record::Recorder;
pub use session::Session;

pub use cloudcoil_core as core;
pub use cloudcoil_core::{
    Answer, ApiResource, BackoffPolicy, Catalog, DecodeError, Deleted, Error, Evicted, FieldSelector, FieldValidation,
    KnownResource, ListVersion, LogSource, Object, Patch, Predicate, Propagation, ReconcilerConfig, ReconcilerStatus,
    Resource, ResourceKey, ResourceList, ResourceType, RetryPolicy, Scope, Selector, Status, Table, TableEvent,
    Unstructured, Warning, WatchConfig,
};

/// What most programs use.
pub mod prelude {
    pub use futures_util::{StreamExt, TryStreamExt};

    pub use crate::{
        Action, Api, Client, Context, Controller, Error, Informer, KnownResource, Patch, Resource, ResourceKey, Stop,
        Unstructured, Wait, WatchEvent,
    };
}
