//! `kubectl` against the server: what people do with it.
//!
//! Runs when there is a `kubectl` in `KUBEBUILDER_ASSETS` or on the path, and says so when there is none; with
//! `CLOUDCOIL_REQUIRE_CONTROL_PLANE=1` its absence is a failure.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use std::process::{Output, Stdio};
use std::time::Duration;

use cloudcoil_apiserver::{ServerConfig, ServerHandle, Tls, serve_tls};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::Command;

/// The `kubectl` to use, in the words of a shell: which knows the environment.
const KUBECTL: &str = r#"if [ -x "$KUBEBUILDER_ASSETS/kubectl" ]; then exec "$KUBEBUILDER_ASSETS/kubectl" "$@"; else exec kubectl "$@"; fi"#;

/// A server over TLS with a token, and a kubectl that knows it.
struct Kubectl {
    server: ServerHandle,
    folder: String,
}

impl Kubectl {
    /// `None` when there is no kubectl.
    async fn start(test: &str) -> Option<Self> {
        let found = shell().args([KUBECTL, "kubectl", "version", "--client"]).output().await.unwrap();
        if !found.status.success() {
            let required =
                shell().arg(r#"[ "$CLOUDCOIL_REQUIRE_CONTROL_PLANE" = 1 ]"#).status().await.unwrap().success();
            assert!(!required, "there is no kubectl: {}", String::from_utf8_lossy(&found.stderr));
            eprintln!("{test} did not run: there is no kubectl in KUBEBUILDER_ASSETS or on the path");
            return None;
        }
        let folder = format!("{}/kubectl-{test}", env!("CARGO_TARGET_TMPDIR"));
        let _ = tokio::fs::remove_dir_all(&folder).await;
        tokio::fs::create_dir_all(&folder).await.unwrap();
        let config = ServerConfig { token: Some("secret".to_owned()), ..ServerConfig::default() };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = serve_tls(config, listener, Tls::generate(&[]).unwrap()).unwrap();
        tokio::fs::write(format!("{folder}/config"), server.kubeconfig()).await.unwrap();
        Some(Self { server, folder })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = shell();
        command.args([KUBECTL, "kubectl"]).args(arguments);
        command.env("KUBECONFIG", format!("{}/config", self.folder)).env("HOME", &self.folder).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    async fn output(&self, arguments: &[&str]) -> Output {
        let limit = Duration::from_secs(60);
        tokio::time::timeout(limit, self.command(arguments).output()).await.expect("kubectl ends").unwrap()
    }

    /// Runs kubectl, which must succeed, and answers what it prints.
    async fn run(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments).await;
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "kubectl {arguments:?}: {out}{err}");
        assert!(!err.contains("Unhandled Error"), "kubectl {arguments:?}: {err}");
        out.into_owned()
    }

    /// Runs kubectl, which must fail, and answers what it complains of.
    async fn fail(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments).await;
        assert!(!output.status.success(), "kubectl {arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// Runs kubectl with a manifest.
    async fn with(&self, arguments: &[&str], manifest: &str) -> String {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(manifest.as_bytes()).await.unwrap();
        let output = child.wait_with_output().await.unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "kubectl {arguments:?}: {out}{err}");
        out.into_owned()
    }
}

fn shell() -> Command {
    let mut command = Command::new("sh");
    command.arg("-c");
    command
}

/// The words of a printed table by line.
fn rows(table: &str) -> Vec<Vec<&str>> {
    table.lines().map(|line| line.split_whitespace().collect()).collect()
}

#[tokio::test]
async fn what_kubectl_creates_it_gets_describes_and_deletes() {
    let Some(kubectl) = Kubectl::start("creates").await else { return };
    for (what, name) in [
        (&["namespace", "team"][..], "namespace/team"),
        (&["configmap", "map", "--from-literal=a=b"], "configmap/map"),
        (&["secret", "generic", "hidden", "--from-literal=a=b"], "secret/hidden"),
        (&["deployment", "web", "--image=nginx:1", "--replicas=2"], "deployment.apps/web"),
        (&["quota", "limit", "--hard=pods=2"], "resourcequota/limit"),
        (&["serviceaccount", "robot"], "serviceaccount/robot"),
        (&["service", "clusterip", "svc", "--tcp=80:8080"], "service/svc"),
        (&["job", "once", "--image=busybox"], "job.batch/once"),
        (&["cronjob", "often", "--image=busybox", "--schedule=* * * * *"], "cronjob.batch/often"),
        (&["role", "reader", "--verb=get", "--resource=pods"], "role.rbac.authorization.k8s.io/reader"),
        (&["rolebinding", "readers", "--role=reader", "--user=me"], "rolebinding.rbac.authorization.k8s.io/readers"),
        (&["ingress", "in", "--rule=a.example.com/*=svc:80"], "ingress.networking.k8s.io/in"),
        (&["poddisruptionbudget", "pdb", "--selector=app=web", "--min-available=1"], "poddisruptionbudget.policy/pdb"),
        (&["priorityclass", "high", "--value=10"], "priorityclass.scheduling.k8s.io/high"),
    ] {
        let printed = kubectl.run(&[&["create"], what].concat()).await;
        assert_eq!(printed, format!("{name} created\n"));
        let table = kubectl.run(&["get", name]).await;
        assert_eq!(rows(&table)[1][0], name.rsplit('/').next().unwrap(), "{table}");
        let described = kubectl.run(&["describe", name]).await;
        assert!(described.starts_with("Name:"), "{described}");
        kubectl.run(&["get", name, "-o", "yaml"]).await;
    }
    kubectl.run(&["run", "pod", "--image=nginx"]).await;
    let pods = kubectl.run(&["get", "pods", "-o", "wide"]).await;
    assert_eq!(rows(&pods)[1][..4], ["pod", "0/1", "Pending", "0"]);
    let all = kubectl.run(&["get", "all", "--all-namespaces"]).await;
    for name in ["pod/pod", "service/svc", "deployment.apps/web", "job.batch/once", "cronjob.batch/often"] {
        assert!(all.contains(name), "{all}");
    }
    let exists = kubectl.fail(&["create", "configmap", "map"]).await;
    assert!(exists.contains("configmaps \"map\" already exists"), "{exists}");
    kubectl.run(&["delete", "pod/pod", "configmap/map", "deployment/web", "namespace/team"]).await;
    let missing = kubectl.fail(&["get", "configmap", "map"]).await;
    assert_eq!(missing.trim(), "Error from server (NotFound): configmaps \"map\" not found");
    kubectl.server.shutdown().await;
}

#[tokio::test]
async fn kubectl_edits_labels_annotates_scales_patches_and_applies() {
    let Some(kubectl) = Kubectl::start("edits").await else { return };
    let manifest = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: 'nginx:1'}]}
";
    assert_eq!(kubectl.with(&["apply", "-f", "-"], manifest).await, "deployment.apps/web created\n");
    assert_eq!(kubectl.with(&["apply", "-f", "-"], manifest).await, "deployment.apps/web unchanged\n");
    let changed = manifest.replace("nginx:1", "nginx:2");
    assert_eq!(kubectl.with(&["apply", "-f", "-"], &changed).await, "deployment.apps/web configured\n");
    kubectl.run(&["label", "deployment", "web", "tier=front"]).await;
    kubectl.run(&["annotate", "deployment", "web", "note=x"]).await;
    kubectl.run(&["scale", "deployment", "web", "--replicas=3"]).await;
    kubectl.run(&["set", "image", "deployment/web", "main=nginx:3"]).await;
    kubectl.run(&["set", "env", "deployment/web", "A=b"]).await;
    kubectl.run(&["patch", "deployment", "web", "-p", r#"{"spec":{"paused":true}}"#]).await;
    kubectl
        .run(&["patch", "deployment", "web", "--type=json", "-p", r#"[{"op":"remove","path":"/spec/paused"}]"#])
        .await;
    let mut edit = kubectl.command(&["edit", "deployment", "web"]);
    let edited = edit.env("KUBE_EDITOR", "sed -i 's/tier: front/tier: back/'").output().await.unwrap();
    assert!(edited.status.success(), "{}", String::from_utf8_lossy(&edited.stderr));
    let query = "jsonpath={.metadata.labels.tier} {.metadata.annotations.note} {.spec.replicas} {.spec.paused} \
        {.spec.template.spec.containers[0].image} {.spec.template.spec.containers[0].env[0].value}";
    assert_eq!(kubectl.run(&["get", "deployment", "web", "-o", query]).await, "back x 3  nginx:3 b");
    assert_eq!(rows(&kubectl.run(&["get", "deployment", "-l", "tier=back"]).await)[1][..2], ["web", "0/3"]);
    let typo = kubectl.command(&["apply", "-f", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut typo = typo;
    typo.stdin.take().unwrap().write_all(manifest.replace("image:", "imag:").as_bytes()).await.unwrap();
    let refused = typo.wait_with_output().await.unwrap();
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(message.contains("unknown field \"spec.template.spec.containers[0].imag\""), "{message}");
    kubectl.server.shutdown().await;
}

#[tokio::test]
async fn kubectl_watches_and_waits() {
    let Some(kubectl) = Kubectl::start("watches").await else { return };
    let mut watch = kubectl.command(&["get", "secrets", "--watch", "--output-watch-events"]).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    kubectl.run(&["create", "secret", "generic", "a"]).await;
    kubectl.run(&["label", "secret", "a", "x=y"]).await;
    kubectl.run(&["delete", "secret", "a"]).await;
    let mut seen = Vec::new();
    while seen.len() < 4 {
        let line = tokio::time::timeout(Duration::from_secs(30), lines.next_line()).await.expect("an event").unwrap();
        let line = line.expect("the watch goes on");
        seen.push(line.split_whitespace().next().unwrap_or_default().to_owned());
    }
    assert_eq!(seen, ["EVENT", "ADDED", "MODIFIED", "DELETED"]);
    watch.kill().await.unwrap();

    kubectl.run(&["create", "deployment", "web", "--image=nginx"]).await;
    let mut waiting =
        kubectl.command(&["wait", "deployment/web", "--for=condition=Available", "--timeout=30s"]).spawn().unwrap();
    let status = r#"{"status":{"conditions":[{"type":"Available","status":"True"}]}}"#;
    kubectl.run(&["patch", "deployment", "web", "--subresource=status", "--type=merge", "-p", status]).await;
    assert!(waiting.wait().await.unwrap().success());
    kubectl.run(&["create", "secret", "generic", "b"]).await;
    kubectl.run(&["delete", "secret", "b", "--wait"]).await;
    kubectl.run(&["wait", "secret/b", "--for=delete", "--timeout=30s"]).await;
    kubectl.server.shutdown().await;
}

#[tokio::test]
async fn kubectl_works_with_custom_resources() {
    let Some(kubectl) = Kubectl::start("customs").await else { return };
    let definition = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
";
    kubectl.with(&["apply", "-f", "-"], definition).await;
    kubectl.run(&["wait", "crd/widgets.example.com", "--for=condition=Established", "--timeout=30s"]).await;
    let widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 3, replicas: 1}\n";
    kubectl.with(&["create", "-f", "-"], widget).await;
    assert_eq!(rows(&kubectl.run(&["get", "wd"]).await), [vec!["NAME", "SIZE"], vec!["w", "3"]]);
    kubectl.run(&["scale", "widget", "w", "--replicas=5"]).await;
    kubectl.run(&["label", "widget", "w", "a=b"]).await;
    kubectl.with(&["apply", "-f", "-"], &widget.replace("size: 3", "size: 4")).await;
    let mut edit = kubectl.command(&["edit", "widget", "w"]);
    let edited = edit.env("KUBE_EDITOR", "sed -i 's/size: 4/size: 6/'").output().await.unwrap();
    assert!(edited.status.success(), "{}", String::from_utf8_lossy(&edited.stderr));
    let found =
        kubectl.run(&["get", "widget", "w", "-o", "jsonpath={.spec.size} {.spec.replicas} {.metadata.labels.a}"]).await;
    assert_eq!(found, "6 1 b", "the manifest says one replica");
    assert!(kubectl.run(&["describe", "widget", "w"]).await.contains("Kind:         Widget"));
    assert!(kubectl.run(&["api-resources"]).await.contains("widgets"));
    kubectl.run(&["delete", "crd", "widgets.example.com"]).await;
    let gone = kubectl.fail(&["get", "widgets"]).await;
    // Whether it has asked anew what there is, kubectl decides.
    assert!(gone.contains("doesn't have a resource type") || gone.contains("could not find the requested"), "{gone}");
    kubectl.server.shutdown().await;
}

#[tokio::test]
async fn kubectl_asks_about_the_server() {
    let Some(kubectl) = Kubectl::start("asks").await else { return };
    assert!(kubectl.run(&["version"]).await.contains("Server Version: v1.37"));
    assert_eq!(kubectl.run(&["auth", "can-i", "create", "pods"]).await, "yes\n");
    assert!(kubectl.run(&["auth", "whoami"]).await.contains("admin"));
    assert!(kubectl.run(&["explain", "deployment.spec.strategy"]).await.contains("rollingUpdate"));
    assert!(kubectl.run(&["api-versions"]).await.lines().any(|line| line == "apps/v1"));
    assert!(kubectl.run(&["get", "--raw", "/readyz"]).await.contains("ok"));
    kubectl.run(&["cluster-info"]).await;
    let unknown = kubectl.fail(&["get", "nothings"]).await;
    assert!(unknown.contains("the server doesn't have a resource type \"nothings\""), "{unknown}");
    kubectl.run(&["create", "configmap", "a", "--dry-run=server"]).await;
    assert!(kubectl.fail(&["get", "configmap", "a"]).await.contains("NotFound"));
    let denied = kubectl.fail(&["get", "pods", "--token=wrong"]).await;
    assert!(denied.contains("Unauthorized") || denied.contains("logged in"), "{denied}");
    kubectl.server.shutdown().await;
}

#[tokio::test]
async fn kubectl_describes_an_object_with_its_events() {
    let Some(kubectl) = Kubectl::start("events").await else { return };
    kubectl.run(&["run", "pod", "--image=nginx"]).await;
    let uid = kubectl.run(&["get", "pod", "pod", "-o", "jsonpath={.metadata.uid}"]).await;
    let event = "
apiVersion: v1
kind: Event
metadata: {name: pod.1}
involvedObject: {kind: Pod, name: pod, namespace: default, apiVersion: v1, uid: UID}
reason: Odd
message: something odd
type: Warning
source: {component: test}
firstTimestamp: '2026-01-02T03:04:05Z'
lastTimestamp: '2026-01-02T03:04:05Z'
count: 1
";
    kubectl.with(&["create", "-f", "-"], &event.replace("UID", &uid)).await;
    let described = kubectl.run(&["describe", "pod", "pod"]).await;
    assert!(described.contains("something odd"), "{described}");
    let events = kubectl.run(&["get", "events"]).await;
    assert!(events.contains("pod/pod") && events.contains("Odd"), "{events}");
    assert!(kubectl.run(&["events", "--for", "pod/pod"]).await.contains("something odd"));
    kubectl.server.shutdown().await;
}

#[tokio::test]
async fn kubectl_lists_in_chunks_and_deletes_collections() {
    let Some(kubectl) = Kubectl::start("chunks").await else { return };
    let manifest: Vec<_> = (0..12)
        .map(|index| format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: s{index:02}, labels: {{a: b}}}}\n"))
        .collect();
    kubectl.with(&["create", "-f", "-"], &manifest.join("---\n")).await;
    let names = kubectl.run(&["get", "secrets", "--chunk-size=5", "-o", "name"]).await;
    assert_eq!(names.lines().count(), 12);
    kubectl.run(&["delete", "secrets", "-l", "a=b"]).await;
    kubectl.with(&["create", "-f", "-"], &manifest.join("---\n")).await;
    kubectl.run(&["delete", "secrets", "--all"]).await;
    assert_eq!(kubectl.run(&["get", "secrets", "-o", "name"]).await, "");
    kubectl.run(&["create", "namespace", "gone"]).await;
    kubectl.run(&["create", "configmap", "inside", "-n", "gone"]).await;
    kubectl.run(&["delete", "namespace", "gone"]).await;
    assert!(kubectl.fail(&["get", "namespace", "gone"]).await.contains("NotFound"));
    kubectl.server.shutdown().await;
}
