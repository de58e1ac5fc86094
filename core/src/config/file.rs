//! The format of a kubeconfig file, as lenient as `kubectl` reads it: unknown fields, and `null` anywhere.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::ConfigError;

#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct File {
    pub(super) current_context: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) clusters: Vec<Named<Cluster>>,
    #[serde(deserialize_with = "or_default")]
    pub(super) contexts: Vec<Named<Context>>,
    #[serde(deserialize_with = "or_default")]
    pub(super) users: Vec<Named<User>>,
}

/// An entry of one of the lists: the key of its content differs from list to list.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(bound = "T: Deserialize<'de> + Default", default)]
pub(super) struct Named<T> {
    #[serde(deserialize_with = "or_default")]
    pub(super) name: String,
    #[serde(alias = "cluster", alias = "context", alias = "user", deserialize_with = "or_default")]
    pub(super) content: T,
}

#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Cluster {
    pub(super) server: Option<String>,
    pub(super) certificate_authority: Option<String>,
    pub(super) certificate_authority_data: Option<String>,
    pub(super) tls_server_name: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) insecure_skip_tls_verify: bool,
    pub(super) proxy_url: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) disable_compression: bool,
    #[serde(deserialize_with = "or_default")]
    pub(super) extensions: Vec<NamedExtension>,
}

#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Context {
    pub(super) cluster: Option<String>,
    pub(super) user: Option<String>,
    pub(super) namespace: Option<String>,
}

#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct User {
    pub(super) token: Option<String>,
    #[serde(rename = "tokenFile")]
    pub(super) token_file: Option<String>,
    pub(super) client_certificate: Option<String>,
    pub(super) client_certificate_data: Option<String>,
    pub(super) client_key: Option<String>,
    pub(super) client_key_data: Option<String>,
    pub(super) username: Option<String>,
    pub(super) password: Option<String>,
    pub(super) exec: Option<Exec>,
    #[serde(deserialize_with = "is_set")]
    pub(super) auth_provider: bool,
    #[serde(rename = "as")]
    pub(super) as_user: Option<String>,
    pub(super) as_uid: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) as_groups: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) as_user_extra: BTreeMap<String, Option<Vec<String>>>,
}

impl User {
    /// Whether there is anything but impersonation.
    pub(super) fn has_credentials(&self) -> bool {
        let impersonation = Self {
            as_user: self.as_user.clone(),
            as_uid: self.as_uid.clone(),
            as_groups: self.as_groups.clone(),
            as_user_extra: self.as_user_extra.clone(),
            ..Self::default()
        };
        *self != impersonation
    }
}

#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Exec {
    pub(super) command: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) args: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) env: Vec<ExecEnv>,
    pub(super) api_version: Option<String>,
    pub(super) install_hint: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) provide_cluster_info: bool,
    pub(super) interactive_mode: Option<String>,
}

#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct ExecEnv {
    #[serde(deserialize_with = "or_default")]
    pub(super) name: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) value: String,
}

#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct NamedExtension {
    #[serde(deserialize_with = "or_default")]
    pub(super) name: String,
    pub(super) extension: Option<Value>,
}

/// Reads YAML or JSON; nothing in the file means nothing is set.
pub(super) fn parse(path: &Path, bytes: &[u8]) -> Result<File, ConfigError> {
    let undecodable = |field: String, line, problem| ConfigError::Undecodable {
        path: path.to_owned(),
        field: field.into(),
        line,
        problem,
    };
    let text = str::from_utf8(bytes).map_err(|_| undecodable(String::new(), 0, "not UTF-8 text"))?;
    let text = text.trim_start_matches('\u{feff}');
    // JSON escapes that YAML does not know are legal here.
    if text.trim_start().starts_with('{')
        && let Ok(file) = serde_json::from_str(text)
    {
        return Ok(file);
    }
    let options = || serde_saphyr::options! { duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins };
    // As `kubectl`, which reads the first document only.
    match serde_saphyr::from_multiple_with_options::<File>(text, options()) {
        Ok(files) => Ok(files.into_iter().next().unwrap_or_default()),
        Err(error) => {
            let line = error.location().map_or(0, |location| location.line());
            let field = field_at_fault(text, options());
            let problem = if field.is_empty() { "not a kubeconfig in YAML or JSON" } else { "not of the right type" };
            Err(undecodable(field, line, problem))
        }
    }
}

/// The path of the field that does not fit; empty when the text is no YAML, or fits.
fn field_at_fault(text: &str, options: serde_saphyr::Options) -> String {
    let mut path = String::new();
    let _ = serde_saphyr::with_deserializer_from_str_with_options(text, options, |deserializer| {
        serde_path_to_error::deserialize::<_, File>(deserializer).map_err(|error| {
            path = error.path().to_string();
            error.into_inner()
        })
    });
    if path == "." { String::new() } else { path }
}

/// Takes `null` as absent.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Whether a field holds anything; what it holds is not kept.
fn is_set<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        _ => true,
    })
}
