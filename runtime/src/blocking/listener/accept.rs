//! The thread that accepts connections, and those that serve them.

use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use cloudcoil_core::Now;
use cloudcoil_core::listen::{ListenLimits, Peer};

use super::connection::{Connection, Letter};
use super::{Accept, ListenHandle, Reload, RequestHandler, Socket, Wake};
use crate::blocking::Clock;

/// What the connections to a port have in common.
#[expect(clippy::exhaustive_structs, reason = "an adapter has to say all of it")]
pub struct Service {
    /// Answers the requests.
    pub handler: RequestHandler,
    /// What clients may ask for.
    pub limits: ListenLimits,
}

/// Accepts and serves until the handle is stopped or dropped. The port is closed when that has ended.
///
/// # Errors
/// If there is no thread to be had.
pub fn listen(
    port: impl Accept,
    address: SocketAddr,
    service: Service,
    reload: Option<Reload>,
) -> io::Result<ListenHandle> {
    let (clock, state, changed) = (Clock::new(), Mutex::default(), Condvar::new());
    let shared = Arc::new(Shared { wake: port.waker(), service, clock, state, changed });
    let accepting = shared.clone();
    thread::Builder::new().name("cloudcoil-listener".to_owned()).spawn(move || accepting.accept(port))?;
    Ok(ListenHandle { address, reload, running: Running(shared) })
}

/// What accepts and serves.
pub(super) struct Running(Arc<Shared>);

impl Running {
    pub(super) fn stop(self, grace: Duration) {
        let Self(shared) = &self;
        shared.stop();
        let is_open = |state: &mut State| state.is_listening || !state.open.is_empty();
        drop(shared.changed.wait_timeout_while(shared.state(), grace, is_open).unwrap_or_else(PoisonError::into_inner));
        shared.close();
        loop {
            let waited = shared.changed.wait_timeout_while(shared.state(), AGAIN, is_open);
            let (state, timed) = waited.unwrap_or_else(PoisonError::into_inner);
            let is_listening = state.is_listening;
            drop(state);
            match timed.timed_out() {
                false => return,
                // It could not be woken before, such as for want of a descriptor.
                true if is_listening => (shared.wake)(),
                true => {}
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.stop();
        self.0.close();
    }
}

pub(super) struct Shared {
    wake: Wake,
    pub(super) service: Service,
    pub(super) clock: Clock,
    state: Mutex<State>,
    changed: Condvar,
}

pub(super) struct State {
    is_listening: bool,
    pub(super) is_stopping: bool,
    accepted: u64,
    pub(super) open: BTreeMap<u64, Open>,
    /// How many handlers run, those among them that nobody waits for any more.
    handling: usize,
}

/// A connection, as others see it.
pub(super) struct Open {
    socket: Arc<dyn Socket>,
    /// Its thread waits for a request that has not begun: that wait can be cut short.
    pub(super) is_idle: bool,
    letters: Sender<Letter>,
}

impl Default for State {
    fn default() -> Self {
        Self { is_listening: true, is_stopping: false, accepted: 0, open: BTreeMap::new(), handling: 0 }
    }
}

impl Shared {
    fn accept(self: &Arc<Self>, port: impl Accept) {
        loop {
            let full =
                |state: &mut State| !state.is_stopping && state.open.len() >= self.service.limits.connections.max(1);
            drop(self.changed.wait_while(self.state(), full).unwrap_or_else(PoisonError::into_inner));
            let accepted = port.accept();
            if self.state().is_stopping {
                break;
            }
            if let Err(error) = accepted.and_then(|(socket, address)| self.begin(socket, address)) {
                tracing::warn!("a connection cannot be accepted: {error}");
                // Such as too many open files: it passes, but not at once.
                thread::sleep(PAUSE);
            }
        }
        drop(port);
        self.state().is_listening = false;
        self.changed.notify_all();
    }

    fn begin(self: &Arc<Self>, socket: Arc<dyn Socket>, address: SocketAddr) -> io::Result<()> {
        let (letters, letterbox) = channel();
        let number = {
            let mut state = self.state();
            if state.is_stopping {
                return Ok(());
            }
            state.accepted += 1;
            let number = state.accepted;
            state.open.insert(number, Open { socket: socket.clone(), is_idle: true, letters: letters.clone() });
            number
        };
        let closing = Closing { shared: self.clone(), number };
        let connection = Connection { closing, socket, letters, letterbox, peer: Peer { address, subject: None } };
        // If there is no thread, the connection closes with what was to run on it.
        thread::Builder::new().name("cloudcoil-connection".to_owned()).spawn(move || connection.serve()).map(drop)
    }

    /// Ends the accepting, and the waits for requests that have not begun.
    fn stop(&self) {
        let mut state = self.state();
        if std::mem::replace(&mut state.is_stopping, true) {
            return;
        }
        for open in state.open.values().filter(|open| open.is_idle) {
            open.socket.shutdown(Shutdown::Read);
        }
        drop(state);
        self.changed.notify_all();
        (self.wake)();
    }

    /// Closes whatever is open.
    fn close(&self) {
        let state = self.state();
        for open in state.open.values() {
            open.socket.shutdown(Shutdown::Both);
            let _ = open.letters.send(Letter::Close);
        }
    }

    pub(super) fn now(&self) -> Now {
        self.clock.now()
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handler that runs.
pub(super) struct Handling(Arc<Shared>);

impl Handling {
    /// `None` if there are too many already.
    pub(super) fn begin(shared: &Arc<Shared>) -> Option<Self> {
        let mut state = shared.state();
        (state.handling < shared.service.limits.connections.max(1)).then(|| {
            state.handling += 1;
            Self(shared.clone())
        })
    }
}

impl Drop for Handling {
    fn drop(&mut self) {
        self.0.state().handling -= 1;
    }
}

/// Takes a connection out of those that are open.
pub(super) struct Closing {
    pub(super) shared: Arc<Shared>,
    pub(super) number: u64,
}

impl Drop for Closing {
    fn drop(&mut self) {
        let open = self.shared.state().open.remove(&self.number);
        if let Some(open) = open {
            open.socket.shutdown(Shutdown::Both);
        }
        self.shared.changed.notify_all();
    }
}

/// How long the thread that accepts has to end, until it is woken once more.
const AGAIN: Duration = Duration::from_millis(100);

/// How long nothing is accepted after that has failed.
const PAUSE: Duration = Duration::from_millis(50);
