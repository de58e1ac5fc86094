//! Objects as JSON and YAML.

use serde_json::Value;

use crate::args::Structure;
use crate::fault::Fault;

/// The text of an object, with a line break at its end.
pub(crate) fn print(value: &Value, how: Structure) -> Result<String, Fault> {
    match how {
        Structure::Json => json(value),
        Structure::Yaml => yaml(value),
    }
}

/// Indented by four, with sorted keys, as kubectl does.
fn json(value: &Value) -> Result<String, Fault> {
    let mut bytes = Vec::new();
    let format = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, format);
    serde::Serialize::serialize(value, &mut serializer).map_err(unprintable)?;
    bytes.push(b'\n');
    String::from_utf8(bytes).map_err(unprintable)
}

fn yaml(value: &Value) -> Result<String, Fault> {
    let mut text = serde_saphyr::to_string(value).map_err(unprintable)?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

fn unprintable(error: impl std::fmt::Display) -> Fault {
    Fault::failed(format!("the object cannot be printed: {error}"))
}
