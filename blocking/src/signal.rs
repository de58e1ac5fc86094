//! The wish that the process end.

use std::sync::{Arc, Condvar, LazyLock, Mutex, PoisonError};

/// Blocks until the process is asked to end: by SIGINT, SIGTERM or SIGHUP, or Ctrl-C where there are no signals.
///
/// From the first call on, these no longer end the process by themselves. Every call after that hears of the same request.
///
/// # Panics
/// If the program has a handler of its own for these signals, or the system refuses one.
pub fn shutdown_signal() {
    let (asked, came) = &**ASKED;
    let asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
    drop(came.wait_while(asked, |asked| !*asked).unwrap_or_else(PoisonError::into_inner));
}

/// Whether the process has been asked to end, as [`shutdown_signal`] would say: for loops that never block for long, and to
/// begin with listening before there is anything to wait for.
///
/// # Panics
/// As [`shutdown_signal`].
pub fn is_shutdown_requested() -> bool {
    *ASKED.0.lock().unwrap_or_else(PoisonError::into_inner)
}

static ASKED: LazyLock<Arc<(Mutex<bool>, Condvar)>> = LazyLock::new(|| {
    let asked = Arc::<(Mutex<bool>, Condvar)>::default();
    let told = asked.clone();
    let heard = ctrlc::set_handler(move || {
        *told.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        told.1.notify_all();
    });
    heard.expect("the system delivers signals, and nobody else in the program handles them");
    asked
});
