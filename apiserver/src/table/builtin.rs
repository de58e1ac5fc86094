//! Which kind is printed how.

use std::cmp::Ordering;

use serde_json::Value;

use super::column::Column;
use super::node::Node;
use super::{Printing, admission, autoscaling, cluster, network, pod, resource, storage, workload};

/// How a built-in kind is printed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Builtin {
    pub(super) columns: &'static [Column],
    pub(super) cells: fn(Node<'_>, &Printing<'_>) -> Vec<Value>,
    /// How lists are ordered, when not by name.
    pub(super) order: Option<fn(Node<'_>, Node<'_>) -> Ordering>,
    /// The condition of a row whose object is done.
    pub(super) completion: Option<fn(Node<'_>) -> Option<Value>>,
}

pub(super) fn printer(group: &str, kind: &str) -> Builtin {
    let (columns, cells) = columns_and_cells(group, kind);
    let mut builtin = Builtin { columns, cells, order: None, completion: None };
    match (group, kind) {
        ("", "Pod") => builtin.completion = Some(pod::completion),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => builtin.order = Some(admission::by_precedence),
        _ => {}
    }
    builtin
}

type ColumnsAndCells = (&'static [Column], fn(Node<'_>, &Printing<'_>) -> Vec<Value>);

fn columns_and_cells(group: &str, kind: &str) -> ColumnsAndCells {
    let group = group.strip_suffix(".k8s.io").unwrap_or(group);
    let found = match group {
        "" => core(kind),
        "apps" | "batch" | "autoscaling" | "policy" | "scheduling" | "node" | "coordination" => workloads(kind),
        "networking" | "discovery" => networks(kind),
        "storage" | "storagemigration" => storages(kind),
        "events" if kind == "Event" => Some((cluster::EVENTS, cluster::event as _)),
        "resource" => devices(kind),
        _ => apis(kind),
    };
    found.unwrap_or((workload::SERVICE_ACCOUNTS, workload::name_and_age))
}

fn core(kind: &str) -> Option<ColumnsAndCells> {
    Some(match kind {
        "Pod" => (pod::PODS, pod::pod),
        "PodTemplate" => (workload::POD_TEMPLATES, workload::pod_template),
        "ReplicationController" => (workload::REPLICA_SETS, workload::replication_controller),
        "Service" => (network::SERVICES, network::service),
        "Endpoints" => (network::ENDPOINTS, network::endpoints),
        "Namespace" => (cluster::NAMESPACES, cluster::namespace),
        "Node" => (cluster::NODES, cluster::node),
        "Event" => (cluster::EVENTS, cluster::event),
        "ConfigMap" => (cluster::CONFIG_MAPS, cluster::config_map),
        "Secret" => (cluster::SECRETS, cluster::secret),
        "ResourceQuota" => (cluster::QUOTAS, cluster::quota),
        "LimitRange" => (cluster::NAMES_AND_TIMES, cluster::name_and_time),
        "ComponentStatus" => (cluster::COMPONENT_STATUSES, cluster::component_status),
        "PersistentVolume" => (storage::VOLUMES, storage::volume),
        "PersistentVolumeClaim" => (storage::CLAIMS, storage::claim),
        _ => return None,
    })
}

fn workloads(kind: &str) -> Option<ColumnsAndCells> {
    Some(match kind {
        "Deployment" => (workload::DEPLOYMENTS, workload::deployment),
        "ReplicaSet" => (workload::REPLICA_SETS, workload::replica_set),
        "StatefulSet" => (workload::STATEFUL_SETS, workload::stateful_set),
        "DaemonSet" => (workload::DAEMON_SETS, workload::daemon_set),
        "ControllerRevision" => (workload::CONTROLLER_REVISIONS, workload::controller_revision),
        "Job" => (workload::JOBS, workload::job),
        "CronJob" => (workload::CRON_JOBS, workload::cron_job),
        "Scale" => (workload::SCALES, workload::scale),
        "HorizontalPodAutoscaler" => (autoscaling::AUTOSCALERS, autoscaling::autoscaler),
        "PodDisruptionBudget" => (workload::DISRUPTION_BUDGETS, workload::disruption_budget),
        "PriorityClass" => (workload::PRIORITY_CLASSES, workload::priority_class),
        "RuntimeClass" => (workload::RUNTIME_CLASSES, workload::runtime_class),
        "Lease" => (workload::LEASES, workload::lease),
        _ => return None,
    })
}

fn networks(kind: &str) -> Option<ColumnsAndCells> {
    Some(match kind {
        "Ingress" => (network::INGRESSES, network::ingress),
        "IngressClass" => (network::INGRESS_CLASSES, network::ingress_class),
        "NetworkPolicy" => (network::NETWORK_POLICIES, network::network_policy),
        "ServiceCIDR" => (network::SERVICE_CIDRS, network::service_cidr),
        "IPAddress" => (network::IP_ADDRESSES, network::ip_address),
        "EndpointSlice" => (network::ENDPOINT_SLICES, network::endpoint_slice),
        _ => return None,
    })
}

fn storages(kind: &str) -> Option<ColumnsAndCells> {
    Some(match kind {
        "StorageClass" => (storage::CLASSES, storage::storage_class),
        "VolumeAttributesClass" => (storage::ATTRIBUTES_CLASSES, storage::attributes_class),
        "VolumeAttachment" => (storage::ATTACHMENTS, storage::attachment),
        "CSINode" => (storage::CSI_NODES, storage::csi_node),
        "CSIDriver" => (storage::CSI_DRIVERS, storage::csi_driver),
        "CSIStorageCapacity" => (cluster::NAMES_AND_TIMES, cluster::name_and_time),
        "StorageVersionMigration" => (storage::MIGRATIONS, storage::migration),
        _ => return None,
    })
}

fn devices(kind: &str) -> Option<ColumnsAndCells> {
    Some(match kind {
        "ResourceClaim" => (resource::CLAIMS, resource::claim),
        "ResourceSlice" => (resource::SLICES, resource::slice),
        "DeviceTaintRule" => (resource::TAINT_RULES, resource::taint_rule),
        _ => return None,
    })
}

fn apis(kind: &str) -> Option<ColumnsAndCells> {
    Some(match kind {
        "RoleBinding" | "ClusterRoleBinding" => (admission::ROLE_BINDINGS, admission::role_binding),
        "Role" | "ClusterRole" => (cluster::NAMES_AND_TIMES, cluster::name_and_time),
        "CertificateSigningRequest" => (admission::SIGNING_REQUESTS, admission::signing_request),
        "ClusterTrustBundle" => (admission::TRUST_BUNDLES, admission::trust_bundle),
        "PodCertificateRequest" => (admission::POD_CERTIFICATES, admission::pod_certificate),
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => (admission::WEBHOOKS, admission::webhook),
        "ValidatingAdmissionPolicy" => (admission::VALIDATING_POLICIES, admission::validating_policy),
        "MutatingAdmissionPolicy" => (admission::MUTATING_POLICIES, admission::mutating_policy),
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => {
            (admission::POLICY_BINDINGS, admission::policy_binding)
        }
        "FlowSchema" => (admission::FLOW_SCHEMAS, admission::flow_schema),
        "PriorityLevelConfiguration" => (admission::PRIORITY_LEVELS, admission::priority_level),
        "CustomResourceDefinition" => (admission::DEFINITIONS, admission::definition),
        "APIService" => (admission::API_SERVICES, admission::api_service),
        _ => return None,
    })
}
