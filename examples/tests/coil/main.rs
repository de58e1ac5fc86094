//! The coil example as a program: what it prints, where, and how it ends.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "helpers of tests may unwrap where tests may")]

mod cluster;
mod commands;
mod config_view;
mod credentials;
mod faults;
mod kubectl;
mod program;
mod same;
mod script;
mod wrong;
