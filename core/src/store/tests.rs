use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;

use super::*;
use crate::object::Trim;

fn object(namespace: &str, name: &str, version: u32, labels: &[(&str, &str)]) -> Arc<Object> {
    let labels: BTreeMap<_, _> = labels.iter().copied().collect();
    let metadata = serde_json::json!({"namespace": namespace, "name": name, "uid": format!("{namespace}-{name}"),
        "resourceVersion": version.to_string(), "labels": labels});
    let text =
        serde_json::json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"phase": "Running"}});
    Arc::new(Object::parse(&text.to_string(), Trim::Nothing).unwrap())
}

fn names<'a>(objects: impl Iterator<Item = &'a Arc<Object>>) -> Vec<String> {
    objects.map(|object| object.key().to_string()).collect()
}

fn by_label(label: &'static str) -> Arc<IndexFn> {
    Arc::new(move |object| object.label(label).into_iter().flat_map(|all| all.split('.')).map(str::to_owned).collect())
}

#[test]
fn objects_are_listed_by_namespace_and_name() {
    let mut store = Store::new();
    for (namespace, name) in [("b", "1"), ("a", "2"), ("a", "1"), ("a-b", "1"), ("", "node")] {
        assert!(store.insert(object(namespace, name, 1, &[])).is_none());
    }
    assert_eq!(names(store.iter()), ["node", "a/1", "a/2", "a-b/1", "b/1"]);
    assert_eq!(names(store.in_namespace("a")), ["a/1", "a/2"]);
    assert_eq!(names(store.in_namespace("none")), [""; 0]);
    assert!(store.get(None, "node").is_some() && store.get(Some(""), "node").is_some());
}

#[test]
fn selectors_see_labels_and_fields() {
    let mut store = Store::new();
    store.insert(object("a", "1", 1, &[("app", "web")]));
    store.insert(object("b", "1", 1, &[("app", "api")]));
    store.insert(object("b", "2", 1, &[]));
    let select = |namespace, labels: &str, fields: &str| {
        names(store.select(namespace, &labels.parse().unwrap(), &fields.parse().unwrap()))
    };
    assert_eq!(select(None, "app in (web, api)", ""), ["a/1", "b/1"]);
    assert_eq!(select(Some("b"), "app!=web", "status.phase=Running"), ["b/1", "b/2"]);
    assert_eq!(select(None, "", "metadata.name=1,metadata.namespace!=a"), ["b/1"]);
}

#[test]
fn an_index_follows_every_change() {
    let mut store = Store::new();
    store.insert(object("a", "1", 1, &[("zone", "x.y")]));
    store.add_index("zone", by_label("zone")).unwrap();
    store.insert(object("a", "2", 1, &[("zone", "y.y")]));
    let of = |store: &Store, value: &str| names(store.by_index("zone", value).unwrap());
    assert_eq!((of(&store, "x"), of(&store, "y")), (vec!["a/1".into()], vec!["a/1".into(), "a/2".into()]));
    store.insert(object("a", "1", 2, &[("zone", "z")]));
    assert_eq!((of(&store, "x").len(), of(&store, "y"), of(&store, "z")), (0, vec!["a/2".into()], vec!["a/1".into()]));
    store.remove(Some("a"), "2");
    assert_eq!(store.index_keys("zone").unwrap().collect::<Vec<_>>(), ["z"]);
}

#[test]
fn an_index_is_named_once_and_must_exist() {
    let mut store = Store::new();
    store.add_index("zone", by_label("zone")).unwrap();
    assert!(store.add_index("zone", by_label("zone")).is_err());
    assert!(store.by_index("other", "x").is_err() && store.index_keys("other").is_err());
}

#[test]
fn the_oldest_object_makes_room_for_a_new_one_and_a_change_keeps_its_age() {
    let mut store = Store::with_capacity_limit(2);
    store.add_index("zone", by_label("zone")).unwrap();
    store.insert(object("a", "1", 1, &[("zone", "x")]));
    store.insert(object("a", "2", 1, &[]));
    store.insert(object("a", "1", 2, &[("zone", "x")]));
    store.insert(object("a", "3", 1, &[]));
    assert_eq!(names(store.iter()), ["a/2", "a/3"]);
    assert_eq!(store.index_keys("zone").unwrap().count(), 0);
}

#[test]
fn an_index_function_that_panics_changes_nothing() {
    let mut store = Store::new();
    store.add_index("zone", by_label("zone")).unwrap();
    let picky = |object: &Object| if object.label("zone") == Some("bad") { panic!("bad") } else { Vec::new() };
    store.add_index("picky", Arc::new(picky)).unwrap();
    store.insert(object("a", "1", 1, &[("zone", "x")]));
    for name in ["1", "2"] {
        let bad = object("a", name, 2, &[("zone", "bad")]);
        assert!(catch_unwind(AssertUnwindSafe(|| store.insert(bad))).is_err());
    }
    assert!(catch_unwind(AssertUnwindSafe(|| store.add_index("worse", Arc::new(|_| panic!("bad"))))).is_err());
    assert_eq!(
        (names(store.iter()), store.get(Some("a"), "1").unwrap().label("zone")),
        (vec!["a/1".into()], Some("x"))
    );
    assert_eq!(store.index_keys("zone").unwrap().collect::<Vec<_>>(), ["x"]);
    assert!(store.by_index("worse", "").is_err());
}

#[test]
fn an_index_function_that_changes_its_mind_leaves_nothing_behind() {
    let calls = AtomicU32::new(0);
    let mut store = Store::new();
    let fickle = move |_: &Object| vec![calls.fetch_add(1, Ordering::Relaxed).to_string(); 2];
    store.add_index("fickle", Arc::new(fickle)).unwrap();
    store.insert(object("a", "1", 1, &[]));
    store.insert(object("a", "1", 2, &[]));
    assert_eq!(store.index_keys("fickle").unwrap().collect::<Vec<_>>(), ["1"]);
    assert_eq!(store.by_index("fickle", "1").unwrap().count(), 1);
    store.remove(Some("a"), "1");
    assert_eq!(store.index_keys("fickle").unwrap().count(), 0);
}

#[derive(Clone, Debug)]
enum Op {
    Insert(u8, u8, u32, u8),
    Remove(u8, u8),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (0..3_u8, 0..5_u8, any::<u32>(), 0..3_u8).prop_map(|(ns, name, version, zone)| Op::Insert(ns, name, version, zone)),
        1 => (0..3_u8, 0..5_u8).prop_map(|(ns, name)| Op::Remove(ns, name)),
    ]
}

proptest! {
    #[test]
    fn a_store_is_a_map_with_indexes_derived_from_it(ops in prop::collection::vec(op(), 0..60)) {
        let mut store = Store::new();
        store.add_index("zone", by_label("zone")).unwrap();
        let mut model = BTreeMap::new();
        for op in ops {
            match op {
                Op::Insert(ns, name, version, zone) => {
                    let new = object(&ns.to_string(), &name.to_string(), version, &[("zone", &zone.to_string())]);
                    prop_assert_eq!(store.insert(new.clone()), model.insert((ns, name), new));
                }
                Op::Remove(ns, name) => {
                    prop_assert_eq!(store.remove(Some(&ns.to_string()), &name.to_string()), model.remove(&(ns, name)));
                }
            }
            prop_assert!(store.iter().eq(model.values()));
            for zone in 0..3_u8 {
                let zone = zone.to_string();
                let expected = model.values().filter(|object| object.label("zone") == Some(&*zone));
                prop_assert!(store.by_index("zone", &zone).unwrap().eq(expected));
            }
            for ns in 0..3_u8 {
                let expected = model.iter().filter(|((of, _), _)| *of == ns).map(|(_, object)| object);
                prop_assert!(store.in_namespace(&ns.to_string()).eq(expected));
            }
        }
    }
}

proptest! {
    #[test]
    fn a_store_is_its_model_whatever_has_to_make_room(ops in prop::collection::vec(any::<u8>(), 0..100)) {
        fuzz::store_ops(&ops);
    }
}
