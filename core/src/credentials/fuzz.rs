//! The body of the fuzz target for what credential programs print.

use super::plugin;
use super::{CredentialsProblem, Ending, Finished};
use crate::config::{Auth, Config, ConfigInput, ConfigLoad, ConfigOutput, ConfigSource, Environment, Secret};
use crate::machine::{Machine as _, Outbox};
use crate::time::Now;

/// Reads what a program printed. Errors must not hold any of it, and credentials must be there when it is none.
///
/// # Panics
/// If an error shows what was printed, or there is neither an error nor a credential.
pub fn exec_output(data: &[u8]) {
    let Auth::Exec(config) = config().auth else { unreachable!("the configuration names a program") };
    let finished = Finished { ending: Ending::Exited(0), stdout: Secret::new(data), stderr: Vec::new() };
    match plugin::fetched(&config, Ok(finished)) {
        Ok(fetched) => assert!(fetched.authorization.is_some() || fetched.identity.is_some()),
        Err(error) => {
            // The version is shown on purpose, if it looks like one.
            let shown = match error.problem {
                CredentialsProblem::WrongVersion { .. } => String::new(),
                problem => problem.to_string(),
            };
            assert!(shown.len() < 400, "{shown}");
            for word in str::from_utf8(data).unwrap_or_default().split(|c: char| !c.is_ascii_digit()) {
                assert!(word.len() < 6 || !shown.contains(word), "{shown}");
            }
        }
    }
}

/// A configuration whose user runs `login`.
pub(super) fn config() -> Config {
    const KUBECONFIG: &str = "{current-context: c, clusters: [{name: p, cluster: {server: 'https://a'}}],
        contexts: [{name: c, context: {cluster: p, user: u}}],
        users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: login,
            interactiveMode: IfAvailable}}}]}";
    let source = ConfigSource::from_kubeconfig("/k");
    let mut load = ConfigLoad::new(source, Environment::default());
    let (mut out, mut input) = (Outbox::new(), None);
    loop {
        let _ = load.step(Now::default(), input.take(), &mut out);
        match out.pop() {
            Some(ConfigOutput::Read { ticket, .. }) => {
                input = Some(ConfigInput::Read { ticket, result: Ok(KUBECONFIG.as_bytes().to_vec()) });
            }
            Some(ConfigOutput::Loaded(result)) => return *result.expect("the kubeconfig above is a good one"),
            Some(ConfigOutput::Warn(warning)) => unreachable!("{warning}"),
            None => unreachable!("a load goes on until it has loaded"),
        }
    }
}
