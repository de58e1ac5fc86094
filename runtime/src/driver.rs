//! The one async loop: step a machine, perform what it asks for, wait for an input or its deadline.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use cloudcoil_core::record::Recorded;
use cloudcoil_core::{Deadline, HttpEvent, HttpMachine, Outbox, Said, Time};
use futures_channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;

use crate::exchanges::Exchanges;
use crate::plain::Recording;
use crate::{Client, Runtime};

/// Runs a machine that others have a say in.
pub(crate) struct Driver<M: HttpMachine, C> {
    turning: Loop<M>,
    mail: UnboundedReceiver<C>,
}

/// What a driver hands on.
pub(crate) enum Turn<E, C> {
    Event(E),
    Command(C),
}

impl<M: HttpMachine + Recorded, C> Driver<M, C> {
    pub(crate) fn new(machine: M, client: &Client, mailbox: Mailbox<C>) -> Self {
        Self { turning: Loop::new(machine, client), mail: mailbox.receiver }
    }

    /// The next event or command, however long it takes.
    pub(crate) async fn turn(&mut self) -> Turn<M::Event, C> {
        poll_fn(|context| match self.mail.poll_next_unpin(context) {
            Poll::Ready(Some(command)) => Poll::Ready(Turn::Command(command)),
            // Where nobody is left who could command anything, the machine goes on.
            Poll::Ready(None) | Poll::Pending => self.turning.poll_event(context).map(Turn::Event),
        })
        .await
    }

    /// The next of the events that are there already.
    pub(crate) fn pending(&mut self) -> Option<M::Event> {
        self.turning.pending()
    }

    /// Hands the machine an input that does not come from the network.
    pub(crate) fn step(&mut self, input: Option<M::Input>) {
        self.turning.step(input);
    }
}

/// Tells a driver something from another task.
pub(crate) struct Commands<C>(UnboundedSender<C>);

impl<C> Commands<C> {
    /// One that has ended hears nothing.
    pub(crate) fn send(&self, command: C) {
        let _ = self.0.unbounded_send(command);
    }
}

impl<C> Clone for Commands<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// Where a driver hears of commands.
pub(crate) struct Mailbox<C> {
    sender: UnboundedSender<C>,
    receiver: UnboundedReceiver<C>,
}

impl<C> Mailbox<C> {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = unbounded();
        Self { sender, receiver }
    }

    pub(crate) fn commands(&self) -> Commands<C> {
        Commands(self.sender.clone())
    }
}

/// What a machine says that nobody else has a say in.
pub(crate) struct Events<M: HttpMachine>(Option<Loop<M>>);

impl<M: HttpMachine + Recorded> Events<M> {
    pub(crate) fn new(client: &Client, machine: M) -> Self {
        Self(Some(Loop::new(machine, client)))
    }

    /// The next event; `None` after the end. Can be dropped while it waits: nothing is lost.
    pub(crate) async fn next(&mut self) -> Option<M::Event> {
        let turning = self.0.as_mut()?;
        Some(poll_fn(|context| turning.poll_event(context)).await)
    }

    /// Drops the machine, and what is in flight.
    pub(crate) fn end(&mut self) {
        self.0 = None;
    }
}

/// Runs a machine for whoever polls it, and only then. Dropping it drops what is in flight.
struct Loop<M: HttpMachine> {
    machine: M,
    port: Port,
    out: Outbox<M::Output>,
    deadline: Option<Deadline>,
    recording: Recording,
    turns: u32,
}

impl<M: HttpMachine + Recorded> Loop<M> {
    fn new(machine: M, client: &Client) -> Self {
        let (port, recording) = (Port::new(client), client.recording::<M>());
        Self { deadline: machine.deadline(), machine, port, out: Outbox::new(), recording, turns: 0 }
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<M::Event> {
        loop {
            if self.turns >= MAX_TURNS {
                self.turns = 0;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            self.turns += 1;
            if let Some(event) = self.pending() {
                return Poll::Ready(event);
            }
            match self.port.poll(context, self.deadline) {
                Poll::Ready(input) => self.step(input.map(M::hear)),
                Poll::Pending => {
                    self.turns = 0;
                    return Poll::Pending;
                }
            }
        }
    }

    /// The next of the events that are there already.
    fn pending(&mut self) -> Option<M::Event> {
        while let Some(output) = self.out.pop() {
            match M::sort(output) {
                Said::Effect(effect) => self.port.exchanges.perform(effect),
                Said::Event(event) => return Some(event),
            }
        }
        None
    }

    /// Hands the machine an input that does not come from the network, or lets it look at the clock.
    fn step(&mut self, input: Option<M::Input>) {
        let now = self.port.runtime.now();
        self.deadline = self.recording.step(&mut self.machine, now, input, &mut self.out);
    }
}

/// Where a driver waits.
struct Port {
    runtime: Arc<dyn Runtime>,
    exchanges: Exchanges,
    sleep: Option<(Time, BoxFuture<'static, ()>)>,
}

impl Port {
    fn new(client: &Client) -> Self {
        Self { runtime: client.runtime().clone(), exchanges: Exchanges::new(client), sleep: None }
    }

    /// The next thing heard from the network, or `None` when it is time to look at the clock.
    fn poll(&mut self, context: &mut Context<'_>, deadline: Option<Deadline>) -> Poll<Option<HttpEvent>> {
        match self.exchanges.poll_event(context) {
            Poll::Ready(event) => Poll::Ready(Some(event)),
            Poll::Pending => self.poll_deadline(context, deadline).map(|()| None),
        }
    }

    /// A sleep that ends too early is kept rather than made anew for each later deadline: the machine compares clocks.
    fn poll_deadline(&mut self, context: &mut Context<'_>, deadline: Option<Deadline>) -> Poll<()> {
        let Some(Deadline { at, .. }) = deadline else {
            self.sleep = None;
            return Poll::Pending;
        };
        if at <= self.runtime.now().mono {
            return Poll::Ready(());
        }
        if self.sleep.as_ref().is_none_or(|(until, _)| *until > at) {
            self.sleep = Some((at, self.runtime.sleep_until(at)));
        }
        let (_, sleep) = self.sleep.as_mut().expect("set above");
        ready!(Pin::new(sleep).poll(context));
        self.sleep = None;
        Poll::Ready(())
    }
}

/// Inputs taken, or events said, in a row before other tasks have their turn.
const MAX_TURNS: u32 = 64;
