use bytes::Bytes;
use cloudcoil_blocking::core::NetworkErrorKind;
use cloudcoil_blocking::core::config::{ConfigError, Identity};
use cloudcoil_blocking::core::k8s_openapi::api::core::v1::Namespace;
use cloudcoil_blocking::{Client, Config, Connect as _, Error, RetryPolicy, UreqTransport};
use http::Request;

use crate::common::{Cluster, pem, raw};
use crate::server::{authority, config, issued, ok, serve, tls};

fn fetch(config: &Config) -> Result<(), Error> {
    Client::try_from_config(config)?.with_retry(RetryPolicy::OFF).api::<Namespace>().get("default").send().map(drop)
}

fn tls_failure(config: &Config) -> String {
    match fetch(config) {
        Err(Error::Network(error)) if error.kind == NetworkErrorKind::Tls => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn certificates_are_checked_for_authority_and_name() {
    let cluster = Cluster::start_tls();
    let mut config = cluster.config();
    fetch(&config).unwrap();
    config.tls.server_name = Some("localhost".into());
    fetch(&config).unwrap();
    config.tls.server_name = Some("elsewhere".into());
    let error = tls_failure(&config);
    assert!(error.contains("elsewhere") || error.contains("not valid for name"), "{error}");
    config.tls.server_name = Some("not a name".into());
    assert!(matches!(UreqTransport::new(&config), Err(ConfigError::InvalidServer { .. })));
    let mut config = cluster.config();
    config.tls.ca = Cluster::start_tls().config().tls.ca;
    tls_failure(&config);
    config.tls.insecure_skip_verify = true;
    fetch(&config).unwrap();
    config.tls.ca = Some(pem("no certificate"));
    config.tls.insecure_skip_verify = false;
    assert!(matches!(UreqTransport::new(&config), Err(ConfigError::InvalidPem { .. })));
}

#[test]
fn a_server_that_does_not_speak_tls_is_a_failed_handshake() {
    let address = raw(|_, mut stream| crate::common::write(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n"));
    tls_failure(&Config::new(&format!("https://{address}")).unwrap());
}

#[test]
fn a_handshake_that_is_refused_says_what_to_do_and_one_that_breaks_off_is_no_connection() {
    let cluster = Cluster::start_tls();
    let mut config = cluster.config();
    config.tls.ca = Some(pem(&authority().pem()));
    let refused = tls_failure(&config);
    assert!(refused.contains("compare certificate-authority with the cluster's"), "{refused}");
    let address = raw(|_, stream| drop(stream));
    match fetch(&Config::new(&format!("https://{address}")).unwrap()) {
        Err(Error::Network(error)) => assert_eq!(error.kind, NetworkErrorKind::Connect, "{error}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_client_certificate_is_shown() {
    let (ca, clients) = (authority(), authority());
    let (address, seen) = serve(Some(tls(&ca, "127.0.0.1", Some(&clients))), |_| ok("hello"));
    let mut config = config(address, &ca);
    let get = |config: &Config| {
        let client = Client::try_from_config(config).unwrap().with_retry(RetryPolicy::OFF);
        client.request(Request::get("/x").body(Bytes::new()).unwrap())
    };
    assert!(get(&config).is_err() && seen.requests().is_empty());
    let (certificate, key) = issued(&clients, "me");
    let identity = Identity { certificate: pem(&certificate.pem()), key: pem(&key.serialize_pem()) };
    config.tls.identity = Some(identity);
    assert_eq!(get(&config).unwrap().body, b"hello");
}
