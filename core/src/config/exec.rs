//! Programs that fetch credentials.

use std::fmt;
use std::path::PathBuf;

use serde_json::Value;

use super::Pem;

/// A program that prints credentials, and all that is needed to run it.
///
/// Arguments and the values of variables are left out of its `Debug`: they may be secret.
///
/// See <https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins>.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExecConfig {
    /// The program: a path, or a name to look for in `PATH`. A relative path in a kubeconfig has already been joined to the
    /// folder of its file; a name without a separator is left alone.
    pub command: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables that are added to the environment of this process, in order; the last of a name counts.
    pub env: Vec<(String, String)>,
    /// The version of `ExecCredential` that is spoken with it.
    pub api_version: ExecVersion,
    /// The cluster that it is told about; `None` unless it asks with `provideClusterInfo`.
    pub cluster: Option<Box<ExecCluster>>,
    /// Whether it may ask questions on standard input.
    pub interactive_mode: InteractiveMode,
    /// What to tell the user when there is no such program.
    pub install_hint: Option<String>,
    /// The field that names it and its file, for errors: `users[dev].user.exec in /k/config`.
    pub origin: Box<str>,
}

impl fmt::Debug for ExecConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("ExecConfig")
            .field("command", &self.command)
            .field("args", &self.args.len())
            .field("env", &names)
            .field("api_version", &self.api_version)
            .field("cluster", &self.cluster)
            .field("interactive_mode", &self.interactive_mode)
            .field("install_hint", &self.install_hint)
            .field("origin", &self.origin)
            .finish()
    }
}

/// A version of the API `client.authentication.k8s.io`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExecVersion {
    /// `client.authentication.k8s.io/v1`
    V1,
    /// `client.authentication.k8s.io/v1beta1`
    V1Beta1,
}

impl ExecVersion {
    /// The version that is written so; `None` for those that Kubernetes no longer knows.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::V1, Self::V1Beta1].into_iter().find(|version| version.as_str() == text)
    }

    /// The version as `apiVersion` has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "client.authentication.k8s.io/v1",
            Self::V1Beta1 => "client.authentication.k8s.io/v1beta1",
        }
    }
}

/// Whether a program may use standard input to ask its user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "these are the modes that there are")]
pub enum InteractiveMode {
    /// It never uses standard input.
    Never,
    /// It uses standard input when that is a terminal.
    #[default]
    IfAvailable,
    /// It is not to be run unless standard input is a terminal.
    Always,
}

impl InteractiveMode {
    /// The mode that is written so.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Never, Self::IfAvailable, Self::Always].into_iter().find(|mode| mode.as_str() == text)
    }

    /// The mode as `interactiveMode` has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Never => "Never",
            Self::IfAvailable => "IfAvailable",
            Self::Always => "Always",
        }
    }
}

/// The cluster as a credential program is told about it, in `spec.cluster` of `KUBERNETES_EXEC_INFO`.
///
/// `proxy_url` and `config` are left out of its `Debug`: they may hold secrets.
///
/// See <https://kubernetes.io/docs/reference/config-api/client-authentication.v1/#client-authentication-k8s-io-v1-Cluster>.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExecCluster {
    /// `server`, as the kubeconfig has it.
    pub server: String,
    /// `tls-server-name`
    pub tls_server_name: Option<String>,
    /// `insecure-skip-tls-verify`
    pub insecure_skip_tls_verify: bool,
    /// `certificate-authority-data`, before it is base64; from a file too.
    pub certificate_authority: Option<Pem>,
    /// `proxy-url`, as the kubeconfig has it.
    pub proxy_url: Option<String>,
    /// `disable-compression`
    pub disable_compression: bool,
    /// `config`: the cluster's extension `client.authentication.k8s.io/exec`.
    pub config: Option<Value>,
}

impl fmt::Debug for ExecCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecCluster")
            .field("server", &self.server)
            .field("tls_server_name", &self.tls_server_name)
            .field("insecure_skip_tls_verify", &self.insecure_skip_tls_verify)
            .field("certificate_authority", &self.certificate_authority)
            .field("disable_compression", &self.disable_compression)
            .finish_non_exhaustive()
    }
}
