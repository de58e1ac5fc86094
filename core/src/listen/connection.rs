//! One connection of HTTP/1.1, from the server's side.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Method, Request, Response};

use super::{ListenLimits, failure, overdue, panicked, too_large, too_slow};
use crate::exchange::HttpRequest;
use crate::http1::{RequestDecoder, RequestHead, RequestPart, encode_response, fit};
use crate::machine::{Deadline, Machine, Outbox, Ticket, Tickets};
use crate::time::{Now, Time};

/// Serves one connection: request by request, within [limits](ListenLimits).
///
/// There is one effect under way at a time. Each output takes the place of the one before, which is given up if it is not done
/// yet. Step it first without an input.
///
/// ```
/// use cloudcoil_core::listen::{ListenLimits, ServerConnection, ServerInput, ServerOutput};
/// use cloudcoil_core::{Machine as _, Now, Outbox};
///
/// let mut connection = ServerConnection::new(ListenLimits::default());
/// let mut out = Outbox::new();
/// let _ = connection.step(Now::default(), None, &mut out);
/// let Some(ServerOutput::Receive { ticket }) = out.pop() else { panic!() };
/// let bytes = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n".into();
/// let _ = connection.step(Now::default(), Some(ServerInput::Received { ticket, bytes }), &mut out);
/// let Some(ServerOutput::Handle { request, .. }) = out.pop() else { panic!() };
/// assert_eq!(request.inner().uri(), "/healthz");
/// ```
#[derive(Debug)]
pub struct ServerConnection {
    limits: ListenLimits,
    tickets: Tickets,
    decoder: RequestDecoder,
    is_stopping: bool,
    state: State,
}

/// What comes to a connection. One with the ticket of an effect that was replaced changes nothing.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "a driver must say all of it")]
pub enum ServerInput {
    /// Bytes came; none when the client has said that there will be no more.
    Received {
        /// Names the effect.
        ticket: Ticket,
        /// The bytes, cut anywhere.
        bytes: Bytes,
    },
    /// What was to be sent, or that nothing more will be, was sent.
    Sent {
        /// Names the effect.
        ticket: Ticket,
    },
    /// The handler has answered.
    Answered {
        /// Names the effect.
        ticket: Ticket,
        /// The answer.
        response: Response<Bytes>,
    },
    /// The handler has panicked.
    Panicked {
        /// Names the effect.
        ticket: Ticket,
    },
    /// The connection broke.
    Broke,
    /// No other request is to be served than one that has begun.
    Stopped,
}

/// What is to be done on a connection.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must do all of it")]
pub enum ServerOutput {
    /// Receive once, and say what came by `Received`.
    Receive {
        /// Names the effect.
        ticket: Ticket,
    },
    /// Send all of this, and say so by `Sent`.
    Send {
        /// Names the effect.
        ticket: Ticket,
        /// The bytes.
        bytes: Bytes,
    },
    /// Have the request handled, and say what came of it by `Answered` or `Panicked`.
    Handle {
        /// Names the effect.
        ticket: Ticket,
        /// The request; its target is a path and query, or `*`.
        request: HttpRequest,
    },
    /// Tell the client that nothing more will be sent, and say so by `Sent`; what the client sends is still received.
    Finish {
        /// Names the effect.
        ticket: Ticket,
    },
    /// Close the connection; nothing comes after it.
    Close,
}

#[derive(Debug)]
enum State {
    Starting,
    /// The first byte of a request, or the end of its head.
    AwaitingHead {
        ticket: Ticket,
        until: Time,
        has_begun: bool,
    },
    /// That the client is told to send the body.
    Continuing {
        ticket: Ticket,
        until: Time,
        request: Partial,
    },
    AwaitingBody {
        ticket: Ticket,
        until: Time,
        request: Partial,
    },
    Handling {
        ticket: Ticket,
        until: Time,
        method: Method,
        keeps_alive: bool,
    },
    Answering {
        ticket: Ticket,
        until: Time,
        closes: bool,
    },
    Finishing {
        ticket: Ticket,
        until: Time,
        lingers: bool,
    },
    /// The client's end of the connection: one that is closed while the client sends may take the last answer with it.
    Lingering {
        ticket: Ticket,
        until: Time,
    },
    Closed,
}

/// A request whose body is not whole.
#[derive(Debug)]
struct Partial {
    head: RequestHead,
    body: BytesMut,
}

impl ServerConnection {
    /// A connection on which nothing has come yet.
    pub fn new(limits: ListenLimits) -> Self {
        Self {
            limits,
            tickets: Tickets::new(0),
            decoder: RequestDecoder::new(limits.head),
            is_stopping: false,
            state: State::Starting,
        }
    }

    /// Whether the client has nothing to expect: no request has begun that was not answered.
    pub const fn is_idle(&self) -> bool {
        matches!(self.state, State::AwaitingHead { has_begun: false, .. })
    }

    fn on_received(&mut self, now: Now, bytes: Bytes, out: &mut Outbox<ServerOutput>) {
        if bytes.is_empty() {
            return self.close(out);
        }
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Lingering { until, .. } => {
                let ticket = self.receive(out);
                self.state = State::Lingering { ticket, until };
            }
            State::AwaitingHead { until, has_begun, .. } => {
                self.decoder.receive(bytes);
                self.read_head(now, until, has_begun, out);
            }
            State::AwaitingBody { until, request, .. } => {
                self.decoder.receive(bytes);
                self.read_body(now, until, request, out);
            }
            state => self.state = state,
        }
    }

    fn on_sent(&mut self, now: Now, out: &mut Outbox<ServerOutput>) {
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Continuing { request, .. } => self.read_body(now, now.mono + self.limits.transfer, request, out),
            State::Answering { closes: true, .. } => self.finish(now, true, out),
            State::Answering { closes: false, .. } => self.next(now, self.limits.idle, out),
            State::Finishing { lingers: true, until, .. } => {
                let ticket = self.receive(out);
                self.state = State::Lingering { ticket, until };
            }
            State::Finishing { lingers: false, .. } => self.close(out),
            state => self.state = state,
        }
    }

    fn on_answered(&mut self, now: Now, response: Response<Bytes>, out: &mut Outbox<ServerOutput>) {
        if let State::Handling { method, keeps_alive, .. } = &self.state {
            let closes = !keeps_alive || self.is_stopping || wants_close(&response);
            let method = method.clone();
            // These announce an answer, and are none.
            let response = if response.status().is_informational() { panicked() } else { response };
            self.answer(now, response, &method, closes, out);
        }
    }

    /// What comes behind a request that was answered.
    fn next(&mut self, now: Now, patience: Duration, out: &mut Outbox<ServerOutput>) {
        self.read_head(now, now.mono + patience, false, out);
    }

    fn read_head(&mut self, now: Now, until: Time, has_begun: bool, out: &mut Outbox<ServerOutput>) {
        match self.decoder.part() {
            Ok(Some(RequestPart::Head(head))) => self.begin(now, head, out),
            // Only a head comes first.
            Ok(Some(_)) => self.close(out),
            Ok(None) => match (has_begun, self.decoder.has_begun()) {
                (false, false) if self.is_stopping => self.finish(now, false, out),
                (false, true) => {
                    let ticket = self.receive(out);
                    self.state = State::AwaitingHead { ticket, until: now.mono + self.limits.arrival, has_begun: true };
                }
                (_, has_begun) => {
                    let ticket = self.receive(out);
                    self.state = State::AwaitingHead { ticket, until, has_begun };
                }
            },
            Err(refusal) => {
                let response = failure(refusal.status, &refusal.problem);
                self.answer(now, response, &Method::GET, true, out);
            }
        }
    }

    fn begin(&mut self, now: Now, head: RequestHead, out: &mut Outbox<ServerOutput>) {
        let length = head.length.unwrap_or(0);
        if length > self.limits.body as u64 {
            return self.answer(now, too_large(self.limits.body), &head.method, true, out);
        }
        let expects_continue = head.expects_continue;
        // What is only announced is not worth much room.
        let room = usize::try_from(length).unwrap_or_default().min(ROOM);
        let request = Partial { head, body: BytesMut::with_capacity(room) };
        if expects_continue {
            let ticket = self.tickets.issue();
            out.push(ServerOutput::Send { ticket, bytes: Bytes::from_static(b"HTTP/1.1 100 Continue\r\n\r\n") });
            self.state = State::Continuing { ticket, until: now.mono + self.limits.reply, request };
        } else {
            self.read_body(now, now.mono + self.limits.transfer, request, out);
        }
    }

    fn read_body(&mut self, now: Now, until: Time, mut request: Partial, out: &mut Outbox<ServerOutput>) {
        loop {
            match self.decoder.part() {
                Ok(Some(RequestPart::Data(bytes))) if request.body.len() + bytes.len() > self.limits.body => {
                    return self.answer(now, too_large(self.limits.body), &request.head.method, true, out);
                }
                Ok(Some(RequestPart::Data(bytes))) => request.body.extend_from_slice(&bytes),
                Ok(Some(RequestPart::End)) => return self.handle(now, request, out),
                // No head comes before the end.
                Ok(Some(RequestPart::Head(_))) => return self.close(out),
                Ok(None) => {
                    let ticket = self.receive(out);
                    self.state = State::AwaitingBody { ticket, until, request };
                    return;
                }
                Err(refusal) => {
                    let response = failure(refusal.status, &refusal.problem);
                    return self.answer(now, response, &request.head.method, true, out);
                }
            }
        }
    }

    fn handle(&mut self, now: Now, Partial { head, body }: Partial, out: &mut Outbox<ServerOutput>) {
        let ticket = self.tickets.issue();
        let until = now.mono + self.limits.handler;
        self.state = State::Handling { ticket, until, method: head.method.clone(), keeps_alive: head.keeps_alive };
        let mut request = Request::new(body.freeze());
        *request.method_mut() = head.method;
        *request.uri_mut() = head.uri;
        *request.headers_mut() = head.headers;
        out.push(ServerOutput::Handle { ticket, request: request.into() });
    }

    fn answer(
        &mut self,
        now: Now,
        response: Response<Bytes>,
        method: &Method,
        closes: bool,
        out: &mut Outbox<ServerOutput>,
    ) {
        let ticket = self.tickets.issue();
        let bytes = encode_response(&fit(response, method), closes, now.wall).into();
        out.push(ServerOutput::Send { ticket, bytes });
        self.state = State::Answering { ticket, until: now.mono + self.limits.reply, closes };
    }

    fn receive(&mut self, out: &mut Outbox<ServerOutput>) -> Ticket {
        let ticket = self.tickets.issue();
        out.push(ServerOutput::Receive { ticket });
        ticket
    }

    fn finish(&mut self, now: Now, lingers: bool, out: &mut Outbox<ServerOutput>) {
        let ticket = self.tickets.issue();
        out.push(ServerOutput::Finish { ticket });
        self.state = State::Finishing { ticket, until: now.mono + LINGER, lingers };
    }

    fn close(&mut self, out: &mut Outbox<ServerOutput>) {
        out.push(ServerOutput::Close);
        self.state = State::Closed;
    }
}

impl Machine for ServerConnection {
    type Input = ServerInput;
    type Output = ServerOutput;

    fn on_input(&mut self, now: Now, input: ServerInput, out: &mut Outbox<ServerOutput>) {
        let awaited = self.state.ticket();
        match input {
            ServerInput::Received { ticket, bytes } if awaited == Some(ticket) => self.on_received(now, bytes, out),
            ServerInput::Sent { ticket } if awaited == Some(ticket) => self.on_sent(now, out),
            ServerInput::Answered { ticket, response } if awaited == Some(ticket) => {
                self.on_answered(now, response, out);
            }
            ServerInput::Panicked { ticket } if awaited == Some(ticket) => self.on_answered(now, panicked(), out),
            ServerInput::Broke if awaited.is_some() => self.close(out),
            ServerInput::Stopped => {
                self.is_stopping = true;
                if self.is_idle() {
                    self.finish(now, false, out);
                }
            }
            _ => {}
        }
    }

    fn on_timer(&mut self, now: Now, out: &mut Outbox<ServerOutput>) {
        match &self.state {
            State::Starting => self.next(now, self.limits.arrival, out),
            State::AwaitingHead { has_begun: false, .. } => self.finish(now, false, out),
            State::AwaitingHead { .. } => self.answer(now, too_slow(), &Method::GET, true, out),
            State::AwaitingBody { request, .. } => {
                let method = request.head.method.clone();
                self.answer(now, too_slow(), &method, true, out);
            }
            State::Handling { .. } => self.on_answered(now, overdue(), out),
            State::Continuing { .. } | State::Answering { .. } | State::Finishing { .. } | State::Lingering { .. } => {
                self.close(out);
            }
            State::Closed => {}
        }
    }

    fn deadline(&self) -> Option<Deadline> {
        let (at, why) = match &self.state {
            State::Starting => (Time::ZERO, "start"),
            State::AwaitingHead { until, .. } => (*until, "head of a request"),
            State::Continuing { until, .. } | State::Answering { until, .. } => (*until, "client takes an answer"),
            State::AwaitingBody { until, .. } => (*until, "body of a request"),
            State::Handling { until, .. } => (*until, "handler"),
            State::Finishing { until, .. } | State::Lingering { until, .. } => (*until, "client closes"),
            State::Closed => return None,
        };
        Some(Deadline::new(at, why))
    }
}

impl State {
    const fn ticket(&self) -> Option<Ticket> {
        match self {
            Self::AwaitingHead { ticket, .. }
            | Self::Continuing { ticket, .. }
            | Self::AwaitingBody { ticket, .. }
            | Self::Handling { ticket, .. }
            | Self::Answering { ticket, .. }
            | Self::Finishing { ticket, .. }
            | Self::Lingering { ticket, .. } => Some(*ticket),
            Self::Starting | Self::Closed => None,
        }
    }
}

/// Whether whoever answers wants no other request on this connection.
fn wants_close(response: &Response<Bytes>) -> bool {
    crate::http1::has_token(response.headers(), &http::header::CONNECTION, "close")
}

/// How long a connection is kept for what the client is still sending.
const LINGER: Duration = Duration::from_secs(1);

/// How much room is made for a body before it has come, in bytes.
const ROOM: usize = 64 << 10;
