//! Tables that change.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use cloudcoil_core::table::{TableEvent, TableWatch};
use cloudcoil_core::{Error, Resource};
use futures_util::stream::Stream;

use super::List;
use crate::driver::Driver;

impl<K: Resource> List<K> {
    /// Reads the objects as the server prints them, and follows their changes: first a table of what exists, then one for
    /// each change. The limit and the selectors count.
    ///
    /// Nothing runs in the background: the connection is read as the stream is polled, and closed when it is dropped. Failures
    /// that pass are tried again; one that will hardly pass is the last item.
    ///
    /// ```no_run
    /// use cloudcoil_runtime::{Client, Error, TableEvent};
    /// use cloudcoil_core::k8s_openapi::api::core::v1::Pod;
    /// use futures_util::TryStreamExt;
    ///
    /// async fn show(client: Client) -> Result<(), Error> {
    ///     let mut tables = client.api::<Pod>().list().watch_table();
    ///     while let Some(event) = tables.try_next().await? {
    ///         let (TableEvent::Listed(table) | TableEvent::Applied(table)) = event else { continue };
    ///         for row in &table.rows {
    ///             println!("{}", row.text(0));
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn watch_table(self) -> TableStream {
        let client = self.api.client;
        let machine = TableWatch::new(self.api.requests, self.params, 0, client.seed::<TableWatch>());
        TableStream { driver: Driver::new(machine, client.port()), ended: false }
    }
}

/// Tables that change; see [`List::watch_table`].
#[must_use = "streams do nothing unless polled"]
pub struct TableStream {
    driver: Driver<TableWatch>,
    ended: bool,
}

impl Stream for TableStream {
    type Item = Result<TableEvent, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        Poll::Ready(Some(match ready!(self.driver.poll_event(context)) {
            TableEvent::Failed(error) => {
                self.ended = true;
                Err(error)
            }
            event => Ok(event),
        }))
    }
}

impl std::fmt::Debug for TableStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TableStream")
    }
}
