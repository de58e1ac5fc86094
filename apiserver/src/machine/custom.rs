//! Bodies of custom resources: their metadata has the fields it has everywhere, the rest is as it came.

use serde_json::{Map, Value, json};

use crate::kinds::{Field, JsonObject, Kinds};

/// Brings the metadata of a custom resource into the form the API server gives it.
///
/// # Errors
/// What the API server says of the first value of the metadata that is of the wrong type.
pub(crate) fn canonicalize(kinds: &Kinds, mut fields: Map<String, Value>) -> Result<JsonObject, String> {
    let kind = kinds.kind("", "v1", "ConfigMap").expect("every table has config maps");
    let meta = kinds.field(kind.structure, "metadata").and_then(Field::structure).expect("every kind has metadata");
    let metadata = fields.remove("metadata").filter(|metadata| !metadata.is_null()).unwrap_or_else(|| json!({}));
    let mut canonical = kinds.canonicalize(meta, metadata).map_err(|error| error.to_string())?;
    for fault in &mut canonical.strict {
        *fault = fault.replacen(" field \"", " field \"metadata.", 1);
    }
    fields.insert("metadata".to_owned(), Value::Object(canonical.object));
    canonical.object = fields;
    Ok(canonical)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_metadata_of_a_custom_resource_is_looked_at() {
        let body = json!({"metadata": {"name": "a", "labels": null, "odd": 1}, "spec": {"x": null, "y": [1, {}]}});
        let canonical = canonicalize(&Kinds::builtin(), body.as_object().unwrap().clone()).unwrap();
        let expected = json!({"metadata": {"name": "a"}, "spec": {"x": null, "y": [1, {}]}});
        assert_eq!(Value::Object(canonical.object), expected);
        assert_eq!(canonical.strict, ["unknown field \"metadata.odd\""]);
        let wrong = json!({"metadata": {"labels": {"a": 1}}});
        assert!(canonicalize(&Kinds::builtin(), wrong.as_object().unwrap().clone()).is_err());
    }
}
