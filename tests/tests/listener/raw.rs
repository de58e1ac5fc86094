//! Connections on which every byte is the test's own.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use cloudcoil_apiserver::Tls as Authority;
use cloudcoil_runtime::core::config::{Identity, Pem, Secret, Tls};
use cloudcoil_runtime::core::listen::ServerTls;
use rustls::{ClientConnection, StreamOwned};

/// A connection to what listens.
pub(crate) enum Raw {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// An answer.
#[derive(Debug, PartialEq)]
pub(crate) struct Said {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Raw {
    pub(crate) fn plain(address: SocketAddr) -> Self {
        let tcp = TcpStream::connect(address).unwrap();
        // Nothing takes as long: a test that would hang fails.
        tcp.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self::Plain(tcp)
    }

    pub(crate) fn tls(address: SocketAddr, tls: &Tls) -> io::Result<Self> {
        Self::tls_for(address, tls, b"http/1.1")
    }

    pub(crate) fn tls_for(address: SocketAddr, tls: &Tls, protocol: &[u8]) -> io::Result<Self> {
        let Self::Plain(mut tcp) = Self::plain(address) else { unreachable!("it is plain") };
        let config = Arc::new(cloudcoil_tls::client_config(tls, &[protocol]).unwrap());
        let name = address.ip().into();
        let mut connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut tcp)?;
        }
        Ok(Self::Tls(Box::new(StreamOwned::new(connection, tcp))))
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.try_send(bytes).unwrap();
    }

    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(tcp) => tcp.write_all(bytes),
            Self::Tls(tls) => tls.write_all(bytes).and_then(|()| tls.flush()),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(tcp) => tcp.read(buffer),
            Self::Tls(tls) => tls.read(buffer),
        }
    }

    /// Reads up to that text.
    pub(crate) fn read_to(&mut self, end: &str) -> io::Result<String> {
        let mut text = Vec::new();
        while !text.ends_with(end.as_bytes()) {
            let mut byte = [0];
            if self.read(&mut byte)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            text.push(byte[0]);
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// The next answer, to anything but `HEAD`.
    pub(crate) fn answer(&mut self) -> Said {
        self.try_answer().unwrap()
    }

    pub(crate) fn try_answer(&mut self) -> io::Result<Said> {
        let head = self.read_to("\r\n\r\n")?;
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        let mut read = 0;
        while read < body.len() {
            match self.read(&mut body[read..])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                length => read += length,
            }
        }
        Ok(Said { status: head[9..12].parse().unwrap(), head, body })
    }

    /// Whether the other side has nothing more to say, in order.
    pub(crate) fn has_ended(&mut self) -> bool {
        matches!(self.read(&mut [0]), Ok(0))
    }

    /// Whether the connection is over, in order or not.
    pub(crate) fn is_over(&mut self) -> bool {
        match self.read(&mut [0]) {
            Ok(length) => length == 0,
            Err(error) => !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut),
        }
    }

    /// Says that nothing more will be sent.
    pub(crate) fn finish(&mut self) {
        match self {
            Self::Plain(tcp) => tcp.shutdown(Shutdown::Write).unwrap(),
            Self::Tls(tls) => {
                tls.conn.send_close_notify();
                tls.flush().unwrap();
            }
        }
    }

    /// The server's own certificate, in DER.
    pub(crate) fn certificate(&self) -> Vec<u8> {
        let Self::Tls(tls) = self else { panic!("there is none") };
        tls.conn.peer_certificates().unwrap()[0].to_vec()
    }
}

impl Said {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn closes(&self) -> bool {
        self.head.contains("\r\nconnection: close\r\n")
    }
}

pub(crate) fn pem(text: &str) -> Pem {
    Pem { origin: "test".into(), text: Secret::new(text) }
}

/// What a server shows that this authority has signed for.
pub(crate) fn served(authority: &Authority) -> ServerTls {
    let identity = Identity { certificate: pem(authority.certificate_pem()), key: pem(authority.key_pem()) };
    ServerTls { identity, client_ca: None }
}

/// What a client goes by that trusts this authority.
pub(crate) fn trusting(authority: &Authority) -> Tls {
    let mut tls = Tls::default();
    tls.ca = Some(pem(authority.ca_pem()));
    tls
}
