//! Watches, and lists that come as the beginning of a watch.

use std::time::Duration;

use http::StatusCode;

use super::listing::REFUSAL_LIMIT;
use super::{ListWatch, Next, State, Streaming, WatchEvent, WatchOutput, say};
use crate::error::{Error, NetworkError, NetworkErrorKind};
use crate::exchange::{Answer, HttpEffect, HttpEvent};
use crate::frame::{Bookmark, Frame, Frames};
use crate::machine::{Deadline, Outbox, Ticket};
use crate::object::Object;
use crate::response;
use crate::status::Status;
use crate::time::{Now, Time};

/// A watch under way.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Watching {
    pub(super) ticket: Ticket,
    phase: Phase,
    started: Time,
    /// After which time the server was asked to end it.
    timeout: Duration,
    /// When it must have ended, or a streaming list must have come to its end.
    ends: Time,
    /// When the next word must have come.
    quiet: Time,
    reading: Reading,
    /// Whether anything has come that a watch that works sends.
    healthy: bool,
}

/// What the events of a watch are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// What exists, until a bookmark says that this is all.
    InitialEvents,
    /// Changes.
    Changes,
}

#[derive(Clone, Debug, PartialEq)]
enum Reading {
    Head,
    Events(Box<Frames>),
    Refusal(Box<Answer>),
}

/// How a watch came to its end.
enum End {
    /// In order, as watches do after a while.
    Clean,
    /// Nothing was heard for too long.
    Silent,
    /// It broke.
    Broken(Error),
    /// The server said no.
    Refused(Error),
}

impl Watching {
    pub(super) fn deadline(&self) -> Deadline {
        Deadline::new(self.ends, "the end of a watch").min(Deadline::new(self.quiet, "the next word of a watch"))
    }
}

impl ListWatch {
    /// Asks for what exists and for all changes after it.
    pub(super) fn stream(&mut self, now: Now, out: &mut Outbox<WatchOutput>) {
        self.version = None;
        self.open(now, Phase::InitialEvents, out);
    }

    /// Goes on where the last watch or list ended.
    pub(super) fn watch(&mut self, now: Now, out: &mut Outbox<WatchOutput>) {
        self.open(now, Phase::Changes, out);
    }

    fn open(&mut self, now: Now, phase: Phase, out: &mut Outbox<WatchOutput>) {
        let base = self.config.watch_timeout;
        let more = self.backoff.random().below(u64::try_from(base.as_millis()).unwrap_or(u64::MAX));
        let timeout = base + Duration::from_millis(more);
        match self.config.watch(self.version.as_deref(), phase == Phase::InitialEvents, timeout) {
            Ok(request) => {
                let ticket = self.send(request, out);
                let ends = match phase {
                    Phase::Changes => now.mono + timeout + MARGIN,
                    // What goes on and on may be changes, from a server that sends no bookmark between.
                    Phase::InitialEvents => now.mono + self.config.stream_timeout * STREAM_PATIENCE,
                };
                let quiet = now.mono + self.config.response_timeout;
                let (started, reading) = (now.mono, Reading::Head);
                let watching = Watching { ticket, phase, started, timeout, ends, quiet, reading, healthy: false };
                self.state = State::Watching(Box::new(watching));
            }
            Err(error) => self.misconfigured(error, out),
        }
    }

    pub(super) fn hear_watch(
        &mut self,
        now: Now,
        mut watching: Box<Watching>,
        event: HttpEvent,
        out: &mut Outbox<WatchOutput>,
    ) {
        match (event, &mut watching.reading) {
            (HttpEvent::Responded { status, headers, .. }, Reading::Head) => {
                watching.reading = if status == StatusCode::OK {
                    Reading::Events(Box::new(Frames::new(self.config.frames())))
                } else {
                    Reading::Refusal(Box::new(Answer::new(status, headers).limited(REFUSAL_LIMIT)))
                };
            }
            (HttpEvent::Received { bytes, .. }, Reading::Events(frames)) => {
                let frames: Vec<_> = frames.read(&bytes).collect();
                if let Err(end) = self.take_frames(&mut watching, frames, out) {
                    out.push(WatchOutput::Http(HttpEffect::Cancel { ticket: watching.ticket }));
                    return self.ended(now, &watching, end, out);
                }
            }
            (HttpEvent::Received { bytes, .. }, Reading::Refusal(answer)) => answer.receive(&bytes),
            (HttpEvent::Closed { result, .. }, _) => return self.watch_closed(now, *watching, result, out),
            (HttpEvent::Responded { .. }, _) | (HttpEvent::Received { .. }, Reading::Head) => {}
        }
        watching.quiet = now.mono + self.patience(&watching);
        self.state = State::Watching(watching);
    }

    const fn patience(&self, watching: &Watching) -> Duration {
        match (&watching.reading, watching.phase) {
            (Reading::Events(_), Phase::Changes) => self.config.idle_timeout,
            (Reading::Events(_), Phase::InitialEvents) => self.config.stream_timeout,
            (Reading::Head | Reading::Refusal(_), _) => self.config.response_timeout,
        }
    }

    fn watch_closed(
        &mut self,
        now: Now,
        mut watching: Watching,
        result: Result<(), NetworkError>,
        out: &mut Outbox<WatchOutput>,
    ) {
        let reading = std::mem::replace(&mut watching.reading, Reading::Head);
        let end = match (result, reading) {
            (_, Reading::Refusal(answer)) => {
                End::Refused(response::check(&answer).err().unwrap_or_else(|| no_watch(&answer)))
            }
            (Ok(()), Reading::Head) => {
                let message = "the exchange ended before the head of an answer";
                End::Broken(NetworkError::new(NetworkErrorKind::Protocol, message).into())
            }
            (result, Reading::Events(mut frames)) => {
                let rest = frames.finish();
                match (self.take_frames(&mut watching, rest, out), result) {
                    // What is cut off with the connection is told by the connection's error.
                    (Err(End::Refused(error)), _) => End::Refused(error),
                    (_, Err(error)) => End::Broken(error.into()),
                    (Err(end), Ok(())) => end,
                    (Ok(()), Ok(())) => End::Clean,
                }
            }
            (Err(error), Reading::Head) => End::Broken(error.into()),
        };
        self.ended(now, &watching, end, out);
    }

    pub(super) fn watch_timed_out(&mut self, now: Now, watching: Watching, out: &mut Outbox<WatchOutput>) {
        out.push(WatchOutput::Http(HttpEffect::Cancel { ticket: watching.ticket }));
        let end = match &watching.reading {
            Reading::Events(_) => End::Silent,
            Reading::Head | Reading::Refusal(_) => End::Broken(Error::TimedOut(now.mono.since(watching.started))),
        };
        self.ended(now, &watching, end, out);
    }

    fn take_frames(
        &mut self,
        watching: &mut Watching,
        frames: Vec<Frame>,
        out: &mut Outbox<WatchOutput>,
    ) -> Result<(), End> {
        for frame in frames {
            match frame {
                Frame::Failed(status) => return Err(End::Refused(Error::Api(status))),
                Frame::Broken(error) => return Err(End::Broken(error.into())),
                Frame::Faulty(faulty) => say(out, WatchEvent::Faulty(faulty)),
                Frame::Unknown(kind) => {
                    say(out, WatchEvent::Warned(format!("the watch has an event of unknown type {kind:?}").into()));
                    continue;
                }
                Frame::Bookmark(bookmark) => self.bookmark(watching, bookmark, out),
                Frame::Added(object) | Frame::Modified(object) => {
                    let listed = self.reach(watching.phase, &object);
                    say(out, if listed { WatchEvent::Listed(object) } else { WatchEvent::Applied(object) });
                }
                Frame::Deleted(object) => {
                    self.reach(watching.phase, &object);
                    say(out, WatchEvent::Deleted(object));
                }
            }
            self.thrive(watching);
        }
        Ok(())
    }

    /// The watch works: what failed before counts no more. A streaming list works when it is complete.
    const fn thrive(&mut self, watching: &mut Watching) {
        if matches!(watching.phase, Phase::Changes) {
            watching.healthy = true;
            self.refusals = 0;
            self.backoff.reset();
        }
    }

    /// Takes note of how far the watch has got; what exists already comes in no order, and says nothing about that.
    fn reach(&mut self, phase: Phase, object: &Object) -> bool {
        match phase {
            Phase::InitialEvents => true,
            Phase::Changes => {
                if let Some(version) = object.resource_version() {
                    self.reach_version(version);
                }
                false
            }
        }
    }

    fn reach_version(&mut self, version: &str) {
        if self.version.as_deref() != Some(version) {
            self.version = Some(version.into());
        }
    }

    fn bookmark(&mut self, watching: &mut Watching, bookmark: Bookmark, out: &mut Outbox<WatchOutput>) {
        let ends_list = watching.phase == Phase::InitialEvents && bookmark.ends_initial_events;
        if watching.phase == Phase::InitialEvents && !ends_list {
            return;
        }
        if let Some(version) = &bookmark.resource_version {
            self.reach_version(version);
        }
        if ends_list {
            watching.phase = Phase::Changes;
            watching.ends = watching.started + watching.timeout + MARGIN;
            self.streaming = Streaming::Possible { incomplete: 0 };
            say(out, WatchEvent::Synced { resource_version: bookmark.resource_version });
        }
    }

    fn ended(&mut self, now: Now, watching: &Watching, end: End, out: &mut Outbox<WatchOutput>) {
        match watching.phase {
            Phase::InitialEvents => self.stream_ended(now, watching, end, out),
            Phase::Changes => self.changes_ended(now, watching, end, out),
        }
    }

    /// A streaming list that is not complete starts over, or gives way to a list in pages.
    fn stream_ended(&mut self, now: Now, watching: &Watching, end: End, out: &mut Outbox<WatchOutput>) {
        let begun = matches!(watching.reading, Reading::Events(_)) || matches!(end, End::Clean | End::Silent);
        match (self.streaming, &end) {
            (_, End::Refused(error)) if is_unsupported(error) => self.streaming = Streaming::Unsupported,
            (Streaming::Possible { incomplete }, _) if begun => {
                let incomplete = incomplete + 1;
                self.streaming = if incomplete < MAX_INCOMPLETE {
                    Streaming::Possible { incomplete }
                } else {
                    Streaming::Unsupported
                };
            }
            _ => {}
        }
        let next = Next::List { paged: true };
        match end {
            // The server may well do lists in pages; there is nothing to report yet.
            End::Refused(_) if self.streaming == Streaming::Unsupported => self.begin(now, next, out),
            End::Refused(error) if error.is_expired() => self.go_on(now, watching, next, out),
            End::Refused(error) | End::Broken(error) => self.fail(now, error, next, out),
            End::Clean | End::Silent => self.go_on(now, watching, next, out),
        }
    }

    fn changes_ended(&mut self, now: Now, watching: &Watching, end: End, out: &mut Outbox<WatchOutput>) {
        let resume = if self.version.is_some() { Next::Watch } else { Next::List { paged: true } };
        match end {
            End::Clean | End::Silent => self.go_on(now, watching, resume, out),
            End::Broken(error) => self.fail(now, error, resume, out),
            End::Refused(error) if error.is_expired() => {
                self.version = None;
                self.go_on(now, watching, Next::List { paged: true }, out);
            }
            End::Refused(error) => {
                self.refusals += 1;
                let too_new = error.status().is_some_and(Status::is_resource_version_too_large);
                let next = if error.is_permanent() || self.refusals >= MAX_REFUSALS {
                    self.refusals = 0;
                    Next::List { paged: true }
                } else {
                    resume
                };
                self.fail_at_least(now, error, if too_new { TOO_NEW } else { Duration::ZERO }, next, out);
            }
        }
    }

    fn fail_at_least(&mut self, now: Now, error: Error, least: Duration, next: Next, out: &mut Outbox<WatchOutput>) {
        self.fail(now, error, next, out);
        if let State::Waiting { until, .. } = &mut self.state {
            *until = (*until).max(now.mono + least);
        }
    }

    /// What has worked goes on at once, though not more often than each second; what has not, after a delay.
    fn go_on(&mut self, now: Now, watching: &Watching, next: Next, out: &mut Outbox<WatchOutput>) {
        let until = if watching.healthy || now.mono.since(watching.started) >= HEALTHY {
            self.backoff.reset();
            watching.started + PACE
        } else {
            now.mono + self.backoff.fail()
        };
        if until <= now.mono { self.begin(now, next, out) } else { self.wait(until, next) }
    }
}

/// Whether the answer to a streaming list says that the server does not do them.
fn is_unsupported(error: &Error) -> bool {
    matches!(error.code(), Some(400 | 405 | 406 | 415 | 422 | 501))
}

/// A success that carries no watch.
fn no_watch(answer: &Answer) -> Error {
    let message = format!("HTTP {} in place of a watch", answer.status.as_u16());
    NetworkError::new(NetworkErrorKind::Protocol, message).into()
}

/// How much later than asked for a server may end a watch.
const MARGIN: Duration = Duration::from_secs(15);
/// How many times longer than its silence a streaming list may last.
const STREAM_PATIENCE: u32 = 10;
/// A watch that lasts so long has worked, whether or not anything happened in it.
const HEALTHY: Duration = Duration::from_secs(20);
/// Watches begin no more often than this.
const PACE: Duration = Duration::from_secs(1);
/// How many streaming lists in a row may begin and not end before pages are asked for instead.
const MAX_INCOMPLETE: u32 = 2;
/// How many refusals in a row of one watch lead to a list.
const MAX_REFUSALS: u32 = 3;
/// How often at the most a server is asked for a version that it does not have yet.
const TOO_NEW: Duration = Duration::from_secs(1);
