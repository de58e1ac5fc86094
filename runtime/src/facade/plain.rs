//! Bodies as machines are to see them.

use std::sync::Arc;

use bytes::Bytes;
use cloudcoil_core::{Gunzip, NetworkError, Target};

use super::world::session::Pieces as _;
use super::world::{Body, dual};

/// A body that is plain, and with failures that name the server.
pub(crate) struct Plain {
    /// Gone when it has ended or failed, and with it the exchange.
    pub(super) body: Option<Body>,
    pub(super) gunzip: Option<Gunzip>,
    pub(super) target: Arc<Target>,
}

impl Plain {
    /// The next piece. Can be dropped while it waits: nothing is lost.
    #[dual]
    pub(crate) async fn next(&mut self) -> Option<Result<Bytes, NetworkError>> {
        let next = self.piece().await.transpose()?;
        if next.is_err() {
            (self.body, self.gunzip) = (None, None);
        }
        Some(next.map_err(|error| self.target.blame(error)))
    }

    #[dual]
    async fn piece(&mut self) -> Result<Option<Bytes>, NetworkError> {
        loop {
            if let Some(gunzip) = &mut self.gunzip
                && let Some(plain) = gunzip.pull()?
            {
                return Ok(Some(plain));
            }
            let Some(body) = &mut self.body else { return Ok(None) };
            match (body.next().await.transpose()?, &mut self.gunzip) {
                (Some(bytes), Some(gunzip)) => gunzip.push(bytes),
                (Some(bytes), None) => return Ok(Some(bytes)),
                (None, gunzip) => {
                    self.body = None;
                    gunzip.as_ref().map_or(Ok(()), Gunzip::finish)?;
                }
            }
        }
    }
}
