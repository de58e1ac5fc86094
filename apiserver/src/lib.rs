//! An in-memory Kubernetes API server: a pure machine, a listener and a binary.
//!
//! [`ApiServer`] is the server itself: a [`Machine`](cloudcoil_core::Machine) that takes requests and answers them, in
//! virtual time as well as on the clock. With the feature `listen` (on by default), [`serve`] puts it behind a port.
//!
//! It stores, lists, watches, patches and deletes objects of the built-in kinds and of custom resource definitions as a
//! real API server does, in the same words and with the same codes; collects garbage; and deletes namespaces with what is
//! in them. No controller runs: a Deployment makes no Pods, and a Pod stays `Pending`. It has no memory beyond its own.
//!
//! It applies on the server's side, keeps who owns which fields, and prunes, fills in and checks custom resources by the schemas
//! of their definitions.
//!
//! It knows who asks by client certificates ([`Tls`]), bearer tokens ([`ServerConfig::users`]) and tokens of service accounts,
//! and lets members of `system:masters` impersonate others. Evictions go by disruption budgets. A Pod that is on a node has
//! its grace period to end, after which the server removes it, as there is no kubelet to do so. Tests say what containers
//! write to their logs ([`ApiServer::append_log`]).
//!
//! What it does not do: rules in CEL (`x-kubernetes-validations`), which it stores and does not check; most admission plugins,
//! so that a Pod gets a priority and tolerations, but no service account, and volumes no protection; access rules, as whoever
//! is known may do everything but impersonate; every rule of every kind. Answers are always JSON.

pub mod kinds;
#[cfg(feature = "listen")]
mod listen;
mod machine;
mod managed;
mod strategic;
mod structural;
mod table;

#[cfg(feature = "listen")]
pub use listen::{ClientCertificate, ListenError, ServerHandle, Tls, serve, serve_tls};
pub use machine::{Anonymous, ApiServer, LogSource, Peer, ServerConfig, ServerInput, User};
