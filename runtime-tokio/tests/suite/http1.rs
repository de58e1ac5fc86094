use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use cloudcoil_tokio::core::{NetworkError, NetworkErrorKind};
use cloudcoil_tokio::{Client, Config, Connect as _, HyperTransport, TokioRuntime, Transport as _};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use http::Request;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};

use crate::server::{body, raw, serve, whole};

fn transport(address: SocketAddr) -> HyperTransport {
    let config = Config::new(&format!("http://{address}")).unwrap();
    HyperTransport::new(&config, TokioRuntime::new()).unwrap()
}

fn get() -> Request<Bytes> {
    Request::get("/x").body(Bytes::new()).unwrap()
}

async fn fetch(transport: &HyperTransport) -> Result<String, NetworkError> {
    let body = transport.send(get()).await?.into_body();
    let pieces: Vec<Bytes> = body.try_collect().await?;
    Ok(String::from_utf8(pieces.concat()).unwrap())
}

/// Reads the head of a request.
async fn read_head(stream: &mut TcpStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
}

/// The failure of a request to a server that answers with these bytes and closes.
async fn failure(answer: &'static [u8]) -> NetworkError {
    let address = raw(move |mut stream| async move {
        read_head(&mut stream).await;
        stream.write_all(answer).await.unwrap();
    });
    fetch(&transport(address.await)).await.unwrap_err()
}

#[tokio::test]
async fn connections_are_kept_between_requests() {
    let server = serve(None, |_| whole("hello")).await;
    let client = Client::try_from_config(&Config::new(&format!("http://{}/prefix", server.address)).unwrap()).unwrap();
    for _ in 0..3 {
        let answer = client.request(get()).await.unwrap();
        assert_eq!((answer.status.as_u16(), &answer.body[..]), (200, &b"hello"[..]));
    }
    assert_eq!(server.connections(), 1);
    let request = &server.requests()[0];
    assert_eq!(request.uri(), "/prefix/x");
    assert!(request.headers()["user-agent"].to_str().unwrap().starts_with("cloudcoil/"));
}

#[tokio::test]
async fn hundreds_of_warnings_are_no_fault() {
    let address = raw(|mut stream| async move {
        read_head(&mut stream).await;
        let warnings = "warning: 299 - \"unknown field\"\r\n".repeat(300);
        let answer = format!("HTTP/1.1 200 OK\r\n{warnings}content-length: 2\r\n\r\nok");
        stream.write_all(answer.as_bytes()).await.unwrap();
    });
    let answer = transport(address.await).send(get()).await.unwrap();
    assert_eq!(answer.headers().get_all(http::header::WARNING).iter().count(), 300);
}

#[tokio::test]
async fn a_connection_that_the_server_has_closed_is_not_used_again() {
    let address = raw(|mut stream| async move {
        read_head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
    });
    let transport = transport(address.await);
    for _ in 0..20 {
        assert_eq!(fetch(&transport).await.unwrap(), "ok");
    }
}

#[tokio::test]
async fn a_read_is_repeated_when_its_connection_closes_under_it_and_a_write_is_not() {
    let address = raw(|mut stream| async move {
        read_head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
        // Closes when it has been asked again.
        let _ = stream.read_u8().await;
    });
    let transport = transport(address.await);
    for _ in 0..3 {
        assert_eq!(fetch(&transport).await.unwrap(), "ok");
    }
    let error = transport.send(Request::post("/x").body(Bytes::new()).unwrap()).await.err().unwrap();
    assert_eq!(error.kind, NetworkErrorKind::Lost, "{error}");
}

#[tokio::test]
async fn dropping_a_body_closes_its_connection() {
    let (closed, is_closed) = oneshot::channel();
    let closed = Arc::new(std::sync::Mutex::new(Some(closed)));
    let address = raw(move |mut stream| {
        let closed = closed.lock().unwrap().take();
        async move {
            read_head(&mut stream).await;
            let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n";
            stream.write_all(head).await.unwrap();
            // Ends when the client closes.
            let _ = stream.read_u8().await.unwrap_err();
            closed.unwrap().send(()).unwrap();
        }
    });
    let mut body = transport(address.await).send(get()).await.unwrap().into_body();
    assert_eq!(body.next().await.unwrap().unwrap(), "hello");
    drop(body);
    is_closed.await.unwrap();
}

#[tokio::test]
async fn giving_up_before_the_answer_closes_the_connection() {
    let (events, mut seen) = mpsc::unbounded_channel();
    let address = raw(move |mut stream| {
        let events = events.clone();
        async move {
            read_head(&mut stream).await;
            events.send("asked").unwrap();
            let _ = stream.read_u8().await.unwrap_err();
            events.send("closed").unwrap();
        }
    });
    let sending = tokio::spawn(transport(address.await).send(get()));
    assert_eq!(seen.recv().await, Some("asked"));
    sending.abort();
    assert_eq!(seen.recv().await, Some("closed"));
}

#[tokio::test]
async fn a_body_is_read_no_faster_than_it_is_taken() {
    const PIECE: usize = 64 << 10;
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = sent.clone();
    let server = serve(None, move |_| {
        let counter = counter.clone();
        body(stream::repeat_with(move || {
            counter.fetch_add(PIECE, Ordering::SeqCst);
            Bytes::from_static(&[b'x'; PIECE])
        }))
    });
    let mut body = transport(server.await.address).send(get()).await.unwrap().into_body();
    // Wait until the server has stopped: it makes no progress over many turns of the executor.
    let mut before = 0;
    for _ in 0..1000 {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let now = sent.load(Ordering::SeqCst);
        if now == before && now > 0 {
            break;
        }
        before = now;
    }
    assert!(before < 64 << 20, "{before} bytes were taken from a server that nobody listens to");
    let mut taken = 0;
    while taken < 2 * before {
        taken += body.next().await.unwrap().unwrap().len();
    }
}

#[tokio::test]
async fn a_body_that_ends_early_is_lost() {
    for answer in [
        &b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf"[..],
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-",
    ] {
        let error = failure(answer).await;
        assert_eq!(error.kind, NetworkErrorKind::Lost, "{:?} {error}", Bytes::from_static(answer));
    }
}

#[tokio::test]
async fn a_reset_in_the_middle_of_a_chunk_is_lost() {
    let address = raw(|mut stream| async move {
        read_head(&mut stream).await;
        let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel";
        stream.write_all(head).await.unwrap();
        stream.flush().await.unwrap();
        stream.set_zero_linger().unwrap();
    });
    let error = fetch(&transport(address.await)).await.unwrap_err();
    assert_eq!(error.kind, NetworkErrorKind::Lost, "{error}");
}

#[tokio::test]
async fn what_is_not_http_is_malformed() {
    for answer in [
        &b"SSH-2.0-OpenSSH_9.6\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n",
    ] {
        let error = failure(answer).await;
        assert_eq!(error.kind, NetworkErrorKind::Protocol, "{:?} {error}", Bytes::from_static(answer));
    }
}

#[tokio::test]
async fn where_nobody_listens_there_is_no_connection() {
    let address = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let error = fetch(&transport(address)).await.unwrap_err();
    assert_eq!(error.kind, NetworkErrorKind::Connect, "{error}");
    let config = Config::new("http://no-such-host.invalid").unwrap();
    let error = fetch(&HyperTransport::new(&config, TokioRuntime::new()).unwrap()).await.unwrap_err();
    assert_eq!(error.kind, NetworkErrorKind::Connect, "{error}");
}
