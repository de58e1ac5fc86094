//! The HTTP exchanges that a machine has in flight.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use cloudcoil_core::{HttpEffect, HttpEvent, NetworkError};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use http::Response;

use crate::plain::{Sent, Warnings};
use crate::{Body, Client, Runtime, Transport};

/// Sends requests and hands their answers on, one event at a time; dropping it drops every exchange.
///
/// A body is polled only when the next event is asked for, so a reader that lags holds up the server, not memory.
pub(crate) struct Exchanges {
    transport: Arc<dyn Transport>,
    runtime: Arc<dyn Runtime>,
    warnings: Arc<Warnings>,
    open: Vec<Exchange>,
    /// Who is asked first next time, so that one busy exchange does not hide the others.
    turn: usize,
}

impl Exchanges {
    pub(crate) fn new(client: &Client) -> Self {
        let (transport, runtime) = (client.link.transport.clone(), client.runtime().clone());
        Self { transport, runtime, warnings: client.warnings().clone(), open: Vec::new(), turn: 0 }
    }

    pub(crate) fn perform(&mut self, effect: HttpEffect) {
        match effect {
            HttpEffect::Send { ticket, request } => {
                let sent = Sent::new(ticket, &request, self.runtime.now().mono);
                let sending = sent.span.in_scope(|| self.transport.send(request.into_inner()));
                self.open.push(Exchange { sent, state: State::Sending(sending) });
            }
            HttpEffect::Cancel { ticket } => self.open.retain(|exchange| exchange.sent.ticket != ticket),
        }
    }

    /// The next event of any exchange; pending while there is none, and when nothing is in flight.
    pub(crate) fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<HttpEvent> {
        for _ in 0..self.open.len() {
            self.turn = (self.turn + 1) % self.open.len();
            if let Poll::Ready(event) = self.open[self.turn].poll_event(context) {
                if self.open[self.turn].sent.hear(&event, &self.warnings, || self.runtime.now().mono) {
                    self.open.swap_remove(self.turn);
                }
                return Poll::Ready(event);
            }
        }
        Poll::Pending
    }
}

struct Exchange {
    sent: Sent,
    state: State,
}

enum State {
    Sending(BoxFuture<'static, Result<Response<Body>, NetworkError>>),
    Receiving(Body),
}

impl Exchange {
    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<HttpEvent> {
        let (ticket, _entered) = (self.sent.ticket, self.sent.span.enter());
        Poll::Ready(match &mut self.state {
            State::Sending(sending) => match ready!(Pin::new(sending).poll(context)) {
                Err(error) => HttpEvent::Closed { ticket, result: Err(error) },
                Ok(response) => {
                    let (head, body) = response.into_parts();
                    self.state = State::Receiving(body);
                    HttpEvent::Responded { ticket, status: head.status, headers: head.headers }
                }
            },
            State::Receiving(body) => match ready!(body.poll_next_unpin(context)) {
                Some(Ok(bytes)) => HttpEvent::Received { ticket, bytes },
                Some(Err(error)) => HttpEvent::Closed { ticket, result: Err(error) },
                None => HttpEvent::Closed { ticket, result: Ok(()) },
            },
        })
    }
}
