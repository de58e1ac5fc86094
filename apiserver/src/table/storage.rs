//! Volumes, their claims and classes.

use serde_json::Value;

use super::column::{AGE, Column, NAME};
use super::node::{Node, UNSET};
use super::{Printing, age};

pub(super) const VOLUMES: &[Column] = &[
    NAME,
    Column::text("Capacity", "How large the volume is."),
    Column::text("Access Modes", "How the volume may be mounted."),
    Column::text("Reclaim Policy", "What becomes of the volume when its claim is gone."),
    Column::text("Status", "The phase of the volume."),
    Column::text("Claim", "The claim that has the volume."),
    Column::text("StorageClass", "The class of the volume."),
    Column::text("VolumeAttributesClass", "The class of the volume's attributes."),
    Column::text("Reason", "Why the volume is in its phase."),
    AGE,
    Column::text("VolumeMode", "Whether the volume is a file system or a block device.").wide(),
];

pub(super) fn volume(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let spec = object.field("spec");
    let claim = spec.field("claimRef");
    let claim = match claim.is_set() {
        true => format!("{}/{}", claim.field("namespace").text(), claim.field("name").text()),
        false => String::new(),
    };
    vec![
        object.name().into(),
        spec.at("capacity.storage").quantity().into(),
        access_modes(spec).into(),
        spec.field("persistentVolumeReclaimPolicy").text_or("Retain").into(),
        phase(object).into(),
        claim.into(),
        class(object).into(),
        spec.field("volumeAttributesClassName").set_or(UNSET).into(),
        object.at("status.reason").text().into(),
        on.created(object).into(),
        spec.field("volumeMode").set_or("Filesystem").into(),
    ]
}

pub(super) const CLAIMS: &[Column] = &[
    NAME,
    Column::text("Status", "The phase of the claim."),
    Column::text("Volume", "The volume that the claim has."),
    Column::text("Capacity", "How large that volume is."),
    Column::text("Access Modes", "How that volume may be mounted."),
    Column::text("StorageClass", "The class of the claim."),
    Column::text("VolumeAttributesClass", "The class of the attributes that are claimed."),
    AGE,
    Column::text("VolumeMode", "Whether a file system or a block device is claimed.").wide(),
];

pub(super) fn claim(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let (spec, status) = (object.field("spec"), object.field("status"));
    let volume = spec.field("volumeName").text();
    let (capacity, modes) = match volume {
        "" => (String::new(), String::new()),
        _ => (status.at("capacity.storage").quantity(), access_modes(status)),
    };
    vec![
        object.name().into(),
        phase(object).into(),
        volume.into(),
        capacity.into(),
        modes.into(),
        class(object).into(),
        spec.field("volumeAttributesClassName").set_or(UNSET).into(),
        on.created(object).into(),
        spec.field("volumeMode").set_or("Filesystem").into(),
    ]
}

fn phase(object: Node<'_>) -> &str {
    if object.is_deleting() { "Terminating" } else { object.at("status.phase").text_or("Pending") }
}

fn class(object: Node<'_>) -> &str {
    let annotation = object.annotation("volume.beta.kubernetes.io/storage-class");
    if annotation.is_set() { annotation.text() } else { object.at("spec.storageClassName").text() }
}

fn access_modes(holder: Node<'_>) -> String {
    const MODES: [(&str, &str); 4] =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let has = |mode| holder.field("accessModes").texts().any(|text| text == mode);
    MODES.iter().filter(|(mode, _)| has(*mode)).map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

pub(super) const CLASSES: &[Column] = &[
    NAME,
    Column::text("Provisioner", "What makes volumes of the class."),
    Column::text("ReclaimPolicy", "What becomes of a volume when its claim is gone."),
    Column::text("VolumeBindingMode", "When a claim gets its volume."),
    Column::text("AllowVolumeExpansion", "Whether volumes may grow."),
    AGE,
];

pub(super) fn storage_class(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let default = if is_effective_default(object, on) { " (default)" } else { "" };
    vec![
        format!("{}{default}", object.name()).into(),
        object.field("provisioner").text().into(),
        object.field("reclaimPolicy").set_or("Delete").into(),
        object.field("volumeBindingMode").set_or("Immediate").into(),
        object.field("allowVolumeExpansion").boolean().into(),
        on.created(object).into(),
    ]
}

/// Of several classes marked as the default one of a list, the newest is it, then the first by name.
fn is_effective_default(object: Node<'_>, on: &Printing<'_>) -> bool {
    let marked = |class: Node<'_>| {
        ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"]
            .iter()
            .any(|key| class.annotation(key).text() == "true")
    };
    let rank = |class: Node<'_>| age::parse(class.at("metadata.creationTimestamp").text());
    let others = on.list.iter().map(|class| Node::of(class)).filter(|class| marked(*class));
    let first = others.reduce(|best, class| match rank(class).cmp(&rank(best)).then(best.name().cmp(class.name())) {
        std::cmp::Ordering::Greater => class,
        _ => best,
    });
    first.is_some_and(|first| first.name() == object.name())
}

pub(super) const ATTRIBUTES_CLASSES: &[Column] =
    &[NAME, Column::text("DriverName", "The driver that the attributes are for."), AGE];

pub(super) fn attributes_class(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    vec![object.name().into(), object.field("driverName").text().into(), on.created(object).into()]
}

pub(super) const ATTACHMENTS: &[Column] = &[
    NAME,
    Column::text("Attacher", "The driver that attaches the volume.").named(),
    Column::text("PV", "The volume."),
    Column::text("Node", "The node that the volume is attached to."),
    Column::boolean("Attached", "Whether the volume is attached."),
    AGE,
];

pub(super) fn attachment(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    vec![
        object.name().into(),
        object.at("spec.attacher").text().into(),
        object.at("spec.source.persistentVolumeName").text().into(),
        object.at("spec.nodeName").text().into(),
        object.at("status.attached").boolean().into(),
        on.created(object).into(),
    ]
}

pub(super) const CSI_NODES: &[Column] = &[NAME, Column::integer("Drivers", "How many drivers the node has."), AGE];

pub(super) fn csi_node(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    vec![object.name().into(), object.at("spec.drivers").count().into(), on.created(object).into()]
}

pub(super) const CSI_DRIVERS: &[Column] = &[
    NAME,
    Column::boolean("AttachRequired", "Whether volumes must be attached before they are mounted."),
    Column::boolean("PodInfoOnMount", "Whether the driver is told about the pod."),
    Column::boolean("StorageCapacity", "Whether the driver tells how much storage there is."),
    Column::text("TokenRequests", "The audiences of the tokens that the driver gets."),
    Column::boolean("RequiresRepublish", "Whether the driver is called again and again."),
    Column::text("Modes", "How long volumes of the driver live."),
    AGE,
];

pub(super) fn csi_driver(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let spec = object.field("spec");
    let tokens = spec.field("tokenRequests");
    let audiences: Vec<_> = tokens.list().map(|token| token.field("audience").text()).collect();
    let modes = spec.field("volumeLifecycleModes");
    vec![
        object.name().into(),
        spec.field("attachRequired").boolean_or(true).into(),
        spec.field("podInfoOnMount").boolean().into(),
        spec.field("storageCapacity").boolean().into(),
        if tokens.is_set() { audiences.join(",") } else { UNSET.to_owned() }.into(),
        spec.field("requiresRepublish").boolean().into(),
        // Persistent is what a driver without modes is taken for.
        if modes.count() == 0 { "Persistent".to_owned() } else { modes.joined() }.into(),
        on.created(object).into(),
    ]
}

pub(super) const MIGRATIONS: &[Column] = &[
    Column::text("Name", "The name of the migration."),
    Column::text("Resource", "What is stored anew."),
    Column::text("Status", "How far the migration is."),
];

pub(super) fn migration(object: Node<'_>, _: &Printing<'_>) -> Vec<Value> {
    let [group, resource] = ["group", "resource"].map(|field| object.at("spec.resource").field(field).text());
    let status = object
        .at("status.conditions")
        .list()
        .filter(|condition| condition.field("status").text() == "True")
        .map(|condition| condition.field("type").text())
        .rfind(|kind| matches!(*kind, "Running" | "Failed" | "Succeeded"));
    vec![
        object.name().into(),
        if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }.into(),
        status.unwrap_or("Unknown").into(),
    ]
}
