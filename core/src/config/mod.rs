//! Which cluster to talk to, and as whom: kubeconfig files and in-cluster service accounts.
//!
//! Parsing and resolving are pure; [`ConfigLoad`] asks its driver for the files it needs.
//! See <https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/>.

mod auth;
mod certificate;
mod decode;
mod environment;
mod error;
mod exec;
mod file;
pub(crate) mod fuzz;
mod gather;
mod impersonation;
mod kubeconfig;
mod load;
mod overrides;
#[cfg(test)]
mod properties;
mod proxy;
mod resolve;
mod server;
mod user;
mod view;
pub(crate) mod yaml;

use std::fmt;
use std::path::{Path, PathBuf};

use http::Uri;

pub use auth::{Auth, Secret, TokenFile};
pub use certificate::{Subject, validity as certificate_validity};
pub use environment::Environment;
pub use error::{ConfigError, ConfigWarning, ReadError};
pub use exec::{ExecCluster, ExecConfig, ExecVersion, InteractiveMode};
pub use impersonation::Impersonation;
pub use kubeconfig::Kubeconfig;
pub use load::{ConfigInput, ConfigLoad, ConfigOutput};
pub use overrides::{ConfigSource, Overrides};
pub use proxy::{Proxy, ProxyCredentials, ProxyScheme};
pub use view::{ConfigView, ViewOptions};

/// Where the API server is, how it is known, and how one is known to it. All that a transport needs.
///
/// Credentials are left out of its `Debug`.
///
/// ```
/// use cloudcoil_core::config::{Auth, Config};
///
/// let config = Config::new("https://10.0.0.1:6443")?;
/// assert_eq!((config.namespace.as_str(), config.auth.authorization()), ("default", None));
/// # Ok::<(), cloudcoil_core::config::ConfigError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// The API server's address, with a path when it lives under one: `https://host:port/prefix`.
    pub server: Uri,
    /// The namespace that is meant when none is named.
    pub namespace: String,
    /// How the server is known, and the client certificate; not used when the scheme is `http`.
    pub tls: Tls,
    /// What goes into the `Authorization` header; [`Auth::Anonymous`] when the scheme is `http`, as with `kubectl`.
    pub auth: Auth,
    /// In whose name requests are made; nobody else's by default.
    pub impersonation: Impersonation,
    /// The proxy that every connection goes through: `proxy-url`, or what the environment has for this server.
    pub proxy: Option<Proxy>,
    /// Do not ask for compressed answers.
    pub disable_compression: bool,
}

impl Config {
    /// An anonymous configuration for a server whose certificate the machine's own authorities vouch for.
    ///
    /// # Errors
    /// [`ConfigError::InvalidServer`] if the address is no `http` or `https` URL.
    pub fn new(server: &str) -> Result<Self, ConfigError> {
        let server = server::parse(server).map_err(|problem| ConfigError::InvalidServer {
            origin: "the address given".into(),
            problem: problem.into(),
        })?;
        Ok(Self::anonymous(server))
    }

    fn anonymous(server: Uri) -> Self {
        Self {
            server,
            namespace: DEFAULT_NAMESPACE.to_owned(),
            tls: Tls::default(),
            auth: Auth::Anonymous,
            impersonation: Impersonation::default(),
            proxy: None,
            disable_compression: false,
        }
    }

    /// Whether the connection is encrypted.
    pub fn is_tls(&self) -> bool {
        self.server.scheme_str() == Some("https")
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("server", &self.server)
            .field("namespace", &self.namespace)
            .field("tls", &self.tls)
            .field("auth", &self.auth)
            .field("impersonation", &self.impersonation)
            .field("proxy", &self.proxy)
            .field("disable_compression", &self.disable_compression)
            .finish()
    }
}

/// How the API server is known, and the certificate that is shown to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tls {
    /// The authorities that vouch for the server; without any, the machine's own do.
    pub ca: Option<Pem>,
    /// The name the server's certificate must carry, in place of the address's host.
    pub server_name: Option<String>,
    /// Take any certificate; `ca` is then not used.
    pub insecure_skip_verify: bool,
    /// The client certificate, leaf first, and its key.
    pub identity: Option<Identity>,
    /// The files that these were read from.
    pub files: TlsFiles,
}

/// The files that an authority, a client certificate and its key were read from, each of them alone or all. Long-running clients
/// read them again, as others renew them; [`Credentials`](crate::credentials::Credentials) say when.
///
/// A file counts as long as it is the [origin](Pem::origin) of what is in use: whoever puts another certificate in its place has
/// that one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsFiles {
    /// That of [`Tls::ca`].
    pub ca: Option<PathBuf>,
    /// That of the client certificate.
    pub certificate: Option<PathBuf>,
    /// That of its key.
    pub key: Option<PathBuf>,
}

/// A client certificate and its private key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a certificate and its key are all there is")]
pub struct Identity {
    /// The certificate, with those between it and its authority behind it.
    pub certificate: Pem,
    /// The private key.
    pub key: Pem,
}

/// PEM text, and where it came from; the text is not in its `Debug`.
#[derive(Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a text and its origin are all there is")]
pub struct Pem {
    /// The file, or the field and its file: for errors about the text.
    pub origin: Box<str>,
    /// The text, which nobody has looked into yet.
    pub text: Secret,
}

impl Pem {
    /// The content of a file, which is its origin.
    pub(crate) fn of_file(path: &Path, content: impl Into<Vec<u8>>) -> Self {
        Self { origin: path.display().to_string().into(), text: Secret::new(content) }
    }
}

impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pem").field(&self.origin).finish()
    }
}

const DEFAULT_NAMESPACE: &str = "default";
