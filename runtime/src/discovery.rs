//! What the server serves, asked once and kept.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cloudcoil_core::{ApiResource, Catalog, Discovery as Machine, DiscoveryConfig, DiscoveryEvent, Error, Time};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, WeakShared};

use crate::Client;
use crate::driver::Driver;

/// What the server serves, and under which names; made by [`Client::discovery`].
///
/// The first who asks has the server asked, and what it says is kept for all clones of the client. Who asks meanwhile waits
/// for the same answer. A failure is kept for nobody; and when some groups could not be had, they are asked for again.
///
/// Types that Rust knows need none of this.
///
/// ```no_run
/// use cloudcoil_runtime::{Client, Error};
///
/// async fn count(client: Client, name: &str) -> Result<usize, Error> {
///     let resource = client.discovery().find(name).await?;
///     Ok(client.api_for(resource.resource_type).all_namespaces().list().await?.items.len())
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
    pub async fn catalog(&self) -> Result<Arc<Catalog>, Error> {
        self.current().await.map(|(catalog, _)| catalog)
    }

    /// The catalog, and whether it was asked for after this call.
    async fn current(&self) -> Result<(Arc<Catalog>, bool), Error> {
        let (flight, is_new) = {
            let mut known = self.known();
            match &known.catalog {
                Some((catalog, found)) if catalog.is_complete() || self.is_fresh(*found) => {
                    return Ok((catalog.clone(), false));
                }
                _ => {
                    let before = known.flights;
                    let flight = known.join(&self.client);
                    (flight, known.flights > before)
                }
            }
        };
        Ok((flight.await?, is_new))
    }

    /// All that the server serves now: asked for after this call, though what has not changed need not be sent again.
    ///
    /// # Errors
    /// As [`catalog`](Self::catalog). What was known before is kept.
    pub async fn refresh(&self) -> Result<Arc<Catalog>, Error> {
        let before = self.known().flights;
        loop {
            let (number, flight) = {
                let mut known = self.known();
                let flight = known.join(&self.client);
                (known.flights, flight)
            };
            // One that was under way already may have been answered before this call.
            let result = flight.await;
            if number > before {
                return result;
            }
        }
    }

    /// The type of a name, as `kubectl get` takes it; see [`Catalog::find`]. If it is not known, the server is asked again,
    /// once: it may be new.
    ///
    /// # Errors
    /// [`Error::NotServed`], naming the groups that could not be had; else as [`catalog`](Self::catalog).
    pub async fn find(&self, name: &str) -> Result<ApiResource, Error> {
        self.look(|catalog| catalog.find(name).cloned()).await
    }

    /// The type of objects that carry this `apiVersion` and `kind`; see [`Catalog::find_kind`]. Asks again as [`find`](Self::find).
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub async fn find_kind(&self, api_version: &str, kind: &str) -> Result<ApiResource, Error> {
        self.look(|catalog| catalog.find_kind(api_version, kind).cloned()).await
    }

    /// The types that a list such as `pods,deploy` or `all` means; see [`Catalog::resolve`]. Asks again as [`find`](Self::find).
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub async fn resolve(&self, names: &str) -> Result<Vec<ApiResource>, Error> {
        self.look(|catalog| Ok(catalog.resolve(names)?.into_iter().cloned().collect())).await
    }

    async fn look<T>(&self, find: impl Fn(&Catalog) -> Result<T, Error>) -> Result<T, Error> {
        let (catalog, is_new) = self.current().await?;
        match find(&catalog) {
            Err(Error::NotServed(_)) if !is_new => find(&*self.refresh().await?),
            result => result,
        }
    }

    fn is_fresh(&self, found: Time) -> bool {
        self.client.runtime().now().mono.since(found) < Catalog::PARTIAL
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        lock(self.client.known())
    }
}

/// What one client knows, shared by its clones.
#[derive(Default)]
pub(crate) struct Known {
    catalog: Option<(Arc<Catalog>, Time)>,
    /// How often the server has been asked.
    flights: u64,
    /// Held by those who wait for it alone: with the last of them it ends.
    flight: Option<WeakShared<Flight>>,
}

type Flight = BoxFuture<'static, Result<Arc<Catalog>, Error>>;

impl Known {
    /// The question under way, or a new one.
    fn join(&mut self, client: &Client) -> Shared<Flight> {
        let under_way = self.flight.as_ref().and_then(WeakShared::upgrade);
        if let Some(flight) = under_way.filter(|flight| flight.peek().is_none()) {
            return flight;
        }
        self.flights += 1;
        let previous = self.catalog.as_ref().map(|(catalog, _)| catalog.clone());
        let flight = ask(client.clone(), previous).boxed().shared();
        self.flight = flight.downgrade();
        flight
    }
}

async fn ask(client: Client, previous: Option<Arc<Catalog>>) -> Result<Arc<Catalog>, Error> {
    let (timeout, retry) = client.limits();
    let config = DiscoveryConfig { timeout, retry, ..DiscoveryConfig::default() };
    let machine = Machine::new(config, previous, client.seed::<Machine>());
    let mut driver = Driver::new(machine, client.port());
    let catalog = loop {
        match driver.event().await {
            DiscoveryEvent::Retrying(retry) => crate::client::report(&retry),
            DiscoveryEvent::Done(result) => break Arc::new(result?),
        }
    };
    for failure in catalog.failures() {
        tracing::warn!("discovery is not complete: {failure}");
    }
    lock(client.known()).catalog = Some((catalog.clone(), client.runtime().now().mono));
    Ok(catalog)
}

fn lock(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}
