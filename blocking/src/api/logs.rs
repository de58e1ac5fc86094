//! The logs of containers.

use std::collections::VecDeque;
use std::io;

use bytes::Bytes;
use cloudcoil_core::{
    Answer, Error, LogEvent, LogLines, LogParams, LogSource, LogStream, Requests, Resource, Tickets, UnixTime,
};

use crate::driver::{Driver, Mailbox, Turn};
use crate::group::Member;
use crate::stop::{Stop, StopHandle};
use crate::{Api, Client};

impl<K: Resource> Api<K> {
    /// Reads what a container of a pod has written: [whole](Logs::send), line by line, or in bytes.
    ///
    /// ```no_run
    /// use cloudcoil_blocking::{Client, Error};
    /// use cloudcoil_blocking::core::k8s_openapi::api::core::v1::Pod;
    ///
    /// fn follow(client: &Client) -> Result<(), Error> {
    ///     for line in client.api::<Pod>().logs("web-0").container("app").tail_lines(10).follow().lines() {
    ///         println!("{}", line?);
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn logs(&self, name: &str) -> Logs {
        let (client, requests) = (self.client.clone(), self.requests.clone());
        Logs { client, requests, name: name.to_owned(), params: LogParams::default() }
    }
}

/// A log to be read: [`send`](Logs::send) for it whole, or read its [`lines`](Logs::lines) or [`bytes`](Logs::bytes).
#[derive(Debug)]
#[must_use = "call `send`, `lines` or `bytes`"]
pub struct Logs {
    client: Client,
    requests: Requests,
    name: String,
    params: LogParams,
}

impl Logs {
    /// Which container; may be left out where there is but one.
    pub fn container(mut self, name: impl Into<String>) -> Self {
        self.params.container = Some(name.into());
        self
    }

    /// Also what is written from now on, until the container ends. Such a log has no time limit.
    pub fn follow(mut self) -> Self {
        self.params.follow = true;
        self
    }

    /// Of the container's last run before this one.
    pub fn previous(mut self) -> Self {
        self.params.previous = true;
        self
    }

    /// Each line begins with its time, in RFC 3339, and a blank.
    pub fn timestamps(mut self) -> Self {
        self.params.timestamps = true;
        self
    }

    /// Only the last lines.
    pub fn tail_lines(mut self, lines: u64) -> Self {
        self.params.tail_lines = Some(lines);
        self
    }

    /// Only what was written in the last seconds, of which there is one at the least; excludes [`since_time`](Self::since_time).
    pub fn since_seconds(mut self, seconds: u64) -> Self {
        self.params.since_seconds = Some(seconds);
        self
    }

    /// Only what was written from this time on, in whole seconds; excludes [`since_seconds`](Self::since_seconds).
    pub fn since_time(mut self, time: UnixTime) -> Self {
        self.params.since_time = Some(time);
        self
    }

    /// The most bytes that the server sends, of which there is one at the least.
    pub fn limit_bytes(mut self, bytes: u64) -> Self {
        self.params.limit_bytes = Some(bytes);
        self
    }

    /// Which of the container's outputs; both unless told otherwise. Not every server can tell them apart.
    pub fn source(mut self, source: LogSource) -> Self {
        self.params.source = Some(source);
        self
    }

    /// Has the server ask a node even if it cannot prove who it is.
    pub fn insecure_skip_tls_verify_backend(mut self) -> Self {
        self.params.insecure_skip_tls_verify_backend = true;
        self
    }

    /// The log as it comes in, in pieces cut anywhere; it can be [read](std::io::Read) too.
    ///
    /// The first item is an error when there is no log to be had, as every verb's. The connection is read as pieces are asked
    /// for, and closed when this is dropped.
    pub fn bytes(self) -> LogBytes {
        self.open(None)
    }

    /// The log line by line, without the ends of the lines. What is no UTF-8 is replaced; a line of more than
    /// [`LogLines::LIMIT`] bytes comes in pieces.
    pub fn lines(self) -> LogText {
        LogText { bytes: self.bytes(), lines: LogLines::new(), ready: VecDeque::new(), end: None }
    }

    /// The whole log. Bytes that are no UTF-8 are replaced. One that is followed comes when the container has ended.
    ///
    /// # Errors
    /// As [`Get::send`](super::Get::send).
    pub fn send(self) -> Result<String, Error> {
        let pieces: Result<Vec<Bytes>, Error> = self.open(Some(Answer::LIMIT)).collect();
        let text = pieces?.concat();
        Ok(String::from_utf8(text).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    fn open(self, limit: Option<usize>) -> LogBytes {
        let Self { client, requests, name, params } = self;
        let timeout = client.timeout().filter(|_| !params.follow);
        let mailbox = Mailbox::new();
        let stop = StopHandle::new(mailbox.commands());
        let given_up = stop.clone();
        let member = client.member(move || given_up.stop());
        let state = match requests.log(&name, &params) {
            Ok(request) => {
                let machine = LogStream::new(request.into(), Tickets::new(0)).timeout(timeout);
                let machine = match limit {
                    Some(limit) => machine.limit(limit),
                    None => machine,
                };
                State::Reading(Box::new(Driver::new(machine, &client, mailbox)))
            }
            Err(error) => State::Refused(error),
        };
        LogBytes { state, stop, unread: Bytes::new(), _member: member }
    }
}

/// A log as it comes in; see [`Logs::bytes`].
#[must_use = "iterators do nothing unless advanced"]
pub struct LogBytes {
    state: State,
    stop: StopHandle,
    /// Of the last piece, for those who read.
    unread: Bytes,
    _member: Option<Member>,
}

enum State {
    Refused(Error),
    Reading(Box<Driver<LogStream, Stop>>),
    Ended,
}

impl LogBytes {
    /// Ends the log from another thread, however it is blocked.
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }
}

impl Iterator for LogBytes {
    type Item = Result<Bytes, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let end = match std::mem::replace(&mut self.state, State::Ended) {
            State::Refused(error) => Some(error),
            State::Reading(mut driver) => match driver.turn() {
                Turn::Event(LogEvent::Received(bytes)) => {
                    self.state = State::Reading(driver);
                    return Some(Ok(bytes));
                }
                Turn::Event(LogEvent::Ended(result)) => result.err(),
                Turn::Command(Stop) => None,
            },
            State::Ended => None,
        };
        end.map(Err)
    }
}

/// An error of the log is one of the reading, with the [`Error`] inside.
impl io::Read for LogBytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.unread.is_empty() {
            match self.next() {
                Some(Ok(bytes)) => self.unread = bytes,
                Some(Err(error)) => return Err(io::Error::other(error)),
                None => return Ok(0),
            }
        }
        let length = buffer.len().min(self.unread.len());
        buffer[..length].copy_from_slice(&self.unread.split_to(length));
        Ok(length)
    }
}

impl std::fmt::Debug for LogBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LogBytes")
    }
}

/// The lines of a log; see [`Logs::lines`].
#[must_use = "iterators do nothing unless advanced"]
#[derive(Debug)]
pub struct LogText {
    bytes: LogBytes,
    lines: LogLines,
    ready: VecDeque<String>,
    /// Why there are no more lines than are ready.
    end: Option<Result<(), Error>>,
}

impl LogText {
    /// Ends the log from another thread, however it is blocked.
    pub fn stop_handle(&self) -> StopHandle {
        self.bytes.stop_handle()
    }
}

impl Iterator for LogText {
    type Item = Result<String, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Some(Ok(line));
            }
            if let Some(end) = &mut self.end {
                return std::mem::replace(end, Ok(())).err().map(Err);
            }
            match self.bytes.next() {
                Some(Ok(bytes)) => self.ready.extend(self.lines.push(&bytes)),
                ended => {
                    self.ready.extend(self.lines.finish());
                    self.end = Some(ended.map_or(Ok(()), |result| result.map(|_| ())));
                }
            }
        }
    }
}
