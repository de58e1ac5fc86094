//! The few blocking HTTP calls that a launcher makes.
use http::Response;
use std::time::Duration;
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::Error;

/// An agent that trusts the authority in `ca_pem`, and gives each call up after [`TIMEOUT`].
pub(super) fn agent(ca_pem: &str) -> Result<Agent, Error> {
    let failed =
        |error: ureq::Error| Error::Certificate { subject: "the API server".to_owned(), reason: error.to_string() };
    let authority = Certificate::from_pem(ca_pem.as_bytes()).map_err(failed)?;
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&[authority]))
        .unversioned_rustls_crypto_provider(cloudcoil_tls::provider())
        .build();
    let config = Agent::config_builder().tls_config(tls).proxy(None).http_status_as_error(false);
    // A connection kept from before a restart would fail the next probe.
    Ok(config.timeout_global(Some(TIMEOUT)).max_idle_connections(0).build().into())
}

/// Fails unless the answer's status is 2xx; the reason holds the start of its body.
pub(super) fn check(answer: Result<Response<ureq::Body>, ureq::Error>) -> Result<String, String> {
    let mut answer = answer.map_err(|error| error.to_string())?;
    let body = answer.body_mut().with_config().limit(LIMIT).read_to_string().map_err(|error| error.to_string())?;
    if answer.status().is_success() { Ok(body) } else { Err(format!("HTTP {}: {body}", answer.status())) }
}

const TIMEOUT: Duration = Duration::from_secs(10);
const LIMIT: u64 = 64 * 1024;
