//! A server that plays a script and an executor that jumps through time, both on one thread.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bytes::Bytes;
use cloudcoil_core::{NetworkError, NetworkErrorKind, Now, Time};
use cloudcoil_runtime::{Body, Client, Runtime, Transport};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, Stream};
use http::{HeaderMap, Request, Response};
use serde_json::Value;

/// Runs tasks until nothing moves, then jumps to the next sleep that ends.
#[derive(Clone, Default)]
pub(crate) struct Virtual {
    state: Arc<Mutex<State>>,
    seeds: Arc<AtomicU64>,
}

#[derive(Default)]
struct State {
    now: Now,
    sleeps: BTreeMap<(Time, u64), Waker>,
    slept: u64,
    spawned: VecDeque<BoxFuture<'static, ()>>,
}

impl Virtual {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Runs `main`, and whatever it spawns, until it ends.
    ///
    /// # Panics
    /// When nothing can happen any more, or when too much happens at one instant.
    pub(crate) fn run<T>(&self, main: impl Future<Output = T>) -> T {
        let mut main = Box::pin(main);
        let mut tasks: Vec<Pin<Box<dyn Future<Output = ()> + Send>>> = Vec::new();
        let flag = Arc::new(Flag::default());
        let waker = Waker::from(flag.clone());
        let mut context = Context::from_waker(&waker);
        let mut rounds = 0;
        loop {
            flag.0.store(0, Ordering::SeqCst);
            if let Poll::Ready(value) = main.poll_unpin(&mut context) {
                return value;
            }
            tasks.retain_mut(|task| task.poll_unpin(&mut context).is_pending());
            let spawned: Vec<_> = self.state.lock().unwrap().spawned.drain(..).collect();
            let idle = spawned.is_empty() && flag.0.load(Ordering::SeqCst) == 0;
            tasks.extend(spawned);
            rounds = if idle { 0 } else { rounds + 1 };
            assert!(rounds < 1_000_000, "time stands still");
            if idle {
                self.jump();
            }
        }
    }

    fn jump(&self) {
        let mut state = self.state.lock().unwrap();
        let ((at, _), waker) = state.sleeps.pop_first().expect("nothing can happen any more");
        state.now = state.now.after(at.since(state.now.mono));
        waker.wake();
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.state.lock().unwrap().now.mono.since(Time::ZERO)
    }

    pub(crate) async fn sleep(&self, duration: Duration) {
        self.sleep_until(self.now().mono + duration).await;
    }
}

impl Runtime for Virtual {
    fn now(&self) -> Now {
        self.state.lock().unwrap().now
    }

    fn sleep_until(&self, at: Time) -> BoxFuture<'static, ()> {
        Box::pin(Sleep { runtime: self.clone(), at, id: None })
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.state.lock().unwrap().spawned.push_back(task);
    }

    fn seed(&self) -> u64 {
        self.seeds.fetch_add(1, Ordering::Relaxed)
    }
}

struct Sleep {
    runtime: Virtual,
    at: Time,
    id: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut state = this.runtime.state.lock().unwrap();
        if state.now.mono >= this.at {
            return Poll::Ready(());
        }
        let id = *this.id.get_or_insert_with(|| {
            state.slept += 1;
            state.slept
        });
        state.sleeps.insert((this.at, id), context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.runtime.state.lock().unwrap().sleeps.remove(&(self.at, id));
        }
    }
}

#[derive(Default)]
struct Flag(AtomicUsize);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// What the server does with one request.
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) pieces: Vec<Piece>,
}

/// What comes of a body, in order. A body without an [`End`](Piece::End) stays open.
pub(crate) enum Piece {
    Bytes(Bytes),
    Wait(Duration),
    Break,
    End,
}

pub(crate) fn json(code: u16, value: Value) -> Reply {
    let body = serde_json::to_vec(&value).unwrap().into();
    Reply { code, headers: Vec::new(), pieces: vec![Piece::Bytes(body), Piece::End] }
}

pub(crate) fn text(code: u16, body: &str) -> Reply {
    Reply { code, headers: Vec::new(), pieces: vec![Piece::Bytes(Bytes::from(body.to_owned())), Piece::End] }
}

/// A watch of these events; without an [`Piece::End`] after them it stays open.
pub(crate) fn events(events: impl IntoIterator<Item = Value>) -> Reply {
    let lines = events.into_iter().map(|event| Piece::Bytes(format!("{event}\n").into()));
    Reply { code: 200, headers: Vec::new(), pieces: lines.collect() }
}

/// A request as the server saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) uri: String,
    pub content_type: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

type Handler = Box<dyn FnMut(&Seen) -> Option<Reply> + Send>;

/// Answers requests with what its script says; a request that it has no reply for cannot connect.
pub(crate) struct Server {
    runtime: Virtual,
    handler: Mutex<Handler>,
    seen: Mutex<Vec<Seen>>,
    open: Arc<AtomicUsize>,
    polled: Arc<AtomicUsize>,
}

impl Server {
    pub(crate) fn new(runtime: &Virtual, handler: impl FnMut(&Seen) -> Option<Reply> + Send + 'static) -> Arc<Self> {
        let handler: Mutex<Handler> = Mutex::new(Box::new(handler));
        let (open, polled) = Default::default();
        Arc::new(Self { runtime: runtime.clone(), handler, seen: Mutex::default(), open, polled })
    }

    /// One reply after the other, whatever is asked.
    pub(crate) fn script(runtime: &Virtual, replies: impl IntoIterator<Item = Reply>) -> Arc<Self> {
        let mut replies: VecDeque<Reply> = replies.into_iter().collect();
        Self::new(runtime, move |_| replies.pop_front())
    }

    pub(crate) fn client(self: &Arc<Self>) -> Client {
        Client::new(Arc::new(self.runtime.clone()), Arc::new(Line(self.clone()))).with_default_namespace("ns")
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn uris(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.uri).collect()
    }

    /// How many bodies are held open.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// How many pieces of bodies were taken.
    pub(crate) fn polled(&self) -> usize {
        self.polled.load(Ordering::SeqCst)
    }
}

struct Line(Arc<Server>);

impl Transport for Line {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>, NetworkError>> {
        let content_type = request.headers().get("content-type").map_or("", |value| value.to_str().unwrap());
        let seen = Seen {
            method: request.method().to_string(),
            uri: request.uri().to_string(),
            content_type: content_type.to_owned(),
            headers: request.headers().clone(),
            body: serde_json::from_slice(request.body()).unwrap_or_default(),
        };
        self.0.seen.lock().unwrap().push(seen.clone());
        let reply = (self.0.handler.lock().unwrap())(&seen);
        let Some(Reply { code, headers, pieces }) = reply else {
            let error = NetworkError::new(NetworkErrorKind::Connect, "refused");
            return Box::pin(async { Err(error) });
        };
        let (open, polled) = (self.0.open.clone(), self.0.polled.clone());
        open.fetch_add(1, Ordering::SeqCst);
        let body = Pieces { runtime: self.0.runtime.clone(), pieces: pieces.into(), waiting: None, open, polled };
        let mut response = Response::builder().status(code);
        for (name, value) in headers {
            response = response.header(name, value);
        }
        Box::pin(async move { Ok(response.body(Box::pin(body) as Body).unwrap()) })
    }
}

struct Pieces {
    runtime: Virtual,
    pieces: VecDeque<Piece>,
    waiting: Option<BoxFuture<'static, ()>>,
    open: Arc<AtomicUsize>,
    polled: Arc<AtomicUsize>,
}

impl Stream for Pieces {
    type Item = Result<Bytes, NetworkError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(waiting) = &mut self.waiting {
                std::task::ready!(waiting.poll_unpin(context));
                self.waiting = None;
            }
            match self.pieces.pop_front() {
                Some(Piece::Wait(duration)) => {
                    let until = self.runtime.now().mono + duration;
                    self.waiting = Some(self.runtime.sleep_until(until));
                }
                Some(Piece::Bytes(bytes)) => {
                    self.polled.fetch_add(1, Ordering::SeqCst);
                    return Poll::Ready(Some(Ok(bytes)));
                }
                Some(Piece::Break) => {
                    return Poll::Ready(Some(Err(NetworkError::new(NetworkErrorKind::Lost, "reset"))));
                }
                Some(Piece::End) => return Poll::Ready(None),
                None => return Poll::Pending,
            }
        }
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::SeqCst);
    }
}
