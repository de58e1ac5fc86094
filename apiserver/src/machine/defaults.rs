//! What the API server fills in when a client leaves it out.

use serde_json::{Map, Value, json};

use super::catalog::Resource;
use super::definitions;
use super::object::{self, Draft, child_mut, text_at};

/// Fills in what a client has left out of an object of a built-in kind.
pub(crate) fn apply(resource: &Resource, fields: &mut Draft) {
    if resource.is_custom() {
        return;
    }
    let spec = |fields: &mut Draft, defaults: &[(&str, Value)]| fill(child_mut(fields, "spec"), defaults);
    match (&*resource.of.group, &*resource.of.plural) {
        ("", "namespaces") => namespace(fields),
        ("", "pods") => pod(child_mut(fields, "spec"), true),
        ("", "podtemplates") => template(fields, "template"),
        ("", "secrets") => secret(fields),
        ("", "services") => service(child_mut(fields, "spec")),
        ("", "persistentvolumeclaims") => spec(fields, &[("volumeMode", json!("Filesystem"))]),
        ("", "persistentvolumes") => {
            let defaults = [("volumeMode", json!("Filesystem")), ("persistentVolumeReclaimPolicy", json!("Retain"))];
            spec(fields, &defaults);
            inside(child_mut(fields, "spec"), "hostPath", |path| fill(path, &[("type", json!(""))]));
        }
        ("", "nodes") => {
            let capacity = object::at(fields, &["status", "capacity"]).cloned();
            if let Some(capacity) = capacity {
                fill(child_mut(fields, "status"), &[("allocatable", capacity)]);
            }
        }
        ("", "endpoints") => each(fields, "subsets", |subset| each(subset, "ports", protocol)),
        ("", "replicationcontrollers") => replication_controller(fields),
        ("apps", plural) => app(plural, child_mut(fields, "spec")),
        ("batch", "jobs") => job(child_mut(fields, "spec")),
        ("batch", "cronjobs") => cron_job(child_mut(fields, "spec")),
        ("autoscaling", _) => autoscaler(child_mut(fields, "spec")),
        ("networking.k8s.io", "networkpolicies") => network_policy(child_mut(fields, "spec")),
        ("discovery.k8s.io", "endpointslices") => each(fields, "ports", |port| {
            protocol(port);
            fill(port, &[("name", json!(""))]);
        }),
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => binding(fields),
        ("storage.k8s.io", "storageclasses") => {
            fill(fields, &[("reclaimPolicy", json!("Delete")), ("volumeBindingMode", json!("Immediate"))]);
        }
        ("scheduling.k8s.io", "priorityclasses") => {
            fill(fields, &[("preemptionPolicy", json!("PreemptLowerPriority"))])
        }
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations") => webhooks(fields, true),
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations") => webhooks(fields, false),
        ("apiextensions.k8s.io", "customresourcedefinitions") => definitions::default_names(fields),
        _ => {}
    }
}

/// A namespace has its name for a label.
fn namespace(fields: &mut Draft) {
    let name = object::meta(fields, "name").to_owned();
    if !name.is_empty() {
        let labels = child_mut(object::metadata_mut(fields), "labels");
        labels.insert("kubernetes.io/metadata.name".to_owned(), Value::from(name));
    }
}

/// Sets what is not there.
fn fill(map: &mut Map<String, Value>, defaults: &[(&str, Value)]) {
    for (field, value) in defaults {
        let found = map.entry(*field).or_insert(Value::Null);
        if found.is_null() || found.as_str() == Some("") {
            found.clone_from(value);
        }
    }
}

/// Does something to each object in a list.
fn each(map: &mut Map<String, Value>, list: &str, mut with: impl FnMut(&mut Map<String, Value>)) {
    for element in map.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(element) = element.as_object_mut() {
            with(element);
        }
    }
}

/// Does something to the object in a field, if it is there.
fn inside(map: &mut Map<String, Value>, field: &str, with: impl FnOnce(&mut Map<String, Value>)) {
    if let Some(inner) = map.get_mut(field).and_then(Value::as_object_mut) {
        with(inner);
    }
}

fn protocol(port: &mut Map<String, Value>) {
    fill(port, &[("protocol", json!("TCP"))]);
}

fn template(parent: &mut Map<String, Value>, field: &str) {
    pod(child_mut(child_mut(parent, field), "spec"), false);
}

fn pod(spec: &mut Map<String, Value>, itself: bool) {
    fill(
        spec,
        &[
            ("restartPolicy", json!("Always")),
            ("terminationGracePeriodSeconds", json!(30)),
            ("dnsPolicy", json!("ClusterFirst")),
            ("securityContext", json!({})),
            ("schedulerName", json!("default-scheduler")),
        ],
    );
    if itself {
        fill(spec, &[("enableServiceLinks", json!(true))]);
    }
    // The old name of the field is kept in step with the new one.
    let account = text_at(spec, &["serviceAccountName"]).to_owned();
    if !account.is_empty() {
        fill(spec, &[("serviceAccount", json!(account))]);
    }
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        each(spec, list, |each| container(each, itself));
    }
    each(spec, "volumes", volume);
}

fn container(container: &mut Map<String, Value>, of_pod: bool) {
    let image = text_at(container, &["image"]);
    let tag = image.rsplit('/').next().and_then(|name| Some(name.split_once(':')?.1));
    let pinned = image.contains('@') || tag.is_some_and(|tag| tag != "latest");
    let pull = if pinned { "IfNotPresent" } else { "Always" };
    fill(
        container,
        &[
            ("terminationMessagePath", json!("/dev/termination-log")),
            ("terminationMessagePolicy", json!("File")),
            ("imagePullPolicy", json!(pull)),
        ],
    );
    each(container, "ports", protocol);
    each(container, "env", |env| inside(env, "valueFrom", field_reference));
    for field in ["livenessProbe", "readinessProbe", "startupProbe"] {
        inside(container, field, probe);
    }
    inside(container, "lifecycle", |lifecycle| {
        for field in ["postStart", "preStop"] {
            inside(lifecycle, field, |handler| inside(handler, "httpGet", http_get));
        }
    });
    if of_pod {
        inside(container, "resources", |resources| {
            let limits = object::at(resources, &["limits"]).and_then(Value::as_object).cloned().unwrap_or_default();
            for (name, limit) in limits {
                child_mut(resources, "requests").entry(name).or_insert(limit);
            }
        });
    }
}

fn field_reference(source: &mut Map<String, Value>) {
    inside(source, "fieldRef", |reference| fill(reference, &[("apiVersion", json!("v1"))]));
}

fn probe(probe: &mut Map<String, Value>) {
    let defaults = [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)];
    for (field, default) in defaults {
        fill(probe, &[(field, json!(default))]);
    }
    inside(probe, "httpGet", http_get);
    inside(probe, "grpc", |grpc| fill(grpc, &[("service", json!(""))]));
}

fn http_get(action: &mut Map<String, Value>) {
    fill(action, &[("path", json!("/")), ("scheme", json!("HTTP"))]);
}

fn volume(volume: &mut Map<String, Value>) {
    if volume.len() <= 1 {
        fill(volume, &[("emptyDir", json!({}))]);
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        inside(volume, source, |source| fill(source, &[("defaultMode", json!(420))]));
    }
    inside(volume, "downwardAPI", |source| each(source, "items", field_reference));
    inside(volume, "hostPath", |path| fill(path, &[("type", json!(""))]));
    inside(volume, "projected", |projected| {
        each(projected, "sources", |source| {
            inside(source, "serviceAccountToken", |token| fill(token, &[("expirationSeconds", json!(3600))]));
            inside(source, "downwardAPI", |source| each(source, "items", field_reference));
        });
    });
}

fn app(plural: &str, spec: &mut Map<String, Value>) {
    if plural == "controllerrevisions" {
        return;
    }
    template(spec, "template");
    if plural != "daemonsets" {
        fill(spec, &[("replicas", json!(1))]);
    }
    if plural != "replicasets" {
        fill(spec, &[("revisionHistoryLimit", json!(10))]);
    }
    match plural {
        "deployments" => {
            fill(spec, &[("progressDeadlineSeconds", json!(600))]);
            rolling(spec, "strategy", &[("maxUnavailable", json!("25%")), ("maxSurge", json!("25%"))]);
        }
        "daemonsets" => rolling(spec, "updateStrategy", &[("maxUnavailable", json!(1)), ("maxSurge", json!(0))]),
        "statefulsets" => {
            fill(spec, &[("podManagementPolicy", json!("OrderedReady"))]);
            rolling(spec, "updateStrategy", &[("partition", json!(0)), ("maxUnavailable", json!(1))]);
            let policy = child_mut(spec, "persistentVolumeClaimRetentionPolicy");
            fill(policy, &[("whenDeleted", json!("Retain")), ("whenScaled", json!("Retain"))]);
        }
        _ => {}
    }
}

fn rolling(spec: &mut Map<String, Value>, field: &str, defaults: &[(&str, Value)]) {
    let strategy = child_mut(spec, field);
    fill(strategy, &[("type", json!("RollingUpdate"))]);
    if strategy["type"] == "RollingUpdate" {
        fill(child_mut(strategy, "rollingUpdate"), defaults);
    }
}

fn replication_controller(fields: &mut Draft) {
    let spec = child_mut(fields, "spec");
    template(spec, "template");
    fill(spec, &[("replicas", json!(1))]);
    let Some(labels) = object::at(spec, &["template", "metadata", "labels"]).cloned() else { return };
    fill(spec, &[("selector", labels.clone())]);
    fill(object::metadata_mut(fields), &[("labels", labels)]);
}

fn job(spec: &mut Map<String, Value>) {
    template(spec, "template");
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        fill(spec, &[("completions", json!(1))]);
    }
    fill(
        spec,
        &[
            ("parallelism", json!(1)),
            ("backoffLimit", json!(6)),
            ("completionMode", json!("NonIndexed")),
            ("suspend", json!(false)),
            ("manualSelector", json!(false)),
            ("podReplacementPolicy", json!("TerminatingOrFailed")),
        ],
    );
}

fn cron_job(spec: &mut Map<String, Value>) {
    template(child_mut(child_mut(spec, "jobTemplate"), "spec"), "template");
    fill(
        spec,
        &[
            ("concurrencyPolicy", json!("Allow")),
            ("suspend", json!(false)),
            ("successfulJobsHistoryLimit", json!(3)),
            ("failedJobsHistoryLimit", json!(1)),
        ],
    );
}

fn autoscaler(spec: &mut Map<String, Value>) {
    let average = json!({"type": "Utilization", "averageUtilization": 80});
    let cpu = json!([{"type": "Resource", "resource": {"name": "cpu", "target": average}}]);
    fill(spec, &[("minReplicas", json!(1)), ("metrics", cpu)]);
}

/// A secret takes text too, and keeps it as bytes.
fn secret(fields: &mut Draft) {
    use base64::Engine;
    fill(fields, &[("type", json!("Opaque"))]);
    if let Some(Value::Object(texts)) = fields.remove("stringData") {
        let data = child_mut(fields, "data");
        for (key, text) in texts {
            let bytes = text.as_str().unwrap_or_default();
            data.insert(key, Value::from(base64::engine::general_purpose::STANDARD.encode(bytes)));
        }
    }
}

fn service(spec: &mut Map<String, Value>) {
    fill(spec, &[("type", json!("ClusterIP")), ("sessionAffinity", json!("None"))]);
    let kind = text_at(spec, &["type"]).to_owned();
    each(spec, "ports", |port| {
        protocol(port);
        let number = port.get("port").cloned().unwrap_or_else(|| json!(0));
        if port.get("targetPort").is_none_or(|target| *target == json!(0) || *target == json!("")) {
            port.insert("targetPort".to_owned(), number);
        }
    });
    if text_at(spec, &["sessionAffinity"]) == "None" {
        spec.remove("sessionAffinityConfig");
    } else if text_at(spec, &["sessionAffinity"]) == "ClientIP" {
        let config = child_mut(child_mut(spec, "sessionAffinityConfig"), "clientIP");
        fill(config, &[("timeoutSeconds", json!(10_800))]);
    }
    if kind != "ExternalName" {
        fill(spec, &[("internalTrafficPolicy", json!("Cluster"))]);
    }
    if matches!(&*kind, "NodePort" | "LoadBalancer") {
        fill(spec, &[("externalTrafficPolicy", json!("Cluster"))]);
    }
    if kind == "LoadBalancer" {
        fill(spec, &[("allocateLoadBalancerNodePorts", json!(true))]);
    }
}

fn network_policy(spec: &mut Map<String, Value>) {
    let types = if spec.contains_key("egress") { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
    fill(spec, &[("policyTypes", types)]);
    for direction in ["ingress", "egress"] {
        each(spec, direction, |rule| each(rule, "ports", protocol));
    }
}

fn binding(fields: &mut Draft) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    inside(fields, "roleRef", |role| fill(role, &[("apiGroup", json!(GROUP))]));
    each(fields, "subjects", |subject| {
        if matches!(text_at(subject, &["kind"]), "User" | "Group") {
            fill(subject, &[("apiGroup", json!(GROUP))]);
        }
    });
}

fn webhooks(fields: &mut Draft, mutating: bool) {
    each(fields, "webhooks", |webhook| {
        fill(
            webhook,
            &[
                ("failurePolicy", json!("Fail")),
                ("matchPolicy", json!("Equivalent")),
                ("namespaceSelector", json!({})),
                ("objectSelector", json!({})),
                ("timeoutSeconds", json!(10)),
            ],
        );
        if mutating {
            fill(webhook, &[("reinvocationPolicy", json!("Never"))]);
        }
        each(webhook, "rules", |rule| fill(rule, &[("scope", json!("*"))]));
        inside(webhook, "clientConfig", |config| {
            inside(config, "service", |service| fill(service, &[("port", json!(443))]));
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Kinds;
    use crate::machine::catalog::Catalog;

    fn defaulted(group: &str, plural: &str, body: &Value) -> Value {
        let catalog = Catalog::new(&Kinds::builtin());
        let mut fields = body.as_object().unwrap().clone();
        apply(catalog.resource(group, "v1", plural).unwrap(), &mut fields);
        Value::Object(fields)
    }

    #[test]
    fn what_a_client_says_stays() {
        let body = json!({"spec": {"replicas": 0, "strategy": {"type": "Recreate"}, "revisionHistoryLimit": 1,
            "template": {"spec": {"restartPolicy": "Always", "dnsPolicy": "Default"}}}});
        let found = defaulted("apps", "deployments", &body);
        assert_eq!(found["spec"]["replicas"], 0);
        assert_eq!(found["spec"]["strategy"], json!({"type": "Recreate"}));
        assert_eq!(found["spec"]["template"]["spec"]["dnsPolicy"], "Default");
    }

    #[test]
    fn defaults_are_stable() {
        for (group, plural, body) in [
            (
                "apps",
                "deployments",
                json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "a:1"}]}}}}),
            ),
            ("", "secrets", json!({"stringData": {"a": "b"}, "data": {"c": "ZA=="}})),
            ("", "services", json!({"spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}})),
            ("batch", "jobs", json!({"spec": {"parallelism": 2}})),
        ] {
            let once = defaulted(group, plural, &body);
            assert_eq!(defaulted(group, plural, &once), once, "{plural}");
        }
    }

    #[test]
    fn an_image_is_pulled_by_its_tag() {
        for (image, policy) in [
            ("a", "Always"),
            ("a:latest", "Always"),
            ("r:5000/a", "Always"),
            ("r:5000/a:1", "IfNotPresent"),
            ("a@sha256:0", "IfNotPresent"),
        ] {
            let pod = defaulted("", "pods", &json!({"spec": {"containers": [{"image": image}]}}));
            assert_eq!(pod["spec"]["containers"][0]["imagePullPolicy"], policy, "{image}");
        }
    }
}
