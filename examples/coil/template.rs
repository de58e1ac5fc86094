//! `-o jsonpath=`: text around expressions, with `range`.

use cloudcoil_core::{JsonPath, jsonpath};
use serde_json::Value;

use crate::fault::Fault;

/// A parsed template, such as `{range .items[*]}{.metadata.name}{"\n"}{end}`.
#[derive(Debug)]
pub(crate) struct Template(Vec<Part>);

#[derive(Debug)]
enum Part {
    Text(String),
    Find(JsonPath),
    Range(JsonPath, Vec<Self>),
}

impl Template {
    pub(crate) fn parse(text: &str) -> Result<Self, Fault> {
        // What is no template is an expression by itself.
        let owned = if text.contains('{') { text.to_owned() } else { format!("{{{text}}}") };
        let mut rest = owned.as_str();
        let parts = parts(&mut rest, false)?;
        Ok(Self(parts))
    }

    pub(crate) fn fill(&self, value: &Value) -> Result<String, Fault> {
        let mut text = String::new();
        fill(&self.0, value, &mut text)?;
        Ok(text)
    }
}

fn parts(rest: &mut &str, nested: bool) -> Result<Vec<Part>, Fault> {
    let mut parts = Vec::new();
    while let Some(start) = rest.find('{') {
        if start > 0 {
            parts.push(Part::Text(rest[..start].to_owned()));
        }
        let inner = &rest[start + 1..];
        let end = closing(inner).ok_or_else(|| wrong(format!("no }} after {{{inner}")))?;
        *rest = &inner[end + 1..];
        let inner = inner[..end].trim();
        match inner.strip_prefix("range").filter(|path| path.starts_with([' ', '\t', '.', '@', '['])) {
            Some(path) => parts.push(Part::Range(path_of(path.trim())?, self::parts(rest, true)?)),
            None if inner == "end" && nested => return Ok(parts),
            None if inner == "end" => return Err(wrong("{end} without a {range}".to_owned())),
            None => expressions(inner, &mut parts)?,
        }
    }
    if nested {
        return Err(wrong("{range} without an {end}".to_owned()));
    }
    if !rest.is_empty() {
        parts.push(Part::Text((*rest).to_owned()));
    }
    Ok(parts)
}

/// Where the expression ends that begins before `text`; braces within quotes do not end it.
fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut escaped = false;
    for (index, c) in text.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (_, '\\') => escaped = true,
            (Some(open), c) if open == c => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '}') => return Some(index),
            _ => {}
        }
    }
    None
}

fn expressions(inner: &str, parts: &mut Vec<Part>) -> Result<(), Fault> {
    match inner.chars().next() {
        Some(quote @ ('"' | '\'')) if inner.len() > 1 && inner.ends_with(quote) => {
            parts.push(Part::Text(unquoted(&inner[1..inner.len() - 1])));
        }
        _ => parts.push(Part::Find(path_of(inner)?)),
    }
    Ok(())
}

fn unquoted(text: &str) -> String {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        plain.push(match c {
            '\\' => match characters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r') => '\r',
                Some(other) => other,
                None => '\\',
            },
            c => c,
        });
    }
    plain
}

fn path_of(text: &str) -> Result<JsonPath, Fault> {
    // The whole object, which has no name of its own.
    JsonPath::parse(text).map_err(|error| wrong(error.to_string()))
}

fn wrong(message: String) -> Fault {
    Fault::misuse(format!("the template after jsonpath= is wrong: {message}"))
}

fn fill(parts: &[Part], value: &Value, text: &mut String) -> Result<(), Fault> {
    let failed = |error: jsonpath::JsonPathError| Fault::failed(format!("jsonpath: {error}"));
    for part in parts {
        match part {
            Part::Text(plain) => text.push_str(plain),
            Part::Find(path) => {
                let found: Vec<String> = path.find(value).map_err(failed)?.into_iter().map(jsonpath::printed).collect();
                text.push_str(&found.join(" "));
            }
            Part::Range(path, inner) => {
                for each in path.find(value).map_err(failed)? {
                    fill(inner, each, text)?;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn text_expressions_and_ranges_are_printed_in_turn() {
        let list = json!({"items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}], "n": 2});
        for (template, printed) in [
            (".n", "2"),
            ("{.n} of {.items[*].metadata.name}", "2 of a b"),
            (r#"{range .items[*]}{.metadata.name}{"\t}\n"}{end}{.n}"#, "a\t}\nb\t}\n2"),
            ("{range .items[*]}{range .metadata}{.name}{end},{end}", "a,b,"),
            ("{.none}", ""),
        ] {
            assert_eq!(Template::parse(template).unwrap().fill(&list).unwrap(), printed, "{template}");
        }
        for template in ["{.a", "{end}", "{range .items[*]}{.a}", "{.a[}", "{\"a}"] {
            assert!(matches!(Template::parse(template), Err(Fault::Misuse(_))), "{template}");
        }
    }
}
