//! Builders that can be awaited.

use cloudcoil_core::manifest::ManifestReport;
use cloudcoil_core::{Deleted, Error, Evicted, Resource, ResourceList};
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;

use crate::{
    Awaited, Create, Delete, DeleteCollection, Evict, Get, List, Logs, ManifestRequest, PatchRequest, Replace, Save,
    SetReplicas, SubresourceWrite, WaitRequest,
};

macro_rules! awaited {
    ($([$($parameters:tt)*] $builder:ty, $life:lifetime => $output:ty;)*) => {$(
        /// Awaiting the builder is awaiting its `send`.
        impl<$($parameters)*> IntoFuture for $builder {
            type Output = $output;
            type IntoFuture = BoxFuture<$life, $output>;

            fn into_future(self) -> Self::IntoFuture {
                Box::pin(self.send())
            }
        }
    )*};
}

awaited! {
    [K: Resource] Get<K>, 'static => Result<K, Error>;
    [K: Resource] List<K>, 'static => Result<ResourceList<K>, Error>;
    ['a, K: Resource] Create<'a, K>, 'a => Result<K, Error>;
    ['a, K: Resource] Replace<'a, K>, 'a => Result<K, Error>;
    ['a, K: Resource] Save<'a, K>, 'a => Result<K, Error>;
    [K: Resource] PatchRequest<K>, 'static => Result<K, Error>;
    [K: Resource] Delete<K>, 'static => Result<Deleted<K>, Error>;
    [K: Resource] DeleteCollection<K>, 'static => Result<ResourceList<K>, Error>;
    [K: Resource] WaitRequest<K>, 'static => Result<Awaited<K>, Error>;
    [K: Resource] SetReplicas<K>, 'static => Result<K, Error>;
    [T: DeserializeOwned + 'static] SubresourceWrite<T>, 'static => Result<T, Error>;
    [] Evict, 'static => Result<Evicted, Error>;
    [] Logs, 'static => Result<String, Error>;
    [] ManifestRequest, 'static => ManifestReport;
}
