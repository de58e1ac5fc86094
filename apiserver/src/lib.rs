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
//! What it does not do: rules in CEL (`x-kubernetes-validations`), which it stores and does not check; admission plugins, so
//! that a Pod gets no service account, priority or tolerations, and volumes no protection; grace periods, since no kubelet
//! would end them; tokens of service accounts; access rules, as whoever gets in may do everything. Answers are always JSON.

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
