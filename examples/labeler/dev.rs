//! The operator against an API server in memory.

use std::error::Error;
use std::path::{Path, PathBuf};

use cloudcoil_apiserver::{ServerConfig, ServerHandle, serve};
use cloudcoil_tokio::{prelude::*, shutdown_signal};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::net::TcpListener;

use crate::operator::{LABEL, SUFFIX, controller};

pub(crate) async fn run(kubeconfig: Option<PathBuf>) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let server = serve(ServerConfig { seed: u64::from(std::process::id()), ..ServerConfig::default() }, listener)?;
    let temporary = kubeconfig.is_none();
    let file = kubeconfig.unwrap_or_else(|| std::env::temp_dir().join(format!("labeler-{}.yaml", std::process::id())));
    tokio::fs::write(&file, server.kubeconfig()).await.map_err(|error| format!("{}: {error}", file.display()))?;
    let client = Client::try_from_kubeconfig(&file).await?;
    introduce(&server, &file);
    create_a_few(&client).await?;
    let ended = controller().run(client, shutdown_signal()).await;
    server.shutdown().await;
    if temporary {
        tokio::fs::remove_file(&file).await?;
    }
    Ok(ended?)
}

fn introduce(server: &ServerHandle, file: &Path) {
    let (url, file) = (server.url(), file.display());
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

async fn create_a_few(client: &Client) -> Result<(), Box<dyn Error>> {
    let maps = client.api::<ConfigMap>();
    for (name, key, value) in [("greeting", "hello", "world"), ("colors", "sky", "blue")] {
        let mut map = ConfigMap { data: Some([(key.to_owned(), value.to_owned())].into()), ..ConfigMap::default() };
        map.metadata_mut().set_name(name);
        map.metadata_mut().set_label(LABEL, "true");
        maps.create(&map).await?;
    }
    Ok(())
}
