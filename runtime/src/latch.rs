//! Something that happens once, and that many may wait for.

use std::pin::pin;

use cloudcoil_core::Time;
use futures_channel::oneshot;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, select};

use crate::clock::Clock;

/// The side that lets it happen. Dropping it lets it happen too.
pub(crate) struct Opener(Option<oneshot::Sender<()>>);

/// The side that waits, or looks.
#[derive(Clone)]
pub(crate) struct Latch(Shared<BoxFuture<'static, ()>>);

pub(crate) fn latch() -> (Opener, Latch) {
    let (opener, opened) = oneshot::channel();
    (Opener(Some(opener)), Latch(opened.map(drop).boxed().shared()))
}

impl Opener {
    pub(crate) fn open(&mut self) {
        // Nobody may be waiting.
        let _ = self.0.take().map(|opener| opener.send(()));
    }
}

impl Latch {
    pub(crate) fn is_open(&self) -> bool {
        self.0.clone().now_or_never().is_some()
    }

    pub(crate) async fn opened(&self) {
        self.0.clone().await;
    }

    /// Waits no longer than `until`; answers whether it is open.
    pub(crate) async fn opened_until(&self, clock: &Clock, until: Time) -> bool {
        select(pin!(self.opened()), pin!(clock.sleep_until(until))).await;
        self.is_open()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_who_wait_hear_of_it_and_so_do_those_who_come_later() {
        let (mut opener, latch) = latch();
        let (mut one, mut other) = (Box::pin(latch.opened()), Box::pin(latch.opened()));
        assert!((&mut one).now_or_never().is_none() && (&mut other).now_or_never().is_none() && !latch.is_open());
        opener.open();
        opener.open();
        assert!(latch.is_open());
        assert!(one.now_or_never().is_some() && other.now_or_never().is_some());
        assert!(latch.opened().now_or_never().is_some());
    }
}
