//! Watches.

use std::fmt::Display;
use std::marker::PhantomData;
use std::ops::ControlFlow;

use cloudcoil_core::{Error, ListVersion, ListWatch, Resource, WatchConfig};

use super::world::WatchStream;
use super::world::driver::Events;
use super::{Api, dual};
use crate::plain::{WatchEvent, item};

/// A watch to be started with [`stream`](Watch::stream).
#[derive(Debug)]
#[must_use = "call `stream`"]
pub struct Watch<K> {
    api: Api<K>,
    config: WatchConfig,
}

impl<K: Resource> Watch<K> {
    pub(super) fn new(api: Api<K>) -> Self {
        Self { config: WatchConfig::new(api.requests.clone()), api }
    }

    /// Only objects in this namespace.
    pub fn namespace(self, namespace: &str) -> Self {
        self.within(|api| api.namespace(namespace))
    }

    /// Objects in all namespaces.
    pub fn all_namespaces(self) -> Self {
        self.within(Api::all_namespaces)
    }

    fn within(self, scope: impl FnOnce(Api<K>) -> Api<K>) -> Self {
        let api = scope(self.api);
        let config = WatchConfig { requests: api.requests.clone(), ..self.config };
        Self { api, config }
    }

    /// Only objects whose labels match; one that ceases to match is reported as deleted.
    pub fn labels(mut self, selector: impl Display) -> Self {
        self.config.label_selector = Some(selector.to_string());
        self
    }

    /// Only objects whose fields match; one that ceases to match is reported as deleted.
    pub fn fields(mut self, selector: impl Display) -> Self {
        self.config.field_selector = Some(selector.to_string());
        self
    }

    /// How new the first list must be; as new as can be, unless told otherwise.
    pub fn version(mut self, version: ListVersion) -> Self {
        self.config.version = version;
        self
    }

    /// Changes any of the finer settings.
    pub fn configure(mut self, change: impl FnOnce(&mut WatchConfig)) -> Self {
        change(&mut self.config);
        self
    }

    /// What exists, and then every change, without end: a watch that ends or breaks goes on where it was, and if the server
    /// has forgotten that place, with a new list.
    ///
    /// Nothing runs in the background: the connection is read as events are asked for, and closed when the stream is dropped.
    /// Failures that pass are logged and retried. An error of the stream is an object that does not fit its type, or a
    /// refusal that will hardly change (as 403); the stream goes on after both.
    pub fn stream(self) -> WatchStream<K> {
        let client = self.api.client;
        let machine = ListWatch::new(self.config, 0, client.seed::<ListWatch>());
        WatchStream::new(Watching { events: Events::new(&client, machine), kind: PhantomData })
    }
}

/// The events of a watch.
pub(crate) struct Watching<K> {
    pub(crate) events: Events<ListWatch>,
    kind: PhantomData<fn() -> K>,
}

#[dual]
impl<K: Resource> Watching<K> {
    pub(crate) async fn next(&mut self) -> Option<Result<WatchEvent<K>, Error>> {
        loop {
            match item(self.events.next().await?) {
                ControlFlow::Continue(None) => {}
                ControlFlow::Continue(item) => return item,
                ControlFlow::Break(error) => {
                    self.events.end();
                    return Some(Err(error));
                }
            }
        }
    }
}
