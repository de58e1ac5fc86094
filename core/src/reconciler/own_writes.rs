//! What passes have written and the cache does not hold yet.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::machine::Deadline;
use crate::pass::ObjectVersion;
use crate::resource::ResourceKey;
use crate::time::{Now, Time};

/// Knows of each key that is being worked on what the cache has held since, and of each key that was written whether
/// the cache holds that.
///
/// What a pass writes may come to the cache before the answer comes to the pass, so what is seen during a pass counts.
#[derive(Clone, Debug)]
pub(super) struct OwnWrites {
    keys: BTreeMap<ResourceKey, Standing>,
    /// When which key has waited long enough.
    until: BTreeSet<(Time, ResourceKey)>,
    timeout: Duration,
}

/// Where a key stands.
#[derive(Clone, Debug)]
enum Standing {
    /// A pass is under way; this is what the cache has held last since its start.
    Running(Option<Seen>),
    /// A pass has led to a version that the cache does not hold yet.
    Written(ObjectVersion, Time),
}

#[derive(Clone, Debug)]
enum Seen {
    Version(ObjectVersion),
    Gone,
}

impl Seen {
    fn knows(&self, written: &ObjectVersion) -> bool {
        match self {
            Self::Version(seen) => written.is_known_from(seen),
            Self::Gone => true,
        }
    }
}

impl OwnWrites {
    pub(super) const fn new(timeout: Duration) -> Self {
        Self { keys: BTreeMap::new(), until: BTreeSet::new(), timeout }
    }

    pub(super) fn started(&mut self, key: ResourceKey) {
        self.keys.insert(key, Standing::Running(None));
    }

    /// Takes note of what the cache holds; whether the key has waited for that.
    pub(super) fn observed(&mut self, key: &ResourceKey, version: Option<ObjectVersion>) -> bool {
        let now_seen = || version.map_or(Seen::Gone, Seen::Version);
        match self.keys.get_mut(key) {
            None => false,
            Some(Standing::Running(seen)) => {
                *seen = Some(now_seen());
                false
            }
            Some(Standing::Written(written, at)) => {
                let (known, at) = (now_seen().knows(written), *at);
                if known && let Some((key, _)) = self.keys.remove_entry(key) {
                    self.until.remove(&(at, key));
                }
                known
            }
        }
    }

    /// Takes note of the end of a pass and what it has written; whether the key has to wait for the cache.
    pub(super) fn ended(&mut self, now: Now, key: &ResourceKey, written: Option<ObjectVersion>) -> bool {
        let Some((key, Standing::Running(seen))) = self.keys.remove_entry(key) else { return false };
        match written {
            Some(written) if !seen.is_some_and(|seen| seen.knows(&written)) && !self.timeout.is_zero() => {
                let at = now.mono + self.timeout;
                self.until.insert((at, key.clone()));
                self.keys.insert(key, Standing::Written(written, at));
                true
            }
            _ => false,
        }
    }

    /// A key that has waited too long.
    pub(super) fn expired(&mut self, now: Now) -> Option<ResourceKey> {
        self.until.first().filter(|(at, _)| *at <= now.mono)?;
        let (_, key) = self.until.pop_first()?;
        self.keys.remove(&key);
        Some(key)
    }

    pub(super) fn deadline(&self) -> Option<Deadline> {
        self.until.first().map(|(at, _)| Deadline::new(*at, "cache to hold a write"))
    }

    /// Nobody waits any more.
    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.until.clear();
    }
}
