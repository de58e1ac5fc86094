//! What can be done to pods besides reading and writing them.

use std::sync::Arc;

use cloudcoil_core::Selector;
use cloudcoil_core::k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Value, json};

use super::body;
use super::cluster::{Call, Cluster};
use super::delete::DeleteOptions;
use super::errors::{Outcome, bad_request, conflict, disrupted, not_found, unexplained};
use super::namespaces::set_condition;
use super::object::{self, Draft, Object, child_mut, meta, text_at};
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
            return Err(conflict(&pods, &target, &why));
        }
        if node.is_empty() {
            return Err(bad_request("target.name: Required value"));
        }
        let mut fields = pod.fields().clone();
        child_mut(&mut fields, "spec").insert("nodeName".to_owned(), Value::from(node));
        set_condition(child_mut(&mut fields, "status"), call.now, "PodScheduled", "True", "", "");
        if !call.query.dry_run() {
            self.put(&pods, &key, fields);
        }
        Ok(created())
    }

    /// Deletes a pod, unless a disruption budget is against it.
    pub(crate) fn evict(&mut self, call: &Call<'_>) -> Outcome<Reply> {
        check_write(call.query, "CreateOptions")?;
        let eviction = body::read(&self.kinds, call, ("policy", "v1", "Eviction"))?;
        let name = meta(&eviction, "name");
        if !name.is_empty() && name != call.name() {
            let message = format!("name in URL does not match name in Eviction object: {} != {name}", call.name());
            return Err(bad_request(message));
        }
        let Some(pod) = self.store.get(&call.resource.place, &call.key()).cloned() else {
            return Err(not_found(call.resource, call.name()));
        };
        if !pod.is_deleting()
            && !matches!(text_at(pod.fields(), &["status", "phase"]), "Succeeded" | "Failed" | "Pending")
        {
            self.check_budgets(call, &pod)?;
        }
        let mut options: DeleteOptions = match eviction.get("deleteOptions") {
            Some(options) => serde_json::from_value(options.clone()).map_err(|error| bad_request(error.to_string()))?,
            None => DeleteOptions::default(),
        };
        if call.query.dry_run() {
            options.dry_run = Some(vec!["All".to_owned()]);
        }
        self.delete_object(call.now, call.resource, &call.key(), &options)?;
        Ok(created())
    }

    /// Refuses an eviction that a disruption budget has no room for, and takes the room of one that has.
    fn check_budgets(&mut self, call: &Call<'_>, pod: &Object) -> Outcome<()> {
        let Some(budgets) = self.catalog.resource("policy", "v1", "poddisruptionbudgets").cloned() else {
            return Ok(());
        };
        let prefix = format!("{}/", pod.namespace());
        let covering: Vec<_> = self
            .store
            .under(&budgets.place, &prefix)
            .filter(|(_, budget)| covers(budget, pod.fields()))
            .map(|(key, budget)| (Arc::clone(key), Arc::clone(budget)))
            .collect();
        let (key, budget) = match &covering[..] {
            [] => return Ok(()),
            [one] => one,
            _ => {
                let message =
                    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
                return Err(unexplained(500, message));
            }
        };
        let count = |field: &str| object::at(budget.fields(), &["status", field]).and_then(Value::as_i64).unwrap_or(0);
        let allowed = count("disruptionsAllowed");
        if allowed <= 0 {
            return Err(disrupted(budget.name(), count("desiredHealthy"), count("currentHealthy")));
        }
        if !call.query.dry_run() {
            let mut fields = budget.fields().clone();
            child_mut(&mut fields, "status").insert("disruptionsAllowed".to_owned(), json!(allowed - 1));
            self.put(&budgets, key, fields);
        }
        Ok(())
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

fn created() -> Reply {
    Reply::Body(Body::json(
        201,
        &json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
    ))
}

fn covers(budget: &Object, pod: &Draft) -> bool {
    let selector = object::at(budget.fields(), &["spec", "selector"]).cloned().unwrap_or(Value::Null);
    let Ok(selector) = serde_json::from_value::<LabelSelector>(selector) else { return false };
    Selector::try_from(&selector).is_ok_and(|selector| selector.matches(|key| object::label(pod, key)))
}
