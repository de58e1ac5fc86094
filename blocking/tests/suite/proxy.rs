//! Connections through proxies.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use cloudcoil_blocking::core::config::Proxy;
use cloudcoil_blocking::core::{NetworkError, NetworkErrorKind};
use cloudcoil_blocking::{Cancel, Config, Transport as _, UreqTransport};
use http::Request;
use rustls::ServerConfig;

use crate::common::{pem, raw};
use crate::server::{Io, Seen, authority, head, listen, ok, serve, tls};

/// A proxy that speaks HTTP or SOCKS, whichever is spoken to it, and what it was asked for.
struct TestProxy {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<String>>>,
}

impl TestProxy {
    /// All tunnels lead to `server`, whatever name is asked for.
    fn start(server: SocketAddr, tls: Option<ServerConfig>) -> Self {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let log = heard.clone();
        Self { address: listen(tls, move |stream, below| talk(stream, &below, server, &log)), heard }
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

fn talk(mut stream: Box<dyn Io>, below: &TcpStream, server: SocketAddr, log: &Mutex<Vec<String>>) {
    let mut first = [0];
    if stream.read_exact(&mut first).is_err() {
        return;
    }
    let is_open = if first == [5] { socks(&mut *stream, log) } else { http(&mut *stream, first[0], log) };
    if is_open {
        tunnel(&mut *stream, below, &mut TcpStream::connect(server).unwrap());
    }
}

/// Passes on what comes from either side; a stream with TLS cannot be read and written by two threads.
fn tunnel(client: &mut dyn Io, below: &TcpStream, server: &mut TcpStream) {
    let turn = Some(Duration::from_millis(2));
    below.set_read_timeout(turn).unwrap();
    server.set_read_timeout(turn).unwrap();
    while pass(client, server) && pass(server, client) {}
}

/// Passes on one piece, if there is one; says whether there can be more.
fn pass(from: &mut dyn Io, to: &mut dyn Io) -> bool {
    let mut piece = vec![0; 64 << 10];
    match from.read(&mut piece) {
        Ok(0) => false,
        Ok(length) => to.write_all(&piece[..length]).and_then(|()| to.flush()).is_ok(),
        Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
    }
}

/// Wants `me` and `word`; forwards nothing, but answers itself.
fn http(stream: &mut dyn Io, first: u8, log: &Mutex<Vec<String>>) -> bool {
    let mut before = Some(first);
    loop {
        let Some(rest) = head(stream) else { return false };
        let head = before.take().map(|byte| char::from(byte).to_string()).unwrap_or_default() + &rest;
        let is_known = head.to_lowercase().contains("\r\nproxy-authorization: basic bwu6d29yza==\r\n");
        log.lock().unwrap().push(head.lines().next().unwrap().to_owned());
        let answer: &[u8] = match head.starts_with("CONNECT ") {
            _ if !is_known => b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n",
            true => b"HTTP/1.1 200 Connection established\r\n\r\n",
            false => b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nforwarded",
        };
        // One byte at a time, so that nothing depends on how it is cut.
        for byte in answer {
            stream.write_all(&[*byte]).unwrap();
            stream.flush().unwrap();
        }
        if head.starts_with("CONNECT ") {
            return is_known;
        }
    }
}

fn take<const N: usize>(stream: &mut dyn Io) -> [u8; N] {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

fn socks(stream: &mut dyn Io, log: &Mutex<Vec<String>>) -> bool {
    let [count] = take(stream);
    let mut methods = vec![0; count.into()];
    stream.read_exact(&mut methods).unwrap();
    if methods.contains(&2) {
        stream.write_all(&[5, 2]).unwrap();
        let is_known = &take::<9>(stream) == b"\x01\x02me\x04word";
        stream.write_all(&[1, u8::from(!is_known)]).unwrap();
        if !is_known {
            return false;
        }
    } else {
        stream.write_all(&[5, 0]).unwrap();
    }
    let [_, _, _, kind, length] = take(stream);
    assert_eq!(kind, 3, "a name is left to the proxy");
    let mut name = vec![0; usize::from(length) + 2];
    stream.read_exact(&mut name).unwrap();
    log.lock().unwrap().push(String::from_utf8_lossy(&name[..length.into()]).into_owned());
    stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).unwrap();
    true
}

fn fetch(config: &Config) -> Result<String, NetworkError> {
    fetch_with(&UreqTransport::new(config).unwrap())
}

fn fetch_with(transport: &UreqTransport) -> Result<String, NetworkError> {
    let body = transport.send(Request::get("/x").body(Bytes::new()).unwrap(), &Cancel::new())?.into_body();
    let pieces: Vec<Bytes> = body.collect::<Result<_, _>>()?;
    Ok(String::from_utf8(pieces.concat()).unwrap())
}

fn through(config: &mut Config, proxy: &TestProxy, before: &str) {
    config.proxy = Some(Proxy::parse(&format!("{before}{}", proxy.address)).unwrap());
}

/// A server with TLS, reached under a name that only the proxy knows, and how a proxy has TLS.
fn world() -> (SocketAddr, Seen, Config, ServerConfig) {
    let (ca, proxies) = (authority(), authority());
    let (server, seen) = serve(Some(tls(&ca, "api.internal", None)), |_| ok("hello"));
    let mut config = Config::new("https://api.internal:6443").unwrap();
    config.tls.ca = Some(pem(&[ca.pem(), proxies.pem()].concat()));
    (server, seen, config, tls(&proxies, "127.0.0.1", None))
}

#[test]
fn an_http_proxy_tunnels_to_servers_with_tls() {
    let (server, _, mut config, tls) = world();
    for (tls, scheme) in [(None, "http"), (Some(tls), "https")] {
        let proxy = TestProxy::start(server, tls);
        through(&mut config, &proxy, &format!("{scheme}://me:word@"));
        assert_eq!(fetch(&config).unwrap(), "hello", "{scheme}");
        assert_eq!(proxy.heard(), ["CONNECT api.internal:6443 HTTP/1.1"]);
        through(&mut config, &proxy, &format!("{scheme}://me:wrong@"));
        let error = fetch(&config).unwrap_err();
        assert_eq!(error.kind, NetworkErrorKind::Connect);
        assert!(error.message.contains("it does not take the user name and the password"), "{error}");
        assert!(!error.message.contains("wrong"), "{error}");
    }
}

#[test]
fn a_socks_proxy_is_given_the_name() {
    let (server, _, mut config, _) = world();
    let proxy = TestProxy::start(server, None);
    for before in ["socks5://", "socks5h://me:word@"] {
        through(&mut config, &proxy, before);
        assert_eq!(fetch(&config).unwrap(), "hello", "{before}");
    }
    assert_eq!(proxy.heard(), ["api.internal", "api.internal"]);
    through(&mut config, &proxy, "socks5://me:talk@");
    assert_eq!(fetch(&config).unwrap_err().kind, NetworkErrorKind::Connect);
}

#[test]
fn requests_to_servers_without_tls_are_forwarded_or_tunnelled() {
    let (server, seen) = serve(None, |_| ok("hello"));
    let mut config = Config::new("http://api.internal:8001/k8s").unwrap();
    let proxy = TestProxy::start(server, None);
    through(&mut config, &proxy, "http://me:word@");
    let transport = UreqTransport::new(&config).unwrap();
    for _ in 0..2 {
        assert_eq!(fetch_with(&transport).unwrap(), "forwarded");
    }
    assert_eq!(proxy.heard(), ["GET http://api.internal:8001/k8s/x HTTP/1.1"; 2]);
    through(&mut config, &proxy, "socks5://");
    assert_eq!(fetch(&config).unwrap(), "hello");
    let head = seen.requests()[0].to_lowercase();
    assert!(head.starts_with("get /k8s/x http/1.1\r\n") && head.contains("\r\nhost: api.internal:8001\r\n"), "{head}");
    assert!(!head.contains("proxy-authorization"), "{head}");
}

#[test]
fn a_proxy_that_is_not_there_or_closes_is_named() {
    let (_, _, mut config, _) = world();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    config.proxy = Some(Proxy::parse(&format!("http://{address}")).unwrap());
    let error = fetch(&config).unwrap_err();
    assert_eq!(error.kind, NetworkErrorKind::Connect);
    assert!(error.message.contains(&format!("http://{address}")), "{error}");
    config.proxy = Some(Proxy::parse(&format!("http://{}", raw(|_, stream| drop(stream)))).unwrap());
    let error = fetch(&config).unwrap_err();
    assert!(error.message.ends_with("it has closed the connection"), "{error}");
}

#[test]
fn cancelling_ends_the_wait_for_a_proxy_that_says_nothing() {
    let (_, _, mut config, _) = world();
    let cancel = Cancel::new();
    let (its_cancel, (tell, told)) = (cancel.clone(), mpsc::channel());
    let address = raw(move |_, mut stream| {
        assert!(head(&mut stream).unwrap().starts_with("CONNECT "));
        let (cancel, tell) = (its_cancel.clone(), tell.clone());
        thread::spawn(move || tell.send(cancel.cancel()));
        assert!(crate::common::is_closed(&mut stream));
    });
    config.proxy = Some(Proxy::parse(&format!("http://{address}")).unwrap());
    let transport = UreqTransport::new(&config).unwrap();
    let error = transport.send(Request::get("/x").body(Bytes::new()).unwrap(), &cancel).err().unwrap();
    assert_eq!(error.kind, NetworkErrorKind::Connect);
    assert_eq!(told.recv(), Ok(true));
}
