//! Bodies of custom resources: their metadata has the fields it has everywhere, the rest those of their schema.

use serde_json::{Value, json};

use super::text;
use crate::kinds::{JsonObject, Kinds, Node};
use crate::structural::{Schema, pruned, with_defaults, without_nulls};

/// Brings a custom resource into the form in which the API server keeps it: without fields that its schema does not
/// have, and with those it fills in. Nulls stand for nothing, unless they are what an apply has left.
///
/// # Errors
/// What the API server says of the first value of the metadata that is of the wrong type.
pub(crate) fn canonicalize(kinds: &Kinds, schema: &Schema, fields: Node, applied: bool) -> Result<JsonObject, String> {
    let mut strict = Vec::new();
    let Value::Object(mut fields) = text::value(fields, "", &mut strict) else {
        return Err("json: cannot unmarshal into an object".to_owned());
    };
    let metadata = fields.remove("metadata").filter(|metadata| !metadata.is_null()).unwrap_or_else(|| json!({}));
    let mut canonical = kinds.canonicalize(kinds.object_meta(), metadata).map_err(|error| error.to_string())?;
    for fault in std::mem::take(&mut canonical.strict) {
        strict.push(fault.replacen(" field \"", " field \"metadata.", 1));
    }
    pruned(schema, &mut fields, &mut strict);
    with_defaults(schema, &mut fields);
    if !applied {
        without_nulls(schema, &mut fields);
    }
    fields.insert("metadata".to_owned(), Value::Object(canonical.object));
    Ok(JsonObject { object: fields, strict, ..canonical })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any() -> Schema {
        Schema::parse(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}))
    }

    #[test]
    fn only_the_metadata_of_a_custom_resource_is_looked_at() {
        let body = json!({"metadata": {"name": "a", "labels": null, "odd": 1}, "spec": {"x": null, "y": [1, {}]}});
        let canonical = canonicalize(&Kinds::builtin(), &any(), body.into(), false).unwrap();
        let expected = json!({"metadata": {"name": "a"}, "spec": {"x": null, "y": [1, {}]}});
        assert_eq!(Value::Object(canonical.object), expected);
        assert_eq!(canonical.strict, ["unknown field \"metadata.odd\""]);
        let wrong = json!({"metadata": {"labels": {"a": 1}}});
        assert!(canonicalize(&Kinds::builtin(), &any(), wrong.into(), false).is_err());
    }
}
