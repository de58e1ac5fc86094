//! Reading: one object, or a list.

use std::borrow::Cow;
use std::sync::Arc;

use super::cluster::{Call, Cluster};
use super::errors::{Outcome, not_found, version_too_large};
use super::object::Object;
use super::pages::{self, From, Page};
use super::present::{ListMeta, View};
use super::reply::{Body, Reply};
use super::select::Selection;
use super::store::{Key, Snapshot};

impl Cluster {
    /// The newest revision that the cache has seen.
    pub(crate) fn cached(&self) -> u64 {
        // A cache that has fallen behind all that is remembered starts anew from the oldest there is.
        self.frozen.map_or_else(|| self.store.revision(), |revision| revision.max(self.store.oldest()))
    }

    pub(crate) fn get(&self, call: &Call<'_>) -> Outcome<Reply> {
        Self::allow(call.resource, "get")?;
        let view = View::of(&self.kinds, call.resource, call.form()?, call.query)?;
        let version = pages::version(call.query)?;
        if let Some(revision) = version.filter(|revision| *revision > self.cached()) {
            return Ok(Reply::Wait { revision, watches: false });
        }
        let object = match version {
            Some(_) => self.cached_state(&call.resource.place).get(&call.key()).cloned(),
            None => self.store.get(&call.resource.place, &call.key()).cloned(),
        };
        let object = object.ok_or_else(|| not_found(call.resource, call.name()))?;
        Ok(Reply::Body(Body::text(200, "application/json", view.one(call.now, &object)? + "\n")))
    }

    pub(crate) fn list(&self, call: &Call<'_>) -> Outcome<Reply> {
        Self::allow(call.resource, "list")?;
        let view = View::of(&self.kinds, call.resource, call.form()?, call.query)?;
        let selection = Selection::of(call)?;
        let page = Page::of(call.query)?;
        if let From::NotOlderThan(revision) = page.from
            && revision > self.cached()
        {
            return Ok(Reply::Wait { revision, watches: false });
        }
        let (objects, meta) = self.page(call, &selection, &page)?;
        Ok(Reply::Body(Body::text(200, "application/json", view.list(call.now, &objects, &meta)? + "\n")))
    }

    /// The objects of a page, and what is said of them.
    pub(crate) fn page(
        &self,
        call: &Call<'_>,
        selection: &Selection,
        page: &Page,
    ) -> Outcome<(Vec<Arc<Object>>, ListMeta)> {
        let place = &call.resource.place;
        let (state, revision) = match page.from {
            From::Newest => (self.current_state(place), self.store.revision()),
            From::Cached | From::NotOlderThan(_) => (self.cached_state(place), self.cached()),
            From::Exactly(revision) if revision > self.store.revision() => {
                return Err(version_too_large(revision, self.store.revision(), 1));
            }
            From::Exactly(revision) => {
                let state = self.store.at(place, revision).map_err(|_| pages::compacted(page))?;
                (Cow::Owned(state), revision)
            }
        };
        let prefix = selection.prefix();
        let start = Key::from(format!("{prefix}{}", page.start.as_deref().unwrap_or_default()));
        let mut candidates = state.range(start..).take_while(|(key, _)| key.starts_with(&*prefix));
        let limit = page.limit.unwrap_or(usize::MAX);
        let mut found = Vec::new();
        let mut last = None;
        for (key, object) in candidates.by_ref() {
            if selection.matches(call.resource, key, object) {
                found.push(Arc::clone(object));
                last = Some(key);
                if found.len() == limit {
                    break;
                }
            }
        }
        let left = candidates.count();
        let mut meta = ListMeta { revision, ..ListMeta::default() };
        if let Some(last) = last.filter(|_| left > 0) {
            meta.next = Some(pages::encode(&last[prefix.len()..], revision));
            meta.remaining = selection.is_everything().then_some(left);
        }
        Ok((found, meta))
    }

    /// The objects of a type as they are.
    fn current_state(&self, place: &str) -> Cow<'_, Snapshot> {
        self.store.current(place).map_or_else(|| Cow::Owned(Snapshot::new()), Cow::Borrowed)
    }

    /// The objects of a type as the cache has them.
    pub(crate) fn cached_state(&self, place: &str) -> Cow<'_, Snapshot> {
        match self.frozen.and_then(|_| self.store.at(place, self.cached()).ok()) {
            Some(state) => Cow::Owned(state),
            None => self.current_state(place),
        }
    }
}
