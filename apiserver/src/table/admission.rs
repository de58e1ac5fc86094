//! Who may do what, and what else decides about requests.

use std::cmp::Ordering;
use std::time::Duration;

use serde_json::Value;

use super::column::{AGE, CREATED_AT, Column, NAME};
use super::node::{NONE, Node, UNSET};
use super::{Printing, age};

/// Of RoleBindings and ClusterRoleBindings.
pub(super) const ROLE_BINDINGS: &[Column] = &[
    NAME,
    Column::text("Role", "The role that is given."),
    AGE,
    Column::text("Users", "The users it is given to.").wide(),
    Column::text("Groups", "The groups it is given to.").wide(),
    Column::text("ServiceAccounts", "The service accounts it is given to.").wide(),
];

pub(super) fn role_binding(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let subjects = |kind: &str| {
        let of_kind = object.field("subjects").list().filter(|subject| subject.field("kind").text() == kind);
        let texts = of_kind.map(|subject| match (kind, subject.field("name").text()) {
            ("ServiceAccount", name) => format!("{}/{name}", subject.field("namespace").text()),
            (_, name) => name.to_owned(),
        });
        Value::from(texts.collect::<Vec<_>>().join(", "))
    };
    let role = object.field("roleRef");
    vec![
        object.name().into(),
        format!("{}/{}", role.field("kind").text(), role.field("name").text()).into(),
        on.created(object).into(),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}

pub(super) const SIGNING_REQUESTS: &[Column] = &[
    NAME,
    AGE,
    Column::text("SignerName", "Who shall sign."),
    Column::text("Requestor", "Who asks."),
    Column::text("RequestedDuration", "For how long the certificate shall be valid."),
    Column::text("Condition", "How far the request is."),
];

pub(super) fn signing_request(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let spec = object.field("spec");
    let seconds = spec.field("expirationSeconds");
    let duration = match u64::try_from(seconds.integer()) {
        Ok(seconds_asked) if seconds.is_set() => age::human_duration(Duration::from_secs(seconds_asked)),
        Err(_) => age::human(seconds.integer().saturating_mul(1_000_000)),
        Ok(_) => NONE.to_owned(),
    };
    let conditions = object.at("status.conditions");
    let has = |kind| conditions.condition(kind).is_some();
    let mut status = match () {
        () if has("Denied") => "Denied",
        () if has("Approved") => "Approved",
        () => "Pending",
    }
    .to_owned();
    if has("Failed") {
        status.push_str(",Failed");
    }
    if !object.at("status.certificate").text().is_empty() {
        status.push_str(",Issued");
    }
    vec![
        object.name().into(),
        on.created(object).into(),
        spec.field("signerName").text_or(NONE).into(),
        spec.field("username").text().into(),
        duration.into(),
        status.into(),
    ]
}

pub(super) const TRUST_BUNDLES: &[Column] = &[NAME, Column::text("SignerName", "Whose certificates they are.")];

pub(super) fn trust_bundle(object: Node<'_>, _: &Printing<'_>) -> Vec<Value> {
    vec![object.name().into(), object.at("spec.signerName").text_or(NONE).into()]
}

pub(super) const POD_CERTIFICATES: &[Column] = &[
    NAME,
    Column::text("PodName", "The pod that asks."),
    Column::text("ServiceAccountName", "The pod's service account."),
    Column::text("NodeName", "The pod's node."),
    Column::text("SignerName", "Who shall sign."),
    Column::text("State", "How far the request is."),
    Column::text("UnverifiedUserAnnotations", "What else the pod says to the signer."),
];

pub(super) fn pod_certificate(object: Node<'_>, _: &Printing<'_>) -> Vec<Value> {
    let spec = object.field("spec");
    let conditions = object.at("status.conditions").list().map(|condition| condition.field("type").text());
    let mut states = conditions.filter(|kind| matches!(*kind, "Issued" | "Denied" | "Failed"));
    let mut cells = vec![object.name().into()];
    cells.extend(
        ["podName", "serviceAccountName", "nodeName", "signerName"].map(|field| Value::from(spec.field(field).text())),
    );
    cells.extend([
        states.next_back().unwrap_or("Pending").into(),
        spec.field("unverifiedUserAnnotations").labels().into(),
    ]);
    cells
}

/// Of the configurations of validating and mutating webhooks.
pub(super) const WEBHOOKS: &[Column] = &[NAME, Column::integer("Webhooks", "How many webhooks it has."), AGE];

pub(super) fn webhook(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    vec![object.name().into(), object.field("webhooks").count().into(), on.created(object).into()]
}

pub(super) const VALIDATING_POLICIES: &[Column] = &[
    NAME,
    Column::integer("Validations", "How many rules it has."),
    Column::text("ParamKind", "The kind of its parameters."),
    AGE,
];

pub(super) fn validating_policy(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    policy(object, "spec.validations", on)
}

pub(super) const MUTATING_POLICIES: &[Column] = &[
    NAME,
    Column::integer("Mutations", "How many rules it has."),
    Column::text("ParamKind", "The kind of its parameters."),
    AGE,
];

pub(super) fn mutating_policy(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    policy(object, "spec.mutations", on)
}

fn policy(object: Node<'_>, rules: &str, on: &Printing<'_>) -> Vec<Value> {
    let kind = object.at("spec.paramKind");
    let kind = match kind.is_set() {
        true => format!("{}/{}", kind.field("apiVersion").text(), kind.field("kind").text()),
        false => UNSET.to_owned(),
    };
    vec![object.name().into(), object.at(rules).count().into(), kind.into(), on.created(object).into()]
}

/// Of the bindings of validating and mutating policies.
pub(super) const POLICY_BINDINGS: &[Column] = &[
    NAME,
    Column::text("PolicyName", "The policy that is bound."),
    Column::text("ParamRef", "The policy's parameters."),
    AGE,
];

pub(super) fn policy_binding(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let params = object.at("spec.paramRef");
    let (namespace, selector) = (params.field("namespace").text_or("*"), params.field("selector"));
    let params = match params.field("name").text() {
        "" if selector.is_set() => selector_as_printed(selector),
        "" => UNSET.to_owned(),
        name => format!("{namespace}/{name}"),
    };
    vec![object.name().into(), object.at("spec.policyName").text().into(), params.into(), on.created(object).into()]
}

/// The API server prints the selector of parameters as a Go value.
fn selector_as_printed(selector: Node<'_>) -> String {
    let mut labels: Vec<_> = selector.field("matchLabels").entries().collect();
    labels.sort_by_key(|(key, _)| *key);
    let labels: String = labels.into_iter().map(|(key, value)| format!("{key}: {},", value.text())).collect();
    let expressions: String = selector
        .field("matchExpressions")
        .list()
        .map(|expression| {
            let [key, operator] = ["key", "operator"].map(|field| expression.field(field).text());
            let values = expression.field("values").texts().collect::<Vec<_>>().join(" ");
            format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},")
        })
        .collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},\
         MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}

pub(super) const FLOW_SCHEMAS: &[Column] = &[
    NAME,
    Column::text("PriorityLevel", "The priority level of the requests."),
    Column::text("MatchingPrecedence", "The schema with the lowest is tried first."),
    Column::text("DistinguisherMethod", "By what requests are told apart."),
    AGE,
    Column::text("MissingPL", "Whether the priority level does not exist."),
];

pub(super) fn flow_schema(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let spec = object.field("spec");
    let method = spec.field("distinguisherMethod");
    let dangling = object.at("status.conditions").condition("Dangling");
    vec![
        object.name().into(),
        spec.at("priorityLevelConfiguration.name").text().into(),
        precedence(object).into(),
        if method.is_set() { method.field("type").text() } else { NONE }.into(),
        on.created(object).into(),
        dangling.map_or("?", |condition| condition.field("status").text()).into(),
    ]
}

fn precedence(schema: Node<'_>) -> i64 {
    schema.at("spec.matchingPrecedence").integer_or(1000)
}

pub(super) fn by_precedence(a: Node<'_>, b: Node<'_>) -> Ordering {
    (precedence(a), a.name()).cmp(&(precedence(b), b.name()))
}

pub(super) const PRIORITY_LEVELS: &[Column] = &[
    NAME,
    Column::text("Type", "Whether requests are limited."),
    Column::text("NominalConcurrencyShares", "The share of all requests that may be served at once."),
    Column::text("Queues", "How many queues there are."),
    Column::text("HandSize", "How many queues a flow may use."),
    Column::text("QueueLengthLimit", "How many requests may wait in a queue."),
    AGE,
];

pub(super) fn priority_level(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let limited = object.at("spec.limited");
    let queuing = limited.at("limitResponse.queuing");
    let count = |holder: Node<'_>, field, default: i64| match holder.is_set() {
        true => Value::from(holder.field(field).integer_or(default)),
        false => Value::from(NONE),
    };
    vec![
        object.name().into(),
        object.at("spec.type").text().into(),
        count(limited, "nominalConcurrencyShares", 30),
        count(queuing, "queues", 64),
        count(queuing, "handSize", 8),
        count(queuing, "queueLengthLimit", 50),
        on.created(object).into(),
    ]
}

pub(super) const DEFINITIONS: &[Column] = &[
    NAME,
    Column::text("Scope", "Whether the objects live in namespaces."),
    Column::text("Versions", "The versions that are served."),
    CREATED_AT,
    Column::text("Group", "The API group.").wide(),
    Column::text("Kind", "The kind of the objects.").wide(),
    Column::text("ShortNames", "Abbreviations of the name.").wide(),
    Column::boolean("Established", "Whether the objects are served.").wide(),
];

pub(super) fn definition(object: Node<'_>, _: &Printing<'_>) -> Vec<Value> {
    let spec = object.field("spec");
    let served = spec.field("versions").list().filter(|version| version.field("served").boolean());
    let mut versions: Vec<_> = served
        .map(|version| {
            let suffix = if version.field("storage").boolean() { "(storage)" } else { "" };
            format!("{}{suffix}", version.field("name").text())
        })
        .collect();
    versions.sort();
    vec![
        object.name().into(),
        spec.field("scope").text().into(),
        versions.join(",").into(),
        object.at("metadata.creationTimestamp").text().into(),
        spec.field("group").text().into(),
        spec.at("names.kind").text().into(),
        spec.at("names.shortNames").joined().into(),
        object.at("status.conditions").has_condition("Established").into(),
    ]
}

pub(super) const API_SERVICES: &[Column] = &[
    NAME,
    Column::text("Service", "What serves the API."),
    Column::text("Available", "Whether the API is available."),
    AGE,
];

pub(super) fn api_service(object: Node<'_>, on: &Printing<'_>) -> Vec<Value> {
    let service = object.at("spec.service");
    let service = match service.is_set() {
        true => format!("{}/{}", service.field("namespace").text(), service.field("name").text()),
        false => "Local".to_owned(),
    };
    let available = object.at("status.conditions").condition("Available").map(|condition| {
        match (condition.field("status").text(), condition.field("reason").text()) {
            ("True", _) => "True".to_owned(),
            (status, "") => status.to_owned(),
            (status, reason) => format!("{status} ({reason})"),
        }
    });
    vec![
        object.name().into(),
        service.into(),
        available.unwrap_or_else(|| "Unknown".to_owned()).into(),
        on.created(object).into(),
    ]
}
