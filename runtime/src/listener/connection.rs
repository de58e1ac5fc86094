//! One connection, and HTTP/1.1 on it.

use std::any::Any;
use std::io;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cloudcoil_core::config::Subject;
use cloudcoil_core::listen::{ListenLimits, Peer, ServerConnection, ServerInput, ServerOutput, overdue, panicked};
use cloudcoil_core::machine::{Deadline, Ticket};
use cloudcoil_core::{Machine as _, Outbox};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Either, pending, select};
use http::{Method, Request, Response};

use super::Handler;
use crate::Runtime;
use crate::latch::Latch;
use crate::plain::message;

/// How a connection is read and written.
pub trait Wire: Send {
    /// The next bytes, cut anywhere; none at the end. Dropping the future loses nothing.
    fn receive(&mut self) -> BoxFuture<'_, io::Result<Bytes>>;

    /// Sends all of this. When the future is dropped, nothing more is sent.
    fn send(&mut self, bytes: Bytes) -> BoxFuture<'_, io::Result<()>>;

    /// Tells the other side that nothing more is sent; what it sends can still be received.
    fn finish(&mut self) -> BoxFuture<'_, io::Result<()>>;
}

/// A connection that was accepted: what is known about it, and how it is to be served.
pub struct Connection {
    runtime: Arc<dyn Runtime>,
    handler: Handler,
    limits: ListenLimits,
    peer: Peer,
    is_stopping: Latch,
}

impl Connection {
    pub(super) fn new(
        runtime: Arc<dyn Runtime>,
        handler: Handler,
        limits: ListenLimits,
        address: SocketAddr,
        is_stopping: Latch,
    ) -> Self {
        Self { runtime, handler, limits, peer: Peer { address, subject: None }, is_stopping }
    }

    /// The same, when it is known whom the client's certificate names.
    #[must_use]
    pub fn with_subject(mut self, subject: Option<Subject>) -> Self {
        self.peer.subject = subject.map(Arc::new);
        self
    }

    /// What the client may ask for.
    pub const fn limits(&self) -> &ListenLimits {
        &self.limits
    }

    /// Ends when no other request is to be served than those that have begun.
    pub async fn stopped(&self) {
        self.is_stopping.opened().await;
    }

    /// What comes of a handshake; `None` if it takes too long, or nothing more is to be served.
    pub async fn shake<T>(&self, handshake: impl Future<Output = T> + Send) -> Option<T> {
        match select(std::pin::pin!(self.within(self.limits.arrival, handshake)), std::pin::pin!(self.stopped())).await
        {
            Either::Left((shaken, _)) => shaken,
            Either::Right(_) => None,
        }
    }

    /// What comes of `step`; `None` if that takes longer than `limit`.
    pub async fn within<T>(&self, limit: Duration, step: impl Future<Output = T> + Send) -> Option<T> {
        let until = self.runtime.now().mono + limit;
        match select(std::pin::pin!(step), self.runtime.sleep_until(until)).await {
            Either::Left((value, _)) => Some(value),
            Either::Right(_) => None,
        }
    }

    /// Has a request handled: what the handler answers, or what is answered if it panics or takes too long.
    pub async fn answer(&self, request: Request<Bytes>) -> Response<Bytes> {
        let handled = self.within(self.limits.handler, self.handle(request)).await;
        handled.map_or_else(overdue, |answered| answered.unwrap_or_else(panicked))
    }

    /// Serves HTTP/1.1 to the end of the connection.
    pub async fn serve_http1(self, mut wire: impl Wire) {
        let mut machine = ServerConnection::new(self.limits);
        let mut out = Outbox::new();
        let mut deadline = machine.step(self.runtime.now(), None, &mut out);
        let mut is_told = false;
        while let Some(output) = out.pop() {
            let Some(mut effect) = self.perform(&mut wire, output) else { return };
            // What is under way goes on until there is something else to do.
            while out.is_empty() {
                let input = self.next(&mut effect, deadline, is_told).await;
                is_told |= matches!(input, Some(ServerInput::Stopped));
                deadline = machine.step(self.runtime.now(), input, &mut out);
            }
        }
    }

    /// What happens first: the word to stop unless it was heard, the end of what is under way, or nothing before the deadline.
    async fn next(
        &self,
        effect: &mut BoxFuture<'_, ServerInput>,
        deadline: Option<Deadline>,
        is_told: bool,
    ) -> Option<ServerInput> {
        let stop = async {
            match is_told {
                true => pending().await,
                false => self.stopped().await,
            }
        };
        let timer = deadline.map_or_else(|| pending().boxed(), |deadline| self.runtime.sleep_until(deadline.at));
        // Of what has happened already the first counts: an answer is to say that it is the last.
        match select(std::pin::pin!(stop), select(effect, timer)).await {
            Either::Left(_) => Some(ServerInput::Stopped),
            Either::Right((Either::Left((input, _)), _)) => Some(input),
            Either::Right((Either::Right(_), _)) => None,
        }
    }

    /// Does what is asked for; `None` if the connection is to close.
    fn perform<'a>(&'a self, wire: &'a mut impl Wire, output: ServerOutput) -> Option<BoxFuture<'a, ServerInput>> {
        Some(match output {
            ServerOutput::Receive { ticket } => wire
                .receive()
                .map(move |received| match received {
                    Ok(bytes) => ServerInput::Received { ticket, bytes },
                    Err(error) => broke(&error),
                })
                .boxed(),
            ServerOutput::Send { ticket, bytes } => wire.send(bytes).map(move |sent| told(ticket, sent)).boxed(),
            ServerOutput::Finish { ticket } => wire.finish().map(move |sent| told(ticket, sent)).boxed(),
            ServerOutput::Handle { ticket, request } => self
                .handle(request.into_inner())
                .map(move |answered| match answered {
                    Some(response) => ServerInput::Answered { ticket, response },
                    None => ServerInput::Panicked { ticket },
                })
                .boxed(),
            ServerOutput::Close => return None,
        })
    }

    /// What the handler answers; `None` if it panics.
    async fn handle(&self, mut request: Request<Bytes>) -> Option<Response<Bytes>> {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        request.extensions_mut().insert(self.peer.clone());
        let handled = AssertUnwindSafe(async { (self.handler)(request).await }).catch_unwind().await;
        handled.inspect_err(|panic| report(&method, &path, &**panic)).ok()
    }
}

/// Logs that a handler has panicked.
pub fn report(method: &Method, path: &str, panic: &(dyn Any + Send)) {
    tracing::error!("the handler of {method} {path} has panicked: {}", message(panic));
}

fn told(ticket: Ticket, sent: io::Result<()>) -> ServerInput {
    match sent {
        Ok(()) => ServerInput::Sent { ticket },
        Err(error) => broke(&error),
    }
}

pub(crate) fn broke(error: &io::Error) -> ServerInput {
    tracing::debug!("a connection broke: {error}");
    ServerInput::Broke
}
