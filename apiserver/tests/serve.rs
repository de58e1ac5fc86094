//! The server behind a port: HTTP as it is spoken, and the binary.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use cloudcoil_apiserver::{ServerConfig, ServerHandle, Tls, serve, serve_tls};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

async fn started(config: ServerConfig) -> ServerHandle {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    serve(config, listener).unwrap()
}

/// Sends a request on a connection of its own and reads the answer to its end.
async fn exchange(address: SocketAddr, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let request = format!("{head}\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// Reads until `wanted` has come.
async fn read_until(stream: &mut TcpStream, wanted: &str) -> String {
    let mut seen = String::new();
    let mut buffer = [0; 4096];
    while !seen.contains(wanted) {
        let count = stream.read(&mut buffer).await.unwrap();
        assert!(count > 0, "the connection ended: {seen}");
        seen.push_str(str::from_utf8(&buffer[..count]).unwrap());
    }
    seen
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn create(address: SocketAddr, name: &str) {
    let body = format!("{{\"metadata\":{{\"name\":\"{name}\"}}}}");
    let answer = exchange(address, &format!("POST {MAPS} HTTP/1.1"), &body).await;
    assert!(answer.starts_with("HTTP/1.1 201 Created\r\n"), "{answer}");
}

#[tokio::test]
async fn requests_are_answered_over_http() {
    let server = started(ServerConfig::default()).await;
    create(server.address(), "a").await;
    let answer = exchange(server.address(), &format!("GET {MAPS}/a HTTP/1.1"), "").await;
    assert!(answer.contains("content-type: application/json\r\n") && answer.contains("\"name\":\"a\""), "{answer}");
    let answer = exchange(server.address(), "GET /nothing HTTP/1.1", "").await;
    assert!(answer.starts_with("HTTP/1.1 404") && answer.ends_with("404 page not found\n"), "{answer}");
    let large = format!("{{\"data\":{{\"x\":\"{}\"}}}}", "y".repeat(3 << 20));
    let answer = exchange(server.address(), &format!("POST {MAPS} HTTP/1.1"), &large).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    server.shutdown().await;
}

#[tokio::test]
async fn a_watch_is_sent_as_it_happens_and_ends_with_the_server() {
    let server = started(ServerConfig::default()).await;
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(format!("GET {MAPS}?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await.unwrap();
    let head = read_until(&mut stream, "kube-root-ca.crt").await;
    assert!(head.contains("transfer-encoding: chunked\r\n"), "{head}");
    create(server.address(), "late").await;
    read_until(&mut stream, "\"name\":\"late\"").await;
    assert_eq!(server.with(|server, _, _| server.open_watches()).await, Some(1));
    server.shutdown().await;
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert!(rest.ends_with(b"0\r\n\r\n"), "the stream is ended in order");
}

#[tokio::test]
async fn a_client_that_goes_away_closes_its_watch() {
    let server = started(ServerConfig::default()).await;
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(format!("GET {MAPS}?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await.unwrap();
    read_until(&mut stream, "kube-root-ca.crt").await;
    drop(stream);
    let closed = async {
        while server.with(|server, _, _| server.open_watches()).await != Some(0) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), closed).await.expect("the server hears of it");
}

#[tokio::test]
async fn a_kubeconfig_says_how_to_reach_it() {
    let server = started(ServerConfig { token: Some("a: \"b\"".to_owned()), ..ServerConfig::default() }).await;
    let config: serde_json::Value = serde_saphyr::from_str(&server.kubeconfig()).unwrap();
    assert_eq!(config["clusters"][0]["cluster"]["server"], format!("http://{}", server.address()));
    assert_eq!(config["users"][0]["user"]["token"], "a: \"b\"");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let secure = serve_tls(ServerConfig::default(), listener, Tls::generate(&[]).unwrap()).unwrap();
    let config: serde_json::Value = serde_saphyr::from_str(&secure.kubeconfig()).unwrap();
    assert!(config["clusters"][0]["cluster"]["certificate-authority-data"].is_string());
    assert!(secure.ca_pem().is_some_and(|pem| pem.starts_with("-----BEGIN CERTIFICATE-----")));
    // What is no TLS is not answered, and disturbs nobody.
    let mut stream = TcpStream::connect(secure.address()).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP"));
    secure.shutdown().await;
}

async fn binary(arguments: &[&str]) -> (Child, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cloudcoil-apiserver"));
    let mut child = command.args(arguments).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).await.unwrap();
    (child, line)
}

#[tokio::test]
async fn the_binary_prints_its_address_and_stops_on_a_signal() {
    for signal in ["TERM", "INT"] {
        let file = format!("{}/kubeconfig-{signal}", env!("CARGO_TARGET_TMPDIR"));
        let (mut child, line) = binary(&["--kubeconfig", &file, "--tls", "--token", "t"]).await;
        let url = line.trim().strip_prefix("listening on ").expect("the address").to_owned();
        assert!(url.starts_with("https://127.0.0.1:"), "{url}");
        let kubeconfig = tokio::fs::read_to_string(&file).await.unwrap();
        assert!(kubeconfig.contains(&url) && kubeconfig.contains("token: \"t\""));
        let id = child.id().unwrap().to_string();
        assert!(Command::new("kill").args([&format!("-{signal}"), &id]).status().await.unwrap().success());
        let ended = tokio::time::timeout(Duration::from_secs(10), child.wait()).await.expect("it stops").unwrap();
        assert!(ended.success(), "{signal}: {ended}");
    }
}

#[tokio::test]
async fn the_binary_says_what_is_wrong() {
    for (arguments, words) in
        [(&["--odd"][..], "unknown argument"), (&["--listen", "nowhere:x"], "cannot listen on nowhere:x")]
    {
        let output = Command::new(env!("CARGO_BIN_EXE_cloudcoil-apiserver")).args(arguments).output().await.unwrap();
        assert!(!output.status.success());
        assert!(String::from_utf8_lossy(&output.stderr).contains(words), "{arguments:?}");
    }
}

#[tokio::test]
async fn what_is_no_request_disturbs_nobody() {
    let server = started(ServerConfig::default()).await;
    let long = "a".repeat(2_000_000);
    let many: String = (0..5000).map(|index| format!("X{index}: a\r\n")).collect();
    for bytes in [
        "\u{1}\u{2}garbage\r\n\r\n".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nno frames at all, but long enough to be read as some".to_owned(),
        format!("GET / HTTP/1.1\r\nX: {long}\r\n\r\n"),
        format!("GET / HTTP/1.1\r\n{many}\r\n"),
        format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", &long[..200_000]),
        "POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n".to_owned(),
        format!("POST {MAPS} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n"),
    ] {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        // It may hang up before it has heard all of this.
        let _ = stream.write_all(bytes.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut answer)).await.expect("it ends");
        assert!(!answer.starts_with(b"HTTP/1.1 2"), "{}", String::from_utf8_lossy(&answer));
    }
    for body in ["[".repeat(200_000), "{\"a\":".repeat(50_000)] {
        let answer = exchange(server.address(), &format!("POST {MAPS} HTTP/1.1"), &body).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    }
    create(server.address(), "a").await;
    server.shutdown().await;
}
