//! Ways to the server through others.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;

use cloudcoil_runtime::core::config::Proxy;

use super::map;
use crate::servers::{Cluster, in_memory};
use crate::stage::{Stage, scenarios};
use crate::world::op::maps;

scenarios! {
    SOCKETS {
        requests_go_through_a_proxy,
    }
}

/// Takes one connection, says what it was asked, and carries on what follows.
fn carry(listener: &TcpListener, tell: &mpsc::Sender<String>) -> std::io::Result<()> {
    let (mut client, _) = listener.accept()?;
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && client.read(&mut byte)? > 0 {
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut server = TcpStream::connect(head.split(' ').nth(1).unwrap_or_default())?;
    let _ = tell.send(head);
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
    let (mut there, mut back) = (server.try_clone()?, client.try_clone()?);
    std::thread::spawn(move || std::io::copy(&mut client, &mut there));
    std::io::copy(&mut server, &mut back).map(drop)
}

fn requests_go_through_a_proxy(stage: &Stage) {
    let cluster = Cluster::start(true, in_memory());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || while carry(&listener, &tell).is_ok() {});
    let mut config = cluster.config();
    config.proxy = Some(Proxy::parse(&format!("http://me:secret@{address}")).unwrap());
    let world = stage.executor().connect(&config, &stage.settings()).unwrap();
    world.must(maps().create(map("a", "1")).within("default"));
    let asked = told.recv().unwrap();
    assert!(asked.starts_with("CONNECT 127.0.0.1:"), "{asked}");
    assert!(asked.to_lowercase().contains("proxy-authorization: basic"), "{asked}");
}
