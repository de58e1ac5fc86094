//! One document: its syntax, and the objects in it.

use serde::de::DeserializeSeed as _;
use serde_json::{Map, Value};

use super::error::{ManifestError, ManifestProblem};
use super::numbers::{DUPLICATE, Strict, whole};
use crate::config::yaml::{Flaw, Node};
use crate::resource::{KnownResource, Resource as _};
use crate::response;
use crate::unstructured::Unstructured;

/// An object, and where it is from.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ManifestObject {
    /// The object, with `apiVersion` and `kind`.
    pub object: Unstructured,
    /// Where it is from.
    pub place: Place,
}

/// Where an object is from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// Where the text is from, such as the path of a file.
    pub source_name: Box<str>,
    /// Which document of the text, from 1 and without those that are empty.
    pub document: usize,
    /// At which line of the text the document begins, from 1.
    pub line: usize,
}

impl ManifestObject {
    /// An object that is from no text; `source` is what is said of it instead.
    pub fn new(object: Unstructured, source: &str) -> Self {
        Self { object, place: Place { source_name: source.into(), document: 0, line: 0 } }
    }

    /// The object as a value of a type that Rust knows.
    ///
    /// # Errors
    /// [`ManifestProblem::WrongType`] when it is of another type, [`ManifestProblem::Misfit`] when a field does not fit.
    pub fn decode<K: KnownResource>(&self) -> Result<K, ManifestError> {
        let wanted = K::resource_type();
        if (self.object.api_version(), self.object.kind()) != (&*wanted.api_version(), &*wanted.kind) {
            let name = |api_version: &str, kind: &str| format!("{api_version} {kind}").into();
            return Err(self.place.error(ManifestProblem::WrongType {
                wanted: name(&wanted.api_version(), &wanted.kind),
                found: name(self.object.api_version(), self.object.kind()),
            }));
        }
        let json = serde_json::to_string(&self.object).expect("an object of JSON values can be written as JSON");
        response::decode_object(&json)
            .map_err(|error| self.place.error(ManifestProblem::Misfit { path: error.path, message: error.message }))
    }
}

impl Place {
    fn error(&self, problem: ManifestProblem) -> ManifestError {
        ManifestError::new(&self.source_name, self.document, self.line, problem)
    }
}

/// `deploy.yaml: document 2 at line 14`.
impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.source_name)?;
        match self.document {
            0 => Ok(()),
            document => write!(f, ": document {document} at line {}", self.line),
        }
    }
}

/// The text of one document that is not empty.
pub(super) struct Document<'a> {
    pub(super) text: &'a str,
    /// The line at which the text begins.
    pub(super) first_line: usize,
    /// The line of its first content.
    pub(super) content_line: usize,
    pub(super) number: usize,
}

impl Document<'_> {
    /// The objects in it; none if it is `null`.
    pub(super) fn read(&self, source: &str) -> Result<Vec<ManifestObject>, ManifestError> {
        let place = Place { source_name: source.into(), document: self.number, line: self.content_line };
        let values = self.values().map_err(|(line, problem)| {
            let line = if line == 0 { self.content_line } else { self.first_line + line - 1 };
            ManifestError::new(source, self.number, line, problem)
        })?;
        let mut objects = Vec::new();
        for value in values.into_iter().filter(|value| !value.is_null()) {
            collect(value, None, 0, &mut objects).map_err(|problem| place.error(problem))?;
        }
        Ok(objects.into_iter().map(|object| ManifestObject { object, place: place.clone() }).collect())
    }

    /// The values in it: one of YAML, or of JSON one after the other. An error comes with its line.
    fn values(&self) -> Result<Vec<Value>, (usize, ManifestProblem)> {
        let is_flow = self.text.trim_start().starts_with(['{', '[']);
        let json = if is_flow { Some(self.json()) } else { None };
        match json {
            Some(Ok(values)) => Ok(values),
            // What begins as JSON may yet be YAML; if it is neither, what JSON says of it is plainer.
            Some(Err(error @ (_, ManifestProblem::DuplicateKey(_)))) => Err(error),
            Some(Err(error)) => self.yaml().map_err(|_| error),
            None => self.yaml(),
        }
    }

    fn json(&self) -> Result<Vec<Value>, (usize, ManifestProblem)> {
        let mut values = Vec::new();
        let mut rest = self.text;
        let mut before = 0;
        while !rest.trim_start().is_empty() {
            let mut deserializer = serde_json::Deserializer::from_str(rest);
            let value = Strict
                .deserialize(&mut deserializer)
                .map_err(|error| (before + error.line(), problem(&error.to_string())))?;
            values.push(value);
            let (read, after) = rest.split_at(deserializer.into_iter::<serde::de::IgnoredAny>().byte_offset());
            before += read.matches('\n').count();
            rest = after;
        }
        Ok(values)
    }

    fn yaml(&self) -> Result<Vec<Value>, (usize, ManifestProblem)> {
        match Node::parse_unique(self.text) {
            Ok(node) => Ok(vec![whole(node.to_json())]),
            Err(Flaw { error, key, detail }) => {
                let problem = match key {
                    Some(key) => ManifestProblem::DuplicateKey(key.into()),
                    None if detail.is_empty() => ManifestProblem::Syntax(error.problem.into()),
                    None => ManifestProblem::Syntax(format!("no YAML: {detail}").into()),
                };
                Err((usize::try_from(error.line).unwrap_or(0), problem))
            }
        }
    }
}

/// What the parser of JSON says, without the place, which is told in terms of the whole text.
fn problem(message: &str) -> ManifestProblem {
    let message = message.rsplit_once(" at line ").map_or(message, |(message, _)| message);
    match message.strip_prefix(DUPLICATE) {
        Some(key) => ManifestProblem::DuplicateKey(serde_json::from_str(key).unwrap_or_else(|_| key.into())),
        None => ManifestProblem::Syntax(format!("no JSON: {message}").into()),
    }
}

/// Adds an object, or the objects of a list. The items of a list of one kind need not say theirs.
fn collect(
    value: Value,
    of_list: Option<(&str, &str)>,
    depth: usize,
    objects: &mut Vec<Unstructured>,
) -> Result<(), ManifestProblem> {
    let mut fields = match value {
        Value::Object(fields) => fields,
        other => return Err(ManifestProblem::NotAnObject(what(&other))),
    };
    if let Some((api_version, kind)) = of_list {
        for (field, text) in [("apiVersion", api_version), ("kind", kind)] {
            if !has_text(&fields, field) {
                fields.insert(field.to_owned(), text.into());
            }
        }
    }
    if !has_text(&fields, "kind") {
        return Err(ManifestProblem::MissingKind);
    }
    if !has_text(&fields, "apiVersion") {
        return Err(ManifestProblem::MissingApiVersion);
    }
    let object = Unstructured::from(fields);
    let Some(item_kind) = object.kind().strip_suffix("List") else {
        objects.push(object);
        return Ok(());
    };
    match object.field("items") {
        Some(Value::Array(items)) if depth < MAX_DEPTH => {
            let of_list = (object.api_version(), item_kind);
            let of_list = Some(of_list).filter(|(_, kind)| !kind.is_empty());
            items.iter().try_for_each(|item| collect(item.clone(), of_list, depth + 1, objects))
        }
        Some(Value::Null) => Ok(()),
        // A kind may be called so and be no list.
        _ if object.metadata().generate_name().is_some() || !object.name().is_empty() => {
            objects.push(object);
            Ok(())
        }
        _ => Ok(()),
    }
}

fn has_text(fields: &Map<String, Value>, field: &str) -> bool {
    fields.get(field).and_then(Value::as_str).is_some_and(|text| !text.is_empty())
}

const fn what(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// How deep lists of lists may nest.
const MAX_DEPTH: usize = 16;
