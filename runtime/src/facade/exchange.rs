//! From a machine's request to the answer of a server.

use std::sync::Arc;

use bytes::Bytes;
use cloudcoil_core::{NetworkError, Target};
use http::{Request, Response};

use super::world::session::{Courier, plain};
use super::world::{Body, dual};

/// Sends a request with all that its target wants, and once more with better credentials if it is rejected and there are any.
#[dual]
pub(crate) async fn exchange(
    target: &Arc<Target>,
    courier: &Courier,
    request: Request<Bytes>,
) -> Result<Response<Body>, NetworkError> {
    let mut outgoing = target.outgoing(request)?;
    let mut grant = courier.ask(None).await?.expect("only a rejection can stand");
    loop {
        let response = courier.carry(outgoing.with(&grant), grant.identity.clone()).await;
        let response = response.map_err(|error| target.blame(error))?;
        if outgoing.is_rejected(response.status())
            && let Some(better) = courier.ask(Some(grant.generation)).await?
        {
            tracing::debug!(generation = better.generation, "sending once more with other credentials");
            grant = better;
            continue;
        }
        let (mut head, body) = response.into_parts();
        let gunzip = outgoing.decompression(&mut head.headers);
        return Ok(Response::from_parts(head, plain::body(body, gunzip, target.clone())));
    }
}
