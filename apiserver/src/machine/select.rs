//! Which objects a list or watch is about.

use std::borrow::Cow;

use cloudcoil_core::{FieldSelector, Selector};
use serde_json::Value;

use super::catalog::Resource;
use super::cluster::Call;
use super::errors::{Outcome, bad_request, quote};
use super::object::{self, Draft, Object};
use super::store::Key;

/// Which objects a list or watch is about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Selection {
    namespace: Option<String>,
    labels: Selector,
    fields: FieldSelector,
}

impl Selection {
    /// What a call selects.
    ///
    /// # Errors
    /// A selector that cannot be read, or that names a field which this resource cannot be selected by.
    pub(crate) fn of(call: &Call<'_>) -> Outcome<Self> {
        let labels = Selector::parse(call.query.text("labelSelector"))
            .map_err(|error| bad_request(format!("unable to parse requirement: {error}")))?;
        let text = call.query.text("fieldSelector");
        let mut fields =
            FieldSelector::parse(text).map_err(|error| bad_request(format!("invalid selector: '{text}'; {error}")))?;
        for term in fields.terms() {
            check_field(call.resource, term.path())?;
        }
        if let Some(name) = &call.target.name {
            if !fields.is_empty() && fields.exact("metadata.name") != Some(name) {
                return Err(bad_request("fieldSelector metadata.name doesn't match requested name"));
            }
            fields = FieldSelector::new()
                .eq("metadata.name", name.as_str())
                .map_err(|error| bad_request(error.to_string()))?;
        }
        Ok(Self { namespace: call.target.namespace.clone(), labels, fields })
    }

    /// Whether all objects of the namespace are selected.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// What the keys of selected objects begin with.
    pub(crate) fn prefix(&self) -> String {
        self.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default()
    }

    pub(crate) fn matches(&self, resource: &Resource, key: &Key, object: &Object) -> bool {
        let fields = object.fields();
        self.namespace.as_deref().is_none_or(|namespace| under(key, namespace))
            && self.labels.matches(|key| object::label(fields, key))
            && self.fields.matches_with(|path| field(resource, fields, path))
    }
}

fn under(key: &Key, namespace: &str) -> bool {
    key.strip_prefix(namespace).is_some_and(|rest| rest.starts_with('/'))
}

fn check_field(resource: &Resource, path: &str) -> Outcome<()> {
    if path == "metadata.name" || path == "metadata.namespace" {
        return Ok(());
    }
    let known = match &resource.custom {
        Some(custom) => custom.selectable.iter().any(|field| *field == path),
        None => selectable(resource).contains(&path),
    };
    if known {
        return Ok(());
    }
    let plain = resource.is_custom() || selectable(resource).is_empty();
    Err(bad_request(match &*resource.of.kind {
        "Job" => format!("field label {} not supported for Job", quote(path)),
        _ if resource.is_custom() => format!("field label not supported: {path}"),
        _ if plain => {
            format!("{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"", quote(path))
        }
        _ => format!("field label not supported: {path}"),
    }))
}

/// The fields besides name and namespace that a built-in resource can be selected by.
fn selectable(resource: &Resource) -> &'static [&'static str] {
    match (&*resource.of.group, &*resource.of.plural) {
        ("", "pods") => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
            "spec.host",
        ],
        ("", "nodes") => &["spec.unschedulable"],
        ("", "replicationcontrollers") => &["status.replicas"],
        ("apps", "replicasets") => &["status.replicas"],
        ("", "events") => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        ("events.k8s.io", "events") => &[
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "regarding.resourceVersion",
            "regarding.fieldPath",
            "reason",
            "reportingController",
            "type",
        ],
        ("", "namespaces") => &["status.phase"],
        ("", "secrets") => &["type"],
        ("", "services") => &["spec.clusterIP", "spec.type"],
        ("batch", "jobs") => &["status.successful"],
        ("certificates.k8s.io", "certificatesigningrequests" | "clustertrustbundles") => &["spec.signerName"],
        ("certificates.k8s.io", "podcertificaterequests") => &["spec.signerName", "spec.podName", "spec.nodeName"],
        ("resource.k8s.io", "resourceslices") => &["spec.nodeName", "spec.driver", "spec.pool.name"],
        _ => &[],
    }
}

/// The text that a field selector compares; objects are as they are stored.
fn field<'a>(resource: &Resource, fields: &'a Draft, path: &str) -> Option<Cow<'a, str>> {
    let stored = match path {
        "spec.host" => "spec.nodeName",
        "status.successful" => "status.succeeded",
        "source" => "source.component",
        "reportingController" => "reportingComponent",
        path if path.starts_with("regarding.") => {
            let inner = path.strip_prefix("regarding.").unwrap_or_default();
            return value(fields, &["involvedObject", inner], path);
        }
        path => path,
    };
    let found = value(fields, &stored.split('.').collect::<Vec<_>>(), path);
    match (path, found) {
        ("source", None) if resource.is("", "events") => value(fields, &["reportingComponent"], path),
        (_, found) => found,
    }
}

fn value<'a>(fields: &'a Draft, path: &[&str], asked: &str) -> Option<Cow<'a, str>> {
    match object::at(fields, path) {
        Some(Value::String(text)) => Some(Cow::Borrowed(text)),
        Some(Value::Bool(flag)) => Some(Cow::Borrowed(if *flag { "true" } else { "false" })),
        Some(Value::Number(number)) => Some(Cow::Owned(number.to_string())),
        _ => match asked {
            "spec.hostNetwork" | "spec.unschedulable" => Some(Cow::Borrowed("false")),
            "status.replicas" | "status.successful" => Some(Cow::Borrowed("0")),
            _ => None,
        },
    }
}
