//! What is asked for, before files and the environment have a say.

use std::fmt;
use std::path::PathBuf;

use super::file::{Cluster, User};
use super::kubeconfig::{Entry, Place};
use super::{Impersonation, Secret};

/// Where to look for a configuration, and what to put in place of what is found: `kubectl`'s flags.
///
/// The default is what `kubectl` does without any flag. What is asked for here stays when the file or the context is
/// changed later; whatever came from the old file or context goes.
///
/// ```
/// use cloudcoil_core::config::ConfigSource;
///
/// let staging = ConfigSource::from_kubeconfig("/k/config").with_context("staging").with_namespace("shop");
/// let other = staging.clone().with_kubeconfig("/k/other");
/// assert_eq!((other.context, other.overrides.namespace.as_deref()), (None, Some("shop")));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made with struct update syntax")]
pub struct ConfigSource {
    /// This file and no other; it must exist.
    pub path: Option<PathBuf>,
    /// This context, in place of the current one.
    pub context: Option<String>,
    /// What takes the place of fields of the context, the cluster and the user.
    pub overrides: Overrides,
}

/// What takes the place of fields of a kubeconfig, or of a pod's service account. Fields that are `None`, empty or
/// `false` leave those of the kubeconfig alone.
///
/// Credentials are left out of its `Debug`.
///
/// See <https://kubernetes.io/docs/reference/kubectl/kubectl/#options>.
#[derive(Clone, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made with struct update syntax")]
pub struct Overrides {
    /// The name of a cluster of the kubeconfig, in place of the context's.
    pub cluster: Option<String>,
    /// The name of a user of the kubeconfig, in place of the context's.
    pub user: Option<String>,
    /// The namespace that is meant when none is named.
    pub namespace: Option<String>,
    /// The API server's address. It needs no kubeconfig, and the cluster's `tls-server-name` does not go with it.
    pub server: Option<String>,
    /// The name that the server's certificate must carry.
    pub tls_server_name: Option<String>,
    /// Take any certificate; the cluster's authority is then not used.
    pub insecure_skip_tls_verify: bool,
    /// The file with the authorities that vouch for the server, in place of the cluster's authority and of its
    /// `insecure-skip-tls-verify`.
    pub certificate_authority: Option<PathBuf>,
    /// The same in PEM, in place of a file.
    pub certificate_authority_data: Option<Secret>,
    /// The proxy; see [`Proxy`](super::Proxy).
    pub proxy_url: Option<String>,
    /// Do not ask for compressed answers.
    pub disable_compression: bool,
    /// A bearer token, in place of the user's token, password and credential program.
    pub token: Option<String>,
    /// A file with a token, which is read again as it changes, in place of the same.
    pub token_file: Option<PathBuf>,
    /// A user name, in place of the same.
    pub username: Option<String>,
    /// The password that goes with [`username`](Self::username).
    pub password: Option<String>,
    /// The file with the client certificate.
    pub client_certificate: Option<PathBuf>,
    /// The same in PEM, in place of a file.
    pub client_certificate_data: Option<Secret>,
    /// The file with the client certificate's key.
    pub client_key: Option<PathBuf>,
    /// The same in PEM, in place of a file.
    pub client_key_data: Option<Secret>,
    /// In whose name requests are made; what it says of a user goes before what the kubeconfig says.
    pub impersonation: Impersonation,
}

impl ConfigSource {
    /// One kubeconfig file, which must exist.
    pub fn from_kubeconfig(path: impl Into<PathBuf>) -> Self {
        Self::default().with_kubeconfig(path)
    }

    /// The same for another file, and for the context that is current in it.
    #[must_use]
    pub fn with_kubeconfig(self, path: impl Into<PathBuf>) -> Self {
        Self { path: Some(path.into()), context: None, ..self }
    }

    /// The same for another context.
    #[must_use]
    pub fn with_context(self, context: impl Into<String>) -> Self {
        Self { context: Some(context.into()), ..self }
    }

    /// The same with another default namespace.
    #[must_use]
    pub fn with_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.overrides.namespace = Some(namespace.into());
        self
    }

    /// The same with these overrides in place of those before.
    #[must_use]
    pub fn with_overrides(self, overrides: Overrides) -> Self {
        Self { overrides, ..self }
    }
}

impl Overrides {
    /// As an entry of `clusters` that has what is overridden only.
    pub(super) fn cluster_entry(&self) -> Entry<Cluster> {
        let content = Cluster {
            server: self.server.clone().unwrap_or_default(),
            tls_server_name: self.tls_server_name.clone().unwrap_or_default(),
            insecure_skip_tls_verify: self.insecure_skip_tls_verify,
            certificate_authority: path(&self.certificate_authority),
            certificate_authority_data: self.certificate_authority_data.clone(),
            proxy_url: self.proxy_url.clone().unwrap_or_default(),
            disable_compression: self.disable_compression,
            ..Cluster::default()
        };
        Entry { place: Place::Caller, content }
    }

    /// As an entry of `users` that has what is overridden only.
    pub(super) fn user_entry(&self) -> Entry<User> {
        let someone = &self.impersonation;
        let content = User {
            client_certificate: path(&self.client_certificate),
            client_certificate_data: self.client_certificate_data.clone(),
            client_key: path(&self.client_key),
            client_key_data: self.client_key_data.clone(),
            token: self.token.clone().unwrap_or_default(),
            token_file: path(&self.token_file),
            as_user: someone.user.clone().unwrap_or_default(),
            as_uid: someone.uid.clone().unwrap_or_default(),
            as_groups: someone.groups.clone(),
            as_user_extra: someone.extra.iter().map(|(key, values)| (key.clone(), Some(values.clone()))).collect(),
            username: self.username.clone().unwrap_or_default(),
            password: self.password.clone().unwrap_or_default(),
            ..User::default()
        };
        Entry { place: Place::Caller, content }
    }
}

impl fmt::Debug for Overrides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overrides")
            .field("cluster", &self.cluster)
            .field("user", &self.user)
            .field("namespace", &self.namespace)
            .field("server", &self.server)
            .field("tls_server_name", &self.tls_server_name)
            .field("insecure_skip_tls_verify", &self.insecure_skip_tls_verify)
            .field("certificate_authority", &self.certificate_authority)
            .field("disable_compression", &self.disable_compression)
            .field("token_file", &self.token_file)
            .field("client_certificate", &self.client_certificate)
            .field("client_key", &self.client_key)
            .field("impersonation", &self.impersonation)
            .finish_non_exhaustive()
    }
}

fn path(path: &Option<PathBuf>) -> String {
    path.as_ref().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
#[path = "override_tests.rs"]
mod tests;
