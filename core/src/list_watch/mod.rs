//! A list, and a watch that goes on from it, for as long as wanted.

mod config;
mod listing;
#[cfg(test)]
mod tests;
mod watching;

use std::sync::Arc;
use std::time::Duration;

use crate::backoff::Backoff;
use crate::error::Error;
use crate::exchange::{HttpEffect, HttpEvent, HttpRequest};
use crate::frame::Faulty;
use crate::machine::{Deadline, Machine, Outbox, Ticket, Tickets};
use crate::object::Object;
use crate::request::ListVersion;
use crate::time::{Now, Time};

pub use config::WatchConfig;

use listing::Listing;
use watching::Watching;

/// Lists the objects of one type and watches for changes, and never ends by itself.
///
/// The list is a streaming one where the server has it, and else comes in pages. A watch that ends, breaks or goes
/// silent is resumed where it was, without a list; only when the server has forgotten that place
/// ([410](https://kubernetes.io/docs/reference/using-api/api-concepts/#410-gone-responses)) a new list is made. Whatever
/// fails is tried again with growing delays, of which the server may ask for longer ones.
///
/// A server that does not do streaming lists, or does not end them, is asked for pages from then on.
#[derive(Clone, Debug, PartialEq)]
pub struct ListWatch {
    config: WatchConfig,
    tickets: Tickets,
    backoff: Backoff,
    state: State,
    /// Where a watch can go on.
    version: Option<Box<str>>,
    /// How new the next list must be.
    list_version: ListVersion,
    streaming: Streaming,
    /// How many watches in a row had to be given up for what the server sent, at the same place.
    stumbles: u32,
}

#[derive(Clone, Debug, PartialEq)]
enum State {
    /// Waiting to be stepped for the first time.
    Starting,
    /// Waiting for a while.
    Waiting { until: Time, next: Next },
    /// Waiting for a page of a list.
    Listing(Box<Listing>),
    /// Waiting for events.
    Watching(Box<Watching>),
    /// Waiting for nothing, for ever.
    Stopped,
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Next {
    /// A list from its beginning, in pages if `paged`.
    List { paged: bool },
    /// The next page of a list that has begun.
    Page(Box<listing::Page>),
    /// A watch from where the last one ended.
    Watch,
}

/// What is known of the server's streaming lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Streaming {
    /// They may work; so many in a row have begun and not ended.
    Possible { incomplete: u32 },
    /// They do not.
    Unsupported,
}

/// What a [`ListWatch`] hears.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must know what it may say")]
pub enum WatchInput {
    /// Something came of a request.
    Http(HttpEvent),
    /// No more is wanted: what is in flight is cancelled.
    Stopped,
}

/// What a [`ListWatch`] asks for and says.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must do all of them")]
pub enum WatchOutput {
    /// Do this.
    Http(HttpEffect),
    /// This happened.
    Event(WatchEvent),
}

/// What a [`ListWatch`] reports.
///
/// First `Restarted`, any number of `Listed` and one `Synced`; then changes, until a `Restarted` begins anew. Between
/// `Restarted` and `Synced` an object may be reported several times, of which the last counts. What was known before
/// `Restarted` and is not reported until `Synced` exists no more.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "whoever keeps objects must know all of them")]
pub enum WatchEvent {
    /// A list begins.
    Restarted,
    /// An object exists.
    Listed(Arc<Object>),
    /// The list is complete.
    Synced {
        /// The resource version of the list, if it has one.
        resource_version: Option<Box<str>>,
    },
    /// An object is new or has changed.
    Applied(Arc<Object>),
    /// An object is gone; this is its last state.
    Deleted(Arc<Object>),
    /// An object cannot be taken in; all others can.
    Faulty(Faulty),
    /// A request or a stream failed.
    Failed {
        /// Why.
        error: Error,
        /// After which time it is tried again.
        retry_in: Duration,
    },
    /// Something is odd, and passed over.
    Warned(Box<str>),
}

impl ListWatch {
    /// A machine that lists on its first step. `machine` is the number in its tickets, `seed` moves its jitter.
    pub const fn new(config: WatchConfig, machine: u32, seed: u64) -> Self {
        let streaming = if config.streaming { Streaming::Possible { incomplete: 0 } } else { Streaming::Unsupported };
        Self {
            tickets: Tickets::new(machine),
            backoff: Backoff::new(config.backoff, seed),
            state: State::Starting,
            version: None,
            list_version: ListVersion::MostRecent,
            streaming,
            stumbles: 0,
            config,
        }
    }

    /// The resource version at which a watch would go on now.
    pub fn resource_version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    fn begin(&mut self, now: Now, next: Next, out: &mut Outbox<WatchOutput>) {
        match next {
            Next::List { paged } => self.restart(now, paged, out),
            Next::Page(page) => self.list(now, *page, out),
            Next::Watch => self.watch(now, out),
        }
    }

    /// Begins a list, streaming if that may work.
    fn restart(&mut self, now: Now, paged: bool, out: &mut Outbox<WatchOutput>) {
        say(out, WatchEvent::Restarted);
        if matches!(self.streaming, Streaming::Possible { .. }) && self.list_version == ListVersion::MostRecent {
            self.stream(now, out);
        } else {
            let limit = if paged { self.config.page_size } else { 0 };
            self.list(now, listing::Page::first(limit), out);
        }
    }

    fn send(&mut self, request: HttpRequest, out: &mut Outbox<WatchOutput>) -> Ticket {
        let ticket = self.tickets.issue();
        out.push(WatchOutput::Http(HttpEffect::Send { ticket, request }));
        ticket
    }

    /// A request that cannot be made at all: only the configuration can be at fault, and nothing will mend it.
    fn misconfigured(&mut self, error: Error, out: &mut Outbox<WatchOutput>) {
        self.state = State::Stopped;
        say(out, WatchEvent::Failed { error, retry_in: Duration::MAX });
    }

    /// Reports a failure, and tries again after a delay that is no shorter than the server asks for.
    fn fail(&mut self, now: Now, error: Error, next: Next, out: &mut Outbox<WatchOutput>) {
        let asked = error.retry_after().unwrap_or_default().min(MAX_RETRY_AFTER);
        let least = if error.is_resource_version_too_large() { TOO_NEW } else { Duration::ZERO };
        let retry_in = self.backoff.fail().max(asked).max(least);
        say(out, WatchEvent::Failed { error, retry_in });
        self.wait(now.mono + retry_in, next);
    }

    fn wait(&mut self, until: Time, next: Next) {
        self.state = State::Waiting { until, next };
    }

    /// Whether changes are coming in, or would if there were any.
    pub(crate) fn is_following(&self) -> bool {
        matches!(&self.state, State::Watching(watching) if watching.is_following())
    }

    fn ticket(&self) -> Option<Ticket> {
        match &self.state {
            State::Listing(listing) => Some(listing.ticket),
            State::Watching(watching) => Some(watching.ticket),
            State::Starting | State::Waiting { .. } | State::Stopped => None,
        }
    }

    fn cancel(&self, out: &mut Outbox<WatchOutput>) {
        if let Some(ticket) = self.ticket() {
            out.push(WatchOutput::Http(HttpEffect::Cancel { ticket }));
        }
    }

    fn hear(&mut self, now: Now, event: HttpEvent, out: &mut Outbox<WatchOutput>) {
        match std::mem::replace(&mut self.state, State::Stopped) {
            State::Listing(listing) => self.hear_list(now, listing, event, out),
            State::Watching(watching) => self.hear_watch(now, watching, event, out),
            state => self.state = state,
        }
    }
}

impl Machine for ListWatch {
    type Input = WatchInput;
    type Output = WatchOutput;

    fn on_input(&mut self, now: Now, input: WatchInput, out: &mut Outbox<WatchOutput>) {
        match input {
            WatchInput::Http(event) if self.ticket() == Some(event.ticket()) => self.hear(now, event, out),
            WatchInput::Http(_) => {}
            WatchInput::Stopped => {
                self.cancel(out);
                self.state = State::Stopped;
            }
        }
    }

    fn on_timer(&mut self, now: Now, out: &mut Outbox<WatchOutput>) {
        match std::mem::replace(&mut self.state, State::Stopped) {
            State::Starting => {
                self.list_version = self.config.version.clone();
                self.begin(now, Next::List { paged: true }, out);
            }
            State::Waiting { next, .. } => self.begin(now, next, out),
            State::Listing(listing) => self.list_timed_out(now, *listing, out),
            State::Watching(watching) => self.watch_timed_out(now, *watching, out),
            State::Stopped => {}
        }
    }

    fn deadline(&self) -> Option<Deadline> {
        match &self.state {
            State::Starting => Some(Deadline::new(Time::ZERO, "start")),
            State::Waiting { until, .. } => Some(Deadline::new(*until, "retry")),
            State::Listing(listing) => Some(Deadline::new(listing.give_up, "the next piece of a list")),
            State::Watching(watching) => Some(watching.deadline()),
            State::Stopped => None,
        }
    }
}

/// The longest wait that a server can ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(600);
/// How often at the most a server is asked for a version that it does not have yet.
const TOO_NEW: Duration = Duration::from_secs(1);

fn say(out: &mut Outbox<WatchOutput>, event: WatchEvent) {
    out.push(WatchOutput::Event(event));
}
