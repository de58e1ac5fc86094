//! The body of the fuzz target for patches.

use serde_json::Value;

use super::{Arrays, JsonPatch, PatchError, Pointer, merge_diff, merge_patch};

/// Takes lines of JSON: a document, another, and a patch. The difference of the two must lead from one to the other,
/// and the patch must be done whole or leave no trace.
pub fn patch(data: &[u8]) {
    let mut lines = data.split(|byte| *byte == b'\n');
    let mut document = || serde_json::from_slice::<Value>(lines.next()?).ok();
    let Some(old) = document() else { return };
    let Some(new) = document() else { return };
    differences(&old, &new);
    if let Some(patch) = lines.next().and_then(|line| serde_json::from_slice::<JsonPatch>(line).ok()) {
        apply(&patch, &old);
    }
    let _ = JsonPatch::guarded(&old, &new).map(|patch| patch.map(|patch| apply(&patch, &old)));
}

fn differences(old: &Value, new: &Value) {
    let mutation = JsonPatch::mutation(old, old, new);
    let same_object = !matches!(mutation, Err(PatchError::IdentityChanged { .. }));
    for patch in [
        JsonPatch::diff(old, new),
        JsonPatch::diff_with(old, new, Arrays::ByElement),
        if same_object { mutation } else { JsonPatch::diff(old, new) },
    ] {
        let mut document = old.clone();
        assert_eq!(patch.and_then(|patch| patch.apply(&mut document)), Ok(()), "text is never nested too deep");
        assert_eq!(&document, new);
    }
    assert_eq!(JsonPatch::mutation(old, new, new), Ok(JsonPatch::new()));
    match merge_diff(old, new) {
        Ok(patch) => {
            let mut document = old.clone();
            assert_eq!(merge_patch(&mut document, &patch), Ok(()));
            assert_eq!(&document, new);
        }
        Err(error) => assert!(matches!(error, PatchError::NullInMerge { .. }), "{error}"),
    }
    let mut merged = old.clone();
    assert_eq!(merge_patch(&mut merged, new), Ok(()));
    let once = merged.clone();
    assert_eq!(merge_patch(&mut merged, new), Ok(()));
    assert_eq!(merged, once, "merging twice is merging once");
}

fn apply(patch: &JsonPatch, document: &Value) {
    let text = serde_json::to_vec(patch).unwrap_or_default();
    assert_eq!(serde_json::from_slice::<JsonPatch>(&text).ok().as_ref(), Some(patch));
    let mut changed = document.clone();
    if patch.apply(&mut changed).is_err() {
        assert_eq!(&changed, document);
    }
    for operation in patch.operations() {
        let path = operation.path();
        assert_eq!(&Pointer::from_iter(path.segments()), path);
    }
}
