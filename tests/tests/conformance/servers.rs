//! API servers: in memory behind a port, and a real one.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use cloudcoil_apiserver::kinds::Kinds;
use cloudcoil_apiserver::{ApiServer, ServerConfig, ServerHandle, Tls, serve, serve_tls};
use cloudcoil_runtime::core::config::{Auth, Config, Pem, Secret};
use cloudcoil_runtime::core::{HttpEvent, Now, Outbox};
use cloudcoil_testing::ControlPlane;
use tokio::runtime::Runtime;

/// The API server in memory, behind a port.
pub(crate) struct Cluster(Option<ServerHandle>);

impl Cluster {
    pub(crate) fn start(tls: bool, config: ServerConfig) -> Self {
        Self::with_keys(tls.then(|| Tls::generate(&[]).expect("keys can be made")), config)
    }

    /// One with these keys, or without TLS.
    pub(crate) fn with_keys(tls: Option<Tls>, config: ServerConfig) -> Self {
        let handle = SERVERS.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("there is a port left");
            match tls {
                Some(tls) => serve_tls(config, listener, tls),
                None => serve(config, listener),
            }
        });
        Self(Some(handle.expect("it has an address")))
    }

    pub(crate) fn handle(&self) -> &ServerHandle {
        self.0.as_ref().expect("it is there until it is dropped")
    }

    pub(crate) fn config(&self) -> Config {
        config_of(&self.handle().url(), self.handle().ca_pem())
    }

    /// Does something to the server.
    pub(crate) fn with<T: Send + 'static>(
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
pub(crate) fn in_memory() -> ServerConfig {
    static KINDS: LazyLock<Arc<Kinds>> = LazyLock::new(|| Arc::new(Kinds::builtin()));
    ServerConfig { kinds: KINDS.clone(), ..ServerConfig::default() }
}

pub(crate) fn config_of(url: &str, ca: Option<&str>) -> Config {
    let mut config = Config::new(url).expect("it is a URL");
    config.tls.ca = ca.map(|pem| Pem { origin: "the test".into(), text: Secret::new(pem) });
    config
}

/// The real control plane, as its admin.
pub(crate) fn real() -> Config {
    let plane = PLANE.lock().unwrap_or_else(PoisonError::into_inner);
    let plane = plane.as_ref().expect("these tests are left out without one");
    let mut config = config_of(plane.url(), Some(plane.ca_pem()));
    config.auth = Auth::bearer(plane.token().as_bytes()).expect("a token can stand in a header");
    config
}

/// A certificate by which the real control plane knows somebody, and its key.
pub(crate) fn real_certificate(name: &str) -> (String, String) {
    let plane = PLANE.lock().unwrap_or_else(PoisonError::into_inner);
    let plane = plane.as_ref().expect("these tests are left out without one");
    let made = plane.client_certificate(name, &[]).expect("keys can be made");
    (made.certificate_pem, made.key_pem)
}

/// Starts the real control plane, and answers whether there is one.
pub(crate) fn start_real() -> bool {
    let plane = ControlPlane::start_or_skip("the conformance suite on a real control plane");
    let is_there = plane.is_some();
    *PLANE.lock().unwrap_or_else(PoisonError::into_inner) = plane;
    is_there
}

/// Stops the real control plane, if there is one.
pub(crate) fn stop_real() {
    drop(PLANE.lock().unwrap_or_else(PoisonError::into_inner).take());
}

/// The executor of the servers, which is none of the clients'.
static SERVERS: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().expect("the system has threads left")
});
static PLANE: Mutex<Option<ControlPlane>> = Mutex::new(None);
