//! Strategic merge patches: merge patches that know how the lists of built-in kinds are merged.
//!
//! See <https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/strategic-merge-patch.md>.

mod error;
#[cfg(test)]
mod golden;
mod list;
mod schema;

use serde_json::{Map, Value};

use crate::kinds::{Kinds, StructId};

pub(crate) use error::StrategicError;
use list::{List, merge_lists, order};
use schema::{Schema, Strategy};

type Fields = Map<String, Value>;

/// Applies `patch` to `original`, an object of the type `structure`.
///
/// # Errors
/// What the API server says of a patch whose directives are malformed or do not fit the type. Its fields may still be
/// unknown or of the wrong type: that shows when the result is decoded.
pub(crate) fn apply(
    kinds: &Kinds,
    structure: StructId,
    original: Fields,
    patch: Fields,
) -> Result<Fields, StrategicError> {
    let mut merged = original;
    Merge { kinds }.maps(&mut merged, patch, Schema::Struct(structure))?;
    Ok(merged)
}

#[derive(Clone, Copy)]
struct Merge<'a> {
    kinds: &'a Kinds,
}

impl Merge<'_> {
    fn maps(self, original: &mut Fields, mut patch: Fields, schema: Schema) -> Result<(), StrategicError> {
        if let Some(directive) = patch.get(DIRECTIVE) {
            match directive.as_str() {
                Some("replace") => {
                    patch.remove(DIRECTIVE);
                    *original = patch;
                }
                Some("delete") => original.clear(),
                _ => return Err(StrategicError::directive(directive, &patch)),
            }
            return Ok(());
        }
        retain_keys(original, &mut patch)?;
        self.ordered_lists(original, &mut patch, schema)?;
        for (key, value) in patch {
            self.field(original, &key, value, schema)?;
        }
        Ok(())
    }

    fn field(self, original: &mut Fields, key: &str, value: Value, schema: Schema) -> Result<(), StrategicError> {
        let deletes = key.starts_with(DELETE_PREFIX);
        let key = if deletes { named(key, DELETE_PREFIX).ok_or(StrategicError::PrimitiveListFormat)? } else { key };
        if value.is_null() {
            original.remove(key);
            return Ok(());
        }
        match (original.get_mut(key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                let (schema, strategy) = schema.map(self.kinds, key)?;
                match strategy.merging {
                    Some("replace") => *old = new,
                    _ => self.maps(old, new, schema)?,
                }
            }
            (Some(Value::Array(old)), Value::Array(new)) => {
                let (schema, strategy) = schema.list(self.kinds, key)?;
                let old = std::mem::take(old);
                let merged = self.lists(old, new, schema, strategy, deletes)?;
                original.insert(key.to_owned(), Value::Array(merged));
            }
            // There is nothing to delete from.
            _ if deletes => {}
            (old, mut value) => {
                // Scalars that take the place of scalars have nothing to be cleaned of.
                discard_nulls(&mut value);
                let old = old.is_some();
                match without_directives(value) {
                    Some(value) => drop(original.insert(key.to_owned(), value)),
                    None if old => drop(original.remove(key)),
                    None => {}
                }
            }
        }
        Ok(())
    }

    fn lists(
        self,
        old: Vec<Value>,
        new: Vec<Value>,
        schema: Schema,
        strategy: Strategy,
        deletes: bool,
    ) -> Result<Vec<Value>, StrategicError> {
        if strategy.merging != Some("merge") && !deletes {
            return Ok(new);
        }
        let merge = |old: &mut Fields, new: Fields| self.maps(old, new, schema);
        merge_lists(List { key: strategy.key, of: schema.name() }, old, new, deletes, merge)
    }

    /// Takes the lists out of `patch` for which it says how their items are ordered, and merges them.
    fn ordered_lists(self, original: &mut Fields, patch: &mut Fields, schema: Schema) -> Result<(), StrategicError> {
        let keys: Vec<_> = patch.keys().filter(|key| key.starts_with(ORDER_PREFIX)).cloned().collect();
        for directive in keys {
            let wanted = list_of(patch.remove(&directive).unwrap_or_default())?;
            let key = named(&directive, ORDER_PREFIX).ok_or(StrategicError::ElementOrderFormat)?;
            let old = original.get(key).cloned().map(list_of).transpose()?;
            let new = patch.remove(key).map(list_of).transpose()?;
            let (schema, strategy) = schema.list(self.kinds, key)?;
            let list = List { key: strategy.key, of: schema.name() };
            list.check_order(new.as_deref().unwrap_or_default(), &wanted)?;
            let merged = match (&old, &new) {
                (None, None) => continue,
                (Some(old), None) => old.clone(),
                (None, Some(new)) => new.iter().cloned().filter_map(without_directives).collect(),
                (Some(old), Some(new)) => self.lists(old.clone(), new.clone(), schema, strategy, false)?,
            };
            let kind = list::kind_of([old.as_deref().unwrap_or_default(), new.as_deref().unwrap_or_default()])?;
            let live = old.unwrap_or_default();
            original.insert(key.to_owned(), Value::Array(order(list, kind, merged, &wanted, &live)?));
        }
        Ok(())
    }
}

/// Drops what a patch with `$retainKeys` does not name.
fn retain_keys(original: &mut Fields, patch: &mut Fields) -> Result<(), StrategicError> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let Value::Array(keys) = keys else { return Err(StrategicError::RetainKeysFormat) };
    let retained = |key: &str| keys.iter().any(|retained| retained == key);
    let directive = |key: &str| key.starts_with(DELETE_PREFIX) || key.starts_with(ORDER_PREFIX);
    if patch.iter().any(|(key, value)| !value.is_null() && !directive(key) && !retained(key)) {
        return Err(StrategicError::RetainKeysFormat);
    }
    original.retain(|key, _| retained(key));
    Ok(())
}

/// The name after the slash of a directive, such as `finalizers` in `$setElementOrder/finalizers`.
fn named<'a>(key: &'a str, directive: &str) -> Option<&'a str> {
    key.strip_prefix(directive)?.strip_prefix('/')
}

fn list_of(value: Value) -> Result<Vec<Value>, StrategicError> {
    match value {
        Value::Array(list) => Ok(list),
        other => Err(StrategicError::type_of("[]interface {}", &other)),
    }
}

/// A value without the objects in it that carry a directive; nothing when it carries one itself.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => {
            let kept = map.into_iter().filter_map(|(key, value)| Some((key, without_directives(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(list) => Some(Value::Array(list.into_iter().filter_map(without_directives).collect())),
        scalar => Some(scalar),
    }
}

/// Drops the fields that are null, at every depth.
fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(discard_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_PREFIX: &str = "$deleteFromPrimitiveList";
const ORDER_PREFIX: &str = "$setElementOrder";
