//! The API on threads against servers behind real sockets.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;
mod controller;
mod credentials;
mod http1;
mod informer;
mod listener;
mod more_verbs;
mod proxy;
mod server;
mod tls;
mod verbs;
mod watch;
