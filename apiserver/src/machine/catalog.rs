//! What is served: the built-in resources and those of custom resource definitions.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use cloudcoil_core::{ResourceType, Scope};

use super::store::Place;
use crate::kinds::{self, Kinds};
use crate::structural::Schema;
use crate::table::PrinterColumn;

type Text = Cow<'static, str>;

/// One resource in one version.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Resource {
    pub(crate) of: ResourceType,
    pub(crate) singular: Text,
    pub(crate) list_kind: Text,
    pub(crate) verbs: Vec<Text>,
    pub(crate) short_names: Vec<Text>,
    pub(crate) categories: Vec<Text>,
    pub(crate) hash: Text,
    pub(crate) subresources: Vec<Subresource>,
    /// Where its objects are kept, which all versions of it share.
    pub(crate) place: Place,
    /// What its definition says, if it is a custom resource.
    pub(crate) custom: Option<Custom>,
}

/// A subresource of a [`Resource`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Subresource {
    pub(crate) name: Text,
    pub(crate) group: Text,
    pub(crate) version: Text,
    pub(crate) kind: Text,
    pub(crate) verbs: Vec<Text>,
}

/// What a definition says of a custom resource in one version.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Custom {
    /// The name of the definition.
    pub(crate) definition: Text,
    /// What its objects are like.
    pub(crate) schema: Arc<Schema>,
    /// The columns that tables have besides the name.
    pub(crate) columns: Vec<PrinterColumn>,
    /// The fields besides name and namespace that a field selector may name.
    pub(crate) selectable: Vec<Text>,
    /// The paths of the scale subresource.
    pub(crate) scale: Option<ScalePaths>,
    /// Whether the definition is being deleted, so that nothing more may be created.
    pub(crate) terminating: bool,
}

/// Where a custom resource keeps what its scale subresource shows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ScalePaths {
    pub(crate) spec: Text,
    pub(crate) status: Text,
    pub(crate) selector: Option<Text>,
}

impl Resource {
    /// As errors name it: `deployments.apps`, or `pods` for the core group.
    pub(crate) fn qualified(&self) -> String {
        self.of.to_string()
    }

    /// As errors name its kind: `Deployment.apps`, or `Pod` for the core group.
    pub(crate) fn qualified_kind(&self) -> String {
        let ResourceType { group, kind, .. } = &self.of;
        if group.is_empty() { kind.to_string() } else { format!("{kind}.{group}") }
    }

    pub(crate) fn is_namespaced(&self) -> bool {
        self.of.is_namespaced()
    }

    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        self.of.group == group && self.of.plural == plural
    }

    pub(crate) fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|allowed| allowed == verb)
    }

    pub(crate) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }

    pub(crate) const fn is_custom(&self) -> bool {
        self.custom.is_some()
    }
}

/// All that is served, in the order of discovery.
#[derive(Clone, Debug)]
pub(crate) struct Catalog {
    groups: Vec<Group>,
    resources: BTreeMap<GroupVersion, BTreeMap<Text, Arc<Resource>>>,
    builtin_groups: usize,
}

/// A group and its versions, the preferred one first.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    pub(crate) name: Text,
    pub(crate) versions: Vec<Text>,
}

type GroupVersion = (Text, Text);

impl Catalog {
    /// The built-in resources.
    pub(crate) fn new(kinds: &Kinds) -> Self {
        let mut resources: BTreeMap<GroupVersion, BTreeMap<Text, Arc<Resource>>> = BTreeMap::new();
        for resource in kinds.resources() {
            let group_version = (resource.group.into(), resource.version.into());
            let served = Arc::new(builtin(resource));
            resources.entry(group_version).or_default().insert(resource.plural.into(), served);
        }
        let text = |group: &kinds::Group| Group {
            name: group.name.into(),
            versions: group.versions.iter().map(|version| Text::from(*version)).collect(),
        };
        let groups: Vec<_> = kinds.groups().iter().map(text).collect();
        Self { builtin_groups: groups.len(), groups, resources }
    }

    /// The groups in the order of discovery, the core group first.
    pub(crate) fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Whether a group is of the built-in ones.
    pub(crate) fn is_builtin(&self, group: &str) -> bool {
        self.groups[..self.builtin_groups].iter().any(|known| known.name == group)
    }

    pub(crate) fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// The resources of a group and version by name; `None` when it is not served.
    pub(crate) fn version(&self, group: &str, version: &str) -> Option<&BTreeMap<Text, Arc<Resource>>> {
        self.resources.get(&(group.to_owned().into(), version.to_owned().into()))
    }

    pub(crate) fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.version(group, version)?.get(plural)
    }

    /// The resource of a kind, if it is served in that group and version.
    pub(crate) fn kind(&self, group: &str, version: &str, kind: &str) -> Option<&Arc<Resource>> {
        self.version(group, version)?.values().find(|resource| resource.of.kind == kind)
    }

    /// Every resource in every version.
    pub(crate) fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values().flat_map(BTreeMap::values)
    }

    /// A resource whose objects are kept at `place`, in the version that comes first.
    pub(crate) fn at(&self, place: &str) -> Option<&Arc<Resource>> {
        self.resources().find(|resource| &*resource.place == place)
    }

    /// Takes everything that `definition` defined out, and puts `resources` in its place.
    ///
    /// `versions` orders the versions of their group.
    pub(crate) fn define(&mut self, definition: &str, resources: Vec<Resource>) {
        for resources in self.resources.values_mut() {
            resources
                .retain(|_, resource| resource.custom.as_ref().is_none_or(|custom| custom.definition != definition));
        }
        for resource in resources {
            let group_version = (resource.of.group.clone(), resource.of.version.clone());
            let plural = resource.of.plural.clone();
            self.resources.entry(group_version).or_default().insert(plural, Arc::new(resource));
        }
        self.resources.retain(|_, resources| !resources.is_empty());
        self.regroup();
    }

    /// The groups anew: the built-in ones as they are, then those of definitions by name.
    fn regroup(&mut self) {
        self.groups.truncate(self.builtin_groups);
        let mut added: Vec<Group> = Vec::new();
        for (group, version) in self.resources.keys() {
            if self.groups.iter().any(|known| known.name == *group) {
                continue;
            }
            match added.last_mut().filter(|last| last.name == *group) {
                Some(last) => last.versions.push(version.clone()),
                None => added.push(Group { name: group.clone(), versions: vec![version.clone()] }),
            }
        }
        for group in &mut added {
            group.versions.sort_by_key(|version| std::cmp::Reverse(version_rank(version)));
        }
        self.groups.extend(added);
    }
}

/// How Kubernetes orders versions: `v2` before `v1`, those before `v1beta1`, that before `v1alpha1`, then others by name.
fn version_rank(version: &str) -> (u8, u64, u64, std::cmp::Reverse<String>) {
    let other = (0, 0, 0, std::cmp::Reverse(version.to_owned()));
    let Some(rest) = version.strip_prefix('v') else { return other };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let Ok(major) = rest[..digits].parse() else { return other };
    let named = std::cmp::Reverse(String::new());
    let (stage, minor) = match &rest[digits..] {
        "" => return (3, major, 0, named),
        stage if stage.starts_with("beta") => (2, &stage[4..]),
        stage if stage.starts_with("alpha") => (1, &stage[5..]),
        _ => return other,
    };
    minor.parse().map_or(other, |minor| (stage, major, minor, named))
}

/// A built-in resource as it is served.
fn builtin(resource: &kinds::Resource) -> Resource {
    let scope = if resource.namespaced { Scope::Namespaced } else { Scope::Cluster };
    let texts = |list: &[&'static str]| list.iter().map(|text| Text::from(*text)).collect();
    Resource {
        of: ResourceType::new(resource.group, resource.version, resource.kind, resource.plural, scope),
        singular: resource.singular.into(),
        list_kind: format!("{}List", resource.kind).into(),
        verbs: texts(&resource.verbs),
        short_names: texts(&resource.short_names),
        categories: texts(&resource.categories),
        hash: resource.storage_version_hash.unwrap_or_default().into(),
        subresources: resource
            .subresources
            .iter()
            .map(|sub| Subresource {
                name: sub.name.into(),
                group: sub.group.into(),
                version: sub.version.into(),
                kind: sub.kind.into(),
                verbs: texts(&sub.verbs),
            })
            .collect(),
        place: place(resource.group, resource.plural),
        custom: None,
    }
}

/// Where the objects of a resource are kept.
pub(crate) fn place(group: &str, plural: &str) -> Place {
    // Events are served in two groups, and are the same objects in both.
    let group = if (group, plural) == ("events.k8s.io", "events") { "" } else { group };
    format!("{group}/{plural}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_kubernetes_orders_them() {
        let mut versions = ["foo10", "v1alpha1", "v10", "v1beta1", "foo1", "v2", "v1beta2", "v1", "v11alpha2"];
        versions.sort_by_key(|version| std::cmp::Reverse(version_rank(version)));
        assert_eq!(versions, ["v10", "v2", "v1", "v1beta2", "v1beta1", "v11alpha2", "v1alpha1", "foo1", "foo10"]);
    }

    #[test]
    fn events_of_both_groups_are_kept_together() {
        let catalog = Catalog::new(&Kinds::builtin());
        let [core, own] = ["", "events.k8s.io"].map(|group| catalog.resource(group, "v1", "events").unwrap());
        assert_eq!(core.place, own.place);
        assert_eq!(own.qualified(), "events.events.k8s.io");
    }
}
