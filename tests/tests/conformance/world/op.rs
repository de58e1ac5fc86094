//! What a client can be asked for, as data, and what comes of it.

use std::time::Duration;

use cloudcoil_runtime::core::k8s_openapi::apimachinery::pkg::version::Info;
use cloudcoil_runtime::core::manifest::ManifestOutcome;
use cloudcoil_runtime::{
    Deleted, Evicted, Patch, Propagation, Resource, ResourceList, ResourceType, Scope, Table, Unstructured,
};
use serde_json::Value;

/// A type of objects; the beginning of most [`Op`]s.
#[derive(Clone, Debug)]
pub(crate) struct Kind(pub(crate) ResourceType);

pub(crate) fn maps() -> Kind {
    Kind(ResourceType::new("", "v1", "ConfigMap", "configmaps", Scope::Namespaced))
}

pub(crate) fn secrets() -> Kind {
    Kind(ResourceType::new("", "v1", "Secret", "secrets", Scope::Namespaced))
}

pub(crate) fn pods() -> Kind {
    Kind(ResourceType::new("", "v1", "Pod", "pods", Scope::Namespaced))
}

pub(crate) fn deployments() -> Kind {
    Kind(ResourceType::new("apps", "v1", "Deployment", "deployments", Scope::Namespaced))
}

pub(crate) fn namespaces() -> Kind {
    Kind(ResourceType::new("", "v1", "Namespace", "namespaces", Scope::Cluster))
}

/// One call.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub(crate) kind: Kind,
    /// Where, if not in the client's own namespace.
    pub(crate) place: Place,
    pub(crate) verb: Verb,
    pub(crate) with: With,
}

#[derive(Clone, Debug)]
pub(crate) enum Place {
    Default,
    Namespace(String),
    Everywhere,
}

#[derive(Clone, Debug)]
pub(crate) enum Verb {
    Read(Read),
    Write(Write),
    Part(Part),
    Other(Other),
}

#[derive(Clone, Debug)]
pub(crate) enum Read {
    Get(String),
    /// Where nothing is an answer too.
    Find(String),
    Metadata(String),
    Table(String),
    /// All pages, as one list.
    List,
    Page,
    /// Object by object.
    Objects,
    ListMetadata,
    ListTable,
}

#[derive(Clone, Debug)]
pub(crate) enum Write {
    Create(Value),
    Replace(Value),
    Patch(String, Patch),
    Apply(Value),
    Delete(String),
    DeleteCollection,
}

#[derive(Clone, Debug)]
pub(crate) enum Part {
    Get { name: String, part: String },
    Replace { name: String, part: String, body: Value },
    Patch { name: String, part: String, patch: Patch },
    SetReplicas(String, u32),
    Evict(String),
    Log(String),
}

#[derive(Clone, Debug)]
pub(crate) enum Other {
    WaitFor {
        name: String,
        until: Until,
        timeout: Duration,
    },
    /// The type of a name, as `kubectl` takes it.
    FindType(String),
    Whoami,
    Version,
    Ready,
    /// The text of a manifest, to be applied, or deleted.
    Manifest {
        text: String,
        deletes: bool,
    },
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    Exists,
    Deleted,
    Condition(&'static str),
}

/// What a call is sent with, as far as its verb has it.
#[derive(Clone, Debug, Default)]
pub(crate) struct With {
    pub(crate) dry_run: bool,
    pub(crate) force: bool,
    pub(crate) manager: Option<&'static str>,
    pub(crate) subresource: Option<&'static str>,
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
    pub(crate) limit: Option<u32>,
    pub(crate) token: Option<String>,
    pub(crate) propagation: Option<Propagation>,
    pub(crate) uid: Option<String>,
    pub(crate) version: Option<String>,
}

/// The verbs.
impl Kind {
    fn op(&self, verb: Verb) -> Op {
        Op { kind: self.clone(), place: Place::Default, verb, with: With::default() }
    }

    pub(crate) fn get(&self, name: &str) -> Op {
        self.op(Verb::Read(Read::Get(name.into())))
    }

    pub(crate) fn find(&self, name: &str) -> Op {
        self.op(Verb::Read(Read::Find(name.into())))
    }

    pub(crate) fn metadata(&self, name: &str) -> Op {
        self.op(Verb::Read(Read::Metadata(name.into())))
    }

    pub(crate) fn table(&self, name: &str) -> Op {
        self.op(Verb::Read(Read::Table(name.into())))
    }

    pub(crate) fn list(&self) -> Op {
        self.op(Verb::Read(Read::List))
    }

    pub(crate) fn page(&self) -> Op {
        self.op(Verb::Read(Read::Page))
    }

    pub(crate) fn objects(&self) -> Op {
        self.op(Verb::Read(Read::Objects))
    }

    pub(crate) fn list_metadata(&self) -> Op {
        self.op(Verb::Read(Read::ListMetadata))
    }

    pub(crate) fn list_table(&self) -> Op {
        self.op(Verb::Read(Read::ListTable))
    }

    pub(crate) fn create(&self, object: Value) -> Op {
        self.op(Verb::Write(Write::Create(object)))
    }

    pub(crate) fn replace(&self, object: Value) -> Op {
        self.op(Verb::Write(Write::Replace(object)))
    }

    pub(crate) fn patch(&self, name: &str, patch: Patch) -> Op {
        self.op(Verb::Write(Write::Patch(name.into(), patch)))
    }

    pub(crate) fn merge(&self, name: &str, patch: Value) -> Op {
        self.patch(name, Patch::Merge(patch))
    }

    pub(crate) fn apply(&self, manager: &'static str, object: Value) -> Op {
        self.op(Verb::Write(Write::Apply(object))).manager(manager)
    }

    pub(crate) fn delete(&self, name: &str) -> Op {
        self.op(Verb::Write(Write::Delete(name.into())))
    }

    pub(crate) fn delete_collection(&self) -> Op {
        self.op(Verb::Write(Write::DeleteCollection))
    }

    pub(crate) fn part(&self, name: &str, part: &str) -> Op {
        self.op(Verb::Part(Part::Get { name: name.into(), part: part.into() }))
    }

    pub(crate) fn replace_part(&self, name: &str, part: &str, body: Value) -> Op {
        self.op(Verb::Part(Part::Replace { name: name.into(), part: part.into(), body }))
    }

    pub(crate) fn patch_part(&self, name: &str, part: &str, patch: Patch) -> Op {
        self.op(Verb::Part(Part::Patch { name: name.into(), part: part.into(), patch }))
    }

    pub(crate) fn set_replicas(&self, name: &str, replicas: u32) -> Op {
        self.op(Verb::Part(Part::SetReplicas(name.into(), replicas)))
    }

    pub(crate) fn evict(&self, name: &str) -> Op {
        self.op(Verb::Part(Part::Evict(name.into())))
    }

    /// A log; whole, or line by line with [`World::lines`](super::World::lines), which follows it.
    pub(crate) fn log(&self, name: &str) -> Op {
        self.op(Verb::Part(Part::Log(name.into())))
    }

    pub(crate) fn wait_for(&self, name: &str, until: Until, timeout: Duration) -> Op {
        self.op(Verb::Other(Other::WaitFor { name: name.into(), until, timeout }))
    }
}

/// What has no type of objects.
impl Op {
    fn other(other: Other) -> Self {
        maps().op(Verb::Other(other))
    }

    pub(crate) fn find_type(name: &str) -> Self {
        Self::other(Other::FindType(name.into()))
    }

    pub(crate) fn whoami() -> Self {
        Self::other(Other::Whoami)
    }

    pub(crate) fn version() -> Self {
        Self::other(Other::Version)
    }

    pub(crate) fn ready() -> Self {
        Self::other(Other::Ready)
    }

    pub(crate) fn apply_manifest(text: &str) -> Self {
        Self::other(Other::Manifest { text: text.into(), deletes: false }).manager("suite")
    }

    pub(crate) fn delete_manifest(text: &str) -> Self {
        Self::other(Other::Manifest { text: text.into(), deletes: true })
    }
}

/// The options.
impl Op {
    pub(crate) fn within(self, namespace: &str) -> Self {
        Self { place: Place::Namespace(namespace.into()), ..self }
    }

    pub(crate) fn everywhere(self) -> Self {
        Self { place: Place::Everywhere, ..self }
    }

    fn with(mut self, set: impl FnOnce(&mut With)) -> Self {
        set(&mut self.with);
        self
    }

    pub(crate) fn dry_run(self) -> Self {
        self.with(|with| with.dry_run = true)
    }

    pub(crate) fn force(self) -> Self {
        self.with(|with| with.force = true)
    }

    pub(crate) fn manager(self, manager: &'static str) -> Self {
        self.with(|with| with.manager = Some(manager))
    }

    pub(crate) fn subresource(self, subresource: &'static str) -> Self {
        self.with(|with| with.subresource = Some(subresource))
    }

    pub(crate) fn labels(self, selector: &str) -> Self {
        self.with(|with| with.labels = Some(selector.into()))
    }

    pub(crate) fn fields(self, selector: &str) -> Self {
        self.with(|with| with.fields = Some(selector.into()))
    }

    pub(crate) fn limit(self, limit: u32) -> Self {
        self.with(|with| with.limit = Some(limit))
    }

    pub(crate) fn continue_from(self, token: &str) -> Self {
        self.with(|with| with.token = Some(token.into()))
    }

    pub(crate) fn propagation(self, propagation: Propagation) -> Self {
        self.with(|with| with.propagation = Some(propagation))
    }

    pub(crate) fn uid(self, uid: &str) -> Self {
        self.with(|with| with.uid = Some(uid.into()))
    }

    /// Only if the object has this version.
    pub(crate) fn resource_version(self, version: &str) -> Self {
        self.with(|with| with.version = Some(version.into()))
    }
}

/// What a call is answered with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    Object(Box<Unstructured>),
    /// There is no such object.
    Missing,
    List(Box<ResourceList<Unstructured>>),
    Table(Box<Table>),
    Deleted(Box<Deleted<Unstructured>>),
    Evicted(Box<Evicted>),
    /// A log; or who the client is; or a type, as its group, version and plural; or what has come about of what was waited for.
    Text(String),
    Version(Box<Info>),
    Ready,
    Outcomes(Vec<ManifestOutcome>),
}

/// What is in it.
///
/// # Panics
/// If it is something else.
impl Reply {
    #[track_caller]
    pub(crate) fn object(self) -> Unstructured {
        match self {
            Self::Object(object) => *object,
            other => panic!("no object: {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn value(self) -> Value {
        self.object().into_value()
    }

    #[track_caller]
    pub(crate) fn list(self) -> ResourceList<Unstructured> {
        match self {
            Self::List(list) => *list,
            other => panic!("no list: {other:?}"),
        }
    }

    /// The names of a list.
    #[track_caller]
    pub(crate) fn names(self) -> Vec<String> {
        self.list().items.iter().map(|object| object.name().to_owned()).collect()
    }

    #[track_caller]
    pub(crate) fn table(self) -> Table {
        match self {
            Self::Table(table) => *table,
            other => panic!("no table: {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn deleted(self) -> Deleted<Unstructured> {
        match self {
            Self::Deleted(deleted) => *deleted,
            other => panic!("no deletion: {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn evicted(self) -> Evicted {
        match self {
            Self::Evicted(evicted) => *evicted,
            other => panic!("no eviction: {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            other => panic!("no text: {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn outcomes(self) -> Vec<ManifestOutcome> {
        match self {
            Self::Outcomes(outcomes) => outcomes,
            other => panic!("no outcomes: {other:?}"),
        }
    }
}

/// Objects to be followed, by a watch or an informer.
#[derive(Clone, Debug)]
pub(crate) struct Follow {
    pub(crate) kind: Kind,
    pub(crate) everywhere: bool,
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
    /// With lists in pages from the beginning, of that many objects.
    pub(crate) pages: Option<u32>,
}

impl Kind {
    pub(crate) fn follow(&self) -> Follow {
        Follow { kind: self.clone(), everywhere: false, labels: None, fields: None, pages: None }
    }
}

impl Follow {
    pub(crate) fn everywhere(self) -> Self {
        Self { everywhere: true, ..self }
    }

    pub(crate) fn labels(self, selector: &str) -> Self {
        Self { labels: Some(selector.into()), ..self }
    }

    pub(crate) fn fields(self, selector: &str) -> Self {
        Self { fields: Some(selector.into()), ..self }
    }

    pub(crate) fn in_pages_of(self, size: u32) -> Self {
        Self { pages: Some(size), ..self }
    }
}

/// A controller of ConfigMaps to be run, by what it does to each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    /// Keeps a Secret `NAME-child` with the same value as `key`, owned by it.
    KeepsChild,
    /// Returns it with a label `seen: yes`.
    Labels,
    /// As [`Labels`](Self::Labels), but at first sight it does what `key` says: it `fails`, `panics`, or `waits`.
    Stumbles,
    /// Holds a finalizer, and on deletion removes the Secret `NAME-outside`, which nothing owns.
    CleansUp,
}
