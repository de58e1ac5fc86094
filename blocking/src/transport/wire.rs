//! Connections that another thread can close.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::mem;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use cloudcoil_core::NetworkError;
use cloudcoil_tls::{Route, connect_failure};

use crate::Cancel;

/// A TCP connection, lent to one exchange after the other.
pub(super) struct Wire {
    tcp: TcpStream,
    /// How often it was lent. Whoever had it before has no say any more.
    turn: Mutex<u64>,
    /// When whoever is blocked in it has waited enough.
    until: Mutex<Option<Instant>>,
    /// Why nothing can be sent any more.
    unsent: Mutex<Option<io::Error>>,
}

impl Wire {
    pub(super) fn new(tcp: TcpStream) -> Arc<Self> {
        Arc::new(Self { tcp, turn: Mutex::default(), until: Mutex::default(), unsent: Mutex::default() })
    }

    pub(super) const fn tcp(&self) -> &TcpStream {
        &self.tcp
    }

    /// Gives a step of connecting its time, and no more.
    pub(super) fn within<T, E>(&self, step: impl FnOnce() -> Result<T, E>) -> Result<Result<T, E>, NetworkError> {
        let until = Instant::now() + Route::PATIENCE;
        *lock(&self.until) = Some(until);
        let done = step();
        *lock(&self.until) = None;
        // Whatever has failed by then, it is because it was not given more time.
        if done.is_err() && Instant::now() >= until {
            return Err(Route::late());
        }
        let unlimited = self.tcp.set_read_timeout(None).and_then(|()| self.tcp.set_write_timeout(None));
        unlimited.map(|()| done).map_err(|error| connect_failure(&error))
    }

    /// Blocks in a system call, for no longer than the time limit allows.
    fn block(&self, mut act: impl FnMut(&TcpStream) -> io::Result<usize>) -> io::Result<usize> {
        let Some(until) = *lock(&self.until) else { return act(&self.tcp) };
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.tcp.set_read_timeout(Some(left))?;
            self.tcp.set_write_timeout(Some(left))?;
            match act(&self.tcp) {
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                result => return result,
            }
        }
    }

    /// From now on it is `cancel` that closes it.
    fn lend(self: &Arc<Self>, cancel: &Cancel) {
        let turn = {
            let mut turn = lock(&self.turn);
            *turn += 1;
            *turn
        };
        let wire = Arc::downgrade(self);
        cancel.on_cancel(move || {
            if let Some(wire) = wire.upgrade() {
                wire.close(turn);
            }
        });
    }

    /// Wakes whoever is blocked in it; closes nothing that was lent to somebody else meanwhile.
    fn close(&self, turn: u64) {
        let current = lock(&self.turn);
        if *current == turn {
            // It may be closed already.
            let _ = self.tcp.shutdown(Shutdown::Both);
        }
    }
}

/// What is in there is whole, whoever has panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A connection as rustls reads and writes it.
pub(super) struct WireIo(pub(super) Arc<Wire>);

impl Read for WireIo {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.block(|mut tcp| tcp.read(buffer)) {
            Ok(0) => lock(&self.0.unsent).take().map_or(Ok(0), Err),
            result => result,
        }
    }
}

impl Write for WireIo {
    /// A server that refuses before it has read everything may close at once, and what it said is still to be read: so what cannot
    /// be sent any more goes nowhere, and that is told where reading ends.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.block(|mut tcp| tcp.write(bytes)) {
            Err(error) if is_over(&error) => {
                lock(&self.0.unsent).get_or_insert(error);
                Ok(bytes.len())
            }
            result => result,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.tcp().flush()
    }
}

/// Whether the other side has closed the connection.
fn is_over(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset)
}

/// The exchange that this thread has ureq send a request for: ureq calls connectors and connections on the thread that it
/// is called on, and hands nothing of the request to them.
struct Current {
    /// What is sent, until it is.
    request: Vec<u8>,
    cancel: Cancel,
    connected: bool,
}

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

/// Whatever connection ureq uses in `send` sends `request`, and is closed by `cancel`. Answers also whether it was made for this.
pub(super) fn lending<T>(request: Vec<u8>, cancel: &Cancel, send: impl FnOnce() -> T) -> (T, bool) {
    // What an attempt before was lent is not used any more: closing it would wake nobody.
    cancel.forget();
    CURRENT.set(Some(Current { request, cancel: cancel.clone(), connected: false }));
    let sent = send();
    (sent, CURRENT.take().is_some_and(|current| current.connected))
}

/// A connection is about to be used, maybe.
pub(super) fn lend(wire: &Arc<Wire>) {
    CURRENT.with_borrow(|current| {
        if let Some(current) = current {
            wire.lend(&current.cancel);
        }
    });
}

/// The connection that was lent is not going to be used: until the next one is there, nothing can be closed.
pub(super) fn withdraw() {
    CURRENT.with_borrow(|current| {
        if let Some(current) = current {
            current.cancel.forget();
        }
    });
}

/// What is to be sent; nothing once it was asked for.
pub(super) fn request() -> Vec<u8> {
    CURRENT
        .with_borrow_mut(|current| current.as_mut().map(|current| mem::take(&mut current.request)).unwrap_or_default())
}

/// Nobody wants the answer any more.
pub(super) fn is_given_up() -> bool {
    CURRENT.with_borrow(|current| current.as_ref().is_some_and(|current| current.cancel.is_cancelled()))
}

/// A connection is new.
pub(super) fn connected() {
    CURRENT.with_borrow_mut(|current| {
        if let Some(current) = current {
            current.connected = true;
        }
    });
}
