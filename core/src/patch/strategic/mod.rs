//! Strategic merge patches: merge patches that know how the lists of built-in kinds are merged.
//!
//! See <https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/strategic-merge-patch.md>.

mod error;
mod list;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{MAX_DEPTH, fits};
pub use error::StrategicError;
use list::{List, merge_lists, order};

type Fields = Map<String, Value>;

/// What is known of the type of an object, so that a strategic merge patch can be applied to it: in Kubernetes, the
/// `x-kubernetes-patch-strategy` and `x-kubernetes-patch-merge-key` of its fields. Custom resources have none, and no
/// such patches.
pub trait MergeSchema: Clone {
    /// The type of the object in the field `name`, and how it is merged; an error if there is no such field.
    fn object(&self, name: &str) -> Result<(Self, MergeStrategy), StrategicError>;

    /// The type of the items of the list in the field `name`, and how the list is merged; an error if there is no such
    /// field, or it holds no list.
    fn list(&self, name: &str) -> Result<(Self, MergeStrategy), StrategicError>;

    /// What the type is, for messages: `struct`, or whatever has no fields.
    fn kind(&self) -> &str;
}

/// How the values of a field are merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "whoever implements a schema makes it")]
pub struct MergeStrategy {
    /// Whether they are.
    pub merging: Merging,
    /// The field by which the items of a list are told apart; without one they are scalars.
    pub key: Option<Cow<'static, str>>,
}

/// Whether a patch is merged into what there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there are no other strategies")]
pub enum Merging {
    /// Objects are merged, lists replaced.
    #[default]
    Unsaid,
    /// Both are merged.
    Merge,
    /// Both are replaced.
    Replace,
}

/// What the [strategic merge patch](https://kubernetes.io/docs/tasks/manage-kubernetes-objects/update-api-object-kubectl-patch/)
/// `patch` makes of `original`, an object of the type `schema`.
///
/// # Errors
/// What the API server says of a patch whose directives are malformed or do not fit the type. Its fields may still be
/// unknown or of the wrong type.
///
/// ```
/// use cloudcoil_core::patch::{MergeSchema, MergeStrategy, Merging, StrategicError, strategic_merge};
/// use serde_json::json;
///
/// /// A type whose lists are all told apart by `name`.
/// #[derive(Clone)]
/// struct Named;
///
/// impl MergeSchema for Named {
///     fn object(&self, _: &str) -> Result<(Self, MergeStrategy), StrategicError> {
///         Ok((Self, MergeStrategy::default()))
///     }
///     fn list(&self, _: &str) -> Result<(Self, MergeStrategy), StrategicError> {
///         Ok((Self, MergeStrategy { merging: Merging::Merge, key: Some("name".into()) }))
///     }
///     fn kind(&self) -> &str {
///         "struct"
///     }
/// }
///
/// let original = json!({"containers": [{"name": "a", "image": "one"}, {"name": "b"}]});
/// let patch = json!({"containers": [{"name": "a", "tty": true}, {"name": "b", "$patch": "delete"}]});
/// let merged = strategic_merge(&Named, original.as_object().unwrap().clone(), patch.as_object().unwrap().clone())?;
/// assert_eq!(json!(merged), json!({"containers": [{"name": "a", "image": "one", "tty": true}]}));
/// # Ok::<(), StrategicError>(())
/// ```
pub fn strategic_merge<S: MergeSchema>(schema: &S, original: Fields, patch: Fields) -> Result<Fields, StrategicError> {
    if original.values().chain(patch.values()).any(|value| !fits(value, MAX_DEPTH - 1)) {
        return Err(StrategicError::TooDeep);
    }
    let mut merged = original;
    maps(&mut merged, patch, schema)?;
    Ok(merged)
}

fn maps<S: MergeSchema>(original: &mut Fields, mut patch: Fields, schema: &S) -> Result<(), StrategicError> {
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
    ordered_lists(original, &mut patch, schema)?;
    for (key, value) in patch {
        field(original, &key, value, schema)?;
    }
    Ok(())
}

fn field<S: MergeSchema>(original: &mut Fields, key: &str, value: Value, schema: &S) -> Result<(), StrategicError> {
    let deletes = key.starts_with(DELETE_PREFIX);
    let key = if deletes { named(key, DELETE_PREFIX).ok_or(StrategicError::PrimitiveListFormat)? } else { key };
    if value.is_null() {
        original.remove(key);
        return Ok(());
    }
    match (original.get_mut(key), value) {
        (Some(Value::Object(old)), Value::Object(new)) => {
            let (schema, strategy) = schema.object(key)?;
            match strategy.merging {
                Merging::Replace => *old = new,
                _ => maps(old, new, &schema)?,
            }
        }
        (Some(Value::Array(old)), Value::Array(new)) => {
            let (schema, strategy) = schema.list(key)?;
            let old = std::mem::take(old);
            let merged = lists(old, new, &schema, &strategy, deletes)?;
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

fn lists<S: MergeSchema>(
    old: Vec<Value>,
    new: Vec<Value>,
    schema: &S,
    strategy: &MergeStrategy,
    deletes: bool,
) -> Result<Vec<Value>, StrategicError> {
    if strategy.merging != Merging::Merge && !deletes {
        return Ok(new);
    }
    let merge = |old: &mut Fields, new: Fields| maps(old, new, schema);
    merge_lists(List { key: strategy.key.as_deref(), of: schema.kind() }, old, new, deletes, merge)
}

/// Takes the lists out of `patch` for which it says how their items are ordered, and merges them.
fn ordered_lists<S: MergeSchema>(original: &mut Fields, patch: &mut Fields, schema: &S) -> Result<(), StrategicError> {
    let keys: Vec<_> = patch.keys().filter(|key| key.starts_with(ORDER_PREFIX)).cloned().collect();
    for directive in keys {
        let wanted = list_of(patch.remove(&directive).unwrap_or_default())?;
        let key = named(&directive, ORDER_PREFIX).ok_or(StrategicError::ElementOrderFormat)?;
        let old = original.get(key).cloned().map(list_of).transpose()?;
        let new = patch.remove(key).map(list_of).transpose()?;
        let (schema, strategy) = schema.list(key)?;
        let list = List { key: strategy.key.as_deref(), of: schema.kind() };
        list.check_order(new.as_deref().unwrap_or_default(), &wanted)?;
        let merged = match (&old, &new) {
            (None, None) => continue,
            (Some(old), None) => old.clone(),
            (None, Some(new)) => new.iter().cloned().filter_map(without_directives).collect(),
            (Some(old), Some(new)) => lists(old.clone(), new.clone(), &schema, &strategy, false)?,
        };
        let kind = list::kind_of([old.as_deref().unwrap_or_default(), new.as_deref().unwrap_or_default()])?;
        let live = old.unwrap_or_default();
        original.insert(key.to_owned(), Value::Array(order(list, kind, merged, &wanted, &live)?));
    }
    Ok(())
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
