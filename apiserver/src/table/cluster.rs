//! Namespaces, nodes, events, and objects that hold data.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Printing;
use super::column::{AGE, CREATED_AT, Column, NAME};
use super::node::{NONE, Node, UNKNOWN};

pub(super) const NAMESPACES: &[Column] = &[NAME, Column::text("Status", "The phase of the namespace."), AGE];

pub(super) fn namespace(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    vec![object.name().into(), object.at("status.phase").text_or("Active").into(), on.created(object).into()]
}

pub(super) const CONFIG_MAPS: &[Column] = &[NAME, Column::text("Data", "How many entries the object has."), AGE];

pub(super) fn config_map(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let entries = object.field("data").count() + object.field("binaryData").count();
    vec![object.name().into(), entries.into(), on.created(object).into()]
}

pub(super) const SECRETS: &[Column] = &[
    NAME,
    Column::text("Type", "What the secret is for."),
    Column::text("Data", "How many entries the object has."),
    AGE,
];

pub(super) fn secret(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    vec![
        object.name().into(),
        object.field("type").text_or("Opaque").into(),
        object.field("data").count().into(),
        on.created(object).into(),
    ]
}

pub(super) const COMPONENT_STATUSES: &[Column] = &[
    NAME,
    Column::text("Status", "Whether the component is healthy."),
    Column::text("Message", "What the component says."),
    Column::text("Error", "What is wrong with the component."),
];

pub(super) fn component_status(object: Node<'_>, _: &Printing<'_>) -> Vec<Value> {
    let healthy = object.field("conditions").condition("Healthy");
    let status = match healthy.map(|condition| condition.field("status").text()) {
        None => "Unknown",
        Some("True") => "Healthy",
        Some(_) => "Unhealthy",
    };
    let text = |field| healthy.map_or("", |condition| condition.field(field).text());
    vec![object.name().into(), status.into(), text("message").into(), text("error").into()]
}

pub(super) const NODES: &[Column] = &[
    NAME,
    Column::text("Status", "Whether the node is ready, and takes new pods."),
    Column::text("Roles", "What the node is for."),
    AGE,
    Column::text("Version", "The version of the kubelet."),
    Column::text("Internal-IP", "The address within the cluster.").wide(),
    Column::text("External-IP", "The address from outside of the cluster.").wide(),
    Column::text("OS-Image", "The operating system.").wide(),
    Column::text("Kernel-Version", "The version of the kernel.").wide(),
    Column::text("Container-Runtime", "What runs the containers.").wide(),
];

pub(super) fn node(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let info = object.at("status.nodeInfo");
    let kernel = info.field("kernelVersion").text_or(UNKNOWN);
    let kernel = match info.field("architecture").text() {
        "" => kernel.to_owned(),
        architecture => format!("{kernel} ({architecture})"),
    };
    vec![
        object.name().into(),
        node_status(object).into(),
        node_roles(object).into(),
        on.created(object).into(),
        info.field("kubeletVersion").text().into(),
        address(object, "InternalIP").into(),
        address(object, "ExternalIP").into(),
        info.field("osImage").text_or(UNKNOWN).into(),
        kernel.into(),
        info.field("containerRuntimeVersion").text_or(UNKNOWN).into(),
    ]
}

fn node_status(node: Node<'_>) -> String {
    let mut conditions = node.at("status.conditions").list();
    let ready = conditions.rfind(|condition| condition.field("type").text() == "Ready");
    let ready = match ready.map(|condition| condition.field("status").text()) {
        None => "Unknown",
        Some("True") => "Ready",
        Some(_) => "NotReady",
    };
    let suffix = if node.at("spec.unschedulable").boolean() { ",SchedulingDisabled" } else { "" };
    format!("{ready}{suffix}")
}

fn node_roles(node: Node<'_>) -> String {
    let role = |(key, value): (&'_ str, Node<'_>)| match key.strip_prefix("node-role.kubernetes.io/") {
        Some(role) => role.to_owned(),
        None if key == "kubernetes.io/role" => value.text().to_owned(),
        None => String::new(),
    };
    let roles: BTreeSet<_> = node.at("metadata.labels").entries().map(role).filter(|role| !role.is_empty()).collect();
    if roles.is_empty() { NONE.to_owned() } else { roles.into_iter().collect::<Vec<_>>().join(",") }
}

fn address<'a>(node: Node<'a>, kind: &str) -> &'a str {
    node.at("status.addresses").condition(kind).map_or(NONE, |address| address.field("address").text())
}

pub(super) const EVENTS: &[Column] = &[
    Column::text("Last Seen", "How long ago it happened last."),
    Column::text("Type", "Whether it is normal."),
    Column::text("Reason", "Why it happened, for programs."),
    Column::text("Object", "What it happened to."),
    Column::text("Subobject", "Which part of the object it happened to.").wide(),
    Column::text("Source", "Who reports it.").wide(),
    Column::text("Message", "What happened, for people."),
    Column::text("First Seen", "How long ago it happened first.").wide(),
    Column::text("Count", "How often it happened.").wide(),
    Column::text("Name", "The name of the event.").named().wide(),
];

/// An event in the shape of the core group or of `events.k8s.io`, which name its fields differently.
pub(super) fn event(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let either = |core: &str, new: &str| {
        let field = object.field(core);
        if field.is_set() { field } else { object.field(new) }
    };
    let involved = either("involvedObject", "regarding");
    let series = object.field("series");
    let first = age_or(either("firstTimestamp", "deprecatedFirstTimestamp"), object.field("eventTime"), on);
    let last = either("lastTimestamp", "deprecatedLastTimestamp");
    let (last, count) = match series.is_set() {
        true => (on.age(series.field("lastObservedTime")), series.field("count").integer()),
        false => {
            let last = if last.is_set() { on.age(last) } else { first.clone() };
            (last, either("count", "deprecatedCount").integer().max(1))
        }
    };
    vec![
        last.into(),
        object.field("type").text().into(),
        object.field("reason").text().into(),
        target(involved).into(),
        involved.field("fieldPath").text().into(),
        source(object, either("source", "deprecatedSource")).into(),
        either("message", "note").text().trim().into(),
        first.into(),
        count.into(),
        object.name().into(),
    ]
}

fn age_or(time: Node<'_>, other: Node<'_>, on: &Printing<'_>) -> String {
    on.age(if time.is_set() { time } else { other })
}

fn target(involved: Node<'_>) -> String {
    let kind = involved.field("kind").text().to_lowercase();
    match involved.field("name").text() {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

fn source(event: Node<'_>, source: Node<'_>) -> String {
    let controller = event.field("reportingComponent").text_or(event.field("reportingController").text());
    let component = source.field("component").text_or(controller);
    match source.field("host").text_or(event.field("reportingInstance").text()) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    }
}

pub(super) const QUOTAS: &[Column] = &[
    NAME,
    Column::text("Request", "How much of what may be requested is, by resource."),
    Column::text("Limit", "How much of what limits may allow is allowed, by resource."),
    AGE,
];

pub(super) fn quota(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let mut hard: Vec<_> = object.at("status.hard").entries().collect();
    hard.sort_by_key(|(resource, _)| *resource);
    let used = object.at("status.used");
    let [mut requests, mut limits] = [const { Vec::new() }; 2];
    for (resource, hard) in hard {
        let column = if resource.starts_with("limits.") { &mut limits } else { &mut requests };
        column.push(format!("{resource}: {}/{}", used.field(resource).quantity(), hard.quantity()));
    }
    vec![object.name().into(), requests.join(", ").into(), limits.join(", ").into(), on.created(object).into()]
}

pub(super) const NAMES_AND_TIMES: &[Column] = &[NAME, CREATED_AT];

pub(super) fn name_and_time(object: Node<'_>, _: &Printing<'_>) -> Vec<Value> {
    vec![object.name().into(), object.at("metadata.creationTimestamp").text().into()]
}
