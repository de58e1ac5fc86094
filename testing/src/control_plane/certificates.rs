//! A certificate authority of one control plane.
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloudcoil_apiserver::{ListenError, Tls};
use rcgen::KeyPair;

use crate::Error;

/// A client certificate and its key, as PEM text.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientCertificate {
    /// The certificate, signed by the authority that the API server trusts.
    pub certificate_pem: String,
    /// Its private key (PKCS #8).
    pub key_pem: String,
}

impl ClientCertificate {
    /// What stands under `user:` in a kubeconfig.
    pub(super) fn kubeconfig_user(&self) -> [(&'static str, String); 2] {
        let base64 = |text: &str| STANDARD.encode(text);
        [("client-certificate-data", base64(&self.certificate_pem)), ("client-key-data", base64(&self.key_pem))]
    }
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCertificate").field("certificate_pem", &self.certificate_pem).finish_non_exhaustive()
    }
}

/// The authority, and the API server's certificate that it has signed.
pub(super) struct Authority {
    tls: Tls,
}

impl Authority {
    /// An authority, and a certificate for a server of these names besides `localhost` and `127.0.0.1`.
    pub(super) fn new(names: &[&str]) -> Result<Self, Error> {
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        Tls::generate(&names).map(|tls| Self { tls }).map_err(|error| failed(AUTHORITY, &error))
    }

    pub(super) fn pem(&self) -> String {
        self.tls.ca_pem().to_owned()
    }

    /// The API server's certificate and key, as PEM texts.
    pub(super) fn serving(&self) -> (&str, &str) {
        (self.tls.certificate_pem(), self.tls.key_pem())
    }

    /// A certificate that the API server takes for user `name` in `groups`.
    pub(super) fn client(&self, name: &str, groups: &[&str]) -> Result<ClientCertificate, Error> {
        let signed = self.tls.client_certificate(name, groups).map_err(|error| failed(name, &error))?;
        Ok(ClientCertificate { certificate_pem: signed.certificate_pem, key_pem: signed.key_pem })
    }

    /// As [`client`](Self::client), for a key there is.
    pub(super) fn client_for(&self, name: &str, groups: &[&str], key: &str) -> Result<ClientCertificate, Error> {
        let signed = self.tls.client_certificate_for(name, groups, key).map_err(|error| failed(name, &error))?;
        Ok(ClientCertificate { certificate_pem: signed.certificate_pem, key_pem: signed.key_pem })
    }
}

/// The key that signs service account tokens and the one that verifies them, as PEM texts.
pub(super) fn service_account_keys() -> Result<(String, String), Error> {
    KeyPair::generate()
        .map(|key| (key.serialize_pem(), key.public_key_pem()))
        .map_err(|error| Error::Certificate { subject: "service accounts".to_owned(), reason: error.to_string() })
}

fn failed(subject: &str, error: &ListenError) -> Error {
    Error::Certificate { subject: subject.to_owned(), reason: error.to_string() }
}

const AUTHORITY: &str = "cloudcoil-testing";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_shown_in_debug_output() {
        let certificate = Authority::new(&[]).unwrap().client("ann", &["a", "b", "c"]).unwrap();
        assert!(!format!("{certificate:?}").contains("PRIVATE KEY"));
    }
}
