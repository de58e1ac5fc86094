//! Cloudcoil on plain threads: no executor, no `async`.
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
//! The nouns are those of `cloudcoil-runtime`, and so are all decisions, which are made by the machines of
//! `cloudcoil-core`. What is awaited there is [sent](Create::send) here, what is a stream there is an iterator here,
//! and an `async fn` is a closure.
//!
//! # Threads
//! A request has a thread of its own while it is under way, so that it can be given up however it is blocked. A watch that
//! is dropped or stopped closes its connection at once.

mod api;
mod cancel;
mod client;
mod clock;
mod connect;
mod controller;
mod discovery;
mod driver;
mod exchanges;
mod group;
mod informer;
mod latch;
mod listener;
mod manifest;
mod signal;
mod stop;
mod transport;

pub use api::{
    Api, Create, Delete, DeleteCollection, Evict, Get, List, LogBytes, LogText, Logs, Objects, PatchRequest, Replace,
    SetReplicas, Subresource, SubresourceWrite, WaitRequest, Watch, WatchIter,
};
pub use cancel::Cancel;
pub use client::Client;
pub use connect::load_config;
pub use controller::{Context, Controller, ControllerHandle};
pub use discovery::Discovery;
pub use informer::{Informer, InformerHandle};
pub use listener::{ListenHandle, RequestHandler, listen};
pub use manifest::{ManifestIter, ManifestRequest, Manifests};
pub use signal::shutdown_signal;
pub use stop::StopHandle;
pub use transport::{Body, Transport, UreqTransport};

pub use cloudcoil_core as core;
pub use cloudcoil_core::config::{Config, ConfigError, ConfigSource};
pub use cloudcoil_core::{
    Answer, ApiResource, BackoffPolicy, Catalog, DecodeError, Deleted, Error, Evicted, FieldSelector, FieldValidation,
    KnownResource, ListVersion, LogSource, Object, Patch, Predicate, Propagation, ReconcilerConfig, ReconcilerStatus,
    Resource, ResourceKey, ResourceList, ResourceType, RetryPolicy, Scope, Selector, Status, Table, Unstructured,
    Warning, WatchConfig,
};
pub use cloudcoil_runtime::{
    Action, Awaited, Change, InformerStatus, IntoKeys, IntoOutcome, Reader, Recorder, Stop, Wait, WatchEvent, form,
    process_environment,
};

/// What most programs use.
pub mod prelude {
    pub use crate::{
        Action, Api, Client, Context, Controller, Error, Informer, KnownResource, Patch, Resource, ResourceKey, Stop,
        Unstructured, Wait, WatchEvent,
    };
}
