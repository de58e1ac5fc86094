//! Checks of the laws of [`Machine`] that hold for any machine: call them from a property test.

use std::fmt::Debug;
use std::time::Duration;

use crate::machine::{Deadline, Machine, Outbox};
use crate::time::{Now, Time};

/// One thing that happens to a machine under test.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a script has these two moves and no others")]
pub enum Move<I> {
    /// Time passes, and the timers that fall due on the way fire at their instants.
    Wait(Duration),
    /// An input comes.
    Input(I),
}

/// Everything a machine said, with the time of each step: two equal traces are two equal runs.
pub type Trace<O> = Vec<(Time, Vec<O>, Option<Deadline>)>;

/// Runs a script, jumping from deadline to deadline, and checks that every deadline lies ahead and that the
/// machine rests.
///
/// # Panics
/// If a deadline is not after the step that returned it, or if timers alone keep the machine busy without end.
pub fn run<M: Machine>(machine: &mut M, script: impl IntoIterator<Item = Move<M::Input>>) -> Trace<M::Output> {
    let mut now = Now::default();
    let mut trace = Vec::new();
    let mut deadline = take_step(machine, now, None, &mut trace);
    for step in script {
        match step {
            Move::Input(input) => deadline = take_step(machine, now, Some(input), &mut trace),
            Move::Wait(duration) => {
                let end = now.after(duration);
                for fires in 0.. {
                    let Some(due) = deadline.filter(|due| due.at <= end.mono) else { break };
                    assert!(fires < MAX_TIMERS, "{due:?} keeps the machine busy without an input");
                    now = now.after(due.at.since(now.mono));
                    deadline = take_step(machine, now, None, &mut trace);
                }
                now = end;
            }
        }
    }
    trace
}

/// Law 5: two machines made alike, fed alike, say the same at the same times.
///
/// # Panics
/// If they do not.
pub fn same_inputs_same_outputs<M>(make: impl Fn() -> M, script: &[Move<M::Input>])
where
    M: Machine<Input: Clone, Output: Debug + PartialEq>,
{
    let (one, other) = (run(&mut make(), script.iter().cloned()), run(&mut make(), script.iter().cloned()));
    assert_eq!(one, other, "the same inputs gave different outputs");
}

/// Law 3: inputs that name old tickets change nothing, wherever in the script they come.
///
/// `stale` makes an input that answers a ticket which the machine never issued, or has long forgotten.
///
/// # Panics
/// If a stale input changes an output or a deadline.
pub fn stale_inputs_change_nothing<M>(make: impl Fn() -> M, script: &[Move<M::Input>], stale: &[M::Input])
where
    M: Machine<Input: Clone, Output: Debug + PartialEq>,
{
    let spoken = |trace: Trace<M::Output>| -> Vec<_> {
        trace.into_iter().flat_map(|(at, outputs, _)| outputs.into_iter().map(move |output| (at, output))).collect()
    };
    let plain = spoken(run(&mut make(), script.iter().cloned()));
    let mut disturbed = Vec::new();
    for step in script {
        disturbed.extend(stale.iter().cloned().map(Move::Input));
        disturbed.push(step.clone());
    }
    disturbed.extend(stale.iter().cloned().map(Move::Input));
    assert_eq!(plain, spoken(run(&mut make(), disturbed)), "a stale input changed the run");
}

/// Law 6: after `script` has ended the machine, nothing in `after` moves it: no output, no deadline.
///
/// # Panics
/// If the machine says anything more.
pub fn ended_stays_ended<M>(machine: &mut M, script: &[Move<M::Input>], after: &[Move<M::Input>])
where
    M: Machine<Input: Clone, Output: Debug + PartialEq>,
{
    run(machine, script.iter().cloned());
    for (at, outputs, deadline) in run(machine, after.iter().cloned()) {
        assert!(outputs.is_empty() && deadline.is_none(), "an ended machine said {outputs:?} at {at:?}");
    }
}

fn take_step<M: Machine>(
    machine: &mut M,
    now: Now,
    input: Option<M::Input>,
    trace: &mut Trace<M::Output>,
) -> Option<Deadline> {
    let mut out = Outbox::new();
    let deadline = machine.step(now, input, &mut out);
    if let Some(deadline) = deadline {
        assert!(deadline.at > now.mono, "{deadline:?} is not after {:?}", now.mono);
    }
    trace.push((now.mono, out.into_iter().collect(), deadline));
    deadline
}

const MAX_TIMERS: u32 = 100_000;
