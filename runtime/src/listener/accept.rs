//! The loop that accepts connections, and the tasks that serve them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use cloudcoil_core::listen::ListenLimits;
use futures_channel::oneshot;
use futures_util::future::{BoxFuture, Either, pending, select};
use futures_util::stream::{FuturesUnordered, StreamExt as _};

use super::connection::Connection;
use super::{Handler, ListenHandle, Reload};
use crate::Runtime;
use crate::clock::Clock;
use crate::latch::{Latch, Opener, latch};

/// A port, and how the connections to it are served: what an adapter supplies to [`listen`].
pub trait Accept: Send + Sync + 'static {
    /// A connection that is not encrypted yet.
    type Stream: Send + 'static;

    /// Takes the next connection. Dropping the future takes none.
    fn accept(&self) -> BoxFuture<'_, io::Result<(Self::Stream, SocketAddr)>>;

    /// Encrypts a connection if it is to be, and serves it to its end. Dropping the future closes it.
    fn serve(&self, stream: Self::Stream, connection: Connection) -> BoxFuture<'static, ()>;
}

/// What the connections to a port have in common.
#[expect(clippy::exhaustive_structs, reason = "an adapter has to say all of it")]
pub struct Service {
    /// What tasks run on.
    pub runtime: Arc<dyn Runtime>,
    /// Answers the requests.
    pub handler: Handler,
    /// What clients may ask for.
    pub limits: ListenLimits,
}

/// Accepts and serves until the handle is stopped or dropped. The port is closed by then.
pub fn listen(port: impl Accept, address: SocketAddr, service: Service, reload: Option<Reload>) -> ListenHandle {
    let (stopping, is_stopping) = latch();
    let (closing, is_closing) = latch();
    let (ending, ended) = latch();
    let runtime = service.runtime.clone();
    let serving = Serving { service, is_stopping, is_closing };
    runtime.spawn(Box::pin(async move {
        serving.run(port).await;
        drop(ending);
    }));
    let clock = Clock::new(runtime);
    ListenHandle { address, reload, running: Running { clock, stopping, ended, _closing: closing } }
}

/// What accepts and serves.
pub(super) struct Running {
    clock: Clock,
    stopping: Opener,
    ended: Latch,
    // Whatever is open closes when this is dropped.
    _closing: Opener,
}

impl Running {
    pub(super) async fn stop(mut self, grace: Duration) {
        self.stopping.open();
        self.ended.opened_until(&self.clock, self.clock.now().mono + grace).await;
        let ended = self.ended.clone();
        drop(self);
        ended.opened().await;
    }
}

struct Serving {
    service: Service,
    is_stopping: Latch,
    is_closing: Latch,
}

/// What the loop waits for.
enum Event<S> {
    Accepted(io::Result<(S, SocketAddr)>),
    /// A connection has closed.
    Closed,
    Stopped,
}

impl Serving {
    async fn run<A: Accept>(self, port: A) {
        let mut open = FuturesUnordered::new();
        loop {
            match self.next(&port, &mut open).await {
                Event::Accepted(Ok((stream, address))) => open.push(self.serve(&port, stream, address)),
                Event::Accepted(Err(error)) => {
                    tracing::warn!("a connection cannot be accepted: {error}");
                    // Such as too many open files: it passes, but not at once.
                    let after = self.service.runtime.now().mono + PAUSE;
                    select(self.service.runtime.sleep_until(after), std::pin::pin!(self.is_stopping.opened())).await;
                }
                Event::Closed => {}
                Event::Stopped => break,
            }
        }
        drop(port);
        while open.next().await.is_some() {}
    }

    async fn next<A: Accept>(&self, port: &A, open: &mut FuturesUnordered<oneshot::Receiver<()>>) -> Event<A::Stream> {
        if self.is_stopping.is_open() {
            return Event::Stopped;
        }
        let is_full = open.len() >= self.service.limits.connections.max(1);
        let accepted: BoxFuture<'_, _> = if is_full { Box::pin(pending()) } else { port.accept() };
        let closed = async {
            match open.is_empty() {
                true => pending().await,
                false => open.next().await,
            }
        };
        let (closed, stopped) = (std::pin::pin!(closed), std::pin::pin!(self.is_stopping.opened()));
        match select(select(accepted, closed), stopped).await {
            Either::Left((Either::Left((accepted, _)), _)) => Event::Accepted(accepted),
            Either::Left((Either::Right(_), _)) => Event::Closed,
            Either::Right(_) => Event::Stopped,
        }
    }

    /// Serves a connection in a task of its own; its end is heard of by what is returned.
    fn serve<A: Accept>(&self, port: &A, stream: A::Stream, address: SocketAddr) -> oneshot::Receiver<()> {
        let (ending, ended) = oneshot::channel();
        let Service { runtime, handler, limits } = &self.service;
        let connection = Connection::new(runtime.clone(), handler.clone(), *limits, address, self.is_stopping.clone());
        let (served, is_closing) = (port.serve(stream, connection), self.is_closing.clone());
        runtime.spawn(Box::pin(async move {
            select(served, std::pin::pin!(is_closing.opened())).await;
            drop::<oneshot::Sender<()>>(ending);
        }));
        ended
    }
}

/// How long nothing is accepted after that has failed.
const PAUSE: Duration = Duration::from_millis(50);
