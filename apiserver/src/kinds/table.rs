//! Reads the table of kinds. Its head describes the format.

use std::collections::BTreeMap;

use thiserror::Error;

use super::{Container, Field, Group, Kind, Kinds, ListType, Resource, Shape, Struct, StructId, Subresource};

/// A line of the table that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line} of the table of kinds: {reason}")]
#[non_exhaustive]
pub struct TableError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

pub(super) fn parse(table: &'static str) -> Result<Kinds, TableError> {
    let mut reader = Reader { ids: struct_ids(table)?, ..Reader::default() };
    for (index, line) in table.lines().enumerate() {
        reader.line(line).map_err(|reason| TableError { line: index + 1, reason })?;
    }
    let always = |package, name| {
        let missing = || TableError { line: table.lines().count(), reason: format!("no type {package}.{name}") };
        reader.ids.get(&(package, name)).copied().ok_or_else(missing)
    };
    let schema = always("apiextensions/v1", "JSONSchemaProps")?;
    let object_meta = always("meta/v1", "ObjectMeta")?;
    let resource_index =
        reader.resources.iter().enumerate().map(|(index, r)| ([r.group, r.version, r.plural], index)).collect();
    Ok(Kinds {
        groups: reader.groups,
        resources: reader.resources,
        resource_index,
        kinds: reader.kinds,
        everywhere: reader.everywhere,
        structs: reader.structs,
        schema,
        object_meta,
    })
}

type Line<T> = Result<T, String>;

/// Types refer to later ones, so their ids are given out in a first pass over the table.
fn struct_ids(table: &'static str) -> Result<BTreeMap<(&'static str, &'static str), StructId>, TableError> {
    let mut ids = BTreeMap::new();
    let mut package = "";
    for (index, line) in table.lines().enumerate() {
        let fail = |reason: &str| TableError { line: index + 1, reason: reason.into() };
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            _ if line.starts_with(' ') => {}
            (Some("package"), Some(id)) => package = id,
            (Some("struct"), Some(name)) => {
                let id = u16::try_from(ids.len()).map_err(|_| fail("too many types"))?;
                if ids.insert((package, name), StructId(id)).is_some() {
                    return Err(fail("type twice"));
                }
            }
            _ => {}
        }
    }
    Ok(ids)
}

#[derive(Default)]
struct Reader {
    ids: BTreeMap<(&'static str, &'static str), StructId>,
    groups: Vec<Group>,
    resources: Vec<Resource>,
    kinds: BTreeMap<[&'static str; 3], Kind>,
    everywhere: BTreeMap<&'static str, StructId>,
    structs: Vec<Struct>,
    package: (&'static str, &'static str),
}

impl Reader {
    fn line(&mut self, line: &'static str) -> Line<()> {
        let words: Vec<&'static str> = line.split_whitespace().collect();
        match (line.starts_with(' '), words.as_slice()) {
            (_, []) | (false, ["#", ..]) => Ok(()),
            (false, ["group", name, versions @ ..]) => {
                let name = if *name == "-" { "" } else { name };
                self.groups.push(Group { name, versions: versions.to_vec() });
                Ok(())
            }
            (false, ["resource", gv, plural, singular, scope, kind, verbs, rest @ ..]) => {
                self.resource([gv, plural, singular, scope, kind, verbs], rest)
            }
            (false, ["package", id, openapi]) => {
                self.package = (id, openapi);
                Ok(())
            }
            (false, ["struct", name, rest @ ..]) => self.structure(name, rest),
            (true, [name, rest @ ..]) => match name.strip_prefix('/') {
                Some(name) => self.subresource(name, rest),
                None => self.field(name, rest),
            },
            _ => Err(format!("unknown line {line:?}")),
        }
    }

    fn resource(&mut self, words: [&'static str; 6], rest: &[&'static str]) -> Line<()> {
        let [gv, plural, singular, scope, kind, verbs] = words;
        let (group, version) = group_version(gv);
        let namespaced = match scope {
            "ns" => true,
            "cluster" => false,
            _ => return Err(format!("scope {scope:?}")),
        };
        let mut resource = Resource {
            group,
            version,
            plural,
            singular,
            namespaced,
            kind,
            verbs: by_comma(verbs),
            short_names: Vec::new(),
            categories: Vec::new(),
            storage_version_hash: None,
            subresources: Vec::new(),
        };
        for word in rest {
            match word.split_once('=') {
                Some(("short", names)) => resource.short_names = by_comma(names),
                Some(("cat", names)) => resource.categories = by_comma(names),
                Some(("hash", hash)) => resource.storage_version_hash = Some(hash),
                _ => return Err(format!("unknown word {word:?}")),
            }
        }
        self.resources.push(resource);
        Ok(())
    }

    fn subresource(&mut self, name: &'static str, rest: &[&'static str]) -> Line<()> {
        let parent = self.resources.last_mut().ok_or("a subresource without a resource")?;
        let (group, version, kind, verbs) = match rest {
            [kind, verbs] => (parent.group, parent.version, kind, verbs),
            [gv, kind, verbs] => {
                let (group, version) = group_version(gv);
                (group, version, kind, verbs)
            }
            _ => return Err("a subresource has a kind and verbs".into()),
        };
        parent.subresources.push(Subresource { name, group, version, kind, verbs: by_comma(verbs) });
        Ok(())
    }

    fn structure(&mut self, name: &'static str, rest: &[&'static str]) -> Line<()> {
        let structure = self.named(name)?;
        let mut atomic = false;
        for word in rest {
            match (*word, word.strip_prefix("kind=")) {
                ("atomic", _) => atomic = true,
                (_, Some("*")) => {
                    self.everywhere.insert(name, structure);
                }
                (_, Some(gv)) => {
                    let (group, version) = group_version(gv);
                    self.kinds.insert([group, version, name], Kind { kind: name, structure });
                }
                _ => return Err(format!("unknown word {word:?}")),
            }
        }
        let package = self.package;
        self.structs.push(Struct { name, package: package.1, go_package: package.0, atomic, fields: Vec::new() });
        Ok(())
    }

    fn field(&mut self, name: &'static str, rest: &[&'static str]) -> Line<()> {
        let [kind, number, flags @ ..] = rest else { return Err("a field has a type and a number".into()) };
        let (container, shape) = self.field_type(kind)?;
        let number = number.parse().map_err(|_| format!("number {number:?}"))?;
        let name = if name == "~" { "" } else { name };
        let mut field = Field {
            name,
            container,
            shape,
            number,
            omit_empty: false,
            omit_zero: false,
            required: false,
            patch_strategy: None,
            merge_key: None,
            list: ListType::Atomic,
            atomic_map: false,
            go_type: None,
            go_element: None,
        };
        for flag in flags {
            set_flag(&mut field, flag)?;
        }
        if field.is_inlined() && (container, field.structure().is_some()) != (Container::One, true) {
            return Err("only one value of a type can be inlined".into());
        }
        self.structs.last_mut().ok_or("a field without a type")?.fields.push(field);
        Ok(())
    }

    fn field_type(&self, text: &'static str) -> Line<(Container, Shape)> {
        let containers = [("*", Container::Pointer), ("[]", Container::List), ("{}", Container::Map)];
        let (container, name) = containers
            .iter()
            .find_map(|(prefix, container)| Some((*container, text.strip_prefix(prefix)?)))
            .unwrap_or((Container::One, text));
        match SHAPES.iter().find(|(known, _)| *known == name) {
            Some((_, shape)) => Ok((container, *shape)),
            None => Ok((container, Shape::Struct(self.named(name)?))),
        }
    }

    /// The type of this name, in the current package unless the name says another: `meta/v1.ObjectMeta`.
    fn named(&self, name: &'static str) -> Line<StructId> {
        let key = name.rsplit_once('.').unwrap_or((self.package.0, name));
        self.ids.get(&key).copied().ok_or_else(|| format!("unknown type {name:?}"))
    }
}

fn set_flag(field: &mut Field, flag: &'static str) -> Line<()> {
    match flag.split_once('=') {
        Some(("patch", strategy)) => field.patch_strategy = Some(strategy),
        Some(("merge", key)) => field.merge_key = Some(key),
        Some(("list", "set")) => field.list = ListType::Set,
        Some(("list", list)) => {
            let keys = list.strip_prefix("map:").ok_or_else(|| format!("list type {list:?}"))?;
            field.list = ListType::Map(by_comma(keys));
        }
        Some(("map", "atomic")) => field.atomic_map = true,
        Some(("go", name)) => field.go_type = Some(name),
        Some(("of", name)) => field.go_element = Some(name),
        Some(_) => return Err(format!("unknown flag {flag:?}")),
        None => {
            for letter in flag.chars() {
                match letter {
                    'o' => field.omit_empty = true,
                    'z' => field.omit_zero = true,
                    'r' => field.required = true,
                    _ => return Err(format!("unknown flag {flag:?}")),
                }
            }
        }
    }
    Ok(())
}

fn group_version(text: &'static str) -> (&'static str, &'static str) {
    text.split_once('/').unwrap_or(("", text))
}

fn by_comma(text: &'static str) -> Vec<&'static str> {
    text.split(',').collect()
}

const SHAPES: [(&str, Shape); 17] = [
    ("string", Shape::String),
    ("bool", Shape::Bool),
    ("int32", Shape::Int32),
    ("int64", Shape::Int64),
    ("double", Shape::Double),
    ("bytes", Shape::Bytes),
    ("!Time", Shape::Time),
    ("!MicroTime", Shape::MicroTime),
    ("!Quantity", Shape::Quantity),
    ("!IntOrString", Shape::IntOrString),
    ("!RawExtension", Shape::RawExtension),
    ("!FieldsV1", Shape::FieldsV1),
    ("!JSON", Shape::Json),
    ("!SchemaOrArray", Shape::SchemaOrArray),
    ("!SchemaOrBool", Shape::SchemaOrBool),
    ("!SchemaOrStrings", Shape::SchemaOrStrings),
    ("!Strings", Shape::Strings),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_line_is_named() {
        let cases = [
            ("nonsense", 1, "unknown line"),
            ("group g v1\n field string 1", 2, "a field without a type"),
            (" /status Pod get", 1, "a subresource without a resource"),
            ("resource v1 pods pod planet Pod get", 1, "scope"),
            ("resource v1 pods pod ns Pod get colour=red", 1, "unknown word"),
            ("package p P\nstruct A\n a B 1", 3, "unknown type \"B\""),
            ("package p P\nstruct A\n a string one", 3, "number"),
            ("package p P\nstruct A\n a []string 1 list=bag", 3, "list type"),
            ("package p P\nstruct A\n a string 1 x", 3, "unknown flag"),
            ("package p P\nstruct A\n ~ *A 1", 3, "inlined"),
            ("package p P\nstruct A\nstruct A", 3, "type twice"),
        ];
        for (table, line, reason) in cases {
            let error = parse(table).unwrap_err();
            assert_eq!(error.line, line, "{error}");
            assert!(error.reason.contains(reason), "{error} lacks {reason:?}");
        }
    }
}
