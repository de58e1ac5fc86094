//! Servers that answer, and servers that do not.

use cloudcoil_apiserver::{ApiServer, ServerInput, Tls};
use cloudcoil_runtime::core::config::{Config, Pem, Secret};
use cloudcoil_runtime::core::{KnownResource, Machine as _, Now, Outbox, Requests, Tickets, WriteParams};
use cloudcoil_tests::cluster::{Cluster, SERVERS, in_memory};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

/// The API server in memory, with a ConfigMap called `a`.
pub(crate) fn cluster(tls: bool) -> Cluster {
    let cluster = Cluster::start(tls, in_memory());
    let mut map = ConfigMap::default();
    map.metadata.name = Some("a".to_owned());
    let requests = Requests::new(ConfigMap::resource_type(), Some("default"));
    let request = requests.create(&map, &WriteParams::default()).unwrap().into();
    let ticket = Tickets::new(u32::MAX).issue();
    cluster.with(move |server: &mut ApiServer, now: Now, _| {
        let _ = server.step(now, Some(ServerInput::Requested { ticket, request }), &mut Outbox::new());
    });
    cluster
}

/// An authority that has signed for no server.
pub(crate) fn other_authority() -> Pem {
    Pem { origin: "the test".into(), text: Secret::new(Tls::generate(&[]).unwrap().ca_pem()) }
}

/// A port where nobody listens.
pub(crate) fn vacant() -> Config {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    Config::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap()
}

/// A server that takes connections and reads, and never says a word.
pub(crate) fn silent(scheme: &str) -> Config {
    let address = SERVERS.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move { while stream.read(&mut [0; 1024]).await.is_ok_and(|read| read > 0) {} });
            }
        });
        address
    });
    Config::new(&format!("{scheme}://{address}")).unwrap()
}

/// How many tasks the servers have.
pub(crate) fn tasks() -> usize {
    SERVERS.metrics().num_alive_tasks()
}
