//! What a server serves.

use std::fmt;
use std::time::Duration;

use http::HeaderValue;

use crate::error::Error;
use crate::resource::ResourceType;

/// What one server serves: groups in the server's order, the core group first, and what could not be found out.
///
/// Made by a [`Discovery`](super::Discovery). A type is found by any name that `kubectl` takes for it:
///
/// ```no_run
/// # fn f(catalog: &cloudcoil_core::Catalog) -> Result<(), cloudcoil_core::Error> {
/// let deployments = catalog.find("deploy")?;
/// assert_eq!(deployments.resource_type, catalog.find("Deployment.v1.apps")?.resource_type);
/// assert!(deployments.subresource("scale").is_some_and(|scale| scale.kind == "Scale".into()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    pub(super) groups: Vec<ApiGroup>,
    pub(super) failures: Vec<DiscoveryFailure>,
    /// Of the aggregated documents of the core group and of the others.
    pub(super) etags: [Option<HeaderValue>; 2],
}

impl Catalog {
    /// How long a catalog that is not complete is good enough, before the server is asked again.
    pub const PARTIAL: Duration = Duration::from_secs(10);

    /// The groups, in the order in which a name is looked up in them.
    pub fn groups(&self) -> &[ApiGroup] {
        &self.groups
    }

    /// What could not be found out, ordered by group and version. The groups that are not named here are whole.
    pub fn failures(&self) -> &[DiscoveryFailure] {
        &self.failures
    }

    /// Whether nothing is missing.
    pub fn is_complete(&self) -> bool {
        self.failures.is_empty()
    }

    /// Every type once, in the version that its group prefers, or else in the first that has it.
    pub fn resources(&self) -> impl Iterator<Item = &ApiResource> {
        self.groups.iter().flat_map(ApiGroup::resources)
    }
}

/// An API group: versions of types that belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiGroup {
    /// The name; empty for the core group.
    pub name: Box<str>,
    /// The versions, in the server's order.
    pub versions: Vec<ApiVersion>,
    /// The version that clients are to use.
    pub preferred: Box<str>,
}

impl ApiGroup {
    /// The versions, the preferred one first.
    pub fn versions_by_preference(&self) -> impl Iterator<Item = &ApiVersion> {
        let (preferred, others): (Vec<_>, Vec<_>) =
            self.versions.iter().partition(|version| version.version == self.preferred);
        preferred.into_iter().chain(others)
    }

    /// Every type of the group once, in the preferred version, or else in the first that has it.
    pub fn resources(&self) -> impl Iterator<Item = &ApiResource> {
        let mut seen = std::collections::BTreeSet::new();
        self.versions_by_preference()
            .flat_map(|version| &version.resources)
            .filter(move |resource| seen.insert(&*resource.resource_type.plural))
    }
}

/// A version of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiVersion {
    /// The name, such as `v1`.
    pub version: Box<str>,
    /// The types, in the server's order; none if they could not be found out.
    pub resources: Vec<ApiResource>,
}

/// A type of object as the server describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiResource {
    /// What requests need to know of it.
    pub resource_type: ResourceType,
    /// Its name for one object, such as `pod`.
    pub singular: Box<str>,
    /// Abbreviations of its name, such as `po`.
    pub short_names: Vec<Box<str>>,
    /// Names under which it is meant together with other types, such as `all`.
    pub categories: Vec<Box<str>>,
    /// What can be done with it: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verbs: Vec<Box<str>>,
    /// Its parts that have addresses of their own, such as `status`.
    pub subresources: Vec<ApiSubresource>,
}

impl ApiResource {
    /// Whether a verb, such as `list`, can be used with it.
    pub fn supports(&self, verb: &str) -> bool {
        self.verbs.iter().any(|one| &**one == verb)
    }

    /// The subresource of a name, such as `scale`.
    pub fn subresource(&self, name: &str) -> Option<&ApiSubresource> {
        self.subresources.iter().find(|one| &*one.name == name)
    }
}

/// A part of an object that has an address of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiSubresource {
    /// The name, such as `eviction`.
    pub name: Box<str>,
    /// The group of what is sent and answered there, such as `policy`.
    pub group: Box<str>,
    /// The version of that.
    pub version: Box<str>,
    /// The kind of that, such as `Eviction`; empty if the server does not say.
    pub kind: Box<str>,
    /// What can be done with it.
    pub verbs: Vec<Box<str>>,
}

/// A group, or a version of one, that could not be found out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiscoveryFailure {
    /// The group; empty for the core group. `None` means that it is not known which groups there are besides.
    pub group: Option<Box<str>>,
    /// The version; empty if it is not known which versions there are.
    pub version: Box<str>,
    /// Why.
    pub fault: DiscoveryFault,
}

impl DiscoveryFailure {
    pub(super) fn new(group: &str, version: &str, fault: DiscoveryFault) -> Self {
        Self { group: Some(group.into()), version: version.into(), fault }
    }
}

/// As `metrics.k8s.io/v1beta1: why`.
impl fmt::Display for DiscoveryFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.group.as_deref(), &*self.version) {
            (None, _) => f.write_str("the list of groups")?,
            (Some(""), "") => f.write_str("the core group")?,
            (Some(""), version) => f.write_str(version)?,
            (Some(group), "") => f.write_str(group)?,
            (Some(group), version) => write!(f, "{group}/{version}")?,
        }
        write!(f, ": {}", self.fault)
    }
}

/// Why a group could not be found out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoveryFault {
    /// Another server is behind it, and the API server cannot reach it; what is listed, if anything, is what it served before.
    #[error("the server behind it does not answer the API server")]
    Stale,
    /// It is listed, and there is nothing in it.
    #[error("nothing is listed in it")]
    Empty,
    /// Asking for it failed.
    #[error("{0}")]
    Failed(Error),
}

/// A name of a type that the server does not serve, as far as is known.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotServed {
    /// The name that was looked for.
    pub name: Box<str>,
    /// Groups that may have it and could not be found out.
    pub failures: Vec<DiscoveryFailure>,
}

impl fmt::Display for NotServed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server doesn't have a resource type {:?}", self.name)?;
        let Some(first) = self.failures.first() else { return Ok(()) };
        write!(f, ", unless it is in what could not be discovered: {first}")?;
        self.failures.iter().skip(1).take(SHOWN - 1).try_for_each(|failure| write!(f, "; {failure}"))?;
        match self.failures.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

impl std::error::Error for NotServed {}

/// How many failures a message shows.
const SHOWN: usize = 5;
