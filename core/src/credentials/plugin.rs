//! The protocol of credential programs: what they are told, and what they print.
//!
//! See <https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins>.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::{fmt, io};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use thiserror::Error;

use super::error::{CredentialsError, CredentialsProblem};
use super::expiry;
use crate::config::{Auth, ExecCluster, ExecConfig, ExecVersion, Identity, InteractiveMode, Pem, Secret};
use crate::time::UnixTime;

/// A program to run to its end.
///
/// Arguments and the values of variables are left out of its `Debug`: they may be secret.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Command {
    /// The program: a path, or a name to look for in `PATH`.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables on top of those of this process, in order; the last of a name counts.
    pub env: Vec<(String, String)>,
    /// Whether it has the standard input of this process, and with it the terminal; otherwise there is nothing to read.
    ///
    /// Standard error passes through to that of this process. Where the program is not interactive, its end is collected as
    /// well; see [`Finished::stderr`].
    pub is_interactive: bool,
}

impl Command {
    /// How much of standard output is collected, in bytes: a driver may stop listening after one byte more.
    pub const STDOUT: usize = 1 << 20;
    /// How much of the end of standard error is worth collecting, in bytes.
    pub const STDERR: usize = 4 << 10;
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("program", &self.program)
            .field("is_interactive", &self.is_interactive)
            .finish_non_exhaustive()
    }
}

/// A program that has run.
#[derive(Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "drivers make it; programs leave no more behind")]
pub struct Finished {
    /// How it ended.
    pub ending: Ending,
    /// What it wrote to standard output; credentials, if all is well.
    pub stdout: Secret,
    /// The end of what it wrote to standard error, if that was collected.
    pub stderr: Vec<u8>,
}

/// What it wrote is left out.
impl fmt::Debug for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Finished").field("ending", &self.ending).finish_non_exhaustive()
    }
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[expect(clippy::exhaustive_enums, reason = "programs end in no other way")]
pub enum Ending {
    /// By itself, with this code: 0 says that all is well.
    #[error("failed with exit code {0}")]
    Exited(i32),
    /// By a signal.
    #[error("was ended by signal {0}")]
    Signalled(i32),
}

impl From<ExitStatus> for Ending {
    #[cfg(unix)]
    fn from(status: ExitStatus) -> Self {
        use std::os::unix::process::ExitStatusExt as _;

        match (status.code(), status.signal()) {
            (None, Some(signal)) => Self::Signalled(signal),
            (code, _) => Self::Exited(code.unwrap_or(-1)),
        }
    }

    #[cfg(not(unix))]
    fn from(status: ExitStatus) -> Self {
        Self::Exited(status.code().unwrap_or(-1))
    }
}

/// Why a program could not be run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(clippy::exhaustive_enums, reason = "what a user can do about it is told apart, and no more")]
pub enum RunError {
    /// There is none of that name.
    #[error("no such program")]
    NotFound,
    /// The system does not allow it to be run.
    #[error("not a program that may be run")]
    NotExecutable,
    /// The system's words.
    #[error("{0}")]
    Failed(Box<str>),
}

impl From<io::Error> for RunError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound,
            io::ErrorKind::PermissionDenied => Self::NotExecutable,
            _ => Self::Failed(error.to_string().into()),
        }
    }
}

/// What a program fetched.
pub(super) struct Fetched {
    pub(super) authorization: Option<HeaderValue>,
    pub(super) identity: Option<Arc<Identity>>,
    pub(super) expiry: Option<UnixTime>,
}

/// The command of a configuration; `None` if it needs a terminal and there is none.
pub(super) fn command(config: &ExecConfig, has_terminal: bool) -> Option<Command> {
    let is_interactive = match config.interactive_mode {
        InteractiveMode::Never => false,
        InteractiveMode::IfAvailable => has_terminal,
        InteractiveMode::Always if has_terminal => true,
        InteractiveMode::Always => return None,
    };
    let mut env = config.env.clone();
    env.push((EXEC_INFO.to_owned(), exec_info(config, is_interactive).to_string()));
    Some(Command { program: config.command.clone(), args: config.args.clone(), env, is_interactive })
}

/// What the program is told in `KUBERNETES_EXEC_INFO`.
fn exec_info(config: &ExecConfig, is_interactive: bool) -> Value {
    let mut spec = Map::new();
    if let Some(cluster) = &config.cluster {
        spec.insert("cluster".into(), cluster_info(cluster));
    }
    spec.insert("interactive".into(), is_interactive.into());
    json!({ "kind": KIND, "apiVersion": config.api_version.as_str(), "spec": spec })
}

fn cluster_info(cluster: &ExecCluster) -> Value {
    let mut info = Map::from_iter([("server".to_owned(), Value::from(cluster.server.as_str()))]);
    let mut add = |key: &str, value: Value| info.insert(key.to_owned(), value);
    if let Some(name) = &cluster.tls_server_name {
        add("tls-server-name", name.as_str().into());
    }
    if cluster.insecure_skip_tls_verify {
        add("insecure-skip-tls-verify", true.into());
    }
    if let Some(ca) = &cluster.certificate_authority {
        add("certificate-authority-data", STANDARD.encode(ca.text.expose()).into());
    }
    if let Some(url) = &cluster.proxy_url {
        add("proxy-url", url.as_str().into());
    }
    if cluster.disable_compression {
        add("disable-compression", true.into());
    }
    if let Some(config) = &cluster.config {
        add("config", config.clone());
    }
    Value::Object(info)
}

/// What came of running the command.
pub(super) fn fetched(config: &ExecConfig, result: Result<Finished, RunError>) -> Result<Fetched, CredentialsError> {
    let problem = match result {
        // Whoever prints that much has been cut off, and may have ended in any way.
        Ok(Finished { stdout, .. }) if stdout.expose().len() > Command::STDOUT => {
            CredentialsProblem::TooLong(Command::STDOUT)
        }
        Ok(Finished { ending: Ending::Exited(0), stdout, .. }) => match credential(config, stdout.expose()) {
            Ok(fetched) => return Ok(fetched),
            Err(problem) => problem,
        },
        Ok(Finished { ending, stderr, .. }) => CredentialsProblem::Failed { ending, stderr: last_words(&stderr) },
        Err(RunError::NotFound) => {
            let hint = one_line(config.install_hint.as_deref().unwrap_or_default());
            CredentialsProblem::NotFound { hint: hint.into() }
        }
        Err(RunError::NotExecutable) => CredentialsProblem::NotExecutable,
        Err(RunError::Failed(words)) => CredentialsProblem::NotRun(words),
    };
    Err(failure(config, problem))
}

/// What is wrong with the program of a configuration.
pub(super) fn failure(config: &ExecConfig, problem: CredentialsProblem) -> CredentialsError {
    CredentialsError::new(config.origin.clone(), config.command.display().to_string(), problem)
}

/// The credential that a program printed.
fn credential(config: &ExecConfig, stdout: &[u8]) -> Result<Fetched, CredentialsProblem> {
    let printed = decode(stdout)?;
    let text = |field: &Option<String>| field.clone().filter(|text| !text.is_empty());
    if text(&printed.kind).as_deref() != Some(KIND) {
        return Err(CredentialsProblem::WrongKind);
    }
    let version = text(&printed.api_version).unwrap_or_default();
    if version != config.api_version.as_str() {
        return Err(wrong_version(config.api_version, &version));
    }
    let status = printed.status.ok_or(CredentialsProblem::NoStatus)?;
    let (token, certificate) = (text(&status.token), text(&status.client_certificate_data));
    let pem = |field: &str, text: String| {
        let origin = format!("{field} that {} printed", config.command.display()).into();
        Pem { origin, text: Secret::new(text) }
    };
    let identity = match (certificate, text(&status.client_key_data)) {
        (None, None) => None,
        (Some(certificate), Some(key)) => Some(Arc::new(Identity {
            certificate: pem("clientCertificateData", certificate),
            key: pem("clientKeyData", key),
        })),
        (Some(_), None) => return Err(CredentialsProblem::CertificateWithoutKey),
        (None, Some(_)) => return Err(CredentialsProblem::KeyWithoutCertificate),
    };
    let authorization = match token.as_ref().map(|token| Auth::bearer(token.as_bytes())) {
        None if identity.is_none() => return Err(CredentialsProblem::NoCredentials),
        None => None,
        Some(None) => return Err(CredentialsProblem::InvalidToken),
        Some(Some(auth)) => auth.authorization(),
    };
    let expiry = match &status.expiration_timestamp {
        None => None,
        Some(text) => Some(expiry::parse(text).ok_or(CredentialsProblem::InvalidExpiry)?),
    };
    Ok(Fetched { authorization, identity, expiry })
}

/// Reads JSON or YAML.
fn decode(stdout: &[u8]) -> Result<Printed, CredentialsProblem> {
    let undecodable = |field: &str, line| CredentialsProblem::Undecodable { field: field.into(), line };
    let text = str::from_utf8(stdout).map_err(|_| undecodable("", 0))?.trim_start_matches('\u{feff}').trim();
    if text.is_empty() {
        return Err(CredentialsProblem::Silent);
    }
    // Not all JSON is YAML: escapes, and tabs.
    if text.starts_with('{') {
        let mut json = serde_json::Deserializer::from_str(text);
        match serde_path_to_error::deserialize::<_, Printed>(&mut json) {
            Ok(printed) if json.end().is_ok() => return Ok(printed),
            Err(error) if error.inner().is_data() => {
                let line = error.inner().line() as u64;
                return Err(undecodable(&error.path().to_string(), line));
            }
            _ => {}
        }
    }
    let options = serde_saphyr::options! { duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins };
    serde_saphyr::from_str_with_options::<Printed>(text, options)
        .map_err(|error| undecodable("", error.location().map_or(0, |location| location.line())))
}

/// The version of an answer is shown only when it is one: anything else might be a secret in the wrong place.
fn wrong_version(expected: ExecVersion, found: &str) -> CredentialsProblem {
    let is_plain = |text: &str| text.len() < 32 && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_version = found.strip_prefix("client.authentication.k8s.io/").is_some_and(is_plain);
    CredentialsProblem::WrongVersion { expected, found: is_version.then(|| found.into()) }
}

/// The end of what a program wrote to standard error, on one line.
fn last_words(stderr: &[u8]) -> Box<str> {
    let text = String::from_utf8_lossy(stderr);
    let line = one_line(&text);
    let skipped = line.chars().count().saturating_sub(LAST_WORDS);
    line.chars().skip(skipped).collect::<String>().trim().into()
}

/// Text without control characters, and with single spaces.
fn one_line(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Printed {
    kind: Option<String>,
    api_version: Option<String>,
    status: Option<PrintedStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct PrintedStatus {
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
    expiration_timestamp: Option<String>,
}

const KIND: &str = "ExecCredential";
const EXEC_INFO: &str = "KUBERNETES_EXEC_INFO";

/// Characters of standard error that an error shows at the most.
const LAST_WORDS: usize = 1000;

#[cfg(test)]
#[path = "plugin_tests.rs"]
mod tests;
