//! What containers have written, and who follows it. There are no containers: tests say what they write.

use std::collections::BTreeMap;

use bytes::Bytes;
use cloudcoil_core::{HttpEvent, Now, Outbox, Ticket, UnixTime};
use http::StatusCode;
use serde_json::Value;

use super::cluster::{Call, Cluster};
use super::errors::{Fault, Outcome, bad_request, invalid, not_found, quote};
use super::object::{self, Object};
use super::reply::{Body, Reply, head};
use super::route::Query;
use super::store::Key;

/// Which container of which pod writes a log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_structs, reason = "a container has no other name")]
pub struct LogSource {
    /// The namespace of the pod.
    pub namespace: String,
    /// The name of the pod.
    pub pod: String,
    /// The name of the container, be it an init container or an ephemeral one.
    pub container: String,
}

impl LogSource {
    /// The log of a container.
    pub fn new(namespace: &str, pod: &str, container: &str) -> Self {
        let [namespace, pod, container] = [namespace, pod, container].map(str::to_owned);
        Self { namespace, pod, container }
    }

    fn key(&self) -> Key {
        super::store::key(Some(&self.namespace), &self.pod)
    }
}

/// The logs of all containers that have written any.
#[derive(Debug, Default)]
pub(crate) struct Logs(BTreeMap<LogSource, Log>);

/// What a container has written since it was started, and before that.
#[derive(Debug, Default)]
struct Log {
    lines: Vec<Line>,
    previous: Option<Vec<Line>>,
    finished: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct Line {
    at: UnixTime,
    text: String,
}

impl Line {
    fn is_whole(&self) -> bool {
        self.text.ends_with('\n')
    }
}

/// A piece of a log as it came: a line, or the rest of one that has begun.
struct Piece<'a> {
    at: UnixTime,
    begins: bool,
    text: &'a str,
}

impl Log {
    /// Adds text at its end and answers which pieces that was.
    fn append<'a>(&mut self, at: UnixTime, text: &'a str) -> Vec<Piece<'a>> {
        let mut pieces = Vec::new();
        for text in text.split_inclusive('\n') {
            match self.lines.last_mut().filter(|line| !line.is_whole()) {
                Some(line) => {
                    line.text.push_str(text);
                    pieces.push(Piece { at: line.at, begins: false, text });
                }
                None => {
                    self.lines.push(Line { at, text: text.to_owned() });
                    pieces.push(Piece { at, begins: true, text });
                }
            }
        }
        pieces
    }
}

impl Logs {
    /// Forgets what the containers of a pod have written.
    pub(crate) fn forget(&mut self, pod: &Key) {
        self.0.retain(|source, _| source.key() != *pod);
    }
}

/// What is asked of a log.
#[derive(Clone, Copy, Debug)]
struct Asked {
    follow: bool,
    previous: bool,
    timestamps: bool,
    since: Option<UnixTime>,
    tail: Option<usize>,
    limit: Option<usize>,
}

impl Asked {
    fn of(call: &Call<'_>) -> Outcome<Self> {
        let Call { query, now, .. } = call;
        let [tail, limit, seconds] = ["tailLines", "limitBytes", "sinceSeconds"].map(|name| query.number(name));
        let (tail, limit, seconds) = (tail?, limit?, seconds?);
        let instant = since_time(query)?;
        let faults = faults(query, [tail, limit, seconds], instant.is_some());
        if !faults.is_empty() {
            return Err(invalid("", "PodLogOptions", call.name(), &faults));
        }
        let ago = |seconds: i64| {
            UnixTime::from_micros(now.wall.as_micros().saturating_sub(seconds.saturating_mul(1_000_000)))
        };
        let count = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
        Ok(Self {
            follow: query.flag("follow"),
            previous: query.flag("previous"),
            timestamps: query.flag("timestamps"),
            since: instant.or_else(|| seconds.map(ago)),
            tail: tail.map(count),
            limit: limit.map(count),
        })
    }

    fn show(&self, lines: &[Line]) -> String {
        let first = lines.len() - self.tail.unwrap_or(usize::MAX).min(lines.len());
        let mut text = String::new();
        for line in lines[first..].iter().filter(|line| self.since.is_none_or(|since| line.at >= since)) {
            self.write(line.at, true, &line.text, &mut text);
        }
        text
    }

    fn write(&self, at: UnixTime, begins: bool, text: &str, to: &mut String) {
        if self.timestamps && begins {
            to.push_str(&at.to_rfc3339_micros());
            to.push(' ');
        }
        to.push_str(text);
    }
}

fn since_time(query: &Query) -> Outcome<Option<UnixTime>> {
    let text = query.text("sinceTime");
    if text.is_empty() {
        return Ok(None);
    }
    let parsed: Result<jiff::Timestamp, _> = text.parse();
    parsed.map(|instant| Some(UnixTime::from_micros(instant.as_microsecond()))).map_err(|_| {
        let quoted = quote(text);
        bad_request(format!(
            "parsing time {quoted} as \"2006-01-02T15:04:05Z07:00\": cannot parse {quoted} as \"2006\""
        ))
    })
}

fn faults(query: &Query, [tail, limit, seconds]: [Option<i64>; 3], since_time: bool) -> Vec<Fault> {
    let mut faults = Vec::new();
    if let Some(tail) = tail.filter(|tail| *tail < 0) {
        faults.push(Fault::invalid("tailLines", tail, "must be greater than or equal to 0"));
    }
    if let Some(limit) = limit.filter(|limit| *limit < 1) {
        faults.push(Fault::invalid("limitBytes", limit, "must be greater than 0"));
    }
    match seconds {
        Some(_) if since_time => {
            faults.push(Fault::forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"));
        }
        Some(seconds) if seconds < 1 => {
            faults.push(Fault::invalid("sinceSeconds", seconds, "must be greater than 0"));
        }
        _ => {}
    }
    if query.has("stream") {
        faults.push(Fault::forbidden("stream", "may not be specified"));
    }
    faults
}

/// A log that goes on.
#[derive(Debug)]
pub(crate) struct Follow {
    source: LogSource,
    asked: Asked,
    first: String,
}

impl Cluster {
    /// What a container has written.
    pub(crate) fn log(&self, call: &Call<'_>) -> Outcome<Reply> {
        let asked = Asked::of(call)?;
        let Some(pod) = self.store.get(&call.resource.place, &call.key()) else {
            return Err(not_found(call.resource, call.name()));
        };
        let container = container(pod, call.query.text("container"))?;
        let source = LogSource::new(pod.namespace(), pod.name(), &container);
        let Some(log) = self.logs.0.get(&source) else {
            if object::text_at(pod.fields(), &["spec", "nodeName"]).is_empty() {
                return Ok(Reply::Body(Body::text(204, "text/plain", Bytes::new())));
            }
            let (container, pod) = (quote(&container), quote(pod.name()));
            let message = format!("container {container} in pod {pod} is waiting to start: ContainerCreating");
            return Err(bad_request(message));
        };
        let lines = match (&log.previous, asked.previous) {
            (_, false) => &log.lines,
            (Some(lines), true) => lines,
            (None, true) => {
                let (container, pod) = (quote(&container), quote(pod.name()));
                return Err(bad_request(format!("previous terminated container {container} in pod {pod} not found")));
            }
        };
        let mut text = asked.show(lines);
        let full = asked.limit.is_some_and(|limit| text.len() >= limit);
        cut(&mut text, asked.limit);
        if !asked.follow || asked.previous || log.finished || full {
            return Ok(Reply::Body(Body::text(200, "text/plain", text)));
        }
        Ok(Reply::Follow(Box::new(Follow { source, asked, first: text })))
    }

    /// The log of a container that is in a pod; `None` when there is no such container.
    fn log_of(&mut self, source: &LogSource) -> Option<&mut Log> {
        let pod = self.store.get(PODS, &source.key())?;
        let has = containers(pod).iter().any(|name| *name == source.container);
        has.then(|| self.logs.0.entry(source.clone()).or_default())
    }
}

/// Who follows a log.
#[derive(Debug, Default)]
pub(crate) struct Followers {
    open: BTreeMap<Ticket, Follower>,
}

#[derive(Debug)]
struct Follower {
    source: LogSource,
    asked: Asked,
    /// How many bytes it still wants.
    left: Option<usize>,
}

impl Followers {
    pub(crate) fn open(&mut self, ticket: Ticket, follow: Follow, out: &mut Outbox<HttpEvent>) {
        out.push(HttpEvent::Responded { ticket, status: StatusCode::OK, headers: head("text/plain") });
        let left = follow.asked.limit.map(|limit| limit.saturating_sub(follow.first.len()));
        if !follow.first.is_empty() {
            out.push(HttpEvent::Received { ticket, bytes: follow.first.into() });
        }
        self.open.insert(ticket, Follower { source: follow.source, asked: follow.asked, left });
    }

    pub(crate) fn is_open(&self, ticket: Ticket) -> bool {
        self.open.contains_key(&ticket)
    }

    pub(crate) fn forget(&mut self, ticket: Ticket) {
        self.open.remove(&ticket);
    }

    /// Ends every stream.
    #[cfg(feature = "listen")]
    pub(crate) fn close_all(&mut self, out: &mut Outbox<HttpEvent>) {
        self.close(|_| true, out);
    }

    /// Ends the streams of a pod that is gone.
    pub(crate) fn close_pod(&mut self, pod: &Key, out: &mut Outbox<HttpEvent>) {
        self.close(|source| source.key() == *pod, out);
    }

    fn close(&mut self, which: impl Fn(&LogSource) -> bool, out: &mut Outbox<HttpEvent>) {
        self.open.retain(|ticket, follower| {
            let ends = which(&follower.source);
            if ends {
                out.push(HttpEvent::Closed { ticket: *ticket, result: Ok(()) });
            }
            !ends
        });
    }

    fn tell(&mut self, source: &LogSource, pieces: &[Piece<'_>], out: &mut Outbox<HttpEvent>) {
        self.open.retain(|ticket, follower| {
            if follower.source != *source {
                return true;
            }
            let mut text = String::new();
            for piece in pieces {
                follower.asked.write(piece.at, piece.begins, piece.text, &mut text);
            }
            let full = follower.left.is_some_and(|left| text.len() >= left);
            cut(&mut text, follower.left);
            follower.left = follower.left.map(|left| left.saturating_sub(text.len()));
            if !text.is_empty() {
                out.push(HttpEvent::Received { ticket: *ticket, bytes: text.into() });
            }
            if full {
                out.push(HttpEvent::Closed { ticket: *ticket, result: Ok(()) });
            }
            !full
        });
    }
}

/// What tests do to logs; each answers whether there is such a container.
pub(crate) struct LogWriter<'a> {
    pub(crate) cluster: &'a mut Cluster,
    pub(crate) followers: &'a mut Followers,
}

impl LogWriter<'_> {
    pub(crate) fn append(self, now: Now, source: &LogSource, text: &str, out: &mut Outbox<HttpEvent>) -> bool {
        let Some(log) = self.cluster.log_of(source) else { return false };
        log.finished = false;
        let pieces = log.append(now.wall, text);
        self.followers.tell(source, &pieces, out);
        true
    }

    /// The container has ended: whoever follows has heard all.
    pub(crate) fn finish(self, source: &LogSource, out: &mut Outbox<HttpEvent>) -> bool {
        let Some(log) = self.cluster.log_of(source) else { return false };
        log.finished = true;
        self.followers.close(|followed| followed == source, out);
        true
    }

    /// The container has ended and begins anew: what it has written is what it wrote before.
    pub(crate) fn restart(self, source: &LogSource, out: &mut Outbox<HttpEvent>) -> bool {
        let Some(log) = self.cluster.log_of(source) else { return false };
        log.previous = Some(std::mem::take(&mut log.lines));
        log.finished = false;
        self.followers.close(|followed| followed == source, out);
        true
    }
}

/// The container whose log is meant, which goes without saying when there is one alone.
fn container(pod: &Object, named: &str) -> Outcome<String> {
    let all = containers(pod);
    let name = pod.name();
    if !named.is_empty() {
        let known = all.contains(&named);
        let refusal = || bad_request(format!("container {named} is not valid for pod {name}"));
        return known.then(|| named.to_owned()).ok_or_else(refusal);
    }
    match &containers_in(pod, "containers")[..] {
        [one] => Ok((*one).to_owned()),
        [] => Err(bad_request(format!("a container name must be specified for pod {name}"))),
        _ => {
            let choice = all.join(" ");
            Err(bad_request(format!("a container name must be specified for pod {name}, choose one of: [{choice}]")))
        }
    }
}

fn containers(pod: &Object) -> Vec<&str> {
    ["initContainers", "containers", "ephemeralContainers"]
        .into_iter()
        .flat_map(|list| containers_in(pod, list))
        .collect()
}

fn containers_in<'a>(pod: &'a Object, list: &str) -> Vec<&'a str> {
    let found = object::at(pod.fields(), &["spec", list]).and_then(Value::as_array);
    found.into_iter().flatten().filter_map(|container| container.get("name")?.as_str()).collect()
}

/// Keeps so many bytes, or one or two fewer where a character would be cut.
fn cut(text: &mut String, limit: Option<usize>) {
    if let Some(limit) = limit.filter(|limit| *limit < text.len()) {
        text.truncate(text.floor_char_boundary(limit));
    }
}

/// Where pods are kept.
pub(crate) const PODS: &str = "/pods";
