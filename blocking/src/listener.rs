//! HTTPS for webhooks, metrics and probes, on threads.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fmt, thread};

use bytes::Bytes;
use cloudcoil_runtime::blocking::Clock;
use cloudcoil_runtime::core::config::ConfigError;
use cloudcoil_runtime::core::listen::{
    ListenConfig, ListenError, ListenLimits, Peer, ServerConnection, ServerInput, ServerOutput, ServerTls, overdue,
};
use cloudcoil_runtime::core::machine::{Deadline, Machine as _, Outbox, Ticket};
use cloudcoil_runtime::core::{Now, Time};
use cloudcoil_runtime::listener::report;
use cloudcoil_tls::Serving;
use http::{Request, Response};
use rustls::StreamOwned;

/// Answers requests, each on a thread of its own. The body is whole, and the [`Peer`] is among the extensions. It may panic, which
/// is answered 500; when its time is up, what it answers later is not sent. It runs on to its end all the same, and counts
/// until then: while as many run as there may be connections, further requests are answered 503 at once.
pub type RequestHandler = Arc<dyn Fn(Request<Bytes>) -> Response<Bytes> + Send + Sync>;

/// Listens at an address, and has every request handled; each connection has a thread of its own.
///
/// ```no_run
/// use std::sync::Arc;
/// use std::time::Duration;
/// use cloudcoil_blocking::core::http::Response;
/// use cloudcoil_blocking::core::listen::ListenConfig;
///
/// let config = ListenConfig::new("0.0.0.0:8080".parse()?);
/// let probes = cloudcoil_blocking::listen(config, Arc::new(|_| Response::new("ok".into())))?;
/// cloudcoil_blocking::shutdown_signal();
/// probes.stop(Duration::from_secs(10));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`ListenError`] if the address is taken, or the certificate is none.
pub fn listen(config: ListenConfig, handler: RequestHandler) -> Result<ListenHandle, ListenError> {
    let tls = config.tls.as_ref().map(|tls| Serving::new(tls, &[b"http/1.1"])).transpose()?.map(Arc::new);
    let unusable = |error: io::Error| ListenError::bind(config.address, &error);
    let port = TcpListener::bind(config.address).map_err(unusable)?;
    let address = port.local_addr().map_err(unusable)?;
    let shared = Arc::new(Shared {
        handler,
        limits: config.limits,
        tls,
        clock: Clock::new(),
        state: Mutex::default(),
        changed: Condvar::new(),
    });
    let accepting = shared.clone();
    thread::Builder::new()
        .name("cloudcoil-listener".to_owned())
        .spawn(move || accepting.accept(&port))
        .map_err(unusable)?;
    Ok(ListenHandle { address, shared })
}

/// Something that listens. Dropping it closes everything at once.
pub struct ListenHandle {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl ListenHandle {
    /// Where it listens; the port is the one that was chosen if it was to be any.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes up another certificate, and other authorities of clients, for connections that are made from now on. Those that are open
    /// go on. Does nothing where connections are not encrypted.
    ///
    /// # Errors
    /// [`ConfigError::InvalidPem`], naming the certificate or key at fault; the ones before stay in use.
    pub fn reload(&self, tls: &ServerTls) -> Result<(), ConfigError> {
        self.shared.tls.as_ref().map_or(Ok(()), |current| current.reload(tls))
    }

    /// Listens no more, answers the requests that have begun, and closes each connection then; what is not over within `grace` is cut
    /// off. Blocks until all connections are closed. A handler that is cut off goes on to its end all the same.
    pub fn stop(self, grace: Duration) {
        self.shared.stop(self.address);
        let is_open = |state: &mut State| state.is_listening || !state.open.is_empty();
        let (state, _) = self
            .shared
            .changed
            .wait_timeout_while(self.shared.state(), grace, is_open)
            .unwrap_or_else(PoisonError::into_inner);
        drop(state);
        self.shared.close();
        loop {
            let waited = self.shared.changed.wait_timeout_while(self.shared.state(), AGAIN, is_open);
            let (state, timed) = waited.unwrap_or_else(PoisonError::into_inner);
            let is_listening = state.is_listening;
            drop(state);
            match timed.timed_out() {
                false => return,
                // It could not be woken before, such as for want of a descriptor.
                true if is_listening => wake(self.address),
                true => {}
            }
        }
    }
}

impl Drop for ListenHandle {
    fn drop(&mut self) {
        self.shared.stop(self.address);
        self.shared.close();
    }
}

impl fmt::Debug for ListenHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListenHandle").field("address", &self.address).finish_non_exhaustive()
    }
}

struct Shared {
    handler: RequestHandler,
    limits: ListenLimits,
    tls: Option<Arc<Serving>>,
    clock: Clock,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    is_listening: bool,
    is_stopping: bool,
    accepted: u64,
    open: BTreeMap<u64, Open>,
    /// How many handlers run, those among them that nobody waits for any more.
    handling: usize,
}

/// A connection, as others see it.
struct Open {
    tcp: Arc<TcpStream>,
    /// Its thread waits for a request that has not begun: that wait can be cut short.
    is_idle: bool,
    letters: Sender<Letter>,
}

impl Default for State {
    fn default() -> Self {
        Self { is_listening: true, is_stopping: false, accepted: 0, open: BTreeMap::new(), handling: 0 }
    }
}

/// What a connection's thread hears while a request is handled.
enum Letter {
    /// What a handler has answered; nothing if it has panicked.
    Handled(Ticket, Option<Response<Bytes>>),
    Close,
}

impl Shared {
    fn accept(self: &Arc<Self>, port: &TcpListener) {
        loop {
            let full = |state: &mut State| !state.is_stopping && state.open.len() >= self.limits.connections.max(1);
            drop(self.changed.wait_while(self.state(), full).unwrap_or_else(PoisonError::into_inner));
            let accepted = port.accept();
            if self.state().is_stopping {
                break;
            }
            if let Err(error) = accepted.and_then(|(tcp, address)| self.begin(tcp, address)) {
                tracing::warn!("a connection cannot be accepted: {error}");
                // Such as too many open files: it passes, but not at once.
                thread::sleep(PAUSE);
            }
        }
        self.state().is_listening = false;
        self.changed.notify_all();
    }

    fn begin(self: &Arc<Self>, tcp: TcpStream, address: SocketAddr) -> io::Result<()> {
        let (letters, letterbox) = channel();
        let tcp = Arc::new(tcp);
        let number = {
            let mut state = self.state();
            if state.is_stopping {
                return Ok(());
            }
            state.accepted += 1;
            let number = state.accepted;
            state.open.insert(number, Open { tcp: tcp.clone(), is_idle: true, letters: letters.clone() });
            number
        };
        let closing = Closing { shared: self.clone(), number };
        let connection = Connection { closing, tcp, letters, letterbox, peer: Peer { address, subject: None } };
        // If there is no thread, the connection closes with what was to run on it.
        thread::Builder::new().name("cloudcoil-connection".to_owned()).spawn(move || connection.serve()).map(drop)
    }

    /// Ends the accepting, and the waits for requests that have not begun.
    fn stop(&self, address: SocketAddr) {
        let mut state = self.state();
        if std::mem::replace(&mut state.is_stopping, true) {
            return;
        }
        for open in state.open.values().filter(|open| open.is_idle) {
            // One that is closed already needs no more.
            let _ = open.tcp.shutdown(Shutdown::Read);
        }
        drop(state);
        self.changed.notify_all();
        wake(address);
    }

    /// Closes whatever is open.
    fn close(&self) {
        let state = self.state();
        for open in state.open.values() {
            let _ = open.tcp.shutdown(Shutdown::Both);
            let _ = open.letters.send(Letter::Close);
        }
    }

    fn now(&self) -> Now {
        self.clock.now()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread that accepts is blocked until somebody connects.
fn wake(mut address: SocketAddr) {
    // What else there is to an address, such as the scope of one that is local to a link, stays.
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    let _ = TcpStream::connect_timeout(&address, Duration::from_secs(1));
}

/// A handler that runs.
struct Handling(Arc<Shared>);

impl Handling {
    /// `None` if there are too many already.
    fn begin(shared: &Arc<Shared>) -> Option<Self> {
        let mut state = shared.state();
        (state.handling < shared.limits.connections.max(1)).then(|| {
            state.handling += 1;
            Self(shared.clone())
        })
    }
}

impl Drop for Handling {
    fn drop(&mut self) {
        self.0.state().handling -= 1;
    }
}

/// Takes a connection out of those that are open.
struct Closing {
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for Closing {
    fn drop(&mut self) {
        let open = self.shared.state().open.remove(&self.number);
        if let Some(open) = open {
            let _ = open.tcp.shutdown(Shutdown::Both);
        }
        self.shared.changed.notify_all();
    }
}

/// A connection, as its own thread sees it.
struct Connection {
    closing: Closing,
    tcp: Arc<TcpStream>,
    letters: Sender<Letter>,
    letterbox: Receiver<Letter>,
    peer: Peer,
}

impl Connection {
    fn serve(mut self) {
        let shared = self.closing.shared.clone();
        // One that cannot be set is a connection that has closed.
        let _ = self.tcp.set_nodelay(true);
        let until = shared.now().mono + shared.limits.arrival;
        match self.encrypt(until) {
            Ok(stream) => self.exchange(&shared, stream),
            Err(error) => tracing::debug!("TLS handshake: {error}"),
        }
    }

    fn encrypt(&mut self, until: Time) -> io::Result<Stream> {
        let shared = self.closing.shared.clone();
        let timed = Timed { tcp: self.tcp.clone(), shared: shared.clone(), until };
        let Some(tls) = &shared.tls else { return Ok(Stream::Plain(timed)) };
        let connection = rustls::ServerConnection::new(tls.current()).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(connection, timed);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        self.peer.subject = cloudcoil_tls::subject(stream.conn.peer_certificates()).map(Arc::new);
        Ok(Stream::Tls(Box::new(stream)))
    }

    fn exchange(&self, shared: &Arc<Shared>, mut stream: Stream) {
        let mut machine = ServerConnection::new(shared.limits);
        let mut out = Outbox::new();
        let mut deadline = machine.step(shared.now(), None, &mut out);
        let mut is_told = false;
        while let Some(output) = out.pop() {
            deadline = self.tell(&mut machine, &mut is_told, &mut out).or(deadline);
            if !out.is_empty() {
                continue;
            }
            let until = deadline.map_or(Time::ZERO, |deadline| deadline.at);
            let Some(came) = self.perform(&mut stream, output, until) else { return };
            // Whoever stops has cut short the wait for what will not come any more.
            let _ = self.tell(&mut machine, &mut is_told, &mut out);
            if out.is_empty() {
                deadline = machine.step(shared.now(), came.in_time(), &mut out);
            }
        }
    }

    /// Tells the machine to stop, once that is so. Says before whether the wait that comes next may be cut short.
    fn tell(
        &self,
        machine: &mut ServerConnection,
        is_told: &mut bool,
        out: &mut Outbox<ServerOutput>,
    ) -> Option<Deadline> {
        let shared = &self.closing.shared;
        let is_stopping = {
            let mut state = shared.state();
            if let Some(open) = state.open.get_mut(&self.closing.number) {
                open.is_idle = machine.is_idle();
            }
            state.is_stopping
        };
        if !is_stopping || std::mem::replace(is_told, true) {
            return None;
        }
        machine.step(shared.now(), Some(ServerInput::Stopped), out)
    }

    /// Does what is asked for, until a time and no longer; `None` if the connection is to close.
    fn perform(&self, stream: &mut Stream, output: ServerOutput, until: Time) -> Option<Came> {
        let told = |ticket, sent: io::Result<()>| match sent {
            Ok(()) => Came::Input(ServerInput::Sent { ticket }),
            Err(error) => self.failed(&error, until),
        };
        Some(match output {
            ServerOutput::Receive { ticket } => match stream.receive(until) {
                Ok(bytes) => Came::Input(ServerInput::Received { ticket, bytes }),
                Err(error) => self.failed(&error, until),
            },
            ServerOutput::Send { ticket, bytes } => told(ticket, stream.send(&bytes, until)),
            ServerOutput::Finish { ticket } => told(ticket, stream.finish(until)),
            ServerOutput::Handle { ticket, request } => self.handle(ticket, request.into_inner(), until),
            ServerOutput::Close => return None,
        })
    }

    fn failed(&self, error: &io::Error, until: Time) -> Came {
        if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) {
            return self.overdue(until);
        }
        tracing::debug!("a connection broke: {error}");
        Came::Input(ServerInput::Broke)
    }

    /// Nothing has come in time. Clocks that do not agree about it are waited for.
    fn overdue(&self, until: Time) -> Came {
        loop {
            match until.since(self.closing.shared.now().mono) {
                Duration::ZERO => return Came::Nothing,
                left => thread::sleep(left),
            }
        }
    }

    fn handle(&self, ticket: Ticket, mut request: Request<Bytes>, until: Time) -> Came {
        let Some(running) = Handling::begin(&self.closing.shared) else {
            return Came::Input(ServerInput::Answered { ticket, response: overdue() });
        };
        request.extensions_mut().insert(self.peer.clone());
        let (handler, answer) = (self.closing.shared.handler.clone(), self.letters.clone());
        let handling = move || {
            let (method, path) = (request.method().clone(), request.uri().path().to_owned());
            let handled = catch_unwind(AssertUnwindSafe(|| handler(request)));
            // Before the answer, as the next request may come right after it.
            drop(running);
            // Nobody may be waiting any more.
            let _ = answer
                .send(Letter::Handled(ticket, handled.inspect_err(|panic| report(&method, &path, &**panic)).ok()));
        };
        if thread::Builder::new().name("cloudcoil-handler".to_owned()).spawn(handling).is_err() {
            return Came::Input(ServerInput::Panicked { ticket });
        }
        loop {
            let left = until.since(self.closing.shared.now().mono);
            return match self.letterbox.recv_timeout(left) {
                // One that is late answers what was answered before.
                Ok(Letter::Handled(late, _)) if late != ticket => continue,
                Ok(Letter::Handled(_, Some(response))) => Came::Input(ServerInput::Answered { ticket, response }),
                Ok(Letter::Handled(_, None)) => Came::Input(ServerInput::Panicked { ticket }),
                Ok(Letter::Close) | Err(RecvTimeoutError::Disconnected) => Came::Input(ServerInput::Broke),
                Err(RecvTimeoutError::Timeout) => self.overdue(until),
            };
        }
    }
}

/// What came of an effect.
enum Came {
    Input(ServerInput),
    /// Nothing, and its time is up.
    Nothing,
}

impl Came {
    fn in_time(self) -> Option<ServerInput> {
        match self {
            Self::Input(input) => Some(input),
            Self::Nothing => None,
        }
    }
}

enum Stream {
    Plain(Timed),
    Tls(Box<StreamOwned<rustls::ServerConnection, Timed>>),
}

impl Stream {
    fn until(&mut self, until: Time) {
        match self {
            Self::Plain(timed) => timed.until = until,
            Self::Tls(tls) => tls.sock.until = until,
        }
    }

    fn receive(&mut self, until: Time) -> io::Result<Bytes> {
        self.until(until);
        let mut bytes = vec![0; PIECE];
        let length = match self {
            Self::Plain(timed) => timed.read(&mut bytes),
            Self::Tls(tls) => tls.read(&mut bytes),
        }?;
        bytes.truncate(length);
        Ok(bytes.into())
    }

    fn send(&mut self, bytes: &[u8], until: Time) -> io::Result<()> {
        self.until(until);
        match self {
            Self::Plain(timed) => timed.write_all(bytes),
            Self::Tls(tls) => tls.write_all(bytes).and_then(|()| tls.flush()),
        }
    }

    /// Tells the other side that nothing more is sent.
    fn finish(&mut self, until: Time) -> io::Result<()> {
        self.until(until);
        let timed = match self {
            Self::Plain(timed) => timed,
            Self::Tls(tls) => {
                tls.conn.send_close_notify();
                tls.flush()?;
                &mut tls.sock
            }
        };
        timed.tcp.shutdown(Shutdown::Write)
    }
}

/// A connection that is read and written until a time, however little comes each time.
struct Timed {
    tcp: Arc<TcpStream>,
    shared: Arc<Shared>,
    until: Time,
}

impl Timed {
    fn left(&self) -> io::Result<Option<Duration>> {
        match self.until.since(self.shared.now().mono) {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(Some(left)),
        }
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.tcp.set_read_timeout(self.left()?)?;
            match (&*self.tcp).read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            self.tcp.set_write_timeout(self.left()?)?;
            match (&*self.tcp).write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        (&*self.tcp).flush()
    }
}

/// How many bytes are received at once, at the most.
const PIECE: usize = 16 << 10;

/// How long the thread that accepts has to end, until it is woken once more.
const AGAIN: Duration = Duration::from_millis(100);

/// How long nothing is accepted after that has failed.
const PAUSE: Duration = Duration::from_millis(50);
