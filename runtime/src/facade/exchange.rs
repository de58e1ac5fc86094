//! From a machine's request to the answer of a server.

use std::sync::Arc;

use bytes::Bytes;
use cloudcoil_core::credentials::CredentialsInput;
use cloudcoil_core::{NetworkError, Target};
use http::{Request, Response};

use super::plain::Plain;
use super::world::session::{Courier, body};
use super::world::{Body, dual};

/// Sends a request with all that its target wants, and once more if it is rejected and there are better credentials, if one side
/// has refused the other and there are other certificates, or if the server has not taken it up.
#[dual]
pub(crate) async fn exchange(
    target: &Arc<Target>,
    courier: &Courier,
    request: Request<Bytes>,
) -> Result<Response<Body>, NetworkError> {
    let mut outgoing = target.outgoing(request)?;
    let asked = courier.ask(|caller| CredentialsInput::Asked { caller }).await?;
    let mut grant = asked.expect("only what was of no use can stand");
    loop {
        let carried = courier.carry(outgoing.with(&grant), grant.tls.clone()).await;
        if matches!(&carried, Err(error) if outgoing.is_unprocessed(error)) {
            tracing::debug!("sending once more over another connection");
            continue;
        }
        let is_rejected = matches!(&carried, Ok(response) if outgoing.is_rejected(response.status()));
        let is_untrusted = matches!(&carried, Err(error) if outgoing.is_untrusted(error));
        let may_resend = carried.as_ref().err().is_none_or(|error| outgoing.may_reconnect(error));
        let generation = grant.generation;
        let question = |caller| match is_rejected {
            true => CredentialsInput::Rejected { caller, generation },
            false => CredentialsInput::Failed { caller, generation },
        };
        if (is_rejected || is_untrusted)
            && let Some(better) = courier.ask(question).await?
            && may_resend
        {
            tracing::debug!(generation = better.generation, "sending once more with other credentials");
            grant = better;
            continue;
        }
        let response = carried.map_err(|error| target.blame(error))?;
        let (mut head, compressed) = response.into_parts();
        let gunzip = outgoing.decompression(&mut head.headers);
        let plain = Plain { body: Some(compressed), gunzip, target: target.clone() };
        return Ok(Response::from_parts(head, body(plain)));
    }
}
