//! Which objects go before which.

use super::ManifestObject;

/// Puts objects in the order in which a cluster takes them: namespaces, custom resource definitions, what others are
/// measured or named by, accounts and their rights, configuration, workloads, custom resources, and last what stands in
/// the way of requests. Objects of one rank stay in their order.
///
/// ```
/// use cloudcoil_core::manifest;
///
/// let text = b"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}\n--- {apiVersion: v1, kind: Namespace, metadata: {name: b}}";
/// let mut objects = manifest::parse("all.yaml", text)?;
/// manifest::installation_order(&mut objects);
/// assert_eq!(objects[0].object.kind(), "Namespace");
/// # Ok::<(), cloudcoil_core::manifest::ManifestError>(())
/// ```
pub fn installation_order(objects: &mut [ManifestObject]) {
    objects.sort_by_key(rank);
}

/// Puts objects in the order in which they are deleted: the [`installation_order`] from its end.
pub fn deletion_order(objects: &mut [ManifestObject]) {
    installation_order(objects);
    objects.reverse();
}

fn rank(object: &ManifestObject) -> usize {
    let object = &object.object;
    let is_listed = |(group, kinds): &(&str, &[&str])| {
        *group == object.group() && (kinds.is_empty() || kinds.contains(&object.kind()))
    };
    let unlisted = if is_built_in(object.group()) { WORKLOADS } else { CUSTOM };
    RANKS.iter().position(|rank| rank.iter().any(is_listed)).unwrap_or(unlisted)
}

/// Groups of Kubernetes' own have no dot, or end so.
fn is_built_in(group: &str) -> bool {
    !group.contains('.') || group.ends_with(".k8s.io")
}

type Rank = &'static [(&'static str, &'static [&'static str])];

/// The ranks; a group without kinds means all of its kinds.
const RANKS: &[Rank] = &[
    &[("", &["Namespace"])],
    &[("apiextensions.k8s.io", &["CustomResourceDefinition"])],
    &[
        ("scheduling.k8s.io", &["PriorityClass"]),
        ("storage.k8s.io", &["StorageClass", "CSIDriver", "VolumeAttributesClass"]),
        ("node.k8s.io", &["RuntimeClass"]),
        ("networking.k8s.io", &["IngressClass", "NetworkPolicy"]),
        ("resource.k8s.io", &["DeviceClass"]),
        ("flowcontrol.apiserver.k8s.io", &[]),
        ("", &["ResourceQuota", "LimitRange"]),
        ("policy", &["PodDisruptionBudget"]),
    ],
    &[("", &["ServiceAccount"])],
    &[("rbac.authorization.k8s.io", &["ClusterRole", "Role"])],
    &[("rbac.authorization.k8s.io", &["ClusterRoleBinding", "RoleBinding"])],
    &[("", &["ConfigMap", "Secret", "PersistentVolume"])],
    &[("", &["PersistentVolumeClaim"])],
    &[("", &["Service", "Endpoints"]), ("discovery.k8s.io", &["EndpointSlice"])],
    WORKLOADS_RANK,
    &[("autoscaling", &[]), ("networking.k8s.io", &[]), ("gateway.networking.k8s.io", &[])],
    // Custom resources, by their groups.
    &[],
    &[("apiregistration.k8s.io", &["APIService"])],
    &[("admissionregistration.k8s.io", &[])],
];

const WORKLOADS_RANK: Rank = &[("", &["Pod", "PodTemplate", "ReplicationController"]), ("apps", &[]), ("batch", &[])];
const WORKLOADS: usize = 9;
const CUSTOM: usize = 11;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ranks_without_a_list_are_where_they_are_said_to_be() {
        assert!(RANKS[CUSTOM].is_empty());
        assert_eq!(RANKS[WORKLOADS], WORKLOADS_RANK);
    }
}
