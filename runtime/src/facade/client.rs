//! The way to one API server.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use cloudcoil_core::k8s_openapi::apimachinery::pkg::version::Info;
use cloudcoil_core::record::Recorded;
use cloudcoil_core::{
    Answer, Call, CallEvent, Error, HttpMachine, KnownResource, ResourceType, Retry, RetryPolicy, Tickets,
    Unstructured, Warning, response,
};
use http::{Request, Uri};

use super::Api;
use super::discovery::{Discovery, Known};
use super::world::clock::Clock;
use super::world::driver::Events;
use super::world::dual;
use super::world::link::Link;
use crate::plain::{Recorder, Recording, Warnings};

/// A connection to one API server, as one identity. Cheap to clone; clones share everything, from any thread.
///
/// ```no_run
/// use cloudcoil_runtime::{Client, Error, Resource};
/// use cloudcoil_core::k8s_openapi::api::core::v1::Pod;
/// use futures_util::TryStreamExt;
///
/// async fn names(client: Client) -> Result<(), Error> {
///     let mut pods = client.api::<Pod>().list().labels("app in (web, api)").limit(500).stream();
///     while let Some(pod) = pods.try_next().await? {
///         println!("{}", pod.name());
///     }
///     Ok(())
/// }
/// ```
#[dual]
#[derive(Clone)]
pub struct Client {
    pub(crate) link: Link,
    known: Arc<Mutex<Known>>,
    namespace: Arc<str>,
    timeout: Option<Duration>,
    retry: RetryPolicy,
    warnings: Arc<Warnings>,
    recorder: Option<Recorder>,
}

#[dual]
impl Client {
    /// A client whose default namespace is `default`.
    pub(crate) fn over(link: Link) -> Self {
        Self {
            link,
            known: Arc::default(),
            namespace: "default".into(),
            timeout: Some(Call::TIMEOUT),
            retry: RetryPolicy::DEFAULT,
            warnings: Arc::default(),
            recorder: None,
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

    /// The time limit for every single request.
    pub(crate) const fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// The same, with another [policy](RetryPolicy) of sending requests again. Watches have their own.
    #[must_use]
    pub fn with_retry(self, retry: RetryPolicy) -> Self {
        Self { retry, ..self }
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
    /// use cloudcoil_runtime::{Client, Error, ResourceType, Scope};
    ///
    /// async fn size(client: Client) -> Result<Option<i64>, Error> {
    ///     let widgets = ResourceType::new("example.com", "v1", "Widget", "widgets", Scope::Namespaced);
    ///     let widget = client.api_for(widgets).get("w").send().await?;
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
    pub async fn request(&self, request: Request<Bytes>) -> Result<Answer, Error> {
        let call = Call::new(request.into(), Tickets::new(0)).timeout(self.timeout);
        let hear = |event| match event {
            CallEvent::Retrying(retry) => {
                report(&retry);
                None
            }
            CallEvent::Done(result) => Some(result),
        };
        self.finish(call.retry(self.retry, self.seed::<Call>()), hear).await?
    }

    /// Runs a machine until `hear` makes an answer of what it says.
    ///
    /// # Errors
    /// [`Error::Cancelled`], if it is given up before.
    pub(crate) async fn finish<M: HttpMachine + Recorded, T>(
        &self,
        machine: M,
        hear: impl Fn(M::Event) -> Option<T>,
    ) -> Result<T, Error> {
        let mut events = Events::new(self, machine);
        while let Some(event) = events.next().await {
            if let Some(answer) = hear(event) {
                return Ok(answer);
            }
        }
        Err(Error::Cancelled)
    }

    /// Which Kubernetes the server is.
    ///
    /// # Errors
    /// As [`request`](Self::request); [`Error::Api`] and [`Error::Body`] for an answer that is none.
    pub async fn server_version(&self) -> Result<Info, Error> {
        response::decode(&self.request(read("/version")).await?)
    }

    /// Whether the server takes requests, by its own account.
    ///
    /// # Errors
    /// Why not: [`Error::Body`], whose snippet is the beginning of the server's list of checks, if it says so itself;
    /// else as [`request`](Self::request).
    pub async fn check_ready(&self) -> Result<(), Error> {
        response::check(&self.request(read("/readyz")).await?)
    }

    /// The seed of a new machine.
    pub(crate) fn seed<M: Recorded>(&self) -> u64 {
        let given = self.recorder.as_ref().and_then(|recorder| recorder.seed(M::NAME));
        given.unwrap_or_else(|| self.clock().seed())
    }

    /// For a new machine.
    pub(crate) fn recording<M: Recorded>(&self) -> Recording {
        Recording::new::<M>(self.recorder.as_ref())
    }

    pub(crate) fn known(&self) -> &Mutex<Known> {
        &self.known
    }

    pub(crate) const fn limits(&self) -> (Option<Duration>, RetryPolicy) {
        (self.timeout, self.retry)
    }

    pub(crate) const fn warnings(&self) -> &Arc<Warnings> {
        &self.warnings
    }

    pub(crate) fn clock(&self) -> Clock {
        self.link.clock()
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
