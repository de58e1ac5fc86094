//! The one async loop: step a machine, perform what it asks for, wait for an input or its deadline.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use cloudcoil_core::record::Recorded;
use cloudcoil_core::{Deadline, HttpEvent, HttpMachine, Outbox, Said, Time};
use futures_util::future::BoxFuture;

use crate::Runtime;
use crate::exchanges::Exchanges;
use crate::record::{Recorder, Recording};

/// Runs a machine for whoever polls it, and only then. Dropping it drops what is in flight.
pub(crate) struct Driver<M: HttpMachine> {
    machine: M,
    port: Port,
    out: Outbox<M::Output>,
    deadline: Option<Deadline>,
    recording: Recording,
    turns: u32,
}

impl<M: HttpMachine + Recorded> Driver<M> {
    pub(crate) fn new(machine: M, port: Port) -> Self {
        let recording = Recording::new::<M>(port.recorder.as_ref());
        Self { deadline: machine.deadline(), machine, port, out: Outbox::new(), recording, turns: 0 }
    }

    /// The next event. Can be dropped while it waits: nothing is lost.
    pub(crate) async fn event(&mut self) -> M::Event {
        poll_fn(|context| self.poll_event(context)).await
    }

    pub(crate) fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<M::Event> {
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
    pub(crate) fn pending(&mut self) -> Option<M::Event> {
        while let Some(output) = self.out.pop() {
            match M::sort(output) {
                Said::Effect(effect) => self.port.exchanges.perform(effect),
                Said::Event(event) => return Some(event),
            }
        }
        None
    }

    /// Hands the machine an input that does not come from the network, or lets it look at the clock.
    pub(crate) fn step(&mut self, input: Option<M::Input>) {
        let now = self.port.runtime.now();
        self.deadline = self.recording.step(&mut self.machine, now, input, &mut self.out);
    }
}

/// Where a driver waits.
pub(crate) struct Port {
    runtime: Arc<dyn Runtime>,
    exchanges: Exchanges,
    recorder: Option<Recorder>,
    sleep: Option<(Time, BoxFuture<'static, ()>)>,
}

impl Port {
    pub(crate) fn new(runtime: Arc<dyn Runtime>, exchanges: Exchanges, recorder: Option<Recorder>) -> Self {
        Self { runtime, exchanges, recorder, sleep: None }
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
