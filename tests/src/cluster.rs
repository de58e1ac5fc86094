//! The API server in memory, for suites that run clients on many executors.

use std::sync::{Arc, LazyLock};

use cloudcoil_apiserver::kinds::Kinds;
use cloudcoil_apiserver::{ApiServer, ServerConfig, ServerHandle, Tls, serve, serve_tls};
use cloudcoil_core::config::{Config, Pem, Secret};
use cloudcoil_core::{HttpEvent, Now, Outbox};
use tokio::runtime::Runtime;

/// The API server in memory, behind a port.
#[derive(Debug)]
pub struct Cluster(Option<ServerHandle>);

impl Cluster {
    /// One with keys of its own, or without TLS.
    ///
    /// # Panics
    /// If there is no port left.
    pub fn start(tls: bool, config: ServerConfig) -> Self {
        Self::with_keys(tls.then(|| Tls::generate(&[]).expect("keys can be made")), config)
    }

    /// One with these keys, or without TLS.
    ///
    /// # Panics
    /// If there is no port left.
    pub fn with_keys(tls: Option<Tls>, config: ServerConfig) -> Self {
        let handle = SERVERS.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("there is a port left");
            match tls {
                Some(tls) => serve_tls(config, listener, tls),
                None => serve(config, listener),
            }
        });
        Self(Some(handle.expect("it has an address")))
    }

    /// What its adapter has of it.
    pub fn handle(&self) -> &ServerHandle {
        self.0.as_ref().expect("it is there until it is dropped")
    }

    /// How clients reach it.
    pub fn config(&self) -> Config {
        config_of(&self.handle().url(), self.handle().ca_pem())
    }

    /// Does something to the server.
    ///
    /// # Panics
    /// If it has ended.
    pub fn with<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut ApiServer, Now, &mut Outbox<HttpEvent>) -> T + Send + 'static,
    ) -> T {
        SERVERS.block_on(self.handle().with(act)).expect("it runs")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _inside = SERVERS.enter();
        drop(self.0.take());
    }
}

/// How a server in memory is set up unless told otherwise. The kinds take a moment to read, so all share them.
pub fn in_memory() -> ServerConfig {
    static KINDS: LazyLock<Arc<Kinds>> = LazyLock::new(|| Arc::new(Kinds::builtin()));
    ServerConfig { kinds: KINDS.clone(), ..ServerConfig::default() }
}

/// How clients reach a server whose authority is in PEM.
///
/// # Panics
/// If the URL is none.
pub fn config_of(url: &str, ca: Option<&str>) -> Config {
    let mut config = Config::new(url).expect("it is a URL");
    config.tls.ca = ca.map(|pem| Pem { origin: "the test".into(), text: Secret::new(pem) });
    config
}

/// The executor of the servers, which is none of the clients'.
pub static SERVERS: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().expect("the system has threads left")
});
