//! Tables of custom resources, whose columns their definitions choose.

use cloudcoil_core::JsonPath;
use cloudcoil_core::jsonpath::printed;
use serde::Deserialize;
use serde_json::Value;

use super::column::{AGE, NAME, definition};
use super::{Printing, age};

/// One of the `additionalPrinterColumns` of a custom resource definition.
///
/// See <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#additional-printer-columns>.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PrinterColumn {
    pub(crate) name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) format: String,
    pub(crate) description: String,
    /// Columns above 0 are for wide output.
    pub(crate) priority: i64,
    pub(crate) json_path: String,
}

/// The columns that a definition gives its resource.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Custom {
    /// The column definitions, that of the name first.
    pub(super) definitions: Vec<Value>,
    /// The type of each column after the name, and where its cells are; without a path they stay empty.
    cells: Vec<(String, Option<JsonPath>)>,
}

impl Custom {
    /// Without columns there are names and ages. A column whose JSONPath is none stays empty.
    pub(crate) fn new(columns: &[PrinterColumn]) -> Self {
        let mut custom = Self { definitions: vec![NAME.definition()], cells: Vec::new() };
        if columns.is_empty() {
            custom.definitions.push(AGE.date().definition());
            custom.cells.push(("date".to_owned(), JsonPath::parse(".metadata.creationTimestamp").ok()));
        }
        for PrinterColumn { name, kind, format, description, priority, json_path } in columns {
            let description = match description.as_str() {
                "" => &format!("Custom resource definition column (in JSONPath format): {json_path}"),
                text => text,
            };
            custom.definitions.push(definition(name, kind, format, description, *priority));
            custom.cells.push((kind.clone(), JsonPath::parse(json_path).ok()));
        }
        custom
    }

    pub(super) fn cells(&self, object: &Value, on: &Printing<'_>) -> Vec<Value> {
        let name = object.pointer("/metadata/name").cloned().unwrap_or_else(|| Value::from(""));
        let cells = self.cells.iter().map(|(kind, path)| {
            let found = path.as_ref()?.find(object).ok()?;
            cell(kind, found.first()?, on)
        });
        std::iter::once(name).chain(cells.map(Option::unwrap_or_default)).collect()
    }
}

/// What of `value` a column of type `kind` shows; nothing when it does not fit.
fn cell(kind: &str, value: &Value, on: &Printing<'_>) -> Option<Value> {
    match kind {
        "string" if value.is_null() => Some(Value::from("<no value>")),
        "string" => Some(Value::from(printed(value))),
        "integer" => match value.as_i64() {
            Some(integer) => Some(Value::from(integer)),
            // Truncated, and kept within the range, as a conversion between the types does.
            None => Some(Value::from(value.as_f64()? as i64)),
        },
        "number" => value.as_f64().map(Value::from),
        "boolean" => value.as_bool().map(Value::from),
        "date" => value.as_str().map(|time| Value::from(age::since(on.now, time))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use cloudcoil_core::UnixTime;
    use serde_json::json;

    use super::super::Printer;
    use super::*;

    fn cells(columns: Value, object: &Value) -> Value {
        let columns: Vec<PrinterColumn> = serde_json::from_value(columns).unwrap();
        Printer::Custom(Custom::new(&columns)).row(object, UnixTime::from_secs(300)).cells.into()
    }

    #[test]
    fn cells_have_the_type_of_their_column_or_are_empty() {
        let object = json!({
            "metadata": {"name": "w", "creationTimestamp": "1970-01-01T00:00:00Z"},
            "spec": {"n": 3, "f": 2.7, "t": "x", "b": true, "list": ["a", {"k": "<"}], "nil": null, "bad": "soon"},
        });
        let cases = [
            ("string", ".spec.t", json!("x")),
            ("string", ".spec.n", json!("3")),
            ("string", ".spec.f", json!("2.7")),
            ("string", ".spec.b", json!("true")),
            ("string", ".spec.list", json!(r#"["a",{"k":"\u003c"}]"#)),
            ("string", ".spec.list[*]", json!("a")),
            ("string", ".spec.nil", json!("<no value>")),
            ("string", ".spec.missing", json!(null)),
            ("string", ".spec.list[9]", json!(null)),
            ("string", ".spec[", json!(null)),
            ("integer", ".spec.n", json!(3)),
            ("integer", ".spec.f", json!(2)),
            ("integer", ".spec.t", json!(null)),
            ("number", ".spec.n", json!(3.0)),
            ("number", ".spec.f", json!(2.7)),
            ("boolean", ".spec.b", json!(true)),
            ("boolean", ".spec.t", json!(null)),
            ("boolean", ".spec.nil", json!(null)),
            ("date", ".metadata.creationTimestamp", json!("5m")),
            ("date", ".spec.bad", json!("<invalid>")),
            ("date", ".spec.n", json!(null)),
            ("unheard", ".spec.n", json!(null)),
        ];
        for (kind, path, expected) in cases {
            let column = json!([{"name": "C", "type": kind, "jsonPath": path}]);
            assert_eq!(cells(column, &object), json!(["w", expected]), "{kind} {path}");
        }
    }

    #[test]
    fn without_columns_there_are_names_and_ages() {
        let object = json!({"metadata": {"name": "w", "creationTimestamp": "1970-01-01T00:00:00Z"}});
        assert_eq!(cells(json!([]), &object), json!(["w", "5m"]));
        assert_eq!(Custom::new(&[]).definitions[1]["type"], "date");
    }

    #[test]
    fn columns_are_described_as_defined_or_by_their_path() {
        let columns = [
            PrinterColumn {
                name: "A".into(),
                kind: "string".into(),
                json_path: ".a".into(),
                ..PrinterColumn::default()
            },
            PrinterColumn {
                description: "Bees".into(),
                priority: 1,
                format: "int32".into(),
                ..PrinterColumn::default()
            },
        ];
        let definitions = Printer::Custom(Custom::new(&columns)).columns();
        assert_eq!(definitions[1]["description"], "Custom resource definition column (in JSONPath format): .a");
        assert_eq!(
            (&definitions[2]["description"], &definitions[2]["priority"], &definitions[2]["format"]),
            (&json!("Bees"), &json!(1), &json!("int32"))
        );
    }
}
