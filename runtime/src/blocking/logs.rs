//! Logs that are read on threads.

use std::fmt;
use std::io;

use bytes::Bytes;
use cloudcoil_core::Error;

use super::iterators::{fallible, iterators};
use super::{Lines, Reading, StopHandle};

/// A log, or the body of an answer, as it comes in, which can be [read](io::Read) too; see [`Logs::bytes`](super::Logs::bytes) and
/// [`Client::stream`](super::Client::stream).
#[must_use = "iterators do nothing unless advanced"]
pub struct LogBytes {
    source: Reading,
    /// Of the last piece, for those who read.
    unread: Bytes,
}

impl LogBytes {
    pub(crate) const fn new(source: Reading) -> Self {
        Self { source, unread: Bytes::new() }
    }

    /// Ends the log from another thread, however it is blocked.
    pub fn stop_handle(&self) -> StopHandle {
        stop_handle(&self.source)
    }
}

impl Iterator for LogBytes {
    type Item = Result<Bytes, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.source.next()
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

impl fmt::Debug for LogBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogBytes")
    }
}

iterators! {
    /// The lines of a log; see [`Logs::lines`](super::Logs::lines).
    LogText [] Lines => Result<String, Error>;
}

fallible! {
    LogBytes [] => Bytes;
    LogText [] => String;
}

impl LogText {
    /// Ends the log from another thread, however it is blocked.
    pub fn stop_handle(&self) -> StopHandle {
        stop_handle(&self.0.bytes)
    }
}

fn stop_handle(source: &Reading) -> StopHandle {
    source.events.as_ref().map_or_else(StopHandle::of_nothing, |events| events.stop_handle())
}
