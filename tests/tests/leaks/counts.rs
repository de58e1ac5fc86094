//! What there is in this process.

use std::time::{Duration, Instant};

use crate::servers;

/// What must not grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    threads: usize,
    files: usize,
    /// The clients' tasks.
    tasks: usize,
    /// The servers' tasks: those of connections end when the client closes them.
    served: usize,
}

impl Counts {
    /// As it is now, with so many tasks of clients.
    pub(crate) fn of(tasks: usize) -> Self {
        let count = |path| std::fs::read_dir(path).unwrap().count();
        Self { threads: count("/proc/self/task"), files: count("/proc/self/fd"), tasks, served: servers::tasks() }
    }

    pub(crate) const fn is_within(&self, before: &Self) -> bool {
        self.threads <= before.threads
            && self.files <= before.files
            && self.tasks <= before.tasks
            && self.served <= before.served
    }
}

/// Counts until it is `enough`, or for half a minute: what is given up ends by itself, on other threads.
pub(crate) fn until(count: impl Fn() -> Counts, mut enough: impl FnMut(&Counts) -> bool) -> Counts {
    let late = Instant::now() + PATIENCE;
    loop {
        let now = count();
        if enough(&now) || Instant::now() > late {
            return now;
        }
        std::thread::yield_now();
    }
}

/// Counts until nothing has changed for a while.
pub(crate) fn resting(count: impl Fn() -> Counts) -> Counts {
    let mut same = 0;
    let mut last = count();
    until(count, |now| {
        same = if *now == last { same + 1 } else { 0 };
        last = *now;
        same > 2000
    })
}

const PATIENCE: Duration = Duration::from_secs(30);
