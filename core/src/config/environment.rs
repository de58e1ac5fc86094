//! What the process's environment has to say.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

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
    /// `POD_NAMESPACE`: the namespace of the pod, in place of that of its service account.
    pub pod_namespace: Option<String>,
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
            pod_namespace: text("POD_NAMESPACE"),
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
            .field("pod_namespace", &self.pod_namespace)
            .field("no_proxy", &self.no_proxy)
            .finish_non_exhaustive()
    }
}
