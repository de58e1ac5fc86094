//! Tests for operators: a simulation in virtual time, and a real control plane to run against.
//!
//! [`ControlPlane`] starts etcd and kube-apiserver from the folder that `KUBEBUILDER_ASSETS` names, as
//! [`setup-envtest`](https://book.kubebuilder.io/reference/envtest.html) fetches them, and stops them again however
//! the test ends. It needs a Unix.
//!
//! ```no_run
//! use cloudcoil_testing::ControlPlane;
//!
//! let Some(plane) = ControlPlane::start_or_skip("my_operator_works") else { return };
//! let answer = plane.kubectl().args(["get", "namespaces"]).output().unwrap();
//! assert!(answer.status.success());
//! ```

#[cfg(unix)]
mod control_plane;
#[cfg(unix)]
mod error;
pub mod simulation;

#[cfg(unix)]
pub use control_plane::{ClientCertificate, Component, ControlPlane, ControlPlaneBuilder};
#[cfg(unix)]
pub use error::Error;
