//! The server behind a port: one task owns the machine, connections talk to it through a channel.

mod clients;
mod connection;
mod driver;
mod signing;
mod tls;

use std::net::SocketAddr;

use cloudcoil_core::{HttpEvent, Now, Outbox};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::machine::{ApiServer, ServerConfig};
use connection::accept;
use driver::{Clock, Job, drive};

pub use tls::{ClientCertificate, Tls};

/// Serves plain HTTP, HTTP/1.1 and HTTP/2, on `listener` until the handle is shut down or dropped.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use cloudcoil_apiserver::{ServerConfig, serve};
///
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// let server = serve(ServerConfig::default(), listener)?;
/// println!("kubectl --server {} get namespaces", server.url());
/// server.shutdown().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`ListenError::Address`] if the listener has no address any more.
pub fn serve(config: ServerConfig, listener: TcpListener) -> Result<ServerHandle, ListenError> {
    start(config, listener, None)
}

/// As [`serve`], over TLS.
///
/// # Errors
/// As [`serve`].
pub fn serve_tls(config: ServerConfig, listener: TcpListener, tls: Tls) -> Result<ServerHandle, ListenError> {
    start(config, listener, Some(tls))
}

/// Why a server cannot be started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The listener has no address any more.
    #[error("the listener has no address: {0}")]
    Address(#[source] std::io::Error),
    /// A certificate or key could not be made or used.
    #[error("TLS: {0}")]
    Tls(String),
}

/// A server that runs. Dropping it ends the server at once.
#[derive(Debug)]
pub struct ServerHandle {
    address: SocketAddr,
    token: Option<String>,
    tls: Option<Tls>,
    jobs: mpsc::UnboundedSender<Job>,
    stop: watch::Sender<bool>,
    driver: JoinHandle<()>,
    acceptor: JoinHandle<()>,
}

fn start(config: ServerConfig, listener: TcpListener, tls: Option<Tls>) -> Result<ServerHandle, ListenError> {
    let address = listener.local_addr().map_err(ListenError::Address)?;
    let token = config.token.clone();
    let clock = Clock::start();
    let server = ApiServer::new(config, clock.now());
    let (jobs, received) = mpsc::unbounded_channel();
    let (stop, stopped) = watch::channel(false);
    let driver = tokio::spawn(drive(server, clock, received));
    let acceptor = tokio::spawn(accept(listener, tls.clone(), jobs.clone(), stopped));
    Ok(ServerHandle { address, token, tls, jobs, stop, driver, acceptor })
}

impl ServerHandle {
    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of the server.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// The certificate of the authority that signed the server's, in PEM; `None` without TLS.
    pub fn ca_pem(&self) -> Option<&str> {
        self.tls.as_ref().map(Tls::ca_pem)
    }

    /// A kubeconfig for it, in YAML. It holds the token, if the server has one.
    pub fn kubeconfig(&self) -> String {
        match &self.token {
            Some(token) => self.kubeconfig_with_token(token),
            None => self.kubeconfig_for(" {}"),
        }
    }

    /// A kubeconfig with this bearer token, in YAML.
    pub fn kubeconfig_with_token(&self, token: &str) -> String {
        self.kubeconfig_for(&format!("\n    token: {}", serde_json::Value::from(token)))
    }

    /// A kubeconfig with this client certificate, in YAML.
    pub fn kubeconfig_with_certificate(&self, certificate: &ClientCertificate) -> String {
        self.kubeconfig_for(&format!(
            "\n    client-certificate-data: {}\n    client-key-data: {}",
            base64(&certificate.certificate_pem),
            base64(&certificate.key_pem)
        ))
    }

    fn kubeconfig_for(&self, user: &str) -> String {
        let ca = self.ca_pem().map(|pem| format!("    certificate-authority-data: {}\n", base64(pem)));
        let ca = ca.unwrap_or_default();
        format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: cloudcoil\n  cluster:\n    server: {url}\n{ca}users:\n- name: \
             cloudcoil\n  user:{user}\ncontexts:\n- name: cloudcoil\n  context:\n    cluster: cloudcoil\n    user: \
             cloudcoil\n    namespace: default\ncurrent-context: cloudcoil\n",
            url = self.url()
        )
    }

    /// What makes certificates for clients; `None` without TLS.
    pub const fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    /// Runs `action` on the machine, between two requests, and answers what it answers; `None` if the server has ended.
    ///
    /// What the action puts into the outbox is sent.
    pub async fn with<T, F>(&self, action: F) -> Option<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut ApiServer, Now, &mut Outbox<HttpEvent>) -> T + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let act = move |server: &mut ApiServer, now: Now, out: &mut Outbox<HttpEvent>| {
            // Nobody may be waiting for the answer any more.
            let _ = answer.send(action(server, now, out));
        };
        self.jobs.send(Job::Act(Box::new(act))).ok()?;
        answered.await.ok()
    }

    /// Ends every watch, lets requests finish, and closes all connections.
    pub async fn shutdown(mut self) {
        let _ = self.with(|server, _, out| server.close_streams(out)).await;
        let _ = self.stop.send(true);
        // Connections that do not end in time are cut off with the acceptor.
        let _ = (&mut self.acceptor).await;
        self.driver.abort();
        let _ = (&mut self.driver).await;
    }
}

impl Drop for ServerHandle {
    fn drop(&mut self) {
        self.acceptor.abort();
        self.driver.abort();
    }
}

fn base64(text: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(text)
}
