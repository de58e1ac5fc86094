//! Connections: TCP, and what is to be done on it.

use std::net::SocketAddr;
use std::sync::Arc;

use cloudcoil_core::config::{Config, ConfigError};
use cloudcoil_core::proxy::{ProxyHandshake, ProxyStep};
use cloudcoil_core::{NetworkError, NetworkErrorKind};
use cloudcoil_runtime::{LocalSystem, Runtime};
use cloudcoil_tls::{Route, Step, connect_failure};
use futures_rustls::TlsConnector;
use futures_util::future::{Either, select};
use futures_util::io::{AsyncReadExt as _, AsyncWriteExt as _};
use http::HeaderValue;

use super::connection::Connection;
use super::{Dial, Io};

/// Makes connections to one server, with the same certificates.
pub(crate) struct Connector {
    route: Route,
    dial: Arc<dyn Dial>,
}

impl Connector {
    pub(crate) fn new(config: &Config, dial: Arc<dyn Dial>) -> Result<Self, ConfigError> {
        Ok(Self { route: Route::new(config, &[b"http/1.1"])?, dial })
    }

    /// See [`Route::forwarding`].
    pub(crate) fn forwarding(&self) -> Option<Option<HeaderValue>> {
        self.route.forwarding()
    }

    pub(crate) async fn connect(&self, runtime: &dyn Runtime) -> Result<Connection, NetworkError> {
        let steps = self.route.steps()?;
        let mut stream = self.dial(runtime).await.map_err(|error| self.route.about(error))?;
        for step in steps {
            let is_proxys = step.is_proxys();
            let about = |error| if is_proxys { self.route.about(error) } else { error };
            stream = match step {
                Step::Encrypt { config, name, .. } => {
                    let shaken = within(runtime, TlsConnector::from(config).connect(name, stream)).await;
                    let shaken = shaken.and_then(|tls| tls.map_err(|error| cloudcoil_tls::handshake_failure(&error)));
                    Box::new(shaken.map_err(about)?)
                }
                Step::Speak(handshake) => {
                    within(runtime, Box::pin(speak(stream, handshake))).await.map_err(about)??
                }
            };
        }
        Ok(Connection::new(stream))
    }

    async fn dial(&self, runtime: &dyn Runtime) -> Result<Box<dyn Io>, NetworkError> {
        let (host, port) = self.route.address();
        let host = host.to_owned();
        let resolved = within(runtime, Box::pin(LocalSystem::resolve(host, port))).await?;
        reach(runtime, &*self.dial, resolved.map_err(|error| connect_failure(&error))?).await
    }
}

/// Tries the addresses of a host one after the other.
async fn reach(
    runtime: &dyn Runtime,
    dial: &dyn Dial,
    addresses: impl Iterator<Item = SocketAddr>,
) -> Result<Box<dyn Io>, NetworkError> {
    let mut last = None;
    for address in addresses {
        let dialled = within(runtime, dial.dial(address)).await;
        match dialled.and_then(|dialled| dialled.map_err(|error| connect_failure(&error))) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| NetworkError::new(NetworkErrorKind::Connect, "the host's name has no address")))
}

async fn speak(mut stream: Box<dyn Io>, mut handshake: ProxyHandshake) -> Result<Box<dyn Io>, NetworkError> {
    let mut buffer = [0; 4096];
    let mut length = 0;
    loop {
        match handshake.received(&buffer[..length])? {
            ProxyStep::Done => return Ok(stream),
            ProxyStep::Receive => {}
            ProxyStep::Send(bytes) => {
                let sent = async {
                    stream.write_all(&bytes).await?;
                    stream.flush().await
                };
                sent.await.map_err(|error| connect_failure(&error))?;
            }
        }
        // A connection that breaks has been closed, for all that it says.
        length = stream.read(&mut buffer).await.unwrap_or_default();
        if length == 0 {
            return Err(handshake.closed());
        }
    }
}

/// Gives a step of connecting its time, and no more.
async fn within<T>(runtime: &dyn Runtime, step: impl Future<Output = T> + Send + Unpin) -> Result<T, NetworkError> {
    match select(step, runtime.sleep_until(runtime.now().mono + Route::PATIENCE)).await {
        Either::Left((value, _)) => Ok(value),
        Either::Right(((), _)) => Err(Route::late()),
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::io;

    use cloudcoil_core::{Now, Time};
    use futures_util::future::BoxFuture;
    use futures_util::io::Cursor;

    use super::*;

    /// All the time that anybody waits for has passed.
    struct Hurried;

    impl Runtime for Hurried {
        fn now(&self) -> Now {
            Now::default()
        }

        fn sleep_until(&self, _: Time) -> BoxFuture<'static, ()> {
            Box::pin(ready(()))
        }

        fn spawn(&self, _: BoxFuture<'static, ()>) {}

        fn seed(&self) -> u64 {
            0
        }
    }

    /// One port swallows what is sent to it, one refuses, and others answer.
    struct Ports;

    impl Dial for Ports {
        fn dial(&self, address: SocketAddr) -> BoxFuture<'static, io::Result<Box<dyn Io>>> {
            match address.port() {
                SILENT => Box::pin(pending()),
                CLOSED => Box::pin(ready(Err(io::ErrorKind::ConnectionRefused.into()))),
                _ => Box::pin(ready(Ok(Box::new(Cursor::new(Vec::new())) as Box<dyn Io>))),
            }
        }
    }

    fn reached(ports: &[u16]) -> Result<(), NetworkError> {
        let addresses = ports.iter().map(|port| SocketAddr::from(([10, 0, 0, 1], *port)));
        async_io::block_on(reach(&Hurried, &Ports, addresses)).map(drop)
    }

    #[test]
    fn an_address_that_is_silent_or_refuses_leaves_time_for_the_next() {
        assert_eq!(reached(&[SILENT, CLOSED, 1]), Ok(()));
        assert_eq!(reached(&[CLOSED, SILENT]), Err(Route::late()));
        assert_eq!(reached(&[SILENT, CLOSED]).unwrap_err().to_string(), "cannot connect: connection refused");
        assert_eq!(reached(&[]).unwrap_err().kind, NetworkErrorKind::Connect);
    }

    const SILENT: u16 = 1000;
    const CLOSED: u16 = 1001;
}
