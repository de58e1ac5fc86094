//! Many at once.

use serde_json::json;

use super::{short, synced};
use crate::stage::{Stage, scenarios};
use crate::world::op::secrets;

scenarios! {
    ANY {
        a_hundred_watches_at_once,
    }
}

fn a_hundred_watches_at_once(stage: &Stage) {
    let world = stage.api();
    let watches: Vec<_> = (0..100).map(|_| world.watch(secrets().follow())).collect();
    watches.iter().for_each(|events| assert_eq!(synced(events), [""; 0]));
    world.must(secrets().create(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}})));
    watches.iter().for_each(|events| assert!(short(&events.good()).starts_with("applied a ")));
}
