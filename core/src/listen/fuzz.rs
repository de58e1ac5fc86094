//! The body of a fuzz target: bytes in any chunking are the same requests, and get the same answers.

use bytes::Bytes;
use http::Response;

use super::{ListenLimits, ServerConnection, ServerInput, ServerOutput};
use crate::exchange::HttpRequest;
use crate::machine::{Machine as _, Outbox};
use crate::time::Now;

/// Serves a connection whole and in pieces, whose length the first byte gives.
///
/// # Panics
/// When the pieces are other requests than the whole, or get other answers.
pub fn http1_request(data: &[u8]) {
    let Some((size, stream)) = data.split_first() else { return };
    let limits = ListenLimits { head: 512, body: 256, ..ListenLimits::default() };
    let whole = serve(limits, [stream]);
    assert_eq!(whole, serve(limits, stream.chunks(1 + usize::from(*size))));
    for request in whole.requests.iter().map(HttpRequest::inner) {
        assert!(request.body().len() <= limits.body && request.uri().host().is_none(), "{request:?}");
    }
}

/// What came of a connection.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Served {
    pub(super) requests: Vec<HttpRequest>,
    pub(super) sent: Vec<u8>,
    /// Nothing more is sent.
    pub(super) is_finished: bool,
    pub(super) is_closed: bool,
}

/// Serves a connection on which these pieces come, in no time at all; each request is answered by its own body.
pub(super) fn serve<'a>(limits: ListenLimits, pieces: impl IntoIterator<Item = &'a [u8]>) -> Served {
    let (mut connection, mut out, mut served) = (ServerConnection::new(limits), Outbox::new(), Served::default());
    let mut pieces = pieces.into_iter().filter(|piece| !piece.is_empty());
    let mut input = None;
    loop {
        let _ = connection.step(Now::default(), input.take(), &mut out);
        input = match out.pop().expect("something is always under way") {
            ServerOutput::Receive { ticket } => {
                let Some(piece) = pieces.next() else { return served };
                Some(ServerInput::Received { ticket, bytes: Bytes::copy_from_slice(piece) })
            }
            ServerOutput::Send { ticket, bytes } => {
                served.sent.extend_from_slice(&bytes);
                Some(ServerInput::Sent { ticket })
            }
            ServerOutput::Handle { ticket, request } => {
                let response = Response::new(request.inner().body().clone());
                served.requests.push(request);
                Some(ServerInput::Answered { ticket, response })
            }
            ServerOutput::Finish { ticket } => {
                served.is_finished = true;
                Some(ServerInput::Sent { ticket })
            }
            ServerOutput::Close => {
                served.is_closed = true;
                return served;
            }
        };
        assert!(out.is_empty(), "one effect at a time");
    }
}
