//! What can be done to pods besides reading and writing them.

use cloudcoil_core::Now;
use serde_json::{Value, json};

use super::body;
use super::cluster::{Call, Cluster};
use super::errors::{Outcome, bad_request, conflict, not_found, unexplained};
use super::namespaces::set_condition;
use super::object::{Draft, child_mut, meta, text_at};
use super::pages::check_write;
use super::reply::{Body, Reply};

impl Cluster {
    /// Assigns a pod to a node, as a scheduler does.
    pub(crate) fn bind(&mut self, call: &Call<'_>) -> Outcome<Reply> {
        check_write(call.query, "CreateOptions")?;
        let binding = body::read(&self.kinds, call, ("", "v1", "Binding"))?;
        let name = meta(&binding, "name").to_owned();
        let target = call.target.name.clone().unwrap_or_else(|| name.clone());
        if !name.is_empty() && name != target {
            return Err(bad_request("name in URL does not match name in Binding object"));
        }
        let Some(pods) = self.catalog.resource("", "v1", "pods").cloned() else {
            return Err(super::errors::no_such_path());
        };
        let key = super::store::key(call.namespace(), &target);
        let Some(pod) = self.store.get(&pods.place, &key).cloned() else { return Err(not_found(&pods, &target)) };
        let node = text_at(&binding, &["target", "name"]);
        let assigned = text_at(pod.fields(), &["spec", "nodeName"]);
        if !assigned.is_empty() {
            let why = format!("pod {target} is already assigned to node {}", super::errors::quote(assigned));
            let mut refusal = conflict(&pods, &target, &why);
            refusal.message = refusal.message.replacen("pods ", "pods/binding ", 1);
            "pods/binding".clone_into(&mut refusal.details.kind);
            return Err(refusal);
        }
        if node.is_empty() {
            return Err(bad_request("target.name: Required value"));
        }
        let mut fields = pod.fields().clone();
        child_mut(&mut fields, "spec").insert("nodeName".to_owned(), Value::from(node));
        set_pod_condition(&mut fields, call.now, "PodScheduled", "", "");
        if !call.query.dry_run() {
            self.put(&pods, &key, fields);
        }
        Ok(created())
    }

    /// What only a kubelet could answer, and there is none.
    pub(crate) fn connect(&self, call: &Call<'_>) -> Outcome<Reply> {
        let Some(pod) = self.store.get(&call.resource.place, &call.key()) else {
            return Err(not_found(call.resource, call.name()));
        };
        let node = text_at(pod.fields(), &["spec", "nodeName"]);
        if node.is_empty() {
            return Err(bad_request(format!("pod {} does not have a host assigned", call.name())));
        }
        let message = format!("Internal error occurred: no kubelet runs on node {}", super::errors::quote(node));
        let mut refusal = unexplained(500, message);
        "InternalError".clone_into(&mut refusal.reason);
        Err(refusal)
    }
}

/// A status that says that it has worked.
pub(crate) fn created() -> Reply {
    Reply::Body(Body::json(
        201,
        &json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
    ))
}

/// Says in the status of a pod what is true of it now.
pub(crate) fn set_pod_condition(fields: &mut Draft, now: Now, kind: &str, reason: &str, message: &str) {
    let status = child_mut(fields, "status");
    set_condition(status, now, kind, "True", reason, message);
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    let set = conditions.into_iter().flatten().filter(|condition| condition["type"] == kind);
    for condition in set.filter_map(Value::as_object_mut) {
        condition.insert("lastProbeTime".to_owned(), Value::Null);
        condition.retain(|_, value| value.as_str() != Some(""));
    }
}
