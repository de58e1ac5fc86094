//! What comes one by one, as iterators.

use std::fmt;

use cloudcoil_core::manifest::ManifestOutcome;
use cloudcoil_core::{Error, Resource, TableEvent};

use super::{
    Awaited, Installing, List, Listing, ManifestRequest, StopHandle, Tabulating, WaitRequest, Watch, WatchEvent,
    Watching,
};

/// Iterators over what sources give one by one.
macro_rules! iterators {
    ($($(#[$doc:meta])* $name:ident [$($kind:ident)?] $source:ty => $item:ty;)*) => {$(
        $(#[$doc])*
        #[must_use = "iterators do nothing unless advanced"]
        pub struct $name $(<$kind>)? ($source);

        impl $(<$kind>)? $name $(<$kind>)? {
            pub(crate) const fn new(source: $source) -> Self {
                Self(source)
            }
        }

        impl $(<$kind: Resource>)? Iterator for $name $(<$kind>)? {
            type Item = $item;

            fn next(&mut self) -> Option<$item> {
                self.0.next()
            }
        }

        impl $(<$kind>)? fmt::Debug for $name $(<$kind>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    )*};
}
pub(super) use iterators;

/// For iterators over results.
macro_rules! fallible {
    ($($name:ident [$($kind:ident)?] => $item:ty;)*) => {$(
        impl $(<$kind: Resource>)? $name $(<$kind>)? {
            /// The next, for loops that end with the first error: `while let Some(next) = all.try_next()? { … }`
            ///
            /// # Errors
            /// The item, if it is one.
            pub fn try_next(&mut self) -> Result<Option<$item>, Error> {
                self.next().transpose()
            }
        }
    )*};
}
pub(super) use fallible;

iterators! {
    /// The objects of a list, page after page; see [`List::stream`].
    ListStream [K] Listing<K> => Result<K, Error>;
    /// The events of a watch; see [`Watch::stream`].
    WatchStream [K] Watching<K> => Result<WatchEvent<K>, Error>;
    /// Tables that change; see [`List::watch_table`].
    TableStream [] Tabulating => Result<TableEvent, Error>;
    /// What comes of the objects of manifests, one by one; see [`ManifestRequest::stream`].
    ManifestStream [] Installing => ManifestOutcome;
}

fallible! {
    ListStream [K] => K;
    WatchStream [K] => WatchEvent<K>;
    TableStream [] => TableEvent;
}

impl<K: Resource> IntoIterator for List<K> {
    type Item = Result<K, Error>;
    type IntoIter = ListStream<K>;

    fn into_iter(self) -> ListStream<K> {
        self.stream()
    }
}

impl<K: Resource> Watch<K> {
    /// As [`stream`](Self::stream).
    pub fn iter(self) -> WatchStream<K> {
        self.stream()
    }
}

impl<K: Resource> IntoIterator for Watch<K> {
    type Item = Result<WatchEvent<K>, Error>;
    type IntoIter = WatchStream<K>;

    fn into_iter(self) -> WatchStream<K> {
        self.stream()
    }
}

impl<K> WatchStream<K> {
    /// Ends the watch from another thread, however it is blocked.
    ///
    /// ```no_run
    /// use std::thread;
    /// use cloudcoil_runtime::blocking::Client;
    /// use cloudcoil_core::k8s_openapi::api::core::v1::Pod;
    ///
    /// fn count(client: &Client, wait: impl FnOnce() + Send + 'static) -> usize {
    ///     let events = client.api::<Pod>().watch().stream();
    ///     let stop = events.stop_handle();
    ///     thread::spawn(move || {
    ///         wait();
    ///         stop.stop();
    ///     });
    ///     events.count()
    /// }
    /// ```
    pub fn stop_handle(&self) -> StopHandle {
        self.0.events.stop_handle()
    }
}

impl TableStream {
    /// Ends it from another thread, however it is blocked.
    pub fn stop_handle(&self) -> StopHandle {
        self.0.events.stop_handle()
    }
}

impl<K: Resource> WaitRequest<K> {
    /// As [`send`](Self::send).
    ///
    /// # Errors
    /// The same.
    pub fn wait(self) -> Result<Awaited<K>, Error> {
        self.send()
    }
}

impl ManifestRequest {
    /// As [`stream`](Self::stream).
    pub fn iter(self) -> ManifestStream {
        self.stream()
    }
}

impl IntoIterator for ManifestRequest {
    type Item = ManifestOutcome;
    type IntoIter = ManifestStream;

    fn into_iter(self) -> ManifestStream {
        self.stream()
    }
}
