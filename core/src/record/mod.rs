//! What machines hear and say, put down step by step: to be attached to the report of a fault, and to compare two runs.
//!
//! No body is put down, nor what is in objects: of requests, answers and events the log tells the kind, the names and how
//! long they are, so that it can be shown to others.

mod described;
mod digest;
mod machines;
#[cfg(test)]
mod tests;
mod trace;

use std::fmt;

use bytes::Bytes;

use crate::machine::{Deadline, Machine, Outbox, Ticket};
use crate::time::Now;

pub use trace::{Difference, Trace};

/// A machine that can tell what it hears and says in a way that may be shown to others.
pub trait Recorded: Machine {
    /// What machines of this type are called.
    const NAME: &'static str;

    /// An input, as it may be shown.
    fn heard(input: &Self::Input) -> Entry;

    /// An output, as it may be shown.
    fn said(output: &Self::Output) -> Entry;
}

/// One machine of those that are recorded: `Call 3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_structs, reason = "whoever numbers machines makes it")]
pub struct Instance {
    /// What machines of its type are called.
    pub kind: &'static str,
    /// Its number among those of its type, in the order in which they were made, from 1.
    pub number: u32,
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.number)
    }
}

/// One step of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// Which machine.
    pub machine: Instance,
    /// When.
    pub now: Now,
    /// What it heard; `None` when it looked at the clock.
    pub input: Option<Entry>,
    /// What it said, in this order.
    pub outputs: Vec<Entry>,
    /// Until when it waits now, and why, unless something comes before.
    pub deadline: Option<Deadline>,
}

/// Steps a machine, and hands `record` what it heard and said: a step of its own for timers that are due, and one for the
/// input. What the machine does is what [`Machine::step`] would have done.
///
/// ```
/// use cloudcoil_core::record::{Instance, Trace, step};
/// use cloudcoil_core::{Call, KnownResource, Now, Outbox, Requests, Tickets, k8s_openapi::api::core::v1::Pod};
///
/// let request = Requests::new(Pod::resource_type(), Some("default")).get("web-0")?;
/// let mut call = Call::new(request.into(), Tickets::new(0));
/// let (name, mut trace, mut out) = (Instance { kind: "Call", number: 1 }, Trace::new(), Outbox::new());
/// let _ = step(&mut call, name, Now::default(), None, &mut out, |step| trace.record(&step));
/// assert_eq!(trace.lines()[1], "Call 1 > Send #1 GET /api/v1/namespaces/default/pods/web-0 accept: application/json");
/// # Ok::<(), cloudcoil_core::Error>(())
/// ```
#[must_use = "wait until this deadline, or for the next input"]
pub fn step<M: Recorded>(
    machine: &mut M,
    name: Instance,
    now: Now,
    input: Option<M::Input>,
    out: &mut Outbox<M::Output>,
    mut record: impl FnMut(Step),
) -> Option<Deadline> {
    let mut deadline = machine.deadline();
    // Which of the two a timer fires with depends on how late it is, so it always fires alone.
    let is_due = deadline.is_some_and(|deadline| deadline.at <= now.mono);
    for input in [is_due.then_some(None), input.map(Some)].into_iter().flatten() {
        let (heard, before) = (input.as_ref().map(M::heard), out.len());
        deadline = machine.step(now, input, out);
        let outputs = out.iter().skip(before).map(M::said).collect();
        record(Step { machine: name, now, input: heard, outputs, deadline });
    }
    deadline
}

/// Something that a machine heard or said.
///
/// What is equal wherever the same happens is in its name, text and body; its detail may be worded otherwise on another
/// adapter, or differ with the time.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    name: &'static str,
    ticket: Option<Ticket>,
    text: String,
    detail: String,
    body: Option<Bytes>,
}

impl Entry {
    /// Something of this name, such as `Send`.
    pub const fn new(name: &'static str) -> Self {
        Self { name, ticket: None, text: String::new(), detail: String::new(), body: None }
    }

    /// The same, about this exchange or run.
    #[must_use]
    pub fn ticket(self, ticket: Ticket) -> Self {
        Self { ticket: Some(ticket), ..self }
    }

    /// The same, and what else there is to say that does not depend on time and adapter, and may be shown to others.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        Self { text: text.into(), ..self }
    }

    /// The same, and what else there is to say that may depend on time and adapter. It must do no harm to show it.
    #[must_use]
    pub fn detail(self, detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), ..self }
    }

    /// The same, carrying these bytes, which are never shown.
    #[must_use]
    pub fn body(self, body: Bytes) -> Self {
        Self { body: Some(body), ..self }
    }

    /// What it is.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The exchange or run that it is about.
    pub const fn about(&self) -> Option<Ticket> {
        self.ticket
    }

    /// The bytes that it carries, as they are. They may hold secrets: a [`Trace`] shows nothing of them but how many there are.
    pub const fn bytes(&self) -> Option<&Bytes> {
        self.body.as_ref()
    }

    /// Whether it is a piece of a body, which is cut anywhere.
    fn is_piece(&self) -> bool {
        self.name == PIECE
    }
}

/// For people, with everything but the bytes.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        if let Some(ticket) = self.ticket {
            write!(f, " #{}.{}", ticket.machine(), ticket.effect())?;
        }
        if !self.text.is_empty() {
            write!(f, " {}", self.text)?;
        }
        if let Some(body) = self.body.as_ref().filter(|body| !body.is_empty()) {
            write!(f, ", {} bytes", body.len())?;
        }
        if self.detail.is_empty() { Ok(()) } else { write!(f, " ({})", self.detail) }
    }
}

/// As it is displayed, so that no log shows the bytes.
impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// What a piece of a body is called.
const PIECE: &str = "Received";
