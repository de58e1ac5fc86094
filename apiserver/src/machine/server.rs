//! The machine itself: what is open, what waits, and what is due.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use cloudcoil_core::{
    Deadline, HttpEffect, HttpEvent, HttpRequest, Machine, Now, Outbox, ResourceType, Ticket, Time, Unstructured,
};
use http::request::Parts;
use http::{HeaderMap, Method, Request, header};
use serde_json::Value;

use super::access::{self, Attributes};
use super::catalog::place;
use super::cluster::{Call, Cluster, whole};
use super::config::ServerConfig;
use super::controllers::{Controllers, DEFINITIONS, Work};
use super::discovery;
use super::errors::{Outcome, no_such_path, too_large};
use super::logs::{Followers, LogSource, LogWriter, PODS};
use super::object::Draft;
use super::openapi;
use super::reply::{Body, Reply};
use super::route::{Query, Route, Target, route};
use super::store::key;
use super::user::{Peer, User};
use super::watch::{self, Pace, Waiting, Watches};

/// A Kubernetes API server in memory.
///
/// It takes requests and answers with [`HttpEvent`]s, as a transport does: what a client's machine asks for
/// ([`HttpEffect`]) can go straight in, and what comes out can go straight back.
///
/// ```
/// use std::time::Duration;
/// use cloudcoil_apiserver::{ApiServer, ServerConfig, ServerInput};
/// use cloudcoil_core::{HttpEvent, KnownResource, Machine, Now, Outbox, Requests, Tickets};
/// use cloudcoil_core::k8s_openapi::api::core::v1::Namespace;
///
/// let now = Now::default();
/// let mut server = ApiServer::new(ServerConfig::default(), now);
/// let ticket = Tickets::new(0).issue();
/// let request = Requests::new(Namespace::resource_type(), None).get("default")?.into();
/// let mut out = Outbox::new();
/// let _ = server.step(now, Some(ServerInput::Requested { ticket, request }), &mut out);
/// assert!(matches!(out.pop(), Some(HttpEvent::Responded { status, .. }) if status == 200));
/// # Ok::<(), cloudcoil_core::Error>(())
/// ```
#[derive(Debug)]
pub struct ApiServer {
    config: ServerConfig,
    cluster: Cluster,
    watches: Watches,
    followers: Followers,
    controllers: Controllers,
    waiting: BTreeMap<Ticket, Waiting>,
    /// When requests that wait give up.
    patience: BTreeSet<(Time, Ticket)>,
}

/// What happens to a server.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver tells of both")]
pub enum ServerInput {
    /// A request came. Its URI may be a path and query alone.
    Requested {
        /// Names the exchange; the driver chooses it, and no other exchange that is open has it.
        ticket: Ticket,
        /// The request.
        request: HttpRequest,
    },
    /// The client has gone away, or the answer is not wanted any more.
    Cancelled {
        /// Names the exchange.
        ticket: Ticket,
    },
}

impl From<HttpEffect> for ServerInput {
    fn from(effect: HttpEffect) -> Self {
        match effect {
            HttpEffect::Send { ticket, request } => Self::Requested { ticket, request },
            HttpEffect::Cancel { ticket } => Self::Cancelled { ticket },
        }
    }
}

impl ApiServer {
    /// A server with nothing but the namespaces that every cluster has, created at `now`.
    pub fn new(config: ServerConfig, now: Now) -> Self {
        let cluster = Cluster::new(&config);
        let (waiting, patience) = (BTreeMap::new(), BTreeSet::new());
        let controllers = Controllers::new(config.controller_delay);
        let (watches, followers) = (Watches::default(), Followers::default());
        let mut server = Self { config, cluster, watches, followers, controllers, waiting, patience };
        let mut nobody = Outbox::new();
        server.cluster.create_system_namespaces(now);
        server.settle(now, &mut nobody);
        // The server is found as if it had run for a while.
        while let Some(work) = server.controllers.take(None) {
            server.control(now, &work, &mut nobody);
        }
        server
    }

    /// The resource version of the last write.
    pub fn revision(&self) -> u64 {
        self.cluster.store.revision()
    }

    /// The objects of a type in the order of their keys, as they are now.
    pub fn objects(&self, resource_type: &ResourceType) -> Vec<Unstructured> {
        let of = resource_type;
        let Some(resource) = self.cluster.catalog.resource(&of.group, &of.version, &of.plural) else {
            return Vec::new();
        };
        let shown = |fields: &Draft| {
            let served = super::convert::served(&self.cluster.kinds, resource, fields);
            whole(&of.api_version(), &of.kind, served.as_ref().unwrap_or(fields)).into()
        };
        self.cluster.store.all(&resource.place).map(|(_, object)| shown(object.fields())).collect()
    }

    /// One object as it is now; an empty `namespace` is none.
    pub fn object(&self, resource_type: &ResourceType, namespace: &str, name: &str) -> Option<Unstructured> {
        let of = resource_type;
        let resource = self.cluster.catalog.resource(&of.group, &of.version, &of.plural)?;
        let object = self.cluster.store.get(&resource.place, &key(Some(namespace), name))?;
        let served = super::convert::served(&self.cluster.kinds, resource, object.fields());
        Some(whole(&of.api_version(), &of.kind, served.as_ref().unwrap_or_else(|| object.fields())).into())
    }

    /// Forgets all history up to resource version `revision`, as etcd's compaction does: watches and pages from before
    /// it get 410. Open watches go on.
    pub fn compact(&mut self, revision: u64) {
        self.cluster.store.compact(revision);
    }

    /// Stops the cache that serves watches and reads of old resource versions, as a replica that lags behind:
    /// watches hear nothing, and `resourceVersion=0` reads an old state, until [`thaw`](Self::thaw).
    pub fn freeze(&mut self) {
        let now = self.cluster.store.revision();
        self.cluster.frozen.get_or_insert(now);
    }

    /// Lets the cache catch up: watches hear what they have missed.
    pub fn thaw(&mut self, now: Now, out: &mut Outbox<HttpEvent>) {
        let Some(frozen) = self.cluster.frozen.take() else { return };
        let changes: Option<Vec<_>> = self.cluster.store.since(frozen).ok().map(|changes| changes.cloned().collect());
        match changes {
            Some(changes) => {
                for change in changes {
                    self.watches.tell(now, &change, out);
                }
            }
            // What is not remembered cannot be told: a cache that starts anew ends all watches.
            None => self.close_watches(out),
        }
        self.wake(now, out);
    }

    /// A stopped cache that has fallen behind all that is remembered starts anew from the oldest there is. What lies
    /// between cannot be told any more, so every watch ends.
    fn restart_lost_cache(&mut self, out: &mut Outbox<HttpEvent>) {
        let oldest = self.cluster.store.oldest();
        if let Some(frozen) = self.cluster.frozen.as_mut().filter(|frozen| **frozen < oldest) {
            *frozen = oldest;
            self.close_watches(out);
        }
    }

    /// Lets `token` stand for `user` from now on.
    pub fn set_token(&mut self, token: &str, user: User) {
        self.cluster.access.insert(token.to_owned(), user);
    }

    /// Lets a token stand for nobody any more, be it of a user or of a service account. Watches that it has opened go
    /// on, as at a real API server. Whether it stood for anybody.
    pub fn revoke_token(&mut self, token: &str) -> bool {
        self.cluster.access.remove(token)
    }

    /// Ends every watch, as a server that shuts down in order does.
    pub fn close_watches(&mut self, out: &mut Outbox<HttpEvent>) {
        for ticket in self.watches.tickets(None) {
            self.watches.close(ticket, out);
        }
    }

    /// Ends every watch and every stream of logs, as a server that shuts down in order does.
    #[cfg(feature = "listen")]
    pub(crate) fn close_streams(&mut self, out: &mut Outbox<HttpEvent>) {
        self.close_watches(out);
        self.followers.close_all(out);
    }

    /// Lets a container write `text` now, whether or not it is whole lines: whoever follows its log hears of it. Answers
    /// whether there is such a container.
    ///
    /// ```
    /// use cloudcoil_apiserver::{ApiServer, LogSource, ServerConfig};
    /// use cloudcoil_core::{Now, Outbox};
    ///
    /// let mut server = ApiServer::new(ServerConfig::default(), Now::default());
    /// let log = LogSource::new("default", "web", "nginx");
    /// assert!(!server.append_log(Now::default(), &log, "ready\n", &mut Outbox::new()));
    /// ```
    pub fn append_log(&mut self, now: Now, source: &LogSource, text: &str, out: &mut Outbox<HttpEvent>) -> bool {
        self.logs().append(now, source, text, out)
    }

    /// Ends a container's log: whoever follows it has heard all. Answers whether there is such a container.
    pub fn finish_log(&mut self, source: &LogSource, out: &mut Outbox<HttpEvent>) -> bool {
        self.logs().finish(source, out)
    }

    /// Begins a container's log anew, as when the container is restarted: what it has written so far is what
    /// `previous` asks for. Answers whether there is such a container.
    pub fn restart_log(&mut self, source: &LogSource, out: &mut Outbox<HttpEvent>) -> bool {
        self.logs().restart(source, out)
    }

    fn logs(&mut self) -> LogWriter<'_> {
        LogWriter { cluster: &mut self.cluster, followers: &mut self.followers }
    }

    /// How many watches are open.
    pub fn open_watches(&self) -> usize {
        self.watches.tickets(None).len()
    }

    fn request(&mut self, now: Now, ticket: Ticket, request: Request<Bytes>, out: &mut Outbox<HttpEvent>) {
        let (parts, body) = request.into_parts();
        let head_only = parts.method == Method::HEAD;
        self.cluster.warnings.clear();
        let mut remarks: Vec<_> = access::remark(&parts.headers).into_iter().collect();
        match self.respond(now, &parts, &body, &mut remarks) {
            Ok(Reply::Body(body)) => body.remarked(remarks).compressed(&parts.headers).send(ticket, head_only, out),
            Ok(Reply::Watch(subscription)) => {
                let lifetime = self.cluster.random.jitter(self.config.watch_timeout * 3 / 2, 33);
                let pace = Pace { bookmark_interval: self.config.bookmark_interval, lifetime };
                self.watches.open(now, ticket, *subscription, pace, &remarks, out);
            }
            Ok(Reply::Follow(follow)) => self.followers.open(ticket, *follow, out),
            Ok(Reply::Wait { revision, watches }) => {
                let until = now.mono + self.config.patience;
                self.patience.insert((until, ticket));
                self.waiting.insert(ticket, Waiting { revision, watches, until, parts, body });
            }
            Err(refusal) => {
                remarks.append(&mut self.cluster.warnings);
                Body::refusal(&refusal).remarked(remarks).send(ticket, head_only, out);
            }
        }
    }

    fn respond(&mut self, now: Now, parts: &Parts, body: &Bytes, remarks: &mut Vec<String>) -> Outcome<Reply> {
        let Parts { method, uri, headers, extensions, .. } = parts;
        let query = Query::parse(uri.query().unwrap_or_default());
        let found = route(uri.path());
        let nowhere = Route::Other(Vec::new());
        let attributes = Attributes::of(method, found.as_ref().unwrap_or(&nowhere), uri.path(), &query);
        let user = self.admit(now, headers, extensions.get::<Peer>(), &attributes)?;
        let Some(found) = found else { return Ok(Reply::Body(Body::no_such_page())) };
        if body.len() > BODY_LIMIT {
            return Err(too_large(BODY_LIMIT));
        }
        match found {
            Route::Other(path) => {
                let path: Vec<_> = path.iter().map(String::as_str).collect();
                Ok(Reply::Body(self.other(method, &path, headers)?))
            }
            Route::Resource(target) => {
                remarks.extend(deprecation(&target));
                self.resource(method, &target, &query, &Carried { now, headers, body, user: &user })
            }
        }
    }

    /// Who a request is from, once it may do what it wants to.
    fn admit(&self, now: Now, headers: &HeaderMap, peer: Option<&Peer>, attributes: &Attributes<'_>) -> Outcome<User> {
        let shows_nothing = peer.is_none() && !headers.contains_key(header::AUTHORIZATION);
        let user = match self.cluster.authenticate(now, headers, peer) {
            // Whoever looks after the server needs no credentials.
            Err(_) if shows_nothing && attributes.is_open() => User::anonymous(),
            authenticated => authenticated?,
        };
        let user = match access::impersonated(headers)? {
            None => user,
            Some(wanted) => {
                access::check_impersonation(&user, &wanted, attributes)?;
                access::assume(wanted)
            }
        };
        attributes.authorize(&user)?;
        Ok(user)
    }

    /// What is no resource: discovery, the version, health.
    fn other(&self, method: &Method, path: &[&str], headers: &HeaderMap) -> Outcome<Body> {
        if !matches!(*method, Method::GET | Method::HEAD) {
            return Err(super::errors::method_not_allowed());
        }
        if let Some(document) = discovery::answer(&self.cluster.catalog, path, headers) {
            return document;
        }
        if let Some(document) = openapi::answer(&self.cluster, path) {
            return Ok(document);
        }
        match path {
            ["healthz" | "livez" | "readyz", ..] => Ok(Body::text(200, "text/plain; charset=utf-8", "ok")),
            ["version"] => Ok(Body::json(200, &version())),
            ["api", _] => Err(no_such_path()),
            ["apis", group, _] if self.cluster.catalog.is_builtin(group) => Err(no_such_path()),
            _ => Ok(Body::no_such_page()),
        }
    }

    fn resource(
        &mut self,
        method: &Method,
        target: &Target,
        query: &Query,
        Carried { now, headers, body, user }: &Carried<'_>,
    ) -> Outcome<Reply> {
        let Some(resource) = self.cluster.catalog.resource(&target.group, &target.version, &target.plural).cloned()
        else {
            let builtin = self.cluster.catalog.is_builtin(&target.group);
            return if builtin { Err(no_such_path()) } else { Ok(Reply::Body(Body::no_such_page())) };
        };
        if !has_path(resource.is_namespaced(), target) {
            return if resource.is_custom() { Ok(Reply::Body(Body::no_such_page())) } else { Err(no_such_path()) };
        }
        let call = Call { now: *now, resource: &resource, target, query, headers, body, user };
        self.cluster.answer(method, &call)
    }

    /// Tells whoever has to hear of what was written.
    fn settle(&mut self, now: Now, out: &mut Outbox<HttpEvent>) {
        let changes = std::mem::take(&mut self.cluster.changes);
        if changes.is_empty() {
            return;
        }
        for change in &changes {
            self.controllers.observe(now, &self.cluster, change);
            if &*change.place == PODS && change.after.is_none() {
                self.cluster.logs.forget(&change.key);
                self.followers.close_pod(&change.key, out);
            }
        }
        if self.cluster.frozen.is_none() {
            for change in &changes {
                self.watches.tell(now, change, out);
            }
            self.wake(now, out);
        }
    }

    /// Does a piece of the controllers' work.
    fn control(&mut self, now: Now, work: &Work, out: &mut Outbox<HttpEvent>) {
        self.cluster.perform(now, work, &self.controllers.owners);
        self.settle(now, out);
        if let Work::Definition(name) = work {
            self.close_undefined(name, out);
        }
    }

    /// Ends the watches of a type that is not served any more.
    fn close_undefined(&mut self, definition: &str, out: &mut Outbox<HttpEvent>) {
        if self.cluster.store.get(DEFINITIONS, definition).is_some() {
            return;
        }
        let Some((plural, group)) = definition.split_once('.') else { return };
        for ticket in self.watches.tickets(Some(&place(group, plural))) {
            self.watches.close(ticket, out);
        }
    }

    /// Answers the requests whose revision has come.
    fn wake(&mut self, now: Now, out: &mut Outbox<HttpEvent>) {
        let seen = self.cluster.cached();
        let ready: Vec<_> =
            self.waiting.iter().filter(|(_, waiting)| waiting.revision <= seen).map(|(ticket, _)| *ticket).collect();
        for ticket in ready {
            let Some(waiting) = self.stop_waiting(ticket) else { continue };
            self.request(now, ticket, Request::from_parts(waiting.parts, waiting.body), out);
        }
    }

    fn stop_waiting(&mut self, ticket: Ticket) -> Option<Waiting> {
        let waiting = self.waiting.remove(&ticket)?;
        self.patience.remove(&(waiting.until, ticket));
        Some(waiting)
    }
}

impl Machine for ApiServer {
    type Input = ServerInput;
    type Output = HttpEvent;

    fn on_input(&mut self, now: Now, input: ServerInput, out: &mut Outbox<HttpEvent>) {
        self.restart_lost_cache(out);
        match input {
            // An exchange that is open already is not begun again.
            ServerInput::Requested { ticket, .. }
                if self.watches.is_open(ticket)
                    || self.followers.is_open(ticket)
                    || self.waiting.contains_key(&ticket) => {}
            ServerInput::Requested { ticket, request } => {
                self.request(now, ticket, request.into_inner(), out);
                self.settle(now, out);
            }
            ServerInput::Cancelled { ticket } => {
                self.watches.forget(ticket);
                self.followers.forget(ticket);
                self.stop_waiting(ticket);
            }
        }
    }

    fn on_timer(&mut self, now: Now, out: &mut Outbox<HttpEvent>) {
        self.restart_lost_cache(out);
        if let Some((at, ticket)) = self.patience.first().copied().filter(|(at, _)| *at <= now.mono) {
            self.patience.remove(&(at, ticket));
            if let Some(waiting) = self.waiting.remove(&ticket) {
                let refusal = waiting.too_late(self.cluster.cached());
                if waiting.watches {
                    watch::refuse(ticket, &refusal, out);
                } else {
                    Body::refusal(&refusal).send(ticket, waiting.parts.method == Method::HEAD, out);
                }
            }
            return;
        }
        if let Some(work) = self.controllers.take(Some(now.mono)) {
            self.control(now, &work, out);
            return;
        }
        let told = self.cluster.frozen.unwrap_or_else(|| self.cluster.store.revision());
        self.watches.fire(now, told, out);
    }

    fn deadline(&self) -> Option<Deadline> {
        let patience = self.patience.first().map(|(at, _)| Deadline::new(*at, "a resource version yet to come"));
        let watches = self.watches.due().map(|at| Deadline::new(at, "a watch's bookmark or end"));
        let controllers = self.controllers.due().map(|at| Deadline::new(at, "a controller's work"));
        Deadline::earliest(Deadline::earliest(patience, watches), controllers)
    }
}

/// What comes with a request besides what it asks for.
struct Carried<'a> {
    now: Now,
    headers: &'a HeaderMap,
    body: &'a Bytes,
    user: &'a User,
}

/// What a client is told that uses what is on its way out.
fn deprecation(target: &Target) -> Option<String> {
    let words = match (&*target.group, &*target.version, &*target.plural) {
        ("", "v1", "endpoints") => "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        ("", "v1", "componentstatuses") => "v1 ComponentStatus is deprecated in v1.19+",
        _ => return None,
    };
    Some(words.to_owned())
}

/// Whether a resource can be at a path of this shape.
fn has_path(namespaced: bool, target: &Target) -> bool {
    match (namespaced, &target.namespace, &target.name) {
        (true, None, name) => name.is_none(),
        (false, Some(_), _) => false,
        _ => true,
    }
}

fn version() -> Value {
    serde_json::json!({"major": "1", "minor": "37", "gitVersion": VERSION, "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "", "platform": ""})
}

/// The version that the server gives itself: that of the table of built-in kinds.
pub(crate) const VERSION: &str = "v1.37.2";

/// The longest body that is taken, in bytes.
pub(crate) const BODY_LIMIT: usize = 3 << 20;
