//! From a context's name to a configuration that lacks only the content of files.

use std::path::PathBuf;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::file::{Cluster, Exec, User};
use super::kubeconfig::Entry;
use super::{
    Auth, Config, ConfigError, ConfigWarning, Environment, ExecCluster, ExecConfig, ExecVersion, Identity,
    Impersonation, InteractiveMode, Kubeconfig, Pem, Proxy, Secret, Tls, TokenFile, server,
};

/// A configuration whose files are still to be read.
#[derive(Clone)]
pub(super) struct Draft {
    config: Config,
    /// What the kubeconfig has, and the field that has it.
    proxy_url: Option<(Box<str>, String)>,
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

impl Kubeconfig {
    /// What the context of that name, or the current one, means.
    pub(super) fn draft(&self, context: Option<&str>) -> Result<Draft, ConfigError> {
        let files = || self.files().to_vec();
        let Some(name) = context.or_else(|| self.current_context()) else {
            return Err(ConfigError::NoCurrentContext { files: files() });
        };
        let Some(context) = self.contexts.get(name) else {
            return Err(ConfigError::UnknownContext { name: name.into(), files: files() });
        };
        let origin = context.origin("context.cluster");
        let Some(cluster_name) = text(&context.content.cluster) else {
            return Err(ConfigError::Missing { origin });
        };
        let Some(cluster) = self.clusters.get(cluster_name) else {
            return Err(ConfigError::UnknownCluster { origin, name: cluster_name.into() });
        };
        let user_name = text(&context.content.user);
        let user = user_name.and_then(|name| self.users.get(name));
        let mut draft = Draft::of_cluster(cluster, user)?;
        if let Some(namespace) = text(&context.content.namespace) {
            draft.config.namespace = namespace.to_owned();
        }
        if let Some(user) = user {
            draft.add_impersonation(user)?;
        }
        match (user, user_name) {
            (Some(user), _) if draft.config.is_tls() => draft.add_user(user, cluster)?,
            (Some(user), _) if user.content.has_credentials() => draft.warnings.push(ConfigWarning::PlainHttp),
            (None, Some(name)) => {
                let origin = context.origin("context.user");
                draft.warnings.push(ConfigWarning::UnknownUser { origin, name: name.into() });
            }
            _ => {}
        }
        Ok(draft)
    }
}

impl Draft {
    fn new(config: Config) -> Self {
        Self { config, proxy_url: None, certificate: None, key: None, wanted: Vec::new(), warnings: Vec::new() }
    }

    /// The service account of the pod this runs in.
    ///
    /// See <https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/>.
    pub(super) fn in_cluster(host: &str, port: &str) -> Result<Self, ConfigError> {
        let host = if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.to_owned() };
        let server = server::parse(&format!("https://{host}:{port}"), true).map_err(|problem| {
            let origin = "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT".into();
            ConfigError::InvalidServer { origin, problem: problem.into() }
        })?;
        let mut draft = Self::new(Config::anonymous(server));
        for (what, file, optional) in
            [(What::Namespace, "namespace", true), (What::Ca, "ca.crt", true), (What::Token, "token", false)]
        {
            let origin = "the pod's service account".into();
            draft.wanted.push(Wanted { what, path: PathBuf::from(SERVICE_ACCOUNT).join(file), origin, optional });
        }
        Ok(draft)
    }

    fn of_cluster(cluster: &Entry<Cluster>, user: Option<&Entry<User>>) -> Result<Self, ConfigError> {
        let fields = &cluster.content;
        let origin = cluster.origin("cluster.server");
        let Some(address) = text(&fields.server) else {
            return Err(ConfigError::Missing { origin });
        };
        let has_ca = either(&fields.certificate_authority, &fields.certificate_authority_data);
        let has_certificate = user
            .is_some_and(|Entry { content: user, .. }| either(&user.client_certificate, &user.client_certificate_data));
        let server = server::parse(address, has_ca || has_certificate || fields.insecure_skip_tls_verify)
            .map_err(|problem| ConfigError::InvalidServer { origin, problem: problem.into() })?;
        let tls = Tls {
            server_name: text(&fields.tls_server_name).map(ToOwned::to_owned),
            insecure_skip_verify: fields.insecure_skip_tls_verify,
            ..Tls::default()
        };
        let mut draft = Self::new(Config { tls, ..Config::anonymous(server) });
        draft.config.disable_compression = fields.disable_compression;
        draft.proxy_url = text(&fields.proxy_url).map(|url| (cluster.origin("cluster.proxy-url"), url.to_owned()));
        if draft.config.is_tls() && !draft.config.tls.insecure_skip_verify {
            let field = "cluster.certificate-authority";
            draft.config.tls.ca = draft.pem(
                cluster,
                What::Ca,
                field,
                &fields.certificate_authority_data,
                &fields.certificate_authority,
            )?;
        }
        Ok(draft)
    }

    fn add_user(&mut self, user: &Entry<User>, cluster: &Entry<Cluster>) -> Result<(), ConfigError> {
        if user.content.auth_provider {
            let instead = ": Kubernetes dropped it; use an `exec` credential program";
            return Err(ConfigError::Unsupported { origin: user.origin("user.auth-provider"), instead });
        }
        self.add_identity(user)?;
        self.add_header(user)?;
        if let Some(exec) = &user.content.exec {
            let exec = self.exec(user, exec, cluster)?;
            self.config.auth = Auth::Exec(Box::new(exec));
        }
        Ok(())
    }

    fn exec(&self, user: &Entry<User>, exec: &Exec, cluster: &Entry<Cluster>) -> Result<ExecConfig, ConfigError> {
        let missing = |field: &str| ConfigError::Missing { origin: user.origin(field) };
        let invalid = |field: &str, problem: &str| ConfigError::InvalidExec {
            origin: user.origin(field),
            problem: problem.into(),
        };
        let command = text(&exec.command).ok_or_else(|| missing("user.exec.command"))?;
        let version = text(&exec.api_version).ok_or_else(|| missing("user.exec.apiVersion"))?;
        let api_version = ExecVersion::parse(version).ok_or_else(|| {
            invalid(
                "user.exec.apiVersion",
                "neither client.authentication.k8s.io/v1 nor client.authentication.k8s.io/v1beta1",
            )
        })?;
        if exec.env.iter().any(|variable| variable.name.is_empty()) {
            return Err(missing("user.exec.env[].name"));
        }
        let interactive_mode = match text(&exec.interactive_mode) {
            None if api_version == ExecVersion::V1 => return Err(missing("user.exec.interactiveMode")),
            None => InteractiveMode::IfAvailable,
            Some(mode) => InteractiveMode::parse(mode)
                .ok_or_else(|| invalid("user.exec.interactiveMode", "none of Never, IfAvailable and Always"))?,
        };
        Ok(ExecConfig {
            // A name alone is looked for in `PATH`.
            command: if command.contains(std::path::is_separator) { user.path(command) } else { command.into() },
            args: exec.args.clone(),
            env: exec.env.iter().map(|variable| (variable.name.clone(), variable.value.clone())).collect(),
            api_version,
            cluster: exec.provide_cluster_info.then(|| Box::new(exec_cluster(&cluster.content))),
            interactive_mode,
            install_hint: text(&exec.install_hint).map(ToOwned::to_owned),
            origin: user.origin("user.exec"),
        })
    }

    /// Impersonation is no secret, and is told over plain `http` too, as `kubectl` does.
    fn add_impersonation(&mut self, user: &Entry<User>) -> Result<(), ConfigError> {
        let fields = &user.content;
        let extra = fields.as_user_extra.iter().map(|(key, values)| (key.clone(), values.clone().unwrap_or_default()));
        let impersonation = Impersonation {
            user: text(&fields.as_user).map(ToOwned::to_owned),
            uid: text(&fields.as_uid).map(ToOwned::to_owned),
            groups: fields.as_groups.clone(),
            extra: extra.collect(),
        };
        if impersonation.headers().is_none() {
            let problem = match impersonation.user {
                None => "as-uid, as-groups and as-user-extra need a user",
                Some(_) => "a name or value with characters that cannot be sent",
            };
            return Err(ConfigError::InvalidImpersonation { origin: user.origin("user.as"), problem });
        }
        self.config.impersonation = impersonation;
        Ok(())
    }

    /// The proxy that the kubeconfig names, else the one that the environment has for the server.
    pub(super) fn add_proxy(&mut self, environment: &Environment) -> Result<(), ConfigError> {
        let (origin, proxy) = match self.proxy_url.take() {
            Some((origin, url)) => (origin, Proxy::parse(&url)),
            None => match Proxy::from_environment(environment, &self.config.server) {
                Some((variable, proxy)) => (variable.into(), proxy),
                None => return Ok(()),
            },
        };
        self.config.proxy = Some(proxy.map_err(|problem| ConfigError::InvalidProxy { origin, problem })?);
        Ok(())
    }

    fn add_identity(&mut self, user: &Entry<User>) -> Result<(), ConfigError> {
        let fields = &user.content;
        let (data, file) = (&fields.client_certificate_data, &fields.client_certificate);
        if !either(data, file) {
            return Ok(());
        }
        if !either(&fields.client_key_data, &fields.client_key) {
            return Err(ConfigError::Missing { origin: user.origin("user.client-key") });
        }
        self.certificate = self.pem(user, What::Certificate, "user.client-certificate", data, file)?;
        self.key = self.pem(user, What::Key, "user.client-key", &fields.client_key_data, &fields.client_key)?;
        Ok(())
    }

    /// A token goes before a password; a token's file before a token, which then stands in while there is no file.
    fn add_header(&mut self, user: &Entry<User>) -> Result<(), ConfigError> {
        let fields = &user.content;
        let token = text(&fields.token);
        if let Some(token) = token {
            self.config.auth = Auth::bearer(token.as_bytes()).ok_or_else(|| not_a_header(user.origin("user.token")))?;
        }
        if let Some(file) = text(&fields.token_file) {
            let (path, origin) = (user.path(file), user.origin("user.tokenFile"));
            self.wanted.push(Wanted { what: What::Token, path, origin, optional: token.is_some() });
        }
        let username = text(&fields.username);
        if token.is_some() && username.is_some() {
            let problem = "a token and a password exclude each other".into();
            return Err(ConfigError::InvalidCredential { origin: user.origin("user.username"), problem });
        }
        if let (Some(username), None) = (username, text(&fields.token_file)) {
            self.config.auth = Auth::basic(username, fields.password.as_deref().unwrap_or_default());
        }
        Ok(())
    }

    /// PEM text from the field that holds it, or from the file that the other field names.
    fn pem<T>(
        &mut self,
        entry: &Entry<T>,
        what: What,
        field: &str,
        data: &Option<String>,
        file: &Option<String>,
    ) -> Result<Option<Pem>, ConfigError> {
        if let Some(data) = text(data) {
            let origin = entry.origin(&format!("{field}-data"));
            return match decode_base64(data) {
                Some(bytes) => Ok(Some(Pem { origin, text: Secret::new(bytes) })),
                None => Err(ConfigError::InvalidBase64 { origin }),
            };
        }
        if let Some(file) = text(file) {
            self.wanted.push(Wanted { what, path: entry.path(file), origin: entry.origin(field), optional: false });
        }
        Ok(None)
    }

    /// Takes the content of a file that was wanted.
    pub(super) fn supply(&mut self, wanted: Wanted, bytes: Vec<u8>) -> Result<(), ConfigError> {
        let pem = |bytes| Pem { origin: wanted.path.display().to_string().into(), text: Secret::new(bytes) };
        match wanted.what {
            What::Ca => self.config.tls.ca = Some(pem(bytes)),
            What::Certificate => self.certificate = Some(pem(bytes)),
            What::Key => self.key = Some(pem(bytes)),
            What::Namespace => {
                let namespace = String::from_utf8_lossy(&bytes);
                if !namespace.trim().is_empty() {
                    namespace.trim().clone_into(&mut self.config.namespace);
                }
            }
            What::Token => match TokenFile::new(wanted.path.clone(), &bytes) {
                Some(file) => self.config.auth = Auth::TokenFile(file),
                None if wanted.optional => {}
                None => return Err(not_a_header(wanted.path.display().to_string().into())),
            },
        }
        Ok(())
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

/// What a credential program is told about a cluster.
fn exec_cluster(cluster: &Cluster) -> ExecCluster {
    let config = cluster.extensions.iter().find(|extension| extension.name == EXEC_EXTENSION);
    ExecCluster {
        server: cluster.server.clone().unwrap_or_default(),
        tls_server_name: text(&cluster.tls_server_name).map(ToOwned::to_owned),
        insecure_skip_tls_verify: cluster.insecure_skip_tls_verify,
        certificate_authority: None,
        proxy_url: text(&cluster.proxy_url).map(ToOwned::to_owned),
        disable_compression: cluster.disable_compression,
        config: config.and_then(|extension| extension.extension.clone()),
    }
}

/// A field's text; one that is empty is absent.
fn text(field: &Option<String>) -> Option<&str> {
    field.as_deref().filter(|text| !text.is_empty())
}

fn either(one: &Option<String>, other: &Option<String>) -> bool {
    text(one).is_some() || text(other).is_some()
}

fn not_a_header(origin: Box<str>) -> ConfigError {
    ConfigError::InvalidCredential { origin, problem: "empty, or with characters that cannot be sent".into() }
}

/// Base64 with or without line breaks and padding, as Go and people write it.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    const LENIENT: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let text: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    GeneralPurpose::new(&alphabet::STANDARD, LENIENT).decode(text).ok()
}

/// The extension of a cluster that is meant for credential programs.
const EXEC_EXTENSION: &str = "client.authentication.k8s.io/exec";
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
