//! Connections as ureq uses them: TCP, what it takes to get through a proxy, and TLS over it.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;

use cloudcoil_core::config::{Config, ConfigError};
use cloudcoil_core::proxy::{ProxyHandshake, ProxyStep};
use cloudcoil_core::{NetworkError, NetworkErrorKind};
use cloudcoil_tls::{Route, Step, connect_failure};
use http::{HeaderValue, Uri};
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use rustls_pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{Buffers, ConnectionDetails, LazyBuffers, NextTimeout};

use super::wire::{self, Wire, WireIo};

/// Makes connections to one server.
pub(super) struct Connector(Route);

impl Connector {
    pub(super) fn new(config: &Config) -> Result<Self, ConfigError> {
        Route::new(config, &[b"http/1.1"]).map(Self)
    }

    /// See [`Route::forwarding`].
    pub(super) fn forwarding(&self) -> Option<Option<HeaderValue>> {
        self.0.forwarding()
    }

    fn connect(&self) -> Result<Link, NetworkError> {
        // Whoever has given up may wait for this thread, and dialling cannot be cut short.
        if wire::is_given_up() {
            return Err(NetworkError::new(NetworkErrorKind::Connect, "given up before there was a connection"));
        }
        let steps = self.0.steps()?;
        let (wire, mut stream) = dial(self.0.address()).map_err(|error| self.0.about(error))?;
        for step in steps {
            let is_proxys = step.is_proxys();
            let about = |error| if is_proxys { self.0.about(error) } else { error };
            match step {
                Step::Encrypt { config, name, .. } => {
                    stream = encrypt(&wire, config, name, stream).map_err(about)?;
                }
                Step::Speak(handshake) => {
                    wire.within(|| speak(&mut *stream, handshake)).map_err(about)??;
                }
            }
        }
        Ok(Link { stream, wire, buffers: LazyBuffers::new(INPUT, OUTPUT) })
    }
}

/// Tries the addresses of a host one after the other.
fn dial(host: (&str, u16)) -> Result<(Arc<Wire>, Stream), NetworkError> {
    let addresses = host.to_socket_addrs().map_err(|error| connect_failure(&error))?;
    let mut last = None;
    for address in addresses {
        match TcpStream::connect_timeout(&address, Route::PATIENCE) {
            Ok(tcp) => return prepare(tcp).map_err(|error| connect_failure(&error)),
            Err(error) => last = Some(connect_failure(&error)),
        }
    }
    Err(last.unwrap_or_else(|| NetworkError::new(NetworkErrorKind::Connect, "the host's name has no address")))
}

/// From here on the connection can be closed by the `Cancel` of the request that it is for.
fn prepare(tcp: TcpStream) -> io::Result<(Arc<Wire>, Stream)> {
    tcp.set_nodelay(true)?;
    SockRef::from(&tcp).set_tcp_keepalive(&TcpKeepalive::new().with_time(Route::KEEPALIVE))?;
    let wire = Wire::new(tcp);
    wire::connected();
    wire::lend(&wire);
    Ok((wire.clone(), Box::new(WireIo(wire))))
}

/// Shakes hands; later reads take as long as they take.
fn encrypt(
    wire: &Wire,
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    stream: Stream,
) -> Result<Stream, NetworkError> {
    let shake = || -> io::Result<Stream> {
        let connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
        let mut tls = StreamOwned::new(connection, stream);
        while tls.conn.is_handshaking() {
            tls.conn.complete_io(&mut tls.sock)?;
        }
        Ok(Box::new(tls))
    };
    wire.within(shake)?.map_err(|error| cloudcoil_tls::handshake_failure(&error))
}

fn speak(stream: &mut dyn Io, mut handshake: ProxyHandshake) -> Result<(), NetworkError> {
    let mut buffer = [0; 4096];
    let mut length = 0;
    loop {
        match handshake.received(&buffer[..length])? {
            ProxyStep::Done => return Ok(()),
            ProxyStep::Receive => {}
            ProxyStep::Send(bytes) => {
                let sent = stream.write_all(&bytes).and_then(|()| stream.flush());
                sent.map_err(|error| connect_failure(&error))?;
            }
        }
        // A connection that breaks has been closed, for all that it says.
        length = stream.read(&mut buffer).unwrap_or_default();
        if length == 0 {
            return Err(handshake.closed());
        }
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Connector").field(&self.0.address()).finish()
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
    stream: Stream,
    wire: Arc<Wire>,
    buffers: LazyBuffers,
}

type Stream = Box<dyn Io>;

trait Io: Read + Write + Send + Sync {}

impl<T: Read + Write + Send + Sync> Io for T {}

impl Link {
    fn is_silent(&mut self) -> bool {
        if self.wire.tcp().set_nonblocking(true).is_err() {
            return false;
        }
        let silent =
            matches!(receive(&mut *self.stream, &mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        silent && self.wire.tcp().set_nonblocking(false).is_ok()
    }
}

fn receive(stream: &mut dyn Io, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

impl ureq::unversioned::transport::Transport for Link {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    /// Sends the request as it is, in place of what ureq has made of its outline.
    fn transmit_output(&mut self, _: usize, _: NextTimeout) -> Result<(), ureq::Error> {
        self.stream.write_all(&wire::request())?;
        Ok(self.stream.flush()?)
    }

    fn await_input(&mut self, _: NextTimeout) -> Result<bool, ureq::Error> {
        let received = receive(&mut *self.stream, self.buffers.input_append_buf()).map_err(unexpected)?;
        self.buffers.input_appended(received);
        Ok(received > 0)
    }

    /// Asked before the connection is used again: a server that has anything to say meanwhile says that it closes. What TLS
    /// has to say for itself is taken in.
    fn is_open(&mut self) -> bool {
        wire::lend(&self.wire);
        let is_open = self.is_silent();
        if !is_open {
            wire::withdraw();
        }
        is_open
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

/// The head of an answer must fit in, with room for one byte more.
pub(super) const INPUT: usize = 64 << 10;
/// What ureq makes of an outline fits in.
const OUTPUT: usize = 4 << 10;
