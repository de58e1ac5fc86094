//! Servers: the API server in memory behind a port, and one that writes whatever it is told.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

use cloudcoil_apiserver::{ServerConfig, ServerHandle, Tls, serve, serve_tls};
use cloudcoil_runtime::core::config::{Config, Pem, Secret};
use tokio::runtime::Runtime;

/// The API server in memory, on an executor of its own.
pub(crate) struct Cluster {
    handle: ServerHandle,
    // Ends last.
    _runtime: Runtime,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        Self::started(false, ServerConfig::default())
    }

    pub(crate) fn start_tls() -> Self {
        Self::started(true, ServerConfig::default())
    }

    /// One that knows nobody but who has this token.
    pub(crate) fn with_token(token: &str) -> Self {
        Self::started(true, ServerConfig { token: Some(token.to_owned()), ..ServerConfig::default() })
    }

    fn started(tls: bool, config: ServerConfig) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let handle = runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            match tls {
                true => serve_tls(config, listener, Tls::generate(&[]).unwrap()),
                false => serve(config, listener),
            }
        });
        Self { handle: handle.unwrap(), _runtime: runtime }
    }

    pub(crate) fn url(&self) -> String {
        self.handle.url()
    }

    pub(crate) fn ca(&self) -> String {
        self.handle.ca_pem().unwrap_or_default().to_owned()
    }

    pub(crate) fn config(&self) -> Config {
        let mut config = Config::new(&self.handle.url()).unwrap();
        config.tls.ca = self.handle.ca_pem().map(|pem| Pem { origin: "test".into(), text: Secret::new(pem) });
        config
    }
}

pub(crate) fn config_of(address: SocketAddr) -> Config {
    Config::new(&format!("http://{address}")).unwrap()
}

/// Hands each connection to `talk`, with its number, each on a thread of its own.
pub(crate) fn raw(talk: impl Fn(usize, TcpStream) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            let talk = talk.clone();
            std::thread::spawn(move || talk(number, stream));
        }
    });
    address
}

/// The head of a request; `None` if there is none any more. Requests without a body only.
pub(crate) fn head(stream: &mut TcpStream) -> Option<String> {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        text.push(byte[0]);
    }
    String::from_utf8(text).ok()
}

pub(crate) fn write(stream: &mut TcpStream, bytes: &[u8]) {
    // A client that has gone is a client that has heard enough.
    let _ = stream.write_all(bytes).and_then(|()| stream.flush());
}

/// A Pod named `a`, as an answer with a length.
pub(crate) fn pod_answer() -> Vec<u8> {
    let body = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","annotations":{"x":"naïve → 完了"}}}"#;
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
}
