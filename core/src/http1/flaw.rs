//! What is wrong with an answer.

use crate::error::{NetworkError, NetworkErrorKind};

/// What is wrong with an answer before anybody has read what it says.
///
/// Adapters whose HTTP is somebody else's say so in these words, as [`ResponseDecoder`](super::ResponseDecoder) does: what a program prints does not
/// depend on what it runs on.
///
/// ```
/// use cloudcoil_core::http1::Flaw;
/// use cloudcoil_core::{NetworkError, NetworkErrorKind};
///
/// let error = NetworkError::from(Flaw::CutShort);
/// assert_eq!(error.kind, NetworkErrorKind::Lost);
/// assert_eq!(error.to_string(), "connection lost: the connection ended before the answer was complete");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flaw {
    /// The connection ended before the answer did.
    CutShort,
    /// The head is not one of HTTP/1, or says of the body what cannot be.
    Head,
    /// The head is longer than anybody reads.
    LongHead,
    /// The server goes over to another protocol.
    Switched,
    /// The body comes in chunks whose sizes are not sizes, or not theirs.
    Chunks,
}

impl From<Flaw> for NetworkError {
    fn from(flaw: Flaw) -> Self {
        let (kind, problem) = match flaw {
            Flaw::CutShort => (NetworkErrorKind::Lost, "the connection ended before the answer was complete"),
            Flaw::Head => (NetworkErrorKind::Protocol, "the head of the answer is not HTTP/1"),
            Flaw::LongHead => (NetworkErrorKind::Protocol, "the head of the answer is too long"),
            Flaw::Switched => (NetworkErrorKind::Protocol, "the server switches to a protocol that nobody asked for"),
            Flaw::Chunks => (NetworkErrorKind::Protocol, "the chunks of the body are malformed"),
        };
        Self::new(kind, problem)
    }
}
