//! An in-memory Kubernetes API server: a pure machine, a listener and a binary.

pub mod kinds;
