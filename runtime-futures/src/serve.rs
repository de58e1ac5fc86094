//! HTTPS for webhooks, metrics and probes, over HTTP/1.1.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use async_io::Async;
use bytes::Bytes;
use cloudcoil_core::listen::{ListenConfig, ListenError};
use cloudcoil_runtime::Runtime;
use cloudcoil_runtime::listener::{self, Accept, Connection, Handler, ListenHandle, Reload, Service, Wire};
use cloudcoil_tls::Serving;
use futures_rustls::TlsAcceptor;
use futures_rustls::server::TlsStream;
use futures_util::future::BoxFuture;
use futures_util::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::Io;

/// Listens, and serves on an executor. See [`Listener::listen`](cloudcoil_runtime::Listener::listen).
///
/// # Errors
/// [`ListenError`] if the address is taken, or the certificate is none.
pub fn listen(runtime: Arc<dyn Runtime>, config: &ListenConfig, handler: Handler) -> Result<ListenHandle, ListenError> {
    let tls = config.tls.as_ref().map(|tls| Serving::new(tls, &[b"http/1.1"])).transpose()?.map(Arc::new);
    let (tcp, address) = bind(config.address).map_err(|error| ListenError::bind(config.address, &error))?;
    let reload = tls.clone().map(|tls| Box::new(move |with: &_| tls.reload(with)) as Reload);
    Ok(listener::listen(Port { tcp, tls }, address, Service { runtime, handler, limits: config.limits }, reload))
}

fn bind(address: SocketAddr) -> io::Result<(Async<TcpListener>, SocketAddr)> {
    let tcp = Async::<TcpListener>::bind(address)?;
    let address = tcp.get_ref().local_addr()?;
    Ok((tcp, address))
}

struct Port {
    tcp: Async<TcpListener>,
    tls: Option<Arc<Serving>>,
}

impl Accept for Port {
    type Stream = Async<TcpStream>;

    fn accept(&self) -> BoxFuture<'_, io::Result<(Async<TcpStream>, SocketAddr)>> {
        Box::pin(self.tcp.accept())
    }

    fn serve(&self, tcp: Async<TcpStream>, connection: Connection) -> BoxFuture<'static, ()> {
        Box::pin(serve(self.tls.clone(), tcp, connection))
    }
}

async fn serve(tls: Option<Arc<Serving>>, tcp: Async<TcpStream>, connection: Connection) {
    // One that cannot be set is a connection that has closed.
    let _ = tcp.get_ref().set_nodelay(true);
    let Some(tls) = tls else { return connection.serve_http1(Stream { io: tcp, tcp: Async::get_ref }).await };
    match connection.shake(TlsAcceptor::from(tls.current()).accept(tcp)).await {
        Some(Ok(stream)) => {
            let subject = cloudcoil_tls::subject(stream.get_ref().1.peer_certificates());
            let stream = Stream { io: stream, tcp: |tls: &TlsStream<Async<TcpStream>>| tls.get_ref().0.get_ref() };
            connection.with_subject(subject).serve_http1(stream).await;
        }
        Some(Err(error)) => tracing::debug!("TLS handshake: {error}"),
        None => {}
    }
}

/// A connection, encrypted or not, and what is under it.
struct Stream<T> {
    io: T,
    tcp: fn(&T) -> &TcpStream,
}

impl<T: Io> Wire for Stream<T> {
    fn receive(&mut self) -> BoxFuture<'_, io::Result<Bytes>> {
        Box::pin(async {
            let mut bytes = vec![0; PIECE];
            let length = self.io.read(&mut bytes).await?;
            bytes.truncate(length);
            Ok(bytes.into())
        })
    }

    fn send(&mut self, bytes: Bytes) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(async move {
            self.io.write_all(&bytes).await?;
            self.io.flush().await
        })
    }

    fn finish(&mut self) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(async {
            self.io.close().await?;
            // Closing a stream of this kind only flushes it.
            (self.tcp)(&self.io).shutdown(Shutdown::Write)
        })
    }
}

/// How many bytes are received at once, at the most.
const PIECE: usize = 16 << 10;
