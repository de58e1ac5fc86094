//! Synthetic Pods of about 7.7 KB, as an API server writes them, managed fields included.

use std::fmt::Write as _;

/// How many Pods the watch and the list hold at the most.
pub const PODS: usize = 10_000;

/// The Pod of that number, in its `revision`th version.
pub fn pod(index: usize, revision: u64) -> String {
    let (namespace, node) = (index % 50, index % 200);
    let mut json = String::with_capacity(8192);
    let _ = write!(
        json,
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"web-{index:06}-x7k2p","generateName":"web-{index:06}-","namespace":"team-{namespace}","uid":"7d3c2a10-5b4e-4c1d-9f00-{index:012}","resourceVersion":"{revision}","generation":1,"creationTimestamp":"2026-01-02T03:04:05Z","labels":{{"app":"web","app.kubernetes.io/instance":"web-{index:06}","app.kubernetes.io/managed-by":"deployer","pod-template-hash":"6d4cf56db6","tier":"tier-{tier}"}},"annotations":{{"checksum/config":"{index:064x}","prometheus.io/scrape":"true","prometheus.io/port":"9102"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-{index:06}","uid":"91b5cb5a-0000-4f7e-8e00-{index:012}","controller":true,"blockOwnerDeletion":true}}],"managedFields":[{MANAGED_SPEC},{MANAGED_STATUS}]}},"#,
        tier = index % 12,
    );
    json.push_str(r#""spec":{"volumes":["#);
    for volume in 0..4 {
        let _ = write!(
            json,
            r#"{{"name":"config-{volume}","configMap":{{"name":"web-config-{volume}","defaultMode":420}}}},"#
        );
    }
    let _ = write!(json, r#"{{"name":"kube-api-access-{index:05}","projected":{PROJECTED}}}],"containers":["#);
    for container in 0..2 {
        let comma = if container == 0 { "" } else { "," };
        let _ = write!(
            json,
            r#"{comma}{{"name":"c{container}","image":"images.example/team-{namespace}/web:{container}.14.2","args":["--listen=:8080","--log-level=info","--upstream=http://127.0.0.1:9000"],"ports":[{{"name":"http","containerPort":8080,"protocol":"TCP"}},{{"name":"metrics","containerPort":9102,"protocol":"TCP"}}],{CONTAINER}}}"#
        );
    }
    let _ = write!(
        json,
        r#"],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"web","serviceAccount":"web","nodeName":"node-{node}.example","securityContext":{{"runAsUser":1000,"fsGroup":2000}},"schedulerName":"default-scheduler","tolerations":[{{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}},{{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}}],"priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"}},"status":{{"phase":"Running","conditions":[{CONDITIONS}],"hostIP":"10.0.{namespace}.1","podIP":"10.1.{namespace}.{host}","podIPs":[{{"ip":"10.1.{namespace}.{host}"}}],"startTime":"2026-01-02T03:04:05Z","containerStatuses":[{STATUS_0},{STATUS_1}],"qosClass":"Burstable"}}}}"#,
        host = index % 250,
    );
    json
}

/// One line of a watch.
pub fn event(kind: &str, object: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

/// A watch of `count` events: the first half adds Pods, the second changes them, every hundredth is a bookmark.
pub fn watch(count: usize) -> Vec<u8> {
    let mut stream = Vec::with_capacity(count * 8192);
    for n in 0..count {
        let revision = 1000 + n as u64;
        let line = if n % 100 == 99 {
            event(
                "BOOKMARK",
                &format!(
                    r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"resourceVersion":"{revision}","creationTimestamp":null}},"spec":{{"containers":null}},"status":{{}}}}"#
                ),
            )
        } else if n < count / 2 {
            event("ADDED", &pod(n, revision))
        } else {
            event("MODIFIED", &pod(n - count / 2, revision))
        };
        stream.extend_from_slice(line.as_bytes());
    }
    stream
}

/// The body of a list of the first `count` Pods.
pub fn list(count: usize) -> String {
    let pods: Vec<String> = (0..count).map(|index| pod(index, 1000 + index as u64)).collect();
    format!(
        r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"20000"}},"items":[{}]}}"#,
        pods.join(",")
    )
}

const MANAGED_SPEC: &str = r#"{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:checksum/config":{},"f:prometheus.io/port":{},"f:prometheus.io/scrape":{}},"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:app.kubernetes.io/instance":{},"f:app.kubernetes.io/managed-by":{},"f:pod-template-hash":{},"f:tier":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"91b5cb5a-0000-4f7e-8e00-000000000000\"}":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"c0\"}":{".":{},"f:args":{},"f:env":{},"f:image":{},"f:name":{},"f:ports":{},"f:resources":{}},"k:{\"name\":\"c1\"}":{".":{},"f:args":{},"f:image":{},"f:name":{}}},"f:dnsPolicy":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:volumes":{}}}}"#;
const MANAGED_STATUS: &str = r#"{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"2026-01-02T03:05:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:conditions":{"k:{\"type\":\"ContainersReady\"}":{".":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Initialized\"}":{".":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}},"f:containerStatuses":{},"f:hostIP":{},"f:phase":{},"f:podIP":{},"f:podIPs":{},"f:startTime":{}}},"subresource":"status"}"#;
const PROJECTED: &str = r#"{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},{"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}],"defaultMode":420}"#;
const CONTAINER: &str = r#""env":[{"name":"POD_NAME","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}},{"name":"POD_NAMESPACE","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}},{"name":"DATABASE_URL","valueFrom":{"secretKeyRef":{"name":"database","key":"url"}}},{"name":"MODE","value":"production"}],"resources":{"limits":{"cpu":"2","memory":"1Gi"},"requests":{"cpu":"250m","memory":"256Mi"}},"volumeMounts":[{"name":"config-0","mountPath":"/etc/web"},{"name":"config-1","mountPath":"/etc/web/tls","readOnly":true},{"name":"config-2","mountPath":"/etc/web/extra"}],"livenessProbe":{"httpGet":{"path":"/healthz","port":"http","scheme":"HTTP"},"initialDelaySeconds":10,"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},"readinessProbe":{"httpGet":{"path":"/readyz","port":"http","scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":5,"successThreshold":1,"failureThreshold":3},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent","securityContext":{"capabilities":{"drop":["ALL"]},"runAsNonRoot":true,"readOnlyRootFilesystem":true,"allowPrivilegeEscalation":false}"#;
const CONDITIONS: &str = r#"{"type":"Initialized","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-01-02T03:04:05Z"},{"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-01-02T03:04:15Z"},{"type":"ContainersReady","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-01-02T03:04:15Z"},{"type":"PodScheduled","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-01-02T03:04:05Z"}"#;
const STATUS_0: &str = r#"{"name":"c0","state":{"running":{"startedAt":"2026-01-02T03:04:10Z"}},"lastState":{},"ready":true,"restartCount":0,"image":"images.example/web:0.14.2","imageID":"images.example/web@sha256:4bf7fe7a4bd6b7f3d3a1c4f8a0f4f7fbc4b44b6f4e9c4e1a0d5c5e9a4b8a1c2d","containerID":"containerd://1bf7fe7a4bd6b7f3d3a1c4f8a0f4f7fbc4b44b6f4e9c4e1a0d5c5e9a4b8a1c2d","started":true}"#;
const STATUS_1: &str = r#"{"name":"c1","state":{"running":{"startedAt":"2026-01-02T03:04:11Z"}},"lastState":{"terminated":{"exitCode":1,"reason":"Error","startedAt":"2026-01-02T03:04:06Z","finishedAt":"2026-01-02T03:04:09Z"}},"ready":true,"restartCount":1,"image":"images.example/web:1.14.2","imageID":"images.example/web@sha256:4bf7fe7a4bd6b7f3d3a1c4f8a0f4f7fbc4b44b6f4e9c4e1a0d5c5e9a4b8a1c2d","containerID":"containerd://2bf7fe7a4bd6b7f3d3a1c4f8a0f4f7fbc4b44b6f4e9c4e1a0d5c5e9a4b8a1c2d","started":true}"#;

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Pod;

    #[test]
    fn pods_are_valid_and_of_the_stated_size() {
        for index in [0, 1, PODS - 1] {
            let json = pod(index, 5);
            assert!((7000..8200).contains(&json.len()), "{}", json.len());
            serde_json::from_str::<Pod>(&json).unwrap();
        }
    }
}
