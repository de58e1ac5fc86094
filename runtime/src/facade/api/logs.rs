//! The logs of containers.

use std::collections::VecDeque;
use std::mem;

use bytes::Bytes;
use cloudcoil_core::{
    Answer, Error, LogEvent, LogLines, LogParams, LogSource, LogStream, Requests, Resource, Tickets, UnixTime,
};
use http::Request;

use super::world::driver::Events;
use super::world::{LogBytes, LogText};
use super::{Api, Client, dual};

#[dual]
impl<K: Resource> Api<K> {
    /// Reads what a container of a pod has written: [whole](Logs::send), [line](Logs::lines) by line, or in [bytes](Logs::bytes).
    ///
    /// ```no_run
    /// use cloudcoil_runtime::{Client, Error};
    /// use cloudcoil_core::k8s_openapi::api::core::v1::Pod;
    /// use futures_util::TryStreamExt;
    ///
    /// async fn follow(client: Client) -> Result<(), Error> {
    ///     let mut lines = client.api::<Pod>().logs("web-0").container("app").tail_lines(10).follow().lines();
    ///     while let Some(line) = lines.try_next().await? {
    ///         println!("{line}");
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn logs(&self, name: &str) -> Logs {
        let (client, requests) = (self.client.clone(), self.requests.clone());
        Logs { client, requests, name: name.to_owned(), params: LogParams::default() }
    }
}

impl Client {
    /// Sends any request, and hands on the body of its answer as it comes in, in pieces cut anywhere: for what may go on without
    /// end and has no verb of its own. Its URI is a path and query; it has no time limit, and is not sent again.
    ///
    /// The first item is an error when the answer is none, as every verb's.
    pub fn stream(&self, request: Request<Bytes>) -> LogBytes {
        let machine = LogStream::new(request.into(), Tickets::new(0)).timeout(None);
        LogBytes::new(Reading { refusal: None, events: Some(Events::new(self, machine)) })
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

#[dual]
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

    /// The log as it comes in, in pieces cut anywhere.
    ///
    /// The first item is an error when there is no log to be had, as every verb's. The connection is read as
    /// pieces are asked for, and closed when the stream is dropped.
    pub fn bytes(self) -> LogBytes {
        LogBytes::new(self.open(None))
    }

    /// The log line by line, without the ends of the lines. What is no UTF-8 is replaced; a line of more than
    /// [`LogLines::LIMIT`] bytes comes in pieces.
    pub fn lines(self) -> LogText {
        let bytes = self.open(None);
        LogText::new(Lines { bytes, lines: LogLines::new(), ready: VecDeque::new(), end: None })
    }

    /// The whole log. Bytes that are no UTF-8 are replaced. One that is followed comes when the
    /// container has ended.
    ///
    /// # Errors
    /// As [`Api::get`].
    pub async fn send(self) -> Result<String, Error> {
        let mut bytes = self.open(Some(Answer::LIMIT));
        let mut text = Vec::new();
        while let Some(piece) = bytes.next().await {
            text.extend_from_slice(&piece?);
        }
        Ok(String::from_utf8(text).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    fn open(self, limit: Option<usize>) -> Reading {
        let Self { client, requests, name, params } = self;
        let timeout = client.timeout().filter(|_| !params.follow);
        match requests.log(&name, &params) {
            Ok(request) => {
                let machine = LogStream::new(request.into(), Tickets::new(0)).timeout(timeout);
                let machine = match limit {
                    Some(limit) => machine.limit(limit),
                    None => machine,
                };
                Reading { refusal: None, events: Some(Events::new(&client, machine)) }
            }
            Err(error) => Reading { refusal: Some(error), events: None },
        }
    }
}

/// A log, or the body of an answer, as it comes in.
pub(crate) struct Reading {
    /// Why there is nothing to be read, until it was told.
    refusal: Option<Error>,
    pub(crate) events: Option<Events<LogStream>>,
}

#[dual]
impl Reading {
    pub(crate) async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        if let Some(error) = self.refusal.take() {
            return Some(Err(error));
        }
        let events = self.events.as_mut()?;
        match events.next().await? {
            LogEvent::Received(bytes) => Some(Ok(bytes)),
            LogEvent::Ended(result) => {
                events.end();
                result.err().map(Err)
            }
        }
    }
}

/// The lines of a log.
pub(crate) struct Lines {
    pub(crate) bytes: Reading,
    lines: LogLines,
    ready: VecDeque<String>,
    /// Why there are no more lines than are ready.
    end: Option<Result<(), Error>>,
}

#[dual]
impl Lines {
    pub(crate) async fn next(&mut self) -> Option<Result<String, Error>> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Some(Ok(line));
            }
            if let Some(end) = &mut self.end {
                return mem::replace(end, Ok(())).err().map(Err);
            }
            match self.bytes.next().await {
                Some(Ok(bytes)) => self.ready.extend(self.lines.push(&bytes)),
                ended => {
                    self.ready.extend(self.lines.finish());
                    self.end = Some(ended.map_or(Ok(()), |result| result.map(|_| ())));
                }
            }
        }
    }
}
