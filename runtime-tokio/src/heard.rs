//! Connections on which servers are heard to the end.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection that is read when nothing can be sent any more.
///
/// A server that refuses a request before it has read all of it may close at once, and what it said is still to be read. hyper gives up
/// a connection on which sending fails. So what cannot be sent goes nowhere, and that is told where reading ends.
pub(crate) struct Heard<S> {
    stream: S,
    /// Why nothing can be sent any more.
    unsent: Option<io::Error>,
}

impl<S> Heard<S> {
    pub(crate) const fn new(stream: S) -> Self {
        Self { stream, unsent: None }
    }

    fn sent(&mut self, sent: io::Result<usize>, length: usize) -> io::Result<usize> {
        use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};

        sent.or_else(|error| match error.kind() {
            BrokenPipe | ConnectionAborted | ConnectionReset => {
                self.unsent.get_or_insert(error);
                Ok(length)
            }
            _ => Err(error),
        })
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Heard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let is_end = buffer.filled().len() == before;
        Poll::Ready(self.unsent.take_if(|_| is_end).map_or(Ok(()), Err))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Heard<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let sent = ready!(Pin::new(&mut self.stream).poll_write(context, bytes));
        Poll::Ready(self.sent(sent, bytes.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let sent = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, slices));
        Poll::Ready(self.sent(sent, slices.iter().map(|slice| slice.len()).sum()))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
