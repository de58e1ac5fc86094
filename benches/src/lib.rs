//! Benchmarks of Cloudcoil, side by side with its peer `kube`, in one process: ratios count, times do not.

pub mod heap;
pub mod ours;
pub mod peer;
pub mod pods;
