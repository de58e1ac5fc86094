//! The logs of containers.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use cloudcoil_core::{
    Answer, Error, LogEvent, LogLines, LogParams, LogSource, LogStream, Requests, Resource, Tickets, UnixTime,
};
use futures_util::stream::{Stream, StreamExt as _};
use http::Request;

use crate::driver::Driver;
use crate::{Api, Client};

impl<K: Resource> Api<K> {
    /// Reads what a container of a pod has written: whole when awaited, line by line, or as a stream of bytes.
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
        LogBytes(State::Reading(Box::new(Driver::new(machine, self.port()))))
    }
}

/// A log to be read: [`await`](IntoFuture) it whole, or read its [`lines`](Logs::lines) or [`bytes`](Logs::bytes).
#[derive(Debug)]
#[must_use = "await it, or call `lines` or `bytes`"]
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

    /// The log as it comes in, in pieces cut anywhere.
    ///
    /// The first item is an error when there is no log to be had, as every verb's. The connection is read as the stream is
    /// polled, and closed when it is dropped.
    pub fn bytes(self) -> LogBytes {
        self.open(None)
    }

    /// The log line by line, without the ends of the lines. What is no UTF-8 is replaced; a line of more than
    /// [`LogLines::LIMIT`] bytes comes in pieces.
    pub fn lines(self) -> LogText {
        LogText { bytes: self.bytes(), lines: LogLines::new(), ready: VecDeque::new(), end: None }
    }

    /// The whole log; awaiting the builder does the same. Bytes that are no UTF-8 are replaced. One that is followed comes when the
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

    fn open(self, limit: Option<usize>) -> LogBytes {
        let Self { client, requests, name, params } = self;
        let timeout = client.timeout().filter(|_| !params.follow);
        LogBytes(match requests.log(&name, &params) {
            Ok(request) => {
                let machine = LogStream::new(request.into(), Tickets::new(0)).timeout(timeout);
                let machine = match limit {
                    Some(limit) => machine.limit(limit),
                    None => machine,
                };
                State::Reading(Box::new(Driver::new(machine, client.port())))
            }
            Err(error) => State::Refused(Some(error)),
        })
    }
}

/// A log, or the body of an answer, as it comes in; see [`Logs::bytes`] and [`Client::stream`].
#[must_use = "streams do nothing unless polled"]
pub struct LogBytes(State);

enum State {
    Refused(Option<Error>),
    Reading(Box<Driver<LogStream>>),
    Ended,
}

impl Stream for LogBytes {
    type Item = Result<Bytes, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let end = match &mut self.0 {
            State::Refused(error) => error.take(),
            State::Reading(driver) => match ready!(driver.poll_event(context)) {
                LogEvent::Received(bytes) => return Poll::Ready(Some(Ok(bytes))),
                LogEvent::Ended(result) => result.err(),
            },
            State::Ended => None,
        };
        self.0 = State::Ended;
        Poll::Ready(end.map(Err))
    }
}

impl std::fmt::Debug for LogBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LogBytes")
    }
}

/// The lines of a log; see [`Logs::lines`].
#[must_use = "streams do nothing unless polled"]
#[derive(Debug)]
pub struct LogText {
    bytes: LogBytes,
    lines: LogLines,
    ready: VecDeque<String>,
    /// Why there are no more lines than are ready.
    end: Option<Result<(), Error>>,
}

impl Stream for LogText {
    type Item = Result<String, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(line) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(line)));
            }
            if let Some(end) = &mut this.end {
                return Poll::Ready(std::mem::replace(end, Ok(())).err().map(Err));
            }
            match ready!(this.bytes.poll_next_unpin(context)) {
                Some(Ok(bytes)) => this.ready.extend(this.lines.push(&bytes)),
                ended => {
                    this.ready.extend(this.lines.finish());
                    this.end = Some(ended.map_or(Ok(()), |result| result.map(|_| ())));
                }
            }
        }
    }
}
