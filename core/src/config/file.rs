//! The format of a kubeconfig file, in the order in which `kubectl` prints its fields.
//!
//! See <https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/>.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::decode::{Decode, Fault, Fields, Problem, decode};
use super::yaml::{self, Node};
use super::{ConfigError, ExecVersion, Impersonation, InteractiveMode, Secret};

#[derive(Clone, Default, PartialEq)]
pub(super) struct File {
    pub(super) preferences: Preferences,
    pub(super) clusters: Vec<Named<Cluster>>,
    pub(super) users: Vec<Named<User>>,
    pub(super) contexts: Vec<Named<Context>>,
    pub(super) current_context: String,
    pub(super) extensions: Extensions,
}

/// An entry of one of the lists.
#[derive(Clone, Default, PartialEq)]
pub(super) struct Named<T> {
    pub(super) name: String,
    pub(super) content: T,
}

/// The content of a list's entries.
pub(super) trait Listed: Decode {
    /// The name of the list.
    const LIST: &'static str;
    /// The field of an entry that has its content.
    const FIELD: &'static str;
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Preferences {
    #[serde(skip_serializing_if = "is_default")]
    pub(super) colors: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) extensions: Extensions,
}

#[derive(Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Cluster {
    pub(super) server: String,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) tls_server_name: String,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) insecure_skip_tls_verify: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) certificate_authority: String,
    #[serde(skip_serializing_if = "is_empty", serialize_with = "base64")]
    pub(super) certificate_authority_data: Option<Secret>,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) proxy_url: String,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) disable_compression: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) extensions: Extensions,
}

#[derive(Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct User {
    #[serde(skip_serializing_if = "is_default")]
    pub(super) client_certificate: String,
    #[serde(skip_serializing_if = "is_empty", serialize_with = "base64")]
    pub(super) client_certificate_data: Option<Secret>,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) client_key: String,
    #[serde(skip_serializing_if = "is_empty", serialize_with = "base64")]
    pub(super) client_key_data: Option<Secret>,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) token: String,
    #[serde(rename = "tokenFile", skip_serializing_if = "is_default")]
    pub(super) token_file: String,
    #[serde(rename = "as", skip_serializing_if = "is_default")]
    pub(super) as_user: String,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) as_uid: String,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) as_groups: Vec<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) as_user_extra: BTreeMap<String, Option<Vec<String>>>,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) username: String,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) password: String,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) auth_provider: Option<AuthProvider>,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) exec: Option<Exec>,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) extensions: Extensions,
}

#[derive(Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct AuthProvider {
    pub(super) name: String,
    pub(super) config: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Exec {
    pub(super) command: String,
    pub(super) args: Option<Vec<String>>,
    pub(super) env: Option<Vec<ExecEnv>>,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) api_version: String,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) install_hint: String,
    pub(super) provide_cluster_info: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) interactive_mode: String,
}

#[derive(Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct ExecEnv {
    pub(super) name: String,
    pub(super) value: String,
}

#[derive(Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Context {
    pub(super) cluster: String,
    pub(super) user: String,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) namespace: String,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) extensions: Extensions,
}

/// What other programs keep here, by name.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Extensions(pub(super) BTreeMap<String, Value>);

/// Reads YAML or JSON; nothing in the file means nothing is set.
pub(super) fn parse(path: &Path, bytes: &[u8]) -> Result<File, ConfigError> {
    let undecodable = |field: String, line, problem| ConfigError::Undecodable {
        path: path.to_owned(),
        field: field.into(),
        line,
        problem,
    };
    let text = yaml::text(bytes).map_err(|problem| undecodable(String::new(), 0, problem))?;
    let read = Node::parse(&text).map_err(Fault::from).and_then(|node| decode::<File>(&node));
    read.map_err(|fault| match fault.problem {
        Problem::NoBase64 => {
            ConfigError::InvalidBase64 { origin: format!("{} in {}", fault.field(), path.display()).into() }
        }
        Problem::Duplicate => undecodable(fault.field(), fault.line, "another entry has the same name"),
        Problem::Other(problem) => undecodable(fault.field(), fault.line, problem),
    })
}

impl Decode for File {
    fn decode(node: &Node) -> Result<Self, Fault> {
        let fields = Fields::of(node)?;
        check_type(&fields)?;
        Ok(Self {
            preferences: fields.field("preferences")?,
            clusters: fields.field("clusters")?,
            users: fields.field("users")?,
            contexts: fields.field("contexts")?,
            current_context: fields.field("current-context")?,
            extensions: fields.field("extensions")?,
        })
    }
}

/// A file need not say that it is a `Config` of version `v1`, but must not say that it is something else.
fn check_type(fields: &Fields<'_>) -> Result<(), Fault> {
    // These two alone are found whatever the case of their letters.
    for (name, node) in fields.iter() {
        let (name, wanted) = match name {
            _ if name.eq_ignore_ascii_case("kind") => ("kind", &["", "Config"][..]),
            _ if name.eq_ignore_ascii_case("apiVersion") => ("apiVersion", &["", "/", "v1", "/v1"][..]),
            _ => continue,
        };
        let found: String = decode(node).map_err(|fault| fault.within(name))?;
        if !wanted.contains(&found.as_str()) {
            let problem = Problem::Other("not a kubeconfig, whose kind is Config and whose apiVersion is v1");
            return Err(Fault::new(node.line, problem).within(name));
        }
    }
    Ok(())
}

impl<T: Listed> Decode for Named<T> {
    fn decode(node: &Node) -> Result<Self, Fault> {
        let fields = Fields::of(node)?;
        Ok(Self { name: fields.field("name")?, content: fields.field(T::FIELD)? })
    }
}

impl Listed for Cluster {
    const LIST: &'static str = "clusters";
    const FIELD: &'static str = "cluster";
}

impl Listed for Context {
    const LIST: &'static str = "contexts";
    const FIELD: &'static str = "context";
}

impl Listed for User {
    const LIST: &'static str = "users";
    const FIELD: &'static str = "user";
}

impl Decode for Preferences {
    fn decode(node: &Node) -> Result<Self, Fault> {
        let fields = Fields::of(node)?;
        Ok(Self { colors: fields.field("colors")?, extensions: fields.field("extensions")? })
    }
}

impl Decode for Cluster {
    fn decode(node: &Node) -> Result<Self, Fault> {
        let fields = Fields::of(node)?;
        Ok(Self {
            server: fields.field("server")?,
            tls_server_name: fields.field("tls-server-name")?,
            insecure_skip_tls_verify: fields.field("insecure-skip-tls-verify")?,
            certificate_authority: fields.field("certificate-authority")?,
            certificate_authority_data: fields.field("certificate-authority-data")?,
            proxy_url: fields.field("proxy-url")?,
            disable_compression: fields.field("disable-compression")?,
            extensions: fields.field("extensions")?,
        })
    }
}

impl Decode for User {
    fn decode(node: &Node) -> Result<Self, Fault> {
        let fields = Fields::of(node)?;
        Ok(Self {
            client_certificate: fields.field("client-certificate")?,
            client_certificate_data: fields.field("client-certificate-data")?,
            client_key: fields.field("client-key")?,
            client_key_data: fields.field("client-key-data")?,
            token: fields.field("token")?,
            token_file: fields.field("tokenFile")?,
            as_user: fields.field("as")?,
            as_uid: fields.field("as-uid")?,
            as_groups: fields.field("as-groups")?,
            as_user_extra: fields.field("as-user-extra")?,
            username: fields.field("username")?,
            password: fields.field("password")?,
            auth_provider: fields.field("auth-provider")?,
            exec: fields.field("exec")?,
            extensions: fields.field("extensions")?,
        })
    }
}

impl User {
    /// Whether there is anything that would be sent to show who one is; impersonation does not.
    pub(super) fn has_credentials(&self) -> bool {
        let texts = [&self.client_certificate, &self.token, &self.token_file, &self.username];
        texts.iter().any(|text| !text.is_empty())
            || !is_empty(&self.client_certificate_data)
            || self.exec.is_some()
            || self.auth_provider.is_some()
    }

    /// Whom it impersonates, by its own account.
    pub(super) fn impersonation(&self) -> Impersonation {
        let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let extra = self.as_user_extra.iter().map(|(key, values)| (key.clone(), values.clone().unwrap_or_default()));
        Impersonation {
            user: some(&self.as_user),
            uid: some(&self.as_uid),
            groups: self.as_groups.clone(),
            extra: extra.collect(),
        }
    }
}

impl Decode for AuthProvider {
    fn decode(node: &Node) -> Result<Self, Fault> {
        let fields = Fields::of(node)?;
        Ok(Self { name: fields.field("name")?, config: fields.field("config")? })
    }
}

impl Decode for Exec {
    fn decode(node: &Node) -> Result<Self, Fault> {
        let fields = Fields::of(node)?;
        let mut exec = Self {
            command: fields.field("command")?,
            args: fields.field("args")?,
            env: fields.field("env")?,
            api_version: fields.field("apiVersion")?,
            install_hint: fields.field("installHint")?,
            provide_cluster_info: fields.field("provideClusterInfo")?,
            interactive_mode: fields.field("interactiveMode")?,
        };
        // Later versions want it to be said.
        let has_default = [ExecVersion::V1Beta1.as_str(), "client.authentication.k8s.io/v1alpha1"];
        if exec.interactive_mode.is_empty() && has_default.contains(&exec.api_version.as_str()) {
            InteractiveMode::IfAvailable.as_str().clone_into(&mut exec.interactive_mode);
        }
        Ok(exec)
    }
}

impl Decode for ExecEnv {
    fn decode(node: &Node) -> Result<Self, Fault> {
        let fields = Fields::of(node)?;
        Ok(Self { name: fields.field("name")?, value: fields.field("value")? })
    }
}

impl Decode for Context {
    fn decode(node: &Node) -> Result<Self, Fault> {
        let fields = Fields::of(node)?;
        Ok(Self {
            cluster: fields.field("cluster")?,
            user: fields.field("user")?,
            namespace: fields.field("namespace")?,
            extensions: fields.field("extensions")?,
        })
    }
}

impl Decode for Extensions {
    fn decode(node: &Node) -> Result<Self, Fault> {
        let mut extensions = BTreeMap::new();
        for Extension { name, extension } in Vec::decode(node)? {
            // One that holds nothing may be there again.
            if extensions.insert(name, extension).is_some_and(|before: Value| !before.is_null()) {
                return Err(Fault::new(node.line, Problem::Duplicate));
            }
        }
        Ok(Self(extensions))
    }
}

impl Serialize for Extensions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let list =
            self.0.iter().map(|(name, extension)| Extension { name: name.clone(), extension: extension.clone() });
        serializer.collect_seq(list)
    }
}

impl std::fmt::Debug for Extensions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[derive(Default, Serialize)]
struct Extension {
    name: String,
    extension: Value,
}

impl Decode for Extension {
    fn decode(node: &Node) -> Result<Self, Fault> {
        let fields = Fields::of(node)?;
        Ok(Self { name: fields.field("name")?, extension: fields.field("extension")? })
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

pub(super) fn is_empty(data: &Option<Secret>) -> bool {
    data.as_ref().is_none_or(|data| data.expose().is_empty())
}

fn base64<S: Serializer>(data: &Option<Secret>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&STANDARD.encode(data.as_ref().map_or(&[][..], Secret::expose)))
}
