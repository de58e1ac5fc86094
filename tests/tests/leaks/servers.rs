//! Servers that answer, and servers that do not.

use std::sync::{Arc, LazyLock};

use cloudcoil_apiserver::kinds::Kinds;
use cloudcoil_apiserver::{ServerConfig, ServerHandle, Tls, serve, serve_tls};
use cloudcoil_runtime::core::config::{Config, Pem, Secret};
use cloudcoil_runtime::core::{KnownResource, Now, Outbox, Requests, WriteParams};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// The API server in memory, behind a port, with a ConfigMap called `a`.
pub(crate) struct Cluster(Option<ServerHandle>);

impl Cluster {
    pub(crate) fn start(tls: bool) -> Self {
        static KINDS: LazyLock<Arc<Kinds>> = LazyLock::new(|| Arc::new(Kinds::builtin()));
        let config = ServerConfig { kinds: KINDS.clone(), ..ServerConfig::default() };
        let cluster = SERVERS.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            match tls {
                true => serve_tls(config, listener, Tls::generate(&[]).unwrap()),
                false => serve(config, listener),
            }
        });
        let cluster = Self(Some(cluster.unwrap()));
        cluster.create();
        cluster
    }

    fn create(&self) {
        use cloudcoil_apiserver::ServerInput;
        use cloudcoil_runtime::core::{Machine as _, Tickets};

        let mut map = ConfigMap::default();
        map.metadata.name = Some("a".to_owned());
        let requests = Requests::new(ConfigMap::resource_type(), Some("default"));
        let request = requests.create(&map, &WriteParams::default()).unwrap().into();
        let ticket = Tickets::new(u32::MAX).issue();
        let create = move |server: &mut cloudcoil_apiserver::ApiServer, now: Now, _: &mut Outbox<_>| {
            let _ = server.step(now, Some(ServerInput::Requested { ticket, request }), &mut Outbox::new());
        };
        SERVERS.block_on(self.handle().with(create)).unwrap();
    }

    fn handle(&self) -> &ServerHandle {
        self.0.as_ref().expect("it is there until it is dropped")
    }

    pub(crate) fn config(&self) -> Config {
        let mut config = Config::new(&self.handle().url()).unwrap();
        config.tls.ca = self.handle().ca_pem().map(pem);
        config
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _inside = SERVERS.enter();
        drop(self.0.take());
    }
}

/// An authority that has signed for no server.
pub(crate) fn other_authority() -> Pem {
    pem(Tls::generate(&[]).unwrap().ca_pem())
}

fn pem(text: &str) -> Pem {
    Pem { origin: "the test".into(), text: Secret::new(text) }
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

/// The executor of the servers, which is none of the clients'.
static SERVERS: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().expect("the system has threads left")
});
