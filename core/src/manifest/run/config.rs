//! What is done with the objects of manifests, and what came of it.

use std::fmt;
use std::time::Duration;

use crate::error::Error;
use crate::manifest::Place;
use crate::request::{DeleteParams, FieldValidation};
use crate::resource::ResourceType;
use crate::unstructured::Unstructured;

/// What is done with the objects of manifests.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "these are all that can be done with a file")]
pub enum ManifestVerb {
    /// Server-side apply: objects are created, or the fields that they set are brought to what they say.
    Apply {
        /// Who owns the fields then.
        field_manager: String,
        /// Whether fields are taken over from other managers where they conflict.
        force: bool,
    },
    /// Objects are created; those that exist are failures.
    Create,
    /// Objects that exist are replaced whole.
    Replace,
    /// Objects are deleted, in the order from the last to the first.
    Delete {
        /// How. Preconditions are meant for each of the objects.
        params: DeleteParams,
        /// Whether an object that does not exist is no failure.
        ignore_missing: bool,
    },
}

/// How a [`ManifestRun`](super::ManifestRun) is done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made with struct update syntax")]
pub struct ManifestRunConfig {
    /// What is done.
    pub verb: ManifestVerb,
    /// The namespace of objects that name none.
    pub namespace: String,
    /// Whether an object that names another namespace is a failure.
    pub enforce_namespace: bool,
    /// Whether nothing is stored, only checked.
    pub dry_run: bool,
    /// Who is writing, for creations and replacements.
    pub field_manager: Option<String>,
    /// What becomes of fields that a type does not have.
    pub field_validation: Option<FieldValidation>,
    /// How long it may take until a type that one of the objects defines is served.
    pub establish_timeout: Duration,
}

impl ManifestRunConfig {
    /// Does `verb`, for real, with `default` for the namespace and a minute for new types.
    pub fn new(verb: ManifestVerb) -> Self {
        Self {
            verb,
            namespace: "default".to_owned(),
            enforce_namespace: false,
            dry_run: false,
            field_manager: None,
            field_validation: None,
            establish_timeout: Duration::from_secs(60),
        }
    }
}

/// What was done with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Done {
    /// There was none, and now there is.
    Created,
    /// It has changed.
    Configured,
    /// It was as it should be.
    Unchanged,
    /// It was replaced.
    Replaced,
    /// It is gone, or going.
    Deleted,
    /// There was none to delete.
    Missing,
}

/// As `kubectl` says it: `created`, `configured`, `unchanged` and so on.
impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Created => "created",
            Self::Configured => "configured",
            Self::Unchanged => "unchanged",
            Self::Replaced => "replaced",
            Self::Deleted => "deleted",
            Self::Missing => "not found",
        })
    }
}

/// What came of one object.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ManifestOutcome {
    /// Where the object is from.
    pub place: Place,
    /// Its `apiVersion`.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace; `None` while it is not known, and for types that have none.
    pub namespace: Option<String>,
    /// Its name; empty if it has none yet.
    pub name: String,
    /// Its type, if the server knows it.
    pub resource_type: Option<ResourceType>,
    /// What was done, or why not.
    pub result: Result<Done, Error>,
    /// The object as the server has it now, or, if it was deleted, had it last.
    pub object: Option<Unstructured>,
}

/// As `kubectl` says it: `deployment.apps/web created`.
impl fmt::Display for ManifestOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = self.api_version.rsplit_once('/').map_or("", |(group, _)| group);
        let kind = self.kind.to_ascii_lowercase();
        let name = if self.name.is_empty() { "(no name)" } else { &self.name };
        match group {
            "" => write!(f, "{kind}/{name} ")?,
            group => write!(f, "{kind}.{group}/{name} ")?,
        }
        match &self.result {
            Ok(done) => done.fmt(f),
            Err(error) => write!(f, "failed: {error} ({})", self.place),
        }
    }
}

/// What came of all objects.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ManifestReport {
    /// What came of each, in the order in which they were seen to.
    pub outcomes: Vec<ManifestOutcome>,
}

impl ManifestReport {
    /// Whether nothing failed.
    pub fn is_ok(&self) -> bool {
        self.failures().next().is_none()
    }

    /// What failed.
    pub fn failures(&self) -> impl Iterator<Item = (&ManifestOutcome, &Error)> {
        self.outcomes.iter().filter_map(|outcome| Some((outcome, outcome.result.as_ref().err()?)))
    }
}
