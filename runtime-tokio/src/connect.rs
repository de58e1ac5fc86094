//! Clients from configurations.

use std::sync::Arc;

use cloudcoil_runtime::core::config::Config;
use cloudcoil_runtime::{Client, Error, connect};

use crate::TokioRuntime;
use crate::system::read_file;
use crate::transport::HyperTransport;

connect!("tokio", client, read_file);

fn client(config: &Config) -> Result<Client, Error> {
    let runtime = TokioRuntime::new();
    let transport = HyperTransport::new(config, runtime.clone())?;
    Ok(Client::new(Arc::new(runtime), Arc::new(transport)).with_default_namespace(&config.namespace))
}
