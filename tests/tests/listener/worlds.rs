//! The adapters, as those who listen.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cloudcoil_runtime::Listener;
use cloudcoil_runtime::core::config::ConfigError;
use cloudcoil_runtime::core::listen::{ListenConfig, ListenError, ServerTls};
use cloudcoil_runtime::listener::{Handler, ListenHandle};
use futures_executor::block_on;
use futures_util::future::BoxFuture;
use http::{Request, Response};

/// An adapter.
pub(crate) trait World {
    fn listen(config: ListenConfig, handler: Handler) -> Result<Server, ListenError>;
}

/// What listens; it ends when this is dropped.
pub(crate) struct Server {
    handle: Handle,
    /// Ends last.
    _executor: Option<tokio::runtime::Runtime>,
}

enum Handle {
    Async(ListenHandle),
    Threads(cloudcoil_blocking::ListenHandle),
}

impl Server {
    pub(crate) fn address(&self) -> SocketAddr {
        match &self.handle {
            Handle::Async(handle) => handle.address(),
            Handle::Threads(handle) => handle.address(),
        }
    }

    pub(crate) fn reload(&self, tls: &ServerTls) -> Result<(), ConfigError> {
        match &self.handle {
            Handle::Async(handle) => handle.reload(tls),
            Handle::Threads(handle) => handle.reload(tls),
        }
    }

    pub(crate) fn stop(self, grace: Duration) {
        match self.handle {
            Handle::Async(handle) => match &self._executor {
                Some(tokio) => tokio.block_on(handle.stop(grace)),
                None => block_on(handle.stop(grace)),
            },
            Handle::Threads(handle) => handle.stop(grace),
        }
    }
}

pub(crate) struct Tokio;

impl World for Tokio {
    fn listen(config: ListenConfig, handler: Handler) -> Result<Server, ListenError> {
        let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let handle = tokio.block_on(async { cloudcoil_tokio::runtime().listen(config, handler).await })?;
        Ok(Server { handle: Handle::Async(handle), _executor: Some(tokio) })
    }
}

pub(crate) struct AsyncStd;

impl World for AsyncStd {
    fn listen(config: ListenConfig, handler: Handler) -> Result<Server, ListenError> {
        started(block_on(cloudcoil_async_std::runtime().listen(config, handler))?)
    }
}

pub(crate) struct Smol;

impl World for Smol {
    fn listen(config: ListenConfig, handler: Handler) -> Result<Server, ListenError> {
        started(block_on(cloudcoil_smol::runtime().listen(config, handler))?)
    }
}

fn started(handle: ListenHandle) -> Result<Server, ListenError> {
    Ok(Server { handle: Handle::Async(handle), _executor: None })
}

pub(crate) struct Threads;

impl World for Threads {
    fn listen(config: ListenConfig, handler: Handler) -> Result<Server, ListenError> {
        let handler = Arc::new(move |request| block_on(handler(request)));
        let handle = cloudcoil_blocking::listen(config, handler)?;
        Ok(Server { handle: Handle::Threads(handle), _executor: None })
    }
}

/// A handler of what answers at once.
pub(crate) fn handler(answer: impl Fn(Request<Bytes>) -> Response<Bytes> + Send + Sync + 'static) -> Handler {
    let answer = Arc::new(answer);
    Arc::new(move |request| -> BoxFuture<'static, Response<Bytes>> {
        let answer = answer.clone();
        Box::pin(async move { answer(request) })
    })
}

/// A handler that says what it was asked: the method, the target and the body.
pub(crate) fn echo() -> Handler {
    handler(|request| {
        let (head, body) = request.into_parts();
        let mut text = format!("{} {} ", head.method, head.uri).into_bytes();
        text.extend_from_slice(&body);
        Response::new(text.into())
    })
}

pub(crate) fn local() -> ListenConfig {
    ListenConfig::new("127.0.0.1:0".parse().unwrap())
}
