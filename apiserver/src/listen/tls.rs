//! A certificate for this machine alone, and the authority that signed it.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

use super::ListenError;

/// What a server needs to speak TLS: a new authority, and a certificate it signed for `localhost` and `127.0.0.1`.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
    ca: Arc<str>,
}

impl Tls {
    /// Makes a new authority and certificate; `names` are the server's names and addresses besides this machine's own.
    ///
    /// # Errors
    /// [`ListenError::Tls`] if one of the names cannot be in a certificate.
    pub fn generate(names: &[String]) -> Result<Self, ListenError> {
        let failed = |error: rcgen::Error| ListenError::Tls(error.to_string());
        let mut authority = CertificateParams::default();
        authority.distinguished_name.push(DnType::CommonName, "cloudcoil-apiserver-ca");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority_key = KeyPair::generate().map_err(failed)?;
        let authority_certificate = authority.self_signed(&authority_key).map_err(failed)?;
        let issuer = Issuer::new(authority, authority_key);

        let own = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let names: Vec<_> = own.into_iter().chain(names.iter().cloned()).collect();
        let mut served = CertificateParams::new(names).map_err(failed)?;
        served.distinguished_name.push(DnType::CommonName, "cloudcoil-apiserver");
        served.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = served.signed_by(&key, &issuer).map_err(failed)?;

        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key))
            .map_err(|error| ListenError::Tls(error.to_string()))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), ca: authority_certificate.pem().into() })
    }

    /// The authority's certificate in PEM.
    pub fn ca_pem(&self) -> &str {
        &self.ca
    }

    pub(super) const fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }
}

/// Without keys.
impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("ca", &self.ca).finish_non_exhaustive()
    }
}
