//! Lists in pages.

use http::StatusCode;

use super::{ListWatch, Next, State, WatchEvent, WatchOutput, say};
use crate::error::{Error, NetworkError, NetworkErrorKind};
use crate::exchange::{Answer, HttpEffect, HttpEvent};
use crate::frame::{ListBody, ListItem, ListMeta};
use crate::machine::{Outbox, Ticket};
use crate::request::ListVersion;
use crate::response;
use crate::time::{Now, Time};

/// A page on its way.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Listing {
    pub(super) ticket: Ticket,
    /// When the next piece must have come.
    pub(super) give_up: Time,
    page: Page,
    reading: Reading,
}

/// Which page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    limit: u32,
    /// The token from the page before; `None` for the first.
    token: Option<Box<str>>,
    /// The resource version of the list, from the first page that has one.
    version: Option<Box<str>>,
}

#[derive(Clone, Debug, PartialEq)]
enum Reading {
    Head,
    Items(Box<ListBody>),
    Refusal(Box<Answer>),
}

impl Page {
    pub(super) const fn first(limit: u32) -> Self {
        Self { limit, token: None, version: None }
    }
}

impl ListWatch {
    pub(super) fn list(&mut self, now: Now, page: Page, out: &mut Outbox<WatchOutput>) {
        match self.config.list(page.limit, page.token.as_deref(), self.list_version.clone()) {
            Ok(request) => {
                let ticket = self.send(request, out);
                let give_up = now.mono + self.config.response_timeout;
                self.state = State::Listing(Box::new(Listing { ticket, give_up, page, reading: Reading::Head }));
            }
            Err(error) => self.misconfigured(error, out),
        }
    }

    pub(super) fn hear_list(
        &mut self,
        now: Now,
        mut listing: Box<Listing>,
        event: HttpEvent,
        out: &mut Outbox<WatchOutput>,
    ) {
        listing.give_up = now.mono + self.config.response_timeout;
        match (event, &mut listing.reading) {
            (HttpEvent::Responded { status, headers, .. }, Reading::Head) => {
                listing.reading = if status == StatusCode::OK {
                    Reading::Items(Box::new(ListBody::new(self.config.frames())))
                } else {
                    Reading::Refusal(Box::new(Answer::new(status, headers).limited(REFUSAL_LIMIT)))
                };
            }
            (HttpEvent::Received { bytes, .. }, Reading::Items(body)) => {
                for item in body.read(&bytes) {
                    say(
                        out,
                        match item {
                            ListItem::Object(object) => WatchEvent::Listed(object),
                            ListItem::Faulty(faulty) => WatchEvent::Faulty(faulty),
                        },
                    );
                }
            }
            (HttpEvent::Received { bytes, .. }, Reading::Refusal(answer)) => answer.receive(&bytes),
            (HttpEvent::Closed { result, .. }, _) => return self.list_closed(now, *listing, result, out),
            (HttpEvent::Responded { .. }, _) | (HttpEvent::Received { .. }, Reading::Head) => {}
        }
        self.state = State::Listing(listing);
    }

    fn list_closed(
        &mut self,
        now: Now,
        listing: Listing,
        result: Result<(), NetworkError>,
        out: &mut Outbox<WatchOutput>,
    ) {
        let Listing { page, reading, .. } = listing;
        let read = match (result, reading) {
            // A refusal that is cut short has said enough.
            (_, Reading::Refusal(answer)) => Err(refusal(&answer, "a list")),
            (Err(error), _) => Err(error.into()),
            (Ok(()), Reading::Head) => Err(NetworkError::no_answer().into()),
            (Ok(()), Reading::Items(mut body)) => body.finish(StatusCode::OK.as_u16()),
        };
        match read {
            Ok(meta) => self.listed(now, page, meta, out),
            Err(error) => self.list_failed(now, page, error, out),
        }
    }

    fn listed(&mut self, now: Now, page: Page, meta: ListMeta, out: &mut Outbox<WatchOutput>) {
        // A list of no version, or of "any", says nothing about where a watch can go on.
        let version = page.version.or_else(|| meta.resource_version.filter(|version| &**version != "0"));
        match meta.continue_token {
            Some(token) if page.token.as_ref() == Some(&token) => {
                let error = Error::misuse("the server answers a continue token with the same one");
                self.fail(now, error, Next::List { paged: false }, out);
            }
            Some(token) => {
                let next = Page { limit: page.limit, token: Some(token), version };
                self.list(now, next, out);
            }
            None => {
                self.version.clone_from(&version);
                self.list_version = ListVersion::MostRecent;
                say(out, WatchEvent::Synced { resource_version: version });
                self.watch(now, out);
            }
        }
    }

    fn list_failed(&mut self, now: Now, page: Page, error: Error, out: &mut Outbox<WatchOutput>) {
        if error.is_resource_version_too_large() || error.is_expired() {
            self.list_version = ListVersion::MostRecent;
        }
        let next = if error.is_expired() && page.token.is_some() {
            // The rest of the list is not to be had any more. A list in one piece cannot expire on the way.
            Next::List { paged: false }
        } else if page.token.is_some() && !error.is_permanent() {
            Next::Page(Box::new(page))
        } else {
            Next::List { paged: page.limit > 0 || self.config.page_size == 0 }
        };
        self.fail(now, error, next, out);
    }

    pub(super) fn list_timed_out(&mut self, now: Now, listing: Listing, out: &mut Outbox<WatchOutput>) {
        out.push(WatchOutput::Http(HttpEffect::Cancel { ticket: listing.ticket }));
        let error = match &listing.reading {
            Reading::Refusal(answer) => refusal(answer, "a list"),
            Reading::Head | Reading::Items(_) => Error::TimedOut(self.config.response_timeout),
        };
        self.list_failed(now, listing.page, error, out);
    }
}

/// Why an answer carries not what was asked for, as it did not come with 200.
pub(super) fn refusal(answer: &Answer, wanted: &str) -> Error {
    response::check(answer).err().unwrap_or_else(|| {
        let message = format!("HTTP {} in place of {wanted}", answer.status.as_u16());
        NetworkError::new(NetworkErrorKind::Protocol, message).into()
    })
}

/// The longest refusal that is read, in bytes.
pub(super) const REFUSAL_LIMIT: usize = 1 << 20;
