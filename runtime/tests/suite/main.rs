//! The async API in virtual time, against a server that plays a script.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod api;
mod cluster;
mod common;
mod controller;
mod discovery;
mod informer;
mod manifests;
mod subresources;
mod verbs;
mod waits;
