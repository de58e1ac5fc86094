//! Connections through proxies.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use cloudcoil_tokio::core::config::{Pem, Proxy, Secret};
use cloudcoil_tokio::core::{NetworkError, NetworkErrorKind};
use cloudcoil_tokio::{Config, HyperTransport, TokioRuntime, Transport as _};
use futures_util::TryStreamExt as _;
use http::Request;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use crate::server::{Server, serve, whole};
use crate::tls::{authority, issued, server_config};

/// A proxy that speaks HTTP or SOCKS, whichever is spoken to it, and what it was asked for.
struct TestProxy {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<String>>>,
}

impl TestProxy {
    /// All tunnels lead to `server`, whatever name is asked for.
    async fn start(server: SocketAddr, tls: Option<ServerConfig>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, heard) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Vec::new())));
        let (acceptor, log) = (tls.map(|config| TlsAcceptor::from(Arc::new(config))), heard.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, log) = (acceptor.clone(), log.clone());
                tokio::spawn(async move {
                    match acceptor {
                        None => talk(stream, server, &log).await,
                        Some(acceptor) => {
                            if let Ok(stream) = acceptor.accept(stream).await {
                                talk(stream, server, &log).await;
                            }
                        }
                    }
                });
            }
        });
        Self { address, heard }
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

async fn talk(mut stream: impl AsyncRead + AsyncWrite + Unpin, server: SocketAddr, log: &Mutex<Vec<String>>) {
    let first = stream.read_u8().await.unwrap();
    let is_open = if first == 5 { socks(&mut stream, log).await } else { http(&mut stream, first, log).await };
    if is_open {
        let mut upstream = TcpStream::connect(server).await.unwrap();
        let _ = copy_bidirectional(&mut stream, &mut upstream).await;
    }
}

/// Wants `me` and `word`; forwards nothing, but answers itself.
async fn http(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), first: u8, log: &Mutex<Vec<String>>) -> bool {
    let mut head = vec![first];
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    let is_known = head.to_lowercase().contains("\r\nproxy-authorization: basic bwu6d29yza==\r\n");
    log.lock().unwrap().push(head.lines().next().unwrap().to_owned());
    let answer: &[u8] = match head.starts_with("CONNECT ") {
        _ if !is_known => b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n",
        true => b"HTTP/1.1 200 Connection established\r\n\r\n",
        false => b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nforwarded",
    };
    // One byte at a time, so that nothing depends on how it is cut.
    for byte in answer {
        stream.write_u8(*byte).await.unwrap();
        stream.flush().await.unwrap();
    }
    is_known && head.starts_with("CONNECT ")
}

async fn socks(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), log: &Mutex<Vec<String>>) -> bool {
    let mut methods = vec![0; stream.read_u8().await.unwrap().into()];
    stream.read_exact(&mut methods).await.unwrap();
    if methods.contains(&2) {
        stream.write_all(&[5, 2]).await.unwrap();
        let mut words = [0; 9];
        stream.read_exact(&mut words).await.unwrap();
        let verdict = u8::from(&words != b"\x01\x02me\x04word");
        stream.write_all(&[1, verdict]).await.unwrap();
        if verdict != 0 {
            return false;
        }
    } else {
        stream.write_all(&[5, 0]).await.unwrap();
    }
    let mut request = [0; 5];
    stream.read_exact(&mut request).await.unwrap();
    let rest = if request[3] == 3 { usize::from(request[4]) } else { 3 };
    let mut host = vec![0; rest + 2];
    stream.read_exact(&mut host).await.unwrap();
    let name =
        if request[3] == 3 { String::from_utf8_lossy(&host[..rest]).into_owned() } else { "an address".to_owned() };
    log.lock().unwrap().push(name);
    stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
    true
}

async fn fetch(config: &Config) -> Result<String, NetworkError> {
    let transport = HyperTransport::new(config, TokioRuntime::new()).unwrap();
    let body = transport.send(Request::get("/x").body(Bytes::new()).unwrap()).await?.into_body();
    let pieces: Vec<Bytes> = body.try_collect().await?;
    Ok(String::from_utf8(pieces.concat()).unwrap())
}

fn through(config: &mut Config, proxy: &TestProxy, before: &str) {
    config.proxy = Some(Proxy::parse(&format!("{before}{}", proxy.address)).unwrap());
}

/// A server with TLS, reached under a name that only the proxy knows.
async fn world() -> (Server, Config, ServerConfig) {
    let (ca, proxies) = (authority(), authority());
    let server = serve(Some(server_config(&issued(&ca, "api.internal"), None, &["h2"])), |_| whole("hello")).await;
    let mut config = Config::new("https://api.internal:6443").unwrap();
    let both = [ca.pem(), proxies.pem()].concat();
    config.tls.ca = Some(Pem { origin: "test".into(), text: Secret::new(both) });
    (server, config, server_config(&issued(&proxies, "127.0.0.1"), None, &["http/1.1"]))
}

#[tokio::test]
async fn an_http_proxy_tunnels_to_servers_with_tls() {
    let (server, mut config, tls) = world().await;
    for (tls, scheme) in [(None, "http"), (Some(tls), "https")] {
        let proxy = TestProxy::start(server.address, tls).await;
        through(&mut config, &proxy, &format!("{scheme}://me:word@"));
        assert_eq!(fetch(&config).await.unwrap(), "hello", "{scheme}");
        assert_eq!(proxy.heard(), ["CONNECT api.internal:6443 HTTP/1.1"]);
        through(&mut config, &proxy, &format!("{scheme}://me:wrong@"));
        let error = fetch(&config).await.unwrap_err();
        assert_eq!(error.kind, NetworkErrorKind::Connect);
        assert!(error.message.contains("it does not take the user name and the password"), "{error}");
        assert!(!error.message.contains("wrong"), "{error}");
    }
}

#[tokio::test]
async fn a_socks_proxy_is_given_the_name() {
    let (server, mut config, _) = world().await;
    let proxy = TestProxy::start(server.address, None).await;
    for before in ["socks5://", "socks5h://me:word@"] {
        through(&mut config, &proxy, before);
        assert_eq!(fetch(&config).await.unwrap(), "hello", "{before}");
    }
    assert_eq!(proxy.heard(), ["api.internal", "api.internal"]);
    through(&mut config, &proxy, "socks5://me:talk@");
    assert_eq!(fetch(&config).await.unwrap_err().kind, NetworkErrorKind::Connect);
}

#[tokio::test]
async fn requests_to_servers_without_tls_are_forwarded_or_tunnelled() {
    let server = serve(None, |_| whole("hello")).await;
    let mut config = Config::new("http://api.internal:8001/k8s").unwrap();
    let proxy = TestProxy::start(server.address, None).await;
    through(&mut config, &proxy, "http://me:word@");
    assert_eq!(fetch(&config).await.unwrap(), "forwarded");
    assert_eq!(proxy.heard(), ["GET http://api.internal:8001/k8s/x HTTP/1.1"]);
    through(&mut config, &proxy, "socks5://");
    assert_eq!(fetch(&config).await.unwrap(), "hello");
    assert_eq!(server.requests()[0].headers()["host"], "api.internal:8001");
    assert!(!server.requests()[0].headers().contains_key("proxy-authorization"));
}

#[tokio::test]
async fn a_proxy_that_is_not_there_or_closes_is_named() {
    let (_, mut config, _) = world().await;
    let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    config.proxy = Some(Proxy::parse(&format!("http://{address}")).unwrap());
    let error = fetch(&config).await.unwrap_err();
    assert_eq!(error.kind, NetworkErrorKind::Connect);
    assert!(error.message.contains(&format!("http://{address}")), "{error}");
    let address = crate::server::raw(|stream| async move { drop(stream) }).await;
    config.proxy = Some(Proxy::parse(&format!("http://{address}")).unwrap());
    let error = fetch(&config).await.unwrap_err();
    assert!(error.message.ends_with("it has closed the connection"), "{error}");
}
