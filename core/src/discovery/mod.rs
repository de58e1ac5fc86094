//! What a server serves: which groups, versions and types, and under which names.

mod catalog;
mod documents;
pub(crate) mod fuzz;
mod lookup;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode, header};

use crate::backoff::Random;
use crate::call::{Call, CallInput, CallOutput, Retry, RetryPolicy};
use crate::error::Error;
use crate::exchange::{Answer, HttpEffect, HttpEvent};
use crate::machine::{Deadline, Machine, Outbox, Tickets};
use crate::time::{Now, Time};

pub use catalog::{
    ApiGroup, ApiResource, ApiSubresource, ApiVersion, Catalog, DiscoveryFailure, DiscoveryFault, NotServed,
};

use documents::Root;

/// Asks a server what it serves, and ends with exactly one [`Done`](DiscoveryOutput::Done).
///
/// It asks for everything in two documents, as servers since 1.26 give it, and where a server does not know of that, for each
/// version of each group, some at a time. Requests that fail are sent again as [`Call`] does. A version of a group that cannot be
/// had in the end hides no other: it is named among the [failures](Catalog::failures) of the catalog. Only if nothing at all
/// could be had is the result an error, so a failure is never taken for an empty server.
///
/// With an earlier catalog, the server need not send again what has not changed.
///
/// Its tickets are of machines that are numbered from 0, so it has a driver of its own.
///
/// See <https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api>.
#[derive(Clone, Debug)]
pub struct Discovery {
    config: DiscoveryConfig,
    previous: Option<Arc<Catalog>>,
    random: Random,
    state: State,
}

/// How a server is asked what it serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made with struct update syntax")]
pub struct DiscoveryConfig {
    /// How long it may take in all; what is not there by then is a failure of its group. `None` waits for ever.
    pub timeout: Option<Duration>,
    /// How long one version of a group may take, where each is asked for.
    pub group_timeout: Duration,
    /// What is sent again. For one version of a group there is at most one more attempt.
    pub retry: RetryPolicy,
    /// How many requests are under way at a time.
    pub concurrency: usize,
}

impl Default for DiscoveryConfig {
    /// 30 s in all and 10 s a group, 10 requests at a time, and the usual retries.
    fn default() -> Self {
        Self {
            timeout: Some(Call::TIMEOUT),
            group_timeout: Duration::from_secs(10),
            retry: RetryPolicy::DEFAULT,
            concurrency: 10,
        }
    }
}

/// What a [`Discovery`] hears.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must know what it may say")]
pub enum DiscoveryInput {
    /// Something came of a request.
    Http(HttpEvent),
    /// Nobody waits for the result any more: it ends with [`Error::Cancelled`].
    Cancelled,
}

/// What a [`Discovery`] asks for and says.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must do all of them")]
pub enum DiscoveryOutput {
    /// Perform an HTTP effect.
    Http(HttpEffect),
    /// An attempt failed, and there will be another. For whoever looks on; nothing has to be done.
    Retrying(Retry),
    /// It is over; said once, and nothing after it.
    Done(Result<Catalog, Error>),
}

impl Discovery {
    /// The largest document that is read, in bytes.
    pub const LIMIT: usize = 64 << 20;

    /// A discovery that has asked for nothing yet. `previous` is what was found before, `seed` moves waits.
    pub fn new(config: DiscoveryConfig, previous: Option<Arc<Catalog>>, seed: u64) -> Self {
        Self { config, previous, random: Random::new(seed), state: State::Starting }
    }

    /// Whether it has said [`Done`](DiscoveryOutput::Done).
    pub const fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    fn start(&mut self, now: Now, out: &mut Outbox<DiscoveryOutput>) {
        let give_up = self.config.timeout.map(|timeout| now.mono + timeout);
        let waiting = [0, 1].map(|root| Ask::Root { root, is_aggregated: true }).into();
        self.state = State::Asking(Box::new(Asking { give_up, waiting, ..Asking::default() }));
        self.go_on(now, out);
    }

    /// Sends what waits and may be sent; ends when there is nothing more to wait for.
    fn go_on(&mut self, now: Now, out: &mut Outbox<DiscoveryOutput>) {
        loop {
            let State::Asking(asking) = &mut self.state else { return };
            if asking.calls.len() >= self.config.concurrency.max(1) {
                return;
            }
            let Some(ask) = asking.waiting.pop_front() else { break };
            let machine = asking.begun;
            asking.begun += 1;
            let request = ask.request(&asking.found, self.previous.as_deref());
            // A call that knows how little time is left tells why it has failed, rather than that the time is up.
            let left = asking.give_up.map(|at| at.since(now.mono));
            let (timeout, retry) = match ask {
                Ask::Root { .. } => (left, self.config.retry),
                // A server that stands behind the API server and is down stays so for longer than anyone waits here.
                Ask::Version { .. } => {
                    let timeout = left.map_or(self.config.group_timeout, |left| left.min(self.config.group_timeout));
                    (Some(timeout), self.config.retry.with_retries(self.config.retry.retries.min(1)))
                }
            };
            let call = Call::new(request.into(), Tickets::new(machine)).timeout(timeout).limit(Self::LIMIT);
            asking.calls.insert(machine, (ask, call.retry(retry, self.random.seed())));
            self.step_call(now, machine, None, out);
        }
        if matches!(&self.state, State::Asking(asking) if asking.calls.is_empty()) {
            self.finish(out);
        }
    }

    fn step_call(&mut self, now: Now, machine: u32, input: Option<CallInput>, out: &mut Outbox<DiscoveryOutput>) {
        let State::Asking(asking) = &mut self.state else { return };
        let Some((_, call)) = asking.calls.get_mut(&machine) else { return };
        let mut said = Outbox::new();
        let _ = call.step(now, input, &mut said);
        for output in said {
            match output {
                CallOutput::Http(effect) => out.push(DiscoveryOutput::Http(effect)),
                CallOutput::Retrying(retry) => out.push(DiscoveryOutput::Retrying(retry)),
                CallOutput::Done(result) => {
                    if let Some((ask, _)) = asking.calls.remove(&machine) {
                        asking.answered(ask, result, self.previous.as_deref());
                    }
                }
            }
        }
    }

    /// Ends the requests under way, and with them what they asked for, with `error`.
    fn abandon(&mut self, error: &Error, out: &mut Outbox<DiscoveryOutput>) {
        let State::Asking(asking) = &mut self.state else { return };
        let (calls, waiting) = (std::mem::take(&mut asking.calls), std::mem::take(&mut asking.waiting));
        for (ask, call) in calls.into_values() {
            out.extend(call.ticket().map(|ticket| DiscoveryOutput::Http(HttpEffect::Cancel { ticket })));
            asking.failed(ask, error.clone());
        }
        for ask in waiting {
            asking.failed(ask, error.clone());
        }
    }

    fn finish(&mut self, out: &mut Outbox<DiscoveryOutput>) {
        if let State::Asking(asking) = std::mem::replace(&mut self.state, State::Done) {
            out.push(DiscoveryOutput::Done(asking.into_result()));
        }
    }
}

impl Machine for Discovery {
    type Input = DiscoveryInput;
    type Output = DiscoveryOutput;

    fn on_input(&mut self, now: Now, input: DiscoveryInput, out: &mut Outbox<DiscoveryOutput>) {
        match input {
            DiscoveryInput::Http(event) => {
                self.step_call(now, event.ticket().machine(), Some(CallInput::Http(event)), out);
                self.go_on(now, out);
            }
            DiscoveryInput::Cancelled if self.is_done() => {}
            DiscoveryInput::Cancelled => {
                self.abandon(&Error::Cancelled, out);
                self.state = State::Done;
                out.push(DiscoveryOutput::Done(Err(Error::Cancelled)));
            }
        }
    }

    fn on_timer(&mut self, now: Now, out: &mut Outbox<DiscoveryOutput>) {
        match &self.state {
            State::Starting => self.start(now, out),
            State::Asking(asking) if asking.give_up.is_some_and(|at| at <= now.mono) => {
                self.abandon(&Error::TimedOut(self.config.timeout.unwrap_or_default()), out);
                self.finish(out);
            }
            State::Asking(asking) => {
                let due = |(machine, (_, call)): (&u32, &(Ask, Call))| {
                    call.deadline().is_some_and(|due| due.at <= now.mono).then_some(*machine)
                };
                for machine in asking.calls.iter().filter_map(due).collect::<Vec<_>>() {
                    self.step_call(now, machine, None, out);
                }
                self.go_on(now, out);
            }
            State::Done => {}
        }
    }

    fn deadline(&self) -> Option<Deadline> {
        match &self.state {
            State::Starting => Some(Deadline::new(Time::ZERO, "start of discovery")),
            State::Asking(asking) => {
                let give_up = asking.give_up.map(|at| Deadline::new(at, "end of discovery"));
                asking.calls.values().map(|(_, call)| call.deadline()).fold(give_up, Deadline::earliest)
            }
            State::Done => None,
        }
    }
}

#[derive(Clone, Debug)]
enum State {
    /// The first step.
    Starting,
    /// The answers to some requests.
    Asking(Box<Asking>),
    /// Nothing.
    Done,
}

/// What is asked for, and what has been found.
#[derive(Clone, Debug, Default)]
struct Asking {
    give_up: Option<Time>,
    /// By the number of their machines.
    calls: BTreeMap<u32, (Ask, Call)>,
    begun: u32,
    waiting: VecDeque<Ask>,
    /// The core group, and the others.
    found: [Found; 2],
}

/// What has been found at one of the roots.
#[derive(Clone, Debug, Default)]
struct Found {
    groups: Vec<ApiGroup>,
    failures: Vec<DiscoveryFailure>,
    etag: Option<HeaderValue>,
    /// Why nothing was found at all.
    error: Option<Error>,
}

/// What one request asks for.
#[derive(Clone, Copy, Debug)]
enum Ask {
    /// The document at `/api`, which is root 0, or `/apis`.
    Root { root: usize, is_aggregated: bool },
    /// One version of a group, by its place among those found.
    Version { root: usize, group: usize, version: usize },
}

impl Ask {
    fn request(self, found: &[Found; 2], previous: Option<&Catalog>) -> Request<Bytes> {
        let (path, accept, etag) = match self {
            Self::Root { root, is_aggregated: true } => {
                let etag = previous.and_then(|previous| previous.etags[root].clone());
                (ROOTS[root].to_owned(), AGGREGATED, etag)
            }
            Self::Root { root, is_aggregated: false } => (ROOTS[root].to_owned(), PLAIN, None),
            Self::Version { root, group, version } => {
                let group = &found[root].groups[group];
                let version = &group.versions[version].version;
                let path =
                    if root == 0 { format!("/api/{version}") } else { format!("/apis/{}/{version}", group.name) };
                (path, PLAIN, None)
            }
        };
        let mut request = Request::get(path).header(header::ACCEPT, accept);
        if let Some(etag) = etag {
            request = request.header(header::IF_NONE_MATCH, etag);
        }
        request.body(Bytes::new()).expect("paths are made of names that were checked to be plain")
    }
}

impl Asking {
    fn answered(&mut self, ask: Ask, result: Result<Answer, Error>, previous: Option<&Catalog>) {
        let answer = match result {
            Ok(answer) => answer,
            Err(error) => return self.failed(ask, error),
        };
        match ask {
            Ask::Root { root, is_aggregated } => {
                let is_unknown = matches!(answer.status, StatusCode::NOT_FOUND | StatusCode::NOT_ACCEPTABLE);
                let known = previous.filter(|previous| previous.etags[root].is_some());
                match known {
                    Some(known) if answer.status == StatusCode::NOT_MODIFIED => {
                        self.found[root] = Found::kept(known, root)
                    }
                    _ if is_unknown && is_aggregated => {
                        self.waiting.push_back(Ask::Root { root, is_aggregated: false })
                    }
                    _ => self.found_root(root, &answer),
                }
            }
            Ask::Version { root, group, version } => {
                let found = &mut self.found[root].groups[group];
                match documents::resources(&answer, &found.name, &found.versions[version].version) {
                    Ok(resources) => found.versions[version].resources = resources,
                    Err(error) => self.failed(ask, error),
                }
            }
        }
    }

    fn found_root(&mut self, root: usize, answer: &Answer) {
        let found = &mut self.found[root];
        match documents::root(answer, root == 0) {
            Ok(Root::Whole { groups, failures }) => {
                let etag = answer.headers.get(header::ETAG).cloned();
                *found = Found { groups, failures, etag, error: None };
            }
            Ok(Root::Versions { groups, failures }) => {
                for (group, of) in groups.iter().enumerate() {
                    let versions = 0..of.versions.len();
                    self.waiting.extend(versions.map(|version| Ask::Version { root, group, version }));
                }
                *found = Found { groups, failures, ..Found::default() };
            }
            Err(error) => found.error = Some(error),
        }
    }

    fn failed(&mut self, ask: Ask, error: Error) {
        match ask {
            Ask::Root { root, .. } => self.found[root].error = Some(error),
            Ask::Version { root, group, version } => {
                let found = &mut self.found[root];
                let group = &found.groups[group];
                let fault = DiscoveryFault::Failed(error);
                found.failures.push(DiscoveryFailure::new(&group.name, &group.versions[version].version, fault));
            }
        }
    }

    /// A server without a core group answers 404 where that would be, and so do some without others.
    fn into_result(self) -> Result<Catalog, Error> {
        let [core, others] = self.found;
        let mut catalog = Catalog { etags: [core.etag, others.etag], ..Catalog::default() };
        match (core.error, others.error) {
            (Some(error), Some(other)) => return Err(if error.is_not_found() { other } else { error }),
            (Some(error), None) if !error.is_not_found() => {
                catalog.failures.push(DiscoveryFailure::new("", "", DiscoveryFault::Failed(error)));
            }
            (None, Some(error)) if !error.is_not_found() => {
                let fault = DiscoveryFault::Failed(error);
                catalog.failures.push(DiscoveryFailure { group: None, version: "".into(), fault });
            }
            _ => {}
        }
        catalog.failures.extend(core.failures.into_iter().chain(others.failures));
        catalog.failures.sort_by(|one, other| (&one.group, &one.version).cmp(&(&other.group, &other.version)));
        catalog.groups = core.groups.into_iter().chain(others.groups).collect();
        Ok(catalog)
    }
}

impl Found {
    /// What was found before at a root that has not changed.
    fn kept(catalog: &Catalog, root: usize) -> Self {
        let is_here = |group: &str| group.is_empty() == (root == 0);
        let groups = catalog.groups.iter().filter(|group| is_here(&group.name)).cloned().collect();
        let failures = catalog.failures.iter().filter(|failure| failure.group.as_deref().is_some_and(is_here));
        Self { groups, failures: failures.cloned().collect(), etag: catalog.etags[root].clone(), error: None }
    }
}

const ROOTS: [&str; 2] = ["/api", "/apis"];
const PLAIN: &str = "application/json";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
