//! The pure core of Cloudcoil: every decision of a Kubernetes client and operator framework, and no I/O.
//!
//! Nothing here reads a clock, opens a socket or a file, starts a thread or is `async`. Flows are
//! [`Machine`]s: an adapter hands them finished effects and the time, and performs what they ask for.

pub mod backoff;
mod call;
pub mod config;
pub mod credentials;
mod decoded;
mod discovery;
mod drive;
mod ensure;
pub mod error;
mod evicted;
pub mod exchange;
pub mod frame;
#[doc(hidden)]
pub mod fuzz;
mod gzip;
pub mod http1;
mod informer;
mod json;
pub mod jsonpath;
pub mod laws;
pub mod list;
mod list_watch;
pub mod listen;
pub mod log;
pub mod machine;
pub mod manifest;
mod object;
mod owner;
mod pages;
mod pass;
pub mod patch;
pub mod proxy;
pub mod quantity;
mod queue;
mod reconciler;
pub mod record;
pub mod request;
pub mod resource;
pub mod response;
mod save;
pub mod selector;
pub mod status;
mod store;
pub mod table;
mod target;
pub mod time;
mod unstructured;
mod wait_for;
pub mod warning;

pub use backoff::{Backoff, BackoffPolicy, Random};
pub use call::{Call, CallInput, CallOutput, Retry, RetryPolicy};
pub use decoded::Decoded;
pub use discovery::{
    ApiGroup, ApiResource, ApiSubresource, ApiVersion, Catalog, Discovery, DiscoveryConfig, DiscoveryFailure,
    DiscoveryFault, DiscoveryInput, DiscoveryOutput, NotServed,
};
pub use drive::{CallEvent, DiscoveryEvent, HttpMachine, ReconcilerEvent, Said};
pub use ensure::{DesiredChild, EnsureError, EnsureStep, controller_reference};
pub use error::{DecodeError, Error, NetworkError, NetworkErrorKind};
pub use evicted::{Evicted, EvictionRefusal};
pub use exchange::{Answer, HttpEffect, HttpEvent, HttpRequest};
pub use gzip::Gunzip;
pub use informer::{Informer, InformerConfig, InformerEvent, InformerInput, InformerOutput, InformerStatus};
pub use jsonpath::{JsonPath, JsonPathError};
pub use list::{Deleted, ResourceList};
pub use list_watch::{ListWatch, WatchConfig, WatchEvent, WatchInput, WatchOutput};
pub use log::{LogEvent, LogInput, LogLines, LogOutput, LogParams, LogSource, LogStream};
pub use machine::{Deadline, Machine, Outbox, Ticket, Tickets};
pub use object::{Object, Trim, TypeMeta};
pub use owner::{Owner, owner_key};
pub use pages::{Pages, WholeList};
pub use pass::{
    Finished, Next, ObjectVersion, Outcome, Pass, PassConfig, PassError, PassInput, PassOutput, PassResult,
    StatusEndpoint, Update, Verdict,
};
pub use patch::{JsonPatch, PatchError};
pub use quantity::{Quantity, QuantityError};
pub use queue::{QueueConfig, QueueInput, QueueOutput, WorkQueue};
pub use reconciler::{Reconciled, Reconciler, ReconcilerConfig, ReconcilerInput, ReconcilerOutput, ReconcilerStatus};
pub use request::{
    DeleteParams, FieldValidation, ListParams, ListVersion, Patch, PatchParams, Propagation, Requests, View,
    WatchParams, WriteParams,
};
pub use resource::{KnownResource, Resource, ResourceKey, ResourceType, Scope};
pub use save::SaveStep;
pub use selector::{FieldSelector, FieldSelectorError, Selector, SelectorError};
pub use status::Status;
pub use store::{IndexFn, Store};
pub use table::{Table, TableColumn, TableEvent, TableInput, TableOutput, TableRow, TableWatch};
pub use target::{Outgoing, Target};
pub use time::{Now, Time, UnixTime};
pub use unstructured::Unstructured;
pub use wait_for::{Awaited, Predicate, PredicateFn, WaitFor, WaitInput, WaitOutput};
pub use warning::Warning;

pub use http;
pub use k8s_openapi;
