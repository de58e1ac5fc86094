//! Files of objects.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use cloudcoil_core::manifest::{self, ManifestObject};
use serde_json::Value;

use crate::args::Files;
use crate::fault::Fault;

/// A file's name, and its content.
pub(crate) struct Source {
    pub(crate) origin: String,
    pub(crate) content: Vec<u8>,
}

/// The objects in all files, those of lists one by one.
pub(crate) fn objects(files: &Files) -> Result<Vec<ManifestObject>, Fault> {
    let mut objects = Vec::new();
    for Source { origin, content } in read(files)? {
        objects.extend(manifest::parse(&origin, &content).map_err(|error| Fault::failed(error.to_string()))?);
    }
    Ok(objects)
}

/// Reads all files, those of a folder in the order of their names.
fn read(files: &Files) -> Result<Vec<Source>, Fault> {
    if files.filename.is_empty() {
        return Err(Fault::misuse("name a file, a folder, or - for standard input with -f"));
    }
    let mut sources = Vec::new();
    for path in &files.filename {
        if path.as_os_str() == "-" {
            sources.push(Source { origin: "standard input".to_owned(), content: standard_input()? });
        } else if path.is_dir() {
            folder(path, files.recursive, &mut sources)?;
        } else {
            sources.push(file(path)?);
        }
    }
    Ok(sources)
}

/// Reads one file, or standard input for `-`.
pub(crate) fn one(path: &Path) -> Result<Source, Fault> {
    if path.as_os_str() == "-" {
        return Ok(Source { origin: "standard input".to_owned(), content: standard_input()? });
    }
    file(path)
}

/// The one value in a text.
pub(crate) fn value(origin: &str, content: &[u8]) -> Result<Value, Fault> {
    let mut values = values(origin, content)?;
    match values.len() {
        1 => Ok(values.remove(0)),
        _ => Err(Fault::failed(format!("{origin}: holds not one document, but {}", values.len()))),
    }
}

/// The documents of a text, which is JSON or YAML.
fn values(origin: &str, content: &[u8]) -> Result<Vec<Value>, Fault> {
    let text = str::from_utf8(content).map_err(|_| Fault::failed(format!("{origin}: is not UTF-8")))?;
    let json: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(text).into_iter().collect();
    match json {
        Ok(values) => Ok(values),
        Err(_) => serde_saphyr::from_multiple(text).map_err(|error| {
            let place = error.location().map(|at| format!(" at line {}", at.line())).unwrap_or_default();
            Fault::failed(format!("{origin}{place}: no YAML: {}", error.without_snippet()))
        }),
    }
}

fn standard_input() -> Result<Vec<u8>, Fault> {
    let mut content = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut content);
    read.map_err(|error| Fault::failed(format!("standard input cannot be read: {error}")))?;
    Ok(content)
}

fn file(path: &Path) -> Result<Source, Fault> {
    let content = std::fs::read(path).map_err(|error| unreadable(path, &error))?;
    Ok(Source { origin: path.display().to_string(), content })
}

fn folder(path: &Path, recursive: bool, sources: &mut Vec<Source>) -> Result<(), Fault> {
    let entries = std::fs::read_dir(path).map_err(|error| unreadable(path, &error))?;
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .map_err(|error| unreadable(path, &error))?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            if recursive {
                folder(&path, recursive, sources)?;
            }
        } else if path.extension().is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known)) {
            sources.push(file(&path)?);
        }
    }
    Ok(())
}

fn unreadable(path: &Path, error: &std::io::Error) -> Fault {
    match error.kind() {
        std::io::ErrorKind::NotFound => Fault::failed(format!("{}: there is no such file", path.display())),
        _ => Fault::failed(format!("{}: cannot be read: {error}", path.display())),
    }
}

const EXTENSIONS: &[&str] = &["json", "yaml", "yml"];
