//! The body of the fuzz target `kubeconfig`.

use super::gather::Gather;
use super::resolve::Draft;
use super::{Config, ConfigError, ConfigSource, Environment, Kubeconfig, Secret};

/// Reads bytes as a kubeconfig and resolves each context: nothing panics, no secret is shown, and what is printed is read
/// as the same again.
pub fn kubeconfig(data: &[u8]) {
    let parsed = Kubeconfig::parse("/k/cfg".as_ref(), data);
    let Ok(parsed) = parsed.inspect_err(|error| drop(format!("{error} {error:?}"))) else { return };
    for printed in [parsed.to_json(), parsed.to_yaml()] {
        let again = Kubeconfig::parse("/k/cfg".as_ref(), printed.as_bytes()).map(|again| again.to_json());
        assert_eq!(again, Ok(parsed.to_json()), "{printed}");
    }
    shows_no_secret(parsed);
}

/// With each secret of a kubeconfig replaced by one that stands nowhere else, looks for it in all that is shown. Says how
/// many of the contexts can be used.
pub(super) fn shows_no_secret(mut kubeconfig: Kubeconfig) -> usize {
    kubeconfig.plant(SENTINEL);
    let mut usable = 0;
    let contexts: Vec<_> = kubeconfig.contexts().map(ToOwned::to_owned).collect();
    for context in contexts.into_iter().map(Some).chain([None]) {
        let source = ConfigSource { path: Some("/k/cfg".into()), context, ..ConfigSource::default() };
        let shown = match resolve(&kubeconfig, &source) {
            Ok(config) => {
                usable += 1;
                format!("{config:?} {:?} {:?}", config.auth, config.tls)
            }
            Err(error) => format!("{error} {error:?}"),
        };
        assert!(!shown.contains(SENTINEL), "{shown}");
    }
    let shown = format!("{kubeconfig:?}");
    assert!(!shown.contains(SENTINEL), "{shown}");
    kubeconfig.redact();
    kubeconfig.forget_what_is_shown();
    let shown = kubeconfig.to_json();
    assert!(!shown.contains(SENTINEL), "{shown}");
    usable
}

/// The configuration, when each file that it names holds a secret.
fn resolve(kubeconfig: &Kubeconfig, source: &ConfigSource) -> Result<Config, ConfigError> {
    let environment = Environment::default();
    let mut gather = Gather::new(source, &environment);
    gather.merged = kubeconfig.clone();
    let mut draft = Draft::new(&gather, source, &environment)?;
    while let Some(wanted) = draft.wanted.pop() {
        draft.supply(wanted, SENTINEL.into())?;
    }
    let warnings: String = draft.warnings.iter().map(|warning| format!("{warning} {warning:?}")).collect();
    assert!(!warnings.contains(SENTINEL), "{warnings}");
    Ok(draft.finish())
}

impl Kubeconfig {
    /// Replaces each secret that there is.
    fn plant(&mut self, secret: &str) {
        for entry in self.users.values_mut() {
            let user = &mut entry.content;
            for text in [&mut user.token, &mut user.password] {
                if !text.is_empty() {
                    secret.clone_into(text);
                }
            }
            for data in [&mut user.client_certificate_data, &mut user.client_key_data].into_iter().flatten() {
                *data = Secret::new(secret);
            }
            if let Some(exec) = &mut user.exec {
                exec.args.iter_mut().flatten().for_each(|argument| secret.clone_into(argument));
                exec.env.iter_mut().flatten().for_each(|variable| secret.clone_into(&mut variable.value));
            }
            user.extensions.0.values_mut().for_each(|extension| *extension = secret.into());
        }
        for entry in self.clusters.values_mut() {
            let cluster = &mut entry.content;
            cluster.extensions.0.values_mut().for_each(|extension| *extension = secret.into());
            if !cluster.proxy_url.is_empty() {
                // The scheme stays, so that those which are refused are among them.
                let scheme = cluster.proxy_url.split(':').next().unwrap_or_default();
                cluster.proxy_url = format!("{scheme}://{secret}:{secret}@p:1");
            }
        }
        self.extensions.0.values_mut().for_each(|extension| *extension = secret.into());
    }

    /// Empties the fields that `kubectl` shows even when it hides secrets.
    fn forget_what_is_shown(&mut self) {
        for entry in self.users.values_mut() {
            entry.content.exec = None;
            entry.content.extensions.0.clear();
        }
        for entry in self.clusters.values_mut() {
            entry.content.proxy_url.clear();
            entry.content.extensions.0.clear();
        }
        self.extensions.0.clear();
    }
}

const SENTINEL: &str = "5eCrEt-that-is-nowhere-else";
