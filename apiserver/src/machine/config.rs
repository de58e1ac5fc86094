//! How a server is set up.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::user::{Anonymous, User};
use crate::kinds::Kinds;

/// How a server is set up; made with struct update syntax over [`Default`].
#[derive(Clone)]
#[expect(clippy::exhaustive_structs, reason = "made with struct update syntax")]
pub struct ServerConfig {
    /// The built-in kinds. They take a moment to read, so many servers do well to share them.
    pub kinds: Arc<Kinds>,
    /// Where uids, generated names and jitter come from: the same seed gives the same ones.
    pub seed: u64,
    /// The bearer token of user `admin`, who may do everything.
    pub token: Option<String>,
    /// The users that other bearer tokens stand for, by token.
    pub users: BTreeMap<String, User>,
    /// What becomes of requests that bring no credentials. `None` lets them do everything as long as there are neither
    /// a token nor users, and refuses them otherwise.
    pub anonymous: Option<Anonymous>,
    /// The certificate, in PEM, that the ConfigMap `kube-root-ca.crt` of every namespace holds.
    pub root_ca: String,
    /// How many writes are remembered: older resource versions answer 410.
    pub history: usize,
    /// How often a watch that wants bookmarks gets one.
    pub bookmark_interval: Duration,
    /// How long a watch lasts that does not say so itself; it may be up to twice as long.
    pub watch_timeout: Duration,
    /// How long a request waits for a resource version that is yet to come.
    pub patience: Duration,
    /// How long after a write the controllers inside the server act on it: garbage collection, namespaces, definitions.
    pub controller_delay: Duration,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            kinds: Arc::new(Kinds::builtin()),
            seed: 0,
            token: None,
            users: BTreeMap::new(),
            anonymous: None,
            root_ca: String::new(),
            history: 10_000,
            bookmark_interval: Duration::from_secs(60),
            watch_timeout: Duration::from_secs(1800),
            patience: Duration::from_secs(3),
            controller_delay: Duration::from_millis(50),
        }
    }
}

/// Without the tokens.
impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerConfig")
            .field("seed", &self.seed)
            .field("token", &self.token.as_ref().map(|_| "***"))
            .field("users", &self.users.values().collect::<Vec<_>>())
            .field("anonymous", &self.anonymous)
            .field("history", &self.history)
            .field("bookmark_interval", &self.bookmark_interval)
            .field("watch_timeout", &self.watch_timeout)
            .field("patience", &self.patience)
            .field("controller_delay", &self.controller_delay)
            .finish_non_exhaustive()
    }
}
