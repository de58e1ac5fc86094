//! Objects in files: read from YAML and JSON, put in order, and brought to a cluster.

mod document;
mod error;
pub(crate) mod fuzz;
mod numbers;
mod order;
mod run;
mod split;
#[cfg(test)]
mod tests;

use crate::resource::KnownResource;
use crate::unstructured::Unstructured;

pub use document::{ManifestObject, Place};
pub use error::{ManifestError, ManifestProblem};
pub use order::{deletion_order, installation_order};
pub use run::{
    Done, ManifestInput, ManifestOutcome, ManifestOutput, ManifestReport, ManifestRun, ManifestRunConfig, ManifestVerb,
};

use split::Splitter;

/// All objects of a text in YAML or JSON, in their order. `source` is what errors call it, such as the path of a file.
///
/// Documents are separated as in YAML by `---`, or, in JSON, by nothing; empty ones, and those that hold only comments, are
/// passed over. Of a list (`kind: List`, `kind: ConfigMapList`) the objects in it are taken. YAML is read as `kubectl`
/// reads it, after version 1.1: `yes`, `on` and `y` are booleans, `0644` is octal, and `<<` merges.
///
/// # Errors
/// [`ManifestError`] for the first document that is no object with `apiVersion` and `kind`, or that says a key twice.
///
/// ```
/// use cloudcoil_core::{Resource, manifest};
///
/// let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n# nothing\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: b}\n";
/// let objects = manifest::parse("both.yaml", text.as_bytes())?;
/// let names: Vec<_> = objects.iter().map(|found| (found.object.kind(), found.object.name(), found.place.line)).collect();
/// assert_eq!(names, [("ConfigMap", "a", 1), ("Secret", "b", 7)]);
///
/// let error = manifest::parse("odd.yaml", b"kind: ConfigMap").unwrap_err();
/// assert_eq!(error.to_string(), "odd.yaml: document 1 at line 1: the object has no apiVersion");
/// # Ok::<(), cloudcoil_core::manifest::ManifestError>(())
/// ```
pub fn parse(source: &str, bytes: &[u8]) -> Result<Vec<ManifestObject>, ManifestError> {
    let mut objects = Vec::new();
    for found in documents(source, bytes) {
        objects.extend(found?);
    }
    Ok(objects)
}

/// The documents of a text one by one, each with the objects in it, so that a faulty one does not hide the others.
/// See [`parse`].
pub fn documents(source: &str, bytes: &[u8]) -> impl Iterator<Item = Result<Vec<ManifestObject>, ManifestError>> {
    let (text, error) = match str::from_utf8(bytes) {
        Ok(text) => (text.strip_prefix('\u{feff}').unwrap_or(text), None),
        Err(error) => {
            let line = 1 + bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
            ("", Some(Err(ManifestError::new(source, 0, line, ManifestProblem::NotUtf8))))
        }
    };
    let source = source.to_owned();
    error.into_iter().chain(Splitter::new(text).map(move |document| document.read(&source)))
}

/// The one object of a text, of any type.
///
/// # Errors
/// As [`parse`]; [`ManifestProblem::Empty`] when there is none, [`ManifestProblem::Several`] when there are more.
pub fn parse_one(source: &str, bytes: &[u8]) -> Result<Unstructured, ManifestError> {
    one(source, bytes).map(|found| found.object)
}

/// The one object of a text, of a type that Rust knows.
///
/// # Errors
/// As [`parse_one`]; [`ManifestProblem::WrongType`] when it is of another type, [`ManifestProblem::Misfit`] when a field does
/// not fit.
///
/// ```
/// use cloudcoil_core::{Resource, manifest};
/// use cloudcoil_core::k8s_openapi::api::core::v1::ConfigMap;
///
/// let text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
/// let map: ConfigMap = manifest::parse_typed("map.yaml", text)?;
/// assert_eq!(map.name(), "a");
/// # Ok::<(), cloudcoil_core::manifest::ManifestError>(())
/// ```
pub fn parse_typed<K: KnownResource>(source: &str, bytes: &[u8]) -> Result<K, ManifestError> {
    one(source, bytes)?.decode()
}

fn one(source: &str, bytes: &[u8]) -> Result<ManifestObject, ManifestError> {
    let mut objects = parse(source, bytes)?;
    match objects.len() {
        0 => Err(ManifestError::new(source, 0, 0, ManifestProblem::Empty)),
        1 => Ok(objects.remove(0)),
        count => Err(ManifestError::new(source, 0, 0, ManifestProblem::Several(count))),
    }
}
