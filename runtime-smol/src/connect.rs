//! Clients from configurations.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use cloudcoil_futures::{Dial, Http1, Io, prepare};
use cloudcoil_runtime::core::config::Config;
use cloudcoil_runtime::{Client, Error, LocalSystem, Session, connect};
use futures_util::future::BoxFuture;

use crate::SmolRuntime;

connect!("smol", client, LocalSystem::read_file);

fn client(config: &Config) -> Result<Client, Error> {
    let runtime = Arc::new(SmolRuntime::new());
    let carrier = Http1::new(config, Arc::new(Tcp), runtime.clone())?;
    let session = Session::new(config, runtime.clone(), Arc::new(carrier), Arc::new(LocalSystem))?;
    Ok(Client::new(runtime, Arc::new(session)).with_default_namespace(&config.namespace))
}

/// Connects by smol.
struct Tcp;

impl Dial for Tcp {
    fn dial(&self, address: SocketAddr) -> BoxFuture<'static, io::Result<Box<dyn Io>>> {
        Box::pin(async move {
            let stream = smol::net::TcpStream::connect(address).await?;
            prepare(&stream)?;
            Ok(Box::new(stream) as Box<dyn Io>)
        })
    }
}
