//! Watches, and lists that come as the beginning of a watch.

use std::time::Duration;

use http::StatusCode;

use super::listing::{REFUSAL_LIMIT, refusal};
use super::{ListWatch, Next, State, Streaming, WatchEvent, WatchOutput, say};
use crate::error::{BodyProblem, Error, NetworkError, NetworkErrorKind};
use crate::exchange::{Answer, HttpEffect, HttpEvent};
use crate::frame::{Bookmark, Frame, Frames};
use crate::machine::{Deadline, Outbox, Ticket};
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
    /// Whether the server has granted it.
    granted: bool,
    /// Whether its events come in the order of their versions, so that each tells where a later watch can go on. A watch
    /// from nowhere begins with what exists, in any order.
    ordered: bool,
    /// Whether it has got further than where it began.
    progressed: bool,
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
    /// The connection broke.
    Lost(Error),
    /// Something came that is no event.
    Broken(Error),
    /// The server reported a failure in its midst.
    Reported(Error),
    /// The server refused it.
    Refused(Error),
}

impl Watching {
    pub(super) fn deadline(&self) -> Deadline {
        Deadline::new(self.ends, "the end of a watch").min(Deadline::new(self.quiet, "the next word of a watch"))
    }

    fn age(&self, now: Now) -> Duration {
        now.mono.since(self.started)
    }

    fn is_ordered_change(&self) -> bool {
        self.ordered && self.phase == Phase::Changes
    }

    pub(super) const fn is_following(&self) -> bool {
        matches!((&self.reading, self.phase), (Reading::Events(_), Phase::Changes))
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
                self.state = State::Watching(Box::new(Watching {
                    ticket,
                    phase,
                    started: now.mono,
                    timeout,
                    ends,
                    quiet,
                    reading: Reading::Head,
                    granted: false,
                    ordered: self.version.is_some(),
                    progressed: false,
                }));
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
                watching.granted = status == StatusCode::OK;
                watching.reading = if watching.granted {
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
            (_, Reading::Refusal(answer)) => End::Refused(refusal(&answer, "a watch")),
            (Err(error), Reading::Head) => End::Lost(error.into()),
            (Ok(()), Reading::Head) => End::Lost(NetworkError::no_answer().into()),
            (result, Reading::Events(mut frames)) => {
                let rest = frames.finish();
                match (self.take_frames(&mut watching, rest, out), result) {
                    (Err(End::Reported(error)), _) => End::Reported(error),
                    // What is cut off with the connection is told by the connection's error.
                    (_, Err(error)) => End::Lost(error.into()),
                    (Err(End::Broken(error)), Ok(())) if is_truncated(&error) => End::Lost(error),
                    (Err(end), Ok(())) => end,
                    (Ok(()), Ok(())) => End::Clean,
                }
            }
        };
        self.ended(now, &watching, end, out);
    }

    pub(super) fn watch_timed_out(&mut self, now: Now, watching: Watching, out: &mut Outbox<WatchOutput>) {
        out.push(WatchOutput::Http(HttpEffect::Cancel { ticket: watching.ticket }));
        let end = match &watching.reading {
            Reading::Events(_) => End::Silent,
            Reading::Head => End::Lost(Error::TimedOut(now.mono.since(watching.started))),
            Reading::Refusal(answer) => End::Refused(refusal(answer, "a watch")),
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
                Frame::Failed(status) => return Err(End::Reported(Error::Api(status))),
                Frame::Broken(error) => return Err(End::Broken(error.into())),
                Frame::Faulty(faulty) => say(out, WatchEvent::Faulty(faulty)),
                Frame::Unknown(kind) => {
                    say(out, WatchEvent::Warned(format!("the watch has an event of unknown type {kind:?}").into()));
                }
                Frame::Bookmark(bookmark) => self.bookmark(watching, bookmark, out),
                Frame::Added(object) | Frame::Modified(object) if watching.phase == Phase::InitialEvents => {
                    say(out, WatchEvent::Listed(object));
                }
                Frame::Added(object) | Frame::Modified(object) => {
                    self.reach(watching, object.resource_version());
                    say(out, WatchEvent::Applied(object));
                }
                Frame::Deleted(object) => {
                    self.reach(watching, object.resource_version());
                    say(out, WatchEvent::Deleted(object));
                }
            }
        }
        Ok(())
    }

    /// Takes note of how far the watch has got. When it gets further it works, and what failed before counts no more; the
    /// same place again is no progress, or a server that stumbles there would be asked for it without end.
    fn reach(&mut self, watching: &mut Watching, version: Option<&str>) {
        let further =
            version.filter(|version| watching.is_ordered_change() && self.version.as_deref() != Some(*version));
        if let Some(version) = further {
            self.version = Some(version.into());
            watching.progressed = true;
            self.stumbles = 0;
            self.backoff.reset();
        }
    }

    fn bookmark(&mut self, watching: &mut Watching, bookmark: Bookmark, out: &mut Outbox<WatchOutput>) {
        if watching.phase == Phase::Changes {
            watching.ordered |= bookmark.resource_version.is_some();
            self.reach(watching, bookmark.resource_version.as_deref());
        } else if bookmark.ends_initial_events {
            watching.phase = Phase::Changes;
            watching.ends = watching.started + watching.timeout + MARGIN;
            watching.ordered = bookmark.resource_version.is_some();
            self.version.clone_from(&bookmark.resource_version);
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
        match (self.streaming, &end) {
            (_, End::Refused(error) | End::Reported(error)) if is_unsupported(error) => {
                self.streaming = Streaming::Unsupported;
            }
            (Streaming::Possible { incomplete }, _) if watching.granted => {
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
            End::Refused(_) | End::Reported(_) if self.streaming == Streaming::Unsupported => {
                self.begin(now, next, out);
            }
            End::Refused(error) | End::Reported(error) if error.is_expired() => self.expire(now, watching, error, out),
            End::Refused(error) | End::Reported(error) | End::Lost(error) | End::Broken(error) => {
                self.fail(now, error, next, out);
            }
            End::Clean | End::Silent => {
                self.go_on(now, watching, lost("a streaming list ended before it was complete"), next, out);
            }
        }
    }

    fn changes_ended(&mut self, now: Now, watching: &Watching, end: End, out: &mut Outbox<WatchOutput>) {
        if watching.age(now) >= HEALTHY {
            self.backoff.reset();
        }
        match end {
            End::Clean | End::Silent => {
                self.go_on(now, watching, lost("a watch ended as soon as it began"), self.resume(), out);
            }
            End::Lost(error) => self.fail(now, error, self.resume(), out),
            End::Refused(error) | End::Reported(error) if error.is_expired() => self.expire(now, watching, error, out),
            End::Refused(error) if is_passing(&error) => self.fail(now, error, self.resume(), out),
            // The type may be gone, and its objects with it.
            End::Refused(error) if error.is_permanent() => self.fail(now, error, Next::List { paged: true }, out),
            // It may come again at the same place for ever; a list passes that place.
            End::Refused(error) | End::Reported(error) | End::Broken(error) => {
                self.stumbles += 1;
                let stuck = self.stumbles >= MAX_STUMBLES;
                let next = if stuck { Next::List { paged: true } } else { self.resume() };
                self.stumbles = if stuck { 0 } else { self.stumbles };
                self.fail(now, error, next, out);
            }
        }
    }

    fn resume(&self) -> Next {
        if self.version.is_some() { Next::Watch } else { Next::List { paged: true } }
    }

    /// The server has forgotten the place. That happens, and is a failure only when it happens again before anything
    /// has worked.
    fn expire(&mut self, now: Now, watching: &Watching, error: Error, out: &mut Outbox<WatchOutput>) {
        self.version = None;
        let next = Next::List { paged: true };
        if self.backoff.failures() == 0 {
            self.backoff.fail();
            self.keep_pace(now, watching, next, out);
        } else {
            self.fail(now, error, next, out);
        }
    }

    /// What ends when it has done its part goes on at once; what ends before has failed.
    fn go_on(&mut self, now: Now, watching: &Watching, why: Error, next: Next, out: &mut Outbox<WatchOutput>) {
        if watching.progressed || watching.age(now) >= PACE {
            self.backoff.reset();
            self.keep_pace(now, watching, next, out);
        } else {
            self.fail(now, why, next, out);
        }
    }

    /// At once, though not within a second of what came before.
    fn keep_pace(&mut self, now: Now, watching: &Watching, next: Next, out: &mut Outbox<WatchOutput>) {
        let until = watching.started + PACE;
        if until <= now.mono { self.begin(now, next, out) } else { self.wait(until, next) }
    }
}

/// Whether the answer to a streaming list says that the server does not do them.
fn is_unsupported(error: &Error) -> bool {
    let reason = error.status().map_or("", |status| &status.reason);
    matches!(error.code(), Some(400 | 405 | 406 | 415 | 422 | 501))
        || matches!(reason, "BadRequest" | "Invalid" | "MethodNotAllowed" | "NotAcceptable")
}

/// Whether a refusal has to do with the server's state, or with credentials, and not with what was asked for.
fn is_passing(error: &Error) -> bool {
    !error.is_resource_version_too_large() && (!error.is_permanent() || matches!(error.code(), Some(401 | 403)))
}

fn is_truncated(error: &Error) -> bool {
    matches!(error, Error::Body(error) if error.problem == BodyProblem::Truncated)
}

fn lost(message: &str) -> Error {
    NetworkError::new(NetworkErrorKind::Lost, message).into()
}

/// How much later than asked for a server may end a watch.
const MARGIN: Duration = Duration::from_secs(15);
/// How many times longer than its silence a streaming list may last.
const STREAM_PATIENCE: u32 = 10;
/// A watch that lasts so long has worked, whether or not anything happened in it: the next failure is the first.
const HEALTHY: Duration = Duration::from_secs(10);
/// Watches begin no more often than this, and one that ends in order after it has done its part.
const PACE: Duration = Duration::from_secs(1);
/// How many streaming lists in a row may begin and not end before pages are asked for instead.
const MAX_INCOMPLETE: u32 = 2;
/// How many watches in a row may stumble at one place before a list passes it.
const MAX_STUMBLES: u32 = 3;
