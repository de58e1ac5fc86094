//! Servers and proxies whose connections a test handles byte by byte.

use std::io::{self, Read, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

/// Gives every connection to `serve`, on a thread of its own, with its number from 0. It listens as long as the tests run.
pub(crate) fn listen(serve: impl Fn(usize, TcpStream) -> io::Result<()> + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port left");
    let address = listener.local_addr().expect("it has an address");
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            let serve = serve.clone();
            // A client that has gone is a client that has heard enough.
            thread::spawn(move || drop(serve(number, stream)));
        }
    });
    address
}

/// What comes up to an empty line.
pub(crate) fn head(stream: &mut impl Read) -> io::Result<String> {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        text.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Carries on what either side says, until one of them has ended.
pub(crate) fn tunnel(client: &TcpStream, server: SocketAddr) -> io::Result<()> {
    let server = TcpStream::connect(server)?;
    server.set_nodelay(true)?;
    let (from, to) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || carry(&from, &to));
    carry(&server, client)
}

/// The same as `io::copy` without the short cut through the kernel, which some systems that stand in for one do not master.
fn carry(mut from: &TcpStream, mut to: &TcpStream) -> io::Result<()> {
    let mut piece = [0; 16 << 10];
    loop {
        match from.read(&mut piece)? {
            0 => return to.shutdown(Shutdown::Write),
            length => to.write_all(&piece[..length])?,
        }
    }
}
