//! Recording what the machines of a client hear and say.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cloudcoil_core::record::{self, Instance, Recorded, Step, Trace};
use cloudcoil_core::{Deadline, Now, Outbox, Random};

/// Records what the machines of a client hear and say: calls, watches, informers, controllers. Cheap to clone; clones record
/// into the same trace.
///
/// Printed, the [`trace`](Self::trace) tells what was sent and heard when, and what was made of it. Attach it to the report of a
/// fault: it holds paths, names, codes and sizes, and what servers and handlers say of failures, but no credentials, no body, and
/// nothing of what is in objects.
///
/// ```no_run
/// use cloudcoil_runtime::{Client, Error, Recorder};
/// use cloudcoil_core::k8s_openapi::api::core::v1::Pod;
///
/// async fn report(client: Client) -> Result<(), Error> {
///     let recorder = Recorder::new();
///     let pods = client.with_recorder(recorder.clone()).api::<Pod>();
///     let listed = pods.list().await;
///     println!("attach this to a report of the fault:\n{}", recorder.trace());
///     listed.map(drop)
/// }
/// ```
///
/// With a [seed](Self::seeded) of its own, what machines draw by lot is the same each time, so that two traces can be
/// [compared](Trace::difference): the same program, run on another executor or after a change, should give the same lines.
///
/// ```
/// use cloudcoil_runtime::Recorder;
///
/// let recorder = Recorder::new().seeded(7).keeping(1000);
/// assert!(recorder.trace().difference(&recorder.clone().trace()).is_none());
/// ```
#[derive(Clone)]
pub struct Recorder {
    state: Arc<Mutex<State>>,
    seed: Option<u64>,
}

struct State {
    trace: Trace,
    made: BTreeMap<&'static str, u32>,
    seeds: BTreeMap<&'static str, Random>,
    tell: Option<Tell>,
}

type Tell = Box<dyn FnMut(&Step) + Send>;

impl Recorder {
    /// How many steps are kept, unless it is told otherwise.
    pub const STEPS: usize = 100_000;

    /// A recorder that keeps the last [`STEPS`](Self::STEPS).
    pub fn new() -> Self {
        let trace = Trace::new().limited(Self::STEPS);
        let state = State { trace, made: BTreeMap::new(), seeds: BTreeMap::new(), tell: None };
        Self { state: Arc::new(Mutex::new(state)), seed: None }
    }

    /// The same, and what machines draw by lot, such as how long they wait after a failure, comes from this seed. Each kind of
    /// machine has its own lots, in the order in which machines are made.
    #[must_use]
    pub fn seeded(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// The same, keeping so many steps: the last ones.
    #[must_use]
    pub fn keeping(self, steps: usize) -> Self {
        {
            let mut state = self.state();
            state.trace = std::mem::take(&mut state.trace).limited(steps);
        }
        self
    }

    /// The same, handing each step to `tell` as well. It is called where machines run, one step at a time, so it must not take
    /// long, and must not use a client of this recorder.
    ///
    /// [`Entry::bytes`](cloudcoil_core::record::Entry::bytes) are what went over the network, with whatever secrets are in them.
    #[must_use]
    pub fn telling(self, tell: impl FnMut(&Step) + Send + 'static) -> Self {
        self.state().tell = Some(Box::new(tell));
        self
    }

    /// What was recorded up to now.
    pub fn trace(&self) -> Trace {
        self.state().trace.clone()
    }

    fn record(&self, step: &Step) {
        let mut state = self.state();
        state.trace.record(step);
        if let Some(tell) = &mut state.tell {
            tell(step);
        }
    }

    /// The next machine of a kind.
    fn instance(&self, kind: &'static str) -> Instance {
        let mut state = self.state();
        let number = state.made.entry(kind).or_insert(0);
        *number = number.saturating_add(1);
        Instance { kind, number: *number }
    }

    /// The seed of the next machine of a kind, if seeds come from here.
    pub(crate) fn seed(&self, kind: &'static str) -> Option<u64> {
        let seed = self.seed?;
        // Kinds do not share a stream, so that it does not matter whose machine is made first.
        let own = kind.bytes().fold(seed, |mixed, byte| Random::new(mixed ^ u64::from(byte)).seed());
        Some(self.state().seeds.entry(kind).or_insert_with(|| Random::new(own)).seed())
    }

    /// What a panic leaves behind is whole, but perhaps for what `tell` keeps, which is its own affair.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("seed", &self.seed).finish_non_exhaustive()
    }
}

/// Steps one machine, and records what it hears and says if anybody wants to know.
#[derive(Debug)]
pub(crate) struct Recording(Option<(Recorder, Instance)>);

impl Recording {
    /// For a new machine of a client with or without a recorder.
    pub(crate) fn new<M: Recorded>(recorder: Option<&Recorder>) -> Self {
        Self(recorder.map(|recorder| (recorder.clone(), recorder.instance(M::NAME))))
    }

    /// As [`Machine::step`](cloudcoil_core::Machine::step).
    #[must_use = "wait until this deadline, or for the next input"]
    pub(crate) fn step<M: Recorded>(
        &self,
        machine: &mut M,
        now: Now,
        input: Option<M::Input>,
        out: &mut Outbox<M::Output>,
    ) -> Option<Deadline> {
        match &self.0 {
            None => machine.step(now, input, out),
            Some((recorder, name)) => record::step(machine, *name, now, input, out, |step| recorder.record(&step)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lots_come_from_the_seed_for_each_kind_alone() {
        let draw = |kinds: &[&'static str], seed| {
            let recorder = Recorder::new().seeded(seed);
            let mut drawn: Vec<_> = kinds.iter().map(|kind| (*kind, recorder.seed(kind))).collect();
            drawn.sort();
            drawn
        };
        assert_eq!(draw(&["Call", "Call", "Informer"], 1), draw(&["Informer", "Call", "Call"], 1));
        assert_ne!(draw(&["Call"], 1), draw(&["Call"], 2));
        let all = draw(&["Call", "Call", "Informer", "lnformer"], 1);
        assert!((1..all.len()).all(|at| all[..at].iter().all(|(_, seed)| *seed != all[at].1)), "{all:?}");
        assert_eq!(Recorder::new().seed("Call"), None);
    }
}
