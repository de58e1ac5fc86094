//! Watches: who is told of which change, and until when.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cloudcoil_core::{HttpEvent, Now, Outbox, Status, Ticket, Time};
use http::StatusCode;

use super::cluster::{Call, Cluster};
use super::errors::{Outcome, expired, render, version_too_large};
use super::object::Object;
use super::pages;
use super::present::View;
use super::reply::{Reply, head, warn};
use super::select::Selection;
use super::store::{Change, Place};

/// A watch as it was asked for, with what it begins with.
#[derive(Debug)]
pub(crate) struct Subscription {
    view: View,
    selection: Selection,
    bookmarks: bool,
    timeout: Option<Duration>,
    first: Vec<(&'static str, Arc<Object>)>,
    /// Whether a bookmark tells the end of the first events.
    marked: bool,
    /// The revision that the first events come up to.
    revision: u64,
    /// The revision that was asked for: nothing up to it is told, even if it is yet to come.
    asked: u64,
    /// What ends the watch before it began.
    failed: Option<Box<Status>>,
}

impl Cluster {
    pub(crate) fn watch(&self, call: &Call<'_>) -> Outcome<Reply> {
        Self::allow(call.resource, "watch")?;
        let view = View::of(&self.kinds, call.resource, call.form()?, call.query)?;
        let selection = Selection::of(call)?;
        pages::check_watch(call.query)?;
        let timeout = call.query.number("timeoutSeconds")?.and_then(|seconds| u64::try_from(seconds).ok());
        let asked = pages::version(call.query)?;
        let initial = call.query.has("sendInitialEvents").then(|| call.query.flag("sendInitialEvents"));
        let bookmarks = call.query.flag("allowWatchBookmarks");
        let mut subscription = Subscription {
            view,
            selection,
            bookmarks,
            timeout: timeout.filter(|seconds| *seconds > 0).map(Duration::from_secs),
            first: Vec::new(),
            marked: bookmarks && initial == Some(true),
            revision: self.cached(),
            asked: asked.unwrap_or(0),
            failed: None,
        };
        let required = if initial.is_some() { asked.unwrap_or_else(|| self.store.revision()) } else { 0 };
        if initial == Some(true) && required > self.cached() {
            return Ok(Reply::Wait { revision: required, watches: true });
        }
        match (initial, asked) {
            (Some(true), _) | (None, None | Some(0)) => self.begin_with_state(call, &mut subscription),
            // Without the state there is nothing before now.
            (Some(false), None | Some(0)) => {}
            (_, Some(revision)) => self.begin_with_history(call, revision, &mut subscription),
        }
        Ok(Reply::Watch(Box::new(subscription)))
    }

    /// What exists, as additions.
    fn begin_with_state(&self, call: &Call<'_>, subscription: &mut Subscription) {
        let selection = &subscription.selection;
        let state = self.cached_state(&call.resource.place);
        let selected = state.iter().filter(|(key, object)| selection.matches(call.resource, key, object));
        subscription.first = selected.map(|(_, object)| ("ADDED", Arc::clone(object))).collect();
    }

    /// What has changed since `revision`.
    fn begin_with_history(&self, call: &Call<'_>, revision: u64, subscription: &mut Subscription) {
        match self.store.since(revision) {
            Ok(changes) => {
                let changes = changes.filter(|change| change.place == call.resource.place);
                let seen = changes.take_while(|change| change.revision <= subscription.revision);
                subscription.first =
                    seen.filter_map(|change| event(&subscription.view, &subscription.selection, change)).collect();
            }
            Err(gone) => {
                let message = format!("too old resource version: {revision} ({})", gone.oldest);
                subscription.failed = Some(expired(message));
            }
        }
    }
}

/// What a watcher is told of a change.
fn event(view: &View, selection: &Selection, change: &Change) -> Option<(&'static str, Arc<Object>)> {
    let selected = |object: &&Arc<Object>| selection.matches(&view.resource, &change.key, object);
    let before = change.before.as_ref().filter(selected);
    let after = change.after.as_ref().filter(selected);
    match (before, after) {
        (None, Some(after)) => Some(("ADDED", Arc::clone(after))),
        (Some(_), Some(after)) => Some(("MODIFIED", Arc::clone(after))),
        (Some(before), None) => Some(("DELETED", before.at(change.revision))),
        (None, None) => None,
    }
}

/// The watches that are open.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    open: BTreeMap<Ticket, Watcher>,
    /// Who watches a place.
    at: BTreeMap<Place, BTreeSet<Ticket>>,
    timers: BTreeSet<(Time, Ticket)>,
}

#[derive(Debug)]
struct Watcher {
    view: View,
    selection: Selection,
    /// Up to which revision it is told everything, or does not want to know.
    told: u64,
    bookmarks: Option<Duration>,
    /// Whether a table has said what its columns are.
    introduced: bool,
    ends: Time,
    due: Time,
}

impl Watches {
    /// Opens a watch: its head, and what it begins with.
    pub(crate) fn open(
        &mut self,
        now: Now,
        ticket: Ticket,
        subscription: Subscription,
        Pace { bookmark_interval, lifetime }: Pace,
        remarks: &[String],
        out: &mut Outbox<HttpEvent>,
    ) {
        if let Some(status) = subscription.failed {
            refuse(ticket, &status, out);
            return;
        }
        let mut headers = head("application/json");
        warn(&mut headers, remarks);
        out.push(HttpEvent::Responded { ticket, status: StatusCode::OK, headers });
        let ends = now.mono + subscription.timeout.unwrap_or(lifetime);
        let mut watcher = Watcher {
            view: subscription.view,
            selection: subscription.selection,
            told: subscription.revision.max(subscription.asked),
            bookmarks: subscription.bookmarks.then_some(bookmark_interval),
            introduced: false,
            ends,
            due: ends,
        };
        let mut text = String::new();
        for (kind, object) in &subscription.first {
            watcher.write(now, kind, object, &mut text);
            if text.len() >= CHUNK {
                out.push(HttpEvent::Received { ticket, bytes: std::mem::take(&mut text).into() });
            }
        }
        if subscription.marked {
            watcher.write_bookmark(now, subscription.revision, true, &mut text);
        }
        if !text.is_empty() {
            out.push(HttpEvent::Received { ticket, bytes: text.into() });
        }
        watcher.schedule(now.mono);
        self.timers.insert((watcher.due, ticket));
        self.at.entry(Arc::clone(&watcher.view.resource.place)).or_default().insert(ticket);
        self.open.insert(ticket, watcher);
    }

    pub(crate) fn is_open(&self, ticket: Ticket) -> bool {
        self.open.contains_key(&ticket)
    }

    /// Tells whoever watches of a change.
    pub(crate) fn tell(&mut self, now: Now, change: &Change, out: &mut Outbox<HttpEvent>) {
        for ticket in self.at.get(&change.place).into_iter().flatten() {
            let Some(watcher) = self.open.get_mut(ticket).filter(|watcher| watcher.told < change.revision) else {
                continue;
            };
            watcher.told = change.revision;
            if let Some((kind, object)) = event(&watcher.view, &watcher.selection, change) {
                let mut text = String::new();
                watcher.write(now, kind, &object, &mut text);
                out.push(HttpEvent::Received { ticket: *ticket, bytes: text.into() });
            }
        }
    }

    /// When the next bookmark or end is due.
    pub(crate) fn due(&self) -> Option<Time> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Fires one timer that is due; `revision` is what watchers have been told up to.
    pub(crate) fn fire(&mut self, now: Now, revision: u64, out: &mut Outbox<HttpEvent>) {
        let Some((at, ticket)) = self.timers.first().copied().filter(|(at, _)| *at <= now.mono) else { return };
        self.timers.remove(&(at, ticket));
        let Some(watcher) = self.open.get_mut(&ticket) else { return };
        if watcher.ends <= now.mono {
            self.close(ticket, out);
            return;
        }
        let mut text = String::new();
        // A watcher may have begun where this cache has not got to yet; a bookmark never takes it back.
        watcher.write_bookmark(now, revision.max(watcher.told), false, &mut text);
        out.push(HttpEvent::Received { ticket, bytes: text.into() });
        watcher.schedule(now.mono);
        self.timers.insert((watcher.due, ticket));
    }

    /// Ends a watch as its time limit does.
    pub(crate) fn close(&mut self, ticket: Ticket, out: &mut Outbox<HttpEvent>) {
        if self.forget(ticket) {
            out.push(HttpEvent::Closed { ticket, result: Ok(()) });
        }
    }

    /// Drops a watch that nobody listens to any more.
    pub(crate) fn forget(&mut self, ticket: Ticket) -> bool {
        let Some(watcher) = self.open.remove(&ticket) else { return false };
        self.timers.remove(&(watcher.due, ticket));
        let place = &watcher.view.resource.place;
        if let Some(tickets) = self.at.get_mut(place) {
            tickets.remove(&ticket);
            if tickets.is_empty() {
                self.at.remove(place);
            }
        }
        true
    }

    /// The open watches of a place, or of all.
    pub(crate) fn tickets(&self, place: Option<&str>) -> Vec<Ticket> {
        match place {
            Some(place) => self.at.get(place).into_iter().flatten().copied().collect(),
            None => self.open.keys().copied().collect(),
        }
    }
}

/// Ends a watch before it has begun: with an event, as a watch fails.
pub(crate) fn refuse(ticket: Ticket, status: &Status, out: &mut Outbox<HttpEvent>) {
    let text = format!("{{\"type\":\"ERROR\",\"object\":{}}}\n", render(status));
    out.push(HttpEvent::Responded { ticket, status: StatusCode::OK, headers: head("application/json") });
    out.push(HttpEvent::Received { ticket, bytes: text.into() });
    out.push(HttpEvent::Closed { ticket, result: Ok(()) });
}

/// How long watches last, and how often they are told how far they have got.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) bookmark_interval: Duration,
    pub(crate) lifetime: Duration,
}

impl Watcher {
    fn write(&mut self, now: Now, kind: &str, object: &Object, text: &mut String) {
        let object = self.view.event(now, object, !self.introduced);
        self.introduced = true;
        let _ = writeln!(text, "{{\"type\":\"{kind}\",\"object\":{object}}}");
    }

    fn write_bookmark(&self, now: Now, revision: u64, initial_end: bool, text: &mut String) {
        let object = self.view.bookmark(now, revision, initial_end);
        let _ = writeln!(text, "{{\"type\":\"BOOKMARK\",\"object\":{object}}}");
    }

    /// Sets the next time at which something is due: a bookmark every so often and one shortly before the end, or the end.
    fn schedule(&mut self, now: Time) {
        let last = Time::from_nanos(self.ends.as_nanos().saturating_sub(LAST_BOOKMARK.as_nanos() as u64));
        self.due = match self.bookmarks {
            Some(interval) if last > now => (now + interval).min(last),
            Some(_) | None => self.ends,
        };
    }
}

/// A request that waits for a revision.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) revision: u64,
    /// Whether it is a watch, which fails after it has begun.
    pub(crate) watches: bool,
    pub(crate) until: Time,
    pub(crate) parts: http::request::Parts,
    pub(crate) body: Bytes,
}

impl Waiting {
    /// The refusal when the revision does not come.
    pub(crate) fn too_late(&self, current: u64) -> Box<Status> {
        version_too_large(self.revision, current, 1)
    }
}

/// How long before its end a watch is told how far it has got.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// About how much is sent at once of what a watch begins with.
const CHUNK: usize = 64 << 10;
