//! The cluster that a command talks to.

use std::time::Duration;

use cloudcoil_core::config::{ConfigError, ConfigSource, Impersonation, Overrides, ViewOptions};
use cloudcoil_core::{ApiResource, Error, Unstructured};

use super::world::{Api, Client, World, dual};
use crate::args::{Coil, Global, Structure};
use crate::durations::Span;
use crate::fault::{Fault, one_line};
use crate::out::note;

/// The configuration that the flags ask for, and the client made of it.
pub(crate) struct Session {
    world: World,
    source: ConfigSource,
    namespace: Option<String>,
    request_timeout: Option<Duration>,
    timeout: Option<Span>,
    client: Option<Client>,
}

#[dual]
impl Session {
    pub(crate) fn new(coil: &Coil, world: World) -> Self {
        let source = source(&coil.global);
        Self {
            world,
            source,
            namespace: coil.global.namespace.clone().filter(|namespace| !namespace.is_empty()),
            request_timeout: coil.request_timeout(),
            timeout: coil.global.timeout,
            client: None,
        }
    }

    /// Where the command runs.
    pub(crate) const fn world(&self) -> World {
        self.world
    }

    /// The configuration that is in use, as a kubeconfig with nothing else in it.
    pub(crate) async fn configuration(&self, raw: bool, how: Structure) -> Result<String, Fault> {
        let options = ViewOptions { minify: true, flatten: true, raw };
        let kubeconfig = self.world.view_config(self.source.clone(), options).await?;
        let mut text = match how {
            Structure::Json => kubeconfig.to_json(),
            Structure::Yaml => kubeconfig.to_yaml(),
        };
        if !text.ends_with('\n') {
            text.push('\n');
        }
        Ok(text)
    }

    /// The client; the configuration is loaded when it is first asked for.
    pub(crate) async fn client(&mut self) -> Result<Client, Fault> {
        if let Some(client) = &self.client {
            return Ok(client.clone());
        }
        let config = self.world.load_config(self.source.clone()).await;
        let config = config.map_err(|error| flag_at_fault(&error, &self.source).unwrap_or_else(|| error.into()))?;
        let client = self
            .world
            .client(&config)?
            .with_timeout(self.request_timeout)
            .with_warning_handler(|warning| note(&format!("Warning: {}", one_line(&warning.text))));
        self.client = Some(client.clone());
        Ok(client)
    }

    /// The namespace that a flag names.
    pub(crate) fn chosen_namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// How long to wait, where a command waits.
    pub(crate) fn patience(&self, default: Span) -> Duration {
        self.timeout.unwrap_or(default).patience()
    }

    /// The one type that a word such as `po` stands for.
    pub(crate) async fn kind(&mut self, word: &str) -> Result<ApiResource, Fault> {
        Ok(self.client().await?.discovery().find(word).await?)
    }

    /// The types that a word stands for; several for a category such as `all`.
    pub(crate) async fn kinds(&mut self, word: &str) -> Result<Vec<ApiResource>, Fault> {
        Ok(self.client().await?.discovery().resolve(word).await?)
    }

    /// The objects of a type, in the namespace of the flags and context, or in all.
    pub(crate) async fn api(&mut self, kind: &ApiResource, all_namespaces: bool) -> Result<Api<Unstructured>, Fault> {
        let api = self.client().await?.api_for(kind.resource_type.clone());
        Ok(if all_namespaces { api.all_namespaces() } else { api })
    }
}

/// Which configuration the flags ask for.
fn source(flags: &Global) -> ConfigSource {
    let mut impersonation = Impersonation::default();
    impersonation.user.clone_from(&flags.impersonate);
    impersonation.groups.clone_from(&flags.impersonate_groups);
    impersonation.uid.clone_from(&flags.impersonate_uid);
    let overrides = Overrides {
        cluster: flags.cluster.clone(),
        user: flags.user.clone(),
        namespace: flags.namespace.clone().filter(|namespace| !namespace.is_empty()),
        server: flags.server.clone(),
        token: flags.token.clone(),
        impersonation,
        ..Overrides::default()
    };
    ConfigSource { path: flags.kubeconfig.clone(), context: flags.context.clone(), overrides }
}

/// Says of a flag what the library says of its caller.
fn flag_at_fault(error: &Error, source: &ConfigSource) -> Option<Fault> {
    let Error::Config(error) = error else { return None };
    let ConfigError::InvalidImpersonation { origin, .. } = &**error else { return None };
    let Impersonation { user, uid, groups, .. } = &source.overrides.impersonation;
    let flags = [("--as", user.is_some()), ("--as-group", !groups.is_empty()), ("--as-uid", uid.is_some())];
    let flags: Vec<&str> = flags.into_iter().filter_map(|(flag, is_set)| is_set.then_some(flag)).collect();
    if !origin.ends_with("as the caller gives it") {
        return None;
    }
    let mut sent = source.overrides.impersonation.clone();
    sent.user.get_or_insert_with(|| "somebody".to_owned());
    Some(Fault::misuse(match sent.headers() {
        Some(_) => format!("{} needs a user: say who with --as", flags.join(" and ")),
        None => format!("{}: a name or value with characters that cannot be sent", flags.join(" and ")),
    }))
}
