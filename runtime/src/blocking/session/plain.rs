//! Compressed bodies, made plain as they are read.

use std::sync::Arc;

use bytes::Bytes;
use cloudcoil_core::{Gunzip, NetworkError, Target};

use crate::blocking::Body;

/// The body as machines are to see it: plain, and with failures that name the server.
pub(crate) fn body(body: Body, gunzip: Option<Gunzip>, target: Arc<Target>) -> Body {
    let body = match gunzip {
        Some(gunzip) => Box::new(Plain { compressed: Some(body), gunzip }),
        None => body,
    };
    Box::new(body.map(move |piece| piece.map_err(|error| target.blame(error))))
}

struct Plain {
    /// Gone when it has ended or failed.
    compressed: Option<Body>,
    gunzip: Gunzip,
}

impl Plain {
    fn plain(&mut self) -> Result<Option<Bytes>, NetworkError> {
        loop {
            if let Some(plain) = self.gunzip.pull()? {
                return Ok(Some(plain));
            }
            let Some(compressed) = &mut self.compressed else { return Ok(None) };
            match compressed.next() {
                Some(bytes) => self.gunzip.push(bytes?),
                None => {
                    self.compressed = None;
                    self.gunzip.finish()?;
                }
            }
        }
    }
}

impl Iterator for Plain {
    type Item = Result<Bytes, NetworkError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.plain().transpose();
        if let Some(Err(_)) = next {
            self.compressed = None;
            self.gunzip = Gunzip::new();
        }
        next
    }
}
