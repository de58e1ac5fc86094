//! The API on threads against servers behind real sockets.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;
mod controller;
mod http1;
mod informer;
mod more_verbs;
mod tls;
mod verbs;
mod watch;
