//! What `kubectl apply` noted on the client's side, for those who go over to server-side apply.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::walk::Comparison;
use super::{Conflict, Versions};

/// The conflicts that are not about fields which were applied on the client's side and are still as they were.
pub(crate) fn beyond_last_applied<'s>(
    versions: &impl Versions<'s>,
    version: &str,
    live: &Value,
    conflicts: Vec<Conflict>,
) -> Vec<Conflict> {
    let noted = live["metadata"]["annotations"][ANNOTATION].as_str();
    let noted = noted.and_then(|text| serde_json::from_str::<Map<String, Value>>(text).ok());
    let (Some(mut noted), Some(of)) = (noted, versions.of(version)) else { return conflicts };
    if noted.remove("apiVersion").is_none_or(|found| found != version) {
        return conflicts;
    }
    noted.remove("kind");
    let (types, noted) = (versions.types(), Value::Object(noted));
    let Comparison { removed, modified, added } = types.compare(of, &noted, live);
    let same = types.fields(of, &noted).difference(&modified).difference(&added).difference(&removed);
    conflicts.into_iter().filter(|(_, path)| !same.has_path(path)).collect()
}

/// Keeps the note in step with what is applied now, if there is one.
pub(crate) fn note_last_applied(object: &mut Value, config: &Value, (version, kind): (&str, &str)) {
    const LIMIT: usize = 256 << 10;
    let noted = object.get_mut("metadata").and_then(|meta| meta.get_mut("annotations")?.as_object_mut());
    let Some(annotations) =
        noted.filter(|all| all.get(ANNOTATION).and_then(Value::as_str).is_some_and(|t| !t.is_empty()))
    else {
        return;
    };
    let mut config = config.clone();
    let noted = config.get_mut("metadata").and_then(|meta| meta.get_mut("annotations")?.as_object_mut());
    if let Some(annotations) = noted {
        annotations.remove(ANNOTATION);
    }
    let mut whole: BTreeMap<String, Value> =
        config.as_object().map(|fields| fields.clone().into_iter().collect()).unwrap_or_default();
    whole.insert("apiVersion".to_owned(), Value::from(version));
    whole.insert("kind".to_owned(), Value::from(kind));
    let text = Value::Object(whole.into_iter().collect()).to_string() + "\n";
    if text.len() < LIMIT {
        annotations.insert(ANNOTATION.to_owned(), Value::from(text));
    } else {
        annotations.remove(ANNOTATION);
    }
}

/// Where `kubectl apply` notes what it applied.
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
