//! What comes one by one, as streams.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use cloudcoil_core::manifest::ManifestOutcome;
use cloudcoil_core::{Error, Resource, TableEvent};
use futures_util::stream::{self, BoxStream, Stream, StreamExt as _};

use crate::{Installing, Lines, Listing, Reading, Tabulating, WatchEvent, Watching};

/// Streams of what sources give one by one. A source is never left in the middle: who stops polling and comes again goes on where
/// he was.
macro_rules! streams {
    ($($(#[$doc:meta])* $name:ident [$($kind:ident)?] $source:ty => $item:ty;)*) => {$(
        $(#[$doc])*
        #[must_use = "streams do nothing unless polled"]
        pub struct $name $(<$kind>)? (BoxStream<'static, $item>);

        impl $(<$kind: Resource>)? $name $(<$kind>)? {
            pub(crate) fn new(source: $source) -> Self {
                let next = |mut source: $source| async move { source.next().await.map(|item| (item, source)) };
                Self(stream::unfold(source, next).boxed())
            }
        }

        impl $(<$kind>)? Stream for $name $(<$kind>)? {
            type Item = $item;

            fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<$item>> {
                self.0.poll_next_unpin(context)
            }
        }

        impl $(<$kind>)? fmt::Debug for $name $(<$kind>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    )*};
}

streams! {
    /// The objects of a list, page after page; see [`List::stream`](crate::List::stream).
    ListStream [K] Listing<K> => Result<K, Error>;
    /// The events of a watch; see [`Watch::stream`](crate::Watch::stream).
    WatchStream [K] Watching<K> => Result<WatchEvent<K>, Error>;
    /// Tables that change; see [`List::watch_table`](crate::List::watch_table).
    TableStream [] Tabulating => Result<TableEvent, Error>;
    /// A log, or the body of an answer, as it comes in; see [`Logs::bytes`](crate::Logs::bytes) and
    /// [`Client::stream`](crate::Client::stream).
    LogBytes [] Reading => Result<Bytes, Error>;
    /// The lines of a log; see [`Logs::lines`](crate::Logs::lines).
    LogText [] Lines => Result<String, Error>;
    /// What comes of the objects of manifests, one by one; see [`ManifestRequest::stream`](crate::ManifestRequest::stream).
    ManifestStream [] Installing => ManifestOutcome;
}
