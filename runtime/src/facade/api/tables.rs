//! Tables that change.

use cloudcoil_core::table::{TableEvent, TableWatch};
use cloudcoil_core::{Error, Resource};

use super::world::TableStream;
use super::world::driver::Events;
use super::{List, dual};

#[dual]
impl<K: Resource> List<K> {
    /// Reads the objects as the server prints them, and follows their changes: first a table of what exists, then one for
    /// each change. The limit and the selectors count.
    ///
    /// Nothing runs in the background: the connection is read as tables are asked for, and closed when the stream is dropped. Failures
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
        TableStream::new(Tabulating { events: Events::new(&client, machine) })
    }
}

/// Tables that change.
pub(crate) struct Tabulating {
    pub(crate) events: Events<TableWatch>,
}

#[dual]
impl Tabulating {
    pub(crate) async fn next(&mut self) -> Option<Result<TableEvent, Error>> {
        match self.events.next().await? {
            TableEvent::Failed(error) => {
                self.events.end();
                Some(Err(error))
            }
            event => Some(Ok(event)),
        }
    }
}
