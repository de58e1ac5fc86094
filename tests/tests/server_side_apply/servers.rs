//! A real API server and the one in memory, behind one face.

use std::time::Duration;

use cloudcoil_apiserver::{ApiServer, ServerConfig, ServerInput};
use cloudcoil_core::{HttpEvent, Machine, Now, Outbox, Tickets, UnixTime};
use cloudcoil_testing::ControlPlane;
use serde_json::{Map, Value, json};

/// Something that answers requests.
pub(crate) trait Server {
    fn send(&mut self, request: &Request) -> Answer;

    /// Lets what a definition defines come to be served.
    fn await_definition(&mut self);

    fn make_namespace(&mut self, name: &str) {
        let answer = self.send(&Request::post("/api/v1/namespaces", json!({"metadata": {"name": name}})));
        assert_eq!(answer.code, 201, "{}", answer.body);
    }

    fn define(&mut self, definition: &str) {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let answer = self.send(&Request::post(path, serde_json::from_str(definition).unwrap()));
        assert_eq!(answer.code, 201, "{}", answer.body);
        self.await_definition();
    }
}

/// A request.
pub(crate) struct Request {
    method: &'static str,
    path: String,
    content_type: &'static str,
    body: String,
}

/// What it is answered with.
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) warnings: Vec<String>,
    pub(crate) body: Value,
}

impl Request {
    fn post(path: &str, body: Value) -> Self {
        let (path, body) = (path.to_owned(), body.to_string());
        Self { method: "POST", path, content_type: "application/json", body }
    }

    /// Reads a line of a scenario.
    pub(crate) fn parse(line: &str, namespace: &str, version: &str) -> Self {
        let mut words = line.splitn(3, ' ');
        let (verb, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let body = words.next().unwrap_or_default().replace("$RV", version);
        let (method, content_type) = verb_of(verb);
        let (target, query) = target.split_once('?').unwrap_or((target, ""));
        let mut parts = target.split('/');
        let (prefix, plural, api_version, kind) = resource(parts.next().unwrap_or_default());
        let given = parts.next().unwrap_or_default();
        let (place, name) = if plural == "namespaces" {
            (String::new(), format!("{namespace}-{given}"))
        } else {
            (format!("/namespaces/{namespace}"), given.to_owned())
        };
        let mut path = format!("{prefix}{place}/{plural}");
        if method != "POST" {
            path.push_str(&format!("/{name}"));
        }
        for subresource in parts {
            path.push_str(&format!("/{subresource}"));
        }
        if !query.is_empty() {
            path.push_str(&format!("?{query}"));
        }
        let body = match body.strip_prefix('!') {
            Some(body) => body.to_owned(),
            None if matches!(verb, "apply" | "cbor" | "post" | "put") => completed(&body, api_version, kind, &name),
            None => body,
        };
        Self { method, path, content_type, body }
    }
}

/// A body with the type and name of its object.
fn completed(body: &str, api_version: &str, kind: &str, name: &str) -> String {
    let given: Map<String, Value> = serde_json::from_str(body).unwrap_or_else(|error| panic!("{body}: {error}"));
    let mut whole = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    for (field, value) in given {
        match (field.as_str(), value) {
            ("metadata", Value::Object(metadata)) => whole["metadata"].as_object_mut().unwrap().extend(metadata),
            (_, value) => whole[&field] = value,
        }
    }
    whole.to_string()
}

fn verb_of(verb: &str) -> (&'static str, &'static str) {
    match verb {
        "apply" => ("PATCH", "application/apply-patch+yaml"),
        "cbor" => ("PATCH", "application/apply-patch+cbor"),
        "merge" => ("PATCH", "application/merge-patch+json"),
        "strategic" => ("PATCH", "application/strategic-merge-patch+json"),
        "json" => ("PATCH", "application/json-patch+json"),
        "post" => ("POST", "application/json"),
        "postyaml" => ("POST", "application/yaml"),
        "put" => ("PUT", "application/json"),
        "get" => ("GET", "application/json"),
        other => panic!("no verb {other}"),
    }
}

/// The path of a resource's group and version, its plural, and the version and kind of its objects.
fn resource(name: &str) -> (&'static str, &'static str, &'static str, &'static str) {
    match name {
        "cm" => ("/api/v1", "configmaps", "v1", "ConfigMap"),
        "svc" => ("/api/v1", "services", "v1", "Service"),
        "pod" => ("/api/v1", "pods", "v1", "Pod"),
        "ns" => ("/api/v1", "namespaces", "v1", "Namespace"),
        "deploy" => ("/apis/apps/v1", "deployments", "apps/v1", "Deployment"),
        "role" => ("/apis/rbac.authorization.k8s.io/v1", "roles", "rbac.authorization.k8s.io/v1", "Role"),
        "hpa" => ("/apis/autoscaling/v2", "horizontalpodautoscalers", "autoscaling/v2", "HorizontalPodAutoscaler"),
        "hpa1" => ("/apis/autoscaling/v1", "horizontalpodautoscalers", "autoscaling/v1", "HorizontalPodAutoscaler"),
        "widget" => ("/apis/example.com/v1", "widgets", "example.com/v1", "Widget"),
        other => panic!("no resource {other}"),
    }
}

/// A real control plane.
pub(crate) struct Real {
    agent: ureq::Agent,
    url: String,
    token: String,
}

impl Real {
    pub(crate) fn new(plane: &ControlPlane) -> Self {
        use ureq::tls::{Certificate, RootCerts, TlsConfig};
        let authority = Certificate::from_pem(plane.ca_pem().as_bytes()).unwrap();
        let tls = TlsConfig::builder()
            .unversioned_rustls_crypto_provider(cloudcoil_tls::provider())
            .root_certs(RootCerts::new_with_certs(&[authority]))
            .build();
        let config = ureq::Agent::config_builder().tls_config(tls).proxy(None).http_status_as_error(false);
        let agent = config.timeout_global(Some(Duration::from_secs(30))).build().into();
        Self { agent, url: plane.url().to_owned(), token: plane.token().to_owned() }
    }
}

impl Server for Real {
    fn send(&mut self, request: &Request) -> Answer {
        let sent = http::Request::builder()
            .method(request.method)
            .uri(format!("{}{}", self.url, request.path))
            .header("authorization", format!("Bearer {}", self.token))
            .header("user-agent", AGENT)
            .header("content-type", request.content_type)
            .header("accept", "application/json")
            .body(request.body.clone())
            .unwrap();
        let mut answer = self.agent.run(sent).unwrap();
        let warnings = answer.headers().get_all("warning");
        let warnings = warnings.iter().filter_map(|value| Some(value.to_str().ok()?.to_owned())).collect();
        let (code, text) = (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap());
        Answer { code, warnings, body: serde_json::from_str(&text).unwrap_or(Value::String(text)) }
    }

    fn await_definition(&mut self) {
        // A definition is served a while after it is established; whoever asks before gets 404.
        for _ in 0..300 {
            let answer = self.send(&Request::parse("get widget/none", "default", ""));
            let list = self.send(&Request {
                method: "GET",
                path: "/apis/example.com/v1/widgets".to_owned(),
                content_type: "application/json",
                body: String::new(),
            });
            if list.code == 200 && answer.code == 404 {
                return;
            }
        }
        panic!("widgets are not served");
    }
}

/// The server in memory, in a time of its own.
pub(crate) struct InMemory {
    server: ApiServer,
    now: Now,
    tickets: Tickets,
}

impl InMemory {
    pub(crate) fn new() -> Self {
        let now = Now { wall: UnixTime::from_secs(1_767_323_045), ..Now::default() };
        // No controller of the real control plane runs either.
        let config = ServerConfig { controller_delay: NEVER, ..ServerConfig::default() };
        Self { server: ApiServer::new(config, now), now, tickets: Tickets::new(0) }
    }

    fn wait(&mut self, duration: Duration, out: &mut Outbox<HttpEvent>) {
        let end = self.now.after(duration);
        while let Some(deadline) = self.server.deadline().filter(|deadline| deadline.at <= end.mono) {
            self.now = self.now.after(deadline.at.since(self.now.mono));
            let _ = self.server.step(self.now, None, out);
        }
        self.now = end;
    }
}

impl Server for InMemory {
    fn send(&mut self, request: &Request) -> Answer {
        let sent = http::Request::builder()
            .method(request.method)
            .uri(&request.path)
            .header("user-agent", AGENT)
            .header("content-type", request.content_type)
            .header("accept", "application/json")
            .body(request.body.clone().into())
            .unwrap();
        let (ticket, mut out) = (self.tickets.issue(), Outbox::new());
        self.wait(Duration::from_secs(1), &mut out);
        let input = ServerInput::Requested { ticket, request: sent.into() };
        let _ = self.server.step(self.now, Some(input), &mut out);
        let mut answer = Answer { code: 0, warnings: Vec::new(), body: Value::Null };
        let mut text = Vec::new();
        for event in out {
            match event {
                HttpEvent::Responded { status, headers, .. } => {
                    answer.code = status.as_u16();
                    let warnings = headers.get_all("warning").into_iter();
                    answer.warnings = warnings.filter_map(|value| Some(value.to_str().ok()?.to_owned())).collect();
                }
                HttpEvent::Received { bytes, .. } => text.extend_from_slice(&bytes),
                HttpEvent::Closed { result, .. } => assert_eq!(result, Ok(())),
            }
        }
        let plain = || Value::from(String::from_utf8_lossy(&text));
        answer.body = serde_json::from_slice(&text).unwrap_or_else(|_| plain());
        answer
    }

    fn await_definition(&mut self) {
        self.wait(NEVER * 2, &mut Outbox::new());
    }
}

/// Longer than all that is asked takes.
const NEVER: Duration = Duration::from_secs(1_000_000);

/// Who asks; its first word is a field manager.
const AGENT: &str = "tester/1.0 (a test)";
