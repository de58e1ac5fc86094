use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a control plane could not be started or steered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// `KUBEBUILDER_ASSETS` is unset or empty and no folder was given.
    #[error(
        "KUBEBUILDER_ASSETS is not set: let it name a folder with etcd, kube-apiserver and kubectl \
         (`setup-envtest use -p path` fetches them and prints it)"
    )]
    AssetsUnset,
    /// The folder of binaries lacks one of them.
    #[error("no {name} in {}, where KUBEBUILDER_ASSETS or the builder says that the binaries are", folder.display())]
    BinaryMissing {
        /// The binary that is not there.
        name: &'static str,
        /// The folder that was looked into.
        folder: PathBuf,
    },
    /// The operating system refused something.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file, folder or program at fault.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A certificate or key could not be made.
    #[error("cannot make a certificate for {subject}: {reason}")]
    Certificate {
        /// Whose certificate it was to be.
        subject: String,
        /// What went wrong.
        reason: String,
    },
    /// A value given to the builder cannot be passed on to the API server.
    #[error("{what} {value:?} cannot be used: {reason}")]
    Misuse {
        /// What kind of value it is.
        what: &'static str,
        /// The value at fault; never a secret.
        value: String,
        /// Why it cannot be used.
        reason: &'static str,
    },
    /// A process ended before it was ready.
    #[error("{component} ended before it was ready ({status}); the end of its log:\n{log}")]
    Exited {
        /// `etcd` or `kube-apiserver`.
        component: &'static str,
        /// Its exit status.
        status: String,
        /// The last lines it logged.
        log: String,
    },
    /// A process did not become ready in time.
    #[error("{component} was not ready after {} s: {last}; the end of its log:\n{log}", waited.as_secs())]
    NotReady {
        /// `etcd` or `kube-apiserver`.
        component: &'static str,
        /// How long it was given.
        waited: Duration,
        /// What the last probe met.
        last: String,
        /// The last lines it logged.
        log: String,
    },
    /// The process is not running, so it can be neither paused nor resumed.
    #[error("{component} is not running")]
    NotRunning {
        /// `etcd` or `kube-apiserver`.
        component: &'static str,
    },
    /// etcd did not do what it was asked.
    #[error("etcd at {url} did not answer as it should: {reason}")]
    Etcd {
        /// The address of the call.
        url: String,
        /// What it said instead.
        reason: String,
    },
}

impl Error {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }

    /// Whether a process ended because another one took its port in between.
    pub(crate) fn is_port_taken(&self) -> bool {
        matches!(self, Self::Exited { log, .. } if log.contains("address already in use"))
    }
}
