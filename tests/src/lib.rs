//! The scenarios that hold for every part of Cloudcoil together.

pub mod kubeconfigs;

/// The README, whose Rust code is compiled and run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
