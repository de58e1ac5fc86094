//! Devices that pods claim (`resource.k8s.io`).

use serde_json::Value;

use super::Printing;
use super::column::{AGE, Column, NAME};
use super::node::Node;

pub(super) const CLAIMS: &[Column] = &[NAME, Column::text("State", "Whether the claim has devices, and is used."), AGE];

pub(super) fn claim(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let (deleted, allocated) = (object.is_deleting(), object.at("status.allocation").is_set());
    let reserved = allocated && object.at("status.reservedFor").count() > 0;
    let states =
        [(deleted, "deleted"), (!allocated && !deleted, "pending"), (allocated, "allocated"), (reserved, "reserved")];
    let state = states.iter().filter(|(is, _)| *is).map(|(_, name)| *name).collect::<Vec<_>>().join(",");
    vec![object.name().into(), state.into(), on.created(object).into()]
}

pub(super) const SLICES: &[Column] = &[
    NAME,
    Column::text("Node", "The node that has the devices."),
    Column::text("Driver", "The driver of the devices."),
    Column::text("Pool", "The pool that the devices are of."),
    AGE,
];

pub(super) fn slice(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let spec = object.field("spec");
    vec![
        object.name().into(),
        spec.field("nodeName").text().into(),
        spec.field("driver").text().into(),
        spec.at("pool.name").text().into(),
        on.created(object).into(),
    ]
}

pub(super) const TAINT_RULES: &[Column] = &[
    NAME,
    Column::text("Key", "The key of the taint."),
    Column::text("Value", "The value of the taint."),
    Column::text("Effect", "What the taint does to claims and pods."),
    Column::text("TimeAdded", "How long ago the taint was added."),
    AGE,
];

pub(super) fn taint_rule(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let taint = object.at("spec.taint");
    // Added when the rule was created, unless it says otherwise.
    let [added, created] = [taint.field("timeAdded"), object.at("metadata.creationTimestamp")];
    let added = if added.is_set() { added } else { created };
    vec![
        object.name().into(),
        taint.field("key").text().into(),
        taint.field("value").text().into(),
        taint.field("effect").text().into(),
        if added.is_set() { on.age(added) } else { "0s".to_owned() }.into(),
        on.created(object).into(),
    ]
}
