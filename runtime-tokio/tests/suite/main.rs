//! The adapter on real sockets.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod credentials;
mod http1;
mod proxy;
mod server;
mod tls;
mod verbs;
