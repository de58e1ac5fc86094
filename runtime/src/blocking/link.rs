//! What a client needs of an adapter.

use std::sync::Arc;

use super::group::Group;
use super::{Client, Clock, Transport};

/// The clocks, and the way to a server.
#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) transport: Arc<dyn Transport>,
    clock: Clock,
    /// What is given up together with what this is used for.
    pub(crate) group: Option<Group>,
}

impl Link {
    pub(crate) const fn clock(&self) -> Clock {
        self.clock
    }
}

impl Client {
    /// A client whose default namespace is `default`.
    pub fn new(transport: Arc<dyn Transport>) -> Self {
        Self::over(Link { transport, clock: Clock::new(), group: None })
    }

    /// The same, whose calls are given up with a group.
    pub(crate) fn grouped(mut self, group: Option<Group>) -> Self {
        self.link.group = group;
        self
    }
}
