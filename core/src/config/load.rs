//! Finding the configuration, file by file.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use super::resolve::{Draft, Wanted, What};
use super::{Config, ConfigError, ConfigWarning, Kubeconfig, ReadError};
use crate::machine::{Deadline, Machine, Outbox, Ticket, Tickets};
use crate::time::{Now, Time};

/// The variables of the process's environment that matter.
///
/// Which proxies there are is left out of its `Debug`: their addresses may hold passwords.
#[derive(Clone, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made with struct update syntax")]
pub struct Environment {
    /// `KUBECONFIG`: a list of files, separated as in `PATH`.
    pub kubeconfig: Option<String>,
    /// `HOME`, or what stands for it: `.kube/config` is looked for there.
    pub home: Option<PathBuf>,
    /// `KUBERNETES_SERVICE_HOST`.
    pub service_host: Option<String>,
    /// `KUBERNETES_SERVICE_PORT`.
    pub service_port: Option<String>,
    /// `HTTPS_PROXY`, else `https_proxy`: the proxy for servers with `https`.
    pub https_proxy: Option<String>,
    /// `HTTP_PROXY`, else `http_proxy`: the proxy for servers with `http`, and never for others.
    pub http_proxy: Option<String>,
    /// `NO_PROXY`, else `no_proxy`: names, domains, addresses and networks that are reached without a proxy.
    pub no_proxy: Option<String>,
}

impl Environment {
    /// The environment in which variables have those values; `variable` is asked for each by name.
    ///
    /// ```
    /// use cloudcoil_core::config::Environment;
    ///
    /// let environment = Environment::from_variables(|name| (name == "https_proxy").then(|| "http://px:3128".into()));
    /// assert_eq!(environment.https_proxy.as_deref(), Some("http://px:3128"));
    /// ```
    pub fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let text = |name: &str| set(name).map(|value| value.to_string_lossy().into_owned());
        Self {
            kubeconfig: text("KUBECONFIG"),
            home: set("HOME").or_else(|| set("USERPROFILE")).map(PathBuf::from),
            service_host: text("KUBERNETES_SERVICE_HOST"),
            service_port: text("KUBERNETES_SERVICE_PORT"),
            https_proxy: text("HTTPS_PROXY").or_else(|| text("https_proxy")),
            http_proxy: text("HTTP_PROXY").or_else(|| text("http_proxy")),
            no_proxy: text("NO_PROXY").or_else(|| text("no_proxy")),
        }
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("kubeconfig", &self.kubeconfig)
            .field("home", &self.home)
            .field("service_host", &self.service_host)
            .field("service_port", &self.service_port)
            .field("no_proxy", &self.no_proxy)
            .finish_non_exhaustive()
    }
}

/// What is asked for, before the environment has a say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made with struct update syntax")]
pub struct ConfigSource {
    /// This file and no other; it must exist.
    pub path: Option<PathBuf>,
    /// This context, in place of the current one.
    pub context: Option<String>,
}

/// Loads a [`Config`] from the first source that has one: the file asked for, the files in `KUBECONFIG`,
/// `~/.kube/config`, the pod's service account.
///
/// `KUBECONFIG`, when it is set, stands in for `~/.kube/config`, even if none of its files exists. Files that do not exist
/// are passed over; one that cannot be read or decoded is an error. Ends with one [`ConfigOutput::Loaded`].
#[derive(Clone)]
pub struct ConfigLoad {
    source: ConfigSource,
    environment: Environment,
    tickets: Tickets,
    state: State,
}

#[derive(Clone)]
enum State {
    Starting,
    ReadingKubeconfig {
        ticket: Ticket,
        path: PathBuf,
        rest: VecDeque<PathBuf>,
        missing: Vec<PathBuf>,
        merged: Kubeconfig,
    },
    ReadingNamed {
        ticket: Ticket,
        wanted: Wanted,
        draft: Box<Draft>,
    },
    Ended,
}

/// What a [`ConfigLoad`] hears.
#[derive(Clone)]
#[expect(clippy::exhaustive_enums, reason = "this is all that it hears")]
pub enum ConfigInput {
    /// A file was read, or could not be.
    Read {
        /// The ticket it was asked for with.
        ticket: Ticket,
        /// The content.
        result: Result<Vec<u8>, ReadError>,
    },
}

/// What a [`ConfigLoad`] says.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must do all of these")]
pub enum ConfigOutput {
    /// Read a file whole; the answer is [`ConfigInput::Read`].
    Read {
        /// Names the answer.
        ticket: Ticket,
        /// The file.
        path: PathBuf,
    },
    /// Tell the user.
    Warn(ConfigWarning),
    /// The end.
    Loaded(Result<Box<Config>, ConfigError>),
}

impl ConfigLoad {
    /// A load that has not begun.
    pub const fn new(source: ConfigSource, environment: Environment) -> Self {
        Self { source, environment, tickets: Tickets::new(0), state: State::Starting }
    }

    /// The kubeconfig files to look at, first to last.
    fn candidates(&self) -> VecDeque<PathBuf> {
        if let Some(path) = &self.source.path {
            return VecDeque::from([path.clone()]);
        }
        match self.environment.kubeconfig.as_deref().filter(|list| !list.is_empty()) {
            Some(list) => {
                let mut seen = BTreeSet::new();
                let named = list.split(LIST_SEPARATOR).filter(|path| !path.is_empty()).map(PathBuf::from);
                named.filter(|path| seen.insert(path.clone())).collect()
            }
            None => {
                let home = self.environment.home.iter().filter(|home| !home.as_os_str().is_empty());
                home.map(|home| home.join(".kube").join("config")).collect()
            }
        }
    }

    fn read_kubeconfig(
        &mut self,
        mut rest: VecDeque<PathBuf>,
        missing: Vec<PathBuf>,
        merged: Kubeconfig,
        out: &mut Outbox<ConfigOutput>,
    ) {
        let Some(path) = rest.pop_front() else {
            return self.resolve(missing, &merged, out);
        };
        let ticket = self.tickets.issue();
        out.push(ConfigOutput::Read { ticket, path: path.clone() });
        self.state = State::ReadingKubeconfig { ticket, path, rest, missing, merged };
    }

    fn resolve(&mut self, missing: Vec<PathBuf>, merged: &Kubeconfig, out: &mut Outbox<ConfigOutput>) {
        if merged.files().is_empty() && self.environment.kubeconfig.as_deref().is_some_and(|list| !list.is_empty()) {
            out.push(ConfigOutput::Warn(ConfigWarning::NoFiles(missing.clone())));
        }
        let (host, port) = (&self.environment.service_host, &self.environment.service_port);
        let draft = match (host.as_deref(), port.as_deref()) {
            _ if self.source.path.is_some() || !merged.is_empty() => merged.draft(self.source.context.as_deref()),
            (Some(host), Some(port)) if !host.is_empty() && !port.is_empty() => Draft::in_cluster(host, port),
            _ => Err(ConfigError::NotFound { tried: [missing, merged.files().to_vec()].concat() }),
        };
        match draft {
            Ok(mut draft) => {
                if let Err(error) = draft.add_proxy(&self.environment) {
                    return self.end(Err(error), out);
                }
                out.extend(draft.warnings.drain(..).map(ConfigOutput::Warn));
                self.read_named(Box::new(draft), out);
            }
            Err(error) => self.end(Err(error), out),
        }
    }

    fn read_named(&mut self, mut draft: Box<Draft>, out: &mut Outbox<ConfigOutput>) {
        let Some(wanted) = draft.wanted.pop() else {
            return self.end(Ok(Box::new(draft.finish())), out);
        };
        let ticket = self.tickets.issue();
        out.push(ConfigOutput::Read { ticket, path: wanted.path.clone() });
        self.state = State::ReadingNamed { ticket, wanted, draft };
    }

    fn end(&mut self, result: Result<Box<Config>, ConfigError>, out: &mut Outbox<ConfigOutput>) {
        self.state = State::Ended;
        out.push(ConfigOutput::Loaded(result));
    }

    fn kubeconfig_read(&mut self, result: Result<Vec<u8>, ReadError>, out: &mut Outbox<ConfigOutput>) {
        let State::ReadingKubeconfig { path, rest, mut missing, merged, .. } =
            std::mem::replace(&mut self.state, State::Ended)
        else {
            return;
        };
        let content = match result {
            Ok(bytes) => Kubeconfig::parse(&path, &bytes),
            Err(ReadError::NotFound) if self.source.path.is_none() => {
                missing.push(path);
                return self.read_kubeconfig(rest, missing, merged, out);
            }
            Err(error) => Err(ConfigError::Unreadable { path, origin: self.naming().into(), error }),
        };
        match content {
            Ok(file) => self.read_kubeconfig(rest, missing, merged.merge(file), out),
            Err(error) => self.end(Err(error), out),
        }
    }

    fn named_read(&mut self, result: Result<Vec<u8>, ReadError>, out: &mut Outbox<ConfigOutput>) {
        let State::ReadingNamed { wanted, mut draft, .. } = std::mem::replace(&mut self.state, State::Ended) else {
            return;
        };
        let supplied = match result {
            Ok(bytes) => draft.supply(wanted, bytes),
            Err(error) if wanted.optional => {
                if wanted.what == What::Ca {
                    out.push(ConfigOutput::Warn(ConfigWarning::NoCa { path: wanted.path, error }));
                }
                Ok(())
            }
            Err(error) => Err(ConfigError::Unreadable { path: wanted.path, origin: wanted.origin, error }),
        };
        match supplied {
            Ok(()) => self.read_named(draft, out),
            Err(error) => self.end(Err(error), out),
        }
    }

    /// Who names the kubeconfig files.
    const fn naming(&self) -> &'static str {
        match (&self.source.path, &self.environment.kubeconfig) {
            (Some(_), _) => "the caller",
            (None, Some(_)) => "KUBECONFIG",
            (None, None) => "the home directory",
        }
    }
}

impl Machine for ConfigLoad {
    type Input = ConfigInput;
    type Output = ConfigOutput;

    fn on_input(&mut self, _: Now, input: ConfigInput, out: &mut Outbox<ConfigOutput>) {
        let ConfigInput::Read { ticket: answered, result } = input;
        match &self.state {
            State::ReadingKubeconfig { ticket, .. } if *ticket == answered => self.kubeconfig_read(result, out),
            State::ReadingNamed { ticket, .. } if *ticket == answered => self.named_read(result, out),
            _ => {}
        }
    }

    fn on_timer(&mut self, _: Now, out: &mut Outbox<ConfigOutput>) {
        if matches!(self.state, State::Starting) {
            let candidates = self.candidates();
            self.read_kubeconfig(candidates, Vec::new(), Kubeconfig::default(), out);
        }
    }

    fn deadline(&self) -> Option<Deadline> {
        matches!(self.state, State::Starting).then_some(Deadline::new(Time::ZERO, "start"))
    }
}

const LIST_SEPARATOR: char = if cfg!(windows) { ';' } else { ':' };

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
