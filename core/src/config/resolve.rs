//! From a source to a configuration that lacks only the content of files.

use std::path::PathBuf;

use super::file::{Cluster, User, is_empty};
use super::gather::Gather;
use super::kubeconfig::{Entry, Place};
use super::{
    Auth, Config, ConfigError, ConfigSource, ConfigWarning, Environment, ExecCluster, Identity, Kubeconfig, Pem, Proxy,
    Secret, Tls, TokenFile, server,
};

/// A configuration whose files are still to be read.
#[derive(Clone)]
pub(super) struct Draft {
    pub(super) config: Config,
    certificate: Option<Pem>,
    key: Option<Pem>,
    /// The files, last one first.
    pub(super) wanted: Vec<Wanted>,
    pub(super) warnings: Vec<ConfigWarning>,
}

/// A file that a configuration names.
#[derive(Clone)]
pub(super) struct Wanted {
    pub(super) what: What,
    pub(super) path: PathBuf,
    pub(super) origin: Box<str>,
    /// Whether the configuration can be used without it.
    pub(super) optional: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Ca,
    Certificate,
    Key,
    Token,
    Namespace,
}

/// The entries that a context leads to; each may be absent.
#[derive(Default)]
struct Chosen<'a> {
    namespace: &'a str,
    cluster: Option<&'a Entry<Cluster>>,
    user: Option<&'a Entry<User>>,
}

/// An entry, and what the caller puts in place of its fields.
pub(super) struct Layers<'a, T> {
    pub(super) caller: &'a Entry<T>,
    pub(super) entry: Option<&'a Entry<T>>,
}

impl Draft {
    /// What the files that were gathered mean, or in their place the service account of the pod this runs in.
    ///
    /// See <https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/>.
    pub(super) fn new(gather: &Gather, source: &ConfigSource, environment: &Environment) -> Result<Self, ConfigError> {
        if !gather.is_empty() || source.overrides.server.is_some() || source.context.is_some() {
            let mut warnings = Vec::new();
            let chosen = Chosen::new(&gather.merged, source, &mut warnings)?;
            let mut draft = Self::of(&chosen, source, environment)?;
            draft.warnings.splice(0..0, warnings);
            return Ok(draft);
        }
        let set = |variable: &Option<String>| variable.clone().filter(|value| !value.is_empty());
        match (set(&environment.service_host), set(&environment.service_port)) {
            (Some(host), Some(port)) => Self::in_cluster(&host, &port, source, environment),
            _ => Err(ConfigError::NotFound { tried: [&gather.missing[..], gather.merged.files()].concat() }),
        }
    }

    fn in_cluster(
        host: &str,
        port: &str,
        source: &ConfigSource,
        environment: &Environment,
    ) -> Result<Self, ConfigError> {
        let file = |name: &str| format!("{SERVICE_ACCOUNT}/{name}");
        let host = if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.to_owned() };
        let cluster = Cluster {
            server: format!("https://{host}:{port}"),
            certificate_authority: file("ca.crt"),
            ..Cluster::default()
        };
        let cluster = Entry { place: Place::Pod, content: cluster };
        let user = User { token_file: file("token"), ..User::default() };
        let user = Entry { place: Place::Pod, content: user };
        let namespace = environment.pod_namespace.as_deref().unwrap_or_default();
        let mut draft =
            Self::of(&Chosen { namespace, cluster: Some(&cluster), user: Some(&user) }, source, environment)?;
        if namespace.is_empty() && text(&source.overrides.namespace).is_none() {
            let (path, origin) = (file("namespace").into(), user.origin("namespace"));
            draft.wanted.insert(0, Wanted { what: What::Namespace, path, origin, optional: true });
        }
        Ok(draft)
    }

    fn of(chosen: &Chosen<'_>, source: &ConfigSource, environment: &Environment) -> Result<Self, ConfigError> {
        let (cluster, user) = (source.overrides.cluster_entry(), source.overrides.user_entry());
        let cluster = Layers { caller: &cluster, entry: chosen.cluster };
        let user = Layers { caller: &user, entry: chosen.user };
        let mut draft = Self::of_cluster(&cluster)?;
        if let Some(namespace) = text(&source.overrides.namespace).or_else(|| some(chosen.namespace)) {
            namespace.clone_into(&mut draft.config.namespace);
        }
        draft.add_proxy(&cluster, environment)?;
        draft.add_impersonation(&user)?;
        if draft.config.is_tls() {
            draft.add_user(&user, &cluster)?;
        } else if user.caller.content.has_credentials() || user.entry.is_some_and(|user| user.content.has_credentials())
        {
            draft.warnings.push(ConfigWarning::PlainHttp);
        }
        Ok(draft)
    }

    fn of_cluster(cluster: &Layers<'_, Cluster>) -> Result<Self, ConfigError> {
        let Some(found) = cluster.with(|fields| !fields.server.is_empty()) else {
            return Err(ConfigError::Missing { origin: cluster.entry_or_caller().origin("cluster.server") });
        };
        let server = server::parse(&found.content.server).map_err(|problem| ConfigError::InvalidServer {
            origin: found.origin("cluster.server"),
            problem: problem.into(),
        })?;
        let config = Config {
            disable_compression: cluster.any(|fields| fields.disable_compression),
            ..Config::anonymous(server)
        };
        let mut draft = Self { config, certificate: None, key: None, wanted: Vec::new(), warnings: Vec::new() };
        if draft.config.is_tls() {
            draft.add_tls(cluster)?;
        }
        Ok(draft)
    }

    /// What vouches for the server. An authority and the will to do without one go together, from one layer: so does
    /// the name of the server with its address.
    fn add_tls(&mut self, cluster: &Layers<'_, Cluster>) -> Result<(), ConfigError> {
        let named = cluster.layer(|fields| !fields.tls_server_name.is_empty() || !fields.server.is_empty());
        let trusted = cluster.layer(|fields| {
            fields.insecure_skip_tls_verify || either(&fields.certificate_authority, &fields.certificate_authority_data)
        });
        self.config.tls = Tls {
            server_name: named.and_then(|entry| some(&entry.content.tls_server_name)).map(ToOwned::to_owned),
            insecure_skip_verify: trusted.is_some_and(|entry| entry.content.insecure_skip_tls_verify),
            ..Tls::default()
        };
        let Some(trusted) = trusted else { return Ok(()) };
        let fields = &trusted.content;
        if fields.insecure_skip_tls_verify && either(&fields.certificate_authority, &fields.certificate_authority_data)
        {
            let origin = trusted.origin("cluster.insecure-skip-tls-verify");
            return Err(ConfigError::Conflict { origin, problem: "not together with a certificate authority" });
        }
        let (data, file) = (&fields.certificate_authority_data, &fields.certificate_authority);
        self.config.tls.ca = self.pem(trusted, What::Ca, "cluster.certificate-authority", data, file);
        Ok(())
    }

    /// The proxy that the kubeconfig names, else the one that the environment has for the server.
    fn add_proxy(&mut self, cluster: &Layers<'_, Cluster>, environment: &Environment) -> Result<(), ConfigError> {
        let (origin, proxy) = match cluster.with(|fields| !fields.proxy_url.is_empty()) {
            Some(entry) => (entry.origin("cluster.proxy-url"), Proxy::parse(&entry.content.proxy_url)),
            None => match Proxy::from_environment(environment, &self.config.server) {
                Some((variable, proxy)) => (variable.into(), proxy),
                None => return Ok(()),
            },
        };
        self.config.proxy = Some(proxy.map_err(|problem| ConfigError::InvalidProxy { origin, problem })?);
        Ok(())
    }

    pub(super) fn add_identity(&mut self, user: &Layers<'_, User>) -> Result<(), ConfigError> {
        let certificate = user.with(|fields| either(&fields.client_certificate, &fields.client_certificate_data));
        let Some(certificate) = certificate else { return Ok(()) };
        let Some(key) = user.with(|fields| either(&fields.client_key, &fields.client_key_data)) else {
            return Err(ConfigError::Missing { origin: certificate.origin("user.client-key") });
        };
        let (data, file) = (&certificate.content.client_certificate_data, &certificate.content.client_certificate);
        self.certificate = self.pem(certificate, What::Certificate, "user.client-certificate", data, file);
        let (data, file) = (&key.content.client_key_data, &key.content.client_key);
        self.key = self.pem(key, What::Key, "user.client-key", data, file);
        Ok(())
    }

    /// PEM text from the field that holds it, or from the file that the other field names.
    fn pem<T>(&mut self, entry: &Entry<T>, what: What, field: &str, data: &Option<Secret>, file: &str) -> Option<Pem> {
        if let Some(data) = data.as_ref().filter(|data| !data.expose().is_empty()) {
            return Some(Pem { origin: entry.origin(&format!("{field}-data")), text: data.clone() });
        }
        if !file.is_empty() {
            let optional = what == What::Ca && entry.place == Place::Pod;
            self.wanted.push(Wanted { what, path: entry.path(file), origin: entry.origin(field), optional });
        }
        None
    }

    /// Takes the content of a file that was wanted.
    pub(super) fn supply(&mut self, wanted: Wanted, bytes: Vec<u8>) -> Result<(), ConfigError> {
        let (pem, tls) = (|bytes| Pem::of_file(&wanted.path, bytes), &mut self.config.tls);
        match wanted.what {
            What::Ca => (tls.ca, tls.files.ca) = (Some(pem(bytes)), Some(wanted.path)),
            What::Certificate => (self.certificate, tls.files.certificate) = (Some(pem(bytes)), Some(wanted.path)),
            What::Key => (self.key, tls.files.key) = (Some(pem(bytes)), Some(wanted.path)),
            What::Namespace => {
                let namespace = String::from_utf8_lossy(&bytes);
                if !namespace.trim().is_empty() {
                    namespace.trim().clone_into(&mut self.config.namespace);
                }
            }
            What::Token => match TokenFile::new(wanted.path.clone(), &bytes) {
                Some(file) => self.config.auth = Auth::TokenFile(file),
                None if wanted.optional => self.go_without(wanted),
                None => return Err(not_a_header(wanted.path.display().to_string().into())),
            },
        }
        Ok(())
    }

    /// Does without a file that was wanted. A token that stands in for one in a file does so until there is one.
    pub(super) fn go_without(&mut self, wanted: Wanted) {
        if let (What::Token, Auth::Header(header)) = (wanted.what, &self.config.auth)
            && let Some(token) = header.as_bytes().strip_prefix(b"Bearer ")
            && let Some(file) = TokenFile::new(wanted.path, token)
        {
            self.config.auth = Auth::TokenFile(file);
        }
    }

    /// The configuration, once nothing is wanted any more.
    pub(super) fn finish(mut self) -> Config {
        if let (Some(certificate), Some(key)) = (self.certificate, self.key) {
            self.config.tls.identity = Some(Identity { certificate, key });
        }
        if let Auth::Exec(exec) = &mut self.config.auth
            && let Some(cluster) = &mut exec.cluster
        {
            cluster.certificate_authority.clone_from(&self.config.tls.ca);
        }
        self.config
    }
}

impl<'a> Chosen<'a> {
    fn new(
        kubeconfig: &'a Kubeconfig,
        source: &'a ConfigSource,
        warnings: &mut Vec<ConfigWarning>,
    ) -> Result<Self, ConfigError> {
        let overrides = &source.overrides;
        let context = match kubeconfig.context(source.context.as_deref()) {
            Ok((_, context)) => Some(context),
            // A server, or a cluster by name, needs no context.
            Err(ConfigError::NoCurrentContext { .. })
                if text(&overrides.server).is_some() || text(&overrides.cluster).is_some() =>
            {
                None
            }
            Err(error) => return Err(error),
        };
        let of_context = |field: &str| context.map_or_else(|| field.into(), |context| context.origin(field));
        let fields = context.map(|context| &context.content);
        let cluster = match (text(&overrides.cluster), fields.and_then(|fields| some(&fields.cluster))) {
            (Some(name), _) => {
                Some(find(&kubeconfig.clusters, name).ok_or_else(|| unknown_cluster("the cluster asked for", name))?)
            }
            (None, Some(name)) => match find(&kubeconfig.clusters, name) {
                None if text(&overrides.server).is_none() => {
                    return Err(unknown_cluster(&of_context("context.cluster"), name));
                }
                found => found,
            },
            (None, None) if text(&overrides.server).is_some() => None,
            (None, None) => return Err(ConfigError::Missing { origin: of_context("context.cluster") }),
        };
        let user = match (text(&overrides.user), fields.and_then(|fields| some(&fields.user))) {
            (Some(name), _) => {
                let unknown = || ConfigError::UnknownUser { origin: "the user asked for".into(), name: name.into() };
                Some(find(&kubeconfig.users, name).ok_or_else(unknown)?)
            }
            (None, Some(name)) => {
                let found = find(&kubeconfig.users, name);
                if found.is_none() {
                    let origin = of_context("context.user");
                    warnings.push(ConfigWarning::UnknownUser { origin, name: name.into() });
                }
                found
            }
            (None, None) => None,
        };
        Ok(Self { namespace: fields.map_or("", |fields| &fields.namespace), cluster, user })
    }
}

impl<'a, T> Layers<'a, T> {
    /// The uppermost layer of which something is true.
    pub(super) fn with(&self, is_so: impl Fn(&T) -> bool) -> Option<&'a Entry<T>> {
        [Some(self.caller), self.entry].into_iter().flatten().find(|entry| is_so(&entry.content))
    }

    /// The caller's layer if that is true of it, else the entry, whatever is true of that.
    pub(super) fn layer(&self, is_so: impl Fn(&T) -> bool) -> Option<&'a Entry<T>> {
        if is_so(&self.caller.content) { Some(self.caller) } else { self.entry }
    }

    pub(super) fn any(&self, is_so: impl Fn(&T) -> bool) -> bool {
        self.with(is_so).is_some()
    }

    /// Where to look for what no layer has.
    pub(super) fn entry_or_caller(&self) -> &'a Entry<T> {
        self.entry.unwrap_or(self.caller)
    }
}

/// What a credential program is told about a cluster; the authority is added once its file has been read.
pub(super) fn exec_cluster(cluster: &Layers<'_, Cluster>, tls: &Tls) -> ExecCluster {
    let field = |get: fn(&Cluster) -> &String| {
        cluster.with(|fields| !get(fields).is_empty()).map(|entry| get(&entry.content).clone())
    };
    let extension = cluster.entry.and_then(|entry| entry.content.extensions.0.get(EXEC_EXTENSION));
    ExecCluster {
        server: field(|fields| &fields.server).unwrap_or_default(),
        tls_server_name: tls.server_name.clone(),
        insecure_skip_tls_verify: tls.insecure_skip_verify,
        certificate_authority: None,
        proxy_url: field(|fields| &fields.proxy_url),
        disable_compression: cluster.any(|fields| fields.disable_compression),
        config: extension.filter(|config| !config.is_null()).cloned(),
    }
}

pub(super) fn not_a_header(origin: Box<str>) -> ConfigError {
    ConfigError::InvalidCredential { origin, problem: "empty, or with characters that cannot be sent".into() }
}

fn unknown_cluster(origin: &str, name: &str) -> ConfigError {
    ConfigError::UnknownCluster { origin: origin.into(), name: name.into() }
}

fn find<'a, T>(entries: &'a std::collections::BTreeMap<String, Entry<T>>, name: &str) -> Option<&'a Entry<T>> {
    entries.get(name)
}

/// An override's text; one that is empty is absent.
fn text(field: &Option<String>) -> Option<&str> {
    field.as_deref().filter(|text| !text.is_empty())
}

/// A field's text; one that is empty is absent.
pub(super) fn some(field: &str) -> Option<&str> {
    Some(field).filter(|text| !text.is_empty())
}

pub(super) fn either(file: &str, data: &Option<Secret>) -> bool {
    !file.is_empty() || !is_empty(data)
}

/// The extension of a cluster that is meant for credential programs.
const EXEC_EXTENSION: &str = "client.authentication.k8s.io/exec";
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
