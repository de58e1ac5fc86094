//! What servers answer when they are asked what they serve.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::catalog::{ApiGroup, ApiResource, ApiSubresource, ApiVersion, DiscoveryFailure, DiscoveryFault};
use crate::error::{BodyProblem, DecodeError, Error};
use crate::exchange::Answer;
use crate::resource::{ResourceType, Scope};
use crate::response;

/// An answer at one of the two roots.
pub(super) enum Root {
    /// Everything in one document.
    Whole { groups: Vec<ApiGroup>, failures: Vec<DiscoveryFailure> },
    /// Groups and their versions, whose resources are still to be asked for.
    Versions { groups: Vec<ApiGroup>, failures: Vec<DiscoveryFailure> },
}

/// Reads the answer at `/api`, for which `is_core` holds, or at `/apis`.
pub(super) fn root(answer: &Answer, is_core: bool) -> Result<Root, Error> {
    let kind = kind(answer)?;
    match (&*kind, is_core) {
        ("APIGroupDiscoveryList", _) => aggregated(answer, is_core),
        ("APIVersions", true) => {
            let CoreVersions { versions } = response::decode_borrowed(answer)?;
            Ok(listed(vec![RawGroup { name: String::new(), preferred_version: Version::default(), versions }]))
        }
        ("APIGroupList", false) => {
            let GroupList { groups } = response::decode_borrowed(answer)?;
            Ok(listed(groups))
        }
        _ => Err(unfit(&kind, "this is no document of discovery")),
    }
}

/// Reads the resources of one version of a group.
pub(super) fn resources(answer: &Answer, group: &str, version: &str) -> Result<Vec<ApiResource>, Error> {
    let kind = kind(answer)?;
    if kind != "APIResourceList" {
        return Err(unfit(&kind, "this is no list of resources"));
    }
    let ResourceList { resources } = response::decode_borrowed(answer)?;
    let (parts, mut wholes): (Vec<_>, Vec<_>) = resources.into_iter().partition(|one| one.name.contains('/'));
    wholes.retain(|one| is_segment(&one.name) && !one.kind.is_empty());
    let mut found: Vec<_> = wholes.into_iter().map(|one| one.resource(group, version)).collect();
    let at: std::collections::BTreeMap<String, usize> =
        found.iter().enumerate().map(|(at, one)| (one.resource_type.plural.to_string(), at)).collect();
    for part in parts {
        let name = part.name.clone();
        let Some((whole, name)) = name.split_once('/') else { continue };
        if let Some(at) = at.get(whole) {
            found[*at].subresources.push(part.subresource(name, group, version));
        }
    }
    Ok(found)
}

/// What kind of document an answer is; an array is none, though serde takes it for a struct.
fn kind(answer: &Answer) -> Result<String, Error> {
    let Kind { kind } = response::decode_borrowed(answer)?;
    match answer.body.trim_ascii_start().first() {
        Some(b'{') => Ok(kind),
        _ => Err(response::body_error(answer, BodyProblem::NotJson)),
    }
}

/// Whether a text can be a part of a path as it is: what is not is no name of a group, version or type.
fn is_segment(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    !matches!(text, "" | "." | "..") && text.len() <= MAX_NAME && text.bytes().all(is_plain)
}

fn aggregated(answer: &Answer, is_core: bool) -> Result<Root, Error> {
    let Items { items } = response::decode_borrowed(answer)?;
    let (mut groups, mut failures) = (Vec::new(), Vec::new());
    for item in items {
        match response::decode_item::<Group>(item.get(), "APIGroupDiscovery") {
            Ok(group) if group.metadata.name.is_empty() == is_core && (is_core || is_segment(&group.metadata.name)) => {
                groups.push(group.group(&mut failures));
            }
            Ok(group) => failures.push(misnamed(&group.metadata.name, "")),
            Err(error) => {
                let group = Some(group_name(item.get())).filter(|name| is_core || !name.is_empty());
                let fault = DiscoveryFault::Failed(error.into());
                failures.push(DiscoveryFailure { group: group.map(Into::into), version: "".into(), fault });
            }
        }
    }
    Ok(Root::Whole { groups, failures })
}

/// The name of a group that could not be read.
fn group_name(json: &str) -> String {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Named {
        metadata: Metadata,
    }
    serde_json::from_str::<Named>(json).unwrap_or_default().metadata.name
}

fn listed(raw: Vec<RawGroup>) -> Root {
    let (mut groups, mut failures) = (Vec::new(), Vec::new());
    let mut room = MAX_VERSIONS;
    for group in raw {
        if !group.name.is_empty() && !is_segment(&group.name) {
            failures.push(misnamed(&group.name, ""));
            continue;
        }
        let mut versions = Vec::new();
        for Version { version } in &group.versions {
            if !is_segment(version) {
                failures.push(misnamed(&group.name, version));
            } else if room == 0 {
                let error = unfit("APIGroupList", "there are too many groups and versions");
                failures.push(DiscoveryFailure::new(&group.name, version, DiscoveryFault::Failed(error)));
            } else if versions.iter().all(|one: &ApiVersion| *one.version != **version) {
                room -= 1;
                versions.push(ApiVersion { version: version.as_str().into(), resources: Vec::new() });
            }
        }
        let preferred = match group.preferred_version.version {
            version if version.is_empty() => versions.first().map(|one| one.version.clone()).unwrap_or_default(),
            version => version.into(),
        };
        groups.push(ApiGroup { name: group.name.into(), versions, preferred });
    }
    Root::Versions { groups, failures }
}

fn misnamed(group: &str, version: &str) -> DiscoveryFailure {
    let cut = |text: &str| text.chars().filter(|c| !c.is_control()).take(MAX_NAME).collect::<String>();
    let error = unfit("APIGroup", "a group or version cannot have this name here");
    DiscoveryFailure::new(&cut(group), &cut(version), DiscoveryFault::Failed(error))
}

fn unfit(kind: &str, message: &str) -> Error {
    let object = if kind.is_empty() { "object".into() } else { kind.chars().take(MAX_NAME).collect::<String>() };
    DecodeError { object: object.into(), path: "".into(), message: message.into() }.into()
}

fn kept(texts: Vec<String>) -> Vec<Box<str>> {
    texts.into_iter().map(Into::into).collect()
}

/// `null` is as absent.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[derive(Deserialize)]
struct Kind {
    #[serde(default, deserialize_with = "or_default")]
    kind: String,
}

#[derive(Deserialize)]
struct Items<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    items: Vec<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Metadata {
    #[serde(deserialize_with = "or_default")]
    name: String,
}

#[derive(Deserialize)]
struct Group {
    #[serde(default, deserialize_with = "or_default")]
    metadata: Metadata,
    #[serde(default, deserialize_with = "or_default")]
    versions: Vec<GroupVersion>,
}

impl Group {
    /// Versions come in the order in which clients are to prefer them.
    fn group(self, failures: &mut Vec<DiscoveryFailure>) -> ApiGroup {
        let name = self.metadata.name;
        let mut versions: Vec<ApiVersion> = Vec::new();
        for one in self.versions {
            if !is_segment(&one.version) {
                failures.push(misnamed(&name, &one.version));
                continue;
            }
            let fault = match (&*one.freshness, one.resources.is_empty()) {
                ("Stale", _) => Some(DiscoveryFault::Stale),
                (_, true) => Some(DiscoveryFault::Empty),
                _ => None,
            };
            failures.extend(fault.map(|fault| DiscoveryFailure::new(&name, &one.version, fault)));
            versions.push(one.version(&name));
        }
        if versions.is_empty() {
            failures.push(DiscoveryFailure::new(&name, "", DiscoveryFault::Empty));
        }
        let preferred = versions.first().map(|version| version.version.clone()).unwrap_or_default();
        ApiGroup { name: name.into(), versions, preferred }
    }
}

#[derive(Deserialize)]
struct GroupVersion {
    #[serde(default, deserialize_with = "or_default")]
    version: String,
    #[serde(default, deserialize_with = "or_default")]
    freshness: String,
    #[serde(default, deserialize_with = "or_default")]
    resources: Vec<Resource>,
}

impl GroupVersion {
    fn version(self, group: &str) -> ApiVersion {
        let Self { version, mut resources, .. } = self;
        resources.retain(|one| is_segment(&one.resource) && !one.response_kind.kind.is_empty());
        let resources = resources.into_iter().map(|one| one.resource(group, &version)).collect();
        ApiVersion { version: version.into(), resources }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Resource {
    #[serde(deserialize_with = "or_default")]
    resource: String,
    #[serde(deserialize_with = "or_default")]
    response_kind: ResponseKind,
    #[serde(deserialize_with = "or_default")]
    scope: String,
    #[serde(deserialize_with = "or_default")]
    singular_resource: String,
    #[serde(deserialize_with = "or_default")]
    verbs: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    short_names: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    categories: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    subresources: Vec<Subresource>,
}

impl Resource {
    fn resource(self, group: &str, version: &str) -> ApiResource {
        let scope = if self.scope == "Namespaced" { Scope::Namespaced } else { Scope::Cluster };
        let kind = self.response_kind.kind;
        let singular = if self.singular_resource.is_empty() { kind.to_lowercase() } else { self.singular_resource };
        ApiResource {
            resource_type: ResourceType::new(group.to_owned(), version.to_owned(), kind, self.resource, scope),
            singular: singular.into(),
            short_names: kept(self.short_names),
            categories: kept(self.categories),
            verbs: kept(self.verbs),
            subresources: self.subresources.into_iter().map(|one| one.subresource(group, version)).collect(),
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Subresource {
    #[serde(deserialize_with = "or_default")]
    subresource: String,
    #[serde(deserialize_with = "or_default")]
    response_kind: ResponseKind,
    #[serde(deserialize_with = "or_default")]
    verbs: Vec<String>,
}

impl Subresource {
    fn subresource(self, group: &str, version: &str) -> ApiSubresource {
        let ResponseKind { group: of_group, version: of_version, kind } = self.response_kind;
        let (group, version) = type_or(of_group, of_version, group, version);
        ApiSubresource { name: self.subresource.into(), group, version, kind: kind.into(), verbs: kept(self.verbs) }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ResponseKind {
    #[serde(deserialize_with = "or_default")]
    group: String,
    #[serde(deserialize_with = "or_default")]
    version: String,
    #[serde(deserialize_with = "or_default")]
    kind: String,
}

/// A group and version, or those it is listed in if no version is said. (A group may be empty, a version never is.)
fn type_or(group: String, version: String, listed_group: &str, listed_version: &str) -> (Box<str>, Box<str>) {
    if version.is_empty() { (listed_group.into(), listed_version.into()) } else { (group.into(), version.into()) }
}

#[derive(Deserialize)]
struct CoreVersions {
    #[serde(default, deserialize_with = "or_default")]
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct GroupList {
    #[serde(default, deserialize_with = "or_default")]
    groups: Vec<RawGroup>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawGroup {
    #[serde(default, deserialize_with = "or_default")]
    name: String,
    #[serde(default, deserialize_with = "or_default")]
    versions: Vec<Version>,
    #[serde(default, deserialize_with = "or_default")]
    preferred_version: Version,
}

/// A version: a text in the core group, an object in others.
#[derive(Default)]
struct Version {
    version: String,
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Text(String),
            #[serde(rename_all = "camelCase")]
            Object {
                #[serde(default)]
                version: Option<String>,
                #[serde(default)]
                group_version: Option<String>,
            },
        }
        let version = match Form::deserialize(deserializer)? {
            Form::Text(version) | Form::Object { version: Some(version), .. } => version,
            Form::Object { group_version: Some(text), .. } => text.rsplit('/').next().unwrap_or_default().to_owned(),
            Form::Object { .. } => String::new(),
        };
        Ok(Self { version })
    }
}

#[derive(Deserialize)]
struct ResourceList {
    #[serde(default, deserialize_with = "or_default")]
    resources: Vec<Listed>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Listed {
    /// A subresource is listed as `plural/name`.
    #[serde(deserialize_with = "or_default")]
    name: String,
    #[serde(deserialize_with = "or_default")]
    singular_name: String,
    #[serde(deserialize_with = "or_default")]
    namespaced: bool,
    #[serde(deserialize_with = "or_default")]
    group: String,
    #[serde(deserialize_with = "or_default")]
    version: String,
    #[serde(deserialize_with = "or_default")]
    kind: String,
    #[serde(deserialize_with = "or_default")]
    verbs: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    short_names: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    categories: Vec<String>,
}

impl Listed {
    fn resource(self, group: &str, version: &str) -> ApiResource {
        let scope = if self.namespaced { "Namespaced" } else { "Cluster" }.to_owned();
        let response_kind = ResponseKind { kind: self.kind, ..ResponseKind::default() };
        let Self { name: resource, singular_name: singular_resource, verbs, short_names, categories, .. } = self;
        let subresources = Vec::new();
        Resource { resource, response_kind, scope, singular_resource, verbs, short_names, categories, subresources }
            .resource(group, version)
    }

    fn subresource(self, name: &str, group: &str, version: &str) -> ApiSubresource {
        let response_kind = ResponseKind { group: self.group, version: self.version, kind: self.kind };
        Subresource { subresource: name.to_owned(), response_kind, verbs: self.verbs }.subresource(group, version)
    }
}

/// The longest name that is taken for one, in characters.
const MAX_NAME: usize = 253;

/// How many versions of groups are asked for, one by one, at the most.
const MAX_VERSIONS: usize = 5_000;
