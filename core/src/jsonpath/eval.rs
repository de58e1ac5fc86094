//! Applies parsed expressions to values.

use std::cmp::Ordering;

use serde_json::Value;

use super::{Filter, JsonPathError, Operator, Slice, SliceEnd, Step};

type Values<'a> = Result<Vec<&'a Value>, JsonPathError>;

pub(super) fn steps<'a>(steps: &'a [Step], mut values: Vec<&'a Value>) -> Values<'a> {
    for step in steps {
        values = apply(step, values)?;
    }
    Ok(values)
}

/// Repeated `..`, `*` and unions multiply; this bounds what a hostile expression costs.
fn add<'a>(out: &mut Vec<&'a Value>, values: impl IntoIterator<Item = &'a Value>) -> Result<(), JsonPathError> {
    let room = LIMIT - out.len();
    let mut values = values.into_iter();
    out.extend(values.by_ref().take(room));
    match values.next() {
        Some(_) => Err(JsonPathError::TooMany { limit: LIMIT }),
        None => Ok(()),
    }
}

fn apply<'a>(step: &'a Step, values: Vec<&'a Value>) -> Values<'a> {
    let mut out = Vec::new();
    match step {
        Step::Field(name) => out.extend(values.into_iter().filter_map(|value| value.as_object()?.get(name))),
        Step::Wildcard => add(&mut out, values.into_iter().flat_map(children))?,
        Step::Recursive => return recursive(values),
        Step::Slice(bounds) => {
            for value in values.into_iter().filter(|value| !value.is_null()) {
                add(&mut out, slice(*bounds, value)?)?;
            }
        }
        Step::Union(branches) => {
            for branch in branches {
                add(&mut out, steps(branch, values.clone())?)?;
            }
        }
        Step::Filter(filter) => return filtered(filter, values),
        Step::Text(value) => out.push(value),
        Step::Literal(value) => out.resize(values.len(), value),
    }
    Ok(out)
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Object(map) => map.values().collect(),
        Value::Array(list) => list.iter().collect(),
        _ => Vec::new(),
    }
}

/// Each value and everything below it that is not empty: objects, lists and texts, but no other scalars.
fn recursive(values: Vec<&Value>) -> Values<'_> {
    let mut out = Vec::new();
    let mut waiting = values;
    waiting.reverse();
    while let Some(value) = waiting.pop() {
        let within = children(value);
        if within.is_empty() && value.as_str().is_none_or(str::is_empty) {
            continue;
        }
        add(&mut out, [value])?;
        waiting.extend(within.into_iter().rev());
    }
    Ok(out)
}

fn slice(bounds: Slice, value: &Value) -> Result<impl Iterator<Item = &Value>, JsonPathError> {
    let list = list(value)?;
    let length = i64::try_from(list.len()).unwrap_or(i64::MAX);
    let from_start = |index: i64| if index < 0 { index + length } else { index };
    let start = from_start(bounds.start);
    let end = match bounds.end {
        SliceEnd::Open => length,
        SliceEnd::At(end) => from_start(end),
        SliceEnd::Single => start.saturating_add(1),
    };
    let out_of_bounds = |index| JsonPathError::OutOfBounds { index, length: list.len() };
    if start != end {
        if !(0..length).contains(&start) {
            return Err(out_of_bounds(start));
        }
        if !(0..=length).contains(&end) {
            return Err(out_of_bounds(end.saturating_sub(1)));
        }
        if start > end {
            return Err(JsonPathError::EndsBeforeStart { start, end });
        }
    }
    let range = match (usize::try_from(start), usize::try_from(end)) {
        (Ok(start), Ok(end)) if start < end => start..end,
        _ => 0..0,
    };
    Ok(list[range].iter().step_by(bounds.step))
}

fn filtered<'a>(filter: &'a Filter, values: Vec<&'a Value>) -> Values<'a> {
    let mut out = Vec::new();
    for value in values {
        for item in list(value)? {
            if passes(filter, item)? {
                add(&mut out, [item])?;
            }
        }
    }
    Ok(out)
}

fn passes(filter: &Filter, item: &Value) -> Result<bool, JsonPathError> {
    let left = steps(&filter.left, vec![item]);
    let Some((operator, right)) = &filter.test else {
        return Ok(left.is_ok_and(|found| !found.is_empty()));
    };
    let (Some(left), Some(right)) = (single(&left?)?, single(&steps(right, vec![item])?)?) else {
        return Ok(false);
    };
    compare(*operator, left, right)
}

fn single<'a>(values: &[&'a Value]) -> Result<Option<&'a Value>, JsonPathError> {
    match values {
        [] => Ok(None),
        [value] => Ok(Some(value)),
        _ => Err(JsonPathError::SeveralCompared { count: values.len() }),
    }
}

/// Integers compare with integers, other numbers with other numbers; true and false are only equal or not.
fn compare(operator: Operator, left: &Value, right: &Value) -> Result<bool, JsonPathError> {
    let ordering = match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            (None, None) => left.as_f64().partial_cmp(&right.as_f64()),
            _ => None,
        },
        (Value::Bool(left), Value::Bool(right)) if matches!(operator, Operator::Equal | Operator::NotEqual) => {
            Some(left.cmp(right))
        }
        _ => None,
    };
    let Some(ordering) = ordering else {
        return Err(JsonPathError::NotComparable { left: type_name(left), right: type_name(right) });
    };
    Ok(match operator {
        Operator::Equal => ordering == Ordering::Equal,
        Operator::NotEqual => ordering != Ordering::Equal,
        Operator::Less => ordering == Ordering::Less,
        Operator::LessOrEqual => ordering != Ordering::Greater,
        Operator::Greater => ordering == Ordering::Greater,
        Operator::GreaterOrEqual => ordering != Ordering::Less,
    })
}

fn list(value: &Value) -> Result<&[Value], JsonPathError> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| JsonPathError::NotAList { found: type_name(value) })
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a bool",
        Value::Number(number) if number.is_i64() => "an integer",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

const LIMIT: usize = 100_000;
