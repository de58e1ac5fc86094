//! How objects are printed.

use serde_json::{Value, json};

use crate::args::Structure;
use crate::fault::Fault;
use crate::kinds;
use crate::out::Out;
use crate::structure;
use crate::template::Template;

/// A way to print objects.
pub(crate) enum Format {
    Table { wide: bool },
    Name,
    Structure(Structure),
    Template(Template),
}

impl Format {
    pub(crate) fn parse(text: &str) -> Result<Self, Fault> {
        Ok(match text {
            "table" | "" => Self::Table { wide: false },
            "wide" => Self::Table { wide: true },
            "name" => Self::Name,
            "json" => Self::Structure(Structure::Json),
            "yaml" => Self::Structure(Structure::Yaml),
            _ => match text.strip_prefix("jsonpath=") {
                Some(template) => Self::Template(Template::parse(template)?),
                None => {
                    let formats = "table, wide, name, json, yaml or jsonpath=TEMPLATE";
                    return Err(Fault::misuse(format!("{text:?} is no way to print objects; choose {formats}")));
                }
            },
        })
    }
}

/// Prints the object that was asked for by its name, or a list of objects.
pub(crate) fn print(mut found: Vec<Value>, single: bool, format: &Format, out: &mut Out) -> Result<(), Fault> {
    if let Format::Name = format {
        return found.iter().try_for_each(|object| out.line(&name_of(object)));
    }
    // One that was asked for by name and is not there prints nothing.
    let value = match (single, found.pop()) {
        (true, None) => return Ok(()),
        (true, Some(object)) => object,
        (false, last) => {
            found.extend(last);
            json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": found})
        }
    };
    print_one(&value, format, out)
}

/// Prints an object, or a list of some.
pub(crate) fn print_one(value: &Value, format: &Format, out: &mut Out) -> Result<(), Fault> {
    match format {
        Format::Structure(structure) => out.print(&structure::print(value, *structure)?),
        Format::Template(template) => out.print(&template.fill(value)?),
        Format::Name | Format::Table { .. } => out.line(&name_of(value)),
    }
}

/// As `pod/a` or `deployment.apps/b`.
pub(crate) fn name_of(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let version = text(&object["apiVersion"]);
    let group = version.split_once('/').map_or("", |(group, _)| group);
    format!("{}/{}", kinds::label(&text(&object["kind"]), group), text(&object["metadata"]["name"]))
}

/// Leaves out what nobody wants to read.
pub(crate) fn trim(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}
