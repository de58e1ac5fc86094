//! What a scripted server answers.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

/// One answer, as it is to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) framing: Framing,
    /// The body, in the pieces in which it is sent: chunks, if it is chunked.
    pub(crate) pieces: Vec<Bytes>,
    /// How long the whole body is, if not as long as the pieces.
    pub(crate) length: Option<usize>,
    /// How long the server waits before each piece.
    pub(crate) pause: Duration,
    pub(crate) then: Then,
}

/// How a client learns where the body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length,
    Chunked,
    UntilClose,
    /// The pieces are all there is: head, body and everything. Over sockets alone.
    Raw,
}

/// What happens after the last piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// The body ends as its framing says it, and the connection stays open for the next request.
    End,
    /// The server closes the connection, and says no more.
    Close,
    /// The server ends the connection in order, also in the eyes of TLS: what ends with its connection is whole.
    Finish,
    /// The server resets the connection.
    Reset,
    /// The server says no more, and the connection stays open.
    Silence,
    /// The server says that it has not looked at the request. In virtual time alone: HTTP/1.1 has no words for it.
    Refuse,
}

impl Answer {
    pub(crate) fn new(status: u16, content_type: &str, body: impl Into<Bytes>) -> Self {
        Self {
            status,
            headers: vec![("content-type".into(), content_type.into())],
            framing: Framing::Length,
            pieces: vec![body.into()],
            length: None,
            pause: Duration::ZERO,
            then: Then::End,
        }
    }

    /// A success.
    pub(crate) fn json(body: &Value) -> Self {
        Self::new(200, "application/json", body.to_string())
    }

    /// The API server's refusal.
    pub(crate) fn refusal(code: u16, reason: &str, message: &str) -> Self {
        Self { status: code, ..Self::json(&refusal(code, reason, message)) }
    }

    /// A list of that version; of the items' kind with `List` behind it.
    pub(crate) fn list(version: &str, items: &[Value]) -> Self {
        Self::page(version, items, "")
    }

    /// A page of a list, with the token of the next.
    pub(crate) fn page(version: &str, items: &[Value], token: &str) -> Self {
        let metadata = json!({"resourceVersion": version, "continue": token});
        Self::json(&json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": items}))
    }

    /// A watch that says these events, line by line, and stays open.
    pub(crate) fn watch(events: &[Value]) -> Self {
        let pieces = events.iter().map(|event| Bytes::from(format!("{event}\n"))).collect();
        Self { framing: Framing::Chunked, pieces, then: Then::Silence, ..Self::json(&Value::Null) }
    }

    /// These bytes instead of HTTP.
    pub(crate) fn raw(pieces: impl IntoIterator<Item = Bytes>) -> Self {
        Self {
            framing: Framing::Raw,
            pieces: pieces.into_iter().collect(),
            then: Then::Close,
            ..Self::json(&Value::Null)
        }
    }

    /// Nothing, for ever.
    pub(crate) fn silence() -> Self {
        Self { then: Then::Silence, ..Self::raw([]) }
    }

    /// Nothing: the request is not looked at.
    pub(crate) fn unprocessed() -> Self {
        Self { then: Then::Refuse, ..Self::raw([]) }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(other, _)| other != name);
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(crate) fn framed(self, framing: Framing) -> Self {
        Self { framing, ..self }
    }

    pub(crate) fn chunked(self) -> Self {
        self.framed(Framing::Chunked)
    }

    pub(crate) fn then(self, then: Then) -> Self {
        Self { then, ..self }
    }

    pub(crate) fn pausing(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    pub(crate) fn body(&self) -> Bytes {
        self.pieces.concat().into()
    }

    /// The same body in pieces of at most so many bytes.
    pub(crate) fn in_pieces_of(self, size: usize) -> Self {
        let body = self.body();
        let pieces = (0..body.len()).step_by(size).map(|at| body.slice(at..body.len().min(at + size))).collect();
        Self { pieces, ..self }
    }

    /// The same body in two pieces, of which the first has so many bytes.
    pub(crate) fn cut_at(self, at: usize) -> Self {
        let body = self.body();
        Self { pieces: vec![body.slice(..at), body.slice(at..)], ..self }
    }

    /// The same, with nothing after so many bytes of the body but the end of the connection.
    pub(crate) fn broken_off_at(self, at: usize) -> Self {
        let body = self.body();
        let length = Some(self.length.unwrap_or(body.len()));
        Self { pieces: vec![body.slice(..at)], length, then: Then::Close, ..self }
    }

    /// How long the body claims to be.
    pub(super) fn declared(&self) -> usize {
        self.length.unwrap_or_else(|| self.pieces.iter().map(Bytes::len).sum())
    }

    /// Whether a client that has got all pieces has got the whole body.
    pub(super) fn is_whole(&self) -> bool {
        let sent: usize = self.pieces.iter().map(Bytes::len).sum();
        match self.framing {
            Framing::Length => sent >= self.declared(),
            Framing::Chunked => self.then == Then::End,
            Framing::UntilClose => matches!(self.then, Then::End | Then::Close | Then::Finish),
            Framing::Raw => false,
        }
    }
}

pub(crate) fn refusal(code: u16, reason: &str, message: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    })
}
