//! Machines as their drivers see them: HTTP on one side, what they say besides it on the other.

use crate::call::{Call, CallInput, CallOutput, Retry};
use crate::discovery::{Catalog, Discovery, DiscoveryInput, DiscoveryOutput};
use crate::error::Error;
use crate::exchange::{Answer, HttpEffect, HttpEvent};
use crate::informer::{Informer, InformerEvent, InformerInput, InformerOutput};
use crate::list_watch::{ListWatch, WatchEvent, WatchInput, WatchOutput};
use crate::machine::{Machine, Ticket};
use crate::reconciler::{Reconciled, Reconciler, ReconcilerInput, ReconcilerOutput};
use crate::resource::ResourceKey;

/// A machine whose only effects are HTTP; everything else it says is for the one who drives it.
///
/// ```
/// use cloudcoil_core::{Call, HttpMachine, Machine, Now, Outbox, Requests, Said, Tickets};
/// use cloudcoil_core::{KnownResource, k8s_openapi::api::core::v1::Pod};
///
/// let request = Requests::new(Pod::resource_type(), Some("default")).get("web-0")?;
/// let mut call = Call::new(request.into(), Tickets::new(0));
/// let mut out = Outbox::new();
/// let _ = call.step(Now::default(), None, &mut out);
/// assert!(matches!(out.pop().map(Call::sort), Some(Said::Effect(_))));
/// # Ok::<(), cloudcoil_core::Error>(())
/// ```
pub trait HttpMachine: Machine {
    /// What it says besides effects.
    type Event;

    /// What came of a request, as an input.
    fn hear(event: HttpEvent) -> Self::Input;

    /// Tells effects from everything else.
    fn sort(output: Self::Output) -> Said<Self::Event>;
}

/// What an [`HttpMachine`] has said.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must do both")]
pub enum Said<E> {
    /// Perform this.
    Effect(HttpEffect),
    /// Hand this on.
    Event(E),
}

/// What a [`Call`] says besides effects; see [`CallOutput`].
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must know the end from what comes before it")]
pub enum CallEvent {
    /// An attempt failed, and there will be another.
    Retrying(Retry),
    /// The call is over.
    Done(Result<Answer, Error>),
}

impl HttpMachine for Call {
    type Event = CallEvent;

    fn hear(event: HttpEvent) -> CallInput {
        CallInput::Http(event)
    }

    fn sort(output: CallOutput) -> Said<CallEvent> {
        match output {
            CallOutput::Http(effect) => Said::Effect(effect),
            CallOutput::Retrying(retry) => Said::Event(CallEvent::Retrying(retry)),
            CallOutput::Done(result) => Said::Event(CallEvent::Done(result)),
        }
    }
}

/// What a [`Discovery`] says besides effects; see [`DiscoveryOutput`].
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must know the end from what comes before it")]
pub enum DiscoveryEvent {
    /// An attempt failed, and there will be another.
    Retrying(Retry),
    /// The discovery is over.
    Done(Result<Catalog, Error>),
}

impl HttpMachine for Discovery {
    type Event = DiscoveryEvent;

    fn hear(event: HttpEvent) -> DiscoveryInput {
        DiscoveryInput::Http(event)
    }

    fn sort(output: DiscoveryOutput) -> Said<DiscoveryEvent> {
        match output {
            DiscoveryOutput::Http(effect) => Said::Effect(effect),
            DiscoveryOutput::Retrying(retry) => Said::Event(DiscoveryEvent::Retrying(retry)),
            DiscoveryOutput::Done(result) => Said::Event(DiscoveryEvent::Done(result)),
        }
    }
}

impl HttpMachine for ListWatch {
    type Event = WatchEvent;

    fn hear(event: HttpEvent) -> WatchInput {
        WatchInput::Http(event)
    }

    fn sort(output: WatchOutput) -> Said<WatchEvent> {
        match output {
            WatchOutput::Http(effect) => Said::Effect(effect),
            WatchOutput::Event(event) => Said::Event(event),
        }
    }
}

impl HttpMachine for Informer {
    type Event = InformerEvent;

    fn hear(event: HttpEvent) -> InformerInput {
        InformerInput::Http(event)
    }

    fn sort(output: InformerOutput) -> Said<InformerEvent> {
        match output {
            InformerOutput::Http(effect) => Said::Effect(effect),
            InformerOutput::Event(event) => Said::Event(event),
        }
    }
}

/// What a [`Reconciler`] says besides effects; see [`ReconcilerOutput`].
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must do all of them")]
pub enum ReconcilerEvent {
    /// Run the handler for this key.
    Run {
        /// Names the run.
        ticket: Ticket,
        /// The object's key.
        key: ResourceKey,
    },
    /// Stop the handler.
    Cancel {
        /// Names the run.
        ticket: Ticket,
    },
    /// A pass is over.
    Reconciled(Reconciled),
    /// The cache does not show in time what a pass has written.
    CacheLagged {
        /// The key that is not waited for any longer.
        key: ResourceKey,
    },
    /// Every key is to be looked at.
    Resync,
    /// No handler is running, and none will.
    Stopped,
}

impl HttpMachine for Reconciler {
    type Event = ReconcilerEvent;

    fn hear(event: HttpEvent) -> ReconcilerInput {
        ReconcilerInput::Http(event)
    }

    fn sort(output: ReconcilerOutput) -> Said<ReconcilerEvent> {
        Said::Event(match output {
            ReconcilerOutput::Http(effect) => return Said::Effect(effect),
            ReconcilerOutput::Run { ticket, key } => ReconcilerEvent::Run { ticket, key },
            ReconcilerOutput::Cancel { ticket } => ReconcilerEvent::Cancel { ticket },
            ReconcilerOutput::Reconciled(reconciled) => ReconcilerEvent::Reconciled(reconciled),
            ReconcilerOutput::CacheLagged { key } => ReconcilerEvent::CacheLagged { key },
            ReconcilerOutput::Resync => ReconcilerEvent::Resync,
            ReconcilerOutput::Stopped => ReconcilerEvent::Stopped,
        })
    }
}
