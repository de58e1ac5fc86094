//! The task that owns the machine.

use std::collections::BTreeMap;

use bytes::Bytes;
use cloudcoil_core::{Deadline, HttpEvent, HttpRequest, Machine, Now, Outbox, Ticket, Tickets, Time, UnixTime};
use http::{HeaderMap, StatusCode};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::machine::{ApiServer, ServerInput};

/// What connections and the handle ask of the driver.
pub(super) enum Job {
    /// Answer a request.
    Answer { request: HttpRequest, head: oneshot::Sender<Head> },
    /// Nobody wants the rest of an answer any more.
    Forget(Ticket),
    /// Do something with the machine.
    Act(Action),
}

/// Something to do with the machine between two requests.
pub(super) type Action = Box<dyn FnOnce(&mut ApiServer, Now, &mut Outbox<HttpEvent>) + Send>;

/// The head of an answer, and where its body comes from.
pub(super) struct Head {
    pub(super) ticket: Ticket,
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: mpsc::Receiver<Bytes>,
}

/// The two clocks of the machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    started: Instant,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self { started: Instant::now() }
    }

    pub(super) fn now(self) -> Now {
        let mono = Time::ZERO + self.started.elapsed();
        Now { mono, wall: UnixTime::from_micros(jiff::Timestamp::now().as_microsecond()) }
    }

    async fn wait(self, deadline: Option<Deadline>) {
        match deadline {
            Some(deadline) => tokio::time::sleep_until(self.started + deadline.at.since(Time::ZERO)).await,
            None => std::future::pending().await,
        }
    }
}

/// An answer on its way to a connection.
enum Exchange {
    /// The connection waits for the head.
    Asked(oneshot::Sender<Head>),
    /// The connection takes the body.
    Answering(mpsc::Sender<Bytes>),
}

/// Steps the machine for as long as anybody can ask for something.
pub(super) async fn drive(server: ApiServer, clock: Clock, mut jobs: mpsc::UnboundedReceiver<Job>) {
    let mut driver = Driver { server, tickets: Tickets::new(0), exchanges: BTreeMap::new(), out: Outbox::new() };
    let mut deadline = driver.step(clock.now(), None);
    loop {
        tokio::select! {
            biased;
            job = jobs.recv() => match job {
                Some(job) => deadline = driver.perform(clock.now(), job),
                None => return,
            },
            () = clock.wait(deadline) => deadline = driver.step(clock.now(), None),
        }
    }
}

struct Driver {
    server: ApiServer,
    tickets: Tickets,
    exchanges: BTreeMap<Ticket, Exchange>,
    out: Outbox<HttpEvent>,
}

impl Driver {
    fn perform(&mut self, now: Now, job: Job) -> Option<Deadline> {
        match job {
            Job::Answer { request, head } => {
                let ticket = self.tickets.issue();
                self.exchanges.insert(ticket, Exchange::Asked(head));
                self.step(now, Some(ServerInput::Requested { ticket, request }))
            }
            Job::Forget(ticket) => {
                self.exchanges.remove(&ticket);
                self.step(now, Some(ServerInput::Cancelled { ticket }))
            }
            Job::Act(action) => {
                action(&mut self.server, now, &mut self.out);
                self.step(now, None)
            }
        }
    }

    /// Steps until everything that comes of the input is sent, or known to reach nobody.
    fn step(&mut self, now: Now, input: Option<ServerInput>) -> Option<Deadline> {
        let mut deadline = self.server.step(now, input, &mut self.out);
        while let Some(event) = self.out.pop() {
            let ticket = event.ticket();
            if !self.deliver(event) {
                self.exchanges.remove(&ticket);
                deadline = self.server.step(now, Some(ServerInput::Cancelled { ticket }), &mut self.out);
            }
        }
        deadline
    }

    /// Whether the connection took it. One that is too slow for its watch loses it, as it would at the API server.
    fn deliver(&mut self, event: HttpEvent) -> bool {
        match event {
            HttpEvent::Responded { ticket, status, headers } => {
                let Some(Exchange::Asked(head)) = self.exchanges.remove(&ticket) else { return false };
                let (sender, body) = mpsc::channel(BACKLOG);
                self.exchanges.insert(ticket, Exchange::Answering(sender));
                head.send(Head { ticket, status, headers, body }).is_ok()
            }
            HttpEvent::Received { ticket, bytes } => match self.exchanges.get(&ticket) {
                Some(Exchange::Answering(body)) => body.try_send(bytes).is_ok(),
                _ => false,
            },
            HttpEvent::Closed { ticket, .. } => {
                self.exchanges.remove(&ticket);
                true
            }
        }
    }
}

/// How many pieces of an answer a connection may be behind.
const BACKLOG: usize = 4096;
