//! What the server serves, asked once and kept.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cloudcoil_core::{ApiResource, Catalog, Discovery as Machine, DiscoveryConfig, DiscoveryEvent, Error, Time};

use super::Client;
use super::client::report;
use super::world::dual;
use super::world::flight::UnderWay;

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
///     Ok(client.api_for(resource.resource_type).all_namespaces().list().send().await?.items.len())
/// }
/// ```
#[dual]
#[derive(Clone, Debug)]
pub struct Discovery {
    client: Client,
}

#[dual]
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
        let flight = self.fly(Wanted::Kept).await;
        Ok((flight.result?, flight.is_own))
    }

    /// All that the server serves now: asked for after this call, though what has not changed need not be sent again.
    ///
    /// # Errors
    /// As [`catalog`](Self::catalog). What was known before is kept.
    pub async fn refresh(&self) -> Result<Arc<Catalog>, Error> {
        let before = self.known().flights;
        loop {
            // One that was under way already may have been answered before this call.
            let flight = self.fly(Wanted::New).await;
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

    pub(crate) const fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn known(&self) -> MutexGuard<'_, Known> {
        lock(self.client.known())
    }
}

/// Which catalog is good enough.
#[derive(Clone, Copy)]
pub(crate) enum Wanted {
    /// One that is kept, if there is one.
    Kept,
    /// One that is asked for now.
    New,
}

/// A question to the server, answered.
pub(crate) struct Flight {
    pub(crate) number: u64,
    pub(crate) result: Result<Arc<Catalog>, Error>,
    /// Whether nobody had asked it before.
    pub(crate) is_own: bool,
}

/// What one client knows, shared by its clones.
#[derive(Default)]
pub(crate) struct Known {
    pub(crate) catalog: Option<(Arc<Catalog>, Time)>,
    /// How often the server has been asked.
    pub(crate) flights: u64,
    pub(crate) under_way: UnderWay,
}

impl Known {
    /// What needs no question.
    pub(crate) fn kept(&self, wanted: Wanted, now: Time) -> Option<Flight> {
        let (catalog, found) = self.catalog.as_ref()?;
        let is_kept = matches!(wanted, Wanted::Kept) && (catalog.is_complete() || now.since(*found) < Catalog::PARTIAL);
        is_kept.then(|| Flight { number: self.flights, result: Ok(catalog.clone()), is_own: false })
    }

    /// The number of a new question, and what was known before.
    pub(crate) fn take_off(&mut self) -> (u64, Option<Arc<Catalog>>) {
        self.flights += 1;
        (self.flights, self.catalog.as_ref().map(|(catalog, _)| catalog.clone()))
    }
}

#[dual]
pub(crate) async fn ask(client: &Client, previous: Option<Arc<Catalog>>) -> Result<Arc<Catalog>, Error> {
    let (timeout, retry) = client.limits();
    let config = DiscoveryConfig { timeout, retry, ..DiscoveryConfig::default() };
    let machine = Machine::new(config, previous, client.seed::<Machine>());
    let hear = |event| match event {
        DiscoveryEvent::Retrying(retry) => {
            report(&retry);
            None
        }
        DiscoveryEvent::Done(result) => Some(result),
    };
    let catalog = Arc::new(client.finish(machine, hear).await??);
    for failure in catalog.failures() {
        tracing::warn!("discovery is not complete: {failure}");
    }
    Ok(catalog)
}

pub(crate) fn lock(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}
