//! Runnable examples of Cloudcoil.
