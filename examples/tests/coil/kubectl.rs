//! coil beside kubectl: on a real control plane, and on the server in memory.

use std::path::PathBuf;

use cloudcoil_testing::ControlPlane;

use crate::program::{Ended, Home, RUNTIMES, finish};

const OBJECTS: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {tier: front}}
data: {mode: 'on', number: '1', lines: \"a\\nb\\n\", empty: '', colon: 'a: b', star: '*x', time: '2026-01-01', yes: 'yes', long: 'a b c d e f g h i j k l m n o p q r s t u v w x y z a b c d e f g h i j k l m n o p q r s t u v w x y z'}
---
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {a: b}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {tier: front}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
";

/// Lines that print the same in both, in this order.
const SAME: &[&str] = &[
    "get deploy web -o name",
    "get deploy,cm,secrets -l tier=front -o name",
    "get deployments.v1.apps -o name",
    "get deployment.apps/web cm/settings -o name",
    "get cm settings -o json",
    "get cm settings -o yaml",
    "get cm settings --show-managed-fields -o json",
    "get cm settings -o jsonpath={.data.mode}",
    "get cm,secrets -o jsonpath={range .items[*]}{.metadata.name}{\"\\n\"}{end}",
    "get cm -l tier=front -o json",
    "get cm -l tier=front -o yaml",
    "get cm -l none=none",
    "get cm -l none=none -o json",
    "get cm --field-selector metadata.name=settings -o name",
    "get deploy web --subresource=scale -o json",
    "get deploy web --subresource=status -o json",
    "scale deploy web --replicas=3",
    "scale deploy/web --replicas=4 --current-replicas=3",
    "scale deploy --all --replicas=5",
    "scale deploy --all --replicas=5 web",
    "scale deploy -l tier=front --replicas=4",
    "patch cm settings -p {\"data\":{\"mode\":\"off\"}}",
    "patch cm settings -p {\"data\":{\"mode\":\"off\"}}",
    "patch cm settings --type=merge -p {\"data\":{\"mode\":null}}",
    "patch cm settings --type=json -p [{\"op\":\"add\",\"path\":\"/data/x\",\"value\":\"y\"}]",
    "wait deploy/web --for=jsonpath={.spec.replicas}=4",
    "wait deploy/web --for=create",
    "wait cm/none --for=delete",
    "delete cm settings --dry-run=server",
    "delete cm none --ignore-not-found",
    "delete cm -l none=none",
    "delete deploy web",
    "delete secret/keys cm/settings",
    "api-resources",
    "api-resources -o wide",
    "api-resources -o name",
    "api-resources --api-group=apps --no-headers",
    "api-resources --namespaced=false",
    "auth whoami",
];

/// Tables, whose ages may differ by a moment.
const TABLES: &[&str] = &[
    "get deploy",
    "get deploy -o wide",
    "get all",
    "get cm,deploy,secrets",
    "get cm -A",
    "get cm settings --show-labels",
    "get cm --no-headers",
    "get ns",
    "get nodes",
    "get pods",
    "get pods -A",
    "get deploy web --subresource=scale",
    "get deploy web --subresource=status",
];

#[test]
fn the_same_is_printed_on_a_real_control_plane() {
    let Some(plane) = ControlPlane::start_or_skip("the_same_is_printed_on_a_real_control_plane") else { return };
    let kubectl = PathBuf::from(plane.kubectl().get_program());
    let homes = RUNTIMES.map(|runtime| Home::new(runtime, plane.kubeconfig()));
    let run = |line: &str| finish(homes[0].command(&kubectl, &split(line)), "");
    let make = |namespace: &str| {
        let made = run(&format!("create namespace {namespace}"));
        assert_eq!(made.code, Some(0), "{made:?}");
    };
    // Each works on a namespace of its own, as most lines change something; names of one length keep columns alike.
    make("ns0");
    let theirs = finish(homes[0].command(&kubectl, &["create", "-f", "-", "-n", "ns0"]), OBJECTS);
    let namespaces = ["ns1", "ns2", "ns3", "ns4"];
    for (namespace, home) in namespaces.iter().zip(&homes) {
        make(namespace);
        let ours = home.pipe(&["create", "-f", "-", "-n", namespace, "--field-manager=kubectl-create"], OBJECTS);
        assert_eq!(ours, theirs, "{namespace}");
    }
    for line in TABLES {
        let theirs = run(&format!("{line} -n ns1"));
        for (home, runtime) in homes.iter().zip(RUNTIMES) {
            let ours = home.coil(&split(&format!("{line} -n ns1")));
            assert_eq!((ageless(&ours), ours.code), (ageless(&theirs), theirs.code), "{line} on {runtime}");
            assert_eq!(ours.stderr, theirs.stderr, "{line} on {runtime}");
        }
    }
    for line in SAME {
        let is_yaml = line.ends_with("-o yaml");
        let theirs = run(&format!("{line} -n {}", if changes(line) { "ns0" } else { "ns1" }));
        for ((home, runtime), namespace) in homes.iter().zip(RUNTIMES).zip(namespaces) {
            let namespace = if changes(line) { namespace } else { "ns1" };
            let ours = format!("{} -n {namespace}", line.strip_prefix("auth ").unwrap_or(line));
            let mut ours = home.coil(&split(&ours));
            let mut theirs = (theirs.stdout.clone(), theirs.code, theirs.stderr.clone());
            if changes(line) {
                ours.stdout = ours.stdout.replace(namespace, "ns0");
                // What goes with a change is said in one's own words.
                theirs.2.clone_from(&ours.stderr);
            }
            if is_yaml {
                // There is more than one way to quote and to fold a text in YAML.
                (theirs.0, ours.stdout) = (yaml(&theirs.0), yaml(&ours.stdout));
            }
            assert_eq!((ours.stdout, ours.code, ours.stderr), theirs, "{line} on {runtime}");
        }
    }
}

/// What a YAML document says.
fn yaml(text: &str) -> String {
    let value: serde_json::Value = serde_saphyr::from_str(text).unwrap();
    value.to_string()
}

fn changes(line: &str) -> bool {
    ["scale", "patch", "wait", "delete"].iter().any(|verb| line.starts_with(verb))
}

/// The words of a line; a blank within braces is no end of a word.
fn split(line: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    line.split(move |c| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ' ' && depth == 0
    })
    .collect()
}

/// Tables without what stands in the column of ages.
fn ageless(ended: &Ended) -> Vec<Vec<String>> {
    let is_age = |word: &str| {
        word.ends_with(['s', 'm', 'h'])
            && word.trim_end_matches(['s', 'm', 'h']).chars().all(|c| c.is_ascii_digit() || c == 'm')
    };
    let words =
        |line: &str| line.split_whitespace().map(|word| if is_age(word) { "?" } else { word }.to_owned()).collect();
    ended.stdout.lines().map(words).collect()
}
