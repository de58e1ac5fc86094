//! Tests for operators: a real control plane to run against.
