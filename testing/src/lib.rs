//! Tests for operators: a real control plane to run against.
//!
//! [`ControlPlane`] starts etcd and kube-apiserver from the folder that `KUBEBUILDER_ASSETS` names, as
//! [`setup-envtest`](https://book.kubebuilder.io/reference/envtest.html) fetches them, and stops them again however
//! the test ends.
//!
//! ```no_run
//! use cloudcoil_testing::ControlPlane;
//!
//! let Some(plane) = ControlPlane::start_or_skip("my_operator_works") else { return };
//! let answer = plane.kubectl().args(["get", "namespaces"]).output().unwrap();
//! assert!(answer.status.success());
//! ```
#![cfg(unix)]

mod control_plane;
mod error;

pub use control_plane::{ClientCertificate, Component, ControlPlane, ControlPlaneBuilder};
pub use error::Error;
