//! What a client needs of an adapter.

use std::sync::Arc;

use crate::clock::Clock;
use crate::{Client, Runtime, Transport};

/// An executor, and the way to a server.
#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) transport: Arc<dyn Transport>,
}

impl Link {
    pub(crate) fn clock(&self) -> Clock {
        Clock::new(self.runtime.clone())
    }
}

impl Client {
    /// A client whose default namespace is `default`.
    pub fn new(runtime: Arc<dyn Runtime>, transport: Arc<dyn Transport>) -> Self {
        Self::over(Link { runtime, transport })
    }

    /// The executor and its clocks.
    pub fn runtime(&self) -> &Arc<dyn Runtime> {
        &self.link.runtime
    }

    /// The way to the server.
    pub fn transport(&self) -> &Arc<dyn Transport> {
        &self.link.transport
    }
}
