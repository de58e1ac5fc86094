//! Pods.

use cloudcoil_core::UnixTime;
use serde_json::{Value, json};

use super::column::{AGE, Column, NAME};
use super::node::{NONE, Node};
use super::{Printing, age};

pub(super) const PODS: &[Column] = &[
    NAME,
    Column::text("Ready", "How many of the containers are ready."),
    Column::text("Status", "The phase of the pod, or why its containers do not run."),
    Column::text("Restarts", "How often containers were restarted, and how long ago the last time."),
    AGE,
    Column::text("IP", "The first IP address of the pod.").wide(),
    Column::text("Node", "The node that runs the pod.").wide(),
    Column::text("Nominated Node", "The node on which others are evicted to make room for the pod.").wide(),
    Column::text("Readiness Gates", "How many of the conditions that readiness waits for are true.").wide(),
];

pub(super) fn pod(pod: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let summary = Summary::of(pod);
    let restarts = match summary.restarts.last {
        Some(last) if summary.restarts.count != 0 => {
            let ago = age::human(on.now.as_micros().saturating_sub(last.as_micros()));
            format!("{} ({ago} ago)", summary.restarts.count)
        }
        _ => summary.restarts.count.to_string(),
    };
    let ip = pod.at("status.podIPs").list().next().map_or("", |ip| ip.field("ip").text());
    vec![
        pod.name().into(),
        format!("{}/{}", summary.ready, summary.total).into(),
        summary.reason.into(),
        restarts.into(),
        on.created(pod).into(),
        if ip.is_empty() { pod.at("status.podIP").text_or(NONE) } else { ip }.into(),
        pod.at("spec.nodeName").text_or(NONE).into(),
        pod.at("status.nominatedNodeName").text_or(NONE).into(),
        readiness_gates(pod).into(),
    ]
}

/// The condition of the row of a pod that has run to its end.
pub(super) fn completion(pod: Node<'_>) -> Option<Value> {
    let phase = pod.at("status.phase").text();
    let message = match phase {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    Some(json!({"type": "Completed", "status": "True", "reason": phase, "message": message}))
}

fn readiness_gates(pod: Node<'_>) -> String {
    let gates = pod.at("spec.readinessGates");
    if gates.count() == 0 {
        return NONE.to_owned();
    }
    let conditions = pod.at("status.conditions");
    let open = gates.list().filter(|gate| conditions.has_condition(gate.field("conditionType").text())).count();
    format!("{open}/{}", gates.count())
}

#[derive(Clone, Copy, Default)]
struct Restarts {
    count: i64,
    last: Option<UnixTime>,
}

impl Restarts {
    fn add(&mut self, container: Node<'_>) {
        self.count += container.field("restartCount").integer();
        self.last = self.last.max(age::parse(container.at("lastState.terminated.finishedAt").text()));
    }
}

struct Summary {
    ready: usize,
    total: usize,
    restarts: Restarts,
    reason: String,
}

impl Summary {
    fn of(pod: Node<'_>) -> Self {
        let status = pod.field("status");
        let phase = status.field("phase").text();
        let mut summary = Self {
            ready: 0,
            total: pod.at("spec.containers").list().len(),
            restarts: Restarts::default(),
            reason: status.field("reason").text_or(phase).to_owned(),
        };
        let conditions = status.field("conditions");
        if conditions.list().any(|c| c.field("type").text() == "PodScheduled" && c.field("reason").text() == GATED) {
            summary.reason = GATED.to_owned();
        }
        let (sidecars, done) = summary.init_containers(pod);
        if done || conditions.has_condition("Initialized") {
            summary.restarts = sidecars;
            summary.containers(status);
        }
        if pod.is_deleting() {
            if status.field("reason").text() == "NodeLost" {
                summary.reason = "Unknown".to_owned();
            } else if !matches!(phase, "Succeeded" | "Failed") {
                summary.reason = "Terminating".to_owned();
            }
        }
        summary
    }

    /// Takes the init containers in, up to the first that is not done. Gives the restarts of those that go on running,
    /// and whether all are done.
    fn init_containers(&mut self, pod: Node<'_>) -> (Restarts, bool) {
        let specs = pod.at("spec.initContainers");
        self.total += specs.list().filter(|spec| is_sidecar(*spec)).count();
        let mut sidecars = Restarts::default();
        for (index, container) in pod.at("status.initContainerStatuses").list().enumerate() {
            let sidecar = is_sidecar_status(specs, container);
            self.restarts.add(container);
            if sidecar {
                sidecars.add(container);
            }
            let terminated = container.at("state.terminated");
            if terminated.is_set() && terminated.field("exitCode").integer() == 0 {
                continue;
            }
            if sidecar && container.field("started").boolean() {
                self.ready += usize::from(container.field("ready").boolean());
                continue;
            }
            let waiting = container.at("state.waiting.reason").text();
            self.reason = if terminated.is_set() {
                format!("Init:{}", ended(terminated))
            } else if !matches!(waiting, "" | "PodInitializing") {
                format!("Init:{waiting}")
            } else {
                format!("Init:{index}/{}", specs.count())
            };
            return (sidecars, false);
        }
        (sidecars, true)
    }

    fn containers(&mut self, status: Node<'_>) {
        let mut running = false;
        let mut failure = None;
        for container in status.field("containerStatuses").list().rev() {
            self.restarts.add(container);
            let waiting = container.at("state.waiting.reason").text();
            let terminated = container.at("state.terminated");
            if !waiting.is_empty() {
                self.reason = waiting.to_owned();
            } else if terminated.is_set() {
                self.reason = ended(terminated);
                if terminated.field("exitCode").integer() != 0 {
                    failure = Some(self.reason.clone());
                }
            } else if container.field("ready").boolean() && container.at("state.running").is_set() {
                running = true;
                self.ready += 1;
            }
        }
        // One container that completed does not make a pod complete while others run, or if others failed.
        if self.reason == "Completed" {
            self.reason = match failure {
                _ if running && status.field("conditions").has_condition("Ready") => "Running".to_owned(),
                Some(failure) => failure,
                None if running => "NotReady".to_owned(),
                None => return,
            };
        }
    }
}

/// Whether an init container goes on running beside the others.
fn is_sidecar(spec: Node<'_>) -> bool {
    spec.field("restartPolicy").text() == "Always"
}

fn is_sidecar_status(specs: Node<'_>, status: Node<'_>) -> bool {
    let name = status.field("name").text();
    specs.list().rfind(|spec| spec.field("name").text() == name).is_some_and(is_sidecar)
}

/// Why a container ended.
fn ended(terminated: Node<'_>) -> String {
    let signal = terminated.field("signal").integer();
    match terminated.field("reason").text() {
        "" if signal != 0 => format!("Signal:{signal}"),
        "" => format!("ExitCode:{}", terminated.field("exitCode").integer()),
        reason => reason.to_owned(),
    }
}

const GATED: &str = "SchedulingGated";
