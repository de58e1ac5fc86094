//! API servers: in memory behind a port, and a real one.

use std::sync::{Mutex, PoisonError};

use cloudcoil_runtime::core::config::{Auth, Config};
use cloudcoil_testing::ControlPlane;

pub(crate) use cloudcoil_tests::cluster::{Cluster, config_of, in_memory};

/// The real control plane, as its admin.
pub(crate) fn real() -> Config {
    let plane = PLANE.lock().unwrap_or_else(PoisonError::into_inner);
    let plane = plane.as_ref().expect("these tests are left out without one");
    let mut config = config_of(plane.url(), Some(plane.ca_pem()));
    config.auth = Auth::bearer(plane.token().as_bytes()).expect("a token can stand in a header");
    config
}

/// A certificate by which the real control plane knows somebody, and its key.
pub(crate) fn real_certificate(name: &str) -> (String, String) {
    let plane = PLANE.lock().unwrap_or_else(PoisonError::into_inner);
    let plane = plane.as_ref().expect("these tests are left out without one");
    let made = plane.client_certificate(name, &[]).expect("keys can be made");
    (made.certificate_pem, made.key_pem)
}

/// Starts the real control plane, and answers whether there is one.
pub(crate) fn start_real() -> bool {
    let plane = ControlPlane::start_or_skip("the conformance suite on a real control plane");
    let is_there = plane.is_some();
    *PLANE.lock().unwrap_or_else(PoisonError::into_inner) = plane;
    is_there
}

/// Stops the real control plane, if there is one.
pub(crate) fn stop_real() {
    drop(PLANE.lock().unwrap_or_else(PoisonError::into_inner).take());
}

static PLANE: Mutex<Option<ControlPlane>> = Mutex::new(None);
