//! Strategic merge patch: a merge patch that knows which lists are keyed, as the fields of built-in kinds say it.
//!
//! See <https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/strategic-merge-patch.md>.

use serde_json::{Map, Value};

use crate::kinds::{Container, Field, Kinds, StructId};

/// Merges `patch` into an object of type `id`.
///
/// # Errors
/// What is wrong with the patch.
pub(crate) fn merge(
    kinds: &Kinds,
    id: StructId,
    original: Map<String, Value>,
    patch: Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    Merger { kinds }.object(Some(id), original, patch)
}

struct Merger<'k> {
    kinds: &'k Kinds,
}

/// How a list is merged.
struct ListRule<'k> {
    merges: bool,
    key: Option<&'k str>,
    element: Option<StructId>,
}

impl<'k> Merger<'k> {
    fn object(
        &self,
        id: Option<StructId>,
        mut original: Map<String, Value>,
        mut patch: Map<String, Value>,
    ) -> Result<Map<String, Value>, String> {
        match patch.remove(DIRECTIVE) {
            None => {}
            Some(Value::String(text)) if text == "replace" => return Ok(plain_object(patch)),
            Some(Value::String(text)) if text == "delete" => return Ok(Map::new()),
            Some(other) => return Err(format!("unknown patch type: {other}")),
        }
        retain(&mut original, &mut patch)?;
        let orders = take_prefixed(&mut patch, ORDER)?;
        let deletions = take_prefixed(&mut patch, DELETION)?;
        let before: Vec<_> = orders.iter().map(|(name, _)| list(original.get(name)).to_vec()).collect();
        for (name, value) in patch {
            let field = id.and_then(|id| self.kinds.field(id, &name));
            let merged = match (original.remove(&name), value) {
                (_, Value::Null) => None,
                (Some(Value::Object(old)), Value::Object(new)) => self.nested(field, old, new)?,
                (Some(Value::Array(old)), Value::Array(new)) => {
                    Some(Value::Array(self.list(&self.rule(field), old, new)?))
                }
                (_, value) => plain(value),
            };
            if let Some(merged) = merged {
                original.insert(name, merged);
            }
        }
        for (name, gone) in deletions {
            if let Some(Value::Array(list)) = original.get_mut(&name) {
                list.retain(|element| !gone.contains(element));
            }
        }
        for ((name, order), before) in orders.into_iter().zip(before) {
            let rule = self.rule(id.and_then(|id| self.kinds.field(id, &name)));
            if let Some(Value::Array(list)) = original.get_mut(&name) {
                let merged = std::mem::take(list);
                *list = sorted(merged, &order, &before, rule.key);
            }
        }
        Ok(original)
    }

    fn nested(
        &self,
        field: Option<&Field>,
        old: Map<String, Value>,
        new: Map<String, Value>,
    ) -> Result<Option<Value>, String> {
        let replaces =
            field.and_then(|field| field.patch_strategy).is_some_and(|text| text.split(',').any(|s| s == "replace"));
        if replaces {
            return Ok(Some(Value::Object(new)));
        }
        // The values of a map have names that are no fields.
        let id = field.filter(|field| field.container != Container::Map).and_then(Field::structure);
        self.object(id, old, new).map(|merged| Some(Value::Object(merged)))
    }

    fn rule<'f>(&self, field: Option<&'f Field>) -> ListRule<'f> {
        let strategies = field.and_then(|field| field.patch_strategy).unwrap_or_default();
        ListRule {
            merges: strategies.split(',').any(|strategy| strategy == "merge"),
            key: field.and_then(|field| field.merge_key),
            element: field.and_then(Field::structure),
        }
    }

    fn list(&self, rule: &ListRule<'_>, old: Vec<Value>, new: Vec<Value>) -> Result<Vec<Value>, String> {
        if !rule.merges {
            return Ok(new);
        }
        let Some(key) = rule.key else {
            let mut merged = old.clone();
            for value in &new {
                if !merged.contains(value) {
                    merged.push(value.clone());
                }
            }
            return Ok(sorted(merged, &new, &old, None));
        };
        let mut merged = old.clone();
        let mut wanted = Vec::new();
        let mut replaces = false;
        for element in new {
            match element.get(DIRECTIVE).and_then(Value::as_str) {
                Some("delete") => {
                    let gone = element.get(key).ok_or_else(|| no_key(&element, key))?;
                    merged.retain(|kept| kept.get(key) != Some(gone));
                }
                Some("replace") => replaces = true,
                Some(other) => return Err(format!("unknown patch type: {other}")),
                None => wanted.push(element),
            }
        }
        if replaces {
            return Ok(wanted);
        }
        for element in &wanted {
            let value = element.get(key).ok_or_else(|| no_key(element, key))?;
            match merged.iter_mut().find(|kept| kept.get(key) == Some(value)) {
                Some(kept) => {
                    let (Value::Object(old), Value::Object(new)) = (std::mem::take(kept), element.clone()) else {
                        return Err(no_key(element, key));
                    };
                    *kept = Value::Object(self.object(rule.element, old, new)?);
                }
                None => merged.extend(plain(element.clone())),
            }
        }
        Ok(sorted(merged, &wanted, &old, Some(key)))
    }
}

fn no_key(element: &Value, key: &str) -> String {
    format!("map: {element} does not contain declared merge key: {key}")
}

/// Keeps of the original only what the patch says to keep.
fn retain(original: &mut Map<String, Value>, patch: &mut Map<String, Value>) -> Result<(), String> {
    const BAD: &str = "invalid patch format of $retainKeys";
    let Some(keys) = patch.remove("$retainKeys") else { return Ok(()) };
    let keys: Vec<_> = keys.as_array().ok_or(BAD)?.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let directive = |name: &str| name.starts_with(ORDER) || name.starts_with(DELETION);
    if patch.iter().any(|(name, value)| !value.is_null() && !directive(name) && !keys.contains(name)) {
        return Err(BAD.to_owned());
    }
    original.retain(|name, _| keys.contains(name));
    Ok(())
}

/// Takes the directives of one kind out of a patch: for which list, and the elements they name.
fn take_prefixed(patch: &mut Map<String, Value>, prefix: &str) -> Result<Vec<(String, Vec<Value>)>, String> {
    let names: Vec<_> = patch.keys().filter(|name| name.starts_with(prefix)).cloned().collect();
    let mut found = Vec::new();
    for name in names {
        match patch.remove(&name) {
            Some(Value::Array(list)) => found.push((name[prefix.len()..].to_owned(), list)),
            _ => return Err(format!("invalid patch format of {name}")),
        }
    }
    Ok(found)
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Puts what the patch names in the order of the patch, and what only the original has where it was among those.
fn sorted(merged: Vec<Value>, order: &[Value], before: &[Value], key: Option<&str>) -> Vec<Value> {
    let same = |one: &Value, other: &Value| match key {
        Some(key) => one.get(key) == other.get(key),
        None => one == other,
    };
    let position = |list: &[Value], value: &Value| list.iter().position(|other| same(other, value));
    let (mut named, mut others): (Vec<_>, Vec<_>) =
        merged.into_iter().partition(|value| position(order, value).is_some());
    named.sort_by_key(|value| position(order, value));
    others.sort_by_key(|value| position(before, value));
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    let mut all = Vec::new();
    while let (Some(next), Some(other)) = (named.peek(), others.peek()) {
        let earlier = match (position(before, other), position(before, next)) {
            (Some(other), Some(next)) => other < next,
            _ => false,
        };
        all.extend(if earlier { others.next() } else { named.next() });
    }
    all.extend(named);
    all.extend(others);
    all
}

/// A value of a patch where the original has nothing: without directives and nulls; `None` if it is to be deleted.
fn plain(value: Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Object(map) if map.get(DIRECTIVE).is_some_and(|directive| directive == "delete") => None,
        Value::Object(map) => Some(Value::Object(plain_object(map))),
        Value::Array(list) => Some(Value::Array(list.into_iter().filter_map(plain).collect())),
        value => Some(value),
    }
}

fn plain_object(map: Map<String, Value>) -> Map<String, Value> {
    let directive = |name: &str| {
        name == DIRECTIVE || name == "$retainKeys" || name.starts_with(ORDER) || name.starts_with(DELETION)
    };
    map.into_iter()
        .filter(|(name, _)| !directive(name))
        .filter_map(|(name, value)| Some((name, plain(value)?)))
        .collect()
}

const DIRECTIVE: &str = "$patch";
const ORDER: &str = "$setElementOrder/";
const DELETION: &str = "$deleteFromPrimitiveList/";

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn merged(group: &str, kind: &str, original: Value, patch: Value) -> Result<Value, String> {
        let kinds = Kinds::builtin();
        let (Value::Object(original), Value::Object(patch)) = (original, patch) else { panic!("objects are wanted") };
        merge(&kinds, kinds.kind(group, "v1", kind).unwrap().structure, original, patch).map(Value::Object)
    }

    /// The containers of a pod after a patch of its spec.
    fn containers(original: Value, patch: Value) -> Value {
        merged("", "Pod", json!({"spec": {"containers": original}}), json!({"spec": patch})).unwrap()["spec"]["containers"]
            .clone()
    }

    #[test]
    fn keyed_lists_merge_by_their_key() {
        let original = json!([{"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}, {"name": "b"}]);
        assert_eq!(
            containers(original.clone(), json!({"containers": [{"name": "b", "image": "2"}, {"name": "c"}]})),
            json!([{"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}, {"name": "b", "image": "2"},
                {"name": "c"}])
        );
        let env = json!({"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}]}]});
        assert_eq!(
            containers(original, env)[0]["env"],
            json!([{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}])
        );
    }

    #[test]
    fn directives_delete_replace_and_order() {
        let original = json!([{"name": "a"}, {"name": "b"}, {"name": "c"}]);
        for (patch, expected) in [
            (json!({"containers": [{"name": "b", "$patch": "delete"}]}), json!([{"name": "a"}, {"name": "c"}])),
            (json!({"containers": [{"$patch": "replace"}, {"name": "z"}]}), json!([{"name": "z"}])),
            (
                json!({"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}]}),
                json!([{"name": "b"}, {"name": "c"}, {"name": "a"}]),
            ),
            (
                json!({"$setElementOrder/containers": [{"name": "d"}, {"name": "a"}, {"name": "b"}, {"name": "c"}],
                "containers": [{"name": "d"}]}),
                json!([{"name": "d"}, {"name": "a"}, {"name": "b"}, {"name": "c"}]),
            ),
            (json!({"containers": null}), Value::Null),
        ] {
            assert_eq!(containers(original.clone(), patch.clone()), expected, "{patch}");
        }
    }

    #[test]
    fn lists_of_scalars_merge_or_are_replaced() {
        let object = json!({"metadata": {"finalizers": ["a", "b"]}});
        let with = |patch| merged("", "ConfigMap", object.clone(), json!({"metadata": patch})).unwrap();
        assert_eq!(with(json!({"finalizers": ["c"]}))["metadata"]["finalizers"], json!(["c", "a", "b"]));
        assert_eq!(with(json!({"$deleteFromPrimitiveList/finalizers": ["a"]}))["metadata"]["finalizers"], json!(["b"]));
        let args = json!([{"name": "a", "args": ["1", "2"]}]);
        let replaced = containers(args, json!({"containers": [{"name": "a", "args": ["3"]}]}));
        assert_eq!(replaced[0]["args"], json!(["3"]));
    }

    #[test]
    fn retained_keys_drop_the_others() {
        let original = json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}});
        let patch = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
        assert_eq!(
            merged("apps", "Deployment", original.clone(), patch),
            Ok(json!({"spec": {"strategy": {"type": "Recreate"}}}))
        );
        let bad = json!({"spec": {"strategy": {"$retainKeys": ["type"], "rollingUpdate": {}}}});
        assert!(merged("apps", "Deployment", original, bad).is_err());
    }

    #[test]
    fn maps_and_new_values_merge_plainly() {
        let original = json!({"data": {"a": "1", "b": "2"}});
        let patch = json!({"data": {"a": null, "c": "3"}, "metadata": {"labels": {"x": "y", "z": null}}});
        assert_eq!(
            merged("", "ConfigMap", original, patch),
            Ok(json!({"data": {"b": "2", "c": "3"}, "metadata": {"labels": {"x": "y"}}}))
        );
    }

    #[test]
    fn bad_patches_are_refused() {
        for patch in [
            json!({"spec": {"containers": [{"image": "x"}]}}),
            json!({"spec": {"containers": [{"$patch": "delete"}]}}),
            json!({"spec": {"containers": [{"$patch": "odd", "name": "a"}]}}),
            json!({"spec": {"$setElementOrder/containers": 1}}),
            json!({"$patch": 1}),
        ] {
            assert!(
                merged("", "Pod", json!({"spec": {"containers": [{"name": "a"}]}}), patch.clone()).is_err(),
                "{patch}"
            );
        }
    }
}
