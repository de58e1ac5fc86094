use std::net::TcpStream;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use cloudcoil_blocking::core::http::Response;
use cloudcoil_blocking::core::listen::{ListenConfig, ListenLimits};
use cloudcoil_blocking::listen;

use crate::common::{read_head, write};

/// The status of an answer; its body is read too.
fn ask(stream: &mut TcpStream, path: &str) -> String {
    write(stream, format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes());
    let head = read_head(stream).unwrap().to_lowercase();
    let (_, rest) = head.split_once("\r\ncontent-length: ").unwrap();
    let length: usize = rest.split_once('\r').unwrap().0.parse().unwrap();
    std::io::Read::read_exact(stream, &mut vec![0; length]).unwrap();
    head.split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn handlers_that_are_stuck_are_no_more_than_there_may_be_connections() {
    let (release, released) = mpsc::channel::<()>();
    let (call, calls) = mpsc::channel();
    let (released, call) = (Mutex::new(released), Mutex::new(call));
    let limits = ListenLimits { connections: 1, handler: Duration::from_millis(100), ..ListenLimits::default() };
    let config = ListenConfig { limits, ..ListenConfig::new("127.0.0.1:0".parse().unwrap()) };
    let handle = listen(
        config,
        Arc::new(move |request| {
            call.lock().unwrap().send(request.uri().path().to_owned()).unwrap();
            if request.uri().path() == "/stuck" {
                released.lock().unwrap().recv().unwrap();
            }
            Response::new("ok".into())
        }),
    )
    .unwrap();
    let mut stream = TcpStream::connect(handle.address()).unwrap();
    assert_eq!(ask(&mut stream, "/stuck"), "503");
    for _ in 0..3 {
        assert_eq!(ask(&mut stream, "/more"), "503");
    }
    assert_eq!(calls.try_iter().collect::<Vec<_>>(), ["/stuck"]);
    release.send(()).unwrap();
    while ask(&mut stream, "/more") != "200" {
        thread::yield_now();
    }
    // One that has answered does not count any more when the next request comes.
    for _ in 0..50 {
        assert_eq!(ask(&mut stream, "/more"), "200");
    }
    drop(stream);
    handle.stop(Duration::ZERO);
}
