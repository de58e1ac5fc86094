//! What runs pods.

use serde_json::Value;

use super::column::{AGE, CONTAINERS, Column, IMAGES, NAME, SELECTOR};
use super::node::{NONE, Node};
use super::{Printing, age};

pub(super) const POD_TEMPLATES: &[Column] = &[
    NAME,
    Column::text("Containers", "The names of the containers in the template."),
    Column::text("Images", "The images of the containers in the template."),
    Column::text("Pod Labels", "The labels in the template."),
];

pub(super) fn pod_template(object: Node<'_>, _: &Printing<'_>) -> Vec<Value> {
    let [names, images] = object.at("template.spec").containers();
    let labels = object.at("template.metadata.labels").labels();
    vec![object.name().into(), names.into(), images.into(), labels.into()]
}

/// Of ReplicaSets and ReplicationControllers.
pub(super) const REPLICA_SETS: &[Column] = &[
    NAME,
    Column::integer("Desired", "How many replicas there shall be."),
    Column::integer("Current", "How many replicas there are."),
    Column::integer("Ready", "How many replicas are ready."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(super) fn replica_set(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    replicas(object, on, object.at("spec.selector").selector_or_none())
}

pub(super) fn replication_controller(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let selector = object.at("spec.selector");
    let labels = if selector.is_set() { selector } else { object.at("spec.template.metadata.labels") };
    replicas(object, on, labels.labels())
}

fn replicas(object: Node<'_>, on: &Printing<'_>, selector: String) -> Vec<Value> {
    let [names, images] = object.at("spec.template.spec").containers();
    vec![
        object.name().into(),
        object.at("spec.replicas").integer_or(1).into(),
        object.at("status.replicas").integer().into(),
        object.at("status.readyReplicas").integer().into(),
        on.created(object).into(),
        names.into(),
        images.into(),
        selector.into(),
    ]
}

pub(super) const DEPLOYMENTS: &[Column] = &[
    NAME,
    Column::text("Ready", "How many replicas are ready, of those there shall be."),
    Column::text("Up-to-date", "How many replicas have the current template."),
    Column::text("Available", "How many replicas have been ready for long enough."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(super) fn deployment(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let [names, images] = object.at("spec.template.spec").containers();
    let selector = object.at("spec.selector").selector().unwrap_or_else(|| "<invalid>".to_owned());
    vec![
        object.name().into(),
        ready_of_desired(object).into(),
        object.at("status.updatedReplicas").integer().into(),
        object.at("status.availableReplicas").integer().into(),
        on.created(object).into(),
        names.into(),
        images.into(),
        selector.into(),
    ]
}

fn ready_of_desired(object: Node<'_>) -> String {
    format!("{}/{}", object.at("status.readyReplicas").integer(), object.at("spec.replicas").integer_or(1))
}

pub(super) const STATEFUL_SETS: &[Column] =
    &[NAME, Column::text("Ready", "How many replicas are ready, of those there shall be."), AGE, CONTAINERS, IMAGES];

pub(super) fn stateful_set(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let [names, images] = object.at("spec.template.spec").containers();
    vec![object.name().into(), ready_of_desired(object).into(), on.created(object).into(), names.into(), images.into()]
}

pub(super) const DAEMON_SETS: &[Column] = &[
    NAME,
    Column::integer("Desired", "How many nodes shall run the pod."),
    Column::integer("Current", "How many of those nodes run the pod."),
    Column::integer("Ready", "On how many nodes the pod is ready."),
    Column::integer("Up-to-date", "On how many nodes the pod has the current template."),
    Column::integer("Available", "On how many nodes the pod has been ready for long enough."),
    Column::text("Node Selector", "Which nodes run the pod, by their labels."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(super) fn daemon_set(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let status = object.field("status");
    let [names, images] = object.at("spec.template.spec").containers();
    let counts = [
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    ];
    let mut cells = vec![object.name().into()];
    cells.extend(counts.map(|count| Value::from(status.field(count).integer())));
    cells.extend([
        object.at("spec.template.spec.nodeSelector").labels().into(),
        on.created(object).into(),
        names.into(),
        images.into(),
        object.at("spec.selector").selector_or_none().into(),
    ]);
    cells
}

pub(super) const JOBS: &[Column] = &[
    NAME,
    Column::text("Status", "How far the job is."),
    Column::text("Completions", "How many pods succeeded, of those that shall."),
    Column::text("Duration", "How long the job took, or has been running."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(super) fn job(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let status = object.field("status");
    let succeeded = status.field("succeeded").integer();
    let parallelism = object.at("spec.parallelism").integer_or(1);
    let completions = object.at("spec.completions");
    let completions = match completions.is_set() {
        true => format!("{succeeded}/{}", completions.integer()),
        false if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        false => format!("{succeeded}/1"),
    };
    let end = age::parse(status.field("completionTime").text()).unwrap_or(on.now);
    let duration = age::between(status.field("startTime").text(), end).unwrap_or_default();
    let [names, images] = object.at("spec.template.spec").containers();
    vec![
        object.name().into(),
        job_status(object).into(),
        completions.into(),
        duration.into(),
        on.created(object).into(),
        names.into(),
        images.into(),
        object.at("spec.selector").selector_or_none().into(),
    ]
}

fn job_status(job: Node<'_>) -> &'static str {
    // Only the first condition of a type counts.
    let is = |kind| {
        let condition = job.at("status.conditions").condition(kind);
        condition.is_some_and(|condition| condition.field("status").text() == "True")
    };
    match () {
        () if is("Complete") => "Complete",
        () if is("Failed") => "Failed",
        () if job.is_deleting() => "Terminating",
        () if is("Suspended") => "Suspended",
        () if is("FailureTarget") => "FailureTarget",
        () if is("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

pub(super) const CRON_JOBS: &[Column] = &[
    NAME,
    Column::text("Schedule", "When jobs are made, in cron's own format."),
    Column::text("Timezone", "The time zone of the schedule."),
    Column::boolean("Suspend", "Whether no more jobs are made."),
    Column::integer("Active", "How many jobs run."),
    Column::text("Last Schedule", "How long ago the last job was due."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(super) fn cron_job(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let (spec, status) = (object.field("spec"), object.field("status"));
    let last = status.field("lastScheduleTime");
    let [names, images] = spec.at("jobTemplate.spec.template.spec").containers();
    vec![
        object.name().into(),
        spec.field("schedule").text().into(),
        spec.field("timeZone").set_or(NONE).into(),
        if spec.field("suspend").boolean() { "True" } else { "False" }.into(),
        status.field("active").count().into(),
        if last.is_set() { on.age(last) } else { NONE.to_owned() }.into(),
        on.created(object).into(),
        names.into(),
        images.into(),
        spec.at("jobTemplate.spec.selector").selector_or_none().into(),
    ]
}

pub(super) const CONTROLLER_REVISIONS: &[Column] = &[
    NAME,
    Column::text("Controller", "What the revision is one of."),
    Column::text("Revision", "The number of the revision."),
    AGE,
];

pub(super) fn controller_revision(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let controller = object.at("metadata.ownerReferences").list().find(|owner| owner.field("controller").boolean());
    let controller = controller.map(|owner| {
        let kind = owner.field("kind").text();
        let kind = match owner.field("apiVersion").text().split_once('/') {
            Some((group, _)) => format!("{kind}.{group}"),
            None => kind.to_owned(),
        };
        format!("{}/{}", kind.to_lowercase(), owner.field("name").text())
    });
    vec![
        object.name().into(),
        controller.unwrap_or_else(|| NONE.to_owned()).into(),
        object.field("revision").integer().into(),
        on.created(object).into(),
    ]
}

/// Of the scale subresource.
pub(super) const SCALES: &[Column] = &[
    Column::text("Name", "The name of the object."),
    Column::integer("Desired", "How many replicas there shall be."),
    Column::integer("Available", "How many replicas there are."),
    AGE,
];

pub(super) fn scale(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    vec![
        object.name().into(),
        object.at("spec.replicas").integer().into(),
        object.at("status.replicas").integer().into(),
        on.created(object).into(),
    ]
}

pub(super) const DISRUPTION_BUDGETS: &[Column] = &[
    NAME,
    Column::text("Min Available", "How many pods must stay available."),
    Column::text("Max Unavailable", "How many pods may be unavailable."),
    Column::integer("Allowed Disruptions", "How many pods may be disrupted now."),
    AGE,
];

pub(super) fn disruption_budget(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let bound = |path| object.at(path).int_or_text().unwrap_or_else(|| "N/A".to_owned());
    vec![
        object.name().into(),
        bound("spec.minAvailable").into(),
        bound("spec.maxUnavailable").into(),
        object.at("status.disruptionsAllowed").integer().into(),
        on.created(object).into(),
    ]
}

pub(super) const PRIORITY_CLASSES: &[Column] = &[
    NAME,
    Column::integer("Value", "The priority of pods of the class."),
    Column::boolean("Global-Default", "Whether pods without a class are of this one."),
    AGE,
    Column::text("PreemptionPolicy", "Whether pods of lower priority make room."),
];

pub(super) fn priority_class(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    vec![
        object.name().into(),
        object.field("value").integer().into(),
        object.field("globalDefault").boolean().into(),
        on.created(object).into(),
        object.field("preemptionPolicy").set_or("PreemptLowerPriority").into(),
    ]
}

pub(super) const RUNTIME_CLASSES: &[Column] =
    &[NAME, Column::text("Handler", "What of the node's runtime runs the pods."), AGE];

pub(super) fn runtime_class(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    vec![object.name().into(), object.field("handler").text().into(), on.created(object).into()]
}

pub(super) const LEASES: &[Column] = &[NAME, Column::text("Holder", "Who holds the lease."), AGE];

pub(super) fn lease(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    vec![object.name().into(), object.at("spec.holderIdentity").text().into(), on.created(object).into()]
}

pub(super) const SERVICE_ACCOUNTS: &[Column] = &[NAME, AGE];

pub(super) fn name_and_age(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    vec![object.name().into(), on.created(object).into()]
}
