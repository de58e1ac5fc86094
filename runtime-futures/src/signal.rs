//! The wish that the process end.

use async_signal::{Signal, Signals};
use futures_util::StreamExt as _;

/// Ends when the process is asked to end: SIGINT or SIGTERM, or Ctrl-C where there are no signals.
///
/// From the first call on, these signals no longer end the process by themselves.
///
/// # Panics
/// If the system refuses to listen for signals.
pub async fn shutdown_signal() {
    #[cfg(unix)]
    const ASKING: [Signal; 2] = [Signal::Int, Signal::Term];
    #[cfg(not(unix))]
    const ASKING: [Signal; 1] = [Signal::Int];
    Signals::new(ASKING).expect("the system delivers signals").next().await;
}
