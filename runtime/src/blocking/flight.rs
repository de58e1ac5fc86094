//! Questions to the server that several threads wait for.

use std::sync::{Arc, Condvar, PoisonError};

use cloudcoil_core::{Catalog, Error};

use super::{Client, Discovery, Flight, Wanted, ask, lock};

/// The question under way.
#[derive(Default)]
pub(crate) struct UnderWay {
    is_under_way: bool,
    /// What the last question came to.
    result: Option<Result<Arc<Catalog>, Error>>,
    landed: Arc<Condvar>,
}

impl Discovery {
    /// Asks the server, or waits for what another thread is told that asks already.
    pub(crate) fn fly(&self, wanted: Wanted) -> Flight {
        let now = self.client().clock().now().mono;
        let mut known = self.known();
        if let Some(kept) = known.kept(wanted, now) {
            return kept;
        }
        let landed = known.under_way.landed.clone();
        while known.under_way.is_under_way {
            let number = known.flights;
            known = landed.wait(known).unwrap_or_else(PoisonError::into_inner);
            let has_landed = known.flights == number && !known.under_way.is_under_way;
            if let Some(result) = known.under_way.result.clone().filter(|_| has_landed) {
                return Flight { number, result, is_own: false };
            }
        }
        let (number, previous) = known.take_off();
        known.under_way.is_under_way = true;
        drop(known);
        let mut landing = Landing { client: self.client(), result: None };
        let result = ask(self.client(), previous);
        // That this one was given up is nothing to those who wait: one of them asks anew.
        landing.result = Some(result.clone()).filter(|result| !matches!(result, Err(Error::Cancelled)));
        Flight { number, result, is_own: true }
    }
}

/// Tells those who wait, also when the question ends in a panic.
struct Landing<'a> {
    client: &'a Client,
    result: Option<Result<Arc<Catalog>, Error>>,
}

impl Drop for Landing<'_> {
    fn drop(&mut self) {
        let mut known = lock(self.client.known());
        if let Some(Ok(catalog)) = &self.result {
            known.catalog = Some((catalog.clone(), self.client.clock().now().mono));
        }
        known.under_way.is_under_way = false;
        known.under_way.result = self.result.take();
        known.under_way.landed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use bytes::Bytes;
    use cloudcoil_core::{NetworkError, NetworkErrorKind};
    use http::{Request, Response};

    use super::super::group::Group;
    use super::super::{Body, Cancel, Transport};
    use super::*;

    /// Says nothing.
    struct Mute;

    impl Transport for Mute {
        fn send(&self, _: Request<Bytes>, cancel: &Cancel) -> Result<Response<Body>, NetworkError> {
            let (give_up, given_up) = mpsc::channel::<()>();
            cancel.on_cancel(move || drop(give_up));
            let _ = given_up.recv();
            Err(NetworkError::new(NetworkErrorKind::Lost, "given up"))
        }
    }

    #[test]
    fn those_who_wait_are_not_told_that_the_one_that_asks_was_given_up() {
        let (client, group) = (Client::new(Arc::new(Mute)), Group::default());
        group.cancel();
        let discovery = client.clone().grouped(Some(group)).discovery();
        assert!(matches!(discovery.catalog(), Err(Error::Cancelled)));
        let known = lock(client.known());
        assert!(known.under_way.result.is_none() && !known.under_way.is_under_way);
    }
}
