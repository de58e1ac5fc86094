//! From a user of a kubeconfig to what is sent of it.

use std::path::Path;

use super::file::{Cluster, Exec, User};
use super::kubeconfig::Entry;
use super::resolve::{Draft, Layers, Wanted, What, either, exec_cluster, not_a_header, some};
use super::{Auth, ConfigError, ExecConfig, ExecVersion, Impersonation, InteractiveMode};

impl Draft {
    /// Tokens, passwords and certificates go before programs that fetch some.
    pub(super) fn add_user(
        &mut self,
        user: &Layers<'_, User>,
        cluster: &Layers<'_, Cluster>,
    ) -> Result<(), ConfigError> {
        let entry = user.entry.filter(|_| !says_who(&user.caller.content));
        if let Some(entry) = entry.filter(|entry| entry.content.auth_provider.is_some()) {
            let instead = ": Kubernetes dropped it; use an `exec` credential program";
            return Err(ConfigError::Unsupported { origin: entry.origin("user.auth-provider"), instead });
        }
        self.add_identity(user)?;
        self.add_header(entry.unwrap_or(user.caller))?;
        let Some((entry, exec)) = entry.and_then(|entry| Some((entry, entry.content.exec.as_ref()?))) else {
            return Ok(());
        };
        let described = describe(entry, exec)?;
        let has_certificate = user.any(|fields| either(&fields.client_certificate, &fields.client_certificate_data));
        if !says_who(&entry.content) && !has_certificate {
            let cluster = exec.provide_cluster_info.then(|| Box::new(exec_cluster(cluster, &self.config.tls)));
            self.config.auth = Auth::Exec(Box::new(ExecConfig { cluster, ..described }));
        }
        Ok(())
    }

    /// A token's file goes before a token, which then stands in while there is no file.
    fn add_header(&mut self, user: &Entry<User>) -> Result<(), ConfigError> {
        let fields = &user.content;
        let has_password = !fields.username.is_empty() || !fields.password.is_empty();
        if has_password && !fields.token.is_empty() {
            let field = if fields.username.is_empty() { "user.password" } else { "user.username" };
            let problem = "a token and a password exclude each other";
            return Err(ConfigError::Conflict { origin: user.origin(field), problem });
        }
        if let Some(username) = some(&fields.username) {
            self.config.auth = Auth::basic(username, &fields.password);
        }
        if let Some(token) = some(&fields.token) {
            self.config.auth = Auth::bearer(token.as_bytes()).ok_or_else(|| not_a_header(user.origin("user.token")))?;
        }
        if let Some(file) = some(&fields.token_file) {
            let (path, origin) = (user.path(file), user.origin("user.tokenFile"));
            self.wanted.push(Wanted { what: What::Token, path, origin, optional: !fields.token.is_empty() });
        }
        Ok(())
    }

    /// Impersonation is no secret, and is told over plain `http` too, as `kubectl` does.
    pub(super) fn add_impersonation(&mut self, user: &Layers<'_, User>) -> Result<(), ConfigError> {
        let caller = user.caller.content.impersonation();
        let entry = user.entry.map(|entry| entry.content.impersonation()).unwrap_or_default();
        let impersonation = Impersonation {
            user: caller.user.clone().or(entry.user),
            uid: caller.uid.clone().or(entry.uid),
            groups: if caller.groups.is_empty() { entry.groups } else { caller.groups.clone() },
            extra: entry.extra.into_iter().chain(caller.extra.clone()).collect(),
        };
        if impersonation.headers().is_none() {
            let (problem, by_caller) = match impersonation.user {
                None => ("as-uid, as-groups and as-user-extra need a user", !caller.is_empty()),
                Some(_) => {
                    let whole = Impersonation { user: caller.user.or_else(|| Some("somebody".to_owned())), ..caller };
                    ("a name or value with characters that cannot be sent", whole.headers().is_none())
                }
            };
            let origin = match user.entry {
                Some(entry) if !by_caller => entry.origin("user.as"),
                _ => user.caller.origin("impersonation"),
            };
            return Err(ConfigError::InvalidImpersonation { origin, problem });
        }
        self.config.impersonation = impersonation;
        Ok(())
    }
}

/// Whether there is anything that goes into the `Authorization` header.
fn says_who(user: &User) -> bool {
    [&user.token, &user.token_file, &user.username].iter().any(|text| !text.is_empty())
}

/// A credential program, without the cluster that it may want to be told about.
fn describe(user: &Entry<User>, exec: &Exec) -> Result<ExecConfig, ConfigError> {
    let missing = |field: &str| ConfigError::Missing { origin: user.origin(field) };
    let invalid = |field: &str, problem| ConfigError::InvalidExec { origin: user.origin(field), problem };
    let command = some(&exec.command).ok_or_else(|| missing("user.exec.command"))?;
    let version = some(&exec.api_version).ok_or_else(|| missing("user.exec.apiVersion"))?;
    let api_version = ExecVersion::parse(version).ok_or_else(|| invalid("user.exec.apiVersion", NO_VERSION))?;
    let env = exec.env.as_deref().unwrap_or_default();
    if let Some(index) = env.iter().position(|variable| variable.name.is_empty()) {
        return Err(missing(&format!("user.exec.env[{index}].name")));
    }
    let mode = some(&exec.interactive_mode).ok_or_else(|| missing("user.exec.interactiveMode"))?;
    let interactive_mode = InteractiveMode::parse(mode).ok_or_else(|| invalid("user.exec.interactiveMode", NO_MODE))?;
    Ok(ExecConfig {
        // A name alone is looked for in `PATH`.
        command: match command.contains(std::path::is_separator).then(|| user.path(command)) {
            Some(path) if path.parent().is_some_and(|folder| folder.as_os_str().is_empty()) => {
                Path::new(".").join(path)
            }
            Some(path) => path,
            None => command.into(),
        },
        args: exec.args.clone().unwrap_or_default(),
        env: env.iter().map(|variable| (variable.name.clone(), variable.value.clone())).collect(),
        api_version,
        cluster: None,
        interactive_mode,
        install_hint: some(&exec.install_hint).map(printable),
        origin: user.origin("user.exec"),
    })
}

/// Text that does nothing to a terminal: what controls one is spelled out.
fn printable(text: &str) -> String {
    let mut printable = String::new();
    for char in text.chars() {
        let is_hidden = matches!(char, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
        match char {
            '\t'..='\r' => printable.push(char),
            _ if char.is_control() || is_hidden => printable.push_str(&format!("U+{:04X}", u32::from(char))),
            _ => printable.push(char),
        }
    }
    printable
}

const NO_VERSION: &str = "neither client.authentication.k8s.io/v1 nor client.authentication.k8s.io/v1beta1";
const NO_MODE: &str = "none of Never, IfAvailable and Always";

#[cfg(test)]
#[path = "user_tests.rs"]
mod tests;
