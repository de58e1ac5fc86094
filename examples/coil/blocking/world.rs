//! What the commands are made of where they block.

use std::sync::mpsc::{self, RecvTimeoutError, channel};
use std::thread;
use std::time::Instant;

use cloudcoil_blocking::{Connect, WatchStream};
use cloudcoil_core::config::{Config, ConfigSource, Kubeconfig, ViewOptions};
use cloudcoil_core::{Error, Resource};

pub(crate) use cloudcoil_blocking::{Api, Client, Informer, ManifestRequest, Watch};
/// On what is written once for futures and for threads: takes `async` and `.await` away.
pub(crate) use cloudcoil_dual::blocking as dual;

/// Where a command runs.
#[derive(Clone, Copy)]
pub(crate) struct World;

impl World {
    pub(crate) fn load_config(self, source: ConfigSource) -> Result<Config, Error> {
        cloudcoil_blocking::load_config(source)
    }

    pub(crate) fn view_config(self, source: ConfigSource, options: ViewOptions) -> Result<Kubeconfig, Error> {
        cloudcoil_blocking::view_config(source, options)
    }

    pub(crate) fn client(self, config: &Config) -> Result<Client, Error> {
        Connect::try_from_config(config)
    }

    /// From now on the process is not ended by the signals that ask it to end.
    pub(crate) fn listen_for_shutdown(self) -> Shutdown {
        cloudcoil_blocking::is_shutdown_requested();
        Shutdown
    }
}

/// The wish that the process end.
pub(crate) struct Shutdown;

impl Shutdown {
    /// The next letter, or none when the process is asked to end.
    pub(crate) fn or_next<T: Send + 'static>(self, mut letters: Letters<T>) -> Option<T> {
        let (letter, first) = channel();
        let asked = letter.clone();
        thread::spawn(move || {
            cloudcoil_blocking::shutdown_signal();
            asked.send(None)
        });
        thread::spawn(move || letter.send(letters.next()));
        first.recv().ok().flatten()
    }
}

/// Where handlers drop letters for the command that waits for them.
pub(crate) struct Sender<T>(mpsc::Sender<T>);

/// The letters that handlers have dropped.
pub(crate) struct Letters<T>(mpsc::Receiver<T>);

pub(crate) fn mailbox<T>() -> (Sender<T>, Letters<T>) {
    let (sender, letters) = channel();
    (Sender(sender), Letters(letters))
}

impl<T> Sender<T> {
    /// When nobody listens the command has ended.
    pub(crate) fn send(&self, letter: T) {
        let _ = self.0.send(letter);
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Letters<T> {
    #[expect(clippy::needless_pass_by_ref_mut, reason = "it is called as where it is a future")]
    pub(crate) fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

/// A watch that ends at a time.
pub(crate) struct WatchUntil<K> {
    events: WatchStream<K>,
    _ends: mpsc::Sender<()>,
}

impl<K: Resource> WatchUntil<K> {
    pub(crate) fn new(watch: Watch<K>, _: &Client, end: Instant) -> Self {
        let events = watch.stream();
        let (stop, (ends, ended)) = (events.stop_handle(), channel::<()>());
        thread::spawn(move || {
            let left = end.saturating_duration_since(Instant::now());
            if ended.recv_timeout(left) == Err(RecvTimeoutError::Timeout) {
                stop.stop();
            }
        });
        Self { events, _ends: ends }
    }

    /// The next event, or none when it has ended.
    pub(crate) fn next(&mut self) -> Option<<WatchStream<K> as Iterator>::Item> {
        self.events.next()
    }
}

/// Sleeps until a time has come.
pub(crate) fn sleep_until(_: &Client, time: Instant) {
    thread::sleep(time.saturating_duration_since(Instant::now()));
}
