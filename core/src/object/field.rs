//! Single fields of an object, looked up in its text.

use std::borrow::Cow;

use serde_json::Value;

use super::Object;
use crate::json::{Flaw, Keep, Scanner};

impl Object {
    /// The scalar at a path such as `spec.nodeName`, as [`FieldSelector`](crate::FieldSelector) takes paths and
    /// scalars: strings as they are, booleans and numbers as JSON prints them, anything else not at all.
    pub fn field(&self, path: &str) -> Option<Cow<'_, str>> {
        match path {
            "metadata.name" => Some(Cow::Borrowed(self.name())),
            "metadata.namespace" => self.namespace().map(Cow::Borrowed),
            _ => scalar(resolve(self.json(), path)?),
        }
    }
}

/// The text of the value at `path`: a member whose name is all that is left of the path goes before a first step.
fn resolve<'a>(json: &'a str, path: &str) -> Option<&'a str> {
    let (mut value, mut rest) = (json, path);
    loop {
        let (step, deeper) = rest.split_once('.').map_or((rest, None), |(step, deeper)| (step, Some(deeper)));
        match value.as_bytes().first()? {
            b'{' => {
                let (whole, first) = members(value, rest, step)?;
                if whole.is_some() {
                    return whole;
                }
                value = first?;
            }
            b'[' => value = element(value, step.parse().ok()?)?,
            _ => return None,
        }
        match deeper {
            Some(deeper) => rest = deeper,
            None => return Some(value),
        }
    }
}

/// The last members of these two names.
fn members<'a>(object: &'a str, one: &str, other: &str) -> Option<(Option<&'a str>, Option<&'a str>)> {
    let mut found = (None, None);
    let mut scanner = Scanner::new(object);
    let scanned = scanner.members(|scanner, key| {
        let value = skipped(scanner)?;
        let key = key.value(object);
        if key == one {
            found.0 = Some(value);
        }
        if key == other {
            found.1 = Some(value);
        }
        Ok(Keep::Yes)
    });
    scanned.ok().map(|_| found)
}

fn element(array: &str, index: usize) -> Option<&str> {
    let mut found = None;
    let mut scanner = Scanner::new(array);
    let scanned = scanner.elements(|scanner, at| {
        let value = skipped(scanner)?;
        if at == index {
            found = Some(value);
        }
        Ok(())
    });
    scanned.ok().and(found)
}

fn skipped<'a>(scanner: &mut Scanner<'a>) -> Result<&'a str, Flaw> {
    let start = scanner.scanned();
    scanner.skip()?;
    Ok(&scanner.text()[start..scanner.scanned()])
}

fn scalar(json: &str) -> Option<Cow<'_, str>> {
    match json.as_bytes().first()? {
        b'"' => Some(Scanner::new(json).string().ok()?.value(json)),
        b't' | b'f' => Some(Cow::Borrowed(json)),
        b'-' | b'0'..=b'9' => serde_json::from_str::<Value>(json).ok().map(|number| Cow::Owned(number.to_string())),
        _ => None,
    }
}
