//! Compressed bodies, made plain as they are read.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use cloudcoil_core::{Gunzip, NetworkError, Target};
use futures_util::{Stream, StreamExt as _, TryStreamExt as _};

use crate::Body;

/// The body as machines are to see it: plain, and with failures that name the server.
pub(crate) fn body(body: Body, gunzip: Option<Gunzip>, target: Arc<Target>) -> Body {
    let body = match gunzip {
        Some(gunzip) => Box::pin(Plain { compressed: Some(body), gunzip }),
        None => body,
    };
    Box::pin(body.map_err(move |error| target.blame(error)))
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
