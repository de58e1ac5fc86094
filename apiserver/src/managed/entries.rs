//! `managedFields`: who owns which fields, and since when.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::set::Set;
use super::walk::Comparison;

/// Who owns which fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Owners(pub(crate) BTreeMap<Owner, Owned>);

/// Who owns fields: a manager by one operation. The order is that in which conflicts are told.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner {
    pub(crate) manager: String,
    pub(crate) operation: Operation,
    /// The version in which fields were updated. Who applies is the same in every version.
    pub(crate) version: String,
    pub(crate) subresource: String,
}

/// How fields came to be owned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Apply,
    Update,
}

/// What is owned.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Owned {
    /// The version whose names the fields have.
    pub(crate) version: String,
    pub(crate) fields: Set,
    /// When it last changed, as text.
    pub(crate) time: Option<String>,
    /// The entry as it was read, when nothing of it changes; its fields are not read then.
    pub(crate) kept: Option<Value>,
}

impl Owned {
    pub(crate) fn new(version: &str, fields: Set) -> Self {
        Self { version: version.to_owned(), fields, time: None, kept: None }
    }
}

impl Owner {
    /// Whoever updates an object.
    pub(crate) fn updating(manager: &str, version: &str, subresource: &str) -> Self {
        let manager = if manager.is_empty() { "unknown" } else { manager };
        Self {
            manager: manager.to_owned(),
            operation: Operation::Update,
            version: version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }

    /// Whoever applies a configuration.
    pub(crate) fn applying(manager: &str, subresource: &str) -> Self {
        Self { operation: Operation::Apply, ..Self::updating(manager, "", subresource) }
    }

    /// As conflicts name it.
    pub(crate) fn describe(&self) -> String {
        let mut text = Value::from(self.manager.as_str()).to_string();
        if !self.subresource.is_empty() {
            text.push_str(&format!(" with subresource {}", Value::from(self.subresource.as_str())));
        }
        if self.operation == Operation::Update {
            text.push_str(&format!(" using {}", self.version));
        }
        text
    }
}

impl Operation {
    const fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

impl Owners {
    /// Whether nobody owns anything.
    pub(crate) fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads `managedFields`; `None` when it cannot be understood, so that nothing of it counts.
    pub(crate) fn read(managed: Option<&Value>) -> Option<Self> {
        Self::read_with(managed, |_, _, _| false)
    }

    /// The same, where an update by `writer` changes no more than `difference`: entries that have no part in it are kept
    /// as they are.
    pub(crate) fn read_touched(managed: Option<&Value>, writer: &Owner, difference: &Comparison) -> Option<Self> {
        let updates = |entry: &&Value| entry["operation"] == Operation::Update.name();
        let entries = managed.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if entries.iter().filter(updates).count() >= MOST_UPDATES {
            return Self::read(managed);
        }
        let Comparison { removed, modified, added } = difference;
        Self::read_with(managed, |owner, version, fields| {
            version == writer.version
                && owner != writer
                && fields
                    .as_object()
                    .is_some_and(|fields| [removed, modified, added].iter().all(|set| !set.meets(fields)))
        })
    }

    fn read_with(managed: Option<&Value>, keeps: impl Fn(&Owner, &str, &Value) -> bool) -> Option<Self> {
        let mut owners = BTreeMap::new();
        for entry in managed.and_then(Value::as_array).into_iter().flatten() {
            let text = |name: &str| entry[name].as_str().unwrap_or_default();
            let operation = match text("operation") {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return None,
            };
            let version = text("apiVersion");
            if version.is_empty() || text("fieldsType") != "FieldsV1" {
                return None;
            }
            let owner = Owner {
                manager: text("manager").to_owned(),
                operation,
                version: if operation == Operation::Update { version.to_owned() } else { String::new() },
                subresource: text("subresource").to_owned(),
            };
            let kept = keeps(&owner, version, &entry["fieldsV1"]).then(|| entry.clone());
            let fields = match &entry["fieldsV1"] {
                _ if kept.is_some() => Set::default(),
                Value::Null => Set::default(),
                fields => Set::from_json(fields)?,
            };
            let time = entry["time"].as_str().map(str::to_owned);
            owners.insert(owner, Owned { time, kept, ..Owned::new(version, fields) });
        }
        Some(Self(owners))
    }

    /// As `managedFields`; nothing when nobody owns anything.
    pub(crate) fn write(&self) -> Option<Value> {
        if self.0.is_empty() {
            return None;
        }
        let mut entries: Vec<_> = self.0.iter().collect();
        entries.sort_by(|(a, owned), (b, other)| {
            let key = |owner: &Owner, owned: &Owned| (owner.operation, owned.time.clone().unwrap_or_default());
            let rest = |owner: &Owner, owned: &Owned| {
                (owner.manager.clone(), owned.version.clone(), owner.subresource.clone())
            };
            key(a, owned).cmp(&key(b, other)).then_with(|| rest(a, owned).cmp(&rest(b, other)))
        });
        Some(entries.into_iter().map(|(owner, owned)| entry(owner, owned)).collect())
    }

    /// Merges the oldest updates into one for each version, when there are too many.
    pub(crate) fn cap(&mut self) {
        let mut updates: Vec<_> = self
            .0
            .iter()
            .filter(|(owner, _)| owner.operation == Operation::Update)
            .map(|(owner, owned)| (owned.time.clone().unwrap_or_default(), owner.clone()))
            .collect();
        let mut left = updates.len();
        updates.sort();
        let mut first: BTreeMap<String, Owner> = BTreeMap::new();
        for (time, owner) in updates {
            if left <= MOST_UPDATES {
                return;
            }
            let version = owner.version.clone();
            let Some(earliest) = first.get(&version) else {
                first.insert(version, owner);
                continue;
            };
            let bucket = Owner::updating(ANCIENT, &version, "");
            if !self.0.contains_key(&bucket)
                && let Some(owned) = self.0.remove(earliest)
            {
                self.0.insert(bucket.clone(), owned);
            }
            if let Some(owned) = self.0.remove(&owner)
                && let Some(old) = self.0.get_mut(&bucket)
            {
                old.fields = std::mem::take(&mut old.fields).union(&owned.fields);
                old.time = Some(time).filter(|time| !time.is_empty());
            }
            left -= 1;
        }
    }
}

fn entry(owner: &Owner, owned: &Owned) -> Value {
    if let Some(kept) = &owned.kept {
        return kept.clone();
    }
    let mut entry = Map::new();
    let mut set = |name: &str, value: &str| entry.insert(name.to_owned(), Value::from(value));
    set("manager", &owner.manager);
    set("operation", owner.operation.name());
    set("apiVersion", &owned.version);
    if let Some(time) = &owned.time {
        set("time", time);
    }
    set("fieldsType", "FieldsV1");
    if !owner.subresource.is_empty() {
        set("subresource", &owner.subresource);
    }
    entry.insert("fieldsV1".to_owned(), owned.fields.to_json());
    Value::Object(entry)
}

/// More updates than this are merged.
const MOST_UPDATES: usize = 10;

/// The manager of updates that were merged.
const ANCIENT: &str = "ancient-changes";

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn written(manager: &str, operation: &str, time: &str, field: &str) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "time": time, "fieldsType": "FieldsV1",
            "fieldsV1": {field: {}}})
    }

    #[test]
    fn applies_come_first_then_the_oldest() {
        let entries = json!([
            written("c", "Update", "2026-01-01T00:00:01Z", "f:a"),
            written("b", "Apply", "2026-01-01T00:00:03Z", "f:a"),
            written("a", "Update", "2026-01-01T00:00:02Z", "f:a"),
        ]);
        let written = Owners::read(Some(&entries)).unwrap().write().unwrap();
        let managers: Vec<_> = written.as_array().unwrap().iter().map(|entry| entry["manager"].clone()).collect();
        assert_eq!(managers, ["b", "c", "a"]);
    }

    #[test]
    fn what_cannot_be_understood_is_no_ownership() {
        for (field, bad) in [("operation", json!("x")), ("apiVersion", json!("")), ("fieldsType", json!("FieldsV2"))] {
            let mut entry = written("a", "Update", "", "f:a");
            entry[field] = bad;
            assert_eq!(Owners::read(Some(&json!([entry]))), None, "{field}");
        }
        assert_eq!(Owners::read(None).unwrap().write(), None);
    }

    #[test]
    fn the_oldest_updates_are_merged_when_there_are_too_many() {
        let entries: Value = (0..13)
            .map(|index| {
                written(
                    &format!("m{index:02}"),
                    "Update",
                    &format!("2026-01-01T00:00:{index:02}Z"),
                    &format!("f:{index}"),
                )
            })
            .collect();
        let mut owners = Owners::read(Some(&entries)).unwrap();
        owners.cap();
        let written = owners.write().unwrap();
        assert_eq!(written.as_array().unwrap().len(), MOST_UPDATES);
        assert_eq!(written[0]["manager"], ANCIENT);
        assert_eq!(written[0]["time"], "2026-01-01T00:00:03Z");
        assert_eq!(written[0]["fieldsV1"], json!({"f:0": {}, "f:1": {}, "f:2": {}, "f:3": {}}));
        assert_eq!(written[1]["manager"], "m04");
    }
}
