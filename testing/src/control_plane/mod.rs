//! A launcher for etcd and kube-apiserver.

mod apiserver;
mod builder;
mod certificates;
mod component;
mod etcd;
mod http;
mod ports;
mod process;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

pub use builder::ControlPlaneBuilder;
pub use certificates::ClientCertificate;
pub use component::Component;

use crate::Error;
use apiserver::ApiServer;
use certificates::Authority;
use component::Which;
use etcd::Etcd;
use process::{Folder, Server};

/// A running etcd and kube-apiserver on ports of 127.0.0.1, with their own folder and certificates.
///
/// No controllers run: namespaces stay `Terminating`, nothing collects garbage, Deployments make no Pods. The admission
/// plugin `ServiceAccount` is off for the same reason.
///
/// Dropping it kills both processes and removes the folder. So does the end of the process that holds it, be it by a
/// panic, `exit` or SIGKILL (then within a few seconds), so that it may as well live in a `static`.
///
/// All methods take `&self` and block the thread; what steers one process waits for what else steers it.
pub struct ControlPlane {
    // Dropped in this order: the processes must be gone before their folder.
    apiserver_server: Mutex<Server>,
    etcd_server: Mutex<Server>,
    etcd: Etcd,
    apiserver: ApiServer,
    authority: Authority,
    ca_pem: String,
    kubeconfig: String,
    kubeconfig_path: PathBuf,
    kubectl: PathBuf,
    ready_within: Duration,
    folder: Folder,
}

impl ControlPlane {
    /// Starts a control plane from the folder that `KUBEBUILDER_ASSETS` names, and waits until it serves requests.
    ///
    /// # Errors
    /// As [`ControlPlaneBuilder::start`].
    pub fn start() -> Result<Self, Error> {
        Self::builder().start()
    }

    /// Starts a control plane for the test called `test`, or says on standard error that this test did not run and
    /// returns `None`, if `KUBEBUILDER_ASSETS` is not set.
    ///
    /// With `CLOUDCOIL_REQUIRE_CONTROL_PLANE=1` in the environment no test is left out: this panics instead.
    ///
    /// # Panics
    /// When the control plane does not start, or may not be missing.
    #[must_use]
    pub fn start_or_skip(test: &str) -> Option<Self> {
        Self::builder().start_or_skip(test)
    }

    /// A control plane with other flags, users or binaries.
    pub fn builder() -> ControlPlaneBuilder {
        ControlPlaneBuilder::default()
    }

    /// The API server's address, such as `https://127.0.0.1:23456`. It stays the same when the server restarts.
    pub fn url(&self) -> &str {
        self.apiserver.url()
    }

    /// The certificate authority that signed the API server's certificate, as PEM text.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// A bearer token of a user who may do everything (`admin` in `system:masters`).
    pub fn token(&self) -> &str {
        self.apiserver.admin_token()
    }

    /// A kubeconfig with a client certificate of a user who may do everything (`admin` in `system:masters`).
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// Where [`kubeconfig`](Self::kubeconfig) lies as a file.
    pub fn kubeconfig_path(&self) -> &Path {
        &self.kubeconfig_path
    }

    /// A kubeconfig for a bearer token: that of [`token`](Self::token), or one given to the builder.
    pub fn kubeconfig_with_token(&self, token: &str) -> String {
        // JSON's strings are YAML's as well, whatever is in them.
        let token = serde_json::Value::from(token).to_string();
        apiserver::kubeconfig(self.url(), &self.ca_pem, &[("token", token)])
    }

    /// A kubeconfig for a client certificate.
    pub fn kubeconfig_with_certificate(&self, certificate: &ClientCertificate) -> String {
        apiserver::kubeconfig(self.url(), &self.ca_pem, &certificate.kubeconfig_user())
    }

    /// Makes a certificate by which the API server knows its holder as user `name` in `groups`.
    ///
    /// # Errors
    /// When the key cannot be made.
    pub fn client_certificate(&self, name: &str, groups: &[&str]) -> Result<ClientCertificate, Error> {
        self.authority.client(name, groups)
    }

    /// As [`client_certificate`](Self::client_certificate), for a private key there is, in PEM (PKCS #8).
    ///
    /// # Errors
    /// When it is no key, or of a kind that cannot be read.
    pub fn client_certificate_for(
        &self,
        name: &str,
        groups: &[&str],
        key_pem: &str,
    ) -> Result<ClientCertificate, Error> {
        self.authority.client_for(name, groups, key_pem)
    }

    /// A `kubectl` that acts on this control plane as its admin, with a discovery cache of its own.
    pub fn kubectl(&self) -> Command {
        let mut command = Command::new(&self.kubectl);
        command.env("KUBECONFIG", &self.kubeconfig_path).stdin(Stdio::null());
        command.arg("--cache-dir").arg(self.folder.path().join("kubectl-cache"));
        command
    }

    /// The API server's process.
    pub fn apiserver(&self) -> Component<'_> {
        Component::new(self, Which::ApiServer)
    }

    /// etcd's process.
    pub fn etcd(&self) -> Component<'_> {
        Component::new(self, Which::Etcd)
    }

    /// etcd's address for clients, such as `http://127.0.0.1:23457`; it asks for no credentials.
    pub fn etcd_url(&self) -> &str {
        self.etcd.url()
    }

    /// The folder of both logs, the data and the certificates. It vanishes with the control plane.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Makes etcd forget every revision before this call, and returns the oldest one that it still has.
    ///
    /// The API server keeps recent changes in memory as well and may go on answering from there; see
    /// [`expire_history`](Self::expire_history).
    ///
    /// # Errors
    /// When etcd does not answer.
    pub fn compact_history(&self) -> Result<u64, Error> {
        self.etcd.compact()
    }

    /// Makes every resourceVersion from before this call expire: a watch from it, or the next page of a list, is
    /// answered [410 Gone](https://kubernetes.io/docs/reference/using-api/api-concepts/#410-gone-responses).
    ///
    /// It kills the API server, compacts etcd's history, and starts the API server again, so that what this held in memory
    /// is gone too. Open watches break. Returns the oldest resourceVersion that is still good.
    ///
    /// # Errors
    /// When etcd does not answer, or the API server does not come back.
    pub fn expire_history(&self) -> Result<u64, Error> {
        self.apiserver().kill();
        let revision = self.compact_history()?;
        self.apiserver().start()?;
        Ok(revision)
    }
}

impl fmt::Debug for ControlPlane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControlPlane").field("url", &self.url()).field("folder", &self.folder()).finish_non_exhaustive()
    }
}
