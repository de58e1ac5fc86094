//! The certificates of clients: who shows which, and whether it is to be trusted.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
    SupportedCipherSuite,
};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::ListenError;
use crate::machine::{Peer, User};

/// Lets every client through that holds the key of what it shows, and says later whether that is to be trusted: a
/// client with a bad certificate is answered 401, as at a real API server, and not cut off.
#[derive(Debug)]
pub(super) struct Clients {
    trusted: Arc<dyn ClientCertVerifier>,
}

impl Clients {
    pub(super) fn new(roots: RootCertStore) -> Result<Self, ListenError> {
        let trusted = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build();
        Ok(Self { trusted: trusted.map_err(|error| ListenError::Tls(error.to_string()))? })
    }

    /// Whom the certificates show; `None` when there are none.
    pub(super) fn peer(&self, shown: &[CertificateDer<'_>]) -> Option<Peer> {
        let (own, others) = shown.split_first()?;
        let verified = self.trusted.verify_client_cert(own, others, UnixTime::now());
        let user = verified.ok().and_then(|_| subject(own));
        Some(user.map_or(Peer::Untrusted, Peer::Certified))
    }
}

impl ClientCertVerifier for Clients {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.trusted.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        own: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        // What cannot be read could not be answered for either.
        match X509Certificate::from_der(own) {
            Ok(_) => Ok(ClientCertVerified::assertion()),
            Err(_) => Err(Error::InvalidCertificate(CertificateError::BadEncoding)),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.trusted.verify_tls12_signature(message, own, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.trusted.verify_tls13_signature(message, own, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.trusted.supported_verify_schemes()
    }
}

/// The user that a certificate names: <https://kubernetes.io/docs/reference/access-authn-authz/authentication/#x509-client-certificates>.
fn subject(certificate: &CertificateDer<'_>) -> Option<User> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let subject = parsed.subject();
    let name = subject.iter_common_name().last()?.as_str().ok().filter(|name| !name.is_empty())?;
    let groups: Result<Vec<_>, _> = subject.iter_organization().map(|group| group.as_str()).collect();
    let mut user = User::new(name, groups.ok()?);
    if let Some(digest) = sha256(certificate) {
        let id = format!("X509SHA256={digest}");
        user.extra.insert("authentication.kubernetes.io/credential-id".to_owned(), vec![id]);
    }
    Some(user)
}

fn sha256(bytes: &[u8]) -> Option<String> {
    let suite = provider().cipher_suites.iter().find_map(|suite| match suite {
        SupportedCipherSuite::Tls13(suite) if suite.common.hash_provider.output_len() == 32 => Some(*suite),
        _ => None,
    })?;
    let digest = suite.common.hash_provider.hash(bytes);
    Some(digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
}

pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}
