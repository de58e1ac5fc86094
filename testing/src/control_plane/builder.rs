use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use super::ControlPlane;
use super::apiserver::{self, ADMIN, ApiServer, MASTERS, Token};
use super::certificates::Authority;
use super::etcd::Etcd;
use super::process::{Folder, Server};
use super::{http, ports};
use crate::Error;

/// What a control plane is to be like, made by [`ControlPlane::builder`].
#[derive(Default)]
#[must_use]
pub struct ControlPlaneBuilder {
    assets: Option<PathBuf>,
    apiserver_flags: BTreeMap<String, String>,
    etcd_flags: BTreeMap<String, String>,
    tokens: Vec<Token>,
    ready_within: Option<Duration>,
}

impl ControlPlaneBuilder {
    /// Takes the binaries from this folder instead of the one that `KUBEBUILDER_ASSETS` names.
    pub fn assets(mut self, folder: impl Into<PathBuf>) -> Self {
        self.assets = Some(folder.into());
        self
    }

    /// Passes `--name=value` to kube-apiserver, in place of what the launcher passes for that flag, if anything.
    ///
    /// Give a list as one value with commas, as in `("feature-gates", "A=true,B=false")`.
    pub fn apiserver_flag(mut self, name: &str, value: impl Into<String>) -> Self {
        self.apiserver_flags.insert(flag_name(name), value.into());
        self
    }

    /// Passes `--name=value` to etcd, in place of what the launcher passes for that flag, if anything.
    pub fn etcd_flag(mut self, name: &str, value: impl Into<String>) -> Self {
        self.etcd_flags.insert(flag_name(name), value.into());
        self
    }

    /// How requests are authorized, `RBAC` unless said otherwise: a list of
    /// [modes](https://kubernetes.io/docs/reference/access-authn-authz/authorization/#authorization-modules)
    /// separated by commas.
    pub fn authorization_mode(self, modes: &str) -> Self {
        self.apiserver_flag("authorization-mode", modes)
    }

    /// Lets `token` stand for `user` in `groups`. No group's name may hold a comma.
    pub fn token(mut self, token: &str, user: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().map(|&group| group.to_owned()).collect();
        self.tokens.push(Token { token: token.to_owned(), user: user.to_owned(), groups });
        self
    }

    /// How long each process may take to get ready, on every start: two minutes unless said otherwise.
    pub fn ready_within(mut self, patience: Duration) -> Self {
        self.ready_within = Some(patience);
        self
    }

    /// Starts the control plane and waits until it serves requests.
    ///
    /// # Errors
    /// When a binary is missing, a process ends or is not ready in time (the error holds the end of its log), or a
    /// file cannot be written.
    pub fn start(self) -> Result<ControlPlane, Error> {
        let assets = self.find_assets()?;
        let mut attempt = 1;
        loop {
            match self.launch(&assets) {
                // Somebody else may listen on a port by the time that the process does.
                Err(error) if error.is_port_taken() && attempt < ATTEMPTS => attempt += 1,
                result => return result,
            }
        }
    }

    /// As [`ControlPlane::start_or_skip`], with what was set here.
    ///
    /// # Panics
    /// When the control plane does not start, or may not be missing.
    #[must_use]
    pub fn start_or_skip(self, test: &str) -> Option<ControlPlane> {
        match self.start() {
            Ok(plane) => Some(plane),
            Err(Error::AssetsUnset) if env::var_os(REQUIRE).is_none_or(|value| value.is_empty() || value == "0") => {
                // Not eprintln!, which the test harness keeps to itself as long as a test passes.
                let _ = writeln!(std::io::stderr(), "NOT RUN: {test}: {}", Error::AssetsUnset);
                None
            }
            Err(error) => panic!("{test} needs a control plane: {error}"),
        }
    }

    fn find_assets(&self) -> Result<PathBuf, Error> {
        let named = || env::var_os(ASSETS).filter(|folder| !folder.is_empty()).map(PathBuf::from);
        let folder = self.assets.clone().or_else(named).ok_or(Error::AssetsUnset)?;
        match BINARIES.into_iter().find(|name| !folder.join(name).is_file()) {
            Some(name) => Err(Error::BinaryMissing { name, folder }),
            None => std::path::absolute(&folder).map_err(|error| Error::io("find", &folder, error)),
        }
    }

    fn launch(&self, assets: &Path) -> Result<ControlPlane, Error> {
        let folder = Folder::new()?;
        let authority = Authority::new(apiserver::SERVED_NAMES)?;
        let agent = http::agent(&authority.pem())?;
        let name = folder.path().file_name().expect("it was made with a name").to_string_lossy().into_owned();
        let etcd = Etcd::new(agent.clone(), ports::free()?, name);
        let apiserver = ApiServer::new(agent, ports::free()?)?;

        let data = folder.path().join("etcd").display().to_string();
        let etcd_flags = merged(etcd.flags(&data), &self.etcd_flags);
        let flags = apiserver.flags(&folder, &authority, etcd.url(), &self.tokens)?;
        let apiserver_flags = merged(flags, &self.apiserver_flags);
        let server = |name, flags| {
            Mutex::new(Server::new(name, assets.join(name), flags, folder.path().join(format!("{name}.log"))))
        };

        let admin = authority.client(ADMIN, &[MASTERS])?;
        let kubeconfig = apiserver::kubeconfig(apiserver.url(), &authority.pem(), &admin.kubeconfig_user());
        let plane = ControlPlane {
            etcd_server: server(ETCD, etcd_flags),
            apiserver_server: server(APISERVER, apiserver_flags),
            kubeconfig_path: folder.write("kubeconfig", &kubeconfig)?,
            kubectl: assets.join(KUBECTL),
            ca_pem: authority.pem(),
            ready_within: self.ready_within.unwrap_or(READY_WITHIN),
            kubeconfig,
            etcd,
            apiserver,
            authority,
            folder,
        };
        plane.etcd().start()?;
        plane.apiserver().start()?;
        Ok(plane)
    }
}

fn merged(mut flags: BTreeMap<String, String>, over: &BTreeMap<String, String>) -> Vec<OsString> {
    flags.extend(over.iter().map(|(name, value)| (name.clone(), value.clone())));
    flags.into_iter().map(|(name, value)| format!("--{name}={value}").into()).collect()
}

fn flag_name(name: &str) -> String {
    name.trim_start_matches('-').to_owned()
}

const ASSETS: &str = "KUBEBUILDER_ASSETS";
const REQUIRE: &str = "CLOUDCOIL_REQUIRE_CONTROL_PLANE";
const ETCD: &str = "etcd";
const APISERVER: &str = "kube-apiserver";
const KUBECTL: &str = "kubectl";
const BINARIES: [&str; 3] = [ETCD, APISERVER, KUBECTL];
const READY_WITHIN: Duration = Duration::from_secs(120);
const ATTEMPTS: u32 = 5;
