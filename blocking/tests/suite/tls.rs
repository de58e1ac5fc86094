use cloudcoil_blocking::core::NetworkErrorKind;
use cloudcoil_blocking::core::config::ConfigError;
use cloudcoil_blocking::core::k8s_openapi::api::core::v1::Namespace;
use cloudcoil_blocking::{Client, Config, Error, RetryPolicy, UreqTransport};

use crate::common::{Cluster, pem, raw};

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
