//! Connections as ureq uses them: TCP, and TLS over it.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use cloudcoil_core::config::{Config, ConfigError};
use cloudcoil_core::{NetworkError, NetworkErrorKind};
use http::Uri;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use rustls_pki_types::ServerName;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{Buffers, ConnectionDetails, LazyBuffers, NextTimeout};

use super::failure::{connect_failure, tls_failure};
use super::wire::{self, Wire, WireIo};

/// Makes connections to one server.
pub(super) struct Connector {
    host: String,
    port: u16,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

impl Connector {
    pub(super) fn new(config: &Config) -> Result<Self, ConfigError> {
        let tls = match config.is_tls() {
            true => {
                let tls = cloudcoil_tls::client_config(&config.tls, &[b"http/1.1"])?;
                Some((Arc::new(tls), cloudcoil_tls::server_name(config)?))
            }
            false => None,
        };
        let host = config.server.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = config.server.port_u16().unwrap_or_else(|| if tls.is_some() { 443 } else { 80 });
        Ok(Self { host, port, tls })
    }

    fn connect(&self) -> Result<Link, NetworkError> {
        let wire = Wire::new(self.dial()?);
        wire::connected();
        wire::lend(&wire);
        let io = match &self.tls {
            None => Io::Plain(WireIo(wire.clone())),
            Some((config, name)) => Io::Tls(Box::new(encrypt(&wire, config.clone(), name.clone())?)),
        };
        Ok(Link { io, wire, buffers: LazyBuffers::new(INPUT, OUTPUT) })
    }

    /// Tries the server's addresses one after the other.
    fn dial(&self) -> Result<TcpStream, NetworkError> {
        let addresses = (&*self.host, self.port).to_socket_addrs().map_err(|error| connect_failure(&error))?;
        let mut last = None;
        for address in addresses {
            match TcpStream::connect_timeout(&address, TIMEOUT) {
                Ok(tcp) => {
                    tcp.set_nodelay(true).map_err(|error| connect_failure(&error))?;
                    return Ok(tcp);
                }
                Err(error) => last = Some(connect_failure(&error)),
            }
        }
        Err(last.unwrap_or_else(|| NetworkError::new(NetworkErrorKind::Connect, "the server's name has no address")))
    }
}

/// Shakes hands; later reads take as long as they take.
fn encrypt(
    wire: &Arc<Wire>,
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
) -> Result<StreamOwned<ClientConnection, WireIo>, NetworkError> {
    let limit =
        |limit: Option<Duration>| wire.tcp().set_read_timeout(limit).and_then(|()| wire.tcp().set_write_timeout(limit));
    let connection = ClientConnection::new(config, name).map_err(|error| tls_failure(&error))?;
    let mut stream = StreamOwned::new(connection, WireIo(wire.clone()));
    limit(Some(TIMEOUT)).map_err(|error| tls_failure(&error))?;
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => NetworkError::new(NetworkErrorKind::Tls, "the server does not answer"),
            _ => tls_failure(&error),
        })?;
    }
    limit(None).map_err(|error| tls_failure(&error))?;
    Ok(stream)
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("host", &self.host).field("port", &self.port).finish_non_exhaustive()
    }
}

impl ureq::unversioned::transport::Connector for Connector {
    type Out = Link;

    fn connect(&self, _: &ConnectionDetails<'_>, _: Option<()>) -> Result<Option<Link>, ureq::Error> {
        self.connect().map(Some).map_err(|error| ureq::Error::Other(Box::new(error)))
    }
}

/// Leaves names to the [`Connector`]: with a proxy in between, the server's may mean nothing here.
#[derive(Debug)]
pub(super) struct Unresolved;

impl Resolver for Unresolved {
    fn resolve(&self, _: &Uri, _: &ureq::config::Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        Ok(self.empty())
    }
}

/// A connection, encrypted or not, with the buffers that ureq works in.
pub(super) struct Link {
    io: Io,
    wire: Arc<Wire>,
    buffers: LazyBuffers,
}

enum Io {
    Plain(WireIo),
    Tls(Box<StreamOwned<ClientConnection, WireIo>>),
}

impl Io {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(wire) => wire.write_all(bytes),
            Self::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let result = match self {
                Self::Plain(wire) => wire.read(buffer),
                Self::Tls(stream) => stream.read(buffer),
            };
            match result {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }
}

impl ureq::unversioned::transport::Transport for Link {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, _: NextTimeout) -> Result<(), ureq::Error> {
        Ok(self.io.send(&self.buffers.output()[..amount])?)
    }

    fn await_input(&mut self, _: NextTimeout) -> Result<bool, ureq::Error> {
        let received = self.io.receive(self.buffers.input_append_buf()).map_err(unexpected)?;
        self.buffers.input_appended(received);
        Ok(received > 0)
    }

    /// Asked before the connection is used again: a server that has anything to say meanwhile says that it closes. What TLS
    /// has to say for itself is taken in.
    fn is_open(&mut self) -> bool {
        wire::lend(&self.wire);
        if self.wire.tcp().set_nonblocking(true).is_err() {
            return false;
        }
        let silent = matches!(self.io.receive(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        silent && self.wire.tcp().set_nonblocking(false).is_ok()
    }

    fn is_tls(&self) -> bool {
        matches!(self.io, Io::Tls(_))
    }
}

/// ureq takes these for the end of a body that has no length; a connection that breaks ends nothing in order.
fn unexpected(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset => {
            io::Error::new(io::ErrorKind::BrokenPipe, error)
        }
        _ => error,
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("tcp", self.wire.tcp()).finish_non_exhaustive()
    }
}

/// For each of the TCP connection, to each address, and one answer in the TLS handshake.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The head of an answer must fit in.
const INPUT: usize = 64 << 10;
const OUTPUT: usize = 16 << 10;
