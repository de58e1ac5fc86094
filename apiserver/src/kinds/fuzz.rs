//! Bodies of fuzz targets, so that they compile in every build.

use serde_json::Value;

use super::Kinds;

/// Between them these kinds hold every shape.
const KINDS: [(&str, &str, &str); 3] =
    [("", "v1", "Pod"), ("", "v1", "Secret"), ("apiextensions.k8s.io", "v1", "CustomResourceDefinition")];

/// Decodes any bytes as a protobuf body, and as the message of some kinds.
///
/// # Panics
/// When an object that was decoded is not in the API server's form.
pub fn protobuf(kinds: &Kinds, data: &[u8]) {
    // An error is as good an answer as an object.
    let _ = kinds.decode_protobuf(data, None);
    for default in KINDS {
        if let Ok(object) = kinds.decode_protobuf(&envelope(data), Some(default)) {
            assert_stays(kinds, default, object.into());
        }
    }
}

/// Decodes any bytes as the JSON of some kinds.
///
/// # Panics
/// When an object that was decoded is not in the API server's form.
pub fn json(kinds: &Kinds, data: &[u8]) {
    for (group, version, kind) in KINDS {
        let structure = kinds.kind(group, version, kind).expect("a built-in kind").structure;
        if let Ok(decoded) = kinds.decode_json(structure, data) {
            assert_stays(kinds, (group, version, kind), decoded.object.into());
        }
    }
}

/// What is in the API server's form stays as it is. Protobuf tells an empty time from none, which JSON writes as `null`
/// and reads as none, so what counts is the form that JSON gives.
fn assert_stays(kinds: &Kinds, (group, version, kind): (&str, &str, &str), object: Value) {
    let structure = kinds.kind(group, version, kind).expect("a built-in kind").structure;
    let canonical =
        |object: Value| kinds.canonicalize(structure, object).map(|canonical| Value::Object(canonical.object));
    let once = canonical(object).expect("an object that was decoded");
    assert_eq!(canonical(once.clone()), Ok(once));
}

fn envelope(message: &[u8]) -> Vec<u8> {
    let mut body = b"k8s\0\x12".to_vec();
    let mut length = message.len();
    while length >= 0x80 {
        body.push(length as u8 | 0x80);
        length >>= 7;
    }
    body.push(length as u8);
    body.extend(message);
    body
}
