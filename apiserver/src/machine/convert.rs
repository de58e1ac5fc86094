//! Between the versions of built-in resources whose objects are kept in one place.
//!
//! Custom resources of several versions need nothing here: with the conversion strategy `None` only their `apiVersion`
//! differs, which no stored object has.

use serde_json::{Map, Value, json};

use super::catalog::Resource;
use super::object::{self, Draft};
use crate::kinds::Kinds;

/// The object as `resource` serves it; `None` when it is served as it is stored.
pub(crate) fn served(kinds: &Kinds, resource: &Resource, stored: &Draft) -> Option<Draft> {
    let converted = converted(resource, stored)?;
    let of = &resource.of;
    let kind = kinds.kind(&of.group, &of.version, &of.kind)?;
    // What is never left out in one version may be left out in the other.
    let canonical = kinds.canonicalize(kind.structure, Value::Object(converted.clone()));
    Some(canonical.map_or(converted, |canonical| canonical.object))
}

fn converted(resource: &Resource, stored: &Draft) -> Option<Draft> {
    match (&*resource.of.group, &*resource.of.version, &*resource.of.plural) {
        ("events.k8s.io", _, "events") => {
            Some(renamed(stored, |name| EVENT_FIELDS.iter().find(|(core, _)| *core == name).map(|(_, own)| *own)))
        }
        ("autoscaling", "v1", "horizontalpodautoscalers") => Some(autoscaler_v1(stored)),
        _ => None,
    }
}

/// The object as it is stored, from what `resource` was given.
pub(crate) fn stored(resource: &Resource, given: Draft) -> Draft {
    match (&*resource.of.group, &*resource.of.version, &*resource.of.plural) {
        ("events.k8s.io", _, "events") => {
            renamed(&given, |name| EVENT_FIELDS.iter().find(|(_, own)| *own == name).map(|(core, _)| *core))
        }
        ("autoscaling", "v1", "horizontalpodautoscalers") => autoscaler_v2(given),
        _ => given,
    }
}

fn renamed(fields: &Draft, name: impl Fn(&str) -> Option<&'static str>) -> Draft {
    let rename =
        |(key, value): (&String, &Value)| (name(key).map_or_else(|| key.clone(), str::to_owned), value.clone());
    fields.iter().map(rename).collect()
}

/// What an event's fields are called in the core group, and in its own.
const EVENT_FIELDS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Version 1 knows one metric, the use of CPU in percent.
fn autoscaler_v1(stored: &Draft) -> Draft {
    let mut fields = stored.clone();
    for (part, metrics, target, place) in CPU_METRIC {
        let Some(part) = fields.get_mut(part).and_then(Value::as_object_mut) else { continue };
        let found = object::list(part, metrics).iter().find(|metric| metric["resource"]["name"] == "cpu");
        let percent = found.map(|metric| metric["resource"][place]["averageUtilization"].clone());
        part.remove(metrics);
        if let Some(percent) = percent.filter(Value::is_number) {
            part.insert(target.to_owned(), percent);
        }
    }
    fields
}

fn autoscaler_v2(mut fields: Draft) -> Draft {
    for (part, metrics, target, place) in CPU_METRIC {
        let Some(part) = fields.get_mut(part).and_then(Value::as_object_mut) else { continue };
        let Some(percent) = part.remove(target) else { continue };
        let mut inner = Map::new();
        inner.insert("averageUtilization".to_owned(), percent);
        if place == "target" {
            inner.insert("type".to_owned(), json!("Utilization"));
        }
        let resource = json!({"name": "cpu", place: inner});
        part.insert(metrics.to_owned(), json!([{"type": "Resource", "resource": resource}]));
    }
    fields
}

/// Where the use of CPU is: the part of the object, its list in version 2, its field in version 1, where in the list.
const CPU_METRIC: [(&str, &str, &str, &str); 2] = [
    ("spec", "metrics", "targetCPUUtilizationPercentage", "target"),
    ("status", "currentMetrics", "currentCPUUtilizationPercentage", "current"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::catalog::Catalog;

    fn draft(value: Value) -> Draft {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn events_are_the_same_objects_under_other_names() {
        let catalog = Catalog::new(&Kinds::builtin());
        let own = catalog.resource("events.k8s.io", "v1", "events").unwrap();
        let given =
            draft(json!({"metadata": {"name": "e"}, "note": "n", "regarding": {"kind": "Pod"}, "type": "Normal"}));
        let kept = stored(own, given.clone());
        assert_eq!(
            Value::Object(kept.clone()),
            json!({"metadata": {"name": "e"}, "message": "n", "involvedObject": {"kind": "Pod"}, "type": "Normal"})
        );
        assert_eq!(converted(own, &kept), Some(given));
        assert_eq!(converted(catalog.resource("", "v1", "events").unwrap(), &kept), None);
    }

    #[test]
    fn an_autoscaler_keeps_its_cpu_target_between_versions() {
        let catalog = Catalog::new(&Kinds::builtin());
        let v1 = catalog.resource("autoscaling", "v1", "horizontalpodautoscalers").unwrap();
        let given = draft(json!({"spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 80}, "status": {}}));
        let kept = stored(v1, given.clone());
        assert_eq!(
            kept["spec"]["metrics"][0]["resource"]["target"],
            json!({"type": "Utilization", "averageUtilization": 80})
        );
        assert_eq!(converted(v1, &kept), Some(given));
    }
}
