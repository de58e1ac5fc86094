//! `kubectl` against the in-memory API server, and against a real one to see that the same holds there.
//!
//! Runs when `KUBEBUILDER_ASSETS` names a folder that has `kubectl`.

#![expect(clippy::unwrap_used, reason = "scenarios are tests, though not by attribute")]

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use cloudcoil_apiserver::{ServerConfig, ServerHandle, serve};
use cloudcoil_testing::ControlPlane;
use serde_json::{Value, json};

macro_rules! scenarios {
    ($($name:ident),* $(,)?) => {
        /// Each scenario has a server in memory to itself.
        mod in_memory {
            $(#[test]
            fn $name() {
                if let Some(cluster) = super::Cluster::in_memory(stringify!($name)) {
                    super::$name(&cluster);
                }
            })*
        }

        const SCENARIOS: &[(&str, fn(&Cluster))] = &[$((stringify!($name), $name)),*];
    };
}

scenarios! {
    get_prints_columns_and_wide_columns,
    every_resource_can_be_printed,
    explain_knows_the_fields_of_built_in_kinds,
    apply_creates_then_changes_then_leaves_alone,
    objects_are_changed_in_every_way,
    a_watch_prints_each_change,
    custom_resources_have_the_columns_and_the_fields_of_their_definition,
}

#[test]
fn a_real_api_server_does_the_same() {
    let Some(plane) = ControlPlane::start_or_skip("a_real_api_server_does_the_same") else { return };
    let mut cluster = Cluster::new("real", plane.kubeconfig(), PathBuf::from(plane.kubectl().get_program()));
    for (index, (name, scenario)) in SCENARIOS.iter().enumerate() {
        eprintln!("{name}");
        cluster.namespace = format!("scenario-{index}");
        cluster.run(&["create", "namespace", &cluster.namespace]);
        scenario(&cluster);
    }
}

fn get_prints_columns_and_wide_columns(cluster: &Cluster) {
    cluster.run(&["create", "deployment", "web", "--image=nginx", "--replicas=3"]);
    cluster.run(&["create", "configmap", "settings", "--from-literal=a=b"]);
    let table = cluster.run(&["get", "deployments"]);
    assert_eq!(columns(&table), ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]);
    assert!(table.lines().nth(1).unwrap().starts_with("web    0/3"), "{table}");
    let wide = cluster.run(&["get", "deployments", "-o", "wide"]);
    assert_eq!(columns(&wide)[5..], ["CONTAINERS", "IMAGES", "SELECTOR"]);
    let all = cluster.run(&["get", "configmaps", "-A", "--no-headers"]);
    let settings = all.lines().find(|line| line.contains("settings")).unwrap();
    assert!(settings.starts_with(&cluster.namespace), "{all}");
    let object: Value = serde_json::from_str(&cluster.run(&["get", "configmap", "settings", "-o", "json"])).unwrap();
    assert_eq!((&object["kind"], &object["data"]), (&json!("ConfigMap"), &json!({"a": "b"})));
    assert_eq!(cluster.run(&["get", "cm", "settings", "-o", "jsonpath={.data.a}"]), "b");
}

fn every_resource_can_be_printed(cluster: &Cluster) {
    let names = cluster.run(&["api-resources", "--verbs=list", "-o", "name"]);
    let names: Vec<_> = names.lines().collect();
    assert!(names.len() > 50, "{names:?}");
    cluster.run(&["get", &names.join(","), "-A", "-o", "wide"]);
    assert!(cluster.run(&["api-versions"]).lines().any(|version| version == "apps/v1"));
}

fn explain_knows_the_fields_of_built_in_kinds(cluster: &Cluster) {
    let text = cluster.run(&["explain", "deployment.spec.template.spec.containers"]);
    for part in ["KIND:       Deployment", "VERSION:    v1", "imagePullPolicy", "-required-", "<[]EnvVar>"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(cluster.run(&["explain", "pods", "--recursive"]).contains("readinessProbe"));
    let limits = cluster.run(&["explain", "pod.spec.containers.resources.limits"]);
    assert!(limits.contains("<map[string]Quantity>"), "{limits}");
    let schema = cluster.run(&["explain", "crd.spec.versions.schema.openAPIV3Schema"]);
    assert!(schema.contains("additionalItems"), "{schema}");
}

fn apply_creates_then_changes_then_leaves_alone(cluster: &Cluster) {
    let deployment = |image: &str, extra: &str| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  selector: {{matchLabels: {{a: b}}}}\n  \
             template:\n    metadata: {{labels: {{a: b}}}}\n    spec:\n      containers:\n      - {{name: web, image: {image}}}\n{extra}"
        )
    };
    let sidecar = "      - {name: side, image: side}\n";
    let apply = |text: &str| cluster.pipe(&["apply", "-f", "-"], text);
    assert_eq!(apply(&deployment("one", sidecar)), "deployment.apps/web created\n");
    assert_eq!(apply(&deployment("one", sidecar)), "deployment.apps/web unchanged\n");
    assert_eq!(apply(&deployment("two", "")), "deployment.apps/web configured\n");
    let images = ["get", "deployment", "web", "-o", "jsonpath={.spec.template.spec.containers[*].image}"];
    assert_eq!(cluster.run(&images), "two");

    let wrong = deployment("two", "").replace("selector", "selecter");
    let refused = cluster.fail(&["create", "-f", "-"], &wrong);
    assert!(refused.contains("unknown field \"spec.selecter\""), "{refused}");
}

fn objects_are_changed_in_every_way(cluster: &Cluster) {
    cluster.run(&["create", "deployment", "web", "--image=one"]);
    let at = |path: &str| cluster.run(&["get", "deployment", "web", "-o", &format!("jsonpath={{{path}}}")]);
    cluster.run(&["label", "deployment", "web", "tier=front"]);
    cluster.run(&["annotate", "deployment", "web", "note=x"]);
    assert_eq!((at(".metadata.labels.tier"), at(".metadata.annotations.note")), ("front".into(), "x".into()));
    cluster.run(&["label", "deployment", "web", "tier-"]);
    assert_eq!(at(".metadata.labels.tier"), "");
    cluster.run(&["scale", "deployment", "web", "--replicas=5"]);
    assert_eq!(at(".spec.replicas"), "5");
    cluster.run(&["set", "image", "deployment/web", "one=two"]);
    assert_eq!(at(".spec.template.spec.containers[0].image"), "two");
    let patch = r#"{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"s"}]}}}}"#;
    cluster.run(&["patch", "deployment", "web", "--type=strategic", "-p", patch]);
    assert_eq!(at(".spec.template.spec.containers[*].name"), "side one");
    let patch = r#"[{"op":"replace","path":"/spec/replicas","value":2}]"#;
    cluster.run(&["patch", "deployment", "web", "--type=json", "-p", patch]);
    assert_eq!(at(".spec.replicas"), "2");
    cluster.edit(&["edit", "deployment", "web"], "s/replicas: 2/replicas: 7/");
    assert_eq!(at(".spec.replicas"), "7");
    let described = cluster.run(&["describe", "deployment", "web"]);
    assert!(described.contains("7 desired"), "{described}");
    assert!(cluster.run(&["delete", "deployment", "web"]).starts_with("deployment.apps \"web\" deleted"));
    assert!(cluster.fail(&["get", "deployment", "web"], "").contains("(NotFound)"));
}

fn a_watch_prints_each_change(cluster: &Cluster) {
    cluster.run(&["create", "configmap", "first"]);
    let mut watch = cluster.kubectl(&["get", "configmaps", "--watch", "--no-headers"]);
    let mut watch = watch.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(watch.stdout.take().unwrap()));
    let mut next = |name: &str| {
        let found = lines.by_ref().map(Result::unwrap).find(|line| line.starts_with(name));
        assert!(found.is_some(), "{name} was not printed");
    };
    next("first");
    cluster.run(&["create", "configmap", "second"]);
    next("second");
    cluster.run(&["delete", "configmap", "first"]);
    next("first");
    watch.kill().unwrap();
    watch.wait().unwrap();
}

fn custom_resources_have_the_columns_and_the_fields_of_their_definition(cluster: &Cluster) {
    cluster.pipe(&["apply", "-f", "-"], DEFINITION);
    cluster.run(&["wait", "--for=condition=Established", "crd/widgets.example.com"]);
    let widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 3, color: red}\n";
    cluster.pipe(&["create", "-f", "-"], widget);
    let table = cluster.run(&["get", "wd", "-o", "wide"]);
    assert_eq!(columns(&table), ["NAME", "SIZE", "COLOR", "AGE"]);
    assert!(table.contains("w      3      red"), "{table}");
    assert_eq!(columns(&cluster.run(&["get", "widgets"])), ["NAME", "SIZE", "AGE"]);
    assert!(cluster.run(&["explain", "widget.spec"]).contains("How large it is."));
    assert_eq!(
        cluster.pipe(&["apply", "-f", "-"], &widget.replace("red", "blue")).lines().last().unwrap(),
        "widget.example.com/w configured"
    );
    cluster.run(&["delete", "crd", "widgets.example.com"]);
}

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Color, type: string, jsonPath: .spec.color, priority: 1}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, description: How large it is.}
              color: {type: string}
";

/// A server, and the `kubectl` to talk to it.
struct Cluster {
    kubectl: PathBuf,
    folder: PathBuf,
    namespace: String,
    /// What a server in memory lives in.
    server: Option<(ServerHandle, tokio::runtime::Runtime)>,
}

impl Cluster {
    /// A server in memory; nothing without a `kubectl`.
    fn in_memory(test: &str) -> Option<Self> {
        let kubectl = std::env::var_os("KUBEBUILDER_ASSETS").map(|assets| PathBuf::from(assets).join("kubectl"));
        let Some(kubectl) = kubectl.filter(|kubectl| kubectl.is_file()) else {
            let required = std::env::var_os("CLOUDCOIL_REQUIRE_CONTROL_PLANE").is_some_and(|value| value == "1");
            assert!(!required, "{test} needs kubectl");
            // Not eprintln!, which the test harness keeps to itself as long as a test passes.
            let _ = writeln!(std::io::stderr(), "NOT RUN: {test}: KUBEBUILDER_ASSETS names no folder with kubectl");
            return None;
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime can be made");
        let server = runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
            serve(ServerConfig::default(), listener).expect("the server starts")
        });
        let mut cluster = Self::new(test, &server.kubeconfig(), kubectl);
        cluster.server = Some((server, runtime));
        Some(cluster)
    }

    fn new(test: &str, kubeconfig: &str, kubectl: PathBuf) -> Self {
        let folder = std::env::temp_dir().join(format!("cloudcoil-kubectl-{test}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a temporary folder can be made");
        fs::write(folder.join("config"), kubeconfig).expect("the kubeconfig can be written");
        Self { kubectl, folder, namespace: "default".to_owned(), server: None }
    }

    fn kubectl(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.kubectl);
        command.arg("--namespace").arg(&self.namespace).args(arguments);
        command.env("KUBECONFIG", self.folder.join("config")).env("HOME", &self.folder);
        command
    }

    fn run(&self, arguments: &[&str]) -> String {
        self.pipe(arguments, "")
    }

    fn pipe(&self, arguments: &[&str], input: &str) -> String {
        let (succeeded, output, errors) = self.finish(self.kubectl(arguments), input);
        assert!(succeeded, "kubectl {}: {errors}", arguments.join(" "));
        output
    }

    /// What `kubectl` says when it fails, as it must.
    fn fail(&self, arguments: &[&str], input: &str) -> String {
        let (succeeded, output, errors) = self.finish(self.kubectl(arguments), input);
        assert!(!succeeded, "kubectl {}: {output}", arguments.join(" "));
        errors
    }

    /// Edits an object with a script of `sed`.
    fn edit(&self, arguments: &[&str], script: &str) {
        let mut command = self.kubectl(arguments);
        command.env("KUBE_EDITOR", format!("sed -i '{script}'"));
        let (succeeded, _, errors) = self.finish(command, "");
        assert!(succeeded, "{errors}");
    }

    fn finish(&self, mut command: Command, input: &str) -> (bool, String, String) {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("kubectl starts");
        let mut stdin = child.stdin.take().expect("it is piped");
        // One that ends without reading its input is told by what it says.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        let output = child.wait_with_output().expect("kubectl ends");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (output.status.success(), text(output.stdout), text(output.stderr))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some((server, runtime)) = self.server.take() {
            runtime.block_on(server.shutdown());
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The headers of a table.
fn columns(table: &str) -> Vec<&str> {
    table.lines().next().unwrap_or_default().split("  ").map(str::trim).filter(|header| !header.is_empty()).collect()
}
