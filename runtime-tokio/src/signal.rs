//! The wish that the process end.

/// Ends when the process is asked to end: SIGINT or SIGTERM, or Ctrl-C where there are no signals.
///
/// From the first call on, these signals no longer end the process by themselves.
///
/// # Panics
/// If the system refuses to listen for signals.
#[cfg(unix)]
pub async fn shutdown_signal() {
    use tokio::signal::unix::{SignalKind, signal};

    let [mut interrupt, mut terminate] = [SignalKind::interrupt(), SignalKind::terminate()]
        .map(|kind| signal(kind).expect("the system delivers signals"));
    let (one, other) = (std::pin::pin!(interrupt.recv()), std::pin::pin!(terminate.recv()));
    futures_util::future::select(one, other).await;
}

/// Ends when the process is asked to end: SIGINT or SIGTERM, or Ctrl-C where there are no signals.
///
/// From the first call on, Ctrl-C no longer ends the process by itself.
///
/// # Panics
/// If the system refuses to listen for it.
#[cfg(not(unix))]
pub async fn shutdown_signal() {
    tokio::signal::ctrl_c().await.expect("the system delivers Ctrl-C");
}
