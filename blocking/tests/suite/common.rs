//! Servers: the API server in memory behind a port, and one that writes whatever it is told.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use cloudcoil_apiserver::{ServerConfig, ServerHandle, Tls, serve, serve_tls};
use cloudcoil_blocking::core::config::{Config, Pem, Secret};
use cloudcoil_blocking::{Client, Connect as _, Resource as _};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::runtime::Runtime;

/// The API server in memory, on an executor of its own.
pub(crate) struct Cluster {
    handle: ServerHandle,
    // Ends last.
    runtime: Runtime,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        let (runtime, listener) = listener();
        let handle = runtime.block_on(async { serve(ServerConfig::default(), listener) }).unwrap();
        Self { handle, runtime }
    }

    pub(crate) fn start_tls() -> Self {
        let (runtime, listener) = listener();
        let tls = Tls::generate(&[]).unwrap();
        let handle = runtime.block_on(async { serve_tls(ServerConfig::default(), listener, tls) }).unwrap();
        Self { handle, runtime }
    }

    pub(crate) fn config(&self) -> Config {
        let mut config = Config::new(&self.handle.url()).unwrap();
        config.tls.ca = self.handle.ca_pem().map(pem);
        config
    }

    pub(crate) fn client(&self) -> Client {
        Client::try_from_config(&self.config()).unwrap()
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.handle.address()
    }

    /// Ends every watch, as a server does now and then.
    pub(crate) fn close_watches(&self) {
        self.runtime.block_on(self.handle.with(|server, _, out| server.close_watches(out))).unwrap();
    }
}

fn listener() -> (Runtime, tokio::net::TcpListener) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    (runtime, listener)
}

pub(crate) fn pem(text: &str) -> Pem {
    Pem { origin: "test".into(), text: Secret::new(text) }
}

pub(crate) fn map(name: &str, value: &str) -> ConfigMap {
    let mut map = ConfigMap { data: Some([("key".to_owned(), value.to_owned())].into()), ..ConfigMap::default() };
    map.metadata.name = Some(name.to_owned());
    map.metadata.labels = Some([("test".to_owned(), "yes".to_owned())].into());
    map
}

pub(crate) fn value(map: &ConfigMap) -> &str {
    map.data.as_ref().and_then(|data| data.get("key")).map_or("", |value| value)
}

pub(crate) fn names(maps: &[ConfigMap]) -> Vec<String> {
    maps.iter().map(|map| map.name().to_owned()).collect()
}

/// Hands each connection to `talk`, one after the other, with its number.
pub(crate) fn raw(mut talk: impl FnMut(usize, TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            talk(number, stream.unwrap());
        }
    });
    address
}

/// Reads the head of a request; `None` where the connection ends before.
pub(crate) fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return None,
        }
    }
    Some(String::from_utf8(head).unwrap())
}

pub(crate) fn write(stream: &mut TcpStream, bytes: &[u8]) {
    stream.write_all(bytes).unwrap();
}

/// Whether the other side has closed the connection; waits until it does or says something.
pub(crate) fn is_closed(stream: &mut TcpStream) -> bool {
    !matches!(stream.read(&mut [0]), Ok(1))
}

/// Passes bytes on, until it is told to cut all connections.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    pub(crate) fn to(server: SocketAddr) -> Self {
        let streams = Arc::new(Mutex::new(Vec::new()));
        let open = streams.clone();
        let address = raw(move |_, client| {
            let server = TcpStream::connect(server).unwrap();
            let pairs = [(&client, &server), (&server, &client)];
            for (from, to) in pairs.map(|(from, to)| (from.try_clone().unwrap(), to.try_clone().unwrap())) {
                thread::spawn(move || pass_on(from, to));
            }
            open.lock().unwrap().extend([client, server]);
        });
        Self { address, streams }
    }

    pub(crate) fn reset(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Both);
}
