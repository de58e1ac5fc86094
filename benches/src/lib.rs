//! Benchmarks of Cloudcoil, side by side with its peer.
