//! The HTTP exchanges that a machine has in flight, each on a thread of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use cloudcoil_core::{HttpEffect, HttpEvent, HttpRequest, NetworkError, NetworkErrorKind, Ticket};
use tracing::Span;

use super::driver::Letter;
use super::{Cancel, Client, Clock, Transport};
use crate::plain::{Sent, Warnings, message};

/// Sends requests and has their answers brought to a driver; dropping it gives up every exchange, and waits for their threads,
/// except for those that are still connecting.
///
/// The next piece of a body is read when the one before was [taken](Exchanges::taken), so a reader that lags holds up the server,
/// not memory.
pub(crate) struct Exchanges<C> {
    transport: Arc<dyn Transport>,
    clock: Clock,
    warnings: Arc<Warnings>,
    mail: Sender<Letter<C>>,
    open: Vec<Exchange>,
}

struct Exchange {
    sent: Sent,
    cancel: Cancel,
    taken: Sender<()>,
    thread: Option<JoinHandle<()>>,
}

impl<C: Send + 'static> Exchanges<C> {
    pub(crate) fn new(client: &Client, mail: Sender<Letter<C>>) -> Self {
        let (transport, warnings) = (client.link.transport.clone(), client.warnings().clone());
        Self { transport, clock: client.clock(), warnings, mail, open: Vec::new() }
    }

    pub(crate) fn perform(&mut self, effect: HttpEffect) {
        match effect {
            HttpEffect::Send { ticket, request } => self.start(ticket, request),
            HttpEffect::Cancel { ticket } => self.open.retain(|exchange| exchange.sent.ticket != ticket),
        }
    }

    fn start(&mut self, ticket: Ticket, request: HttpRequest) {
        let (sent, cancel) = (Sent::new(ticket, &request, self.clock.now().mono), Cancel::new());
        let (taken, credit) = channel();
        let worker = Worker { ticket, mail: self.mail.clone(), credit };
        let (transport, its_cancel, within) = (self.transport.clone(), cancel.clone(), sent.span.clone());
        let builder = thread::Builder::new().name("cloudcoil-request".into());
        let thread =
            builder.spawn(move || worker.run(&within, |worker| worker.carry(&*transport, request, &its_cancel)));
        if let Err(error) = &thread {
            let text = format!("the system refuses a thread: {error}");
            let result = Err(NetworkError::new(NetworkErrorKind::Request, text));
            let _ = self.mail.send(Letter::Http(HttpEvent::Closed { ticket, result }));
        }
        self.open.push(Exchange { sent, cancel, taken, thread: thread.ok() });
    }

    /// An event was taken out of the mail: its exchange goes on. Answers whether there is one: it may have been given up while the
    /// event was in the mail, and then nobody is to hear of it.
    pub(crate) fn taken(&mut self, event: &HttpEvent) -> bool {
        let Some(place) = self.open.iter().position(|exchange| exchange.sent.ticket == event.ticket()) else {
            return false;
        };
        if self.open[place].sent.hear(event, &self.warnings, || self.clock.now().mono) {
            join(self.open.swap_remove(place).thread.take());
        } else {
            // The thread may be gone; then its last words are in the mail.
            let _ = self.open[place].taken.send(());
        }
        true
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        // The connection of one that has ended is others' now.
        let Some(thread) = self.thread.take() else { return };
        self.taken = channel().0;
        // What is not in a connection is on the way to one, which cannot be cut short and ends by itself in some seconds.
        if self.cancel.cancel() {
            join(Some(thread));
        }
    }
}

/// What a panic has said was told already.
fn join(thread: Option<JoinHandle<()>>) {
    let _ = thread.map(JoinHandle::join);
}

/// The thread of an exchange.
struct Worker<C> {
    ticket: Ticket,
    mail: Sender<Letter<C>>,
    credit: Receiver<()>,
}

/// Nobody wants to hear of the exchange any more.
struct GivenUp;

impl<C> Worker<C> {
    /// Whatever becomes of it, the exchange is closed: a panic of the transport, or of what listens to the span, is a failure like
    /// others.
    fn run(self, span: &Span, carry: impl FnOnce(&Self) -> Result<Result<(), NetworkError>, GivenUp>) {
        let ticket = self.ticket;
        let result = match catch_unwind(AssertUnwindSafe(|| span.in_scope(|| carry(&self)))) {
            Ok(Ok(result)) => result,
            Ok(Err(GivenUp)) => return,
            Err(panic) => {
                let text = format!("the transport has panicked: {}", message(&*panic));
                Err(NetworkError::new(NetworkErrorKind::Lost, text))
            }
        };
        let _ = self.tell(HttpEvent::Closed { ticket, result });
    }

    fn carry(
        &self,
        transport: &dyn Transport,
        request: HttpRequest,
        cancel: &Cancel,
    ) -> Result<Result<(), NetworkError>, GivenUp> {
        let ticket = self.ticket;
        let (head, body) = match transport.send(request.into_inner(), cancel) {
            Ok(response) => response.into_parts(),
            Err(error) => return Ok(Err(error)),
        };
        self.tell(HttpEvent::Responded { ticket, status: head.status, headers: head.headers })?;
        for piece in body {
            self.credit.recv().map_err(|_| GivenUp)?;
            match piece {
                Ok(bytes) => self.tell(HttpEvent::Received { ticket, bytes })?,
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Ok(()))
    }

    fn tell(&self, event: HttpEvent) -> Result<(), GivenUp> {
        self.mail.send(Letter::Http(event)).map_err(|_| GivenUp)
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use bytes::Bytes;
    use cloudcoil_core::{Error, RetryPolicy};
    use http::{Request, Response};

    use super::*;
    use crate::blocking::Body;

    enum Panicking {
        Head,
        Body,
    }

    impl Transport for Panicking {
        fn send(&self, _: Request<Bytes>, _: &Cancel) -> Result<Response<Body>, NetworkError> {
            match self {
                Self::Head => panic!("no head"),
                Self::Body => Ok(Response::new(Box::new(iter::from_fn(|| panic!("no body"))))),
            }
        }
    }

    #[test]
    fn a_transport_that_panics_has_lost_the_exchange() {
        for (transport, said) in [(Panicking::Head, "no head"), (Panicking::Body, "no body")] {
            let client = Client::new(Arc::new(transport)).with_retry(RetryPolicy::OFF).with_timeout(None);
            match client.request(Request::get("/x").body(Bytes::new()).unwrap()) {
                Err(Error::Network(error)) => {
                    assert_eq!(error.kind, NetworkErrorKind::Lost);
                    assert!(error.to_string().contains(&format!("the transport has panicked: {said}")), "{error}");
                }
                other => panic!("{other:?}"),
            }
        }
    }
}
