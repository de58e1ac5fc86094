//! Sockets for webhooks, metrics and probes, on threads.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cloudcoil_runtime::blocking::Clock;
use cloudcoil_runtime::blocking::listener::{self, Accept, ListenHandle, RequestHandler, Service, Socket, Wake, Wire};
use cloudcoil_runtime::core::Time;
use cloudcoil_runtime::core::config::Subject;
use cloudcoil_runtime::core::listen::{ListenConfig, ListenError};
use cloudcoil_runtime::listener::Reload;
use cloudcoil_tls::Serving;
use rustls::{ServerConnection, StreamOwned};

/// Listens at an address, and has every request handled; each connection has a thread of its own.
///
/// ```no_run
/// use std::sync::Arc;
/// use std::time::Duration;
/// use cloudcoil_blocking::core::http::Response;
/// use cloudcoil_blocking::core::listen::ListenConfig;
///
/// let config = ListenConfig::new("0.0.0.0:8080".parse()?);
/// let probes = cloudcoil_blocking::listen(config, Arc::new(|_| Response::new("ok".into())))?;
/// cloudcoil_blocking::shutdown_signal();
/// probes.stop(Duration::from_secs(10));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`ListenError`] if the address is taken, or the certificate is none.
pub fn listen(config: ListenConfig, handler: RequestHandler) -> Result<ListenHandle, ListenError> {
    let tls = config.tls.as_ref().map(|tls| Serving::new(tls, &[b"http/1.1"])).transpose()?.map(Arc::new);
    let reload = tls.clone().map(|tls| Box::new(move |with: &_| tls.reload(with)) as Reload);
    let service = Service { handler, limits: config.limits };
    let listening = || {
        let tcp = TcpListener::bind(config.address)?;
        let address = tcp.local_addr()?;
        listener::listen(Port { tcp, address, tls }, address, service, reload)
    };
    listening().map_err(|error| ListenError::bind(config.address, &error))
}

struct Port {
    tcp: TcpListener,
    address: SocketAddr,
    tls: Option<Arc<Serving>>,
}

impl Accept for Port {
    fn accept(&self) -> io::Result<(Arc<dyn Socket>, SocketAddr)> {
        let (tcp, address) = self.tcp.accept()?;
        Ok((Arc::new(Tcp { tcp, tls: self.tls.clone() }), address))
    }

    fn waker(&self) -> Wake {
        let mut address = self.address;
        // What else there is to an address, such as the scope of one that is local to a link, stays.
        match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
            _ => {}
        }
        Box::new(move || drop(TcpStream::connect_timeout(&address, Duration::from_secs(1))))
    }
}

struct Tcp {
    tcp: TcpStream,
    tls: Option<Arc<Serving>>,
}

impl Socket for Tcp {
    fn shutdown(&self, how: Shutdown) {
        // One that is closed already needs no more.
        let _ = self.tcp.shutdown(how);
    }

    fn shake(self: Arc<Self>, clock: Clock, until: Time) -> io::Result<(Box<dyn Wire>, Option<Subject>)> {
        // One that cannot be set is a connection that has closed.
        let _ = self.tcp.set_nodelay(true);
        let tls = self.tls.clone();
        let timed = Timed { socket: self, clock, until };
        let Some(tls) = tls else { return Ok((Box::new(timed), None)) };
        let connection = ServerConnection::new(tls.current()).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(connection, timed);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        let subject = cloudcoil_tls::subject(stream.conn.peer_certificates());
        Ok((Box::new(Encrypted(stream)), subject))
    }
}

impl Wire for Timed {
    fn receive(&mut self, until: Time) -> io::Result<Bytes> {
        self.until = until;
        receive(self)
    }

    fn send(&mut self, bytes: &[u8], until: Time) -> io::Result<()> {
        self.until = until;
        self.write_all(bytes)
    }

    fn finish(&mut self, _: Time) -> io::Result<()> {
        self.socket.tcp.shutdown(Shutdown::Write)
    }
}

struct Encrypted(StreamOwned<ServerConnection, Timed>);

impl Wire for Encrypted {
    fn receive(&mut self, until: Time) -> io::Result<Bytes> {
        self.0.sock.until = until;
        receive(&mut self.0)
    }

    fn send(&mut self, bytes: &[u8], until: Time) -> io::Result<()> {
        self.0.sock.until = until;
        self.0.write_all(bytes)?;
        self.0.flush()
    }

    fn finish(&mut self, until: Time) -> io::Result<()> {
        self.0.sock.until = until;
        self.0.conn.send_close_notify();
        self.0.flush()?;
        self.0.sock.finish(until)
    }
}

fn receive(stream: &mut impl Read) -> io::Result<Bytes> {
    let mut bytes = vec![0; PIECE];
    let length = stream.read(&mut bytes)?;
    bytes.truncate(length);
    Ok(bytes.into())
}

/// A connection that is read and written until a time, however little comes each time.
struct Timed {
    socket: Arc<Tcp>,
    clock: Clock,
    until: Time,
}

impl Timed {
    fn left(&self) -> io::Result<Option<Duration>> {
        match self.until.since(self.clock.now().mono) {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(Some(left)),
        }
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.socket.tcp.set_read_timeout(self.left()?)?;
            match (&self.socket.tcp).read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            self.socket.tcp.set_write_timeout(self.left()?)?;
            match (&self.socket.tcp).write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        (&self.socket.tcp).flush()
    }
}

/// How many bytes are received at once, at the most.
const PIECE: usize = 16 << 10;
