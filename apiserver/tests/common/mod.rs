//! A server in virtual time, and a client that speaks HTTP to it.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use cloudcoil_apiserver::{ApiServer, ServerConfig, ServerInput};
use cloudcoil_core::{HttpEvent, Machine, Now, Outbox, Ticket, Tickets, UnixTime};
use http::{HeaderMap, Request};
use serde_json::{Value, json};

/// A server, the time, and what has come of each request.
pub(crate) struct World {
    pub(crate) server: ApiServer,
    pub(crate) now: Now,
    tickets: Tickets,
    answers: BTreeMap<Ticket, Reply>,
}

/// What has come of a request so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) closed: bool,
}

impl Reply {
    /// The body as JSON; as text if it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| Value::from(String::from_utf8_lossy(&self.body)))
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(ServerConfig::default())
    }

    pub(crate) fn with(config: ServerConfig) -> Self {
        let now = Now { wall: UnixTime::from_secs(1_767_323_045), ..Now::default() };
        Self { server: ApiServer::new(config, now), now, tickets: Tickets::new(0), answers: BTreeMap::new() }
    }

    /// Sends a request, whose answer may still be to come.
    pub(crate) fn send(&mut self, request: Request<Bytes>) -> Ticket {
        let ticket = self.tickets.issue();
        self.answers.insert(ticket, Reply::default());
        self.step(Some(ServerInput::Requested { ticket, request: request.into() }));
        ticket
    }

    pub(crate) fn step(&mut self, input: Option<ServerInput>) {
        let mut out = Outbox::new();
        let deadline = self.server.step(self.now, input, &mut out);
        assert!(deadline.is_none_or(|deadline| deadline.at > self.now.mono), "{deadline:?} is not ahead");
        self.hear(out);
    }

    /// Does something to the server itself.
    pub(crate) fn act<T>(&mut self, action: impl FnOnce(&mut ApiServer, Now, &mut Outbox<HttpEvent>) -> T) -> T {
        let mut out = Outbox::new();
        let answer = action(&mut self.server, self.now, &mut out);
        self.hear(out);
        answer
    }

    fn hear(&mut self, out: Outbox<HttpEvent>) {
        for event in out {
            let answer = self.answers.get_mut(&event.ticket()).expect("the server answers what it was asked");
            assert!(!answer.closed, "nothing comes after the end");
            match event {
                HttpEvent::Responded { status, headers, .. } => {
                    assert_eq!(answer.code, 0, "an answer has one head");
                    (answer.code, answer.headers) = (status.as_u16(), headers);
                }
                HttpEvent::Received { bytes, .. } => {
                    assert_ne!(answer.code, 0, "the head comes before the body");
                    answer.body.extend_from_slice(&bytes);
                }
                HttpEvent::Closed { result, .. } => {
                    assert_eq!(result, Ok(()));
                    answer.closed = true;
                }
            }
        }
    }

    /// Lets time pass; timers fire at their instants.
    pub(crate) fn wait(&mut self, duration: Duration) {
        let end = self.now.after(duration);
        while let Some(deadline) = self.server.deadline().filter(|deadline| deadline.at <= end.mono) {
            self.now = self.now.after(deadline.at.since(self.now.mono));
            self.step(None);
        }
        self.now = end;
    }

    /// Lets the controllers inside the server do what there is to do.
    pub(crate) fn settle(&mut self) {
        self.wait(Duration::from_secs(5));
    }

    pub(crate) fn reply(&self, ticket: Ticket) -> &Reply {
        &self.answers[&ticket]
    }

    /// Sends a request and answers what came of it at once.
    pub(crate) fn exchange(&mut self, request: Request<Bytes>) -> Reply {
        let ticket = self.send(request);
        let reply = self.reply(ticket).clone();
        assert!(reply.closed, "the answer is whole: {reply:?}");
        reply
    }

    /// The code and the JSON body that a request is answered with.
    pub(crate) fn call(&mut self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        self.call_as(method, path, kind, body)
    }

    pub(crate) fn call_as(&mut self, method: &str, path: &str, kind: &str, body: Option<Value>) -> (u16, Value) {
        let bytes = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        let reply = self.exchange(request(method, path, kind, bytes));
        (reply.code, reply.json())
    }

    pub(crate) fn get(&mut self, path: &str) -> (u16, Value) {
        self.call("GET", path, None)
    }

    pub(crate) fn get_as(&mut self, path: &str, accept: &str) -> (u16, Value) {
        let mut request = request("GET", path, "application/json", Bytes::new());
        request.headers_mut().insert("accept", accept.parse().unwrap());
        let reply = self.exchange(request);
        (reply.code, reply.json())
    }

    /// Creates an object, which must work.
    pub(crate) fn create(&mut self, path: &str, body: Value) -> Value {
        let (code, object) = self.call("POST", path, Some(body));
        assert_eq!(code, 201, "{object}");
        object
    }

    /// Patches an object by a merge patch, which must work.
    pub(crate) fn patch(&mut self, path: &str, body: Value) -> Value {
        let (code, object) = self.call("PATCH", path, Some(body));
        assert_eq!(code, 200, "{object}");
        object
    }

    /// Whether there is an object at a path.
    pub(crate) fn exists(&mut self, path: &str) -> bool {
        match self.get(path).0 {
            200 => true,
            404 => false,
            other => panic!("{path}: {other}"),
        }
    }

    /// Opens a watch.
    pub(crate) fn watch(&mut self, path: &str) -> Ticket {
        let ticket = self.send(request("GET", path, "application/json", Bytes::new()));
        assert_eq!(self.reply(ticket).code, 200, "{}", self.reply(ticket).json());
        ticket
    }

    /// The events of a watch since they were last asked for.
    pub(crate) fn events(&mut self, ticket: Ticket) -> Vec<Value> {
        let answer = self.answers.get_mut(&ticket).expect("a ticket of ours");
        let body = std::mem::take(&mut answer.body);
        let text = String::from_utf8(body).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The events of a watch in short: `ADDED a 7`.
    pub(crate) fn told(&mut self, ticket: Ticket) -> Vec<String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let short = |event: &Value| {
            let metadata = &event["object"]["metadata"];
            let words = [text(&event["type"]), text(&metadata["name"]), text(&metadata["resourceVersion"])];
            words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
        };
        self.events(ticket).iter().map(short).collect()
    }
}

pub(crate) fn request(method: &str, path: &str, kind: &str, body: Bytes) -> Request<Bytes> {
    let builder = Request::builder().method(method).uri(path).header("content-type", kind);
    builder.body(body).expect("tests write good requests")
}

/// A config map with nothing in it.
pub(crate) fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

/// The names in a list.
pub(crate) fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().expect("a list").iter().filter_map(|item| item["metadata"]["name"].as_str()).collect()
}

/// The code, reason and message of a refusal.
pub(crate) fn refusal((code, status): &(u16, Value)) -> (u16, &str, &str) {
    let text = |field: &str| status[field].as_str().unwrap_or_default();
    assert_eq!((text("kind"), text("apiVersion"), text("status")), ("Status", "v1", "Failure"), "{status}");
    assert_eq!(status["code"], *code, "{status}");
    (*code, text("reason"), text("message"))
}

/// The path of the config maps of the namespace `default`.
pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A custom resource definition of `widgets.example.com` with these versions, or with `v1` alone.
pub(crate) fn definition(versions: &[Value]) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let mut versions = versions.to_vec();
    for version in &mut versions {
        version["schema"] = schema.clone();
        version["served"] = json!(true);
    }
    json!({"metadata": {"name": "widgets.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]}, "versions": versions}})
}

pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(crate) const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

pub(crate) fn widget(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}
