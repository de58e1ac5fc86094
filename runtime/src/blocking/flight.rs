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
        landing.result = Some(result.clone());
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
