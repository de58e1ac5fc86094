//! Steps one after the other, as text and for comparing.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

use super::digest::Digest;
use super::{Entry, Instance, Step};
use crate::machine::{Deadline, Ticket};
use crate::time::Now;

/// What machines heard and said, one step after the other.
///
/// Displayed, it tells what happened when: attach that to the report of a fault. It holds the paths of requests, names, codes
/// and the sizes of bodies, and what servers and handlers say of failures; no credentials, no headers but harmless ones, no body
/// and nothing of what is in objects.
///
/// [`lines`](Self::lines) tells the same for each machine alone and without times, so that two runs can be
/// [compared](Self::difference): they are equal if the same happened on another executor, at another time, or with answers that
/// came in other pieces.
///
/// ```
/// use cloudcoil_core::record::{Instance, Trace, step};
/// use cloudcoil_core::{Call, CallInput, KnownResource, Now, Outbox, Requests, Tickets};
/// use cloudcoil_core::k8s_openapi::api::core::v1::Secret;
///
/// let run = |name: &str| {
///     let request = Requests::new(Secret::resource_type(), Some("default")).get(name).unwrap();
///     let mut call = Call::new(request.into(), Tickets::new(0));
///     let (call_1, mut trace, mut out) = (Instance { kind: "Call", number: 1 }, Trace::new(), Outbox::new());
///     for input in [None, Some(CallInput::Cancelled)] {
///         let _ = step(&mut call, call_1, Now::default(), input, &mut out, |step| trace.record(&step));
///     }
///     trace
/// };
/// assert!(run("token").difference(&run("token")).is_none());
/// let difference = run("token").difference(&run("other")).unwrap();
/// assert!(difference.here.unwrap().contains("/secrets/token") && difference.there.unwrap().contains("/secrets/other"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Trace {
    steps: VecDeque<Kept>,
    limit: Option<usize>,
    dropped: u64,
    runs: BTreeMap<Instance, Run>,
}

impl Trace {
    /// A trace that keeps every step.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, keeping the last steps alone.
    #[must_use]
    pub fn limited(mut self, steps: usize) -> Self {
        self.limit = Some(steps);
        self.make_room();
        self
    }

    /// Adds a step. Of bodies it keeps the size and a fingerprint.
    pub fn record(&mut self, step: &Step) {
        let input = step.input.as_ref().map(|entry| match entry.is_piece() {
            true => Shown { body: Some(self.continued(step.machine, entry)), ..Shown::new(entry) },
            false => Shown::new(entry),
        });
        let outputs: Vec<_> = step.outputs.iter().map(Shown::new).collect();
        let kept = Kept { machine: step.machine, now: step.now, input, outputs, deadline: step.deadline };
        if !kept.is_idle() && !kept.is_piece() {
            self.runs.remove(&step.machine);
        }
        self.steps.push_back(kept);
        self.make_room();
    }

    /// The fingerprint of a piece of a body with all pieces that came right before it.
    fn continued(&mut self, machine: Instance, piece: &Entry) -> Digest {
        let number = self.dropped + self.steps.len() as u64;
        let run = self.runs.remove(&machine).filter(|run| run.ticket == piece.ticket);
        let mut digest = run.map_or(Digest::new(), |run| run.digest);
        digest.push(piece.body.as_deref().unwrap_or_default());
        self.runs.insert(machine, Run { ticket: piece.ticket, digest: digest.clone(), last: number });
        digest
    }

    fn make_room(&mut self) {
        while self.limit.is_some_and(|limit| self.steps.len() > limit) {
            let oldest = self.steps.pop_front().map(|step| step.machine);
            // A machine that was given up in the midst of a body says nothing more.
            if let Some(machine) = oldest
                && self.runs.get(&machine).is_some_and(|run| run.last <= self.dropped)
            {
                self.runs.remove(&machine);
            }
            self.dropped += 1;
        }
    }

    #[cfg(test)]
    pub(super) fn has_forgotten_all_but(&self, machines: usize) -> bool {
        self.runs.len() <= machines
    }

    /// How many steps it holds.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether it holds no step.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The steps of those machines alone.
    #[must_use]
    pub fn only(mut self, keep: impl Fn(Instance) -> bool) -> Self {
        self.steps.retain(|step| keep(step.machine));
        self.runs.retain(|machine, _| keep(*machine));
        self
    }

    /// What happened to each machine, without what differs from time to time and from adapter to adapter: times, how failures
    /// of the network are worded, how bodies were cut, and looks at the clock that came to nothing. Exchanges are numbered for
    /// each machine in the order in which they turn up.
    ///
    /// `<` is what the machine heard, `>` what it said, and `.` what it waits for from then on. The lines hold a fingerprint of each
    /// body, with which a guess at what is in it can be checked: to be kept where the bodies may be known.
    pub fn lines(&self) -> Vec<String> {
        let mut machines: BTreeMap<Instance, Joined<'_>> = BTreeMap::new();
        for step in &self.steps {
            machines.entry(step.machine).or_default().add(step);
        }
        machines.iter().flat_map(|(machine, joined)| joined.lines(*machine)).collect()
    }

    /// Where the [lines](Self::lines) of another trace first differ from those of this one.
    pub fn difference(&self, other: &Self) -> Option<Difference> {
        let (here, there) = (self.lines(), other.lines());
        let at = (0..here.len().max(there.len())).find(|&at| here.get(at) != there.get(at))?;
        let before = here[at.saturating_sub(CONTEXT)..at].to_vec();
        Some(Difference { line: at + 1, before, here: here.get(at).cloned(), there: there.get(at).cloned() })
    }
}

/// What happened when, in seconds since the first step.
impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.steps.front() else { return Ok(()) };
        writeln!(f, "{} steps from {}", self.steps.len(), first.now.wall.to_rfc3339())?;
        if self.dropped > 0 {
            writeln!(f, "{} earlier steps are left out", self.dropped)?;
        }
        for step in &self.steps {
            let (at, machine) = (step.now.mono.since(first.now.mono), step.machine);
            match &step.input {
                Some(heard) => writeln!(f, "{} {machine} < {heard}", Seconds(at))?,
                None => writeln!(f, "{} {machine} < {CLOCK}", Seconds(at))?,
            }
            for said in &step.outputs {
                writeln!(f, "{} {machine} > {said}", Seconds(at))?;
            }
            if let Some(Deadline { at: until, why }) = step.deadline {
                writeln!(f, "{} {machine} . {why}, until {}", Seconds(at), Seconds(until.since(first.now.mono)))?;
            }
        }
        Ok(())
    }
}

/// Where two traces first differ.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The number of the line, from 1.
    pub line: usize,
    /// The lines right before it, which are equal.
    pub before: Vec<String>,
    /// The line of this trace; `None` after its end.
    pub here: Option<String>,
    /// The line of the other; `None` after its end.
    pub there: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "line {}:", self.line)?;
        self.before.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
        writeln!(f, "- {}", self.here.as_deref().unwrap_or("(the end)"))?;
        write!(f, "+ {}", self.there.as_deref().unwrap_or("(the end)"))
    }
}

/// A step without the bytes.
#[derive(Clone, Debug)]
struct Kept {
    machine: Instance,
    now: Now,
    input: Option<Shown>,
    outputs: Vec<Shown>,
    deadline: Option<Deadline>,
}

/// A body that is coming in.
#[derive(Clone, Debug)]
struct Run {
    ticket: Option<Ticket>,
    digest: Digest,
    /// The number of the step with its last piece.
    last: u64,
}

impl Kept {
    fn is_idle(&self) -> bool {
        self.input.is_none() && self.outputs.is_empty()
    }

    fn is_piece(&self) -> bool {
        self.input.as_ref().is_some_and(|heard| heard.entry.is_piece())
    }
}

/// An entry without its bytes.
#[derive(Clone, Debug)]
struct Shown {
    entry: Entry,
    size: usize,
    body: Option<Digest>,
}

impl Shown {
    fn new(entry: &Entry) -> Self {
        let digest = |bytes: &[u8]| {
            let mut digest = Digest::new();
            digest.push(bytes);
            digest
        };
        let bytes = entry.body.as_deref().filter(|bytes| !bytes.is_empty());
        let size = bytes.map_or(0, <[u8]>::len);
        Self { entry: Entry { body: None, ..entry.clone() }, size, body: bytes.map(digest) }
    }

    fn line(&self, numbers: &mut Numbers) -> String {
        let Entry { name, ticket, text, .. } = &self.entry;
        let mut line = (*name).to_owned();
        if let Some(ticket) = ticket {
            line = format!("{line} #{}", numbers.of(*ticket));
        }
        if !text.is_empty() {
            line = format!("{line} {text}");
        }
        match &self.body {
            Some(body) => format!("{line}, {} bytes {:016x}", body.length(), body.value()),
            None => line,
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.entry)?;
        if self.size == 0 { Ok(()) } else { write!(f, ", {} bytes", self.size) }
    }
}

/// The steps of one machine, pieces of bodies joined.
#[derive(Default)]
struct Joined<'a>(Vec<Turn<'a>>);

struct Turn<'a> {
    input: Option<&'a Shown>,
    outputs: Vec<Shown>,
    why: Option<&'static str>,
}

impl<'a> Joined<'a> {
    fn add(&mut self, step: &'a Kept) {
        let why = step.deadline.map(|deadline| deadline.why);
        let is_more = |last: &Turn<'_>| {
            let ticket = last.input.filter(|heard| heard.entry.is_piece()).map(|heard| heard.entry.ticket);
            step.is_piece() && ticket == step.input.as_ref().map(|heard| heard.entry.ticket)
        };
        let is_empty = step.is_piece() && step.input.as_ref().is_some_and(|heard| heard.size == 0);
        match self.0.last_mut() {
            Some(last) if (step.is_idle() || is_empty) && step.outputs.is_empty() => last.why = why,
            Some(last) if is_more(last) => {
                last.input = step.input.as_ref();
                step.outputs.iter().for_each(|said| last.say(said));
                last.why = why;
            }
            _ => {
                let mut turn = Turn { input: step.input.as_ref(), outputs: Vec::new(), why };
                step.outputs.iter().for_each(|said| turn.say(said));
                self.0.push(turn);
            }
        }
    }

    fn lines(&self, machine: Instance) -> Vec<String> {
        let (mut numbers, mut lines, mut waits_for) = (Numbers::default(), Vec::new(), None);
        for turn in &self.0 {
            let heard = turn.input.map_or_else(|| CLOCK.to_owned(), |heard| heard.line(&mut numbers));
            lines.push(format!("{machine} < {heard}"));
            lines.extend(turn.outputs.iter().map(|said| format!("{machine} > {}", said.line(&mut numbers))));
            if waits_for != Some(turn.why) {
                lines.push(format!("{machine} . {}", turn.why.unwrap_or("nothing")));
                waits_for = Some(turn.why);
            }
        }
        lines
    }
}

impl Turn<'_> {
    /// Pieces of a body that is handed on are as long together as those that came in, whatever their number.
    fn say(&mut self, said: &Shown) {
        let mut piece = said.clone();
        if said.entry.is_piece() {
            piece.body = None;
            if let Some(last) = self.outputs.last_mut().filter(|last| last.entry.is_piece()) {
                last.size += said.size;
                last.entry.text = format!("{} bytes", last.size);
                return;
            }
            piece.entry.text = format!("{} bytes", said.size);
        }
        self.outputs.push(piece);
    }
}

/// Numbers exchanges in the order in which they turn up.
#[derive(Default)]
struct Numbers(BTreeMap<Ticket, usize>);

impl Numbers {
    fn of(&mut self, ticket: Ticket) -> usize {
        let next = self.0.len() + 1;
        *self.0.entry(ticket).or_insert(next)
    }
}

struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0.as_secs(), self.0.subsec_micros())
    }
}

/// What a machine hears that is stepped without an input.
const CLOCK: &str = "clock";
/// How many equal lines a difference shows.
const CONTEXT: usize = 5;
