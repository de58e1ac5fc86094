//! The body of a fuzz target: a store is a map with indexes that follow from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Store;
use crate::object::{Object, Trim};

/// Does what the bytes say, two a step, to a store and to a plain map.
///
/// # Panics
/// When the two differ, or an index does not hold what it should.
pub fn store_ops(data: &[u8]) {
    let mut store = Store::new();
    store
        .add_index("zone", Arc::new(|object| object.label("zone").into_iter().map(ToOwned::to_owned).collect()))
        .expect("the first index of that name");
    let mut model = BTreeMap::new();
    for (version, step) in data.chunks_exact(2).take(200).enumerate() {
        let (namespace, name, zone) = (step[0] % 3, step[0] / 3 % 8, step[1] % 4);
        let (namespace, name) = (format!("ns{namespace}"), format!("n{name}"));
        if step[1] >= 64 {
            let object = object(&namespace, &name, version, zone);
            assert_eq!(store.insert(object.clone()), model.insert((namespace, name), object));
        } else {
            assert_eq!(store.remove(Some(&namespace), &name), model.remove(&(namespace, name)));
        }
        assert!(store.iter().eq(model.values()));
        for zone in ["0", "1", "2", "3"] {
            let found = store.by_index("zone", zone).expect("an index that was added");
            assert!(found.eq(model.values().filter(|object| object.label("zone") == Some(zone))));
        }
    }
}

fn object(namespace: &str, name: &str, version: usize, zone: u8) -> Arc<Object> {
    let text = format!(
        r#"{{"metadata":{{"namespace":"{namespace}","name":"{name}","resourceVersion":"{version}","labels":{{"zone":"{zone}"}}}}}}"#
    );
    Arc::new(Object::parse(&text, Trim::Nothing).expect("an object with a name"))
}
