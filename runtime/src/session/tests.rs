use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use cloudcoil_core::config::{Auth, ConfigSource, Environment, Identity, ReadError, Secret};
use cloudcoil_core::credentials::{Command, Ending, Finished, RunError};
use cloudcoil_core::{NetworkErrorKind, Now, Time};
use futures_channel::oneshot;
use futures_util::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use http::{StatusCode, header};

use super::*;

type Answer = Result<Response<Body>, NetworkError>;

/// A machine whose clock, server, files and programs are the test's.
#[derive(Default)]
struct World {
    now: Mutex<Now>,
    sleepers: Mutex<Vec<(Time, oneshot::Sender<()>)>>,
    runs: Mutex<Vec<oneshot::Sender<Result<Finished, RunError>>>>,
    file: Mutex<Option<&'static str>>,
    requests: Mutex<Vec<Request<Bytes>>>,
    /// How the last of them was to be connected.
    tls: Mutex<Arc<Tls>>,
    /// What the server takes; everything else is answered 401.
    token: Mutex<&'static str>,
    answer: Mutex<Option<Answer>>,
    /// What comes of every request.
    always: Mutex<Option<NetworkError>>,
}

impl Runtime for World {
    fn now(&self) -> Now {
        *self.now.lock().unwrap()
    }

    fn sleep_until(&self, at: Time) -> BoxFuture<'static, ()> {
        let (sender, woken) = oneshot::channel();
        self.sleepers.lock().unwrap().push((at, sender));
        Box::pin(woken.map(drop))
    }

    fn spawn(&self, _: BoxFuture<'static, ()>) {
        panic!("a session has no tasks of its own");
    }

    fn seed(&self) -> u64 {
        0
    }
}

impl Carrier for World {
    fn carry(&self, request: Request<Bytes>, tls: Arc<Tls>) -> BoxFuture<'static, Answer> {
        *self.tls.lock().unwrap() = tls;
        let is_known =
            request.headers().get(header::AUTHORIZATION).is_some_and(|header| header == *self.token.lock().unwrap());
        self.requests.lock().unwrap().push(request);
        if let Some(error) = self.always.lock().unwrap().clone() {
            return Box::pin(std::future::ready(Err(error)));
        }
        let status = if is_known { StatusCode::OK } else { StatusCode::UNAUTHORIZED };
        let answer = || Ok(Response::builder().status(status).body(stream::empty().boxed()).unwrap());
        Box::pin(std::future::ready(self.answer.lock().unwrap().take().unwrap_or_else(answer)))
    }

    fn check(&self, tls: &Tls) -> Result<(), ConfigError> {
        let Some(Identity { certificate, .. }) = &tls.identity else { return Ok(()) };
        match certificate.text.expose() {
            b"half" => {
                Err(ConfigError::InvalidPem { origin: certificate.origin.clone(), problem: "no certificate".into() })
            }
            _ => Ok(()),
        }
    }
}

impl System for World {
    fn read(&self, _: PathBuf) -> BoxFuture<'static, Result<Vec<u8>, ReadError>> {
        let content = self.file.lock().unwrap().map(|text| text.as_bytes().to_vec());
        Box::pin(std::future::ready(content.ok_or(ReadError::NotFound)))
    }

    fn run(&self, _: Command) -> BoxFuture<'static, Result<Finished, RunError>> {
        let (sender, ended) = oneshot::channel();
        self.runs.lock().unwrap().push(sender);
        Box::pin(ended.map(|ended| ended.unwrap()))
    }

    fn has_terminal(&self) -> bool {
        false
    }
}

impl World {
    fn session(self: &Arc<Self>, user: &str) -> Session {
        Session::new(&config(user), self.clone(), self.clone(), self.clone()).unwrap()
    }

    fn program(self: &Arc<Self>) -> Session {
        self.session("exec: {apiVersion: client.authentication.k8s.io/v1, command: login, interactiveMode: Never}")
    }

    /// The program that runs ends with that token.
    fn print(&self, token: &str) {
        let text = format!(
            "{{apiVersion: client.authentication.k8s.io/v1, kind: ExecCredential, status: {{token: {token}}}}}"
        );
        self.end(Ok(Finished { ending: Ending::Exited(0), stdout: Secret::new(text), stderr: Vec::new() }));
    }

    fn end(&self, result: Result<Finished, RunError>) {
        let run = self.runs.lock().unwrap().pop().expect("a program runs");
        run.send(result).expect("somebody waits for it");
    }

    fn running(&self) -> usize {
        self.runs.lock().unwrap().iter().filter(|run| !run.is_canceled()).count()
    }

    fn sent(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    fn wait(&self, duration: Duration) {
        let mut now = self.now.lock().unwrap();
        *now = now.after(duration);
        let (due, rest) = self.sleepers.lock().unwrap().drain(..).partition(|(at, _)| *at <= now.mono);
        *self.sleepers.lock().unwrap() = rest;
        let due: Vec<(Time, oneshot::Sender<()>)> = due;
        for (_, sleeper) in due {
            let _ = sleeper.send(());
        }
    }

    fn takes(&self, header: &'static str) {
        *self.token.lock().unwrap() = header;
    }
}

fn config(user: &str) -> Config {
    let text = format!(
        "{{current-context: c, clusters: [{{name: p, cluster: {{server: 'https://a'}}}}],
        contexts: [{{name: c, context: {{cluster: p, user: u}}}}], users: [{{name: u, user: {{{user}}}}}]}}"
    );
    let source = ConfigSource::from_kubeconfig("/k/cfg");
    let read = async |path: PathBuf| Ok(if path.ends_with("cfg") { text.clone() } else { "abc".into() }.into_bytes());
    crate::load_config(source, Environment::default(), read).now_or_never().unwrap().unwrap()
}

fn post(session: &Session) -> BoxFuture<'static, Answer> {
    session.send(Request::post("/x").body(Bytes::from_static(b"body")).unwrap())
}

fn status(answer: Answer) -> u16 {
    answer.unwrap_or_else(|error| panic!("{error}")).status().as_u16()
}

#[test]
fn many_requests_wait_for_one_program_and_a_rejected_token_is_replaced_once() {
    let world = Arc::new(World::default());
    let session = world.program();
    let mut requests: Vec<_> = (0..10).map(|_| post(&session)).collect();
    let poll_all = |requests: &mut Vec<BoxFuture<'static, Answer>>| -> Vec<u16> {
        requests.iter_mut().filter_map(|request| request.now_or_never().map(status)).collect()
    };
    assert!(poll_all(&mut requests).is_empty());
    assert_eq!((world.running(), world.sent()), (1, 0));
    world.print("one");
    world.takes("Bearer two");
    assert!(poll_all(&mut requests).is_empty());
    assert_eq!((world.running(), world.sent()), (1, 10));
    world.print("two");
    assert_eq!(poll_all(&mut requests), [200; 10]);
    assert_eq!((world.running(), world.sent()), (0, 20));
    assert!(
        world.requests.lock().unwrap().iter().all(|request| request.body() == "body" && request.method() == "POST")
    );
}

#[test]
fn the_second_401_in_a_row_is_the_answer() {
    let world = Arc::new(World::default());
    let session = world.program();
    let mut request = post(&session);
    for token in ["one", "two"] {
        assert!((&mut request).now_or_never().is_none());
        world.print(token);
    }
    assert_eq!(status(request.now_or_never().unwrap()), 401);
    assert_eq!((world.running(), world.sent()), (0, 2));
}

#[test]
fn a_token_that_nothing_can_replace_is_sent_once() {
    let world = Arc::new(World::default());
    assert_eq!(status(post(&world.session("token: t")).now_or_never().unwrap()), 401);
    assert_eq!(world.sent(), 1);
    let session = world.session("tokenFile: tok");
    *world.file.lock().unwrap() = Some("abc");
    assert_eq!(status(post(&session).now_or_never().unwrap()), 401);
    assert_eq!(world.sent(), 2, "the file holds the same token");
    *world.file.lock().unwrap() = Some("def");
    world.takes("Bearer def");
    assert_eq!(status(post(&session).now_or_never().unwrap()), 200);
    assert_eq!(world.sent(), 4);
}

#[test]
fn a_request_is_sent_once_more_when_its_handshake_fails_and_certificates_have_changed() {
    let world = Arc::new(World::default());
    let session = world.session("client-certificate: crt, client-key: key");
    let fails = |file: &'static str, kind| {
        *world.file.lock().unwrap() = Some(file);
        *world.answer.lock().unwrap() = Some(Err(NetworkError::new(kind, "refused")));
        let before = world.sent();
        let failure = post(&session).now_or_never().unwrap().err().map(|error| error.kind);
        let shown = world.tls.lock().unwrap().identity.clone().unwrap().key;
        (failure, world.sent() - before, String::from_utf8(shown.text.expose().to_vec()).unwrap())
    };
    use NetworkErrorKind::{Connect, Lost, Tls};
    assert_eq!(fails("abc", Tls), (Some(Tls), 1, "abc".into()), "nothing has changed");
    assert_eq!(fails("half", Tls), (Some(Tls), 1, "abc".into()), "what cannot be used is not");
    assert_eq!(fails("def", Tls), (None, 2, "def".into()));
    assert_eq!(fails("ghi", Connect), (Some(Connect), 1, "def".into()), "that has nothing to do with certificates");
    assert_eq!(fails("ghi", Lost), (Some(Lost), 1, "def".into()), "what was sent may have been done");
    assert_eq!(fails("ghi", Connect), (Some(Connect), 1, "ghi".into()));
}

#[test]
fn a_failing_program_refuses_all_and_is_run_again_after_a_pause() {
    let world = Arc::new(World::default());
    let session = world.program();
    world.takes("Bearer t");
    let (mut one, mut other) = (post(&session), post(&session));
    assert!((&mut one).now_or_never().is_none() && (&mut other).now_or_never().is_none());
    world.end(Err(RunError::NotFound));
    for request in [one, other] {
        let error = request.now_or_never().unwrap().err().unwrap();
        assert_eq!(error.kind, NetworkErrorKind::Credentials);
        let error = cloudcoil_core::Error::from(error);
        assert_eq!(error.to_string(), "users[u].user.exec in /k/cfg: login: no such program");
        assert!(matches!(error, cloudcoil_core::Error::Credentials(_)));
    }
    let mut again = post(&session);
    assert!((&mut again).now_or_never().is_none());
    assert_eq!(world.running(), 0);
    world.wait(Duration::from_millis(100));
    assert!((&mut again).now_or_never().is_none());
    world.print("t");
    assert_eq!(status(again.now_or_never().unwrap()), 200);
}

#[test]
fn a_program_runs_on_for_whoever_still_waits_and_no_longer() {
    let world = Arc::new(World::default());
    let session = world.program();
    world.takes("Bearer t");
    let (mut one, mut other, never_polled) = (post(&session), post(&session), post(&session));
    assert!((&mut one).now_or_never().is_none() && (&mut other).now_or_never().is_none());
    drop(one);
    drop(never_polled);
    assert_eq!(world.running(), 1);
    world.print("t");
    assert_eq!(status(other.now_or_never().unwrap()), 200);
    let world = Arc::new(World::default());
    let session = world.program();
    let (mut one, mut other) = (post(&session), post(&session));
    assert!((&mut one).now_or_never().is_none() && (&mut other).now_or_never().is_none());
    drop((one, other));
    assert_eq!(world.running(), 0);
}

/// Whoever waits is woken when the program ends, and not only the one that was polled last.
#[test]
fn the_end_of_a_program_wakes_everyone() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake, Waker};
    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let world = Arc::new(World::default());
    let session = world.program();
    let counts = [(); 3].map(|()| Arc::new(Count(AtomicUsize::new(0))));
    let mut requests = [(); 3].map(|()| post(&session));
    for (request, count) in requests.iter_mut().zip(&counts) {
        assert!(request.as_mut().poll(&mut Context::from_waker(&Waker::from(count.clone()))).is_pending());
    }
    world.print("t");
    assert!(counts.iter().all(|count| count.0.load(Ordering::SeqCst) > 0));
}

fn compressed(pieces: Vec<Result<Bytes, NetworkError>>) -> Answer {
    let response = Response::builder().header(header::CONTENT_ENCODING, "gzip").header(header::CONTENT_LENGTH, "22");
    Ok(response.body(stream::iter(pieces).boxed()).unwrap())
}

/// `hi`, in gzip.
const HI: [u8; 22] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xcb, 0xc8, 4, 0, 0xac, 0x2a, 0x93, 0xd8, 2, 0, 0, 0];

#[test]
fn a_compressed_answer_is_read_plain_and_a_damaged_one_fails() {
    let world = Arc::new(World::default());
    let mut session_config = config("token: t");
    let session = Session::new(&session_config, world.clone(), world.clone(), world.clone()).unwrap();
    let read = |session: &Session, answer| {
        *world.answer.lock().unwrap() = Some(answer);
        let response = post(session).now_or_never().unwrap().unwrap();
        let is_plain = response.headers().is_empty();
        let body: Result<Vec<Bytes>, _> = response.into_body().try_collect().now_or_never().unwrap();
        (is_plain, body.map(|pieces| pieces.concat()))
    };
    let bytes: Vec<_> = HI.iter().map(|byte| Ok(Bytes::copy_from_slice(&[*byte]))).collect();
    assert_eq!(read(&session, compressed(bytes)), (true, Ok(b"hi".to_vec())));
    let (_, cut) = read(&session, compressed(vec![Ok(Bytes::copy_from_slice(&HI[..20]))]));
    assert_eq!(cut.unwrap_err().kind, NetworkErrorKind::Protocol);
    let lost = NetworkError::new(NetworkErrorKind::Lost, "reset");
    let (_, cut) = read(&session, compressed(vec![Ok(Bytes::copy_from_slice(&HI[..20])), Err(lost.clone())]));
    let cut = cut.unwrap_err();
    assert!(cut.server.is_some(), "{cut}");
    assert_eq!((cut.kind, cut.message), (lost.kind, lost.message));
    session_config.disable_compression = true;
    let session = Session::new(&session_config, world.clone(), world.clone(), world.clone()).unwrap();
    let _ = read(&session, compressed(Vec::new()));
    let asked: Vec<_> = world
        .requests
        .lock()
        .unwrap()
        .iter()
        .map(|request| request.headers().contains_key(header::ACCEPT_ENCODING))
        .collect();
    assert_eq!(asked, [true, true, true, false]);
}

#[test]
fn a_request_that_is_not_taken_up_is_sent_once_more_at_once_and_no_other_failure_is() {
    for (kind, sends) in
        [(NetworkErrorKind::Unprocessed, 2), (NetworkErrorKind::Lost, 1), (NetworkErrorKind::Connect, 1)]
    {
        let world = Arc::new(World::default());
        let session = world.session("token: t");
        *world.token.lock().unwrap() = "Bearer t";
        let failure = || Err(NetworkError::new(kind, "gone"));
        *world.answer.lock().unwrap() = Some(failure());
        let answered = post(&session).now_or_never().unwrap();
        assert_eq!((world.sent(), answered.is_ok()), (sends, sends == 2), "{kind:?}");
        // A server that never takes it up is asked twice.
        *world.always.lock().unwrap() = Some(NetworkError::new(kind, "gone"));
        let error = post(&session).now_or_never().unwrap().map(drop).unwrap_err();
        assert_eq!((world.sent(), error.kind), (2 * sends, kind));
        assert!(error.server.is_some(), "{error}");
    }
}

#[test]
fn credentials_do_not_go_over_plain_http() {
    let world = Arc::new(World::default());
    let mut config = Config::new("http://a").unwrap();
    config.auth = Auth::bearer(b"t").unwrap();
    let session = Session::new(&config, world.clone(), world.clone(), world.clone()).unwrap();
    post(&session).now_or_never().unwrap().unwrap();
    let requests = world.requests.lock().unwrap();
    assert_eq!(
        (requests[0].uri(), requests[0].headers().get(header::AUTHORIZATION)),
        (&"http://a/x".parse().unwrap(), None)
    );
}
