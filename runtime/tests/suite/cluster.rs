//! The in-memory API server in virtual time, on the other end of a line that can break.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use cloudcoil_apiserver::{ApiServer, ServerConfig, ServerInput};
use cloudcoil_core::{HttpEvent, Machine as _, NetworkError, NetworkErrorKind, Outbox, Ticket, Tickets};
use cloudcoil_runtime::{Body, Client, Runtime as _, Transport};
use futures_util::Stream;
use futures_util::future::{BoxFuture, poll_fn};
use http::{Request, Response};

use crate::common::Virtual;

#[derive(Clone)]
pub(crate) struct Cluster {
    runtime: Virtual,
    state: Arc<Mutex<State>>,
}

struct State {
    server: ApiServer,
    tickets: Tickets,
    out: Outbox<HttpEvent>,
    open: BTreeMap<Ticket, Line>,
    ticker: Option<Waker>,
    written: Vec<String>,
    unreachable: bool,
    interference: VecDeque<(&'static str, Request<Bytes>)>,
}

#[derive(Default)]
struct Line {
    events: VecDeque<HttpEvent>,
    waker: Option<Waker>,
    is_watch: bool,
}

impl Cluster {
    pub(crate) fn new(runtime: &Virtual) -> Self {
        let state = State {
            server: ApiServer::new(ServerConfig::default(), runtime.now()),
            tickets: Tickets::new(0),
            out: Outbox::new(),
            open: BTreeMap::new(),
            ticker: None,
            written: Vec::new(),
            unreachable: false,
            interference: VecDeque::new(),
        };
        let cluster = Self { runtime: runtime.clone(), state: Arc::new(Mutex::new(state)) };
        runtime.spawn(Box::pin(cluster.clone().tick()));
        cluster
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(Arc::new(self.runtime.clone()), Arc::new(self.clone()))
    }

    /// The requests that were no reads since the last call, as `METHOD path`.
    pub(crate) fn written(&self) -> Vec<String> {
        std::mem::take(&mut self.state().written)
    }

    /// Breaks every watch, as a server that is restarted does.
    pub(crate) fn break_watches(&self) {
        let mut state = self.state();
        let watches: Vec<Ticket> =
            state.open.iter().filter(|(_, line)| line.is_watch).map(|(ticket, _)| *ticket).collect();
        for ticket in watches {
            let result = Err(NetworkError::new(NetworkErrorKind::Lost, "reset"));
            state.deliver(HttpEvent::Closed { ticket, result });
            state.step(&self.runtime, Some(ServerInput::Cancelled { ticket }));
        }
    }

    /// Whether new requests fail to connect.
    pub(crate) fn set_unreachable(&self, unreachable: bool) {
        self.state().unreachable = unreachable;
    }

    /// Has somebody else send a request just before the next one with this method arrives.
    pub(crate) fn interfere(&self, before: &'static str, request: Request<Bytes>) {
        self.state().interference.push_back((before, request));
    }

    /// How many watches are open.
    pub(crate) fn watches(&self) -> usize {
        self.state().open.values().filter(|line| line.is_watch).count()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Fires the server's timers.
    async fn tick(self) {
        loop {
            let due = poll_fn(|context| {
                let mut state = self.state();
                state.ticker = Some(context.waker().clone());
                state.server.deadline().map_or(Poll::Pending, Poll::Ready)
            });
            let due = due.await;
            let sleep = self.runtime.sleep_until(due.at);
            let moved = poll_fn(|_| match self.state().server.deadline() {
                Some(now) if now == due => Poll::Pending,
                _ => Poll::Ready(()),
            });
            futures_util::future::select(sleep, moved).await;
            self.state().step(&self.runtime, None);
        }
    }
}

impl State {
    fn step(&mut self, runtime: &Virtual, input: Option<ServerInput>) {
        let _ = self.server.step(runtime.now(), input, &mut self.out);
        while let Some(event) = self.out.pop() {
            self.deliver(event);
        }
        self.ticker.take().into_iter().for_each(Waker::wake);
    }

    fn deliver(&mut self, event: HttpEvent) {
        if let Some(line) = self.open.get_mut(&event.ticket()) {
            line.events.push_back(event);
            line.waker.take().into_iter().for_each(Waker::wake);
        }
    }
}

impl Transport for Cluster {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>, NetworkError>> {
        let mut state = self.state();
        if state.unreachable {
            return Box::pin(async { Err(NetworkError::new(NetworkErrorKind::Connect, "refused")) });
        }
        if request.method() != "GET" {
            let line = format!("{} {}", request.method(), request.uri().path());
            state.written.push(line);
        }
        while let Some((_, other)) = state.interference.pop_front_if(|(before, _)| request.method() == *before) {
            let ticket = state.tickets.issue();
            state.step(&self.runtime, Some(ServerInput::Requested { ticket, request: other.into() }));
        }
        let ticket = state.tickets.issue();
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        state.open.insert(ticket, Line { is_watch, ..Line::default() });
        let input = ServerInput::Requested { ticket, request: request.into() };
        state.step(&self.runtime, Some(input));
        let events = Events { cluster: self.clone(), ticket };
        Box::pin(async move {
            match poll_fn(|context| events.poll_event(context)).await {
                HttpEvent::Responded { status, headers, .. } => {
                    let mut response = Response::new(Box::pin(events) as Body);
                    (*response.status_mut(), *response.headers_mut()) = (status, headers);
                    Ok(response)
                }
                HttpEvent::Closed { result: Err(error), .. } => Err(error),
                event => panic!("the server begins with {event:?}"),
            }
        })
    }
}

/// The events of one exchange; dropping it tells the server.
struct Events {
    cluster: Cluster,
    ticket: Ticket,
}

impl Events {
    fn poll_event(&self, context: &Context<'_>) -> Poll<HttpEvent> {
        let mut state = self.cluster.state();
        let line = state.open.get_mut(&self.ticket).unwrap();
        match line.events.pop_front() {
            Some(event) => Poll::Ready(event),
            None => {
                line.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Stream for Events {
    type Item = Result<Bytes, NetworkError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(match ready!(self.poll_event(context)) {
            HttpEvent::Received { bytes, .. } => Some(Ok(bytes)),
            HttpEvent::Closed { result, .. } => result.err().map(Err),
            HttpEvent::Responded { .. } => panic!("a second head"),
        })
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let mut state = self.cluster.state();
        state.open.remove(&self.ticket);
        state.step(&self.cluster.runtime, Some(ServerInput::Cancelled { ticket: self.ticket }));
    }
}
