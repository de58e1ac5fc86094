//! What a real API server's admission plugins give a new pod: its priority, and tolerations for nodes that fail.

use serde_json::{Map, Value, json};

use super::catalog::Resource;
use super::cluster::Cluster;
use super::errors::{Outcome, forbidden};
use super::object::{self, Draft, child_mut, meta, text_at};

impl Cluster {
    /// Completes a new pod: <https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/>.
    pub(crate) fn admit_pod(&self, resource: &Resource, fields: &mut Draft) -> Outcome<()> {
        if !resource.is("", "pods") || !fields.get("spec").is_some_and(Value::is_object) {
            return Ok(());
        }
        self.set_priority(resource, fields)?;
        tolerate(child_mut(fields, "spec"));
        Ok(())
    }

    fn set_priority(&self, resource: &Resource, fields: &mut Draft) -> Outcome<()> {
        let name = text_at(fields, &["spec", "priorityClassName"]).to_owned();
        let (class, value, policy) = match &*name {
            "" => self.default_priority(),
            "system-cluster-critical" => (name, 2_000_000_000, PREEMPT.to_owned()),
            "system-node-critical" => (name, 2_000_001_000, PREEMPT.to_owned()),
            _ => match self.store.get(CLASSES, &name) {
                Some(class) => priority(class.fields()),
                None => {
                    let why = format!("no PriorityClass with name {name} was found");
                    return Err(forbidden(resource, meta(fields, "name"), &why));
                }
            },
        };
        let given = object::at(fields, &["spec", "priority"]).and_then(Value::as_i64);
        if let Some(given) = given.filter(|given| *given != value) {
            let why = format!(
                "the integer value of priority ({given}) must not be provided in pod spec; priority admission \
                 controller computed {value} from the given PriorityClass name"
            );
            return Err(forbidden(resource, meta(fields, "name"), &why));
        }
        let spec = child_mut(fields, "spec");
        if !class.is_empty() {
            spec.insert("priorityClassName".to_owned(), Value::from(class));
        }
        spec.insert("priority".to_owned(), json!(value));
        spec.entry("preemptionPolicy").or_insert(Value::from(policy));
        Ok(())
    }

    /// The class, priority and policy of pods that name none.
    fn default_priority(&self) -> (String, i64, String) {
        let classes = self.store.all(CLASSES).map(|(_, class)| class.fields());
        let default = classes.filter(|class| class.get("globalDefault") == Some(&Value::Bool(true)));
        default
            .map(priority)
            .min_by_key(|(_, value, _)| *value)
            .unwrap_or_else(|| (String::new(), 0, PREEMPT.to_owned()))
    }
}

/// Gives a pod that is replaced by what somebody wrote the same again: the priority that it has, and tolerations.
pub(crate) fn admit_pod_change(resource: &Resource, old: &Draft, new: &mut Draft) {
    if !resource.is("", "pods") || !new.get("spec").is_some_and(Value::is_object) {
        return;
    }
    let spec = child_mut(new, "spec");
    for field in ["priority", "preemptionPolicy"] {
        if let Some(value) = object::at(old, &["spec", field]).filter(|_| !spec.contains_key(field)) {
            spec.insert(field.to_owned(), value.clone());
        }
    }
    tolerate(spec);
}

fn priority(class: &Draft) -> (String, i64, String) {
    let value = class.get("value").and_then(Value::as_i64).unwrap_or(0);
    let policy = match text_at(class, &["preemptionPolicy"]) {
        "" => PREEMPT,
        policy => policy,
    };
    (meta(class, "name").to_owned(), value, policy.to_owned())
}

/// A pod stays for five minutes on a node that is not ready or not reachable, unless it says otherwise.
fn tolerate(spec: &mut Map<String, Value>) {
    let list = spec.entry("tolerations").or_insert_with(|| json!([]));
    if list.is_null() {
        *list = json!([]);
    }
    let Some(list) = list.as_array_mut() else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerates = |toleration: &Value| {
            let text = |field: &str| toleration[field].as_str().unwrap_or_default();
            matches!(text("key"), "" if text("operator") == "Exists") || text("key") == key
        };
        let lasts = |toleration: &&Value| matches!(toleration["effect"].as_str(), None | Some("" | "NoExecute"));
        if !list.iter().filter(lasts).any(tolerates) {
            list.push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
        }
    }
}

const CLASSES: &str = "scheduling.k8s.io/priorityclasses";
const PREEMPT: &str = "PreemptLowerPriority";
