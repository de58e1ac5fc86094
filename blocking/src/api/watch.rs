//! Watches as iterators.

use std::fmt::Display;
use std::marker::PhantomData;
use std::ops::ControlFlow;

use cloudcoil_core::{Error, ListVersion, ListWatch, Resource, WatchConfig};
use cloudcoil_runtime::WatchEvent;
use cloudcoil_runtime::parts::item;

use crate::Api;
use crate::driver::{Driver, Mailbox, Turn};
use crate::group::Member;
use crate::stop::{Stop, StopHandle};

/// A watch: loop over its events.
///
/// What exists, and then every change, without end: a watch that ends or breaks goes on where it was, and if the server
/// has forgotten that place, with a new list.
///
/// Failures that pass are logged and retried. An error among the events is an object that does not fit its type, or a refusal that
/// will hardly change (as 403); the watch goes on after both.
#[derive(Debug)]
#[must_use = "loop over it"]
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

    /// Starts it. The connection is read as the events are asked for, and closed when the iterator is dropped.
    pub fn iter(self) -> WatchIter<K> {
        let machine = ListWatch::new(self.config, 0, self.api.client().seed::<ListWatch>());
        let mailbox = Mailbox::new();
        let stop = StopHandle::new(mailbox.commands());
        let given_up = stop.clone();
        let member = self.api.client.member(move || given_up.stop());
        let driver = Some(Driver::new(machine, &self.api.client, mailbox));
        WatchIter { driver, stop, _member: member, kind: PhantomData }
    }
}

impl<K: Resource> IntoIterator for Watch<K> {
    type Item = Result<WatchEvent<K>, Error>;
    type IntoIter = WatchIter<K>;

    fn into_iter(self) -> WatchIter<K> {
        self.iter()
    }
}

/// The events of a watch; see [`Watch`].
#[must_use = "iterators do nothing unless advanced"]
pub struct WatchIter<K> {
    /// Until the watch ends.
    driver: Option<Driver<ListWatch, Stop>>,
    stop: StopHandle,
    _member: Option<Member>,
    kind: PhantomData<fn() -> K>,
}

impl<K> WatchIter<K> {
    /// Ends the watch from another thread, however it is blocked.
    ///
    /// ```no_run
    /// use std::thread;
    /// use cloudcoil_blocking::{Client, shutdown_signal};
    /// use cloudcoil_blocking::core::k8s_openapi::api::core::v1::Pod;
    ///
    /// fn count(client: &Client) -> usize {
    ///     let events = client.api::<Pod>().watch().iter();
    ///     let stop = events.stop_handle();
    ///     thread::spawn(move || {
    ///         shutdown_signal();
    ///         stop.stop();
    ///     });
    ///     events.count()
    /// }
    /// ```
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }
}

impl<K: Resource> Iterator for WatchIter<K> {
    type Item = Result<WatchEvent<K>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let event = match self.driver.as_mut()?.turn() {
                Turn::Event(event) => event,
                Turn::Command(Stop) => {
                    self.driver = None;
                    return None;
                }
            };
            match item(event) {
                ControlFlow::Continue(None) => {}
                ControlFlow::Continue(item) => return item,
                ControlFlow::Break(error) => {
                    self.driver = None;
                    return Some(Err(error));
                }
            }
        }
    }
}

impl<K> std::fmt::Debug for WatchIter<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WatchIter").field("ended", &self.driver.is_none()).finish_non_exhaustive()
    }
}
