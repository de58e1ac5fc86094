//! A certificate for this machine alone, the authority that signed it, and the certificates of clients.

use std::fmt;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use super::clients::{Clients, provider};
use super::{ListenError, signing};
use crate::machine::Peer;

/// What a server needs to speak TLS: a new authority, and a certificate it signed for `localhost` and `127.0.0.1`.
///
/// Clients may show a certificate: of one that the authority signed, the common name is the user, and the
/// organizations are the groups.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
    clients: Arc<Clients>,
    authority: Arc<Authority>,
}

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    server: CertificateDer<'static>,
    server_pem: String,
    key: PrivatePkcs8KeyDer<'static>,
    key_pem: String,
}

/// A client's certificate and its key, in PEM.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientCertificate {
    /// The certificate.
    pub certificate_pem: String,
    /// Its private key.
    pub key_pem: String,
}

impl Tls {
    /// Makes a new authority and certificate; `names` are the server's names and addresses besides this machine's own.
    ///
    /// # Errors
    /// [`ListenError::Tls`] if one of the names cannot be in a certificate.
    pub fn generate(names: &[String]) -> Result<Self, ListenError> {
        let authority = Authority::new(names).map_err(failed)?;
        let clients = trusted(&[CertificateDer::from_pem_slice(authority.pem.as_bytes()).map_err(failed)?])?;
        Self::new(Arc::new(authority), clients)
    }

    /// Trusts the clients that other authorities have signed, and them alone; `pem` holds one certificate or more.
    ///
    /// # Errors
    /// [`ListenError::Tls`] if there is no certificate in `pem`, or a broken one.
    pub fn with_client_ca(self, pem: &str) -> Result<Self, ListenError> {
        let authorities: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
        Self::new(self.authority, trusted(&authorities.map_err(failed)?)?)
    }

    fn new(authority: Arc<Authority>, clients: Clients) -> Result<Self, ListenError> {
        let clients = Arc::new(clients);
        let key = PrivateKeyDer::Pkcs8(authority.key.clone_key());
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder.with_client_cert_verifier(clients.clone()).with_single_cert(vec![authority.server.clone()], key)
            })
            .map_err(failed)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), clients, authority })
    }

    /// The authority's certificate in PEM.
    pub fn ca_pem(&self) -> &str {
        &self.authority.pem
    }

    /// A new key, and a certificate for it by which the server knows its holder as user `name` in `groups`.
    ///
    /// The authority signs it even if the server does not trust its own authority for
    /// [clients](Self::with_client_ca).
    ///
    /// # Errors
    /// [`ListenError::Tls`] if the key cannot be made.
    pub fn client_certificate(&self, name: &str, groups: &[&str]) -> Result<ClientCertificate, ListenError> {
        let key = KeyPair::generate().map_err(failed)?;
        self.sign(name, groups, &key)
    }

    /// As [`client_certificate`](Self::client_certificate), for a key there is: `key_pem` is a private key in PKCS #8.
    ///
    /// # Errors
    /// [`ListenError::Tls`] if it is no key, or one of a kind that cannot sign.
    pub fn client_certificate_for(
        &self,
        name: &str,
        groups: &[&str],
        key_pem: &str,
    ) -> Result<ClientCertificate, ListenError> {
        self.sign(name, groups, &KeyPair::from_pem(key_pem).map_err(failed)?)
    }

    fn sign(&self, name: &str, groups: &[&str], key: &KeyPair) -> Result<ClientCertificate, ListenError> {
        let signer = self.authority.issuer.key();
        let certificate_pem = signing::client(AUTHORITY, signer, key, name, groups).map_err(failed)?;
        Ok(ClientCertificate { certificate_pem, key_pem: key.serialize_pem() })
    }

    /// The server's own certificate, in PEM.
    pub fn certificate_pem(&self) -> &str {
        &self.authority.server_pem
    }

    /// The key of the server's own certificate, in PEM (PKCS #8).
    pub fn key_pem(&self) -> &str {
        &self.authority.key_pem
    }

    pub(super) const fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }

    /// Whom the client's certificates show; `None` when there are none.
    pub(super) fn peer(&self, shown: Option<&[CertificateDer<'_>]>) -> Option<Peer> {
        self.clients.peer(shown?)
    }
}

impl Authority {
    fn new(names: &[String]) -> Result<Self, rcgen::Error> {
        let mut authority = CertificateParams::default();
        authority.distinguished_name.push(DnType::CommonName, AUTHORITY);
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        let pem = authority.self_signed(&key)?.pem();
        let issuer = Issuer::new(authority, key);

        let own = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let names: Vec<_> = own.into_iter().chain(names.iter().cloned()).collect();
        let mut served = CertificateParams::new(names)?;
        served.distinguished_name.push(DnType::CommonName, "cloudcoil-apiserver");
        served.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let server = served.signed_by(&key, &issuer)?;
        Ok(Self {
            issuer,
            pem,
            server: server.der().clone(),
            server_pem: server.pem(),
            key: PrivatePkcs8KeyDer::from(key.serialize_der()),
            key_pem: key.serialize_pem(),
        })
    }
}

fn trusted(authorities: &[CertificateDer<'_>]) -> Result<Clients, ListenError> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority.clone().into_owned()).map_err(failed)?;
    }
    Clients::new(roots)
}

fn failed(error: impl fmt::Display) -> ListenError {
    ListenError::Tls(error.to_string())
}

const AUTHORITY: &str = "cloudcoil-apiserver-ca";

/// Without keys.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("ca", &self.authority.pem).finish_non_exhaustive()
    }
}

/// Without the key.
impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCertificate").field("certificate_pem", &self.certificate_pem).finish_non_exhaustive()
    }
}
