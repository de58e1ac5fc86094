//! What the server serves, asked once and kept.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cloudcoil_core::{
    ApiResource, Catalog, Discovery as Machine, DiscoveryConfig, DiscoveryEvent, DiscoveryInput, Error, Time,
};

use crate::Client;
use crate::client::report;
use crate::driver::{Driver, Mailbox, Turn};

/// What the server serves, and under which names; made by [`Client::discovery`].
///
/// The first who asks has the server asked, and what it says is kept for all clones of the client. Who asks meanwhile waits
/// for the same answer. A failure is kept for nobody; and when some groups could not be had, they are asked for again.
///
/// Types that Rust knows need none of this.
///
/// ```no_run
/// use cloudcoil_blocking::{Client, Error};
///
/// fn count(client: &Client, name: &str) -> Result<usize, Error> {
///     let resource = client.discovery().find(name)?;
///     Ok(client.api_for(resource.resource_type).all_namespaces().list().send()?.items.len())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Discovery {
    client: Client,
}

impl Discovery {
    pub(crate) const fn new(client: Client) -> Self {
        Self { client }
    }

    /// All that the server serves. What is known already is the answer, unless some groups are missing and it is
    /// older than 10 seconds.
    ///
    /// # Errors
    /// As [`Client::request`], [`Error::Api`] or [`Error::Body`], when nothing at all can be had.
    pub fn catalog(&self) -> Result<Arc<Catalog>, Error> {
        self.current().map(|(catalog, _)| catalog)
    }

    /// The catalog, and whether it was asked for after this call.
    fn current(&self) -> Result<(Arc<Catalog>, bool), Error> {
        {
            let known = self.known();
            if let Some((catalog, found)) = &known.catalog
                && (catalog.is_complete() || self.is_fresh(*found))
            {
                return Ok((catalog.clone(), false));
            }
        }
        let flight = self.fly();
        flight.result.map(|catalog| (catalog, flight.is_own))
    }

    /// All that the server serves now: asked for after this call, though what has not changed need not be sent again.
    ///
    /// # Errors
    /// As [`catalog`](Self::catalog). What was known before is kept.
    pub fn refresh(&self) -> Result<Arc<Catalog>, Error> {
        let before = self.known().flights;
        loop {
            // One that was under way already may have been answered before this call.
            let flight = self.fly();
            if flight.number > before {
                return flight.result;
            }
        }
    }

    /// The type of a name, as `kubectl get` takes it; see [`Catalog::find`]. If it is not known, the server is asked again,
    /// once: it may be new.
    ///
    /// # Errors
    /// [`Error::NotServed`], naming the groups that could not be had; else as [`catalog`](Self::catalog).
    pub fn find(&self, name: &str) -> Result<ApiResource, Error> {
        self.look(|catalog| catalog.find(name).cloned())
    }

    /// The type of objects that carry this `apiVersion` and `kind`; see [`Catalog::find_kind`]. Asks again as [`find`](Self::find).
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub fn find_kind(&self, api_version: &str, kind: &str) -> Result<ApiResource, Error> {
        self.look(|catalog| catalog.find_kind(api_version, kind).cloned())
    }

    /// The types that a list such as `pods,deploy` or `all` means; see [`Catalog::resolve`]. Asks again as [`find`](Self::find).
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub fn resolve(&self, names: &str) -> Result<Vec<ApiResource>, Error> {
        self.look(|catalog| Ok(catalog.resolve(names)?.into_iter().cloned().collect()))
    }

    fn look<T>(&self, find: impl Fn(&Catalog) -> Result<T, Error>) -> Result<T, Error> {
        let (catalog, is_new) = self.current()?;
        match find(&catalog) {
            Err(Error::NotServed(_)) if !is_new => find(&*self.refresh()?),
            result => result,
        }
    }

    fn is_fresh(&self, found: Time) -> bool {
        self.client.clock().now().mono.since(found) < Catalog::PARTIAL
    }

    /// Asks the server, or waits for what another thread is told that asks already.
    fn fly(&self) -> Flight {
        let (known, landed) = self.client.known();
        let mut state = lock(known);
        while state.is_under_way {
            let number = state.flights;
            state = landed.wait(state).unwrap_or_else(PoisonError::into_inner);
            if let Some(result) = state.result.clone().filter(|_| state.flights == number && !state.is_under_way) {
                return Flight { number, result, is_own: false };
            }
        }
        state.flights += 1;
        state.is_under_way = true;
        let number = state.flights;
        let previous = state.catalog.as_ref().map(|(catalog, _)| catalog.clone());
        drop(state);
        let mut landing = Landing { client: &self.client, result: None };
        let result = ask(&self.client, previous);
        landing.result = Some(result.clone());
        Flight { number, result, is_own: true }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        lock(&self.client.known().0)
    }
}

/// What a client knows, shared by its clones.
#[derive(Default)]
pub(crate) struct Known {
    catalog: Option<(Arc<Catalog>, Time)>,
    /// How often the server has been asked.
    flights: u64,
    is_under_way: bool,
    /// What the last question came to.
    result: Option<Result<Arc<Catalog>, Error>>,
}

/// A question that has been answered.
struct Flight {
    number: u64,
    result: Result<Arc<Catalog>, Error>,
    /// Whether nobody had asked it before.
    is_own: bool,
}

/// Tells those who wait, also when the question ends in a panic.
struct Landing<'a> {
    client: &'a Client,
    result: Option<Result<Arc<Catalog>, Error>>,
}

impl Drop for Landing<'_> {
    fn drop(&mut self) {
        let (known, landed) = self.client.known();
        let mut state = lock(known);
        state.is_under_way = false;
        if let Some(Ok(catalog)) = &self.result {
            state.catalog = Some((catalog.clone(), self.client.clock().now().mono));
        }
        state.result = self.result.take();
        landed.notify_all();
    }
}

fn ask(client: &Client, previous: Option<Arc<Catalog>>) -> Result<Arc<Catalog>, Error> {
    let (timeout, retry) = client.limits();
    let config = DiscoveryConfig { timeout, retry, ..DiscoveryConfig::default() };
    let mailbox = Mailbox::new();
    let commands = mailbox.commands();
    let _member = client.member(move || commands.send(DiscoveryInput::Cancelled));
    let mut driver = Driver::new(Machine::new(config, previous, client.seed::<Machine>()), client, mailbox);
    let catalog = loop {
        match driver.turn() {
            Turn::Event(DiscoveryEvent::Retrying(retry)) => report(&retry),
            Turn::Event(DiscoveryEvent::Done(result)) => break Arc::new(result?),
            Turn::Command(cancelled) => driver.step(Some(cancelled)),
        }
    };
    for failure in catalog.failures() {
        tracing::warn!("discovery is not complete: {failure}");
    }
    Ok(catalog)
}

fn lock(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}
