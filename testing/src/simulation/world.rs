//! Processes, a network and an API server, in virtual time.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use cloudcoil_apiserver::{ApiServer, ServerInput};
use cloudcoil_core::{
    Answer, Deadline, HttpEffect, HttpEvent, HttpRequest, Machine, NetworkError, NetworkErrorKind, Now, Outbox, Ticket,
    Tickets, Time, UnixTime,
};

use super::network::{End, Fate, Faults, Interposed, Network, Passage};

/// A process in the simulation: one or more machines whose only way out is HTTP.
pub trait Process {
    /// Starts, hears one thing, or looks at the clock; asks for what it wants, and says when it wants to be looked at.
    fn step(&mut self, now: Now, heard: Option<HttpEvent>, out: &mut Outbox<HttpEffect>) -> Option<Deadline>;
}

/// A world that jumps from one thing that happens to the next. The same seed and the same calls give the same run.
///
/// The server is an [`ApiServer`], or any machine that hears the same and says the same, such as one that follows a script.
pub struct World<P, S = ApiServer> {
    /// When it began: the wall clock is reckoned from there, so that rounding does not add up.
    began: Now,
    now: Now,
    server: S,
    network: Network,
    processes: Vec<Slot<P>>,
    under_way: BTreeMap<(Time, u64), Event>,
    sequence: u64,
    tickets: Tickets,
    connections: BTreeMap<Ticket, Connection>,
    trace: Trace,
}

struct Slot<P> {
    process: P,
    deadline: Option<Deadline>,
    incarnation: u32,
    /// How far its wall clock is off, in seconds.
    skew: i64,
    /// Until when it stands still, and what it will hear then.
    paused: Option<(Time, VecDeque<HttpEvent>)>,
}

enum Event {
    Arrive { connection: Ticket, request: HttpRequest },
    Leave { connection: Ticket },
    Reach { process: usize, incarnation: u32, event: HttpEvent },
}

struct Connection {
    process: usize,
    incarnation: u32,
    ticket: Ticket,
    passage: Passage,
    passed: usize,
    /// When what was sent last arrives; nothing sent later arrives earlier.
    clear_at: Time,
}

/// What happened, as a number: two equal ones are two equal runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    steps: u64,
    hash: u64,
}

impl Trace {
    /// How many things happened.
    pub const fn steps(self) -> u64 {
        self.steps
    }

    fn add(&mut self, what: impl Hash) {
        let mut hasher = DefaultHasher::new();
        (self.hash, self.steps, what).hash(&mut hasher);
        *self = Self { steps: self.steps + 1, hash: hasher.finish() };
    }
}

impl<P, S> World<P, S>
where
    P: Process,
    S: Machine<Input = ServerInput, Output = HttpEvent>,
{
    /// A world around a server, with no process yet.
    pub fn new(server: S, now: Now, faults: Faults, seed: u64) -> Self {
        Self {
            began: now,
            now,
            server,
            network: Network::new(faults, seed),
            processes: Vec::new(),
            under_way: BTreeMap::new(),
            sequence: 0,
            tickets: Tickets::new(0),
            connections: BTreeMap::new(),
            trace: Trace::default(),
        }
    }

    /// Starts a process whose wall clock is off by `skew` seconds, and answers its number.
    pub fn start(&mut self, process: P, skew: i64) -> usize {
        self.processes.push(Slot { process, deadline: None, incarnation: 0, skew, paused: None });
        let number = self.processes.len() - 1;
        self.step_process(number, None);
        number
    }

    /// Kills a process in the middle of whatever it does, and starts another in its place.
    pub fn replace(&mut self, number: usize, process: P) {
        self.disconnect(number);
        let slot = &mut self.processes[number];
        *slot = Slot { process, deadline: None, incarnation: slot.incarnation + 1, skew: slot.skew, paused: None };
        self.step_process(number, None);
    }

    /// Everything that goes on between a process and the server ends, as when a machine loses its power.
    fn disconnect(&mut self, number: usize) {
        let gone: Vec<_> =
            self.connections.iter().filter(|(_, open)| open.process == number).map(|(ticket, _)| *ticket).collect();
        for connection in gone {
            self.drop_connection(connection);
        }
    }

    /// Lets a process stand still for a while: it hears nothing, and its timers fire late.
    pub fn pause(&mut self, number: usize, duration: Duration) {
        let until = self.now.mono + duration;
        let heard = self.processes[number].paused.take().map(|(_, heard)| heard).unwrap_or_default();
        self.processes[number].paused = Some((until, heard));
    }

    /// Another weather from now on.
    pub const fn set_faults(&mut self, faults: Faults) {
        self.network.faults = faults;
    }

    /// The server, to look at.
    pub const fn server(&self) -> &S {
        &self.server
    }

    /// Does something to the server behind everybody's back.
    pub fn with_server(&mut self, act: impl FnOnce(&mut S, Now, &mut Outbox<HttpEvent>)) {
        let mut out = Outbox::new();
        act(&mut self.server, self.now, &mut out);
        self.carry(out);
        self.step_server(None);
    }

    /// Has the server answer a request that comes from nowhere, at once, and answers its code.
    pub fn request(&mut self, request: HttpRequest) -> u16 {
        self.answer(request).map_or(0, |answer| answer.status.as_u16())
    }

    /// As [`request`](Self::request), with the whole answer; `None` if the server does not answer at once.
    pub fn answer(&mut self, request: HttpRequest) -> Option<Answer> {
        let ticket = self.tickets.issue();
        let (mut out, mut others) = (Outbox::new(), Outbox::new());
        let _ = self.server.step(self.now, Some(ServerInput::Requested { ticket, request }), &mut out);
        let mut answer = None;
        for event in out {
            match event {
                event if event.ticket() != ticket => others.push(event),
                HttpEvent::Responded { status, headers, .. } => answer = Some(Answer::new(status, headers)),
                HttpEvent::Received { bytes, .. } => answer.iter_mut().for_each(|answer| answer.receive(&bytes)),
                HttpEvent::Closed { .. } => {}
            }
        }
        self.carry(others);
        answer
    }

    /// Lets a process look about, as when something was put into it from outside; one that is paused does so in the end.
    pub fn nudge(&mut self, number: usize) {
        if self.processes[number].paused.is_none() {
            self.step_process(number, None);
        }
    }

    /// A process, to look at.
    pub fn process(&self, number: usize) -> &P {
        &self.processes[number].process
    }

    /// The time.
    pub const fn now(&self) -> Now {
        self.now
    }

    /// What has happened so far.
    pub const fn trace(&self) -> Trace {
        self.trace
    }

    /// Lets `duration` pass.
    ///
    /// # Panics
    /// If so much happens in it that something must be going round in circles.
    pub fn run_for(&mut self, duration: Duration) {
        let end = self.now.mono + duration;
        let limit = self.trace.steps + MAX_STEPS;
        while let Some((at, next)) = self.next().filter(|(at, _)| *at <= end) {
            self.pass_time(at);
            self.happen(next);
            assert!(self.trace.steps < limit, "{MAX_STEPS} steps within {duration:?}: something goes round in circles");
        }
        self.pass_time(end);
    }

    /// Lets time pass until `done`, which is asked before anything happens and after each thing that did; answers `false` when that
    /// is not within `limit`, or when nothing can happen any more.
    ///
    /// # Panics
    /// As [`run_for`](Self::run_for).
    pub fn run_until(&mut self, limit: Duration, mut done: impl FnMut(&Self) -> bool) -> bool {
        let end = self.now.mono + limit;
        let most = self.trace.steps + MAX_STEPS;
        while !done(self) {
            let Some((at, next)) = self.next().filter(|(at, _)| *at <= end) else { return false };
            self.pass_time(at);
            self.happen(next);
            assert!(self.trace.steps < most, "{MAX_STEPS} steps within {limit:?}: something goes round in circles");
        }
        true
    }

    fn pass_time(&mut self, until: Time) {
        // What was due at an earlier time happens now: time never goes back.
        let until = until.max(self.now.mono);
        self.now = self.began.after(until.since(self.began.mono));
    }

    fn next(&self) -> Option<(Time, Next)> {
        let under_way = self.under_way.keys().next().map(|key| (key.0, Next::Event));
        let server = self.server.deadline().map(|deadline| (deadline.at, Next::Server));
        let processes = self.processes.iter().enumerate().filter_map(|(number, slot)| match &slot.paused {
            Some((until, _)) => Some((*until, Next::Process(number))),
            None => slot.deadline.map(|deadline| (deadline.at, Next::Process(number))),
        });
        under_way.into_iter().chain(server).chain(processes).min_by_key(|(at, _)| *at)
    }

    fn happen(&mut self, next: Next) {
        self.trace.add((self.now.mono, next));
        match next {
            Next::Server => self.step_server(None),
            Next::Process(number) => self.wake(number),
            Next::Event => match self.under_way.pop_first() {
                Some((_, Event::Arrive { connection, request })) => {
                    self.trace.add((request.inner().method(), request.inner().uri()));
                    self.step_server(Some(ServerInput::Requested { ticket: connection, request }));
                }
                Some((_, Event::Leave { connection })) => {
                    self.step_server(Some(ServerInput::Cancelled { ticket: connection }));
                }
                Some((_, Event::Reach { process, incarnation, event })) => self.reach(process, incarnation, event),
                None => {}
            },
        }
    }

    /// Ends a pause, if there is one, and lets the process look at the clock.
    fn wake(&mut self, number: usize) {
        match self.processes[number].paused.take() {
            None => self.step_process(number, None),
            Some((_, heard)) => {
                for event in heard {
                    self.step_process(number, Some(event));
                }
                self.step_process(number, None);
            }
        }
    }

    fn reach(&mut self, number: usize, incarnation: u32, event: HttpEvent) {
        let slot = &mut self.processes[number];
        if slot.incarnation != incarnation {
            return;
        }
        if let Some((_, heard)) = &mut slot.paused {
            heard.push_back(event);
            return;
        }
        if let HttpEvent::Received { bytes, .. } = &event {
            self.trace.add(bytes);
        }
        self.step_process(number, Some(event));
    }

    fn step_process(&mut self, number: usize, heard: Option<HttpEvent>) {
        let mut out = Outbox::new();
        let slot = &mut self.processes[number];
        let wall = UnixTime::from_micros(self.now.wall.as_micros() + slot.skew * 1_000_000);
        slot.deadline = slot.process.step(Now { wall, ..self.now }, heard, &mut out);
        for effect in out {
            match effect {
                HttpEffect::Send { ticket, request } => self.send(number, ticket, request),
                HttpEffect::Cancel { ticket } => {
                    let open =
                        self.connections.iter().find(|(_, open)| open.process == number && open.ticket == ticket);
                    if let Some(connection) = open.map(|(connection, _)| *connection) {
                        self.drop_connection(connection);
                    }
                }
            }
        }
    }

    fn drop_connection(&mut self, connection: Ticket) {
        self.connections.remove(&connection);
        let latency = self.network.latency();
        self.later(self.now.mono + latency, Event::Leave { connection });
    }

    fn send(&mut self, process: usize, ticket: Ticket, request: HttpRequest) {
        let incarnation = self.processes[process].incarnation;
        let at = self.now.mono + self.network.latency();
        match self.network.fate() {
            Fate::Lost => {}
            Fate::Refused => {
                let error = NetworkError::new(NetworkErrorKind::Connect, "connection refused");
                let event = HttpEvent::Closed { ticket, result: Err(error) };
                self.later(at, Event::Reach { process, incarnation, event });
            }
            Fate::Interposed(answer) => self.interpose(process, incarnation, ticket, answer, at),
            Fate::Delivered { twice, answer: passage } => {
                if twice {
                    let connection = self.tickets.issue();
                    self.later(self.now.mono, Event::Arrive { connection, request: request.clone() });
                    self.later(at, Event::Leave { connection });
                }
                let connection = self.tickets.issue();
                let open = Connection { process, incarnation, ticket, passage, passed: 0, clear_at: at };
                self.connections.insert(connection, open);
                self.later(at, Event::Arrive { connection, request });
            }
        }
    }

    fn interpose(&mut self, process: usize, incarnation: u32, ticket: Ticket, answer: Interposed, at: Time) {
        let Interposed { status, headers, body } = answer;
        let events = [
            HttpEvent::Responded { ticket, status, headers },
            HttpEvent::Received { ticket, bytes: body.into() },
            HttpEvent::Closed { ticket, result: Ok(()) },
        ];
        for event in events {
            self.later(at, Event::Reach { process, incarnation, event });
        }
    }

    fn step_server(&mut self, input: Option<ServerInput>) {
        let mut out = Outbox::new();
        let _ = self.server.step(self.now, input, &mut out);
        self.carry(out);
    }

    /// Sends what the server says on its way.
    fn carry(&mut self, out: Outbox<HttpEvent>) {
        for event in out {
            let connection = event.ticket();
            let Some(Connection { ticket, passage, passed, .. }) = self.connections.get(&connection) else { continue };
            let (ticket, passage, passed) = (*ticket, *passage, *passed);
            match (event, passage) {
                (HttpEvent::Responded { .. }, Passage::Until { bytes: 0, end }) => self.break_off(connection, end),
                (HttpEvent::Responded { status, headers, .. }, _) => {
                    self.pass(connection, HttpEvent::Responded { ticket, status, headers });
                }
                (HttpEvent::Received { bytes, .. }, Passage::Until { bytes: most, end })
                    if passed + bytes.len() > most =>
                {
                    self.pass_bytes(connection, ticket, &bytes.slice(..most - passed));
                    self.break_off(connection, end);
                }
                (HttpEvent::Received { bytes, .. }, _) => self.pass_bytes(connection, ticket, &bytes),
                (HttpEvent::Closed { result, .. }, _) => {
                    self.pass(connection, HttpEvent::Closed { ticket, result });
                    self.connections.remove(&connection);
                }
            }
        }
    }

    fn pass_bytes(&mut self, connection: Ticket, ticket: Ticket, bytes: &bytes::Bytes) {
        let mut from = 0;
        for length in self.network.pieces(bytes.len()) {
            let piece = bytes.slice(from..from + length);
            self.pass(connection, HttpEvent::Received { ticket, bytes: piece });
            from += length;
        }
    }

    fn pass(&mut self, connection: Ticket, event: HttpEvent) {
        let at = self.now.mono + self.network.latency();
        let Some(open) = self.connections.get_mut(&connection) else { return };
        open.clear_at = open.clear_at.max(at);
        if let HttpEvent::Received { bytes, .. } = &event {
            open.passed += bytes.len();
        }
        let (at, process, incarnation) = (open.clear_at, open.process, open.incarnation);
        self.later(at, Event::Reach { process, incarnation, event });
    }

    fn break_off(&mut self, connection: Ticket, end: End) {
        let Some(Connection { ticket, .. }) = self.connections.get(&connection) else { return };
        let (ticket, lost) = (*ticket, NetworkError::new(NetworkErrorKind::Lost, "connection reset by peer"));
        match end {
            End::Reset => self.pass(connection, HttpEvent::Closed { ticket, result: Err(lost) }),
            End::Cut => self.pass(connection, HttpEvent::Closed { ticket, result: Ok(()) }),
            End::Hush => {}
        }
        self.drop_connection(connection);
    }

    fn later(&mut self, at: Time, event: Event) {
        self.sequence += 1;
        self.under_way.insert((at, self.sequence), event);
    }
}

#[derive(Clone, Copy, Debug, Hash)]
enum Next {
    Event,
    Server,
    Process(usize),
}

const MAX_STEPS: u64 = 1_000_000;
