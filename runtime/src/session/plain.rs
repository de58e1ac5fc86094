//! Compressed bodies, made plain as they are read.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use cloudcoil_core::{Gunzip, NetworkError};
use futures_util::{Stream, StreamExt as _};

use crate::Body;

/// The plain body.
pub(crate) fn body(compressed: Body, gunzip: Gunzip) -> Body {
    Box::pin(Plain { compressed: Some(compressed), gunzip })
}

struct Plain {
    /// Gone when it has ended or failed, and with it the exchange.
    compressed: Option<Body>,
    gunzip: Gunzip,
}

impl Plain {
    fn poll_plain(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, NetworkError>> {
        loop {
            if let Some(plain) = self.gunzip.pull()? {
                return Poll::Ready(Ok(Some(plain)));
            }
            let Some(compressed) = &mut self.compressed else { return Poll::Ready(Ok(None)) };
            match ready!(compressed.poll_next_unpin(context)) {
                Some(bytes) => self.gunzip.push(bytes?),
                None => {
                    self.compressed = None;
                    self.gunzip.finish()?;
                }
            }
        }
    }
}

impl Stream for Plain {
    type Item = Result<Bytes, NetworkError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = ready!(self.poll_plain(context)).transpose();
        if let Some(Err(_)) = polled {
            self.compressed = None;
            self.gunzip = Gunzip::new();
        }
        Poll::Ready(polled)
    }
}
