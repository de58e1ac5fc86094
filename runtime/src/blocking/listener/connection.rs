//! One connection, and HTTP/1.1 on it.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use cloudcoil_core::listen::{Peer, ServerConnection, ServerInput, ServerOutput, overdue};
use cloudcoil_core::machine::{Deadline, Ticket};
use cloudcoil_core::{Machine as _, Outbox, Time};
use http::{Request, Response};

use super::accept::{Closing, Handling, Shared};
use super::{Socket, Wire};
use crate::listener::{broke, report};

/// A connection, as its own thread sees it.
pub(super) struct Connection {
    pub(super) closing: Closing,
    pub(super) socket: Arc<dyn Socket>,
    pub(super) letters: Sender<Letter>,
    pub(super) letterbox: Receiver<Letter>,
    pub(super) peer: Peer,
}

impl Connection {
    pub(super) fn serve(mut self) {
        let shared = self.closing.shared.clone();
        let until = shared.now().mono + shared.service.limits.arrival;
        match self.socket.clone().shake(shared.clock, until) {
            Ok((wire, subject)) => {
                self.peer.subject = subject.map(Arc::new);
                self.exchange(&shared, wire);
            }
            Err(error) => tracing::debug!("TLS handshake: {error}"),
        }
    }

    fn exchange(&self, shared: &Arc<Shared>, mut wire: Box<dyn Wire>) {
        let mut machine = ServerConnection::new(shared.service.limits);
        let mut out = Outbox::new();
        let mut deadline = machine.step(shared.now(), None, &mut out);
        let mut is_told = false;
        while let Some(output) = out.pop() {
            deadline = self.tell(&mut machine, &mut is_told, &mut out).or(deadline);
            if !out.is_empty() {
                continue;
            }
            let until = deadline.map_or(Time::ZERO, |deadline| deadline.at);
            let Some(came) = self.perform(&mut *wire, output, until) else { return };
            // Whoever stops has cut short the wait for what will not come any more.
            let _ = self.tell(&mut machine, &mut is_told, &mut out);
            if out.is_empty() {
                deadline = machine.step(shared.now(), came, &mut out);
            }
        }
    }

    /// Tells the machine to stop, once that is so. Says before whether the wait that comes next may be cut short.
    fn tell(
        &self,
        machine: &mut ServerConnection,
        is_told: &mut bool,
        out: &mut Outbox<ServerOutput>,
    ) -> Option<Deadline> {
        let shared = &self.closing.shared;
        let is_stopping = {
            let mut state = shared.state();
            if let Some(open) = state.open.get_mut(&self.closing.number) {
                open.is_idle = machine.is_idle();
            }
            state.is_stopping
        };
        if !is_stopping || std::mem::replace(is_told, true) {
            return None;
        }
        machine.step(shared.now(), Some(ServerInput::Stopped), out)
    }

    /// Does what is asked for, until a time and no longer; `None` if the connection is to close, and nothing inside if nothing has
    /// come in time.
    fn perform(&self, wire: &mut dyn Wire, output: ServerOutput, until: Time) -> Option<Option<ServerInput>> {
        let told = |ticket, sent: io::Result<()>| match sent {
            Ok(()) => Some(ServerInput::Sent { ticket }),
            Err(error) => self.failed(&error, until),
        };
        Some(match output {
            ServerOutput::Receive { ticket } => match wire.receive(until) {
                Ok(bytes) => Some(ServerInput::Received { ticket, bytes }),
                Err(error) => self.failed(&error, until),
            },
            ServerOutput::Send { ticket, bytes } => told(ticket, wire.send(&bytes, until)),
            ServerOutput::Finish { ticket } => told(ticket, wire.finish(until)),
            ServerOutput::Handle { ticket, request } => self.handle(ticket, request.into_inner(), until),
            ServerOutput::Close => return None,
        })
    }

    fn failed(&self, error: &io::Error, until: Time) -> Option<ServerInput> {
        if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) {
            return self.overdue(until);
        }
        Some(broke(error))
    }

    /// Nothing has come in time. Clocks that do not agree about it are waited for.
    fn overdue(&self, until: Time) -> Option<ServerInput> {
        loop {
            match until.since(self.closing.shared.now().mono) {
                Duration::ZERO => return None,
                left => thread::sleep(left),
            }
        }
    }

    fn handle(&self, ticket: Ticket, mut request: Request<Bytes>, until: Time) -> Option<ServerInput> {
        let Some(running) = Handling::begin(&self.closing.shared) else {
            return Some(ServerInput::Answered { ticket, response: overdue() });
        };
        request.extensions_mut().insert(self.peer.clone());
        let (handler, answer) = (self.closing.shared.service.handler.clone(), self.letters.clone());
        let handling = move || {
            let (method, path) = (request.method().clone(), request.uri().path().to_owned());
            let handled = catch_unwind(AssertUnwindSafe(|| handler(request)));
            // Before the answer, as the next request may come right after it.
            drop(running);
            // Nobody may be waiting any more.
            let _ = answer
                .send(Letter::Handled(ticket, handled.inspect_err(|panic| report(&method, &path, &**panic)).ok()));
        };
        if thread::Builder::new().name("cloudcoil-handler".to_owned()).spawn(handling).is_err() {
            return Some(ServerInput::Panicked { ticket });
        }
        loop {
            let left = until.since(self.closing.shared.now().mono);
            return match self.letterbox.recv_timeout(left) {
                // One that is late answers what was answered before.
                Ok(Letter::Handled(late, _)) if late != ticket => continue,
                Ok(Letter::Handled(_, Some(response))) => Some(ServerInput::Answered { ticket, response }),
                Ok(Letter::Handled(_, None)) => Some(ServerInput::Panicked { ticket }),
                Ok(Letter::Close) | Err(RecvTimeoutError::Disconnected) => Some(ServerInput::Broke),
                Err(RecvTimeoutError::Timeout) => self.overdue(until),
            };
        }
    }
}

/// What a connection's thread hears while a request is handled.
pub(super) enum Letter {
    /// What a handler has answered; nothing if it has panicked.
    Handled(Ticket, Option<Response<Bytes>>),
    Close,
}
