//! TLS as a configuration wants it, for every transport that speaks it by rustls.
//!
//! ```
//! use cloudcoil_core::config::Config;
//!
//! let config = Config::new("https://10.0.0.1:6443").unwrap();
//! let tls = cloudcoil_tls::client_config(&config.tls, &[b"http/1.1"])?;
//! let name = cloudcoil_tls::server_name(&config)?;
//! assert_eq!((tls.alpn_protocols.len(), &*name.to_str()), (1, "10.0.0.1"));
//! # Ok::<(), cloudcoil_core::config::ConfigError>(())
//! ```

mod current;
mod route;
mod server;

use std::error::Error as StdError;
use std::fmt::{self, Display};
use std::io;
use std::sync::Arc;

use cloudcoil_core::config::{Config, ConfigError, Identity, Pem, Tls, certificate_validity};
use cloudcoil_core::error::{chain, root};
use cloudcoil_core::http1::Flaw;
use cloudcoil_core::{NetworkError, NetworkErrorKind};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WantsClientCert, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ConfigBuilder, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

pub use current::Current;
pub use route::{Route, Step};
pub use server::{Serving, subject};

/// How a server that speaks one of `protocols`, named as in ALPN and the best first, is to be greeted, and told from an
/// impostor.
///
/// # Errors
/// [`ConfigError::InvalidPem`], naming the certificate or key at fault.
pub fn client_config(tls: &Tls, protocols: &[&[u8]]) -> Result<ClientConfig, ConfigError> {
    let builder = builder(verifier(tls, false)?);
    let mut config = match &tls.identity {
        None => builder.with_no_client_auth(),
        Some(Identity { certificate, key }) => builder
            .with_client_auth_cert(certificates(certificate)?, private_key(key)?)
            .map_err(|error| invalid(key, format!("not usable with its certificate: {error}")))?,
    };
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(config)
}

/// Whether connections can be made so: what a `Carrier` is asked before it is told to.
///
/// # Errors
/// As [`client_config`].
pub fn check(tls: &Tls) -> Result<(), ConfigError> {
    client_config(tls, &[]).map(drop)
}

/// How a proxy that speaks HTTP/1.1 over TLS is to be greeted. The machine's own authorities vouch for it, and those of the
/// configuration as well; a client certificate is for the server, and not shown to it.
///
/// # Errors
/// [`ConfigError::InvalidPem`], naming the certificate at fault.
pub fn proxy_config(tls: &Tls) -> Result<ClientConfig, ConfigError> {
    let mut config = builder(verifier(tls, true)?).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// The name that the server's certificate must carry.
///
/// # Errors
/// [`ConfigError::InvalidServer`] if it cannot be the name of a server.
pub fn server_name(config: &Config) -> Result<ServerName<'static>, ConfigError> {
    let host = config.server.host().unwrap_or_default();
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let (name, origin) = match &config.tls.server_name {
        Some(name) => (name.as_str(), "tls-server-name"),
        None => (host, "the host in the server's address"),
    };
    ServerName::try_from(name.to_owned()).map_err(|error| ConfigError::InvalidServer {
        origin: origin.into(),
        problem: format!("{name:?}: {error}").into(),
    })
}

fn builder(verifier: Arc<dyn ServerCertVerifier>) -> ConfigBuilder<ClientConfig, WantsClientCert> {
    ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("the provider has suites for both versions of TLS")
        .dangerous()
        .with_custom_certificate_verifier(verifier)
}

fn verifier(tls: &Tls, is_system_trusted: bool) -> Result<Arc<dyn ServerCertVerifier>, ConfigError> {
    let provider = provider();
    if tls.insecure_skip_verify {
        return Ok(Arc::new(Anyone(provider)));
    }
    let mut roots = RootCertStore::empty();
    let given = tls.ca.as_ref().map(certificates).transpose()?.unwrap_or_default();
    roots.add_parsable_certificates(given.iter().cloned());
    if tls.ca.is_none() || is_system_trusted {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    let authorities = WebPkiServerVerifier::builder_with_provider(roots.into(), provider).build().map_err(|error| {
        let origin = tls.ca.as_ref().map_or("the system's certificate authorities", |ca| &ca.origin);
        ConfigError::InvalidPem { origin: origin.into(), problem: error.to_string().into() }
    })?;
    Ok(Arc::new(Given { authorities, given }))
}

/// What it means that a connection could not be made. A time limit that is not the system's own is that of a
/// [`Route`](Route::late).
///
/// ```
/// use std::io;
///
/// let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
/// assert_eq!(cloudcoil_tls::connect_failure(&refused).to_string(), "cannot connect: connection refused");
/// let late = io::Error::new(io::ErrorKind::TimedOut, "deadline has elapsed");
/// assert_eq!(cloudcoil_tls::connect_failure(&late), cloudcoil_tls::Route::late());
/// ```
pub fn connect_failure(error: &(dyn StdError + 'static)) -> NetworkError {
    let root = root(error);
    let is_late = |error: &io::Error| error.kind() == io::ErrorKind::TimedOut && error.raw_os_error().is_none();
    match root.downcast_ref().is_some_and(is_late) {
        true => Route::late(),
        false => NetworkError::new(NetworkErrorKind::Connect, root.to_string()),
    }
}

/// What it means that a connection has failed under an exchange.
///
/// ```
/// use std::io;
/// use cloudcoil_core::http1::Flaw;
///
/// let broken = io::Error::from(io::ErrorKind::BrokenPipe);
/// assert_eq!(cloudcoil_tls::exchange_failure(&broken).to_string(), "connection lost: broken pipe");
/// let ended = io::Error::from(io::ErrorKind::UnexpectedEof);
/// assert_eq!(cloudcoil_tls::exchange_failure(&ended), Flaw::CutShort.into());
/// ```
pub fn exchange_failure(error: &io::Error) -> NetworkError {
    let by_kind = || match error.kind() {
        io::ErrorKind::UnexpectedEof => Flaw::CutShort.into(),
        _ => NetworkError::new(NetworkErrorKind::Lost, root(error).to_string()),
    };
    refusal(error).unwrap_or_else(by_kind)
}

/// What it means that a handshake has failed: one side has said no, which it will say again; or the connection did not last
/// until then, as while a load balancer restarts.
///
/// ```
/// use std::io;
/// use cloudcoil_core::NetworkErrorKind;
///
/// let broken = io::Error::from(io::ErrorKind::ConnectionReset);
/// assert_eq!(cloudcoil_tls::handshake_failure(&broken).kind, NetworkErrorKind::Connect);
/// let refused = io::Error::other(rustls::Error::NoCertificatesPresented);
/// assert_eq!(cloudcoil_tls::handshake_failure(&refused).kind, NetworkErrorKind::Tls);
/// ```
pub fn handshake_failure(error: &io::Error) -> NetworkError {
    let unfinished = || match error.kind() {
        io::ErrorKind::UnexpectedEof => "TLS handshake: the connection ended before it was done".to_owned(),
        _ => format!("TLS handshake: {}", chain(error)),
    };
    refusal(error).unwrap_or_else(|| NetworkError::new(NetworkErrorKind::Connect, unfinished()))
}

/// What it means that a connection has ended, if that is about TLS itself, with [advice](advice()): a client certificate that is not
/// accepted is heard of only when the handshake is over, and the request sent.
pub fn refusal(error: &io::Error) -> Option<NetworkError> {
    error.get_ref().filter(|inner| inner.is::<Error>())?;
    let advice = advice(error).map_or_else(String::new, |advice| format!(" ({advice})"));
    Some(NetworkError::new(NetworkErrorKind::Tls, chain(error) + &advice))
}

/// What a user can do about a failed handshake, if `error` or what is behind it is a failure of TLS whose cause is plain.
///
/// ```
/// use rustls::{CertificateError, Error};
///
/// let error = Error::InvalidCertificate(CertificateError::UnknownIssuer);
/// assert!(cloudcoil_tls::advice(&error).unwrap().contains("certificate-authority"));
/// ```
pub fn advice(error: &(dyn StdError + 'static)) -> Option<&'static str> {
    if let Some(error) = error.downcast_ref::<Error>() {
        return advice_on(error);
    }
    // An error inside of an I/O error is not among its sources; only what is behind that is.
    let inner =
        error.downcast_ref::<io::Error>().and_then(io::Error::get_ref).map(|inner| inner as &(dyn StdError + 'static));
    inner.or_else(|| error.source()).and_then(advice)
}

const fn advice_on(error: &Error) -> Option<&'static str> {
    use rustls::AlertDescription as Alert;

    Some(match error {
        Error::InvalidCertificate(error) => match error {
            CertificateError::UnknownIssuer => {
                "no authority that is trusted has issued the server's certificate: compare certificate-authority with the cluster's"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "the server's certificate is for other names: use one of them as the host, or as tls-server-name"
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "the server's certificate has expired: renew it, or set the clock of this machine right"
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "the server's certificate is not valid yet: set the clock of this machine right"
            }
            CertificateError::BadSignature => {
                "another authority of the same name has issued the server's certificate: compare certificate-authority with the cluster's"
            }
            _ => return None,
        },
        Error::AlertReceived(alert) => match alert {
            Alert::CertificateRequired => "the server wants a client certificate, and none is configured",
            Alert::CertificateExpired => "the client certificate has expired",
            Alert::BadCertificate | Alert::UnknownCA | Alert::CertificateUnknown | Alert::UnsupportedCertificate => {
                "the server does not take the client certificate"
            }
            _ => return None,
        },
        Error::InvalidMessage(_) => "the other side does not speak TLS: it may be a server for http, or a proxy",
        _ => return None,
    })
}

/// The cryptography that all of it uses; given to each configuration by hand, for the process's own default is the program's to
/// choose.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

fn certificates(pem: &Pem) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.text.expose()).collect();
    match certificates {
        Ok(certificates) if certificates.is_empty() => Err(invalid(pem, "no certificate in PEM")),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(invalid(pem, flaw(&error))),
    }
}

fn private_key(pem: &Pem) -> Result<PrivateKeyDer<'static>, ConfigError> {
    PrivateKeyDer::from_pem_slice(pem.text.expose()).map_err(|error| {
        let text = String::from_utf8_lossy(pem.text.expose());
        if text.contains("ENCRYPTED") {
            invalid(pem, "the private key is encrypted: decrypt it first")
        } else {
            invalid(pem, format!("no private key in PEM: {}", flaw(&error)))
        }
    })
}

/// What is wrong with PEM text, without any of it: the line at fault may be the key.
const fn flaw(error: &pem::Error) -> &'static str {
    match error {
        pem::Error::MissingSectionEnd { .. } => "it ends in the middle",
        pem::Error::IllegalSectionStart { .. } => "a line that should begin it is malformed",
        pem::Error::Base64Decode(_) => "it is not base64",
        pem::Error::NoItemsFound => "there is none",
        _ => "it cannot be read",
    }
}

fn invalid(pem: &Pem, problem: impl Display) -> ConfigError {
    ConfigError::InvalidPem { origin: pem.origin.clone(), problem: problem.to_string().into() }
}

/// Trusts what the authorities vouch for, and the very certificates that stand in their place: a server's own
/// certificate may be given as its authority, whether it says that it is one or not.
#[derive(Debug)]
struct Given {
    authorities: Arc<WebPkiServerVerifier>,
    given: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Given {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if !self.given.contains(end_entity) {
            return self.authorities.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        }
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        match certificate_validity(end_entity) {
            None => Err(CertificateError::BadEncoding.into()),
            Some((from, _)) if now < from => Err(CertificateError::NotValidYet.into()),
            Some((_, until)) if now > until => Err(CertificateError::Expired.into()),
            Some(_) => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

/// Trusts anyone who has the key of the certificate shown, as `insecure-skip-tls-verify` asks for.
struct Anyone(Arc<CryptoProvider>);

impl fmt::Debug for Anyone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Anyone")
    }
}

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use cloudcoil_core::config::Secret;

    use super::*;

    #[test]
    fn what_is_wrong_with_a_key_is_told_without_any_of_it() {
        let problem = |text: &str| {
            let pem = Pem { origin: "/k".into(), text: Secret::new(text) };
            private_key(&pem).unwrap_err().to_string()
        };
        let told = |why: &str| format!("/k: no private key in PEM: {why}");
        assert_eq!(problem(""), told("there is none"));
        assert_eq!(problem("-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n"), told("it ends in the middle"));
        assert_eq!(problem("-----BEGIN PRIVATE KEY-----c2VjcmV0"), told("a line that should begin it is malformed"));
        let garbled = "-----BEGIN PRIVATE KEY-----\n$$c2VjcmV0\n-----END PRIVATE KEY-----\n";
        assert_eq!(problem(garbled), told("it is not base64"));
    }
}
