//! Eviction: deleting pods as far as their disruption budgets allow.

use std::sync::Arc;

use cloudcoil_core::Selector;
use cloudcoil_core::k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Value, json};

use super::body;
use super::catalog::Resource;
use super::cluster::{Call, Cluster};
use super::delete::{DeleteOptions, check_preconditions};
use super::errors::{Outcome, Refusal, bad_request, cause, disrupted, not_found, quote, still_processed, unexplained};
use super::namespaces::set_condition;
use super::object::{self, Draft, Object, child_mut, meta, text_at};
use super::pages::check_write;
use super::pods::{created, set_pod_condition};
use super::reply::Reply;
use super::store::Key;

impl Cluster {
    /// Deletes a pod, unless a disruption budget is against it.
    pub(crate) fn evict(&mut self, call: &Call<'_>) -> Outcome<Reply> {
        check_write(call.query, "CreateOptions")?;
        let mut eviction = body::read(&self.kinds, call, ("policy", "v1", "Eviction"))?;
        check_type(&eviction)?;
        if meta(&eviction, "name") != call.name() {
            return Err(bad_request("name in URL does not match name in Eviction object"));
        }
        let mut options = DeleteOptions::of_value(eviction.remove("deleteOptions").unwrap_or_else(|| json!({})))?;
        if call.query.dry_run() {
            options.dry_run = Some(vec!["All".to_owned()]);
        }
        let Some(pod) = self.store.get(&call.resource.place, &call.key()).cloned() else {
            return Err(not_found(call.resource, call.name()));
        };
        let ended = matches!(text_at(pod.fields(), &["status", "phase"]), "Succeeded" | "Failed" | "Pending");
        if !ended && !pod.is_deleting() {
            self.check_budgets(call, &pod, options.is_dry_run())?;
        }
        check_preconditions(call.resource, &pod, &options)?;
        if !options.is_dry_run() {
            let mut fields = pod.fields().clone();
            let (reason, message) = ("EvictionByEvictionAPI", "Eviction API: evicting");
            set_pod_condition(&mut fields, call.now, "DisruptionTarget", reason, message);
            self.put(call.resource, &call.key(), fields);
            // It held of the pod before it said that it is evicted.
            options.preconditions = None;
        }
        // As at a real API server, a pod says that it is evicted even if how it is to be deleted makes no sense.
        options.check()?;
        self.delete_object(call.now, call.resource, &call.key(), &options)?;
        Ok(created())
    }

    /// Refuses an eviction that a disruption budget has no room for, and takes the room of one that has.
    fn check_budgets(&mut self, call: &Call<'_>, pod: &Object, dry_run: bool) -> Outcome<()> {
        let Some(budgets) = self.catalog.resource("policy", "v1", "poddisruptionbudgets").cloned() else {
            return Ok(());
        };
        let (key, budget) = match &self.covering(&budgets, pod)[..] {
            [] => return Ok(()),
            [one] => one.clone(),
            _ => return Err(unexplained(500, SEVERAL)),
        };
        let count = |field: &str| object::at(budget.fields(), &["status", field]).and_then(Value::as_i64).unwrap_or(0);
        if !is_ready(pod) {
            let always = text_at(budget.fields(), &["spec", "unhealthyPodEvictionPolicy"]) == "AlwaysAllow";
            let healthy = count("desiredHealthy") > 0 && count("currentHealthy") >= count("desiredHealthy");
            if always || healthy {
                // A pod that is not ready takes no room.
                return Ok(());
            }
        }
        let generation = object::meta_value(budget.fields(), "generation").and_then(Value::as_i64).unwrap_or(0);
        if count("observedGeneration") < generation {
            return Err(still_processed(budget.name()));
        }
        let allowed = count("disruptionsAllowed");
        if allowed < 0 {
            return Err(negative(budget.name()));
        }
        if allowed == 0 {
            return Err(disrupted(&why_none(&budget)));
        }
        if !dry_run {
            self.take_room(call, &budgets, &key, &budget, pod, allowed - 1);
        }
        Ok(())
    }

    fn take_room(&mut self, call: &Call<'_>, budgets: &Resource, key: &Key, budget: &Object, pod: &Object, left: i64) {
        let mut fields = budget.fields().clone();
        let status = child_mut(&mut fields, "status");
        status.insert("disruptionsAllowed".to_owned(), json!(left));
        let disrupted = child_mut(status, "disruptedPods");
        disrupted.insert(pod.name().to_owned(), Value::from(call.now.wall.to_rfc3339()));
        if left == 0 {
            set_condition(status, call.now, "DisruptionAllowed", "False", "InsufficientPods", "");
            let observed = status.get("observedGeneration").cloned().unwrap_or_else(|| json!(0));
            for condition in status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
                if condition["type"] == "DisruptionAllowed" {
                    condition["observedGeneration"] = observed.clone();
                }
            }
        }
        self.put(budgets, key, fields);
    }

    /// The budgets that a pod counts for.
    fn covering(&self, budgets: &Resource, pod: &Object) -> Vec<(Key, Arc<Object>)> {
        let prefix = format!("{}/", pod.namespace());
        let all = self.store.under(&budgets.place, &prefix);
        let covering = all.filter(|(_, budget)| covers(budget, pod.fields()));
        covering.map(|(key, budget)| (Arc::clone(key), Arc::clone(budget))).collect()
    }
}

/// Both versions of an eviction are known, as they are at a real API server.
fn check_type(eviction: &Draft) -> Outcome<()> {
    let (version, kind) = (text_at(eviction, &["apiVersion"]), text_at(eviction, &["kind"]));
    if matches!(kind, "" | "Eviction") && matches!(version, "" | "policy/v1" | "policy/v1beta1") {
        return Ok(());
    }
    let message = format!(
        "the API version in the data ({version}, Kind={kind}) does not match the expected API version (policy/v1, \
         Kind=Eviction)"
    );
    Err(bad_request(message))
}

/// Why a budget has no room.
fn why_none(budget: &Object) -> String {
    let name = budget.name();
    let count = |field: &str| object::at(budget.fields(), &["status", field]).and_then(Value::as_i64).unwrap_or(0);
    let conditions = object::at(budget.fields(), &["status", "conditions"]).and_then(Value::as_array);
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == "DisruptionAllowed");
    let text = |field: &str| found.and_then(|condition| condition[field].as_str()).unwrap_or_default();
    let refuses = text("status") == "False" && !text("message").is_empty();
    let (reason, message) = (text("reason"), text("message"));
    let closed = format!("The disruption budget {name} does not allow evicting pods currently");
    if refuses && reason == "SyncFailed" {
        return format!("{closed} because it failed sync: {message}");
    }
    let (wanted, healthy) = (count("desiredHealthy"), count("currentHealthy"));
    if healthy <= wanted {
        return format!("The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently");
    }
    if refuses { format!("{closed} ({reason}): {message}") } else { closed }
}

fn negative(budget: &str) -> Refusal {
    let why = "pdb disruptions allowed is negative";
    let message = format!("poddisruptionbudget.policy {} is forbidden: {why}", quote(budget));
    let mut refusal = unexplained(403, message);
    "Forbidden".clone_into(&mut refusal.reason);
    refusal.details.name = budget.to_owned();
    (refusal.details.group, refusal.details.kind) = ("policy".to_owned(), "poddisruptionbudget".to_owned());
    let detail = format!("The disruption budget {budget} does not allow evicting pods currently: {why}");
    refusal.details.causes = vec![cause("DisruptionBudget", &detail, "")];
    refusal
}

fn is_ready(pod: &Object) -> bool {
    let conditions = object::at(pod.fields(), &["status", "conditions"]).and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn covers(budget: &Object, pod: &Draft) -> bool {
    let selector = object::at(budget.fields(), &["spec", "selector"]).cloned().unwrap_or(Value::Null);
    // Without a selector it selects nothing, with an empty one everything.
    let Ok(Some(selector)) = serde_json::from_value::<Option<LabelSelector>>(selector) else { return false };
    Selector::try_from(&selector).is_ok_and(|selector| selector.matches(|key| object::label(pod, key)))
}

const SEVERAL: &str =
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
