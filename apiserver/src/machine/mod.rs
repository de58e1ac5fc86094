//! The server as a pure machine: requests in, answers and streams of changes out.

mod apply;
mod body;
mod catalog;
mod cluster;
mod config;
mod controllers;
mod convert;
mod custom;
mod defaults;
mod definitions;
mod delete;
mod discovery;
mod errors;
mod garbage;
mod media;
mod namespaces;
mod object;
mod openapi;
mod ownership;
mod pages;
mod patch;
mod pods;
mod present;
mod read;
mod reply;
mod reviews;
mod route;
mod scale;
mod scale_owners;
mod select;
mod server;
mod services;
mod store;
mod strategy;
mod text;
mod validation;
mod validation_kinds;
mod watch;
mod write;

pub use config::ServerConfig;
pub(crate) use errors::Fault;
#[cfg(feature = "listen")]
pub(crate) use server::BODY_LIMIT;
pub use server::{ApiServer, ServerInput};
