//! Connections on which servers are heard to the end.

use std::io::{self, ErrorKind, IoSlice};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A connection that is read when nothing can be sent any more.
///
/// A server that refuses a request before it has read all of it may close at once, and what it said is still to be read. hyper gives up
/// a connection on which sending fails. So what cannot be sent goes nowhere, and that is told where reading ends.
pub(crate) struct Heard {
    stream: Arc<TcpStream>,
    /// Why nothing can be sent any more.
    unsent: Option<io::Error>,
}

/// Tells whether a connection that nobody uses is as it was left.
pub(crate) struct Ear(Weak<TcpStream>);

impl Ear {
    /// Whether the connection is open and its server says nothing: what it says without being asked is goodbye. hyper may be about to
    /// hear that, so the system is asked.
    pub(crate) fn is_quiet(&self) -> bool {
        let Some(stream) = self.0.upgrade() else { return false };
        let heard = SockRef::from(&*stream).peek(&mut [MaybeUninit::uninit()]);
        heard.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }
}

impl Heard {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream: Arc::new(stream), unsent: None }
    }

    pub(crate) fn ear(&self) -> Ear {
        Ear(Arc::downgrade(&self.stream))
    }

    fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        length: usize,
        send: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};

        loop {
            ready!(self.stream.poll_write_ready(context))?;
            match send(&self.stream) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset) => {
                    self.unsent.get_or_insert(error);
                    return Poll::Ready(Ok(length));
                }
                sent => return Poll::Ready(sent),
            }
        }
    }
}

impl AsyncRead for Heard {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.stream.poll_read_ready(context))?;
            match self.stream.try_read_buf(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Ok(0) => return Poll::Ready(self.unsent.take().map_or(Ok(()), Err)),
                read => return Poll::Ready(read.map(drop)),
            }
        }
    }
}

impl AsyncWrite for Heard {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_send(context, bytes.len(), |stream| stream.try_write(bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = slices.iter().map(|slice| slice.len()).sum();
        self.poll_send(context, length, |stream| stream.try_write_vectored(slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(SockRef::from(&*self.stream).shutdown(Shutdown::Write))
    }
}
