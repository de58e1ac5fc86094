//! The two servers, and how a scenario is played to one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cloudcoil_apiserver::{Anonymous, ServerConfig, ServerHandle, Tls, User, serve_tls};
use cloudcoil_testing::{ControlPlane, ControlPlaneBuilder};
use cloudcoil_tokio::core::{Answer, RetryPolicy};
use cloudcoil_tokio::prelude::*;
use http::Request;
use serde_json::{Value, json};

use crate::answer::comparable;
use crate::scenario::{Kept, Scenario, Step};

/// A real control plane and a server in memory, which know the same users.
pub(crate) struct Sides {
    pub(crate) real: Side,
    pub(crate) memory: Side,
    pub(crate) plane: Arc<ControlPlane>,
    pub(crate) server: ServerHandle,
}

/// Asks one server.
#[derive(Clone)]
pub(crate) struct Side {
    /// One that shows no credentials of its own.
    kubeconfig: String,
    client: Client,
    admin: String,
}

/// Starts a control plane whose users the server in memory knows as well.
pub(crate) fn real(builder: ControlPlaneBuilder, test: &str) -> Option<ControlPlane> {
    let [bob, carol] = users();
    let builder = builder.token("bob-token", &bob.name, &["devs", "ops"]);
    builder.token("carol-token", &carol.name, &["system:masters"]).start_or_skip(test)
}

fn users() -> [User; 2] {
    let user =
        |name: &str, groups: &[&'static str]| User { uid: name.to_owned(), ..User::new(name, groups.iter().copied()) };
    [user("bob", &["devs", "ops"]), user("carol", &["system:masters"])]
}

impl Sides {
    pub(crate) async fn start(plane: ControlPlane) -> Self {
        let [bob, carol] = users();
        let config = ServerConfig {
            token: Some("admin-token".to_owned()),
            users: [("bob-token".to_owned(), bob), ("carol-token".to_owned(), carol)].into(),
            anonymous: Some(Anonymous::Allowed),
            ..ServerConfig::default()
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = serve_tls(config, listener, Tls::generate(&[]).unwrap()).unwrap();
        let real = Side::new(&anonymous(&plane.kubeconfig_with_token("unused")), plane.token()).await;
        let memory = Side::new(&anonymous(&server.kubeconfig_with_token("unused")), "admin-token").await;
        real.let_everybody_in().await;
        Self { real, memory, plane: Arc::new(plane), server }
    }
}

/// A kubeconfig without its token.
fn anonymous(kubeconfig: &str) -> String {
    kubeconfig.replace("\n    token: \"unused\"", " {}")
}

/// A client for the text of a kubeconfig.
pub(crate) async fn client(kubeconfig: &str) -> Client {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), kubeconfig).unwrap();
    let client = Client::try_from_kubeconfig(file.path()).await.unwrap();
    client.with_retry(RetryPolicy::OFF)
}

impl Side {
    async fn new(kubeconfig: &str, admin: &str) -> Self {
        let client = client(kubeconfig).await;
        Self { kubeconfig: kubeconfig.to_owned(), client, admin: admin.to_owned() }
    }

    /// The same, on connections of its own: a server may close one over what it is sent.
    pub(crate) async fn anew(&self) -> Self {
        Self::new(&self.kubeconfig, &self.admin).await
    }

    /// What the server in memory allows everybody who is known.
    async fn let_everybody_in(&self) {
        let verbs = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
        let role = json!({"metadata": {"name": "everything"}, "rules": [
            {"apiGroups": ["*"], "resources": ["*"], "verbs": verbs},
            {"nonResourceURLs": ["*"], "verbs": ["get", "head", "post", "put", "patch", "delete"]}]});
        let group = "rbac.authorization.k8s.io";
        let binding = json!({"metadata": {"name": "everything"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "everything"},
            "subjects": [{"apiGroup": group, "kind": "Group", "name": "system:authenticated"}]});
        for (plural, body) in [("clusterroles", role), ("clusterrolebindings", binding)] {
            let created = self.ask("POST", &format!("/apis/{group}/v1/{plural}"), &self.admin, body).await;
            assert_eq!(created.status, 201, "{}", String::from_utf8_lossy(&created.body));
        }
    }

    async fn ask(&self, method: &str, path: &str, token: &str, body: Value) -> Answer {
        let request = Request::builder().method(method).uri(path).header("authorization", format!("Bearer {token}"));
        let request = request.header("content-type", "application/json").body(Bytes::from(body.to_string()));
        self.client.request(request.unwrap()).await.unwrap()
    }

    /// Plays a scenario and answers with what is comparable of each step.
    pub(crate) async fn play(&self, scenario: &Scenario, namespace: &str) -> Vec<Value> {
        let created = json!({"metadata": {"name": namespace}});
        let created = self.ask("POST", "/api/v1/namespaces", &self.admin, created).await;
        assert_eq!(created.status, 201, "{}", String::from_utf8_lossy(&created.body));
        let mut kept = Kept(BTreeMap::from(
            [
                ("ns", namespace.to_owned()),
                ("core", format!("/api/v1/namespaces/{namespace}")),
                ("apps", format!("/apis/apps/v1/namespaces/{namespace}")),
                ("policy", format!("/apis/policy/v1/namespaces/{namespace}")),
                ("long", "x".repeat(400_000)),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        ));
        let mut shown = Vec::new();
        for step in &scenario.steps {
            let answer = self.step(step, &kept).await;
            for (name, pointer) in &step.keep {
                let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
                let value = body.pointer(pointer).and_then(Value::as_str).unwrap_or("nothing");
                kept.0.insert(name.clone(), value.to_owned());
            }
            shown.push(comparable(step, &answer, &kept));
        }
        shown
    }

    async fn step(&self, step: &Step, kept: &Kept) -> Answer {
        for _ in 0..WAITS {
            let answer = self.client.request(self.request(step, kept)).await.unwrap();
            if step.wait.is_none_or(|wanted| answer.status == wanted) {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{} is not answered {:?}", step.request, step.wait);
    }

    fn request(&self, step: &Step, kept: &Kept) -> Request<Bytes> {
        let line = kept.fill(&step.request);
        let (method, path) = line.split_once(' ').unwrap();
        let path = if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", kept.0["core"]) };
        let kind = match step.kind.as_deref() {
            None => "application/json",
            Some("merge") => "application/merge-patch+json",
            Some("json") => "application/json-patch+json",
            Some("strategic") => "application/strategic-merge-patch+json",
            Some("apply") => "application/apply-patch+yaml",
            Some(other) => other,
        };
        let mut request = Request::builder().method(method).uri(path).header("content-type", kind);
        request = request.header("user-agent", "scenario");
        if let Some(accept) = &step.accept {
            request = request.header("accept", accept);
        }
        let token = step.token.as_ref().map_or_else(|| self.admin.clone(), |token| kept.fill(token));
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, values) in &step.headers {
            for value in values.all() {
                request = request.header(name, value);
            }
        }
        let body = match (&step.text, &step.body) {
            (Some(text), _) => text.clone(),
            (None, Some(body)) => kept.fill_value(body).to_string(),
            (None, None) => String::new(),
        };
        request.body(Bytes::from(body)).unwrap()
    }
}

/// What every scenario is given, and has in common on both sides.
pub(crate) const GIVEN: [&str; 5] = ["ns", "core", "apps", "policy", "long"];

/// How often a step asks that waits for a code.
const WAITS: usize = 100;
