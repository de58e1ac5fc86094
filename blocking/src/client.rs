//! The way to one API server.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use bytes::Bytes;
use cloudcoil_core::k8s_openapi::apimachinery::pkg::version::Info;
use cloudcoil_core::record::Recorded;
use cloudcoil_core::{
    Answer, Call, CallEvent, CallInput, Error, KnownResource, ResourceType, Retry, RetryPolicy, Tickets, Unstructured,
    Warning, response,
};
use cloudcoil_runtime::Recorder;
use cloudcoil_runtime::parts::{Recording, Warnings};
use http::{Request, Uri};

use crate::clock::{Clock, seed};
use crate::discovery::{Discovery, Known};
use crate::driver::{Driver, Mailbox, Turn};
use crate::group::{Group, Member};
use crate::{Api, Transport};

/// A connection to one API server, as one identity. Cheap to clone; clones share everything, from any thread.
///
/// ```no_run
/// use cloudcoil_blocking::{Client, prelude::*};
/// use cloudcoil_blocking::core::k8s_openapi::api::core::v1::Pod;
///
/// fn main() -> Result<(), Error> {
///     let client = Client::try_default()?;
///     for pod in client.api::<Pod>().list().all_namespaces() {
///         println!("{}", pod?.name());
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct Client {
    transport: Arc<dyn Transport>,
    clock: Clock,
    known: Arc<(Mutex<Known>, Condvar)>,
    warnings: Arc<Warnings>,
    recorder: Option<Recorder>,
    namespace: Arc<str>,
    timeout: Option<Duration>,
    retry: RetryPolicy,
    /// What is given up together with what this is used for.
    group: Option<Group>,
}

impl Client {
    /// A client whose default namespace is `default`.
    pub fn new(transport: Arc<dyn Transport>) -> Self {
        Self {
            transport,
            clock: Clock::new(),
            known: Arc::default(),
            warnings: Arc::default(),
            recorder: None,
            namespace: "default".into(),
            timeout: Some(Call::TIMEOUT),
            retry: RetryPolicy::DEFAULT,
            group: None,
        }
    }

    /// The same, with another namespace where none is named.
    #[must_use]
    pub fn with_default_namespace(self, namespace: &str) -> Self {
        Self { namespace: namespace.into(), ..self }
    }

    /// The same, with another time limit for every single request, from sending it first to the end of the last answer, with
    /// the waits between attempts; `None` waits for ever. It is 30 seconds unless set. Watches are not limited by it.
    #[must_use]
    pub fn with_timeout(self, timeout: Option<Duration>) -> Self {
        Self { timeout, ..self }
    }

    /// The same, with another [policy](RetryPolicy) of sending requests again. Watches have their own.
    #[must_use]
    pub fn with_retry(self, retry: RetryPolicy) -> Self {
        Self { retry, ..self }
    }

    /// The same, with what the API server warns of handed to `handler`: each text once, in any answer, those of watches too.
    /// Without a handler it goes to `tracing`.
    ///
    /// The handler is called where answers are read, so it must not take long.
    #[must_use]
    pub fn with_warning_handler(self, handler: impl Fn(&Warning) + Send + Sync + 'static) -> Self {
        Self { warnings: Arc::new(Warnings::to(Arc::new(handler))), ..self }
    }

    /// The same, with what its machines hear and say recorded, be they calls, watches, informers or controllers. Costs nothing
    /// without.
    #[must_use]
    pub fn with_recorder(self, recorder: Recorder) -> Self {
        Self { recorder: Some(recorder), ..self }
    }

    /// The namespace that is meant where none is named.
    pub fn default_namespace(&self) -> &str {
        &self.namespace
    }

    /// Objects of a type that Rust knows, in the default namespace.
    pub fn api<K: KnownResource>(&self) -> Api<K> {
        Api::new(self.clone(), K::resource_type())
    }

    /// Objects of any type, in the default namespace.
    ///
    /// ```no_run
    /// use cloudcoil_blocking::{Client, Error, ResourceType, Scope};
    ///
    /// fn size(client: &Client) -> Result<Option<i64>, Error> {
    ///     let widgets = ResourceType::new("example.com", "v1", "Widget", "widgets", Scope::Namespaced);
    ///     let widget = client.api_for(widgets).get("w").send()?;
    ///     Ok(widget.pointer("/spec/size").and_then(|size| size.as_i64()))
    /// }
    /// ```
    pub fn api_for(&self, resource_type: ResourceType) -> Api<Unstructured> {
        Api::new(self.clone(), resource_type)
    }

    /// What the server serves, and under which names; shared by all clones.
    pub fn discovery(&self) -> Discovery {
        Discovery::new(self.clone())
    }

    /// Sends any request, again where the [policy](RetryPolicy) says so; its URI is a path and query. Every answer is `Ok`,
    /// whatever its code.
    ///
    /// # Errors
    /// [`Error::Network`], or [`Error::TimedOut`].
    pub fn request(&self, request: Request<Bytes>) -> Result<Answer, Error> {
        let call =
            Call::new(request.into(), Tickets::new(0)).timeout(self.timeout).retry(self.retry, self.seed::<Call>());
        let mailbox = Mailbox::new();
        let commands = mailbox.commands();
        let _member = self.member(move || commands.send(CallInput::Cancelled));
        let mut driver = Driver::new(call, self, mailbox);
        loop {
            match driver.turn() {
                Turn::Event(CallEvent::Retrying(retry)) => report(&retry),
                Turn::Event(CallEvent::Done(result)) => return result,
                Turn::Command(cancelled) => driver.step(Some(cancelled)),
            }
        }
    }

    /// Which Kubernetes the server is.
    ///
    /// # Errors
    /// As [`request`](Self::request); [`Error::Api`] and [`Error::Body`] for an answer that is none.
    pub fn server_version(&self) -> Result<Info, Error> {
        response::decode(&self.request(read("/version"))?)
    }

    /// Whether the server takes requests, by its own account.
    ///
    /// # Errors
    /// Why not: [`Error::Body`], whose snippet is the beginning of the server's list of checks, if it says so itself;
    /// else as [`request`](Self::request).
    pub fn check_ready(&self) -> Result<(), Error> {
        response::check(&self.request(read("/readyz"))?)
    }

    /// The same, whose calls are given up with a group.
    pub(crate) fn grouped(self, group: Group) -> Self {
        Self { group: Some(group), ..self }
    }

    /// A call that is given up by `give_up`, if this client belongs to a group.
    pub(crate) fn member(&self, give_up: impl Fn() + Send + 'static) -> Option<Member> {
        self.group.as_ref().map(|group| group.join(give_up))
    }

    /// The seed of a new machine.
    pub(crate) fn seed<M: Recorded>(&self) -> u64 {
        self.recorder.as_ref().and_then(|recorder| recorder.seed(M::NAME)).unwrap_or_else(seed)
    }

    /// For a new machine.
    pub(crate) fn recording<M: Recorded>(&self) -> Recording {
        Recording::new::<M>(self.recorder.as_ref())
    }

    pub(crate) fn known(&self) -> &(Mutex<Known>, Condvar) {
        &self.known
    }

    pub(crate) const fn limits(&self) -> (Option<Duration>, RetryPolicy) {
        (self.timeout, self.retry)
    }

    pub(crate) const fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    pub(crate) const fn warnings(&self) -> &Arc<Warnings> {
        &self.warnings
    }

    pub(crate) const fn transport(&self) -> &Arc<dyn Transport> {
        &self.transport
    }

    pub(crate) const fn clock(&self) -> Clock {
        self.clock
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("namespace", &self.namespace)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

fn read(path: &'static str) -> Request<Bytes> {
    let mut request = Request::new(Bytes::new());
    *request.uri_mut() = Uri::from_static(path);
    request
}

/// Tells who looks on that a request will be sent again.
pub(crate) fn report(retry: &Retry) {
    let Retry { attempt, cause, after, .. } = retry;
    tracing::info!(attempt, %cause, ?after, "retrying");
}
