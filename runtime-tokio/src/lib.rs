//! Cloudcoil on tokio, hyper and rustls.
