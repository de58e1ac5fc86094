//! From a child to the object that controls it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::resource::{ResourceKey, ResourceType};

/// What counts of an owner reference here, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made by whoever keeps references in another form")]
pub struct Owner<'a> {
    /// `v1`, or `group/version`.
    pub api_version: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// The name.
    pub name: &'a str,
    /// The uid.
    pub uid: &'a str,
    /// Whether it is the one owner that controls the child.
    pub controller: bool,
}

impl<'a> From<&'a OwnerReference> for Owner<'a> {
    fn from(owner: &'a OwnerReference) -> Self {
        Self {
            api_version: &owner.api_version,
            kind: &owner.kind,
            name: &owner.name,
            uid: &owner.uid,
            controller: owner.controller == Some(true),
        }
    }
}

/// The object of type `primary` that controls a child, and the uid it must have, or it is another of the same name.
///
/// The group and kind of the reference decide, and not its version: the same object is served in several. The owner
/// of a namespaced type lives in the child's namespace; that of a cluster-scoped type may have children anywhere. A
/// reference that cannot be right gives `None`: a namespaced owner of a cluster-scoped child, no name, no uid. See
/// <https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/>.
///
/// ```
/// use cloudcoil_core::{KnownResource, Owner, owner_key};
/// use cloudcoil_core::k8s_openapi::api::apps::v1::ReplicaSet;
///
/// let owner = Owner { api_version: "apps/v1beta2", kind: "ReplicaSet", name: "web", uid: "u1", controller: true };
/// let (key, uid) = owner_key([owner], Some("shop"), &ReplicaSet::resource_type()).unwrap();
/// assert_eq!((key.to_string().as_str(), uid), ("shop/web", "u1"));
/// ```
pub fn owner_key<'a, O: Into<Owner<'a>>>(
    owners: impl IntoIterator<Item = O>,
    child_namespace: Option<&str>,
    primary: &ResourceType,
) -> Option<(ResourceKey, &'a str)> {
    let owner = owners.into_iter().map(Into::into).find(|owner| {
        owner.controller && owner.kind == primary.kind && group(owner.api_version) == Some(&primary.group)
    })?;
    let namespace = child_namespace.filter(|namespace| !namespace.is_empty());
    let namespace = if primary.is_namespaced() { Some(namespace?) } else { None };
    let key = ResourceKey::new(namespace, owner.name).ok()?;
    (!owner.uid.is_empty()).then_some((key, owner.uid))
}

/// The group of an `apiVersion`; `None` if it is not written as one.
fn group(api_version: &str) -> Option<&str> {
    match api_version.split_once('/') {
        None => Some("").filter(|_| !api_version.is_empty()),
        Some((_, version)) if version.is_empty() || version.contains('/') => None,
        Some((group, _)) => Some(group).filter(|group| !group.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::{KnownResource, Scope};
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::Namespace;

    const OWNER: Owner<'_> =
        Owner { api_version: "apps/v1", kind: "Deployment", name: "web", uid: "u1", controller: true };

    fn find<'a>(owners: &[Owner<'a>], namespace: Option<&str>, primary: &ResourceType) -> Option<(String, &'a str)> {
        owner_key(owners.iter().copied(), namespace, primary).map(|(key, uid)| (key.to_string(), uid))
    }

    #[test]
    fn only_the_controller_of_the_group_and_kind_counts_in_any_version() {
        let deployments = Deployment::resource_type();
        let expected = Some(("ns/web".to_owned(), "u1"));
        for (owner, found) in [
            (OWNER, true),
            (Owner { api_version: "apps/v1beta1", ..OWNER }, true),
            (Owner { controller: false, ..OWNER }, false),
            (Owner { kind: "ReplicaSet", ..OWNER }, false),
            (Owner { api_version: "v1", ..OWNER }, false),
            (Owner { api_version: "example.com/v1", ..OWNER }, false),
            (Owner { api_version: "apps/v1/x", ..OWNER }, false),
            (Owner { api_version: "apps/", ..OWNER }, false),
            (Owner { api_version: "apps", ..OWNER }, false),
            (Owner { name: "", ..OWNER }, false),
            (Owner { uid: "", ..OWNER }, false),
        ] {
            assert_eq!(find(&[owner], Some("ns"), &deployments), expected.clone().filter(|_| found), "{owner:?}");
        }
        let others = [Owner { kind: "Other", controller: false, uid: "u0", ..OWNER }, OWNER];
        assert_eq!(find(&others, Some("ns"), &deployments), expected);
    }

    #[test]
    fn the_owner_lives_where_its_scope_says() {
        assert_eq!(find(&[OWNER], None, &Deployment::resource_type()), None);
        assert_eq!(find(&[OWNER], Some(""), &Deployment::resource_type()), None);
        let owner = Owner { api_version: "v1", kind: "Namespace", name: "shop", ..OWNER };
        let cluster = Some(("shop".to_owned(), "u1"));
        assert_eq!(find(&[owner], Some("ns"), &Namespace::resource_type()), cluster);
        assert_eq!(find(&[owner], None, &Namespace::resource_type()), cluster);
        let misspelt = Owner { api_version: "/v1", ..owner };
        assert_eq!(find(&[misspelt], None, &Namespace::resource_type()), None);
    }

    #[test]
    fn references_of_an_object_are_taken_as_they_are() {
        let reference = OwnerReference {
            api_version: "example.com/v1".into(),
            kind: "Widget".into(),
            name: "w".into(),
            uid: "u".into(),
            controller: Some(true),
            block_owner_deletion: None,
        };
        let widgets = ResourceType::new("example.com", "v2", "Widget", "widgets", Scope::Cluster);
        assert_eq!(owner_key(&[reference], Some("ns"), &widgets).unwrap().0.to_string(), "w");
    }
}
