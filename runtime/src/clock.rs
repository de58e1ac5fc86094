//! Time, lots and tasks, as an executor has them.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use cloudcoil_core::{Error, Now, Time};
use futures_channel::oneshot;
use futures_util::FutureExt as _;

use crate::Runtime;
use crate::plain::message;

/// The executor and its clocks.
#[derive(Clone)]
pub(crate) struct Clock(Arc<dyn Runtime>);

impl Clock {
    pub(crate) fn new(runtime: Arc<dyn Runtime>) -> Self {
        Self(runtime)
    }

    pub(crate) fn now(&self) -> Now {
        self.0.now()
    }

    pub(crate) fn seed(&self) -> u64 {
        self.0.seed()
    }

    pub(crate) async fn sleep_until(&self, at: Time) {
        self.0.sleep_until(at).await;
    }

    /// Has something done in a task of its own; threads have names.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        _name: &str,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Ending<T> {
        let (tell, told) = oneshot::channel();
        self.0.spawn(Box::pin(async move {
            let ended = AssertUnwindSafe(work).catch_unwind().await;
            let ended = ended.map_err(|panic| Error::Stopped(format!("it panicked: {}", message(&*panic)).into()));
            // Nobody may want to know.
            let _ = tell.send(ended);
        }));
        Ending(told)
    }
}

/// The end of a task.
pub(crate) struct Ending<T>(oneshot::Receiver<Result<T, Error>>);

impl<T> Ending<T> {
    /// Waits for it.
    ///
    /// # Errors
    /// [`Error::Stopped`] after a panic; [`Error::Cancelled`] if the executor has dropped the task.
    pub(crate) async fn ended(self) -> Result<T, Error> {
        self.0.await.unwrap_or(Err(Error::Cancelled))
    }
}
