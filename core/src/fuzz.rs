//! The bodies of the fuzz targets, here so that every build compiles them.

pub use crate::queue::model::queue_ops;
