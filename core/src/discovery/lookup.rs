//! Names of types, as `kubectl` takes them.

use super::catalog::{ApiResource, Catalog, DiscoveryFailure, NotServed};
use crate::error::Error;

impl Catalog {
    /// The type of a name, as `kubectl get` takes it: a plural (`pods`), a singular (`pod`), a kind (`Pod`), in any case;
    /// or a short name (`po`), in this case. A group may follow (`deployments.apps`), whole or its beginning (`deploy.app`), or
    /// a version and a group (`deployments.v1.apps`; `pods.v1.` in the core group).
    ///
    /// Of types of one name, that of the first group counts, and of its versions the preferred one, or else the first that has
    /// it.
    ///
    /// # Errors
    /// [`Error::NotServed`], naming the groups that may have it and could not be found out.
    pub fn find(&self, name: &str) -> Result<&ApiResource, Error> {
        let forms = [Name::with_version(name), Some(Name::new(name))];
        let forms = || forms.iter().flatten();
        let found = forms().find_map(|form| self.by_name(form)).or_else(|| forms().find_map(|form| self.by_kind(form)));
        found.ok_or_else(|| self.not_served(name, |group| forms().any(|form| group.starts_with(form.group))))
    }

    /// The type of objects that carry this `apiVersion` and `kind`.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub fn find_kind(&self, api_version: &str, kind: &str) -> Result<&ApiResource, Error> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let groups = self.groups.iter().filter(|one| &*one.name == group);
        let versions = groups.flat_map(|group| &group.versions).filter(|one| &*one.version == version);
        let mut resources = versions.flat_map(|version| &version.resources);
        resources
            .find(|resource| resource.resource_type.kind == kind)
            .ok_or_else(|| self.not_served(&format!("{kind} ({api_version})"), |failed| failed == group))
    }

    /// The types of a category, such as `all`, in the order of their groups; none if there is no such category.
    pub fn category(&self, name: &str) -> Vec<&ApiResource> {
        self.resources().filter(|resource| resource.categories.iter().any(|one| &**one == name)).collect()
    }

    /// The types that a list such as `pods,deploy` or `all` means: names as [`find`](Self::find) takes them and categories,
    /// which come first where both are of one name. Each type comes once.
    ///
    /// # Errors
    /// As [`find`](Self::find), for the first name that means nothing.
    pub fn resolve(&self, names: &str) -> Result<Vec<&ApiResource>, Error> {
        let mut found: Vec<&ApiResource> = Vec::new();
        for name in names.split(',') {
            let mut meant = self.category(name);
            if meant.is_empty() {
                meant.push(self.find(name)?);
            }
            for one in meant {
                if found.iter().all(|other| other.resource_type != one.resource_type) {
                    found.push(one);
                }
            }
        }
        Ok(found)
    }

    fn by_name(&self, name: &Name<'_>) -> Option<&ApiResource> {
        let name = self.expanded(name);
        let lower = name.resource.to_ascii_lowercase();
        self.search(&name, |resource| {
            resource.resource_type.plural.to_ascii_lowercase() == lower
                || resource.singular.to_ascii_lowercase() == lower
                || resource.resource_type.kind.to_ascii_lowercase() == lower
        })
    }

    fn by_kind(&self, name: &Name<'_>) -> Option<&ApiResource> {
        self.search(name, |resource| resource.resource_type.kind == name.resource)
    }

    /// The first match: in the very group that is named, or else in one whose name begins so.
    fn search(&self, name: &Name<'_>, matches: impl Fn(&ApiResource) -> bool) -> Option<&ApiResource> {
        let look = |accepts: &dyn Fn(&str) -> bool| {
            self.groups.iter().filter(|group| accepts(&group.name)).find_map(|group| {
                let versions = group.versions_by_preference();
                let mut versions =
                    versions.filter(|version| name.version.is_none_or(|asked| *version.version == *asked));
                versions.find_map(|version| version.resources.iter().find(|resource| matches(resource)))
            })
        };
        match (name.group, name.version) {
            ("", _) => look(&|_| true),
            (group, Some(_)) => look(&|one| one == group),
            (group, None) => look(&|one| one == group).or_else(|| look(&|one| one.starts_with(group))),
        }
    }

    /// A short name written out. What is a full name somewhere is none.
    fn expanded<'a>(&'a self, name: &Name<'a>) -> Name<'a> {
        let group_is = |resource: &ApiResource| name.group.is_empty() || resource.resource_type.group == name.group;
        let is_full = |resource: &&ApiResource| {
            group_is(resource)
                && (resource.resource_type.plural == name.resource || *resource.singular == *name.resource)
        };
        if self.resources().any(|resource| is_full(&resource)) {
            return *name;
        }
        let is_short = |resource: &&ApiResource| resource.short_names.iter().any(|short| **short == *name.resource);
        let exact = self.resources().find(|resource| is_short(resource) && group_is(resource));
        let begun = || {
            self.resources().find(|resource| is_short(resource) && resource.resource_type.group.starts_with(name.group))
        };
        match exact.or_else(begun) {
            Some(resource) => {
                let of = &resource.resource_type;
                Name { resource: &of.plural, group: &of.group, ..*name }
            }
            None => *name,
        }
    }

    fn not_served(&self, name: &str, may_have: impl Fn(&str) -> bool) -> Error {
        let matters = |failure: &&DiscoveryFailure| failure.group.as_deref().is_none_or(&may_have);
        let failures = self.failures.iter().filter(matters).cloned().collect();
        Error::NotServed(Box::new(NotServed { name: name.into(), failures }))
    }
}

/// A name in its parts.
#[derive(Clone, Copy)]
struct Name<'a> {
    resource: &'a str,
    version: Option<&'a str>,
    /// Empty if none is named.
    group: &'a str,
}

impl<'a> Name<'a> {
    /// `resource.group`, or the resource alone.
    fn new(text: &'a str) -> Self {
        let (resource, group) = text.split_once('.').unwrap_or((text, ""));
        Self { resource, version: None, group }
    }

    /// `resource.version.group`, if there are that many parts.
    fn with_version(text: &'a str) -> Option<Self> {
        let (resource, rest) = text.split_once('.')?;
        let (version, group) = rest.split_once('.')?;
        Some(Self { resource, version: Some(version), group })
    }
}
