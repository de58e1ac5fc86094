//! A scripted server behind a port.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use cloudcoil_apiserver::Tls;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use socket2::SockRef;

use super::{Answer, Framing, Script, Seen, Then, Told};

/// It ends when this is dropped.
pub(crate) struct Listening {
    address: SocketAddr,
    is_tls: bool,
    ends: Arc<AtomicBool>,
}

impl Listening {
    pub(crate) fn start(tls: Option<Arc<ServerConfig>>, script: Script) -> (Self, Receiver<Told>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port left");
        let address = listener.local_addr().expect("it has an address");
        let (tell, told) = channel();
        let ends = Arc::new(AtomicBool::new(false));
        let is_tls = tls.is_some();
        let serving = Serving { script: Arc::new(Mutex::new(script)), tell, tls };
        let ended = ends.clone();
        thread::spawn(move || {
            for (number, stream) in listener.incoming().flatten().enumerate() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let serving = serving.clone();
                // A client that has gone is a client that has heard enough.
                thread::spawn(move || drop(serving.serve(number, stream)));
            }
        });
        (Self { address, is_tls, ends }, told)
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("{}://{}", if self.is_tls { "https" } else { "http" }, self.address)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        // Wakes the listener.
        drop(TcpStream::connect(self.address));
    }
}

/// How a server speaks TLS with these keys.
pub(crate) fn server_config(tls: &Tls) -> Arc<ServerConfig> {
    let certificate = CertificateDer::from_pem_slice(tls.certificate_pem().as_bytes()).expect("it is a certificate");
    let key = PrivateKeyDer::from_pem_slice(tls.key_pem().as_bytes()).expect("it is a key");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(vec![certificate], key));
    Arc::new(config.expect("certificate and key belong together"))
}

#[derive(Clone)]
struct Serving {
    script: Arc<Mutex<Script>>,
    tell: Sender<Told>,
    tls: Option<Arc<ServerConfig>>,
}

impl Serving {
    fn serve(&self, number: usize, socket: TcpStream) -> io::Result<()> {
        socket.set_nodelay(true)?;
        let mut stream: Box<dyn Talk> = match &self.tls {
            None => Box::new(socket),
            Some(config) => {
                let connection = ServerConnection::new(config.clone()).map_err(io::Error::other)?;
                Box::new(StreamOwned::new(connection, socket))
            }
        };
        let ended = self.talk(number, &mut *stream);
        if !matches!(ended, Ok(Side::Server)) {
            let _ = self.tell.send(Told::Left(number));
        }
        ended.map(drop)
    }

    /// Answers requests until one side ends the connection, and answers which.
    fn talk(&self, number: usize, stream: &mut dyn Talk) -> io::Result<Side> {
        while let Some(seen) = request(number, stream)? {
            let answer = (self.script.lock().unwrap_or_else(PoisonError::into_inner))(&seen);
            let _ = self.tell.send(Told::Requested(seen));
            if let Some(side) = give(stream, answer)? {
                return Ok(side);
            }
        }
        Ok(Side::Client)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

/// A connection, with TLS or without.
trait Talk: Read + Write {
    fn socket(&self) -> &TcpStream;

    /// Says that nothing more will be said.
    fn say_end(&mut self) -> io::Result<()>;
}

impl Talk for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }

    fn say_end(&mut self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

impl Talk for StreamOwned<ServerConnection, TcpStream> {
    fn socket(&self) -> &TcpStream {
        &self.sock
    }

    fn say_end(&mut self) -> io::Result<()> {
        self.conn.send_close_notify();
        self.flush()?;
        self.sock.shutdown(Shutdown::Write)
    }
}

/// Sends an answer; answers who has ended the connection, if it is over.
fn give(stream: &mut dyn Talk, answer: Answer) -> io::Result<Option<Side>> {
    if answer.framing != Framing::Raw {
        stream.write_all(head(&answer).as_bytes())?;
        stream.flush()?;
    }
    let chunked = answer.framing == Framing::Chunked;
    for piece in answer.pieces.iter().filter(|piece| !piece.is_empty()) {
        if answer.pause > Duration::ZERO {
            thread::sleep(answer.pause);
        }
        let chunk = match chunked {
            true => [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat().into(),
            false => piece.clone(),
        };
        stream.write_all(&chunk)?;
        stream.flush()?;
    }
    match answer.then {
        Then::End => {
            if chunked {
                stream.write_all(b"0\r\n\r\n")?;
                stream.flush()?;
            }
            if answer.framing != Framing::UntilClose {
                return Ok(None);
            }
            stream.say_end()?;
        }
        // A body that ends with its connection is whole only where TLS says so too.
        Then::Close if answer.framing == Framing::UntilClose => stream.say_end()?,
        Then::Finish => stream.say_end()?,
        Then::Close => stream.socket().shutdown(Shutdown::Write)?,
        Then::Reset => {
            SockRef::from(stream.socket()).set_linger(Some(Duration::ZERO))?;
            return Ok(Some(Side::Server));
        }
        Then::Silence => {}
        Then::Refuse => panic!("HTTP/1.1 has no words for it"),
    }
    // Whatever the client still says, it is not reset for that.
    while stream.read(&mut [0; 1024])? > 0 {}
    Ok(Some(if answer.then == Then::Silence { Side::Client } else { Side::Server }))
}

fn head(answer: &Answer) -> String {
    let mut head = format!("HTTP/1.1 {} Scripted\r\n", answer.status);
    for (name, value) in &answer.headers {
        head += &format!("{name}: {value}\r\n");
    }
    match answer.framing {
        Framing::Length => head += &format!("content-length: {}\r\n", answer.declared()),
        Framing::Chunked => head += "transfer-encoding: chunked\r\n",
        Framing::UntilClose => head += "connection: close\r\n",
        Framing::Raw => {}
    }
    head + "\r\n"
}

/// The next request; `None` if there is none any more.
pub(crate) fn request(connection: usize, stream: &mut (impl Read + ?Sized)) -> io::Result<Option<Seen>> {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte)? == 0 {
            return Ok(None);
        }
        text.push(byte[0]);
    }
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.lines();
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (method, target) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    let headers: Vec<_> = lines.filter_map(header).collect();
    let length = headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, value)| value.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body)?;
    let (method, path, query) = (method.to_owned(), path.to_owned(), query.to_owned());
    Ok(Some(Seen { connection, method, path, query, headers, body: Bytes::from(body) }))
}
