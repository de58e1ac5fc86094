//! The bodies of the fuzz targets, here so that every build compiles them.

pub use crate::config::fuzz::kubeconfig;
pub use crate::credentials::fuzz::exec_output;
pub use crate::discovery::fuzz::discovery;
pub use crate::frame::fuzz::{frames, list_body, status_body};
pub use crate::listen::fuzz::http1_request;
pub use crate::manifest::fuzz::manifest;
pub use crate::patch::fuzz::patch;
pub use crate::quantity::fuzz::quantity;
pub use crate::queue::model::queue_ops;
pub use crate::selector::fuzz::selector;
pub use crate::store::fuzz::store_ops;
pub use crate::warning::fuzz::warnings;
