//! Clients from configurations.

use std::sync::Arc;

use cloudcoil_runtime::core::config::Config;
use cloudcoil_runtime::{Client, Error, LocalSystem, connect};

use crate::TokioRuntime;
use crate::transport::HyperTransport;

connect!("tokio", client, LocalSystem::read_file);

fn client(config: &Config) -> Result<Client, Error> {
    let runtime = TokioRuntime::new();
    let transport = HyperTransport::new(config, runtime.clone())?;
    Ok(Client::new(Arc::new(runtime), Arc::new(transport)).with_default_namespace(&config.namespace))
}
