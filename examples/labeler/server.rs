//! An API server in memory. It is tokio's, whatever the operator runs on.

use std::io;
use std::path::{Path, PathBuf};

use cloudcoil_apiserver::{ServerConfig, ServerHandle, serve};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::asynchronous::operator::{LABEL, SUFFIX};

/// The server, and the file with its kubeconfig.
pub(crate) struct Server {
    handle: ServerHandle,
    runtime: Runtime,
    file: PathBuf,
    is_temporary: bool,
}

impl Server {
    /// One whose kubeconfig goes to that file, or to a temporary one.
    pub(crate) fn start(kubeconfig: Option<&Path>) -> Result<Self, Box<dyn std::error::Error>> {
        let id = std::process::id();
        let temporary = || std::env::temp_dir().join(format!("labeler-{id}.yaml"));
        let file = kubeconfig.map_or_else(temporary, ToOwned::to_owned);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let config = ServerConfig { seed: u64::from(id), ..ServerConfig::default() };
        let handle = {
            let _entered = runtime.enter();
            serve(config, TcpListener::from_std(listener)?)?
        };
        std::fs::write(&file, handle.kubeconfig()).map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(Self { handle, runtime, file, is_temporary: kubeconfig.is_none() })
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.file
    }

    pub(crate) fn introduce(&self) {
        let (url, file) = (self.handle.url(), self.file.display());
        println!(
            "\
An API server in memory listens on {url}, and the operator runs against it.
Try it from another terminal:

  export KUBECONFIG={file}
  kubectl get configmaps --show-labels
  kubectl get configmap greeting{SUFFIX} -o yaml
  kubectl delete configmap greeting{SUFFIX}                  # it comes back
  kubectl patch configmap greeting -p '{{\"data\":{{\"hello\":\"you\"}}}}'
  kubectl create configmap mine --from-literal=a=b
  kubectl label configmap mine {LABEL}=true      # gets one too
  kubectl delete configmap mine                            # and so does its child

Ctrl-C ends it. Each pass of the operator shows here:
"
        );
    }

    /// Ends it. Its runtime is given up rather than waited for: it may not be, where another runs a future.
    pub(crate) fn stop(self) -> io::Result<()> {
        let Self { handle, runtime, file, is_temporary } = self;
        runtime.spawn(handle.shutdown());
        runtime.shutdown_background();
        if is_temporary {
            std::fs::remove_file(file)?;
        }
        Ok(())
    }
}
