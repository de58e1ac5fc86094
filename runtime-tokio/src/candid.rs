//! Connections on which TLS has the last word.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use cloudcoil_tls::refusal;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::client::TlsStream;

/// A connection over TLS that says why it fails.
///
/// In TLS 1.3 a server looks at a client's certificate when the client is done with the handshake, and closes the connection when it has
/// said what it thinks of it. hyper hears that before it has been given a request to fail, or not at all, when it was sending.
pub(crate) struct Candid<S> {
    tls: TlsStream<S>,
    /// Nothing has been sent yet.
    is_fresh: bool,
    /// What was said before anything was sent: kept for whoever sends.
    said: Option<io::Error>,
    /// Sending has failed. What was said before comes in a moment, or the end.
    broken: Option<io::Error>,
}

type Write<'a, S> = &'a mut dyn FnMut(Pin<&mut TlsStream<S>>, &mut Context<'_>) -> Poll<io::Result<usize>>;

impl<S: AsyncRead + AsyncWrite + Unpin> Candid<S> {
    pub(crate) const fn new(tls: TlsStream<S>) -> Self {
        Self { tls, is_fresh: true, said: None, broken: None }
    }

    fn poll_send(&mut self, context: &mut Context<'_>, write: Write<'_, S>) -> Poll<io::Result<usize>> {
        self.is_fresh = false;
        if let Some(said) = self.said.take() {
            return Poll::Ready(Err(said));
        }
        if self.broken.is_none() {
            match ready!(write(Pin::new(&mut self.tls), context)) {
                Ok(length) => return Poll::Ready(Ok(length)),
                Err(broken) => self.broken = Some(broken),
            }
        }
        self.poll_cause(context).map(Err)
    }

    /// Why the connection has broken: what the server has said last, if it has.
    fn poll_cause(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let mut byte = [0];
        let read = ready!(Pin::new(&mut self.tls).poll_read(context, &mut ReadBuf::new(&mut byte)));
        let broken = self.broken.take().unwrap_or_else(|| io::ErrorKind::BrokenPipe.into());
        Poll::Ready(read.err().filter(|said| refusal(said).is_some()).unwrap_or(broken))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Candid<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.said.is_none() {
            match ready!(Pin::new(&mut self.tls).poll_read(context, buffer)) {
                Err(error) if self.is_fresh && refusal(&error).is_some() => self.said = Some(error),
                read => return Poll::Ready(read),
            }
        }
        Poll::Pending
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Candid<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_send(context, &mut |tls, context| tls.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(context, &mut |tls, context| tls.poll_write_vectored(context, slices))
    }

    fn is_write_vectored(&self) -> bool {
        self.tls.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.broken.is_none() {
            match ready!(Pin::new(&mut self.tls).poll_flush(context)) {
                Ok(()) => return Poll::Ready(Ok(())),
                Err(error) if self.is_fresh && refusal(&error).is_some() => {
                    self.said = Some(error);
                    return Poll::Ready(Ok(()));
                }
                Err(broken) => self.broken = Some(broken),
            }
        }
        self.poll_cause(context).map(Err)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tls).poll_shutdown(context)
    }
}
