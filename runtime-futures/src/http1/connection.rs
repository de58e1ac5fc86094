//! One connection, and the exchange on it.

use std::future::poll_fn;
use std::io::ErrorKind;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf as _, Bytes, BytesMut};
use cloudcoil_core::http1::{Part, ResponseDecoder};
use cloudcoil_core::{NetworkError, NetworkErrorKind};
use cloudcoil_tls::exchange_failure;
use futures_util::io::{AsyncRead as _, AsyncWrite as _};
use http::Method;

use super::Io;

pub(crate) struct Connection {
    io: Box<dyn Io>,
    decoder: ResponseDecoder,
    buffer: BytesMut,
    sending: Sending,
}

enum Sending {
    Bytes(Bytes),
    Done,
    Failed(NetworkError),
}

impl Connection {
    pub(crate) fn new(io: Box<dyn Io>) -> Self {
        Self { io, decoder: ResponseDecoder::new(&Method::GET), buffer: BytesMut::new(), sending: Sending::Done }
    }

    /// Whether the server has neither closed it nor said anything that nobody asked for.
    pub(crate) fn is_quiet(&mut self) -> bool {
        let mut byte = [0];
        Pin::new(&mut self.io).poll_read(&mut Context::from_waker(Waker::noop()), &mut byte).is_pending()
    }

    /// Begins an exchange; reading its answer sends the request. A server may answer before it has read everything.
    pub(crate) fn ask(&mut self, request: Bytes, method: &Method) {
        self.decoder = ResponseDecoder::new(method);
        self.sending = Sending::Bytes(request);
    }

    /// The next part of the answer.
    pub(crate) async fn part(&mut self) -> Result<Part, NetworkError> {
        poll_fn(|context| self.poll_part(context)).await
    }

    fn poll_part(&mut self, context: &mut Context<'_>) -> Poll<Result<Part, NetworkError>> {
        self.send(context);
        loop {
            match self.decoder.part() {
                Ok(None) => {}
                Ok(Some(Part::End { reusable })) => {
                    let reusable = reusable && matches!(self.sending, Sending::Done);
                    return Poll::Ready(Ok(Part::End { reusable }));
                }
                Ok(Some(part)) => return Poll::Ready(Ok(part)),
                Err(error) => return Poll::Ready(Err(self.blame(error))),
            }
            self.buffer.resize(READ, 0);
            match ready!(Pin::new(&mut self.io).poll_read(context, &mut self.buffer)) {
                Ok(0) => self.decoder.close(),
                Ok(length) => self.decoder.receive(Bytes::copy_from_slice(&self.buffer[..length])),
                Err(error) => return Poll::Ready(Err(self.blame(exchange_failure(&error)))),
            }
        }
    }

    /// Sends as much as can be sent now.
    fn send(&mut self, context: &mut Context<'_>) {
        while let Sending::Bytes(rest) = &mut self.sending {
            let io = Pin::new(&mut self.io);
            let sent = match rest.is_empty() {
                true => io.poll_flush(context).map_ok(|()| None),
                false => io.poll_write(context, rest).map_ok(Some),
            };
            match sent {
                Poll::Pending => return,
                Poll::Ready(Ok(None)) => self.sending = Sending::Done,
                Poll::Ready(Ok(Some(length))) if length > 0 => rest.advance(length),
                Poll::Ready(Ok(_)) => self.sending = Sending::Failed(exchange_failure(&ErrorKind::WriteZero.into())),
                Poll::Ready(Err(error)) => self.sending = Sending::Failed(exchange_failure(&error)),
            }
        }
    }

    /// What keeps the answer from being read: that sending has failed, unless the server has said why.
    fn blame(&self, error: NetworkError) -> NetworkError {
        match &self.sending {
            Sending::Failed(unsent) if error.kind != NetworkErrorKind::Tls => unsent.clone(),
            _ => error,
        }
    }
}

/// How many bytes are read at once, at the most.
const READ: usize = 16 * 1024;
