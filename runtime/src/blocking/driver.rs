//! The one blocking loop: step a machine, perform what it asks for, wait for an input or its deadline.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};

use cloudcoil_core::record::Recorded;
use cloudcoil_core::{Deadline, HttpEvent, HttpMachine, Outbox, Said};

use super::Client;
use super::clock::Clock;
use super::exchanges::Exchanges;
use super::group::Member;
use super::stop::{Stop, StopHandle};
use crate::plain::Recording;

/// What arrives at a driver.
pub(crate) enum Letter<C> {
    /// Something came of a request.
    Http(HttpEvent),
    /// Somebody else wants something.
    Command(C),
}

/// What a driver hands on.
pub(crate) enum Turn<E, C> {
    Event(E),
    Command(C),
}

/// Tells a driver something from another thread.
pub(crate) struct Commands<C>(Sender<Letter<C>>);

impl<C> Commands<C> {
    /// One that has ended hears nothing.
    pub(crate) fn send(&self, command: C) {
        let _ = self.0.send(Letter::Command(command));
    }
}

impl<C> Clone for Commands<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// Where a driver gets its letters.
pub(crate) struct Mailbox<C> {
    sender: Sender<Letter<C>>,
    receiver: Receiver<Letter<C>>,
}

impl<C> Mailbox<C> {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = channel();
        Self { sender, receiver }
    }

    pub(crate) fn commands(&self) -> Commands<C> {
        Commands(self.sender.clone())
    }
}

/// What a machine says, until it is stopped.
pub(crate) struct Events<M: HttpMachine> {
    /// Until the end.
    driver: Option<Driver<M, Stop>>,
    stop: StopHandle,
    _member: Option<Member>,
}

impl<M: HttpMachine + Recorded> Events<M> {
    pub(crate) fn new(client: &Client, machine: M) -> Self {
        let mailbox = Mailbox::new();
        let stop = StopHandle::new(mailbox.commands());
        let given_up = stop.clone();
        let member = client.link.group.as_ref().map(|group| group.join(move || given_up.stop()));
        Self { driver: Some(Driver::new(machine, client, mailbox)), stop, _member: member }
    }

    /// The next event; `None` after the end, and when it was stopped.
    pub(crate) fn next(&mut self) -> Option<M::Event> {
        match self.driver.as_mut()?.turn() {
            Turn::Event(event) => Some(event),
            Turn::Command(Stop) => {
                self.end();
                None
            }
        }
    }

    /// Gives up what is in flight.
    pub(crate) fn end(&mut self) {
        self.driver = None;
    }

    pub(crate) fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }
}

/// Runs a machine on the thread that calls it, and only then. Dropping it gives up what is in flight.
pub(crate) struct Driver<M: HttpMachine, C> {
    machine: M,
    clock: Clock,
    mail: Receiver<Letter<C>>,
    exchanges: Exchanges<C>,
    out: Outbox<M::Output>,
    deadline: Option<Deadline>,
    recording: Recording,
}

impl<M: HttpMachine + Recorded, C: Send + 'static> Driver<M, C> {
    pub(crate) fn new(machine: M, client: &Client, mailbox: Mailbox<C>) -> Self {
        let clock = client.clock();
        let exchanges = Exchanges::new(client, mailbox.sender);
        let (deadline, recording) = (machine.deadline(), client.recording::<M>());
        Self { machine, clock, mail: mailbox.receiver, exchanges, out: Outbox::new(), deadline, recording }
    }

    /// The next event or command, however long it takes.
    pub(crate) fn turn(&mut self) -> Turn<M::Event, C> {
        loop {
            if let Some(event) = self.pending() {
                return Turn::Event(event);
            }
            match self.wait() {
                None => self.step(None),
                Some(Letter::Command(command)) => return Turn::Command(command),
                Some(Letter::Http(event)) => {
                    if self.exchanges.taken(&event) {
                        self.step(Some(M::hear(event)));
                    }
                }
            }
        }
    }

    /// The next of the events that are there already.
    pub(crate) fn pending(&mut self) -> Option<M::Event> {
        while let Some(output) = self.out.pop() {
            match M::sort(output) {
                Said::Effect(effect) => self.exchanges.perform(effect),
                Said::Event(event) => return Some(event),
            }
        }
        None
    }

    /// Hands the machine an input that does not come from the network, or lets it look at the clock.
    pub(crate) fn step(&mut self, input: Option<M::Input>) {
        self.deadline = self.recording.step(&mut self.machine, self.clock.now(), input, &mut self.out);
    }

    /// The next letter, or `None` when it is time to look at the clock.
    fn wait(&self) -> Option<Letter<C>> {
        let received = match self.deadline {
            Some(deadline) => self.mail.recv_timeout(deadline.at.since(self.clock.now().mono)),
            None => self.mail.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match received {
            Ok(letter) => Some(letter),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => unreachable!("the exchanges hold a sender"),
        }
    }
}
