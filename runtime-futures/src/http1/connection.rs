//! One connection, and the exchange on it.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Bytes, BytesMut};
use cloudcoil_core::NetworkError;
use cloudcoil_core::http1::{Part, ResponseDecoder};
use cloudcoil_tls::exchange_failure;
use futures_util::io::{AsyncRead as _, AsyncWriteExt as _};
use http::Method;

use super::Io;

pub(crate) struct Connection {
    io: Box<dyn Io>,
    decoder: ResponseDecoder,
    buffer: BytesMut,
}

impl Connection {
    pub(crate) fn new(io: Box<dyn Io>) -> Self {
        Self { io, decoder: ResponseDecoder::new(&Method::GET), buffer: BytesMut::new() }
    }

    /// Whether the server has neither closed it nor said anything that nobody asked for.
    pub(crate) fn is_quiet(&mut self) -> bool {
        let mut byte = [0];
        Pin::new(&mut self.io).poll_read(&mut Context::from_waker(Waker::noop()), &mut byte).is_pending()
    }

    pub(crate) async fn write(&mut self, bytes: &[u8], method: &Method) -> Result<(), NetworkError> {
        self.decoder = ResponseDecoder::new(method);
        self.io.write_all(bytes).await.map_err(|error| exchange_failure(&error))?;
        self.io.flush().await.map_err(|error| exchange_failure(&error))
    }

    /// The next part of the answer.
    pub(crate) async fn part(&mut self) -> Result<Part, NetworkError> {
        poll_fn(|context| self.poll_part(context)).await
    }

    fn poll_part(&mut self, context: &mut Context<'_>) -> Poll<Result<Part, NetworkError>> {
        loop {
            if let Some(part) = self.decoder.part()? {
                return Poll::Ready(Ok(part));
            }
            self.buffer.resize(READ, 0);
            let read = ready!(Pin::new(&mut self.io).poll_read(context, &mut self.buffer));
            match read.map_err(|error| exchange_failure(&error))? {
                0 => self.decoder.close(),
                length => self.decoder.receive(Bytes::copy_from_slice(&self.buffer[..length])),
            }
        }
    }
}

/// How many bytes are read at once, at the most.
const READ: usize = 16 * 1024;
