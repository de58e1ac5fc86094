//! Bodies of custom resources: their metadata has the fields it has everywhere, the rest is as it came.

use serde_json::{Map, Value};

use super::typed::{self, Typed};
use crate::kinds::{Field, Kinds};

/// Brings the metadata of a custom resource into its normal form.
///
/// # Errors
/// What Go's decoder says of the first value of the metadata that is of the wrong type.
pub(crate) fn normalise(kinds: &Kinds, mut fields: Map<String, Value>) -> Result<Typed, String> {
    let metadata = match fields.remove("metadata") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(metadata)) => metadata,
        Some(other) => {
            let found = super::body::type_name(&other);
            return Err(format!("json: cannot unmarshal {found} into Go value of type v1.ObjectMeta"));
        }
    };
    let kind = kinds.kind("", "v1", "ConfigMap").expect("every table has config maps");
    let meta = kinds.field(kind.structure, "metadata").and_then(Field::structure).expect("every kind has metadata");
    let mut normal = typed::normalise(kinds, meta, metadata)?;
    for path in &mut normal.unknown {
        path.insert_str(0, "metadata.");
    }
    fields.insert("metadata".to_owned(), Value::Object(normal.fields));
    Ok(Typed { fields, unknown: normal.unknown })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_metadata_of_a_custom_resource_is_looked_at() {
        let body = json!({"metadata": {"name": "a", "labels": null, "odd": 1}, "spec": {"x": null, "y": [1, {}]}});
        let typed = normalise(&Kinds::builtin(), body.as_object().unwrap().clone()).unwrap();
        assert_eq!(Value::Object(typed.fields), json!({"metadata": {"name": "a"}, "spec": {"x": null, "y": [1, {}]}}));
        assert_eq!(typed.unknown, ["metadata.odd"]);
        let wrong = json!({"metadata": {"labels": {"a": 1}}});
        assert!(normalise(&Kinds::builtin(), wrong.as_object().unwrap().clone()).is_err());
    }
}
