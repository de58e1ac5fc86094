//! The adapter on real sockets.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod credentials;
mod frames;
mod http1;
mod http2;
mod proxy;
mod server;
mod tls;
mod verbs;
