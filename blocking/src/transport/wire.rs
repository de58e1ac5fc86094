//! Connections that another thread can close.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use crate::Cancel;

/// A TCP connection, lent to one exchange after the other.
pub(super) struct Wire {
    tcp: TcpStream,
    /// How often it was lent. Whoever had it before has no say any more.
    turn: Mutex<u64>,
}

impl Wire {
    pub(super) fn new(tcp: TcpStream) -> Arc<Self> {
        Arc::new(Self { tcp, turn: Mutex::default() })
    }

    pub(super) const fn tcp(&self) -> &TcpStream {
        &self.tcp
    }

    /// From now on it is `cancel` that closes it.
    fn lend(self: &Arc<Self>, cancel: &Cancel) {
        let turn = {
            let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
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
        let current = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if *current == turn {
            // It may be closed already.
            let _ = self.tcp.shutdown(Shutdown::Both);
        }
    }
}

/// A connection as rustls reads and writes it.
pub(super) struct WireIo(pub(super) Arc<Wire>);

impl Read for WireIo {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.tcp().read(buffer)
    }
}

impl Write for WireIo {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.tcp().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.tcp().flush()
    }
}

/// The exchange that this thread has ureq send a request for: ureq calls connectors and connections on the thread that it
/// is called on, and hands nothing of the request to them.
struct Current {
    cancel: Cancel,
    connected: bool,
}

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

/// Whatever connection ureq uses in `send` is closed by `cancel`. Answers also whether it was made for this.
pub(super) fn lending<T>(cancel: &Cancel, send: impl FnOnce() -> T) -> (T, bool) {
    CURRENT.set(Some(Current { cancel: cancel.clone(), connected: false }));
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

/// A connection is new.
pub(super) fn connected() {
    CURRENT.with_borrow_mut(|current| {
        if let Some(current) = current {
            current.connected = true;
        }
    });
}
