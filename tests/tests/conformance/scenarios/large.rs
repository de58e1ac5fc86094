//! Much at once.

use super::{at, map};
use crate::stage::{Stage, scenarios};
use crate::world::op::maps;

scenarios! {
    ANY {
        a_large_object_passes_whole,
    }
}

fn a_large_object_passes_whole(stage: &Stage) {
    let world = stage.api();
    let text = "x".repeat(1_000_000);
    world.must(maps().create(map("large", &text)));
    assert_eq!(at(&world.must(maps().get("large")).value(), "/data/key"), &text);
}
