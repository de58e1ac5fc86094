//! The server's side.

use std::sync::{Arc, PoisonError, RwLock};

use cloudcoil_core::config::{ConfigError, Identity, Pem, Subject};
use cloudcoil_core::listen::ServerTls;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::CertificateDer;

use super::{certificates, invalid, private_key, provider};

/// How clients are greeted, and told from impostors: TLS 1.2 and 1.3, with a certificate that can be replaced while connections are
/// open.
pub struct Serving {
    protocols: Vec<Vec<u8>>,
    current: RwLock<Arc<ServerConfig>>,
}

impl Serving {
    /// A server that speaks one of `protocols`, named as in ALPN and the best first.
    ///
    /// # Errors
    /// [`ConfigError::InvalidPem`], naming the certificate or key at fault.
    pub fn new(tls: &ServerTls, protocols: &[&[u8]]) -> Result<Self, ConfigError> {
        let protocols: Vec<_> = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let current = RwLock::new(config(tls, &protocols)?);
        Ok(Self { protocols, current })
    }

    /// What the next connection is greeted with.
    pub fn current(&self) -> Arc<ServerConfig> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes up another certificate, and other authorities of clients; connections that are open keep theirs.
    ///
    /// # Errors
    /// As [`new`](Self::new), and nothing changes.
    pub fn reload(&self, tls: &ServerTls) -> Result<(), ConfigError> {
        let config = config(tls, &self.protocols)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }
}

/// Whom the certificate names that a client has shown, once the handshake is over and it was found good.
pub fn subject(shown: Option<&[CertificateDer<'_>]>) -> Option<Subject> {
    Subject::of_certificate(shown?.first()?)
}

fn config(tls: &ServerTls, protocols: &[Vec<u8>]) -> Result<Arc<ServerConfig>, ConfigError> {
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("the provider has suites for both versions of TLS");
    let builder = match &tls.client_ca {
        Some(ca) => builder.with_client_cert_verifier(verifier(ca)?),
        None => builder.with_no_client_auth(),
    };
    let Identity { certificate, key } = &tls.identity;
    let mut config = builder
        .with_single_cert(certificates(certificate)?, private_key(key)?)
        .map_err(|error| invalid(key, format!("not usable with its certificate: {error}")))?;
    config.alpn_protocols = protocols.to_vec();
    Ok(Arc::new(config))
}

/// Takes clients that show no certificate as well.
fn verifier(ca: &Pem) -> Result<Arc<dyn ClientCertVerifier>, ConfigError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(ca)?);
    let builder = WebPkiClientVerifier::builder_with_provider(roots.into(), provider());
    builder.allow_unauthenticated().build().map_err(|error| invalid(ca, error))
}
