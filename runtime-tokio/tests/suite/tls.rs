use std::net::IpAddr;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use cloudcoil_tokio::core::config::{Auth, ConfigError, Identity, Pem, Secret};
use cloudcoil_tokio::core::{NetworkError, NetworkErrorKind};
use cloudcoil_tokio::{Config, HyperTransport, TokioRuntime, Transport as _};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use http::{Request, Version};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType};
use rustls_pki_types::PrivateKeyDer;
use tokio::sync::mpsc;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::server::{Server, body, serve, whole};

pub(crate) struct Made {
    pub(crate) certificate: rcgen::Certificate,
    pub(crate) key: KeyPair,
}

pub(crate) fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.distinguished_name.push(rcgen::DnType::CommonName, "authority");
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

pub(crate) fn server_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new([]).unwrap();
    params.subject_alt_names = vec![match name.parse::<IpAddr>() {
        Ok(address) => SanType::IpAddress(address),
        Err(_) => SanType::DnsName(name.try_into().unwrap()),
    }];
    params
}

pub(crate) fn issued(by: &Issuer<'_, KeyPair>, name: &str) -> Made {
    let key = KeyPair::generate().unwrap();
    Made { certificate: server_params(name).signed_by(&key, by).unwrap(), key }
}

pub(crate) fn server_config(made: &Made, client_authority: Option<&rcgen::Certificate>, alpn: &[&str]) -> ServerConfig {
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = match client_authority {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(authority.der().clone()).unwrap();
            let provider = Arc::new(aws_lc_rs::default_provider());
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let key = PrivateKeyDer::try_from(made.key.serialize_der()).unwrap();
    let mut config = builder.with_single_cert(vec![made.certificate.der().clone()], key).unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    config
}

async fn server(made: &Made) -> Server {
    serve(Some(server_config(made, None, &["h2", "http/1.1"])), |_| whole("hello")).await
}

fn pem(text: impl Into<Vec<u8>>) -> Pem {
    Pem { origin: "test".into(), text: Secret::new(text) }
}

fn config(server: &Server, ca: impl Into<Vec<u8>>) -> Config {
    let mut config = Config::new(&format!("https://{}", server.address)).unwrap();
    config.tls.ca = Some(pem(ca));
    config
}

fn transport(config: &Config) -> Result<HyperTransport, ConfigError> {
    HyperTransport::new(config, TokioRuntime::new())
}

fn get() -> Request<Bytes> {
    Request::get("/x").body(Bytes::new()).unwrap()
}

async fn fetch(config: &Config) -> Result<String, NetworkError> {
    let body = transport(config).unwrap().send(get()).await?.into_body();
    let pieces: Vec<Bytes> = body.try_collect().await?;
    Ok(String::from_utf8(pieces.concat()).unwrap())
}

async fn tls_failure(config: &Config) -> String {
    let error = fetch(config).await.unwrap_err();
    assert_eq!(error.kind, NetworkErrorKind::Tls, "{error}");
    error.to_string()
}

#[tokio::test]
async fn the_protocol_is_the_newest_that_both_speak_and_credentials_are_sent() {
    let ca = authority();
    let made = issued(&ca, "127.0.0.1");
    for (alpn, version) in
        [(&["h2", "http/1.1"][..], Version::HTTP_2), (&["http/1.1"], Version::HTTP_11), (&[], Version::HTTP_11)]
    {
        let server = serve(Some(server_config(&made, None, alpn)), |_| whole("hello")).await;
        let mut config = config(&server, ca.pem());
        config.auth = Auth::bearer(b"token").unwrap();
        assert_eq!(fetch(&config).await.unwrap(), "hello");
        let request = &server.requests()[0];
        assert_eq!(
            (request.version(), &request.headers()["authorization"]),
            (version, &"Bearer token".parse().unwrap())
        );
    }
}

/// Says when it is dropped.
struct Held(mpsc::UnboundedSender<()>);

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[tokio::test]
async fn dropping_a_body_ends_its_stream_and_leaves_the_connection() {
    let ca = authority();
    let made = issued(&ca, "127.0.0.1");
    let (dropped, mut is_dropped) = mpsc::unbounded_channel();
    let server = serve(Some(server_config(&made, None, &["h2"])), move |request| {
        if request.uri().path() == "/x" {
            return whole("hello");
        }
        let held = Held(dropped.clone());
        body(stream::iter([Bytes::from_static(b"first")]).chain(stream::poll_fn(move |_| {
            let _held = &held;
            Poll::Pending
        })))
    })
    .await;
    let transport = transport(&config(&server, ca.pem())).unwrap();
    let mut body = transport.send(Request::get("/watch").body(Bytes::new()).unwrap()).await.unwrap().into_body();
    assert_eq!(body.next().await.unwrap().unwrap(), "first");
    transport.send(get()).await.unwrap();
    assert!(is_dropped.try_recv().is_err());
    drop(body);
    assert_eq!(is_dropped.recv().await, Some(()));
    transport.send(get()).await.unwrap();
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn more_watches_than_a_connection_carries_leave_room_for_requests() {
    let ca = authority();
    let made = issued(&ca, "127.0.0.1");
    let server = serve(Some(server_config(&made, None, &["h2"])), |request| match request.uri().path() {
        "/x" => whole("hello"),
        _ => body(stream::pending()),
    })
    .await;
    let transport = transport(&config(&server, ca.pem())).unwrap();
    let watches = (0..250).map(|_| transport.send(Request::get("/watch").body(Bytes::new()).unwrap()));
    let watches = futures_util::future::try_join_all(watches).await.unwrap();
    transport.send(get()).await.unwrap();
    assert_eq!(server.connections(), 3);
    drop(watches);
    transport.send(get()).await.unwrap();
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn names_and_addresses_are_checked() {
    let ca = authority();
    let by_address = server(&issued(&ca, "127.0.0.1")).await;
    assert_eq!(fetch(&config(&by_address, ca.pem())).await.unwrap(), "hello");
    let by_name = server(&issued(&ca, "api.internal")).await;
    let mut config = config(&by_name, ca.pem());
    let error = tls_failure(&config).await;
    assert!(error.contains("api.internal") || error.contains("not valid for name"), "{error}");
    config.tls.server_name = Some("api.internal".into());
    assert_eq!(fetch(&config).await.unwrap(), "hello");
    config.tls.server_name = Some("not a name".into());
    assert!(matches!(transport(&config), Err(ConfigError::InvalidServer { .. })));
}

#[tokio::test]
async fn an_authority_that_did_not_issue_the_certificate_is_not_enough_unless_checks_are_off() {
    let server = server(&issued(&authority(), "127.0.0.1")).await;
    let mut config = config(&server, authority().pem());
    tls_failure(&config).await;
    config.tls.ca = None;
    tls_failure(&config).await;
    config.tls.insecure_skip_verify = true;
    assert_eq!(fetch(&config).await.unwrap(), "hello");
}

#[tokio::test]
async fn a_servers_own_certificate_serves_as_its_authority() {
    let issued_leaf = issued(&authority(), "127.0.0.1");
    let key = KeyPair::generate().unwrap();
    let self_signed = Made { certificate: server_params("127.0.0.1").self_signed(&key).unwrap(), key };
    let key = KeyPair::generate().unwrap();
    let mut params = server_params("127.0.0.1");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let self_signed_ca = Made { certificate: params.self_signed(&key).unwrap(), key };
    for made in [issued_leaf, self_signed, self_signed_ca] {
        let server = server(&made).await;
        assert_eq!(fetch(&config(&server, made.certificate.pem())).await.unwrap(), "hello");
    }
}

#[tokio::test]
async fn a_servers_own_certificate_is_still_checked_for_name_and_time() {
    let key = KeyPair::generate().unwrap();
    let made = Made { certificate: server_params("elsewhere").self_signed(&key).unwrap(), key };
    let elsewhere = server(&made).await;
    tls_failure(&config(&elsewhere, made.certificate.pem())).await;
    let key = KeyPair::generate().unwrap();
    let mut params = server_params("127.0.0.1");
    params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let made = Made { certificate: params.self_signed(&key).unwrap(), key };
    let expired = server(&made).await;
    let error = tls_failure(&config(&expired, made.certificate.pem())).await;
    assert!(error.contains("the server's certificate has expired"), "{error}");
}

/// The key in SEC 1, as the PKCS #8 wraps it, behind the block that OpenSSL writes before it.
fn sec1(key: &KeyPair) -> String {
    let der = key.serialize_der();
    let start = der.windows(2).enumerate().filter(|(_, pair)| pair[0] == 0x30).nth(2).unwrap().0;
    let body = base64(&der[start..]);
    format!(
        "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n\
         -----BEGIN EC PRIVATE KEY-----\n{body}\n-----END EC PRIVATE KEY-----\n"
    )
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let encode = |piece: &[u8]| -> String {
        let bits = piece.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - piece.len()));
        let digit = |at: usize| char::from(DIGITS[(bits >> (18 - 6 * at)) as usize & 63]);
        (0..4).map(|at| if at <= piece.len() { digit(at) } else { '=' }).collect()
    };
    bytes.chunks(3).map(encode).collect()
}

/// An RSA key in PKCS #1, as the PKCS #8 wraps it.
fn pkcs1(key: &KeyPair) -> String {
    let der = key.serialize_der();
    let start = der.windows(2).enumerate().filter(|(_, pair)| *pair == [0x30, 0x82]).nth(1).unwrap().0;
    format!("-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----\n", base64(&der[start..]))
}

#[tokio::test]
async fn a_client_certificate_is_shown_with_its_key_in_every_form() {
    let (ca, clients) = (authority(), authority());
    let made = issued(&ca, "127.0.0.1");
    let server = serve(Some(server_config(&made, Some(clients.as_ref()), &["h2"])), |_| whole("hello")).await;
    let mut config = config(&server, ca.pem());
    assert!(fetch(&config).await.is_err());
    for algorithm in [
        &rcgen::PKCS_ECDSA_P256_SHA256,
        &rcgen::PKCS_ECDSA_P384_SHA384,
        &rcgen::PKCS_ECDSA_P521_SHA512,
        &rcgen::PKCS_ED25519,
        &rcgen::PKCS_RSA_SHA256,
    ] {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let certificate = pem(server_params("me").signed_by(&key, &*clients).unwrap().pem());
        let mut forms = vec![key.serialize_pem()];
        if algorithm == &rcgen::PKCS_RSA_SHA256 {
            forms.push(pkcs1(&key));
        } else if algorithm != &rcgen::PKCS_ED25519 {
            forms.push(sec1(&key));
        }
        for form in forms {
            config.tls.identity = Some(Identity { certificate: certificate.clone(), key: pem(form) });
            assert_eq!(fetch(&config).await.unwrap(), "hello", "{algorithm:?}");
        }
    }
}

#[tokio::test]
async fn servers_have_keys_of_every_curve_and_addresses_of_both_families() {
    let ca = authority();
    for algorithm in [&rcgen::PKCS_ECDSA_P384_SHA384, &rcgen::PKCS_ECDSA_P521_SHA512, &rcgen::PKCS_RSA_SHA256] {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let mut params = server_params("127.0.0.1");
        params.subject_alt_names.push(SanType::IpAddress("2001:db8::7".parse().unwrap()));
        let made = Made { certificate: params.signed_by(&key, &*ca).unwrap(), key };
        let server = server(&made).await;
        let several = [authority().pem(), ca.pem()].concat();
        let mut config = config(&server, several);
        assert_eq!(fetch(&config).await.unwrap(), "hello", "{algorithm:?}");
        config.tls.server_name = Some("2001:db8::7".into());
        assert_eq!(fetch(&config).await.unwrap(), "hello", "{algorithm:?}");
        config.tls.server_name = Some("2001:db8::8".into());
        let error = tls_failure(&config).await;
        assert!(error.contains("use one of them as the host, or as tls-server-name"), "{error}");
    }
}

#[tokio::test]
async fn a_handshake_that_fails_says_what_to_do() {
    let ca = authority();
    let unknown = tls_failure(&config(&server(&issued(&ca, "127.0.0.1")).await, authority().pem())).await;
    assert!(unknown.contains("compare certificate-authority with the cluster's"), "{unknown}");
    let key = KeyPair::generate().unwrap();
    let mut params = server_params("127.0.0.1");
    params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let made = Made { certificate: params.signed_by(&key, &*ca).unwrap(), key };
    let expired = tls_failure(&config(&server(&made).await, ca.pem())).await;
    assert!(expired.contains("the server's certificate has expired"), "{expired}");
}

#[tokio::test]
async fn material_that_cannot_be_used_is_named() {
    let ca = authority();
    let server = server(&issued(&ca, "127.0.0.1")).await;
    let problem = |config: &Config| transport(config).err().unwrap().to_string();
    assert_eq!(problem(&config(&server, "nothing")), "test: no certificate in PEM");
    let broken = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
    assert!(problem(&config(&server, broken)).starts_with("test: "));
    let mut config = config(&server, ca.pem());
    let mut with_key = |key: &str| {
        config.tls.identity = Some(Identity { certificate: pem(ca.pem()), key: pem(key) });
        problem(&config)
    };
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    assert_eq!(with_key(encrypted), "test: the private key is encrypted: decrypt it first");
    assert!(with_key("nothing").starts_with("test: no private key in PEM"));
    let other = KeyPair::generate().unwrap().serialize_pem();
    assert!(with_key(&other).starts_with("test: not usable with its certificate"));
    let garbage = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    assert!(with_key(garbage).starts_with("test: not usable with its certificate"));
}

#[tokio::test]
async fn a_server_without_tls_fails_the_handshake() {
    let server = serve(None, |_| whole("hello")).await;
    tls_failure(&config(&server, authority().pem())).await;
}
