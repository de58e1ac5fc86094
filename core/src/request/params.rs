//! What requests can say besides which object they are about.

use std::time::Duration;

use serde_json::{Value, json};

use super::uri::Query;
use crate::error::Error;

/// What a read asks for of each object.
///
/// See <https://kubernetes.io/docs/reference/using-api/api-concepts/#receiving-resources-as-tables>.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum View {
    /// All of it.
    #[default]
    Object,
    /// Its metadata, as `PartialObjectMetadata`.
    Metadata,
    /// Rows as `kubectl get` prints them, as [`Table`](crate::Table), where the server can.
    Table,
}

impl View {
    pub(super) const fn accept(self, list: bool) -> &'static str {
        match (self, list) {
            (Self::Object, _) => "application/json",
            (Self::Metadata, false) => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            (Self::Metadata, true) => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            (Self::Table, _) => "application/json;as=Table;g=meta.k8s.io;v=v1,application/json",
        }
    }
}

/// Which objects a list holds, and how much of them a page.
///
/// See <https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list>.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made with struct update syntax")]
pub struct ListParams {
    /// A label selector as `kubectl -l` takes it.
    pub label_selector: Option<String>,
    /// A field selector as `kubectl --field-selector` takes it.
    pub field_selector: Option<String>,
    /// The most objects in a page; the answer then carries a continue token. `None` asks for all at once.
    pub limit: Option<u32>,
    /// The token of the page before.
    pub continue_token: Option<String>,
    /// How new the list must be.
    pub version: ListVersion,
    /// How long the server may take, in whole seconds.
    pub timeout: Option<Duration>,
}

impl ListParams {
    pub(super) fn write(&self, query: &mut Query) -> Result<(), Error> {
        if self.continue_token.is_some() && self.version != ListVersion::MostRecent {
            return Err(Error::misuse("a continue token and a resource version exclude each other"));
        }
        query.text("labelSelector", self.label_selector.as_deref());
        query.text("fieldSelector", self.field_selector.as_deref());
        query.number("limit", self.limit.map(u64::from));
        query.text("continue", self.continue_token.as_deref());
        match &self.version {
            ListVersion::MostRecent => {}
            ListVersion::Any => query.text("resourceVersion", Some("0")),
            ListVersion::NotOlderThan(version) => {
                query.text("resourceVersion", Some(version));
                query.text("resourceVersionMatch", Some("NotOlderThan"));
            }
            ListVersion::Exact(version) => {
                query.text("resourceVersion", Some(version));
                query.text("resourceVersionMatch", Some("Exact"));
            }
        }
        query.number("timeoutSeconds", self.timeout.map(|timeout| timeout.as_secs()));
        Ok(())
    }
}

/// How new a list must be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "these are the API's choices")]
pub enum ListVersion {
    /// The newest there is, read with a quorum.
    #[default]
    MostRecent,
    /// Whatever the server has in its cache, however old.
    Any,
    /// At least as new as this resource version.
    NotOlderThan(String),
    /// Exactly this resource version.
    Exact(String),
}

/// What a watch reports, and from where.
///
/// See <https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes>.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made with struct update syntax")]
pub struct WatchParams {
    /// A label selector as `kubectl -l` takes it.
    pub label_selector: Option<String>,
    /// A field selector as `kubectl --field-selector` takes it.
    pub field_selector: Option<String>,
    /// The resource version after which changes are reported; `None` starts anywhere, with what exists as additions.
    pub resource_version: Option<String>,
    /// After how many whole seconds the server ends the watch.
    pub timeout: Option<Duration>,
    /// Whether the server tells from time to time how far the watch has got.
    pub bookmarks: bool,
    /// Whether the watch begins with what exists, and a bookmark behind it, in place of a list.
    pub initial_events: bool,
}

impl WatchParams {
    pub(super) fn write(&self, query: &mut Query) {
        query.text("watch", Some("true"));
        query.text("labelSelector", self.label_selector.as_deref());
        query.text("fieldSelector", self.field_selector.as_deref());
        query.text("resourceVersion", self.resource_version.as_deref());
        query.flag("allowWatchBookmarks", self.bookmarks || self.initial_events);
        if self.initial_events {
            query.text("sendInitialEvents", Some("true"));
            query.text("resourceVersionMatch", Some("NotOlderThan"));
        }
        query.number("timeoutSeconds", self.timeout.map(|timeout| timeout.as_secs().max(1)));
    }
}

/// How a create or replace is done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made with struct update syntax")]
pub struct WriteParams {
    /// Whether nothing is stored, only checked.
    pub dry_run: bool,
    /// Who is writing, for field ownership.
    pub field_manager: Option<String>,
    /// What becomes of fields that the type does not have.
    pub field_validation: Option<FieldValidation>,
}

impl WriteParams {
    pub(super) fn write(&self, query: &mut Query) {
        query.text("dryRun", self.dry_run.then_some("All"));
        query.text("fieldManager", self.field_manager.as_deref());
        query.text("fieldValidation", self.field_validation.map(FieldValidation::as_str));
    }
}

/// What becomes of fields that a type does not have, or that occur twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "these are the API's choices")]
pub enum FieldValidation {
    /// They are dropped.
    Ignore,
    /// They are dropped, and a warning comes with the answer.
    Warn,
    /// The request is refused.
    Strict,
}

impl FieldValidation {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Ignore => "Ignore",
            Self::Warn => "Warn",
            Self::Strict => "Strict",
        }
    }
}

/// A change to an object, in one of the forms the API server takes.
///
/// See <https://kubernetes.io/docs/reference/using-api/api-concepts/#patch-and-apply>.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "these are the API's choices")]
pub enum Patch {
    /// RFC 6902: a list of operations.
    Json(Value),
    /// RFC 7386: an object in which `null` removes.
    Merge(Value),
    /// As merge, but lists merge by their keys; built-in kinds only.
    Strategic(Value),
    /// Server-side apply: the fields that the field manager wants to own.
    Apply(Value),
}

impl Patch {
    pub(super) const fn content_type(&self) -> &'static str {
        match self {
            Self::Json(_) => "application/json-patch+json",
            Self::Merge(_) => "application/merge-patch+json",
            Self::Strategic(_) => "application/strategic-merge-patch+json",
            Self::Apply(_) => "application/apply-patch+yaml",
        }
    }
}

/// How a patch is done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made with struct update syntax")]
pub struct PatchParams {
    /// What every write may say.
    pub write: WriteParams,
    /// For an apply: take fields over from other managers where they conflict.
    pub force: bool,
}

impl PatchParams {
    pub(super) fn write(&self, patch: &Patch, query: &mut Query) -> Result<(), Error> {
        let apply = matches!(patch, Patch::Apply(_));
        if apply && self.write.field_manager.as_deref().is_none_or(str::is_empty) {
            return Err(Error::misuse("an apply needs a field manager"));
        }
        if self.force && !apply {
            return Err(Error::misuse("only an apply can be forced"));
        }
        self.write.write(query);
        query.flag("force", self.force);
        Ok(())
    }
}

/// How a deletion is done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made with struct update syntax")]
pub struct DeleteParams {
    /// Whether nothing is deleted, only checked.
    pub dry_run: bool,
    /// What becomes of the objects it owns.
    pub propagation: Option<Propagation>,
    /// How long the object may take to end, in whole seconds.
    pub grace_period: Option<Duration>,
    /// Delete only the object of this uid, not another of the same name.
    pub uid: Option<String>,
    /// Delete only this version of the object.
    pub resource_version: Option<String>,
}

impl DeleteParams {
    pub(super) fn body(&self) -> Value {
        let mut body = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        if self.dry_run {
            body["dryRun"] = json!(["All"]);
        }
        if let Some(propagation) = self.propagation {
            body["propagationPolicy"] = Value::from(propagation.as_str());
        }
        if let Some(grace) = self.grace_period {
            body["gracePeriodSeconds"] = Value::from(grace.as_secs());
        }
        if let Some(uid) = &self.uid {
            body["preconditions"]["uid"] = Value::from(uid.as_str());
        }
        if let Some(version) = &self.resource_version {
            body["preconditions"]["resourceVersion"] = Value::from(version.as_str());
        }
        body
    }
}

/// What becomes of the objects that a deleted object owns.
///
/// See <https://kubernetes.io/docs/concepts/architecture/garbage-collection/>.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "these are the API's choices")]
pub enum Propagation {
    /// They stay, without the owner.
    Orphan,
    /// They go after it.
    Background,
    /// They go before it.
    Foreground,
}

impl Propagation {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Orphan => "Orphan",
            Self::Background => "Background",
            Self::Foreground => "Foreground",
        }
    }
}
