//! Connections: made, used again, and refused.

use cloudcoil_runtime::core::NetworkErrorKind;
use cloudcoil_runtime::core::config::{Pem, Secret};
use cloudcoil_runtime::{Error, RetryPolicy};

use super::stored;
use crate::scripted::Answer;
use crate::servers::{Cluster, config_of, in_memory};
use crate::stage::{Stage, scenarios};
use crate::world::op::maps;

scenarios! {
    CONNECTIONS {
        a_connection_is_used_again,
    }
    SOCKETS {
        a_server_that_is_not_there_is_a_failure_to_connect,
        an_unknown_authority_is_refused,
    }
}

fn a_connection_is_used_again(stage: &Stage) {
    let play = stage.play(Box::new(|_| Answer::json(&stored("a", 5))));
    for _ in 0..10 {
        play.must(maps().get("a"));
    }
    assert!(play.seen().iter().all(|seen| seen.connection == 0), "one connection does for one request after the other");
}

fn a_server_that_is_not_there_is_a_failure_to_connect(stage: &Stage) {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = config_of(&format!("http://{nobody}"), None);
    let world = stage.executor().connect(&config, &stage.settings().once()).unwrap();
    let error = world.fail(maps().get("a"));
    assert!(matches!(&error, Error::Network(error) if error.kind == NetworkErrorKind::Connect), "{error:?}");
}

fn an_unknown_authority_is_refused(stage: &Stage) {
    let (cluster, other) = (Cluster::start(true, in_memory()), Cluster::start(true, in_memory()));
    let mut config = cluster.config();
    config.tls.ca = other.config().tls.ca;
    let settings = crate::world::Settings { retry: RetryPolicy::OFF, ..stage.settings() };
    let error = stage.executor().connect(&config, &settings).unwrap().fail(maps().get("a"));
    assert!(matches!(&error, Error::Network(error) if error.kind == NetworkErrorKind::Tls), "{error:?}");
    config.tls.ca = Some(Pem { origin: "test".into(), text: Secret::new("no pem") });
    let refused = stage.executor().connect(&config, &settings).map(drop).unwrap_err();
    assert!(
        matches!(refused, Error::Config(_)),
        "what is no certificate is found out before the first request: {refused:?}"
    );
}
