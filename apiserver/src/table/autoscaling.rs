//! HorizontalPodAutoscalers.

use serde_json::Value;

use super::Printing;
use super::column::{AGE, Column, NAME};
use super::node::{Node, UNKNOWN};

pub(super) const AUTOSCALERS: &[Column] = &[
    NAME,
    Column::text("Reference", "What is scaled."),
    Column::text("Targets", "Where each metric stands, and where it should."),
    Column::text("MinPods", "How many replicas there are at least."),
    Column::text("MaxPods", "How many replicas there are at most."),
    Column::text("Replicas", "How many replicas there are."),
    AGE,
];

pub(super) fn autoscaler(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let (spec, status) = (object.field("spec"), object.field("status"));
    let target = spec.field("scaleTargetRef");
    vec![
        object.name().into(),
        format!("{}/{}", target.field("kind").text(), target.field("name").text()).into(),
        targets(spec, status).into(),
        spec.field("minReplicas").integer_or(1).to_string().into(),
        spec.field("maxReplicas").integer().into(),
        status.field("currentReplicas").integer().into(),
        on.created(object).into(),
    ]
}

fn targets(spec: Node<'_>, status: Node<'_>) -> String {
    let specs = spec.field("metrics");
    if specs.count() == 0 {
        // `autoscaling/v1` knows this metric only, and it is the default in every version.
        let target = spec.field("targetCPUUtilizationPercentage").integer_or(80);
        let current = status.field("currentCPUUtilizationPercentage");
        return format!("cpu: {}/{target}%", percent(current).unwrap_or_else(|| UNKNOWN.to_owned()));
    }
    let mut statuses = status.field("currentMetrics").list();
    let texts: Vec<_> = specs.list().map(|spec| metric(spec, statuses.next())).collect();
    match texts.len() {
        ..=MOST => texts.join(", "),
        more => format!("{} + {} more...", texts[..MOST].join(", "), more - MOST),
    }
}

/// One metric: its current value, and its target.
fn metric(spec: Node<'_>, status: Option<Node<'_>>) -> String {
    let (field, named) = match spec.field("type").text() {
        "External" => ("external", false),
        "Pods" => ("pods", false),
        "Object" => ("object", false),
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        _ => return "<unknown type>".to_owned(),
    };
    let spec = spec.field(field);
    let target = spec.field("target");
    let status = status.map(|status| status.field(field)).filter(|status| status.is_set());
    let current = status.map(|status| status.field("current"));
    let average = target.field("averageValue");
    if named {
        let name = spec.field("name").text();
        if !average.is_set() {
            let current = current.and_then(|current| percent(current.field("averageUtilization")));
            let current = current.unwrap_or_else(|| UNKNOWN.to_owned());
            let target = percent(target.field("averageUtilization")).unwrap_or_else(|| "<auto>".to_owned());
            return format!("{name}: {current}/{target}");
        }
        return format!("{name}: {}/{}", value(current, "averageValue", false), average.quantity());
    }
    match (field, average.is_set()) {
        ("pods", _) => format!("{}/{}", value(current, "averageValue", false), average.quantity()),
        (_, true) => format!("{}/{} (avg)", value(current, "averageValue", true), average.quantity()),
        (_, false) => format!("{}/{}", value(current, "value", false), target.field("value").quantity()),
    }
}

/// The current value; that of a metric without one is unknown if it `may_lack` it.
fn value(current: Option<Node<'_>>, field: &str, may_lack: bool) -> String {
    match current.map(|current| current.field(field)) {
        Some(value) if value.is_set() || !may_lack => value.quantity(),
        _ => UNKNOWN.to_owned(),
    }
}

fn percent(node: Node<'_>) -> Option<String> {
    node.is_set().then(|| format!("{}%", node.integer()))
}

/// How many metrics are printed.
const MOST: usize = 2;
