//! The async API of Cloudcoil: clients, informers and controllers over any executor.
