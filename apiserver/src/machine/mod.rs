//! The server as a pure machine: requests in, answers and streams of changes out.

mod body;
mod catalog;
mod cluster;
mod config;
mod convert;
mod custom;
mod defaults;
mod delete;
mod discovery;
mod errors;
mod media;
mod namespaces;
mod object;
mod pages;
mod patch;
mod present;
mod read;
mod reply;
mod route;
mod select;
mod server;
mod store;
mod strategy;
mod typed;
mod validation;
mod validation_kinds;
mod watch;
mod write;

pub use config::ServerConfig;
#[cfg(feature = "listen")]
pub(crate) use server::BODY_LIMIT;
pub use server::{ApiServer, ServerInput};
