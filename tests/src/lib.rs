//! The scenarios that hold for every part of Cloudcoil together.

pub mod cluster;
pub mod kubeconfigs;

/// The README, whose Rust code is compiled and run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;

/// The page on configuration, as the README.
#[cfg(doctest)]
#[doc = include_str!("../../docs/configuration.md")]
pub struct Configuration;

/// The page on errors and retries, as the README.
#[cfg(doctest)]
#[doc = include_str!("../../docs/errors-and-retries.md")]
pub struct ErrorsAndRetries;
