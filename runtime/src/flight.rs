//! Questions to the server that several tasks wait for.

use std::sync::Arc;

use cloudcoil_core::{Catalog, Error};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, WeakShared};

use crate::{Client, Discovery, Flight, Wanted, ask, lock};

/// The question under way, held by those who wait for it alone: with the last of them it ends.
#[derive(Default)]
pub(crate) struct UnderWay(Option<WeakShared<Asking>>);

type Asking = BoxFuture<'static, Result<Arc<Catalog>, Error>>;

impl Discovery {
    /// Asks the server, or waits for the answer to a question that is under way already.
    pub(crate) async fn fly(&self, wanted: Wanted) -> Flight {
        let now = self.client().clock().now().mono;
        let (number, is_own, asking) = {
            let mut known = self.known();
            if let Some(kept) = known.kept(wanted, now) {
                return kept;
            }
            match known.under_way.asking() {
                Some(asking) => (known.flights, false, asking),
                None => {
                    let (number, previous) = known.take_off();
                    let asking = land(self.client().clone(), previous).boxed().shared();
                    known.under_way = UnderWay(asking.downgrade());
                    (number, true, asking)
                }
            }
        };
        Flight { number, result: asking.await, is_own }
    }
}

impl UnderWay {
    fn asking(&self) -> Option<Shared<Asking>> {
        self.0.as_ref().and_then(WeakShared::upgrade).filter(|asking| asking.peek().is_none())
    }
}

async fn land(client: Client, previous: Option<Arc<Catalog>>) -> Result<Arc<Catalog>, Error> {
    let catalog = ask(&client, previous).await?;
    lock(client.known()).catalog = Some((catalog.clone(), client.clock().now().mono));
    Ok(catalog)
}
